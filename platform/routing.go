package platform

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Entry is where requests enter a process: one name in the cluster, for all routes that lead to it.
type Entry struct {
	Namespace   string
	ProcessGUID string
	Ports       []EntryPort // in ascending order
}

// EntryPort is a port of a process and what is spoken there.
type EntryPort struct {
	Port     int
	Protocol string
}

// SeenRoute is a route that a cluster has. Whoever reads it from the cluster says whether writing it anew would change it:
// somebody else may have, or we ourselves with other settings.
type SeenRoute struct {
	WantedRoute

	Name     string
	Altered  bool
	Deleting bool
}

// SeenEntry is an entry that a cluster has.
type SeenEntry struct {
	Entry

	Name     string
	Altered  bool
	Deleting bool
}

// RouteStepKind is what to do about a route or an entry in one cluster.
type RouteStepKind int

// The kinds, in the order to take them: at no time does a route lead to an entry, or to a port of one, that is not there.
const (
	StepOpen   RouteStepKind = iota // make an entry, or give it more ports
	StepYield                       // remove a route of tcp, whose port another has: two would get each other's connections
	StepServe                       // make a route, or change it
	StepDrop                        // remove a route
	StepNarrow                      // take ports from an entry
	StepClose                       // remove an entry
)

func (k RouteStepKind) String() string {
	return [...]string{"open-entry", "yield-route", "serve-route", "drop-route", "narrow-entry", "close-entry"}[k]
}

// RouteStep is one thing to do, and why.
type RouteStep struct {
	Kind      RouteStepKind
	Namespace string
	Name      string       // of what to remove
	TCP       bool         // it is a route of tcp
	Route     *WantedRoute // to serve
	Entry     *Entry       // to open or to narrow
	Processes []string     // that it is about: what comes later about one of them waits until this is done
	Reason    string
}

// PlanRoutes compares routes that should be served with what a cluster has. It asks nobody and changes nothing, and says the
// same for the same, whatever the order of its arguments. All must be complete: what is missing from wanted is removed. What
// is as it should be has no step.
func PlanRoutes(wanted []WantedRoute, routes []SeenRoute, entries []SeenEntry) []RouteStep {
	served := make([]WantedRoute, 0, len(wanted))
	for _, w := range wanted {
		served = append(served, w.Normal())
	}
	steps := append(planRoutes(served, routes), planEntries(entriesOf(served), entries)...)
	slices.SortFunc(steps, func(a, b RouteStep) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.about(), b.about()))
	})
	return steps
}

func (s RouteStep) about() string {
	switch {
	case s.Route != nil:
		return s.Route.GUID
	case s.Entry != nil:
		return s.Entry.ProcessGUID
	}
	return s.Name
}

// Normal is the one way to write a route: each backend once, in order and with a weight.
func (w WantedRoute) Normal() WantedRoute {
	backends := make([]Backend, 0, len(w.Backends))
	for _, b := range w.Backends {
		b.Weight = max(b.Weight, 1)
		same := func(o Backend) bool { return o.ProcessGUID == b.ProcessGUID && o.Port == b.Port }
		if i := slices.IndexFunc(backends, same); i >= 0 {
			backends[i].Weight += b.Weight
			continue
		}
		backends = append(backends, b)
	}
	slices.SortFunc(backends, func(a, b Backend) int {
		return cmp.Or(strings.Compare(a.ProcessGUID, b.ProcessGUID), cmp.Compare(a.Port, b.Port))
	})
	w.Backends = backends
	return w
}

// same compares what the cluster is told of a route: of one of tcp only the port. What is spoken to a backend is told to its entry.
func (w WantedRoute) same(o WantedRoute) bool {
	place := w.TCP() && o.TCP() && w.Port == o.Port || !w.TCP() && !o.TCP() && w.Hostname == o.Hostname && w.Path == o.Path
	return place && slices.EqualFunc(w.Backends, o.Backends, func(a, b Backend) bool {
		return a.ProcessGUID == b.ProcessGUID && a.Port == b.Port && a.Weight == b.Weight
	})
}

func (w WantedRoute) processes() []string {
	var all []string
	for _, b := range w.Backends {
		all = append(all, b.ProcessGUID)
	}
	return slices.Compact(all)
}

type thing struct {
	namespace, guid string
	tcp             bool
}

func (w WantedRoute) thing() thing { return thing{w.Namespace, w.GUID, w.TCP()} }

