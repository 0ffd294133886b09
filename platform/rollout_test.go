package platform_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/proa-dev/proa/platform"
)

// side reads "rr.": three instances, of which the first two are ready.
func side(text string) platform.Side {
	s := platform.Side{Count: len(text)}
	for _, c := range text {
		s.Ready = append(s.Ready, c == 'r')
	}
	return s
}

func TestRolloutNext(t *testing.T) {
	for name, c := range map[string]struct {
		wanted, inFlight int
		target           int // 0: all
		fresh            string
		old              []string
		next             string
		reached          bool
	}{
		"one instance begins":                        {1, 1, 0, "", []string{"r"}, "1 [1]", false},
		"one instance starts":                        {1, 1, 0, ".", []string{"r"}, "1 [1]", false},
		"one instance is ready":                      {1, 1, 0, "r", []string{"r"}, "1 [0]", true},
		"two begin":                                  {2, 1, 0, "", []string{"rr"}, "1 [2]", false},
		"the first of two is ready: an old one goes": {2, 1, 0, "r", []string{"rr"}, "1 [1]", false},
		"and then the second comes":                  {2, 1, 0, "r", []string{"r"}, "2 [1]", false},
		"the second starts":                          {2, 1, 0, "r.", []string{"r"}, "2 [1]", false},
		"both are ready":                             {2, 1, 0, "rr", []string{"r"}, "2 [0]", true},
		"three at a time":                            {10, 3, 0, "rr.", []string{"rrrrrrrr"}, "5 [8]", false},
		"more at a time than there are":              {2, 5, 0, "", []string{"rr"}, "2 [2]", false},
		"old ones that never were well hold up none": {2, 1, 0, "r", []string{".."}, "1 [1]", false},
		"a ready one above a hole stays":             {2, 1, 0, "r", []string{".r"}, "2 [2]", false},
		"and goes when it is not needed":             {2, 1, 0, "rr", []string{".r"}, "2 [0]", true},
		"what the old lost it does not get back":     {3, 1, 0, "", []string{"r"}, "2 [1]", false},
		"new ones fail":                              {3, 1, 0, "...", []string{"r"}, "3 [1]", false},
		"the old are gone":                           {3, 1, 0, "", nil, "3 []", false},
		"the newest gives way first":                 {3, 1, 0, "r", []string{"r", "rrr"}, "1 [0 2]", false},
		"but not what is needed":                     {3, 1, 0, "r", []string{"r", "r.."}, "1 [1 1]", false},
		"scaled up: the new fill in at once":         {6, 1, 0, "r", []string{"r"}, "5 [1]", false},
		"scaled down":                                {2, 1, 0, "rrr", []string{"rrr"}, "2 [0]", true},
		"scaled down: what was begun too many goes":  {2, 1, 0, "....", []string{"rr"}, "1 [2]", false},
		"scaled to none":                             {0, 1, 0, "r", []string{"rr"}, "0 [0]", true},
		"a canary begins":                            {4, 2, 1, "", []string{"rrrr"}, "1 [4]", false},
		"a canary waits":                             {4, 2, 1, "r", []string{"rrrr"}, "1 [3]", true},
		"a canary of one leaves the old one":         {1, 1, 1, "r", []string{"r"}, "1 [1]", true},
		"a canary of all leaves one":                 {3, 1, 3, "rrr", []string{"rr"}, "3 [1]", true},
		"a canary is scaled up":                      {6, 1, 2, "rr", []string{"rr"}, "4 [2]", true},
		"a canary is scaled down":                    {2, 1, 1, "rrr", []string{"rrr"}, "2 [1]", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := platform.Rollout{Wanted: c.wanted, InFlight: c.inFlight, Target: c.target, Canary: c.target > 0, New: side(c.fresh)}
			if !r.Canary {
				r.Target = r.Wanted
			}
			for _, text := range c.old {
				r.Old = append(r.Old, side(text))
			}
			fresh, old := r.Next()
			if got := fmt.Sprint(fresh, " ", old); got != c.next || r.Reached() != c.reached {
				t.Errorf("next is %s, reached %v; want %s, %v", got, r.Reached(), c.next, c.reached)
			}
		})
	}
}

