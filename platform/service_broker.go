package platform

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/proa-dev/proa/kit/fault"
)

// ServiceBroker is who provides services: an address that speaks the Open Service Broker API.
type ServiceBroker struct {
	GUID      string
	Name      string
	URL       string
	SpaceGUID string // only for this space; empty: for all that its plans are visible to
	OrgGUID   string // of that space
	State     BrokerState
	Metadata  Metadata
	CreatedAt time.Time
	UpdatedAt time.Time
}

// BrokerState is how far we know the catalog of a broker.
type BrokerState string

// The states. Only an available broker has a catalog that can be trusted.
const (
	BrokerSynchronizing BrokerState = "SYNCHRONIZING"
	BrokerFailed        BrokerState = "SYNCHRONIZATION_FAILED"
	BrokerAvailable     BrokerState = "AVAILABLE"
	BrokerDeleting      BrokerState = "DELETE_IN_PROGRESS"
)

// BrokerAccount is how we log in to a broker. It is sealed where it is kept, and never shown.
type BrokerAccount struct{ Username, Password string }

const (
	maxBrokerURL  = 2048
	maxBrokerWord = 1024 // of a user name or a password
)

// Check says what is wrong with a broker that somebody registers.
func (b *ServiceBroker) Check() error {
	if err := checkName(b.Name); err != nil {
		return err
	}
	at, err := url.Parse(b.URL)
	switch {
	case len(b.URL) > maxBrokerURL:
		return fault.Unprocessable("Url is too long (maximum is %d characters)", maxBrokerURL)
	case err != nil || at.Hostname() == "" || at.Scheme != "http" && at.Scheme != "https":
		return fault.Unprocessable("'%s' must be a valid url: http or https, a host, and a path if there is one.", clipText(withoutUser(b.URL)))
	case at.User != nil:
		return fault.Unprocessable("The url must not contain a user or a password. Give them as authentication.")
	case at.RawQuery != "" || at.ForceQuery || at.Fragment != "":
		return fault.Unprocessable("The url must not contain a query or a fragment.")
	}
	b.URL = strings.TrimRight(b.URL, "/")
	return b.Metadata.Check()
}

// withoutUser leaves out what stands before an @, which may be a password.
func withoutUser(address string) string {
	if at := strings.LastIndex(address, "@"); at >= 0 {
		return "…" + address[at:]
	}
	return address
}

// Check says what is wrong with an account. It never says what the account is.
func (a *BrokerAccount) Check() error {
	for _, one := range []struct{ field, value string }{{"Username", a.Username}, {"Password", a.Password}} {
		switch {
		case one.value == "":
			return fault.Unprocessable("%s can't be blank: the broker must be given basic authentication.", one.field)
		case len(one.value) > maxBrokerWord:
			return fault.Unprocessable("%s is too long (maximum is %d bytes)", one.field, maxBrokerWord)
		case !utf8.ValidString(one.value) || strings.ContainsFunc(one.value, unicode.IsControl):
			return fault.Unprocessable("%s must not contain control characters.", one.field)
		}
	}
	if strings.Contains(a.Username, ":") {
		return fault.Unprocessable("Username must not contain a colon: basic authentication ends it there.")
	}
	return nil
}

// BrokerChange says what shall be different about a broker; nil leaves a value as it is.
type BrokerChange struct {
	Name     *string
	URL      *string
	Account  *BrokerAccount
	Metadata MetadataChange
}

// Asks tells whether the broker has to be asked for its catalog again.
func (c *BrokerChange) Asks() bool { return c.Name != nil || c.URL != nil || c.Account != nil }

// Apply changes a broker, if nothing is going on with it.
func (b *ServiceBroker) Apply(c BrokerChange) error {
	b.Metadata.Apply(c.Metadata)
	if !c.Asks() {
		return b.Metadata.Check()
	}
	if b.State == BrokerSynchronizing || b.State == BrokerDeleting {
		return fault.Unprocessable("Cannot update a broker when other operation is already in progress. Wait until it has ended.")
	}
	if c.Account != nil {
		if err := c.Account.Check(); err != nil {
			return err
		}
	}
	before := b.URL
	setIf(&b.Name, c.Name)
	setIf(&b.URL, c.URL)
	if err := b.Check(); err != nil {
		return err
	}
	if c.Account == nil && origin(before) != origin(b.URL) { // or whoever may change the address could have the password sent to themselves
		return fault.Unprocessable("The url leads to another host than before. Give the authentication for it, too.")
	}
	return nil
}

