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
	StepServe                       // make a route, or change it
	StepDrop                        // remove a route
	StepNarrow                      // take ports from an entry
	StepClose                       // remove an entry
)

func (k RouteStepKind) String() string {
	return [...]string{"open-entry", "serve-route", "drop-route", "narrow-entry", "close-entry"}[k]
}

// RouteStep is one thing to do, and why.
type RouteStep struct {
	Kind      RouteStepKind
	Namespace string
	Name      string       // of what to remove
	Route     *WantedRoute // to serve
	Entry     *Entry       // to open or to narrow
	Processes []string     // that it is about: what comes later about one of them waits until this is done
	Reason    string
}

// PlanRoutes compares routes that should be served with what a cluster has. It asks nobody and changes nothing, and says the
// same for the same, whatever the order of its arguments. All must be complete: what is missing from wanted is removed. What
// is as it should be has no step. Routes of TCP need more than a gateway for HTTP, and are not served.
func PlanRoutes(wanted []WantedRoute, routes []SeenRoute, entries []SeenEntry) []RouteStep {
	served := make([]WantedRoute, 0, len(wanted))
	for _, w := range wanted {
		if w.Protocol != ProtocolTCP {
			served = append(served, w.Normal())
		}
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

// same compares what the cluster is told of a route. What is spoken to a backend is told to its entry.
func (w WantedRoute) same(o WantedRoute) bool {
	return w.Hostname == o.Hostname && w.Path == o.Path && slices.EqualFunc(w.Backends, o.Backends, func(a, b Backend) bool {
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

type thing struct{ namespace, guid string }

func planRoutes(wanted []WantedRoute, seen []SeenRoute) []RouteStep {
	there, kept := make(map[thing]*SeenRoute, len(seen)), make(map[thing]bool, len(wanted))
	for i := range seen {
		there[thing{seen[i].Namespace, seen[i].GUID}] = &seen[i]
	}
	var steps []RouteStep
	for i := range wanted {
		w := &wanted[i]
		at := thing{w.Namespace, w.GUID}
		kept[at] = true
		if reason := serveReason(w, there[at]); reason != "" {
			steps = append(steps, RouteStep{Kind: StepServe, Namespace: w.Namespace, Route: w, Processes: w.processes(), Reason: reason})
		}
	}
	for _, s := range seen {
		if !kept[thing{s.Namespace, s.GUID}] && !s.Deleting {
			steps = append(steps, RouteStep{Kind: StepDrop, Namespace: s.Namespace, Name: s.Name, Processes: s.processes(),
				Reason: "It leads nowhere: the route was deleted or unmapped, its app was stopped, or it was never ours."})
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
			at := thing{w.Namespace, b.ProcessGUID}
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

// add takes a port once. Of two things that are spoken there the first in the alphabet counts, so that the order of routes does not.
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
		there[thing{seen[i].Namespace, seen[i].ProcessGUID}] = &seen[i]
	}
	var steps []RouteStep
	for i := range wanted {
		at := thing{wanted[i].Namespace, wanted[i].ProcessGUID}
		kept[at] = true
		steps = append(steps, planEntry(&wanted[i], there[at])...)
	}
	for _, s := range seen {
		if !kept[thing{s.Namespace, s.ProcessGUID}] && !s.Deleting {
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