// A toyCluster is what a cluster does with counts: it ends the highest instances, and starts what is missing.
type toyCluster struct {
	random   *rand.Rand
	wanted   int
	inFlight int
	sides    [][]bool // the release that is to run first, then the older ones; ready by index
	moment   int      // how many there could be in the last step, if what is new came before anything went
}

func (c *toyCluster) rollout(target int, canary bool) platform.Rollout {
	r := platform.Rollout{Wanted: c.wanted, InFlight: c.inFlight, Target: target, Canary: canary}
	for i, s := range c.sides {
		one := platform.Side{Count: len(s), Ready: slices.Clone(s)}
		if i == 0 {
			r.New = one
		} else {
			r.Old = append(r.Old, one)
		}
	}
	return r
}

func (c *toyCluster) scale(i, n int) {
	for len(c.sides[i]) < n {
		c.sides[i] = append(c.sides[i], false)
	}
	c.sides[i] = c.sides[i][:n]
}

func (c *toyCluster) ready() int {
	n := 0
	for _, s := range c.sides {
		n += len(slices.DeleteFunc(slices.Clone(s), func(ready bool) bool { return !ready }))
	}
	return n
}

func (c *toyCluster) count() int {
	n := 0
	for _, s := range c.sides {
		n += len(s)
	}
	return n
}

// holes counts instances that are not ready and cannot be ended before one that is.
func (c *toyCluster) holes() int {
	n := 0
	for _, s := range c.sides {
		for i, ready := range s {
			if !ready && slices.Contains(s[i:], true) {
				n++
			}
		}
	}
	return n
}

// each lets some instances become ready, or no longer ready.
func (c *toyCluster) each(chance float64, ready bool) {
	for _, s := range c.sides {
		for i := range s {
			if s[i] != ready && c.random.Float64() < chance {
				s[i] = ready
			}
		}
	}
}

func (c *toyCluster) String() string {
	var all []string
	for _, s := range c.sides {
		all = append(all, fmt.Sprint(s))
	}
	return fmt.Sprintf("%d wanted, %d at a time: %s", c.wanted, c.inFlight, strings.Join(all, " "))
}

// take takes one step, and holds it against what no step may do.
func (c *toyCluster) take(t *testing.T, target int, canary bool) (reached bool) {
	t.Helper()
	c.scale(0, min(len(c.sides[0]), c.wanted)) // fewer were asked for: that is nobody's fault
	before, ready, count := c.String(), c.ready(), c.count()
	r := c.rollout(target, canary)
	fresh, old := r.Next()
	c.moment = count + max(0, fresh-len(c.sides[0]))
	c.scale(0, fresh)
	for i, n := range old {
		if n > len(c.sides[i+1]) {
			t.Fatalf("%s: an old release is raised to %d", before, n)
		}
		c.scale(i+1, n)
	}
	if now := c.ready(); now < min(c.wanted, ready) {
		t.Fatalf("%s: %d were ready, and %d are left: %s", before, ready, now, c)
	}
	if now := c.count(); now > count && now > c.wanted+c.inFlight+c.holes() {
		t.Fatalf("%s: now there are %d: %s", before, now, c)
	}
	if again, _ := c.rollout(target, canary).Next(); again < fresh {
		t.Fatalf("%s: %d are begun, and %d of them at once given up", before, fresh, fresh-again)
	}
	return r.Reached()
}

// ends lets everything become well, and takes steps until all is new.
func (c *toyCluster) ends(t *testing.T) {
	t.Helper()
	for range 10 * (c.wanted + 10) {
		if c.take(t, c.wanted, false) {
			if c.count() != c.wanted {
				t.Fatalf("at the end there is %s", c)
			}
			return
		}
		c.each(0.5, true)
	}
	t.Fatalf("it does not end: %s", c)
}

