package controller

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/kube"
	"github.com/proa-dev/proa/platform/launch"
	"github.com/proa-dev/proa/platform/store"
)

const (
	againTime   = launch.DefaultHold // that it leaves us at the most when a container was started again in its place
	blockedTime = 30 * time.Second   // that it may be impossible to make a container: in a namespace that is new, the first try may come too early
	overdueTime = 10 * time.Second   // that a node may be late to end a pod
)

// deaths is what is known of instances that end, beside what is seen.
type deaths struct {
	leaving []kube.Leaving
	gone    map[string]platform.Instance // by uid of their pods
	runs    []store.Run
	exits   map[string]bool      // that are recorded
	blocked map[string]time.Time // since when the containers of pods could not be made, as far as we have seen
}

// stillBlocked notes since when containers cannot be made: the cluster does not tell. Whoever leads next begins to count anew.
func stillBlocked(before map[string]time.Time, seen []platform.Seen, now time.Time) map[string]time.Time {
	blocked := map[string]time.Time{}
	for _, s := range seen {
		for _, i := range s.Instances {
			if since, known := before[i.PodUID]; i.Blocked != "" && known {
				blocked[i.PodUID] = since
			} else if i.Blocked != "" {
				blocked[i.PodUID] = now
			}
		}
	}
	return blocked
}

// exitsOf are the exits that a picture may tell of.
func exitsOf(p picture) []string {
	ids := []string{}
	add := func(i platform.Instance) {
		if i.LastExit != nil {
			ids = append(ids, i.LastExit.ID)
		}
		if i.Blocked != "" {
			ids = append(ids, i.Run)
		}
	}
	for _, s := range p.seen {
		for _, i := range s.Instances {
			add(i)
		}
	}
	for _, l := range p.deaths.leaving {
		add(l.Instance)
	}
	for _, i := range p.deaths.gone {
		add(i)
	}
	return ids
}

// A seat is the place of an instance.
type seat struct {
	namespace, release string
	index              int
}

// planCrashes compares what is seen of instances with what was recorded of them. It tells when to look again at the latest.
func planCrashes(p picture, now time.Time) (steps []crashStep, due time.Time) {
	c := &crashPlan{deaths: p.deaths, now: now, runs: map[seat]store.Run{}, leaves: map[seat]platform.Instance{}, stays: map[string]bool{}}
	wanted := map[place]*platform.Wanted{}
	for i := range p.wanted {
		w := &p.wanted[i]
		wanted[place{w.Release.Namespace, w.Release.GUID}] = w
	}
	for _, r := range p.deaths.runs {
		c.runs[seat{release: r.Release, index: r.Instance.Index}] = r
	}
	for _, l := range p.deaths.leaving {
		if !l.Instance.Held {
			c.leaves[seat{l.Namespace, l.Release, l.Instance.Index}] = l.Instance
		}
	}
	for _, s := range p.seen {
		w := wanted[place{s.Namespace, s.Release}]
		if w == nil || s.Deleting {
			continue
		}
		for _, i := range s.Instances {
			if i.Index < w.Instances {
				c.instance(w, i)
			}
		}
	}
	for _, l := range p.deaths.leaving {
		c.left(l)
	}
	slices.SortStableFunc(c.steps, func(a, b crashStep) int { return cmp.Compare(a.kind, b.kind) })
	return c.steps, c.due
}

// A place is where a release runs.
type place struct{ namespace, release string }

type crashPlan struct {
	deaths
	now    time.Time
	runs   map[seat]store.Run // without a namespace: a release has one
	leaves map[seat]platform.Instance
	stays  map[string]bool // pods that are held for good reason
	steps  []crashStep
	due    time.Time
}

func (c *crashPlan) wait(until time.Time) {
	if c.due.IsZero() || until.Before(c.due) {
		c.due = until
	}
}

func (c *crashPlan) add(kind crashKind, namespace string, i platform.Instance, reason string) {
	c.steps = append(c.steps, crashStep{kind: kind, namespace: namespace, instance: i, reason: reason})
}

// record is about the last exit of an instance. Its time up counts from the start of its container if it has been well since, and not at
// all if it never was.
func (c *crashPlan) record(w *platform.Wanted, i platform.Instance, restart bool, reason string) {
	step := crashStep{kind: crashRecord, namespace: w.Release.Namespace, release: &w.Release, instance: i, restart: restart, reason: reason}
	if r := c.runs[seat{release: w.Release.GUID, index: i.Index}].Instance; r.Run == i.LastExit.ID && r.State == platform.InstanceRunning {
		step.up = i.LastExit.Time.Sub(r.Since)
	}
	c.steps = append(c.steps, step)
}

