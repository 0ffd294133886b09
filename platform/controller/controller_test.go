package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/bits"
	"github.com/proa-dev/proa/platform/kube"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestPlanSpaces(t *testing.T) {
	space := func(guid string) platform.Space { return platform.Space{GUID: guid} }
	place := func(name string) kube.Place { return kube.Place{Namespace: "space-" + name} }
	for name, c := range map[string]struct {
		spaces []platform.Space
		there  []kube.Place
		known  map[string]time.Time
		want   []string
	}{
		"missing":       {spaces: []platform.Space{space("a")}, want: []string{"+space-a"}},
		"made just now": {spaces: []platform.Space{space("a")}, known: map[string]time.Time{"space-a": now.Add(-time.Second)}},
		"gone since":    {spaces: []platform.Space{space("a")}, known: map[string]time.Time{"space-a": now.Add(-time.Minute)}, want: []string{"+space-a"}},
		"never looked at": {spaces: []platform.Space{space("a"), space("b")}, there: []kube.Place{place("a"), place("b")},
			known: map[string]time.Time{"space-b": now.Add(-time.Minute)}, want: []string{"+space-a"}},
		"unwanted": {there: []kube.Place{place("a"), {Namespace: "space-b", Deleting: true}}, want: []string{"-space-a"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range planSpaces(c.spaces, c.there, c.known, now) {
				sign := "+"
				if s.space == "" {
					sign = "-"
				}
				if got = append(got, sign+s.namespace); s.reason == "" {
					t.Errorf("%s has no reason", s.namespace)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	var many []platform.Space
	var there []kube.Place
	for range 1000 {
		guid := platform.NewGUID()
		many, there = append(many, space(guid)), append(there, place(guid))
	}
	if n := len(planSpaces(many, there, nil, now)); n != healAtOnce {
		t.Errorf("%d spaces are gone through at once", n)
	}
}

func TestResolve(t *testing.T) {
	builder := bits.Builder{Buildpacks: []bits.Buildpack{{ID: "proa/go", Version: "1.0"}, {ID: "proa/go", Version: "1.1"}, {ID: "proa/java", Version: "2.0"}}}
	for asked, want := range map[string]string{
		"":                        "",
		"proa/go":                 "proa/go@1.1",
		"proa/go@1.0":             "proa/go@1.0",
		"proa/java,proa/go":       "proa/java@2.0,proa/go@1.1",
		"proa/go@3":               `StagingError - The builder has no buildpack "proa/go@3". It has: proa/go@1.0, proa/go@1.1, proa/java@2.0.`,
		"java_buildpack":          `has no buildpack "java_buildpack"`,
		"docker://proa/go":        "+proa/go",
		"registry.example.org/go": "+registry.example.org/go",
		"localhost:5000/go":       "+localhost:5000/go",
		"other/go@sha256:0000":    "+other/go@sha256:0000",
		"proa/java,a.b/c,proa/go": "proa/java@2.0,,proa/go@1.1+a.b/c",
		"https://github.com/x/y":  "neither an image nor one of the builder's",
	} {
		var names []string
		if asked != "" {
			names = strings.Split(asked, ",")
		}
		found, images, failure := resolve(builder, names)
		got := strings.Join(found, ",")
		for _, image := range images {
			got += "+" + image
		}
		if failure != nil {
			got = failure.String()
		}
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%q is %q, want %q", asked, got, want)
		}
	}
}

func TestDelays(t *testing.T) {
	var d delays
	at, broken := now, errors.New("broken")
	for n, seconds := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		wait := time.Duration(seconds) * time.Second
		if _, waits := d.waits("a", at); waits {
			t.Errorf("it is not due after try %d", n)
		}
		w := d.note("a", at, broken)
		if got := w.until.Sub(at); got < wait*4/5 || got > wait*6/5 || w.since != now {
			t.Errorf("after try %d it waits %s since %s", n, got, w.since)
		}
		if first, _ := d.next(); first != w.until {
			t.Errorf("the next is %s", first)
		}
		if w, waits := d.waits("a", at.Add(wait/2)); !waits || !errors.Is(w.err, broken) {
			t.Error("it does not wait")
		}
		at = w.until
	}
	d.note("b", at, broken)
	d.note("a", at, nil)
	if _, any := d.next(); !any {
		t.Error("b is forgotten")
	}
	d.keep(nil)
	if _, any := d.next(); any {
		t.Error("b is remembered")
	}
}

func TestWithFailures(t *testing.T) {
	release := func(guid string) platform.Release { return platform.Release{GUID: guid, ProcessGUID: "p-" + guid} }
	seen := []platform.Seen{{Release: "scaled", Process: "p-scaled", Count: 1, Instances: []platform.Instance{{State: platform.InstanceRunning}}}}
	all := withFailures(seen, []platform.Wanted{{Release: release("scaled"), Instances: 3}, {Release: release("new"), Instances: 1}, {Release: release("fine"), Instances: 1}}, map[string]delay{
		"scaled": {since: now, err: errors.New("secret")}, "new": {since: now, err: fault.Unprocessable("Give it less memory.")},
	})
	var got []string
	for _, s := range all {
		for _, i := range s.Instances {
			got = append(got, s.Process+" "+string(rune('0'+i.Index))+" "+string(i.State)+" "+i.Details)
		}
	}
	ours := "The platform could not start this instance, and tries again. If it stays so, tell your operator."
	want := []string{"p-scaled 0 RUNNING ", "p-scaled 1 DOWN " + ours, "p-scaled 2 DOWN " + ours, "p-new 0 DOWN Give it less memory."}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestClean(t *testing.T) {
	for text, want := range map[string]string{"plain": "plain", "a\xffb\x00c": "a\uFFFDb\uFFFDc", strings.Repeat("x", maxText+1): strings.Repeat("x", maxText) + " … (cut)"} {
		if got := clean(text); got != want {
			t.Errorf("%.20q is %.40q", text, got)
		}
	}
}

func TestTryWaitsForCancelledSteps(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := &term{Controller: &Controller{Now: func() time.Time { return now }}}
	if err := c.try(ctx, "x", "x", "", func(context.Context) error { return errors.New("because we stop") }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, any := c.delays.next(); any {
		t.Error("a step that was cancelled counts as failed")
	}
}

// A pass that did not look at routes leaves the hint to the next one; acting on them answers it.
func TestHintIsAnsweredByActing(t *testing.T) {
	c := &term{Controller: &Controller{Now: func() time.Time { return now }}, hinted: true}
	for _, looked := range []bool{false, true} {
		c.actOnRoutes(t.Context(), routing{looked: looked}, map[string]bool{})
		if c.hinted == looked {
			t.Errorf("routes looked at: %v, the hint is left: %v", looked, c.hinted)
		}
	}
}
