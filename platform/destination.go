package platform

import (
	"slices"
	"time"

	"github.com/proa-dev/proa/kit/fault"
)

// Destination is where the requests of a route go.
type Destination struct {
	GUID        string
	AppGUID     string
	ProcessType string
	Port        int    // 0: the process's default, 8080
	Weight      int    // 0: none given; all of a route have one, or none has
	Protocol    string // http1, http2, or tcp for routes of tcp
	Pending     bool   // the running release does not have the port: the next one will
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

const (
	maxDestinations      = 16 // of a route: the Gateway API takes no more
	maxPorts             = 10 // of a process
	minPort, maxPort     = 1024, 65535
	minWeight, maxWeight = 1, 100
)

// At is the port that requests are sent to.
func (d Destination) At() int {
	if d.Port == 0 {
		return DefaultPort
	}
	return d.Port
}

// Same tells whether both are one place.
func (d Destination) Same(o Destination) bool {
	return d.AppGUID == o.AppGUID && d.ProcessType == o.ProcessType && d.At() == o.At()
}

func (d Destination) check(tcp bool) error {
	switch {
	case d.AppGUID == "":
		return fault.Unprocessable("Destinations must have an app: say its guid in app.guid.")
	case d.Port != 0 && (d.Port < minPort || d.Port > maxPort):
		return fault.Unprocessable("Port %d is not one that a process can have: it must be between %d and %d.", d.Port, minPort, maxPort)
	case d.Weight != 0 && (d.Weight < minWeight || d.Weight > maxWeight):
		return fault.Unprocessable("Weight must be between %d and %d", minWeight, maxWeight)
	case tcp && d.Protocol != ProtocolTCP:
		return fault.Unprocessable("Protocol must be %s for a route of tcp, not '%s'. Leave it out.", ProtocolTCP, clipText(d.Protocol))
	case !tcp && d.Protocol != ProtocolHTTP1 && d.Protocol != ProtocolHTTP2:
		return fault.Unprocessable("Protocol must be %s or %s for a route of http, not '%s'.", ProtocolHTTP1, ProtocolHTTP2, clipText(d.Protocol))
	}
	return CheckProcessType(d.ProcessType)
}

// Spoken is destinations that are asked for, with what a route speaks to those that say nothing of it.
func (r Route) Spoken(all []Destination) []Destination {
	all = slices.Clone(all)
	for i := range all {
		switch {
		case all[i].Protocol != "":
		case r.TCP():
			all[i].Protocol = ProtocolTCP
		default:
			all[i].Protocol = ProtocolHTTP1
		}
	}
	return all
}

// CheckDestinations says what is wrong with those of one route.
func (r Route) CheckDestinations(all []Destination) error {
	if len(all) > maxDestinations {
		return fault.Unprocessable("A route has at most %d destinations. Spread the requests over more instances instead.", maxDestinations)
	}
	for i, d := range all {
		if err := d.check(r.TCP()); err != nil {
			return err
		}
		if slices.ContainsFunc(all[:i], d.Same) {
			return fault.Unprocessable("Destinations cannot contain duplicate entries: process '%s' of app '%s' is there twice with port %d.", d.ProcessType, d.AppGUID, d.At())
		}
		if (d.Weight == 0) != (all[0].Weight == 0) {
			return fault.Unprocessable("Destinations with a weight and without one cannot stand together. Give every destination of the route a weight, or none.")
		}
	}
	return nil
}

// AddDestinations is what a route has when some are added. What it has already stays as it is.
func (r Route) AddDestinations(have, more []Destination) ([]Destination, error) {
	all := slices.Clone(have)
	for _, d := range more {
		switch i := slices.IndexFunc(all, d.Same); {
		case i < 0:
			all = append(all, d)
		case i >= len(have):
			return nil, r.CheckDestinations(more)
		case all[i].Protocol != d.Protocol:
			return nil, fault.Unprocessable("The route leads to port %d of process '%s' with protocol %s already. Change that destination, or remove it first.", d.At(), d.ProcessType, all[i].Protocol)
		}
	}
	return all, r.CheckDestinations(all)
}

// ReplaceDestinations is what a route has when all are said anew. Those that are the same place stay the same record.
func (r Route) ReplaceDestinations(have, wanted []Destination) ([]Destination, error) {
	all := slices.Clone(wanted)
	for i, d := range all {
		if j := slices.IndexFunc(have, d.Same); j >= 0 {
			all[i].GUID, all[i].CreatedAt, all[i].UpdatedAt = have[j].GUID, have[j].CreatedAt, have[j].UpdatedAt
		}
	}
	return all, r.CheckDestinations(all)
}

// CheckReach holds together what all routes say of one app: a port speaks one protocol, and there are not too many. Connections of tcp
// are nothing that a port would have to speak: a route of tcp and one of http may lead to the same.
func CheckReach(toApp []Destination) error {
	type place struct {
		kind string
		port int
	}
	spoken, ports := map[place]string{}, map[string]int{}
	for _, d := range toApp {
		at := place{d.ProcessType, d.At()}
		if spoken[at] == "" {
			ports[d.ProcessType]++
		}
		if spoken[at] == "" || spoken[at] == ProtocolTCP {
			spoken[at] = d.Protocol
		}
		if spoken[at] != d.Protocol && d.Protocol != ProtocolTCP {
			return fault.Unprocessable("Port %d of process '%s' cannot speak %s and %s at once. Use one protocol on all its routes, or another port.", d.At(), d.ProcessType, ProtocolHTTP1, ProtocolHTTP2)
		}
		if ports[d.ProcessType] > maxPorts {
			return fault.Unprocessable("Process '%s' would be reached at more than %d ports. Remove a destination first.", d.ProcessType, maxPorts)
		}
	}
	return nil
}

// PortsOf lists the ports of a process, each once: the default first if a destination is there, or nothing is said of web at all; the
// others in ascending order. The first is what PORT tells the process.
func PortsOf(kind string, toApp []Destination) []int {
	var ports []int
	for _, d := range toApp {
		if d.ProcessType == kind {
			ports = append(ports, d.At())
		}
	}
	if len(ports) == 0 && kind == WebProcess {
		return []int{DefaultPort}
	}
	slices.Sort(ports)
	ports = slices.Compact(ports)
	if i := slices.Index(ports, DefaultPort); i > 0 {
		return slices.Insert(slices.Delete(ports, i, i+1), 0, DefaultPort)
	}
	return ports
}

// ErrOtherSpace is for a destination whose app is not in the space of the route.
var ErrOtherSpace = fault.Unprocessable("Routes cannot be mapped to destinations in different spaces. Create a route in the space of the app.")

// ErrNoSuchApp is for a destination whose app the sender does not see.
func ErrNoSuchApp(guid string) error {
	return fault.Unprocessable("App(s) with guid(s) \"%s\" do not exist or you do not have access.", clipText(guid))
}
