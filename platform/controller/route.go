package controller

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/proa-dev/proa/platform"
)

// routing is what a pass gathered of routes.
type routing struct {
	looked  bool // nothing about routes can have changed otherwise
	wanted  []platform.WantedRoute
	routes  []platform.SeenRoute
	entries []platform.SeenEntry
}

// gatherRoutes looks after a hint, at each full pass, and as long as something is left to do: ten thousand routes are read in a
// tenth of a second, and most passes are about something else.
func (t *term) gatherRoutes(ctx context.Context, full bool) (r routing, err error) {
	if !full && !t.hinted && !t.unserved {
		return r, nil
	}
	r.looked = true
	r.routes, r.entries = t.watch.Routes()
	r.wanted, err = t.Store.WantedRoutes(ctx, t.ID)
	if why := t.watch.WhyNoTCP(); why != nil {
		r.wanted = t.withoutTCP(r.wanted, why)
	}
	return r, err
}

// withoutTCP leaves out routes that the cluster cannot serve, and says so once.
func (t *term) withoutTCP(wanted []platform.WantedRoute, why error) []platform.WantedRoute {
	served := slices.DeleteFunc(slices.Clone(wanted), platform.WantedRoute.TCP)
	if left := len(wanted) - len(served); left > 0 && !t.noTCP {
		t.noTCP = true
		t.Log.Warn("routes of tcp are not served", "routes", left, "error", why)
	}
	return served
}

// actOnRoutes takes the steps of one kind after those of another. One that fails holds up those that rely on it and no others:
// a route relies on the entries it leads to, and what is taken from an entry on the routes that led there.
func (t *term) actOnRoutes(ctx context.Context, r routing, asked map[string]bool) {
	if !r.looked {
		return
	}
	a := routeActs{term: t, stuck: map[string]bool{}}
	steps := platform.PlanRoutes(r.wanted, r.routes, r.entries)
	for len(steps) > 0 {
		n := 1
		for n < len(steps) && steps[n].Kind == steps[0].Kind {
			n++
		}
		a.act(ctx, steps[:n], asked)
		steps = steps[n:]
	}
	t.hinted, t.unserved, t.hurry = false, a.undone, a.more // now only: a pass that gave up before has done nothing about the hint
}

// routeActs is what the steps of one pass have in common.
type routeActs struct {
	*term
	more   bool            // some were not begun, because there are too many
	undone bool            // or could not be taken
	stuck  map[string]bool // processes that those are about
}

// act takes steps of one kind.
func (a *routeActs) act(ctx context.Context, steps []platform.RouteStep, asked map[string]bool) {
	end := a.Now().Add(routesFor)
	failed := make([]bool, len(steps))
	group := errgroup.Group{}
	group.SetLimit(parallel)
	for i, s := range steps {
		name := routeStepName(s)
		asked[name] = true
		if _, waits := a.delays.waits(name, a.Now()); waits || a.blocked(s) {
			failed[i] = true
			continue
		}
		if a.Now().After(end) {
			a.more, failed[i] = true, true
			continue
		}
		group.Go(func() error {
			failed[i] = a.try(ctx, s.Kind.String(), name, s.Reason, func(ctx context.Context) error { return a.take(ctx, s) }) != nil
			return nil
		})
	}
	_ = group.Wait()
	for i, s := range steps {
		if failed[i] {
			a.undone = true
			for _, p := range s.Processes {
				a.stuck[p] = true
			}
		}
	}
}

// blocked says that something came before a step that it relies on. Removing a route relies on nothing.
func (a *routeActs) blocked(s platform.RouteStep) bool {
	return s.Kind != platform.StepDrop && s.Kind != platform.StepYield && slices.ContainsFunc(s.Processes, func(p string) bool { return a.stuck[p] })
}

func routeStepName(s platform.RouteStep) string {
	name := s.Kind.String() + " " + s.Namespace + "/"
	switch {
	case s.Route != nil:
		return name + s.Route.GUID
	case s.Entry != nil:
		return name + s.Entry.ProcessGUID
	}
	return name + s.Name
}

func (a *routeActs) take(ctx context.Context, s platform.RouteStep) error {
	switch s.Kind {
	case platform.StepServe:
		return a.Cluster.ServeRoute(ctx, *s.Route)
	case platform.StepDrop, platform.StepYield:
		return a.Cluster.DropRoute(ctx, s.Namespace, s.Name, s.TCP)
	case platform.StepClose:
		return a.Cluster.CloseEntry(ctx, s.Namespace, s.Name)
	}
	return a.Cluster.OpenEntry(ctx, *s.Entry)
}
