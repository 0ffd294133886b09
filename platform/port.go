package platform

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/proa-dev/proa/kit/fault"
)

// Ports is a range of ports at which a gateway takes connections for routes of tcp; zero: none.
type Ports struct{ First, Last int }

// MaxPorts is how many there can be: a Gateway has 64 listeners, and some are for http.
const MaxPorts = 60

// ParsePorts reads FIRST-LAST, or one port.
func ParsePorts(text string) (Ports, error) {
	first, last, is := strings.Cut(text, "-")
	if !is {
		last = first
	}
	from, err := strconv.Atoi(strings.TrimSpace(first))
	to, bad := strconv.Atoi(strings.TrimSpace(last))
	switch {
	case err != nil || bad != nil || from < 1 || to > maxPort || from > to:
		return Ports{}, fmt.Errorf("%q is no range of ports, such as 20000-20009", text)
	case to-from >= MaxPorts:
		return Ports{}, fmt.Errorf("%s are %d ports, and a gateway has listeners for at most %d", text, to-from+1, MaxPorts)
	}
	return Ports{from, to}, nil
}

func (p Ports) String() string { return fmt.Sprintf("%d-%d", p.First, p.Last) }

// Hold tells whether a port is one of them.
func (p Ports) Hold(port int) bool { return port != 0 && port >= p.First && port <= p.Last }

// Choose is a port that nobody has, or 0. It is any of those: one that was given back just now still has its old callers.
func (p Ports) Choose(taken []int) int {
	var free []int
	for port := p.First; port <= p.Last && port > 0; port++ {
		if !slices.Contains(taken, port) {
			free = append(free, port)
		}
	}
	if len(free) == 0 {
		return 0
	}
	return pick(free)
}

// checkTCP says what is wrong with an address that is a port.
func (r *Route) checkTCP() error {
	switch {
	case r.Host != "":
		return fault.Unprocessable("Hosts are not supported for TCP routes: those of domain '%s' are told apart by their ports. Leave the host out.", r.DomainName)
	case r.Path != "":
		return fault.Unprocessable("Paths are not supported for TCP routes: those of domain '%s' are told apart by their ports. Leave the path out.", r.DomainName)
	}
	return r.Metadata.Check()
}

// TakePort gives a route of tcp its port: the one it asks for, or one that is free. Ports are the gateway's, so those of all routes are
// taken, whatever their domains.
func (r *Route) TakePort(ports Ports, taken []Route) error {
	if ports == (Ports{}) {
		return fault.Unprocessable("Domain '%s' is for tcp, and no ports are set aside for it now. Use another domain, or ask an administrator to set PROA_TCP_DOMAIN and PROA_TCP_PORTS.", r.DomainName)
	}
	if r.Port != 0 && !ports.Hold(r.Port) {
		return fault.Unprocessable("Port %d is not available on domain '%s': it has the ports %s. Choose one of those, or leave it out and get one that is free.", r.Port, r.DomainName, ports)
	}
	var numbers []int
	for _, other := range taken {
		numbers = append(numbers, other.Port)
		switch {
		case other.Port != r.Port || r.Port == 0:
		case other.SpaceGUID == r.SpaceGUID && other.DomainGUID == r.DomainGUID:
			return ErrRouteExists(*r)
		default:
			return fault.Unprocessable("Port %d is not available on domain '%s': another route has it. Choose another, or leave it out and get one that is free.", r.Port, r.DomainName)
		}
	}
	if r.Port == 0 {
		r.Port = ports.Choose(numbers)
	}
	if r.Port == 0 {
		return fault.Unprocessable("No port of domain '%s' is free: routes have all of %s. Delete a route that nobody needs, or ask an administrator for more ports.", r.DomainName, ports)
	}
	return nil
}