// A rollout of an app that is well, whose new instances become ready in any order: at no time are fewer than all ready, or more than
// all and those in flight there.
func TestRolloutOfWellApp(t *testing.T) {
	for seed := range uint64(3000) {
		c := &toyCluster{random: rand.New(rand.NewPCG(seed, 1)), inFlight: 1, wanted: 1}
		c.wanted += c.random.IntN(9)
		c.inFlight += c.random.IntN(4)
		c.sides = [][]bool{nil, slices.Repeat([]bool{true}, c.wanted)}
		most := c.wanted + c.inFlight
		canary := c.random.IntN(2) == 0
		target := c.wanted
		if canary {
			target = 1 + c.random.IntN(c.wanted)
		}
		for range 10 * (c.wanted + 10) {
			reached := c.take(t, target, canary)
			if c.ready() < c.wanted || c.count() > most || c.moment > most {
				t.Fatalf("seed %d: %s", seed, c)
			}
			if canary && len(c.sides[0]) > target {
				t.Fatalf("seed %d: more than %d new ones: %s", seed, target, c)
			}
			if reached && canary {
				canary, target = false, c.wanted
			} else if reached {
				break
			}
			c.each(0.4, true)
		}
		if c.count() != c.wanted || len(c.sides[0]) != c.wanted {
			t.Fatalf("seed %d: it has not ended: %s", seed, c)
		}
	}
}

// Rollouts that are scaled, canceled and superseded while instances come and go: no step makes it worse, and in the end all is new.
func TestRolloutOfAnything(t *testing.T) {
	for seed := range uint64(3000) {
		c := &toyCluster{random: rand.New(rand.NewPCG(seed, 2)), wanted: 1, inFlight: 1}
		c.wanted += c.random.IntN(6)
		c.inFlight += c.random.IntN(3)
		c.sides = [][]bool{nil, make([]bool, c.wanted)}
		c.each(0.8, true)
		for range 40 {
			canary, target := c.random.IntN(3) == 0, c.wanted
			if canary {
				target = min(c.wanted, 1)
			}
			c.take(t, target, canary)
			switch c.random.IntN(12) {
			case 0:
				c.wanted = c.random.IntN(8)
			case 1: // superseded
				c.sides = append([][]bool{nil}, c.sides...)
			case 2: // canceled
				if len(c.sides) > 1 {
					c.sides[0], c.sides[1] = c.sides[1], c.sides[0]
				}
			case 3: // somebody deletes an old one
				if len(c.sides) > 1 {
					c.sides[1] = nil
				}
			case 4:
				c.each(0.3, false)
			default:
				c.each(0.4, true)
			}
		}
		c.ends(t)
	}
}

