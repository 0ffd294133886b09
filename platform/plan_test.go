package platform_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/proa-dev/proa/platform"
)

func TestPlan(t *testing.T) {
	want := func(release, process string, instances int) platform.Wanted {
		return platform.Wanted{Release: platform.Release{GUID: release, ProcessGUID: process, Namespace: "n"}, Instances: instances}
	}
	has := func(release, process string, count int) platform.Seen {
		return platform.Seen{Namespace: "n", Name: "r-" + release, Release: release, Process: process, Count: count}
	}
	deleting := func(s platform.Seen) platform.Seen { s.Deleting = true; return s }
	named := func(s platform.Seen, name string) platform.Seen { s.Name = name; return s }
	elsewhere := func(s platform.Seen) platform.Seen { s.Namespace = "other"; return s }

	for _, c := range []struct {
		name   string
		wanted []platform.Wanted
		seen   []platform.Seen
		steps  []string
	}{
		{"nothing", nil, nil, nil},
		{
			"what is new, or was deleted by hand", []platform.Wanted{want("a", "p", 2)}, nil,
			[]string{"create n/ a: The cluster does not have it; 2 instances are wanted."},
		},
		{
			"as it should be", []platform.Wanted{want("a", "p", 2)}, []platform.Seen{has("a", "p", 2)},
			[]string{"keep n/r-a a: The cluster has 2 instances, as wanted."},
		},
		{
			"too few", []platform.Wanted{want("a", "p", 3)}, []platform.Seen{has("a", "p", 1)},
			[]string{"scale n/r-a a: The cluster runs 1 instances; 3 are wanted."},
		},
		{
			"none are wanted, but the release is", []platform.Wanted{want("a", "p", 0)}, []platform.Seen{has("a", "p", 1)},
			[]string{"scale n/r-a a: The cluster runs 1 instances; 0 are wanted."},
		},
		{
			"stopped, or never ours", nil, []platform.Seen{has("a", "p", 1)},
			[]string{"delete n/r-a a: Nobody wants it to run: its app was stopped or deleted, or it was never ours."},
		},
		{
			"a restart", []platform.Wanted{want("b", "p", 1)}, []platform.Seen{has("a", "p", 1)},
			[]string{"create n/ b: The cluster does not have it; 1 instances are wanted.", "delete n/r-a a: Release b takes its place."},
		},
		{
			"two releases of a process at once", []platform.Wanted{want("a", "p", 1), want("b", "p", 1)}, []platform.Seen{has("a", "p", 2)},
			[]string{"create n/ b: The cluster does not have it; 1 instances are wanted.", "scale n/r-a a: The cluster runs 2 instances; 1 are wanted."},
		},
		{
			"on its way out, and wanted", []platform.Wanted{want("a", "p", 1)}, []platform.Seen{deleting(has("a", "p", 1))},
			[]string{"keep n/r-a a: The cluster is still removing it; it is created again after that."},
		},
		{
			"on its way out, and unwanted", nil, []platform.Seen{deleting(has("a", "p", 1))},
			[]string{"keep n/r-a a: The cluster is removing it already."},
		},
		{
			"a copy under another name", []platform.Wanted{want("a", "p", 1)}, []platform.Seen{named(has("a", "p", 1), "s"), has("a", "p", 1)},
			[]string{"delete n/s a: The cluster has this release twice.", "keep n/r-a a: The cluster has 1 instances, as wanted."},
		},
		{
			"a copy in another namespace", []platform.Wanted{want("a", "p", 1)}, []platform.Seen{elsewhere(has("a", "p", 1)), has("a", "p", 1)},
			[]string{"delete other/r-a a: Release a takes its place.", "keep n/r-a a: The cluster has 1 instances, as wanted."},
		},
		{
			"wanted twice", []platform.Wanted{want("a", "p", 1), want("a", "p", 1)}, nil,
			[]string{"create n/ a: The cluster does not have it; 1 instances are wanted."},
		},
		{
			"many", []platform.Wanted{want("c", "r", 1), want("b", "q", 2), want("a", "p", 1)}, []platform.Seen{has("y", "x", 1), has("b", "q", 1), has("a", "p", 1)},
			[]string{
				"create n/ c: The cluster does not have it; 1 instances are wanted.", "scale n/r-b b: The cluster runs 1 instances; 2 are wanted.",
				"delete n/r-y y: Nobody wants it to run: its app was stopped or deleted, or it was never ours.", "keep n/r-a a: The cluster has 1 instances, as wanted.",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 2 {
				var got []string
				for _, s := range platform.Plan(c.wanted, c.seen) {
					got = append(got, fmt.Sprintf("%v %s/%s %s: %s", s.Kind, s.Namespace, s.Name, s.Release, s.Reason))
				}
				if !slices.Equal(got, c.steps) {
					t.Errorf("the plan is\n%q, want\n%q", got, c.steps)
				}
				slices.Reverse(c.wanted) // the order must not matter
				slices.Reverse(c.seen)
			}
		})
	}
}

func BenchmarkPlan(b *testing.B) {
	var wanted []platform.Wanted
	var seen []platform.Seen
	for i := range 10_000 {
		guid := platform.GUIDOf(fmt.Sprint(i))
		wanted = append(wanted, platform.Wanted{Release: platform.Release{GUID: guid, ProcessGUID: guid, Namespace: "n"}, Instances: i % 3})
		seen = append(seen, platform.Seen{Namespace: "n", Name: "r-" + guid, Release: guid, Process: guid, Count: 1})
	}
	for b.Loop() {
		platform.Plan(wanted, seen)
	}
}