func origin(address string) string {
	at, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return at.Scheme + "://" + strings.ToLower(at.Host)
}

// The refusals about brokers. Clients compare the first.
var (
	ErrBrokerExists = fault.Unprocessable("Name must be unique")
	ErrPlanOfSpace  = fault.Unprocessable("The plan belongs to a broker of one space, and is visible there. Its visibility cannot be changed.")
)

// ErrBrokerInUse is for a broker that somebody has service instances of.
func ErrBrokerInUse(name string) error {
	return fault.Unprocessable("Can not remove brokers that have associated service instances: %s", name).WithCode("CF-ServiceBrokerNotRemovable")
}

// ErrBrokerOwes is for a broker that may still have what we asked it to delete.
func ErrBrokerOwes(name string, orphans int) error {
	return fault.Unprocessable("The broker %s has still to delete %d service instances or bindings that were given up here. Try again when it has; if it never will, purge its service offerings.", name, orphans).WithCode("CF-ServiceBrokerNotRemovable")
}

// ErrServiceInUse is for an offering or a plan that somebody has service instances of.
func ErrServiceInUse(what, name string) error {
	return fault.Unprocessable("There are service instances of the %s '%s'. Delete them first, or purge the service offering.", what, clipText(name))
}

// Maintenance is the version of what is behind a plan, as its broker numbers it.
type Maintenance struct {
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
}

// ServiceOffering is a kind of service that a broker provides.
type ServiceOffering struct {
	GUID                 string
	BrokerGUID           string
	BrokerName           string
	BrokerSpace          string // where the broker is only for one space
	UniqueID             string // the broker's
	Name                 string
	Description          string
	Active               bool // in the broker's catalog
	Bindable             bool
	PlanUpdateable       bool
	InstancesRetrievable bool
	BindingsRetrievable  bool
	ContextUpdates       bool
	Shareable            bool
	Tags                 []string
	Requires             []string
	DocumentationURL     string
	Catalog              json.RawMessage // what the broker says of it beside that, an object
	Metadata             Metadata
	CreatedAt            time.Time
	UpdatedAt            time.Time
}

// ServicePlan is a way in which a service can be had.
type ServicePlan struct {
	GUID           string
	OfferingGUID   string
	OfferingName   string
	BrokerGUID     string
	BrokerName     string
	BrokerSpace    string
	UniqueID       string
	Name           string
	Description    string
	Free           bool
	Active         bool
	Bindable       bool
	PlanUpdateable bool
	Visibility     Visibility
	MaxPolling     time.Duration // 0: as for all
	Maintenance    *Maintenance
	Catalog        json.RawMessage
	Schemas        json.RawMessage
	Metadata       Metadata
	CreatedAt      time.Time
	UpdatedAt      time.Time
}

// Visibility is who can have a plan.
type Visibility string

// The visibilities. Those of a broker for one space are that space's.
const (
	VisiblePublic       Visibility = "public"
	VisibleAdmin        Visibility = "admin"
	VisibleOrganization Visibility = "organization"
	VisibleSpace        Visibility = "space"
)

// PlanVisibility is who can have a plan, and which organizations that are.
type PlanVisibility struct {
	Type  Visibility
	Orgs  []Org // by guid and name
	Space Space // of a plan that is only for one
}

// Check says what is wrong with a visibility that somebody wants a plan to have.
func (v *PlanVisibility) Check() error {
	switch v.Type {
	case VisiblePublic, VisibleAdmin:
		if len(v.Orgs) > 0 {
			return fault.Unprocessable("Organizations can only be given with the type 'organization'.")
		}
	case VisibleOrganization:
		if len(v.Orgs) == 0 {
			return fault.Unprocessable("Organizations must name at least one organization, by its guid.")
		}
	default:
		return fault.Unprocessable("Type must be one of 'public', 'admin', 'organization'.")
	}
	return nil
}
