package controller

import (
	"cmp"
	"slices"
	"time"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/kube"
)

// A spaceStep is what to do about one namespace, and why.
type spaceStep struct {
	namespace string
	space     string // none: its namespace is to be deleted
	reason    string
}

// planSpaces compares spaces with all namespaces that a cluster has, as they were some seconds ago. Known are those that were made
// what they should be, and when; of those where that is long ago, and of those that nobody knows, some are gone through each time.
func planSpaces(spaces []platform.Space, there []kube.Place, known map[string]time.Time, now time.Time) []spaceStep {
	var steps []spaceStep
	wanted, found := map[string]bool{}, map[string]bool{}
	for _, p := range there {
		found[p.Namespace] = true
	}
	heal := healAtOnce
	for _, s := range slices.SortedFunc(slices.Values(spaces), func(a, b platform.Space) int {
		return cmp.Or(known[a.Namespace()].Compare(known[b.Namespace()]), cmp.Compare(a.GUID, b.GUID))
	}) {
		namespace := s.Namespace()
		wanted[namespace] = true
		since, seen := known[namespace]
		switch {
		case !found[namespace] && (!seen || now.Sub(since) > 2*fullEvery): // what we made lately may not be in the list yet
			steps = append(steps, spaceStep{namespace, s.GUID, "The cluster does not have the namespace of this space."})
		case found[namespace] && now.Sub(since) > healEvery && heal > 0:
			heal--
			steps = append(steps, spaceStep{namespace, s.GUID, "Nobody has looked at this namespace lately."})
		}
	}
	for _, p := range there {
		if !wanted[p.Namespace] && !p.Deleting {
			steps = append(steps, spaceStep{p.Namespace, "", "The space of this namespace is gone."})
		}
	}
	return steps
}