func TestRoll(t *testing.T) {
	d := &platform.Deployment{GUID: "d", Strategy: platform.Rolling, Value: platform.DeploymentActive, Reason: platform.Deploying, MaxInFlight: 1}
	want := func(release, process string, version, instances int) platform.Wanted {
		return platform.Wanted{Release: platform.Release{GUID: release, ProcessGUID: process, Namespace: "n", Version: version}, Instances: instances}
	}
	web := func(w platform.Wanted) platform.Wanted { w.Release.ProcessType = platform.WebProcess; return w }
	rolls := func(w platform.Wanted, draining bool) platform.Wanted {
		w.Deployment, w.Draining = d, draining
		return w
	}
	has := func(release, ready string) platform.Seen {
		s := platform.Seen{Namespace: "n", Name: "r-" + release, Release: release, Count: len(ready)}
		for i, c := range ready {
			s.Instances = append(s.Instances, platform.Instance{Index: i, Ready: c == 'r'})
		}
		return s
	}
	deleting := func(s platform.Seen) platform.Seen { s.Deleting = true; return s }
	for name, c := range map[string]struct {
		wanted []platform.Wanted
		seen   []platform.Seen
		want   string
	}{
		"no deployment":              {[]platform.Wanted{want("a", "p", 1, 3)}, nil, "a:3"},
		"begins":                     {[]platform.Wanted{rolls(want("a", "p", 1, 2), true), rolls(want("b", "p", 2, 2), false)}, []platform.Seen{has("a", "rr")}, "a:2 b:1; d reached false with 0"},
		"goes on":                    {[]platform.Wanted{rolls(want("a", "p", 1, 2), true), rolls(want("b", "p", 2, 2), false)}, []platform.Seen{has("a", "rr"), has("b", "r")}, "a:1 b:1; d reached false with 1"},
		"ends":                       {[]platform.Wanted{rolls(want("a", "p", 1, 2), true), rolls(want("b", "p", 2, 2), false)}, []platform.Seen{has("a", "r"), has("b", "rr")}, "b:2; d reached true with 2"},
		"one process is late":        {[]platform.Wanted{rolls(want("b", "p", 2, 1), false), rolls(want("x", "q", 1, 1), true), rolls(want("y", "q", 2, 1), false)}, []platform.Seen{has("b", "r"), has("x", "r"), has("y", ".")}, "b:1 x:1 y:1; d reached false with 1"},
		"a worker that was broken":   {[]platform.Wanted{rolls(web(want("b", "p", 2, 1)), false), rolls(want("x", "q", 1, 1), true), rolls(want("y", "q", 2, 1), false)}, []platform.Seen{has("b", "r"), has("x", "."), has("y", ".")}, "b:1 x:1 y:1; d reached true with 1"},
		"it waits for web":           {[]platform.Wanted{rolls(web(want("b", "p", 2, 1)), false), rolls(want("x", "q", 1, 1), true), rolls(want("y", "q", 2, 1), false)}, []platform.Seen{has("b", "."), has("x", "."), has("y", "r")}, "b:1 y:1; d reached false with 0"},
		"a worker that was well":     {[]platform.Wanted{rolls(web(want("b", "p", 2, 1)), false), rolls(want("x", "q", 1, 1), true), rolls(want("y", "q", 2, 1), false)}, []platform.Seen{has("b", "r"), has("x", "r"), has("y", ".")}, "b:1 x:1 y:1; d reached false with 1"},
		"nobody but a worker":        {[]platform.Wanted{rolls(web(want("b", "p", 2, 0)), false), rolls(want("x", "q", 1, 1), true), rolls(want("y", "q", 2, 1), false)}, []platform.Seen{has("x", "."), has("y", ".")}, "x:1 y:1; d reached false with 0"},
		"three releases":             {[]platform.Wanted{rolls(want("c", "p", 3, 2), false), rolls(want("a", "p", 1, 2), true), rolls(want("b", "p", 2, 2), true)}, []platform.Seen{has("a", "rr"), has("b", "r"), has("c", "r")}, "a:1 c:1; d reached false with 1"},
		"scaled to none":             {[]platform.Wanted{rolls(want("a", "p", 1, 0), true), rolls(want("b", "p", 2, 0), false)}, []platform.Seen{has("a", "r")}, "; d reached true with 0"},
		"a process that is no more":  {[]platform.Wanted{rolls(want("a", "p", 1, 1), true)}, []platform.Seen{has("a", "r")}, "; d reached true with 0"},
		"what is removed is nothing": {[]platform.Wanted{rolls(want("a", "p", 1, 1), true), rolls(want("b", "p", 2, 1), false)}, []platform.Seen{has("a", "r"), deleting(has("b", "r"))}, "a:1 b:1; d reached false with 0"},
		"beside others":              {[]platform.Wanted{want("x", "q", 5, 7), rolls(want("b", "p", 2, 1), false)}, nil, "b:1 x:7; d reached false with 0"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				all, progress := platform.Roll(slices.Clone(c.wanted), c.seen)
				var got []string
				for _, w := range all {
					got = append(got, fmt.Sprintf("%s:%d", w.Release.GUID, w.Instances))
				}
				text := strings.Join(got, " ")
				for _, p := range progress {
					text += fmt.Sprintf("; %s reached %v with %d", p.Deployment.GUID, p.Reached, p.Ready)
				}
				if text != c.want {
					t.Errorf("it says %q, want %q", text, c.want)
				}
				slices.Reverse(c.wanted) // the order must not matter
				slices.Reverse(c.seen)
			}
		})
	}
}
