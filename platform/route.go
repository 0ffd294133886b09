package platform

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/proa-dev/proa/kit/fault"
)

// Route is an address that requests come to.
type Route struct {
	GUID         string
	SpaceGUID    string
	OrgGUID      string // of the space
	DomainGUID   string
	DomainName   string
	Host         string // one label, "*" for all that no other route has, empty for the domain itself
	Path         string // "" or /…, matched by whole segments
	Port         int    // for tcp; 0: http
	Protocol     string // ProtocolHTTP or ProtocolTCP
	Destinations []Destination
	Metadata     Metadata
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// What a route speaks, and what a destination is spoken to.
const (
	ProtocolHTTP  = "http"
	ProtocolHTTP1 = "http1"
	ProtocolHTTP2 = "http2"
	ProtocolTCP   = "tcp"
)

// AnyHost is the host of a route that gets what no other route of its domain does.
const AnyHost = "*"

// WantedRoute is a route as a cluster should serve it: only destinations that run and are not pending are in it. Without any, it keeps
// requests from a route that would catch them.
type WantedRoute struct {
	GUID      string
	Namespace string
	Hostname  string // *.domain for a wildcard
	Path      string
	Port      int
	Protocol  string
	Backends  []Backend
}

// TCP tells whether it is a port that takes connections.
func (w WantedRoute) TCP() bool { return w.Protocol == ProtocolTCP }

// Backend is where requests go in the cluster.
type Backend struct {
	ProcessGUID string
	Port        int // never 0
	Weight      int // 0: all the same
	Protocol    string
}

// Hostname is what a client asks for: *.domain for a wildcard.
func (r Route) Hostname() string {
	if r.Host == "" {
		return r.DomainName
	}
	return r.Host + "." + r.DomainName
}

// TCP tells whether the route is a port that takes connections, and not an address of http.
func (r Route) TCP() bool { return r.Protocol == ProtocolTCP }

// URL is the route as Cloud Foundry writes it.
func (r Route) URL() string {
	if r.Port != 0 {
		return r.Hostname() + ":" + strconv.Itoa(r.Port)
	}
	return r.Hostname() + r.Path
}

const maxRoutePath = 128

// routePath is what the Gateway API can match as it is written. An escaped character would be another way to write the same path.
var routePath = regexp.MustCompile(`^(/[A-Za-z0-9._~!$&'()*+,;=:@-]+)+$`)

// Check says what is wrong with the address.
func (r *Route) Check() error {
	switch {
	case r.TCP():
		return r.checkTCP()
	case r.Host != "" && r.Host != AnyHost && !hostLabel.MatchString(r.Host):
		return fault.Unprocessable("Host must be '*', or at most %d lower-case letters, digits and hyphens, and begin and end with a letter or digit.", maxLabel)
	case len(r.Hostname()) > maxHostname:
		return fault.Unprocessable("Host '%s' is too long: with its domain it has more than %d characters.", r.Host, maxHostname)
	case r.Port != 0:
		return fault.Unprocessable("Routes of domain '%s' have no port: it speaks http only. Leave the port out.", r.DomainName)
	}
	if r.Host == AnyHost && r.Path != "" { // gateways differ in what wins, a host or a path; it must never be another's path
		return fault.Unprocessable("A wildcard gets every path that no other route has: leave the path out.")
	}
	if err := checkRoutePath(r.Path); err != nil {
		return err
	}
	return r.Metadata.Check()
}

func checkRoutePath(path string) error {
	switch {
	case path == "":
		return nil
	case len(path) > maxRoutePath:
		return fault.Unprocessable("Path is too long (maximum is %d characters)", maxRoutePath)
	case !strings.HasPrefix(path, "/"):
		return fault.Unprocessable("Path must begin with a slash, such as /%s.", clipText(path))
	case path == "/":
		return fault.Unprocessable("Path cannot be a single slash: leave it out, and the route gets every path.")
	case strings.HasSuffix(path, "/"):
		return fault.Unprocessable("Path cannot end with a slash: %s gets what is below it too.", clipText(strings.TrimRight(path, "/")))
	case !routePath.MatchString(path):
		return fault.Unprocessable("Path must be segments of letters, digits and -._~!$&'()*+,;=:@ with a slash before each. It cannot hold ? or %%.")
	}
	for segment := range strings.SplitSeq(path[1:], "/") {
		if segment == "." || segment == ".." {
			return fault.Unprocessable("Path cannot have the segments . and ..: browsers take them out.")
		}
	}
	return nil
}

// MayTake refuses addresses that are not for everybody: the platform's own, and of a shared domain the wildcard and the domain itself.
func (w Who) MayTake(r Route, d Domain, reserved Reserved) error {
	switch {
	case r.TCP():
		return nil
	case reserved.Holds(r.Hostname()):
		return fault.Unprocessable("The host '%s' of domain '%s' is reserved for the platform itself. Choose another host.", r.Host, d.Name)
	case !d.Shared() || w.Admin():
		return nil
	case r.Host == "":
		return fault.Unprocessable("Missing host. Routes in shared domains must have a host defined.")
	case r.Host == AnyHost:
		return fault.Unprocessable("A wildcard of the shared domain '%s' is for administrators only, because it gets what others have not taken yet. Choose a host, or use a domain of your organization.", d.Name)
	}
	return nil
}

// ErrRouteExists is for a second route of the same address in a space. Clients compare its first words.
func ErrRouteExists(r Route) error {
	with := []string{}
	if r.Host != "" {
		with = append(with, "host '"+r.Host+"'")
	}
	if r.Path != "" {
		with = append(with, "path '"+r.Path+"'")
	}
	if r.Port != 0 {
		with = append(with, fmt.Sprintf("port '%d'", r.Port))
	}
	if len(with) == 0 {
		return fault.Unprocessable("Route already exists for domain '%s'.", r.DomainName)
	}
	return fault.Unprocessable("Route already exists with %s for domain '%s'.", strings.Join(with, " and "), r.DomainName)
}

// ErrHostTaken is for a host of a shared domain, all paths of which belong to the space that was there first.
func ErrHostTaken(r Route) error {
	return fault.Unprocessable("The host '%s' of domain '%s' is taken by another space. Choose another host.", r.Host, r.DomainName)
}

// ErrRouteTaken is for a route of an organization's own domain that another of its spaces has.
func ErrRouteTaken(r Route) error {
	return fault.Unprocessable("The route '%s' is taken by another space of the organization. Choose another host or path, or delete it there.", r.URL())
}

// ErrNotOfOrg is for a domain that belongs to another organization than the space does.
func ErrNotOfOrg(d Domain) error {
	return fault.Unprocessable("Invalid domain. Domain '%s' is not available in the organization of this space. `domains` lists those that are.", d.Name)
}

// CheckOptions refuses the options of a route: none is known here.
func CheckOptions[V comparable](options map[string]V) error {
	for name, value := range options {
		if none := *new(V); value == none { // taking one away that nothing has is done already
			continue
		}
		return fault.Unprocessable("Routes have no option '%s' here: requests go to the instances of a route in turn. Leave the options out.", clipText(name))
	}
	return nil
}

// RouteAddress is a route as people write it, before anybody knows where its domain begins.
type RouteAddress struct {
	Hostname string
	Path     string
	Port     int // 0: none is said
}

// ParseRoute reads host.domain/path, or domain:port.
func ParseRoute(text string) (RouteAddress, error) {
	hostname, path, has := strings.Cut(text, "/")
	hostname, port, numbered := strings.Cut(hostname, ":")
	a := RouteAddress{Hostname: strings.ToLower(hostname)}
	if has {
		a.Path = "/" + path
	}
	if numbered {
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil || number == 0 {
			return a, fault.Unprocessable("The route '%s' is not valid: what follows the colon is no port, such as 20000.", clipText(text))
		}
		a.Port = int(number)
	}
	if err := checkRoutePath(a.Path); err != nil {
		return a, fault.Unprocessable("The route '%s' is not valid: %s", clipText(text), fault.From(err).Detail)
	}
	return a, nil
}

func (a RouteAddress) String() string {
	if a.Port != 0 {
		return fmt.Sprint(a.Hostname, ":", a.Port, a.Path)
	}
	return a.Hostname + a.Path
}

// Domains are the names of the domains that the address may be of, the one that is meant first.
func (a RouteAddress) Domains() []string {
	if _, rest, has := strings.Cut(a.Hostname, "."); has {
		return []string{a.Hostname, rest}
	}
	return []string{a.Hostname}
}

// Of is the address as a route of a domain.
func (a RouteAddress) Of(d Domain) Route {
	host := ""
	if a.Hostname != d.Name {
		host = strings.TrimSuffix(a.Hostname, "."+d.Name)
	}
	return Route{DomainGUID: d.GUID, DomainName: d.Name, Host: host, Path: a.Path, Port: a.Port, Protocol: d.Speaks()}
}
