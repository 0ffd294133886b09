package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/kube"
)

// A crashKind is what to do about an instance that has crashed.
type crashKind int

// A crash is recorded; then what is left of the instance is buried, so that the cluster places it anew, or held until its time has come.
const (
	crashRecord crashKind = iota
	crashBury
	crashHold
	crashLetGo
)

func (k crashKind) String() string { return [...]string{"crash", "bury", "hold", "let-go"}[k] }

// A crashStep is one thing to do, and why.
type crashStep struct {
	kind      crashKind
	namespace string
	release   *platform.Release // of what is recorded
	instance  platform.Instance // its last exit is what is recorded
	up        time.Duration     // how long it had been up, if it was well
	restart   bool              // once it is recorded, it is buried or held
	reason    string
}

// name is the same for as long as the step is about the same run, whether or not another one has begun.
func (s crashStep) name() string {
	run := s.instance.Run
	if s.kind == crashRecord {
		run = s.instance.LastExit.ID
	}
	return s.kind.String() + " " + s.namespace + "/" + s.instance.Pod + " " + run
}

// actOnCrashes tells what was seen, as it is to be recorded.
func (t *term) actOnCrashes(ctx context.Context, p picture, asked map[string]bool) []platform.Seen {
	var steps []crashStep
	steps, t.due = planCrashes(p, t.Now())
	steps = inTurn(steps, t.turn)
	end := t.Now().Add(crashesFor)
	failed := make([]bool, len(steps))
	group := errgroup.Group{}
	group.SetLimit(parallel)
	for n, s := range steps {
		name := s.name()
		asked[name] = true
		if _, waits := t.delays.waits(name, t.Now()); waits {
			failed[n] = true
			continue
		}
		if t.Now().After(end) {
			failed[n], t.due = true, t.Now()
			continue
		}
		t.turn = s.namespace
		group.Go(func() error {
			failed[n] = t.try(ctx, s.kind.String(), name, s.reason, func(ctx context.Context) error { return t.takeCrashStep(ctx, s, t.delays.fails(name)) }) != nil
			return nil
		})
	}
	_ = group.Wait()
	unrecorded := map[string]bool{}
	for n, s := range steps {
		if failed[n] && s.kind == crashRecord {
			unrecorded[fmt.Sprint(s.release.GUID, " ", s.instance.Index)] = true
		}
	}
	if len(steps) > 0 {
		t.recorded = "" // recording a crash changes what was
	}
	return withCrashes(p, steps, unrecorded)
}

// inTurn lets namespaces take turns, beginning with the one that follows the last whose turn it was: none waits until another one, where
// hundreds crash, has had all of its steps.
func inTurn(steps []crashStep, last string) []crashStep {
	of := map[string][]crashStep{}
	for _, s := range steps {
		of[s.namespace] = append(of[s.namespace], s)
	}
	names := slices.Sorted(maps.Keys(of))
	first, found := slices.BinarySearch(names, last)
	if found {
		first++
	}
	names = slices.Concat(names[first:], names[:first])
	all := make([]crashStep, 0, len(steps))
	for round := 0; len(all) < len(steps); round++ {
		for _, name := range names {
			if round < len(of[name]) {
				all = append(all, of[name][round])
			}
		}
	}
	return all
}

// takeCrashStep is told whether the same has failed before: what an instance printed last is asked for twice, and then given up.
func (t *term) takeCrashStep(ctx context.Context, s crashStep, before bool) error {
	switch s.kind {
	case crashBury:
		return t.Cluster.Bury(ctx, s.namespace, s.instance)
	case crashHold:
		return t.Cluster.Hold(ctx, s.namespace, s.instance)
	case crashLetGo:
		return t.Cluster.LetGo(ctx, s.namespace, s.instance)
	}
	crash := platform.Crash{
		App: s.release.AppGUID, Process: s.release.ProcessGUID, Release: s.release.GUID,
		Index: s.instance.Index, PodUID: s.instance.PodUID, Node: s.instance.Node, Exit: *s.instance.LastExit, Up: s.up,
	}
	ask, cancel := context.WithTimeout(ctx, crashTime)
	defer cancel()
	if crash.Exit.Stopped {
		found, never, err := t.Cluster.Unhealthy(ask, s.namespace, s.instance.PodUID, crash.Exit.Time)
		if err != nil {
			return err
		}
		if found != "" {
			crash.Exit.Description = platform.Unwell(s.release.ProcessType, never, cmp.Or(s.release.Health.Timeout, kube.DefaultTimeout), found)
		}
	}
	if !crash.Exit.Moved {
		lines, err := t.Cluster.Tail(ask, *s.release, s.instance)
		if err != nil && !before && !errors.Is(err, kube.ErrPodGone) {
			return err
		}
		if err != nil {
			t.Log.Warn("the last lines of an instance are lost", "pod", s.namespace+"/"+s.instance.Pod, "error", err)
		}
		crash.Log = lines
	}
	crash, err := t.Store.RecordCrash(ctx, crash)
	switch {
	case err != nil || !s.restart:
		return err
	case crash.NextTry.After(t.Now()):
		return t.Cluster.Hold(ctx, s.namespace, s.instance)
	default:
		return t.Cluster.Bury(ctx, s.namespace, s.instance)
	}
}

// withCrashes is what is recorded of what was seen. A run that we end ourselves is not missed later; one whose end could not be recorded
// is, and stays as it was: how long it had been up is still to be counted. Those that are held tell why and until when.
func withCrashes(p picture, steps []crashStep, unrecorded map[string]bool) []platform.Seen {
	ours := map[string]bool{}
	for _, s := range steps {
		if s.kind == crashRecord && s.restart || s.kind == crashBury || s.kind == crashHold {
			ours[s.instance.PodUID] = true
		}
	}
	runs := map[seat]platform.Instance{}
	for _, r := range p.deaths.runs {
		runs[seat{release: r.Release, index: r.Instance.Index}] = r.Instance
	}
	all := slices.Clone(p.seen)
	for n := range all {
		s := &all[n]
		s.Instances = slices.Clone(s.Instances)
		for k := range s.Instances {
			i := &s.Instances[k]
			last := runs[seat{release: s.Release, index: i.Index}]
			if i.Held && last.LastExit != nil {
				i.Since, i.Details, i.NextTry = last.LastExit.Time, last.LastExit.Description, last.NextTry
			}
			switch lost := unrecorded[fmt.Sprint(s.Release, " ", i.Index)]; {
			case lost && last.Run != "":
				i.PodUID, i.Run, i.State, i.Since = last.PodUID, last.Run, last.State, last.Since
			case !lost && (i.Held || ours[i.PodUID]):
				i.PodUID, i.Run = "", ""
			}
		}
	}
	return all
}