// instance decides about one instance that there should be.
func (c *crashPlan) instance(w *platform.Wanted, i platform.Instance) {
	at := seat{w.Release.Namespace, w.Release.GUID, i.Index}
	last := c.runs[seat{release: at.release, index: at.index}]
	if known := last.Instance; known.Run != "" && !last.Ended { // those that went because there were to be fewer are not known any more
		leaves := c.leaves[at]
		switch {
		case leaves.PodUID == known.PodUID:
			if leaves.LastExit != nil && !c.exits[leaves.LastExit.ID] {
				c.record(w, leaves, false, "Its pod is being deleted, and nobody has asked us for that.")
			}
		case known.PodUID != i.PodUID:
			c.missing(w, known)
		case known.Run != i.Run && known.Run != i.PodUID+"/" && i.LastExit != nil && i.LastExit.ID != known.Run:
			known.LastExit = &platform.Exit{ID: known.Run, Time: i.Since, Description: platform.Unseen(w.Release.ProcessType)}
			c.record(w, known, false, "Another run of its pod is there.")
		}
	}
	switch {
	case i.Held:
		c.held(i, last)
	case i.LastExit != nil && !c.exits[i.LastExit.ID]:
		c.record(w, i, c.dead(i), "It has ended.")
	case i.LastExit != nil && c.dead(i):
		c.restart(w, i, last)
	case i.Blocked != "" && c.exits[i.Run]:
		c.restart(w, i, last)
	case i.Blocked != "":
		if patience := c.blocked[i.PodUID].Add(blockedTime); patience.After(c.now) {
			c.wait(patience)
			return
		}
		i.LastExit = &platform.Exit{ID: i.Run, Time: c.now, Description: i.Blocked}
		c.record(w, i, true, "Its container cannot be made.")
	}
}

// missing is a run that was recorded, and is not there any more.
func (c *crashPlan) missing(w *platform.Wanted, known platform.Instance) {
	known.LastExit = &platform.Exit{ID: known.Run, Time: c.now, Description: platform.Deleted(w.Release.ProcessType), Moved: true}
	if seen, found := c.gone[known.PodUID]; found {
		known.LastExit.ID = seen.Run
		if seen.LastExit != nil && seen.LastExit.ID == seen.Run {
			last := *seen.LastExit
			last.Moved, known.LastExit = true, &last
		}
		if c.exits[known.LastExit.ID] {
			return
		}
	}
	c.record(w, known, false, "Its pod is gone, and nobody has asked us for that.")
}

// dead tells whether an instance does not run, or has been started again in its place so lately that launch waits for us. One that runs
// again is left alone: nobody was here when it ended.
func (c *crashPlan) dead(i platform.Instance) bool {
	return !i.LastExit.Moved && (i.State == platform.InstanceCrashed || c.now.Sub(i.Since) < againTime)
}

// restart is for an instance whose exit is recorded, and that is still there.
func (c *crashPlan) restart(w *platform.Wanted, i platform.Instance, last store.Run) {
	if last.LastPod == i.PodUID && last.Instance.NextTry.After(c.now) {
		c.add(crashHold, w.Release.Namespace, i, fmt.Sprintf("It has crashed %d times, and waits until it is started again.", last.Instance.Crashes))
		return
	}
	c.add(crashBury, w.Release.Namespace, i, "It has crashed, and is to be started again.")
}

// held keeps an instance as long as it has to wait. What the records do not know is not kept.
func (c *crashPlan) held(i platform.Instance, last store.Run) {
	if last.LastPod == i.PodUID && last.Instance.NextTry.After(c.now) {
		c.stays[i.PodUID] = true
		c.wait(last.Instance.NextTry)
	}
}

// left decides about a pod that was told to go: nothing may hang.
func (c *crashPlan) left(l kube.Leaving) {
	switch late := l.Due.Add(overdueTime); {
	case l.Instance.Held && !c.stays[l.Instance.PodUID]:
		c.add(crashLetGo, l.Namespace, l.Instance, "It is to be started again, or is no longer wanted.")
	case l.Instance.Held:
	case late.After(c.now):
		c.wait(late)
	default:
		c.add(crashBury, l.Namespace, l.Instance, "It should have gone by now: its node does not answer.")
	}
}
