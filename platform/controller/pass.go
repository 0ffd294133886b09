package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/kube"
	"github.com/proa-dev/proa/platform/store"
)

// A picture is what a pass gathered: the cluster first and then the records, so that what is in the cluster and not in the records is
// certain to be unwanted.
type picture struct {
	full     bool // namespaces and stagings of the cluster were looked at too
	seen     []platform.Seen
	stagings []kube.Place
	spaces   []platform.Space
	wanted   []platform.Wanted
	progress []platform.Progress
	tasks    []store.Task
	routing  routing
	deaths   deaths
}

func (t *term) gather(ctx context.Context) (p picture, err error) {
	now := t.Now()
	p.full = now.Sub(t.full) >= fullEvery
	p.seen = t.watch.Seen()
	p.deaths.leaving, p.deaths.gone = t.watch.Leaving(), t.watch.Gone()
	t.blocked = stillBlocked(t.blocked, p.seen, now)
	p.deaths.blocked = t.blocked
	if p.full {
		if t.there, err = t.Cluster.Spaces(ctx); err != nil {
			return p, err
		}
		if p.stagings, err = t.Cluster.Stagings(ctx); err != nil {
			return p, err
		}
	}
	if p.spaces, err = t.Store.SpacesOf(ctx, t.ID); err != nil {
		return p, err
	}
	if p.wanted, err = t.Store.Wanted(ctx, t.ID); err != nil {
		return p, err
	}
	p.wanted, p.progress = platform.Roll(p.wanted, p.seen)
	if p.tasks, err = t.Store.Stagings(ctx, t.ID); err != nil {
		return p, err
	}
	if p.routing, err = t.gatherRoutes(ctx, p.full); err != nil {
		return p, err
	}
	if p.deaths.runs, p.deaths.exits, err = t.Store.Runs(ctx, t.ID, exitsOf(p)); err != nil {
		return p, err
	}
	if p.full {
		t.full = now
	}
	t.passed.Store(&now)
	return p, nil
}

// pass brings the cluster nearer to the records, and the records nearer to the cluster.
func (t *term) pass(ctx context.Context) error {
	p, err := t.gather(ctx)
	if err != nil {
		return fmt.Errorf("gather: %w", err)
	}
	asked := map[string]bool{} // names of all that was to be done
	t.actOnSpaces(ctx, p, asked)
	p.seen = t.actOnCrashes(ctx, p, asked)
	failed := t.actOnReleases(ctx, p, asked)
	t.actOnRoutes(ctx, p.routing, asked)
	t.actOnStagings(ctx, p, asked)
	t.delays.keep(asked)
	if err := t.record(ctx, p, failed); err != nil {
		return err
	}
	if err := t.advance(ctx, p.progress); err != nil {
		return err
	}
	if p.full && t.Now().Sub(t.swept) > sweepEvery {
		return t.sweep(ctx, p)
	}
	return nil
}

