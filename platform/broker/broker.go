// Package broker speaks the Open Service Broker API 2.17 to whoever provides services. It sends one request, reads one answer and says
// what came, in a platform.Answer: what that means is decided elsewhere, and so is whether to ask again.
package broker

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/proa-dev/proa/platform"
)

// Broker is one of them, and how to reach it. HTTP must not be nil: it brings the time that a request may take and whom to trust.
type Broker struct {
	URL     string // may have a path, and no slash at its end
	Account platform.BrokerAccount
	HTTP    *http.Client
}

// Call says what a request is about. Each takes what it needs of it.
type Call struct {
	InstanceID string
	BindingID  string
	ServiceID  string
	PlanID     string // of a poll of an update: the plan before it
	AppGUID    string // empty: a key
	Token      string // what the broker calls the operation that is polled

	Parameters  json.RawMessage // an object; empty: none
	Context     map[string]any  // where the instance is; the platform and the guids below are added to it
	Previous    *Previous       // of an update
	Maintenance *platform.Maintenance

	Who                platform.Actor // whom it is done for; zero: for nobody, such as a sweep
	OrgGUID, SpaceGUID string
}

// Previous is what an instance was before an update.
type Previous struct {
	ServiceID   string                `json:"service_id,omitempty"`
	PlanID      string                `json:"plan_id,omitempty"`
	OrgGUID     string                `json:"organization_id,omitempty"`
	SpaceGUID   string                `json:"space_id,omitempty"`
	Maintenance *platform.Maintenance `json:"maintenance_info,omitempty"`
}

// Provision asks for an instance.
func (b *Broker) Provision(ctx context.Context, c Call) platform.Answer {
	return b.ask(ctx, c, exchange{method: http.MethodPut, path: instancePath(c), query: later(), body: provisionBody(c), read: readInstance})
}

// Update asks to change an instance.
func (b *Broker) Update(ctx context.Context, c Call) platform.Answer {
	return b.ask(ctx, c, exchange{method: http.MethodPatch, path: instancePath(c), query: later(), body: updateBody(c), read: readInstance})
}

// Deprovision asks to delete an instance.
func (b *Broker) Deprovision(ctx context.Context, c Call) platform.Answer {
	return b.ask(ctx, c, exchange{method: http.MethodDelete, path: instancePath(c), query: named(c, later()), read: readDeletion})
}

// Bind asks for credentials of an instance.
func (b *Broker) Bind(ctx context.Context, c Call) platform.Answer {
	return b.ask(ctx, c, exchange{method: http.MethodPut, path: bindingPath(c), query: later(), body: bindBody(c), read: readBinding})
}

// Unbind asks to delete credentials.
func (b *Broker) Unbind(ctx context.Context, c Call) platform.Answer {
	return b.ask(ctx, c, exchange{method: http.MethodDelete, path: bindingPath(c), query: named(c, later()), read: readDeletion})
}

// InstanceOperation asks how far an operation on an instance is.
func (b *Broker) InstanceOperation(ctx context.Context, c Call) platform.Answer {
	return b.ask(ctx, c, exchange{method: http.MethodGet, path: append(instancePath(c), "last_operation"), query: operation(c), read: readOperation})
}

// BindingOperation asks how far an operation on a binding is.
func (b *Broker) BindingOperation(ctx context.Context, c Call) platform.Answer {
	return b.ask(ctx, c, exchange{method: http.MethodGet, path: append(bindingPath(c), "last_operation"), query: operation(c), read: readOperation})
}

// Instance asks what an instance is like.
func (b *Broker) Instance(ctx context.Context, c Call) platform.Answer {
	return b.ask(ctx, c, exchange{method: http.MethodGet, path: instancePath(c), query: named(c, url.Values{}), read: readInstance})
}

// Binding asks for the credentials of a binding that is there.
func (b *Broker) Binding(ctx context.Context, c Call) platform.Answer {
	return b.ask(ctx, c, exchange{method: http.MethodGet, path: bindingPath(c), query: named(c, url.Values{}), read: readBinding})
}

// Catalog asks what the broker offers. There is a catalog if the answer is 200 and not malformed.
func (b *Broker) Catalog(ctx context.Context) (platform.Catalog, platform.Answer) {
	var catalog platform.Catalog
	a := b.ask(ctx, Call{}, exchange{method: http.MethodGet, path: []string{"catalog"}, read: func(a *platform.Answer, body []byte) (err error) {
		catalog, err = readCatalog(a.Status, body)
		return err
	}})
	return catalog, a
}

func instancePath(c Call) []string { return []string{"service_instances", c.InstanceID} }

func bindingPath(c Call) []string { return append(instancePath(c), "service_bindings", c.BindingID) }

// later lets the broker answer before it is done.
func later() url.Values { return url.Values{"accepts_incomplete": {"true"}} }

func named(c Call, query url.Values) url.Values {
	query.Set("service_id", c.ServiceID)
	query.Set("plan_id", c.PlanID)
	return query
}

func operation(c Call) url.Values {
	query := named(c, url.Values{})
	if c.Token != "" {
		query.Set("operation", c.Token)
	}
	return query
}
