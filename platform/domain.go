package platform

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/proa-dev/proa/kit/fault"
)

// Domain is a name under which routes stand. The apps domain is shared by all organizations.
type Domain struct {
	GUID      string
	Name      string
	Protocol  string // ProtocolHTTP, or ProtocolTCP: its routes are ports then
	Internal  bool
	OrgGUID   string // empty: shared
	Metadata  Metadata
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Shared tells whether every organization may have routes under it.
func (d *Domain) Shared() bool { return d.OrgGUID == "" }

// Speaks is what its routes speak.
func (d *Domain) Speaks() string {
	if d.Protocol == "" {
		return ProtocolHTTP
	}
	return d.Protocol
}

const (
	maxHostname = 253
	maxLabel    = 63
)

// hostLabel is what the hostnames of the Gateway API are made of. Cloud Foundry also takes an underscore.
var hostLabel = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// Check says what is wrong with a domain that somebody asks for. A public suffix is nobody's: its owner would keep everybody else out.
func (d *Domain) Check() error {
	labels := strings.Split(d.Name, ".")
	last := labels[len(labels)-1]
	switch {
	case d.Name == "":
		return fault.Unprocessable("Name can't be blank")
	case len(d.Name) > maxHostname || len(labels) < 2 || slices.ContainsFunc(labels, func(l string) bool { return !hostLabel.MatchString(l) }) || strings.Trim(last, "0123456789") == "":
		return fault.Unprocessable("Name '%s' is not a domain: it must be two or more labels of letters, digits and hyphens with dots between them, such as example.org.", clipText(d.Name))
	}
	if suffix, _ := publicsuffix.PublicSuffix(d.Name); suffix == d.Name {
		return fault.Unprocessable("The domain '%s' is a public suffix, under which anybody can have a name. Use a domain that is yours.", d.Name)
	}
	return d.Metadata.Check()
}

// Reserved are the hosts that the platform answers at itself. Nobody gets a route there, nor a domain that would shadow them.
type Reserved []string

// ReserveHosts reads a list of hosts. One without a dot is under the apps domain.
func ReserveHosts(domain string, hosts ...string) Reserved {
	var all Reserved
	for _, host := range hosts {
		host = strings.ToLower(strings.TrimSpace(host))
		if host != "" && !strings.Contains(host, ".") {
			host += "." + strings.ToLower(domain)
		}
		if host != "" && !slices.Contains(all, host) {
			all = append(all, host)
		}
	}
	return all
}

// Beside reserves names in the domain that one of the platform's hosts is in, too: its other hosts may be there and not in the apps domain.
// A public suffix is not the platform's, nor is what is above an address or a single label.
func (r Reserved) Beside(host string, names ...string) Reserved {
	_, domain, has := strings.Cut(strings.ToLower(host), ".")
	if _, err := netip.ParseAddr(host); err == nil || !has {
		return r
	}
	if suffix, listed := publicsuffix.PublicSuffix(domain); suffix == domain && (listed || strings.Contains(domain, ".")) {
		return r
	}
	names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return strings.Contains(n, ".") })
	return ReserveHosts(domain, slices.Concat(r, names)...)
}

// Holds tells whether a hostname is the platform's.
func (r Reserved) Holds(hostname string) bool { return slices.Contains(r, hostname) }

// MayCreate refuses a domain that would shadow one of the platform's hosts. A shared one may be above them: the apps domain is.
func (r Reserved) MayCreate(d Domain) error {
	for _, host := range r {
		if host == d.Name || Under(d.Name, host) || !d.Shared() && Under(host, d.Name) {
			return fault.Unprocessable("The domain '%s' cannot be created: hosts of the platform itself are there. Choose another name.", d.Name)
		}
	}
	return nil
}

// Under tells whether a name stands below a domain.
func Under(name, domain string) bool { return strings.HasSuffix(name, "."+domain) }

// MayStandBeside refuses a domain because of one that is there and has the same name, or is above or below it. Whoever has the upper one
// can take every name of the lower, so both must be everybody's, or one organization's.
func (d *Domain) MayStandBeside(other Domain) error {
	switch {
	case d.Name == other.Name:
		return fault.Unprocessable("The domain name \"%s\" is already in use", d.Name)
	case d.OrgGUID == other.OrgGUID:
		return nil
	case Under(d.Name, other.Name) && other.Shared():
		return fault.Unprocessable("The domain '%s' cannot be created: it is under '%s', which all organizations share. Use a host of that domain instead.", d.Name, other.Name)
	case Under(d.Name, other.Name):
		return fault.Unprocessable("The domain '%s' cannot be created: it is under a domain of another organization. Choose another name.", d.Name)
	}
	return fault.Unprocessable("The domain '%s' cannot be created: a domain under it belongs to others. Choose another name.", d.Name)
}

// AndAbove are the names at which a domain above this one could stand, itself included.
func (d *Domain) AndAbove() []string {
	names := []string{d.Name}
	for rest := d.Name; ; {
		_, above, more := strings.Cut(rest, ".")
		if !more {
			return names
		}
		names, rest = append(names, above), above
	}
}

// ErrOtherProtocol is for a domain that is to be there for another protocol than it is.
func ErrOtherProtocol(d Domain, wanted string) error {
	return fault.Unprocessable("The domain '%s' is there for %s, and cannot be for %s too. Choose another name, or delete the domain first.", d.Name, d.Speaks(), wanted)
}

// ErrTCPDomain is for deleting the domain that routes of tcp stand under.
var ErrTCPDomain = fault.Unprocessable("The domain for tcp cannot be deleted: routes of tcp are made under it. Take PROA_TCP_DOMAIN away first.")

// ErrLastDomain is for deleting the domain that apps get routes under by themselves.
var ErrLastDomain = fault.Unprocessable("The apps domain cannot be deleted: apps get their routes under it. Set PROA_APPS_DOMAIN to another one first.")
