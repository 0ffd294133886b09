package platform

import (
	"cmp"
	"fmt"
	"slices"
)

// StepKind is what to do about one release in one cluster.
type StepKind int

// The kinds, in the order of a plan: the new comes before the old goes, so that a release that cannot be created takes
// nothing down.
const (
	StepCreate StepKind = iota
	StepScale
	StepDelete
	StepKeep
)

func (k StepKind) String() string { return [...]string{"create", "scale", "delete", "keep"}[k] }

// Step is one thing to do, and why.
type Step struct {
	Kind      StepKind
	Namespace string
	Release   string
	Name      string  // of the set in the cluster, where there is one
	Wanted    *Wanted // none of delete
	Reason    string
}

// A place is where one release has one set of instances.
type place struct{ namespace, release string }

// Plan compares what should run with what a cluster has. It asks nobody and changes nothing, and says the same for the
// same, whatever the order of its arguments. Both must be complete: what is missing from wanted is deleted.
func Plan(wanted []Wanted, seen []Seen) []Step {
	first := map[place]*Seen{}
	for i := range seen {
		s := &seen[i]
		at := place{s.Namespace, s.Release}
		if other := first[at]; other == nil || s.Name < other.Name {
			first[at] = s
		}
	}
	steps := make([]Step, 0, max(len(wanted), len(seen)))
	kept, successor := map[place]bool{}, map[string]string{}
	for i := range wanted {
		w := &wanted[i]
		at := place{w.Release.Namespace, w.Release.GUID}
		if kept[at] {
			continue
		}
		kept[at], successor[w.Release.ProcessGUID] = true, max(successor[w.Release.ProcessGUID], w.Release.GUID)
		steps = append(steps, planWanted(w, first[at]))
	}
	for i := range seen {
		s := &seen[i]
		at := place{s.Namespace, s.Release}
		if !kept[at] || first[at].Name != s.Name {
			steps = append(steps, planUnwanted(s, kept[at], successor[s.Process]))
		}
	}
	slices.SortFunc(steps, func(a, b Step) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Release, b.Release), cmp.Compare(a.Name, b.Name))
	})
	return steps
}

func planWanted(w *Wanted, s *Seen) Step {
	step := Step{Kind: StepKeep, Namespace: w.Release.Namespace, Release: w.Release.GUID, Wanted: w}
	if s == nil {
		step.Kind = StepCreate
		step.Reason = fmt.Sprintf("The cluster does not have it; %d instances are wanted.", w.Instances)
		return step
	}
	step.Name = s.Name
	switch {
	case s.Deleting:
		step.Reason = "The cluster is still removing it; it is created again after that."
	case s.Count != w.Instances:
		step.Kind = StepScale
		step.Reason = fmt.Sprintf("The cluster runs %d instances; %d are wanted.", s.Count, w.Instances)
	default:
		step.Reason = fmt.Sprintf("The cluster has %d instances, as wanted.", s.Count)
	}
	return step
}

func planUnwanted(s *Seen, twice bool, successor string) Step {
	step := Step{Kind: StepDelete, Namespace: s.Namespace, Release: s.Release, Name: s.Name}
	switch {
	case s.Deleting:
		step.Kind, step.Reason = StepKeep, "The cluster is removing it already."
	case twice:
		step.Reason = "The cluster has this release twice."
	case successor != "":
		step.Reason = fmt.Sprintf("Release %s takes its place.", successor)
	default:
		step.Reason = "Nobody wants it to run: its app was stopped or deleted, or it was never ours."
	}
	return step
}