func planRoutes(wanted []WantedRoute, seen []SeenRoute) []RouteStep {
	there, kept := make(map[thing]*SeenRoute, len(seen)), make(map[thing]bool, len(wanted))
	for i := range seen {
		there[seen[i].thing()] = &seen[i]
	}
	ports := map[int]bool{} // of tcp
	for i := range wanted {
		kept[wanted[i].thing()] = true
		if wanted[i].TCP() {
			ports[wanted[i].Port] = true
		}
	}
	var steps []RouteStep
	before := map[int][]string{} // whose processes a port led to
	for _, s := range seen {
		if kept[s.thing()] || s.Deleting {
			continue
		}
		step := RouteStep{Kind: StepDrop, Namespace: s.Namespace, Name: s.Name, TCP: s.TCP(), Processes: s.processes(),
			Reason: "It leads nowhere: the route was deleted or unmapped, its app was stopped, or it was never ours."}
		if s.TCP() && ports[s.Port] {
			step.Kind, step.Reason = StepYield, "Another route has its port now."
			before[s.Port] = append(before[s.Port], step.Processes...)
		}
		steps = append(steps, step)
	}
	for i := range wanted {
		w := &wanted[i]
		if reason := serveReason(w, there[w.thing()]); reason != "" {
			steps = append(steps, RouteStep{Kind: StepServe, Namespace: w.Namespace, Route: w, TCP: w.TCP(), Processes: w.processes(), Reason: reason})
			if w.TCP() {
				last := &steps[len(steps)-1]
				last.Processes = append(last.Processes, before[w.Port]...)
			}
		}
	}
	return steps
}

func serveReason(w *WantedRoute, s *SeenRoute) string {
	switch {
	case s == nil:
		return "The cluster does not have it."
	case s.Deleting: // it is made again when it is gone
		return ""
	case !w.same(s.WantedRoute):
		return "It is to lead elsewhere."
	case s.Altered:
		return "It was altered, or our settings were."
	}
	return ""
}

// entriesOf finds what routes lead to. They are normal.
func entriesOf(routes []WantedRoute) []Entry {
	found := map[thing]*Entry{}
	for _, w := range routes {
		for _, b := range w.Backends {
			at := thing{namespace: w.Namespace, guid: b.ProcessGUID}
			if found[at] == nil {
				found[at] = &Entry{Namespace: w.Namespace, ProcessGUID: b.ProcessGUID}
			}
			found[at].add(EntryPort{b.Port, b.Protocol})
		}
	}
	all := make([]Entry, 0, len(found))
	for _, e := range found {
		all = append(all, *e)
	}
	return all
}

func (e Entry) thing() thing { return thing{namespace: e.Namespace, guid: e.ProcessGUID} }

// add takes a port once. Of two things that are spoken there the first in the alphabet counts, so that the order of routes does not, and
// http before tcp.
func (e *Entry) add(p EntryPort) {
	i, known := slices.BinarySearchFunc(e.Ports, p, func(a, b EntryPort) int { return cmp.Compare(a.Port, b.Port) })
	if !known {
		e.Ports = slices.Insert(e.Ports, i, p)
		return
	}
	e.Ports[i].Protocol = min(e.Ports[i].Protocol, p.Protocol)
}

// wider has the ports of both, as e speaks there.
func (e Entry) wider(o Entry) Entry {
	e.Ports = slices.Clone(e.Ports)
	for _, p := range o.Ports {
		if !slices.ContainsFunc(e.Ports, func(mine EntryPort) bool { return mine.Port == p.Port }) {
			e.add(p)
		}
	}
	return e
}

func planEntries(wanted []Entry, seen []SeenEntry) []RouteStep {
	there, kept := make(map[thing]*SeenEntry, len(seen)), make(map[thing]bool, len(wanted))
	for i := range seen {
		there[seen[i].thing()] = &seen[i]
	}
	var steps []RouteStep
	for i := range wanted {
		at := wanted[i].thing()
		kept[at] = true
		steps = append(steps, planEntry(&wanted[i], there[at])...)
	}
	for _, s := range seen {
		if !kept[s.Entry.thing()] && !s.Deleting {
			steps = append(steps, RouteStep{Kind: StepClose, Namespace: s.Namespace, Name: s.Name, Processes: []string{s.ProcessGUID}, Reason: "No route leads to it."})
		}
	}
	return steps
}

// planEntry gives before it takes.
func planEntry(w *Entry, s *SeenEntry) []RouteStep {
	step := RouteStep{Kind: StepOpen, Namespace: w.Namespace, Entry: w, Processes: []string{w.ProcessGUID}, Reason: "Routes lead to this process."}
	if s == nil {
		return []RouteStep{step}
	}
	if s.Deleting {
		return nil
	}
	var steps []RouteStep
	wide := w.wider(s.Entry)
	if s.Altered || !slices.Equal(wide.Ports, s.Ports) {
		step.Entry, step.Reason = &wide, fmt.Sprintf("Routes lead to other ports: %s.", portsText(w.Ports))
		if s.Altered {
			step.Reason = "It was altered, or our settings were."
		}
		steps = append(steps, step)
	}
	if len(wide.Ports) > len(w.Ports) {
		step.Kind, step.Entry, step.Reason = StepNarrow, w, fmt.Sprintf("No route leads to other ports than %s.", portsText(w.Ports))
		steps = append(steps, step)
	}
	return steps
}

func portsText(ports []EntryPort) string {
	var all []string
	for _, p := range ports {
		all = append(all, fmt.Sprint(p.Port))
	}
	return strings.Join(all, ", ")
}
