package platform

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/proa-dev/proa/kit/fault"
)

// ServiceInstance is a service that somebody has: one that a broker made, or credentials that its user provides.
type ServiceInstance struct {
	GUID          string
	SpaceGUID     string
	OrgGUID       string
	Name          string
	PlanGUID      string // empty: user-provided
	Tags          []string
	DashboardURL  string
	Maintenance   *Maintenance // that it has
	Upgradable    bool         // its plan has another
	LastOperation LastOperation
	Metadata      Metadata
	CreatedAt     time.Time
	UpdatedAt     time.Time
}

// Managed tells whether a broker made it.
func (i *ServiceInstance) Managed() bool { return i.PlanGUID != "" }

// LastOperation is what was last asked of a broker about a record.
type LastOperation struct {
	Type        string // create, update, delete
	State       OperationState
	Description string // a sentence: how far it is, or what went wrong
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// OperationState is how far an operation is.
type OperationState string

// The states. Initial means that the broker was not asked yet.
const (
	OperationInitial   OperationState = "initial"
	OperationRunning   OperationState = "in progress"
	OperationSucceeded OperationState = "succeeded"
	OperationFailed    OperationState = "failed"
)

// Running tells whether the operation has not ended.
func (o LastOperation) Running() bool {
	return o.State == OperationInitial || o.State == OperationRunning
}

// Failed tells whether the operation is the record's creation, and has failed: there is nothing that could be used.
func (o LastOperation) Failed() bool { return o.Type == "create" && o.State == OperationFailed }

const maxTags = 2048 // characters of all together

// Check says what is wrong with an instance that somebody wants to have.
func (i *ServiceInstance) Check() error {
	if err := checkName(i.Name); err != nil {
		return err
	}
	size := 0
	for _, tag := range i.Tags {
		if tag == "" || strings.ContainsFunc(tag, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return fault.Unprocessable("Tags must not be empty, nor hold line breaks or control characters.")
		}
		size += utf8.RuneCountInString(tag)
	}
	if size > maxTags {
		return fault.Unprocessable("Tags may hold %d characters together: the combined length of tags for service %s must be %d characters or less.", maxTags, clipText(i.Name), maxTags)
	}
	return i.Metadata.Check()
}

// Free refuses a second operation while one goes on.
func (i *ServiceInstance) Free() error {
	if i.LastOperation.Running() {
		return ErrInstanceBusy(i.Name)
	}
	return nil
}

// BeingMade tells whether the broker is being asked for it. It can be deleted meanwhile: what the broker makes of it goes as well.
func (i *ServiceInstance) BeingMade() bool {
	return i.Managed() && i.LastOperation.Type == "create" && i.LastOperation.Running()
}

// Usable refuses an instance that is not there yet, or was never made.
func (i *ServiceInstance) Usable() error {
	if err := i.Free(); err != nil {
		return err
	}
	if i.LastOperation.Failed() {
		return fault.Unprocessable("Service instance '%s' could not be created. Delete it, and create it again.", i.Name)
	}
	return nil
}

// ErrInstanceBusy is for an instance of which something is being asked already. Clients compare its title.
func ErrInstanceBusy(name string) error {
	return fault.Conflict("An operation for service instance %s is in progress.", name).WithCode("CF-AsyncServiceInstanceOperationInProgress")
}

// ErrInstanceExists is for a second instance of a name in a space. Clients compare its words.
func ErrInstanceExists(name string) error {
	return fault.Unprocessable("The service instance name is taken: %s.", name)
}

// The refusals about plans. Clients show the first to people who cannot know more.
var (
	ErrInvalidPlan       = fault.Unprocessable("Invalid service plan. Ensure that the service plan exists, is available, and you have access to it.")
	ErrPlanOfOther       = fault.Unprocessable("The service plan belongs to another service offering. Choose a plan of the offering that the instance has.")
	ErrPlanFixed         = fault.Invalid("The service does not support changing plans.")
	ErrNoUpgrades        = fault.Unprocessable("The service broker does not support upgrades for service instances created from this plan.")
	ErrUnknownUpgrade    = fault.Unprocessable("maintenance_info.version requested is invalid. Please ensure the catalog is up to date and you are providing a version supported by this service plan.")
	ErrUpgradeAndPlan    = fault.Unprocessable("maintenance_info should not be changed when switching to different plan.")
	ErrNotBindable       = fault.Unprocessable("Service plan does not allow bindings.")
	ErrNoParameters      = fault.Invalid("This service does not support fetching service instance parameters.")
	ErrNoBindingSettings = fault.Invalid("This service does not support fetching service binding parameters.")
)

// InstanceChange says what shall be different about an instance; nil leaves a value as it is.
type InstanceChange struct {
	Name        *string
	Tags        *[]string
	PlanGUID    string          // managed; empty stays
	Parameters  json.RawMessage // managed; an object for the broker
	Maintenance *Maintenance    // managed
	Credentials json.RawMessage // user-provided; an object that replaces the former
	Metadata    MetadataChange
}

// OnlyNotes tells whether nothing but metadata changes.
func (c *InstanceChange) OnlyNotes() bool {
	return c.Name == nil && c.Tags == nil && c.PlanGUID == "" && c.Parameters == nil && c.Maintenance == nil && c.Credentials == nil
}

// Apply changes what can be changed without a broker.
func (i *ServiceInstance) Apply(c InstanceChange) error {
	setIf(&i.Name, c.Name)
	setIf(&i.Tags, c.Tags)
	i.Metadata.Apply(c.Metadata)
	return i.Check()
}

// CheckObject refuses what is no JSON object. Nothing and null are none.
func CheckObject(field string, raw json.RawMessage) (json.RawMessage, error) {
	text := bytes.TrimSpace(raw)
	if len(text) == 0 || string(text) == "null" {
		return nil, nil
	}
	if text[0] != '{' || !json.Valid(text) {
		return nil, fault.Unprocessable("%s must be an object", field)
	}
	return text, nil
}

// ErrSharedDelete is for an instance that other spaces use.
func ErrSharedDelete(name string) error {
	return fault.Unprocessable("Service instances must be unshared before they can be deleted. Unsharing %s will automatically delete any bindings that have been made to applications in other spaces.", name)
}
