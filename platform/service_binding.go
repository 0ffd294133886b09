package platform

import (
	"encoding/json"
	"regexp"
	"time"

	"github.com/proa-dev/proa/kit/fault"
)

// BindingType is whom a binding is for.
type BindingType string

// The types.
const (
	BindingApp BindingType = "app"
	BindingKey BindingType = "key"
)

// ServiceBinding is a set of credentials for a service instance, for an app or as a key for whoever has it.
type ServiceBinding struct {
	GUID          string
	Type          BindingType
	Name          string // empty: the instance's
	InstanceGUID  string
	AppGUID       string // empty for a key
	SpaceGUID     string // the app's; the instance's for a key
	OrgGUID       string
	LastOperation LastOperation
	Metadata      Metadata
	CreatedAt     time.Time
	UpdatedAt     time.Time
}

// BindingDetails are what a binding gives. They are sealed where they are kept.
type BindingDetails struct {
	Credentials    json.RawMessage // an object
	SyslogDrainURL string
	VolumeMounts   json.RawMessage // a list
}

// maxBindings is how many an app can have to one instance: while credentials are rotated there are two.
const maxBindings = 5

var bindingName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// Check says what is wrong with a binding that somebody wants to have. A key needs a name; an app's binding has the instance's without one.
func (b *ServiceBinding) Check() error {
	switch {
	case b.Type == BindingKey:
		if err := checkName(b.Name); err != nil {
			return err
		}
	case b.Name != "" && !bindingName.MatchString(b.Name):
		return fault.Unprocessable("Name must be made of letters, digits, '.', '_' and '-'.")
	case len(b.Name) > maxName:
		return fault.Unprocessable("Name is too long (maximum is %d characters)", maxName)
	}
	return b.Metadata.Check()
}

// ErrBindingBusy is for a binding about which a broker is being asked already.
func ErrBindingBusy(app, instance string) error {
	if app == "" {
		return fault.Unprocessable("An operation for a key of service instance %s is in progress.", instance).WithCode("CF-AsyncServiceBindingOperationInProgress")
	}
	return fault.Unprocessable("An operation for the service binding between app %s and service instance %s is in progress.", app, instance).WithCode("CF-AsyncServiceBindingOperationInProgress")
}

// The refusals about bindings. Clients compare the words of the first two.
var (
	ErrBound       = fault.Unprocessable("The app is already bound to the service instance.")
	ErrNotShared   = fault.Unprocessable("The service instance and the app are in different spaces. Ensure the service instance is shared into this space.")
	ErrKeyProvided = fault.Unprocessable("Service credential bindings of type 'key' are not supported for user-provided service instances.")
)

// ErrKeyExists is for a second key of a name. Clients compare its words.
func ErrKeyExists(name string) error {
	return fault.Unprocessable("The binding name is invalid. Key binding names must be unique. The service instance already has a key binding with name '%s'.", name)
}

// MayBind refuses a binding of an app beside those that it has. One whose creation failed is in nobody's way. Binding again is how
// credentials are rotated: the newest count, and the older are taken away later.
func (i *ServiceInstance) MayBind(b ServiceBinding, again bool, has []ServiceBinding) error {
	here := 0
	for _, other := range has {
		switch {
		case other.LastOperation.Failed():
		case other.InstanceGUID == i.GUID:
			here++
		case b.Name != "" && other.Name == b.Name:
			return fault.Unprocessable("The binding name is invalid. App binding names must be unique. The app already has a binding with name '%s'.", b.Name)
		}
	}
	switch {
	case here > 0 && !again:
		return ErrBound
	case here >= maxBindings:
		return fault.Unprocessable("The app has too many bindings to this service instance (limit: %d). Delete those that it no longer needs.", maxBindings)
	}
	return nil
}
