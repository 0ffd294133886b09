package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/kube"
	"github.com/proa-dev/proa/platform/store"
)

// TestPlanCrashes says of one instance what is seen and what is recorded, and what is to be done then.
func TestPlanCrashes(t *testing.T) {
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	exit := func(id string) *platform.Exit {
		return &platform.Exit{ID: id, Time: ago(time.Second), Description: "ended " + id}
	}
	moved := &platform.Exit{ID: "a/1", Description: "deleted", Moved: true}
	crashed := platform.Instance{PodUID: "a", Run: "a/1", State: platform.InstanceCrashed, Since: ago(time.Second), LastExit: exit("a/1")}
	runs := platform.Instance{PodUID: "a", Run: "a/1", State: platform.InstanceRunning, Since: ago(10 * time.Minute)}
	again := func(since time.Duration) platform.Instance { // started again in its place
		return platform.Instance{PodUID: "a", Run: "a/2", State: platform.InstanceStarting, Since: ago(since), LastExit: exit("a/1")}
	}
	held := platform.Instance{PodUID: "a", Run: "a/2", State: platform.InstanceCrashed, Held: true, LastExit: exit("a/2")}
	blocked := platform.Instance{PodUID: "a", Run: "a/", State: platform.InstanceDown, Since: ago(time.Minute), Blocked: "no image"}
	since := func(d time.Duration) map[string]time.Time { return map[string]time.Time{"a": ago(d)} }
	leaving := func(i platform.Instance, due time.Time) []kube.Leaving {
		return []kube.Leaving{{Namespace: "n", Release: "r", Due: due, Instance: i}}
	}
	goes := runs
	goes.LastExit = moved
	known := func(i platform.Instance) []store.Run { return []store.Run{{Release: "r", Instance: i}} }
	waits := func(next time.Time) []store.Run {
		return []store.Run{{Release: "r", LastPod: "a", Instance: platform.Instance{NextTry: next, Crashes: 4, LastExit: exit("a/1")}}}
	}

	for name, c := range map[string]struct {
		seen     platform.Instance
		deaths   deaths
		unwanted bool
		deleting bool
		wanted   int // 1 when zero
		want     []string
		due      time.Time
	}{
		"runs":              {seen: runs, deaths: deaths{runs: known(runs)}},
		"new":               {seen: runs},
		"ended":             {seen: crashed, deaths: deaths{runs: known(runs)}, want: []string{"crash ended a/1 and restart, up 9m59s"}},
		"ended, unknown":    {seen: crashed, want: []string{"crash ended a/1 and restart, up 0s"}},
		"ended, recorded":   {seen: crashed, deaths: deaths{exits: map[string]bool{"a/1": true}, runs: waits(time.Time{})}, want: []string{"bury a"}},
		"ended, must wait":  {seen: crashed, deaths: deaths{exits: map[string]bool{"a/1": true}, runs: waits(now.Add(time.Second))}, want: []string{"hold a"}},
		"ended, has waited": {seen: crashed, deaths: deaths{exits: map[string]bool{"a/1": true}, runs: waits(now)}, want: []string{"bury a"}},
		"again":             {seen: again(9 * time.Second), want: []string{"crash ended a/1 and restart, up 0s"}},
		"again, recorded":   {seen: again(9 * time.Second), deaths: deaths{exits: map[string]bool{"a/1": true}}, want: []string{"bury a"}},
		"again for long":    {seen: again(time.Minute), want: []string{"crash ended a/1, up 0s"}},
		"left alone":        {seen: again(time.Minute), deaths: deaths{exits: map[string]bool{"a/1": true}}},
		"twice, unseen": {seen: platform.Instance{PodUID: "a", Run: "a/3", State: platform.InstanceRunning, Since: ago(time.Minute), LastExit: exit("a/2")}, deaths: deaths{runs: known(runs)},
			want: []string{"crash APP/PROC/WEB: Exited, and was started again before the platform could see how, up 9m0s", "crash ended a/2, up 0s"}},
		"first container":    {seen: runs, deaths: deaths{runs: known(platform.Instance{PodUID: "a", Run: "a/"})}},
		"unwanted":           {seen: crashed, unwanted: true},
		"being deleted":      {seen: crashed, deleting: true},
		"one too many":       {seen: crashed, wanted: -1},
		"gone":               {seen: platform.Instance{PodUID: "b", Run: "b/"}, deaths: deaths{runs: known(runs)}, want: []string{"crash APP/PROC/WEB: The instance was deleted from its node, up 10m0s"}},
		"gone, none yet":     {seen: platform.Instance{}, deaths: deaths{runs: known(runs)}, want: []string{"crash APP/PROC/WEB: The instance was deleted from its node, up 10m0s"}},
		"gone, as last seen": {seen: platform.Instance{}, deaths: deaths{runs: known(runs), gone: map[string]platform.Instance{"a": crashed}}, want: []string{"crash ended a/1, up 9m59s"}},
		"gone, recorded":     {seen: platform.Instance{}, deaths: deaths{runs: []store.Run{{Release: "r", Instance: runs, Ended: true}}}},
		"gone, recorded under its last name": {seen: platform.Instance{}, deaths: deaths{runs: known(platform.Instance{PodUID: "a", Run: "a/"}), gone: map[string]platform.Instance{"a": crashed},
			exits: map[string]bool{"a/1": true}}},
		"leaves":           {seen: platform.Instance{}, deaths: deaths{runs: known(runs), leaving: leaving(goes, now.Add(time.Minute))}, want: []string{"crash deleted, up 0s"}, due: now.Add(time.Minute + overdueTime)},
		"leaves, recorded": {seen: platform.Instance{}, deaths: deaths{runs: known(runs), leaving: leaving(goes, now), exits: map[string]bool{"a/1": true}}, due: now.Add(overdueTime)},
		"leaves, as we asked before there were to be more": {seen: platform.Instance{}, deaths: deaths{leaving: leaving(goes, now)}, due: now.Add(overdueTime)},
		"overdue":           {seen: platform.Instance{}, deaths: deaths{leaving: leaving(goes, ago(overdueTime))}, want: []string{"bury a"}},
		"overdue, unwanted": {unwanted: true, deaths: deaths{leaving: leaving(goes, ago(overdueTime))}, want: []string{"bury a"}},
		"held":              {seen: held, deaths: deaths{leaving: leaving(held, now), runs: waits(now.Add(time.Minute))}, due: now.Add(time.Minute)},
		"held long enough":  {seen: held, deaths: deaths{leaving: leaving(held, now), runs: waits(now)}, want: []string{"let-go a"}},
		"held, unknown":     {seen: held, deaths: deaths{leaving: leaving(held, now)}, want: []string{"let-go a"}},
		"held, another one": {seen: held, deaths: deaths{leaving: leaving(held, now), runs: []store.Run{{Release: "r", LastPod: "b", Instance: platform.Instance{NextTry: now.Add(time.Minute)}}}}, want: []string{"let-go a"}},
		"held, unwanted":    {seen: held, unwanted: true, deaths: deaths{leaving: leaving(held, now), runs: waits(now.Add(time.Minute))}, want: []string{"let-go a"}},
		"held, deleting":    {seen: held, deleting: true, deaths: deaths{leaving: leaving(held, now), runs: waits(now.Add(time.Minute))}, want: []string{"let-go a"}},
		"held, too many":    {seen: held, wanted: -1, deaths: deaths{leaving: leaving(held, now), runs: waits(now.Add(time.Minute))}, want: []string{"let-go a"}},
		"blocked, new":      {seen: blocked, deaths: deaths{blocked: since(29 * time.Second)}, due: now.Add(time.Second)},
		"blocked":           {seen: blocked, deaths: deaths{blocked: since(30 * time.Second)}, want: []string{"crash no image and restart, up 0s"}},
		"blocked, recorded": {seen: blocked, deaths: deaths{blocked: since(time.Minute), exits: map[string]bool{"a/": true}, runs: waits(now.Add(time.Second))}, want: []string{"hold a"}},
		"evicted": {seen: platform.Instance{PodUID: "a", Run: "a/1", State: platform.InstanceCrashed, LastExit: moved}, deaths: deaths{runs: known(runs)},
			want: []string{"crash deleted, up 0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := platform.Wanted{Instances: 1 + c.wanted, Release: platform.Release{GUID: "r", Namespace: "n", ProcessType: "web"}}
			p := picture{seen: []platform.Seen{{Namespace: "n", Release: "r", Count: 1, Deleting: c.deleting, Instances: []platform.Instance{c.seen}}}, deaths: c.deaths}
			if !c.unwanted {
				p.wanted = []platform.Wanted{wanted}
			}
			steps, due := planCrashes(p, now)
			var got []string
			for _, s := range steps {
				text := s.kind.String() + " " + s.instance.PodUID
				if s.kind == crashRecord {
					text = s.kind.String() + " " + s.instance.LastExit.Description
					if s.restart {
						text += " and restart"
					}
					text += fmt.Sprintf(", up %s", max(s.up, 0))
				}
				if got = append(got, text); s.reason == "" || s.namespace != "n" {
					t.Errorf("%s has no reason or no namespace", text)
				}
			}
			if !slices.Equal(got, c.want) || !due.Equal(c.due) {
				t.Errorf("got %q until %s, want %q until %s", got, due, c.want, c.due)
			}
		})
	}
}

