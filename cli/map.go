package cli

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	v3 "github.com/proa-dev/proa/platform/v3"
)

// mapping is where a route is to lead, as options say.
type mapping struct {
	kind     *string
	protocol *string
	port     **int
	weight   **int
}

var mapRouteCommand = command{
	name: "map-route", args: "APP DOMAIN", group: "Routes", short: "Let a route lead to an app; the route is created if nobody has it",
	long: "A port that the app does not have yet opens with its next restart; until then the destination is pending. With a weight, the other " +
		"destinations of the route share what is left of 100 percent as they did before. Under a domain for tcp the route is a port; without --port " +
		"one is taken that is free.",
	examples: []string{"proa map-route shop apps.example.com --hostname shop", "proa map-route shop apps.example.com --hostname shop --path /metrics --app-port 9191",
		"proa map-route shop-next apps.example.com --hostname shop --destination-weight 10", "proa map-route broker tcp.apps.example.com --port 20000 --app-port 1883"},
	needs: aSpace,
	setup: func(f *flags) action {
		at := addressFlags(f)
		m := mapping{
			port: f.number("app-port", "PORT", "the app's port that gets the requests (8080)"), kind: f.text("process", "TYPE", "the app's process that gets them (web)"),
			protocol: f.text("app-protocol", "PROTOCOL", "what the app speaks there: http1 or http2 (http1)"),
			weight:   f.number("destination-weight", "PERCENT", "share of the requests, from 1 to 100, if the route has several destinations"),
		}
		return func(ctx context.Context, s *session, args []string) error {
			if err := m.refuse(); err != nil {
				return err
			}
			return s.mapRoute(ctx, args[0], at(args[1]), m)
		}
	},
}

// refuse is asked before anything is changed: a route that was created for a mapping that fails would be left behind.
func (m mapping) refuse() error {
	switch {
	case *m.port != nil && (**m.port < 1024 || **m.port > 65535):
		return usage("--app-port must be between 1024 and 65535: an app cannot listen on others.")
	case *m.weight != nil && (**m.weight < 1 || **m.weight > 100):
		return usage("--destination-weight must be between 1 and 100.")
	case *m.protocol != "" && *m.protocol != "http1" && *m.protocol != "http2":
		return usage("An app speaks http1 or http2, not %q.", *m.protocol)
	}
	return nil
}

// wanted is the destination that the options describe. What they leave out is the platform's business.
func (m mapping) wanted(a v3.App) v3.DestinationWanted {
	w := v3.DestinationWanted{App: v3.DestinationApp{GUID: a.GUID}, Port: *m.port, Weight: *m.weight}
	if *m.kind != "" {
		w.App.Process = &v3.DestinationProcess{Type: *m.kind}
	}
	if *m.protocol != "" {
		w.Protocol = m.protocol
	}
	return w
}

// is tells whether a destination is the one that the options describe.
func (m mapping) is(a v3.App, d v3.Destination) bool {
	port := usualPort
	if *m.port != nil {
		port = **m.port
	}
	return d.App.GUID == a.GUID && typeOf(d) == firstOf(*m.kind, "web") && portOf(d) == port
}

func (s *session) mapRoute(ctx context.Context, app string, at address, m mapping) error {
	d, err := s.findDomain(ctx, at.domain)
	if err != nil {
		return err
	}
	a, err := s.findApp(ctx, app)
	if err != nil {
		return err
	}
	s.say("Mapping route %s to app %s %s...", s.bold(clean(at.String())), s.bold(clean(a.Name)), s.where())
	r, err := s.find(ctx, d, at)
	if err != nil {
		return err
	}
	if r == nil {
		made, err := s.createRoute(ctx, d, at)
		if err != nil {
			return err
		}
		s.chosen(at, made)
		r = &made
	}
	if r.Destinations, err = s.destine(ctx, *r, a, m); err != nil {
		return err
	}
	s.ok()
	s.printMapped(a, *r)
	return nil
}

