package platform

import (
	"cmp"
	"slices"
)

// Rollout is one process on its way from older releases to a new one, as the cluster has them.
type Rollout struct {
	Wanted   int    // instances in all
	InFlight int    // how many new ones may be under way at once, and so how many there may be beyond Wanted
	Target   int    // how many new ones there shall be for now; fewer than Wanted for a canary
	Canary   bool   // a person judges the new ones before the others follow: at least one old one stays
	New      Side   // the release that is to run
	Old      []Side // those that give way, the newest first
}

// Side is one release in a rollout: how many instances the cluster was told to run, and which of them are ready, by index.
type Side struct {
	Count int
	Ready []bool
}

// ready counts those that would be left of n instances: the cluster ends the highest first.
func (s Side) ready(n int) int {
	count := 0
	for i := range min(n, s.Count) {
		if s.isReady(i) {
			count++
		}
	}
	return count
}

func (s Side) isReady(index int) bool { return index >= 0 && index < len(s.Ready) && s.Ready[index] }

// Next says how many instances of each release there should be now. Nothing that it says takes a ready instance away while fewer
// than Wanted would be left, and nothing adds one beyond Wanted and InFlight, not even for a moment: old ones go before new ones come.
// Only those that are not ready, but cannot be ended before others that are needed, come on top. What an old release has lost it never
// gets back: when old ones are missing, new ones fill in.
func (r Rollout) Next() (fresh int, old []int) {
	there := 0
	for _, s := range r.Old {
		there += s.Count
	}
	missing := r.Wanted - there
	ready := r.New.ready(r.Wanted)
	stay := r.Wanted - ready
	if r.Canary && r.Wanted > 0 {
		stay = max(stay, 1)
	}
	old, left := r.giveWay(stay, ready)
	most := r.Wanted + r.InFlight
	room := most - there + max(0, left-stay)
	fresh = min(r.Wanted, max(r.New.Count, missing, min(r.Target, ready+r.InFlight, room)))
	// A rollout that was meant for more instances has begun too many: those that nobody misses go again.
	for fresh > max(missing, most-min(left, stay)) && !r.New.isReady(fresh-1) {
		fresh--
	}
	return fresh, old
}

// giveWay lets old instances go until so many stay, the newest releases first: they have proved themselves the least. It stops
// where the next to go is ready and needed.
func (r Rollout) giveWay(stay, ready int) (old []int, left int) {
	spare := 0 // ready ones that may go
	old = make([]int, len(r.Old))
	for i, s := range r.Old {
		old[i] = s.Count
		left += s.Count
		spare += s.ready(s.Count)
	}
	spare -= max(0, min(r.Wanted-ready, spare))
	for i, s := range r.Old {
		for left > stay && old[i] > 0 {
			if s.isReady(old[i] - 1) {
				if spare == 0 {
					break
				}
				spare--
			}
			old[i]--
			left--
		}
	}
	return old, left
}

// Broken tells whether nothing that gives way is ready: whoever waits for the new ones to be so keeps nothing up.
func (r Rollout) Broken() bool {
	return !slices.ContainsFunc(r.Old, func(s Side) bool { return s.ready(s.Count) > 0 })
}

// Reached tells whether there are as many new ones, and ready, as there shall be for now.
func (r Rollout) Reached() bool { return r.New.ready(r.Wanted) >= min(r.Target, r.Wanted) }

// Progress is how far a deployment has come in the cluster.
type Progress struct {
	Deployment Deployment
	Reached    bool // in all processes that count
	Ready      int  // new instances, of those that tell whether the release works
}

// progressOf takes all processes of an app together. Where web runs it tells whether a release works, and one of the others that was
// broken before holds nobody up.
func progressOf(d Deployment, web *Rollout, others []Rollout) Progress {
	p := Progress{Deployment: d, Reached: true}
	judged := web != nil && web.Wanted > 0
	if web != nil {
		p.Reached, p.Ready = web.Reached(), web.New.ready(web.Wanted)
	}
	for _, r := range others {
		p.Reached = p.Reached && (r.Reached() || judged && r.Broken())
		if !judged {
			p.Ready += r.New.ready(r.Wanted)
		}
	}
	return p
}