// try does one thing, unless it failed lately; then it tells how.
func (t *term) try(ctx context.Context, kind, name, reason string, do func(context.Context) error) error {
	if w, waits := t.delays.waits(name, t.Now()); waits {
		return w.err
	}
	err := do(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	w := t.delays.note(name, t.Now(), err)
	t.Metrics.step(kind, err)
	if err != nil {
		t.Log.Error("step failed", "step", name, "reason", reason, "error", err, "tries", w.tries)
		return err
	}
	t.Log.Info("step", "step", name, "reason", reason)
	return nil
}

func (t *term) actOnSpaces(ctx context.Context, p picture, asked map[string]bool) {
	var mu sync.Mutex
	group := errgroup.Group{}
	group.SetLimit(parallel)
	for _, s := range planSpaces(p.spaces, t.there, t.ensured, t.Now()) {
		kind, do := "space", func(ctx context.Context) error { return t.Cluster.ApplySpace(ctx, s.space, s.namespace) }
		if s.space == "" {
			kind, do = "delete-space", func(ctx context.Context) error { return t.Cluster.DeleteSpace(ctx, s.namespace) }
		}
		name := kind + " " + s.namespace
		asked[name] = true
		group.Go(func() error {
			if err := t.try(ctx, kind, name, s.reason, do); err == nil {
				mu.Lock()
				defer mu.Unlock()
				t.ensured[s.namespace] = t.Now()
				if s.space == "" {
					delete(t.ensured, s.namespace)
					t.there = slices.DeleteFunc(t.there, func(p kube.Place) bool { return p.Namespace == s.namespace })
				}
			}
			return nil
		})
	}
	_ = group.Wait()
}

// ensure makes certain that a namespace is what a pod needs, once for each lead: the one before may have died in the middle of it.
func (t *term) ensure(ctx context.Context, space, namespace string, asked map[string]bool) error {
	if _, known := t.ensured[namespace]; known {
		return nil
	}
	name := "space " + namespace
	asked[name] = true
	err := t.try(ctx, "space", name, "Something is to run in it.", func(ctx context.Context) error { return t.Cluster.ApplySpace(ctx, space, namespace) })
	if err == nil {
		t.ensured[namespace] = t.Now()
	}
	return err
}

// actOnReleases tells which releases could not be brought about, and why. What a release is to replace stays as long as that fails.
func (t *term) actOnReleases(ctx context.Context, p picture, asked map[string]bool) map[string]delay {
	failed, stuck := map[string]delay{}, map[string]bool{}
	process := map[string]string{}
	for _, s := range p.seen {
		process[s.Release] = s.Process
	}
	var mu sync.Mutex
	var deletes []platform.Step
	group := errgroup.Group{}
	group.SetLimit(parallel)
	for _, s := range platform.Plan(p.wanted, p.seen) {
		switch s.Kind {
		case platform.StepKeep:
			continue
		case platform.StepDelete:
			deletes = append(deletes, s)
			continue
		}
		name := s.Kind.String() + " " + s.Namespace + "/" + s.Release
		asked[name] = true
		err := t.ensure(ctx, s.Wanted.Release.SpaceGUID, s.Namespace, asked)
		group.Go(func() error {
			if err == nil {
				err = t.try(ctx, s.Kind.String(), name, s.Reason, func(ctx context.Context) error { return t.bring(ctx, s) })
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				stuck[s.Wanted.Release.ProcessGUID] = true
				failed[s.Release] = delay{since: t.since(name), err: err}
			}
			return nil
		})
	}
	_ = group.Wait()
	for _, s := range deletes {
		if stuck[process[s.Release]] {
			continue
		}
		name := s.Kind.String() + " " + s.Namespace + "/" + s.Name
		asked[name] = true
		group.Go(func() error {
			_ = t.try(ctx, s.Kind.String(), name, s.Reason, func(ctx context.Context) error { return t.Cluster.Delete(ctx, s.Namespace, s.Name) })
			return nil
		})
	}
	_ = group.Wait()
	return failed
}

func (t *term) since(name string) time.Time {
	if w, waits := t.delays.waits(name, t.Now()); waits {
		return w.since
	}
	return t.Now()
}

func (t *term) bring(ctx context.Context, s platform.Step) error {
	if s.Kind == platform.StepScale {
		return t.Cluster.Scale(ctx, s.Namespace, s.Name, s.Wanted.Instances)
	}
	return t.Cluster.Apply(ctx, *s.Wanted)
}

// record writes what was seen if it differs from what was written last; and everything every ten seconds, because records change too.
func (t *term) record(ctx context.Context, p picture, failed map[string]delay) error {
	seen := withFailures(p.seen, p.wanted, failed)
	text, err := json.Marshal(seen)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	if !p.full && string(text) == t.recorded {
		return nil
	}
	if err := t.Store.RecordSeen(ctx, t.ID, seen); err != nil {
		t.recorded = ""
		return err
	}
	t.recorded = string(text)
	return nil
}

// withFailures adds the instances that there would be if nothing had failed, with the reason.
func withFailures(seen []platform.Seen, wanted []platform.Wanted, failed map[string]delay) []platform.Seen {
	if len(failed) == 0 {
		return seen
	}
	all := make([]platform.Seen, 0, len(seen)+len(failed))
	count := map[string]int{}
	for _, s := range seen {
		count[s.Release] = max(count[s.Release], s.Count)
		all = append(all, s)
	}
	for _, w := range wanted {
		f, found := failed[w.Release.GUID]
		if !found {
			continue
		}
		missing := platform.Seen{Namespace: w.Release.Namespace, Release: w.Release.GUID, Process: w.Release.ProcessGUID, App: w.Release.AppGUID, Type: w.Release.ProcessType, Count: w.Instances}
		for index := count[w.Release.GUID]; index < w.Instances; index++ {
			missing.Instances = append(missing.Instances, platform.Instance{Index: index, State: platform.InstanceDown, Since: f.since, Details: explain(f.err)})
		}
		all = append(all, missing)
	}
	return all
}

func (t *term) sweep(ctx context.Context, p picture) error {
	keep := map[string]bool{}
	for _, s := range p.seen {
		keep[s.Release] = true
	}
	for _, w := range p.wanted {
		keep[w.Release.GUID] = true
	}
	t.swept = t.Now()
	for more, n := true, 0; more && n < logSweeps; n++ {
		var err error
		if more, err = t.Store.SweepLog(ctx, t.Now()); err != nil {
			return err
		}
	}
	return t.Cluster.Sweep(ctx, keep)
}

// logSweeps is how many portions of old log lines go in one sweep; the rest goes with the next.
const logSweeps = 20