// destine lets a route lead to an app, and gives where it leads then.
func (s *session) destine(ctx context.Context, r v3.Route, a v3.App, m mapping) ([]v3.Destination, error) {
	there := slices.IndexFunc(r.Destinations, func(d v3.Destination) bool { return m.is(a, d) })
	weighted := slices.ContainsFunc(r.Destinations, func(d v3.Destination) bool { return d.Weight != nil })
	path, ask, method := "/v3/routes/"+url.PathEscape(r.GUID)+"/destinations", v3.DestinationsChange{}, http.MethodPost
	switch {
	case *m.weight != nil:
		all, err := reweigh(r, a, m)
		if err != nil {
			return nil, err
		}
		ask.Destinations, method = all, http.MethodPatch
	case there >= 0 && *m.protocol != "" && *m.protocol != r.Destinations[there].Protocol:
		path += "/" + url.PathEscape(r.Destinations[there].GUID)
		all := slices.Clone(r.Destinations)
		err := s.api.Call(ctx, http.MethodPatch, path, v3.DestinationChange{Protocol: m.protocol}, &all[there])
		return all, err
	case there >= 0:
		s.say("The route leads to app %s already.", clean(a.Name))
		return r.Destinations, nil
	case weighted:
		return nil, usage("The destinations of this route have weights, so this one needs one too: repeat the command with --destination-weight.")
	default:
		ask.Destinations = []v3.DestinationWanted{m.wanted(a)}
	}
	var reply v3.Destinations
	err := s.api.Call(ctx, method, path, ask, &reply)
	return reply.Destinations, err
}

// reweigh is all destinations of a route when one of them gets its weight in percent: the others share the rest as they did before.
func reweigh(r v3.Route, a v3.App, m mapping) ([]v3.DestinationWanted, error) {
	var others []v3.Destination
	one, left, sum := m.wanted(a), 100-**m.weight, 0
	for _, d := range r.Destinations {
		if !m.is(a, d) {
			others = append(others, d)
		} else if one = again(d, **m.weight); *m.protocol != "" {
			one.Protocol = m.protocol
		}
	}
	if len(others) == 0 {
		one.Weight = new(100) // whatever was asked for: there is nobody to share with
	}
	all := []v3.DestinationWanted{one}
	if len(others) > left {
		return nil, usage("With a weight of %d, nothing is left for the other destinations of the route: choose a smaller one, or unmap them with proa unmap-route.", **m.weight)
	}
	for _, d := range others {
		sum += weightOf(d)
	}
	for i, d := range others { // each at least 1, and the last takes what rounding leaves
		share := left
		if i < len(others)-1 {
			share = min(max(1, (left*weightOf(d)+sum/2)/sum), left-(len(others)-1-i))
		}
		left, sum = left-share, sum-weightOf(d)
		all = append(all, again(d, share))
	}
	return all, nil
}

// weightOf counts those without a weight as equals.
func weightOf(d v3.Destination) int {
	if d.Weight == nil {
		return 1
	}
	return max(1, *d.Weight)
}

// again is a destination that there is, with another weight.
func again(d v3.Destination, weight int) v3.DestinationWanted {
	w := v3.DestinationWanted{App: d.App, Weight: &weight}
	if portOf(d) != usualPort {
		w.Port = &d.Port
	}
	if d.Protocol != "" {
		w.Protocol = &d.Protocol
	}
	return w
}

// printMapped says what a mapping has come to.
func (s *session) printMapped(a v3.App, r v3.Route) {
	own := toApp(a, []v3.Route{r})
	waits := func(d v3.Destination) bool { return d.State == v3.DestinationPending }
	switch {
	case slices.ContainsFunc(own[0].Destinations, waits):
		s.printPending(map[string]string{a.GUID: a.Name}, own)
	case a.State != "STARTED":
		s.say("\nNext: proa start %s", shell(a.Name))
	case s.reach(r) != "":
		s.say("\n%s", s.reach(r))
	}
}