// Roll takes what should run and says how much of it should run now: where a deployment is under way the counts follow from what is
// ready, elsewhere they stay. Releases that have given way are left out. It asks nobody, and says the same for the same.
func Roll(wanted []Wanted, seen []Seen) ([]Wanted, []Progress) {
	if !slices.ContainsFunc(wanted, func(w Wanted) bool { return w.Deployment != nil }) {
		return wanted, nil
	}
	sides := sidesOf(seen)
	var all []Wanted
	var under []*Deployment
	web, others := map[string]*Rollout{}, map[string][]Rollout{} // by deployment
	known, processes := map[string]bool{}, map[string][]Wanted{}
	for _, w := range wanted {
		if w.Deployment == nil {
			all = append(all, w)
			continue
		}
		if !known[w.Deployment.GUID] {
			known[w.Deployment.GUID] = true
			under = append(under, w.Deployment)
		}
		processes[w.Release.ProcessGUID] = append(processes[w.Release.ProcessGUID], w)
	}
	for _, releases := range processes {
		r, d := rolloutOf(releases, sides), releases[0].Deployment.GUID
		if releases[0].Release.ProcessType == WebProcess {
			web[d] = &r
		} else {
			others[d] = append(others[d], r)
		}
		all = append(all, r.share(releases)...)
	}
	slices.SortFunc(all, func(a, b Wanted) int { return cmp.Compare(a.Release.GUID, b.Release.GUID) })
	var progress []Progress
	for _, d := range under {
		progress = append(progress, progressOf(*d, web[d.GUID], others[d.GUID]))
	}
	return all, progress
}

// sidesOf are the releases of a cluster. One that is being removed has nothing to give; of copies the one that Plan keeps counts.
func sidesOf(seen []Seen) map[place]Side {
	sides, names := map[place]Side{}, map[place]string{}
	for _, s := range seen {
		at := place{s.Namespace, s.Release}
		if name, twice := names[at]; twice && name < s.Name {
			continue
		}
		names[at], sides[at] = s.Name, Side{}
		if s.Deleting {
			continue
		}
		side := Side{Count: s.Count, Ready: make([]bool, s.Count)}
		for _, i := range s.Instances {
			if i.Index >= 0 && i.Index < s.Count {
				side.Ready[i.Index] = i.Ready
			}
		}
		sides[at] = side
	}
	return sides
}

// rolloutOf sorts the releases of one process: the one to run first, then the others, the newest first. A process that the release
// to run does not know has nothing to run.
func rolloutOf(releases []Wanted, sides map[place]Side) Rollout {
	slices.SortFunc(releases, func(a, b Wanted) int {
		if a.Draining != b.Draining {
			return map[bool]int{false: -1, true: 1}[a.Draining]
		}
		return cmp.Or(cmp.Compare(b.Release.Version, a.Release.Version), cmp.Compare(a.Release.GUID, b.Release.GUID))
	})
	d := releases[0].Deployment
	r := Rollout{InFlight: max(d.MaxInFlight, 1)}
	for _, w := range releases {
		side := sides[place{w.Release.Namespace, w.Release.GUID}]
		if w.Draining {
			r.Old = append(r.Old, side)
		} else {
			r.Wanted, r.New = w.Instances, side
		}
	}
	r.Target, r.Canary = d.Target(r.Wanted)
	return r
}

// share gives each of the sorted releases its count.
func (r Rollout) share(releases []Wanted) []Wanted {
	fresh, old := r.Next()
	var all []Wanted
	for _, w := range releases {
		if !w.Draining {
			w.Instances = fresh
		} else {
			w.Instances, old = old[0], old[1:]
		}
		if w.Instances > 0 {
			all = append(all, w)
		}
	}
	return all
}