func TestStillBlocked(t *testing.T) {
	seen := func(pod, blocked string) []platform.Seen {
		return []platform.Seen{{Instances: []platform.Instance{{PodUID: pod, Blocked: blocked}}}}
	}
	first := stillBlocked(nil, seen("a", "no image"), now)
	if later := stillBlocked(first, seen("a", "still none"), now.Add(time.Second)); !later["a"].Equal(now) {
		t.Errorf("it is blocked since %s", later["a"])
	}
	for _, other := range [][]platform.Seen{seen("a", ""), seen("b", "")} {
		if left := stillBlocked(first, other, now); len(left) > 0 {
			t.Errorf("still blocked: %v", left)
		}
	}
}

// TestWithCrashes keeps the run that was seen last for as long as its end is not recorded, and forgets it when we end it.
func TestWithCrashes(t *testing.T) {
	release := &platform.Release{GUID: "r"}
	seen := func(i platform.Instance) picture {
		return picture{seen: []platform.Seen{{Release: "r", Instances: []platform.Instance{i}}}, deaths: deaths{runs: []store.Run{{Release: "r", Instance: platform.Instance{
			PodUID: "a", Run: "a/1", State: platform.InstanceRunning, Since: now.Add(-time.Hour), NextTry: now, LastExit: &platform.Exit{Time: now, Description: "ended"}}}}}}
	}
	pod := func(uid string) platform.Instance {
		return platform.Instance{PodUID: uid, Run: uid + "/1", State: platform.InstanceCrashed, Since: now}
	}
	for name, c := range map[string]struct {
		seen platform.Instance
		step crashStep
		lost bool
		want string
	}{
		"as it is":       {seen: pod("a"), want: "a/1"},
		"buried":         {seen: pod("a"), step: crashStep{kind: crashBury, instance: pod("a")}},
		"recorded":       {seen: pod("a"), step: crashStep{kind: crashRecord, instance: pod("a"), release: release, restart: true}},
		"gone, recorded": {seen: pod("b"), step: crashStep{kind: crashRecord, instance: pod("a"), release: release}, want: "b/1"},
		"ended, and not": {seen: pod("a"), step: crashStep{kind: crashRecord, instance: pod("a"), release: release, restart: true}, lost: true, want: "a/1"},
		"gone, and not":  {seen: pod("b"), step: crashStep{kind: crashRecord, instance: pod("a"), release: release}, lost: true, want: "a/1"},
		"held":           {seen: platform.Instance{PodUID: "a", Run: "a/2", Held: true}},
	} {
		p := seen(c.seen)
		got := withCrashes(p, []crashStep{c.step}, map[string]bool{"r 0": c.lost})[0].Instances[0]
		if got.Run != c.want {
			t.Errorf("%s: the run is %q, want %q", name, got.Run, c.want)
		}
		if upAsBefore := got.State == platform.InstanceRunning && got.Since.Equal(now.Add(-time.Hour)); upAsBefore != c.lost {
			t.Errorf("%s: it is %s since %s", name, got.State, got.Since)
		}
		if c.seen.Held && (got.Details != "ended" || !got.NextTry.Equal(now) || !got.Since.Equal(now)) {
			t.Errorf("%s: %+v", name, got)
		}
		if p.seen[0].Instances[0].Run != c.seen.Run {
			t.Errorf("%s: what was seen has changed", name)
		}
	}
}

func TestInTurn(t *testing.T) {
	var steps []crashStep
	for _, name := range []string{"b1", "b2", "b3", "a1", "c1", "c2"} {
		steps = append(steps, crashStep{namespace: name[:1], reason: name})
	}
	for last, want := range map[string]string{"": "a1 b1 c1 b2 c2 b3", "a": "b1 c1 a1 b2 c2 b3", "b": "c1 a1 b1 c2 b2 b3", "bb": "c1 a1 b1 c2 b2 b3", "c": "a1 b1 c1 b2 c2 b3"} {
		var got []string
		for _, s := range inTurn(steps, last) {
			got = append(got, s.reason)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("after %q come %v, want %s", last, got, want)
		}
	}
	if got := inTurn(nil, "a"); len(got) > 0 {
		t.Errorf("%v", got)
	}
}
