package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/proa-dev/proa/platform"
)

type catalogReply struct {
	Services *[]offeringReply `json:"services"`
}

type offeringReply struct {
	ID                   string          `json:"id"`
	Name                 string          `json:"name"`
	Description          string          `json:"description"`
	Tags                 []string        `json:"tags"`
	Requires             []string        `json:"requires"`
	Bindable             bool            `json:"bindable"`
	InstancesRetrievable bool            `json:"instances_retrievable"`
	BindingsRetrievable  bool            `json:"bindings_retrievable"`
	ContextUpdates       bool            `json:"allow_context_updates"`
	Metadata             json.RawMessage `json:"metadata"`
	Plans                []planReply     `json:"plans"`
	updateable
}

type planReply struct {
	ID          string                `json:"id"`
	Name        string                `json:"name"`
	Description string                `json:"description"`
	Free        *bool                 `json:"free"`
	Bindable    *bool                 `json:"bindable"`
	MaxPolling  *float64              `json:"maximum_polling_duration"`
	Maintenance *platform.Maintenance `json:"maintenance_info"`
	Metadata    json.RawMessage       `json:"metadata"`
	Schemas     json.RawMessage       `json:"schemas"`
	updateable
}

// updateable is whether the plan of an instance can be changed. The first is how the specification spells it, and how it counts.
type updateable struct {
	Spelled *bool `json:"plan_updateable"`
	Meant   *bool `json:"plan_updatable"`
}

func (u updateable) or(otherwise bool) bool { return or(u.Spelled, or(u.Meant, otherwise)) }

func or(said *bool, otherwise bool) bool {
	if said == nil {
		return otherwise
	}
	return *said
}

func readCatalog(status int, body []byte) (platform.Catalog, error) {
	var said catalogReply
	if err := json.Unmarshal(body, &said); err != nil {
		return nil, err
	}
	if status != http.StatusOK || said.Services == nil {
		return nil, errors.New("the answer has no services")
	}
	catalog := platform.Catalog{}
	for _, o := range *said.Services {
		offering, err := o.offering()
		if err != nil {
			return nil, fmt.Errorf("services: %w", err)
		}
		catalog = append(catalog, offering)
	}
	return catalog, nil
}

func (o offeringReply) offering() (platform.CatalogOffering, error) {
	found := platform.CatalogOffering{ServiceOffering: platform.ServiceOffering{
		UniqueID: o.ID, Name: o.Name, Description: o.Description, Active: true,
		Bindable: o.Bindable, PlanUpdateable: o.or(false), InstancesRetrievable: o.InstancesRetrievable, BindingsRetrievable: o.BindingsRetrievable,
		ContextUpdates: o.ContextUpdates, Tags: append([]string{}, o.Tags...), Requires: append([]string{}, o.Requires...),
	}}
	var err error
	if found.Catalog, err = shaped(o.Metadata, '{', "{}"); err != nil {
		return found, fmt.Errorf("metadata: %w", err)
	}
	found.Shareable, found.DocumentationURL = known(found.Catalog)
	for _, p := range o.Plans {
		plan, err := p.plan(found.ServiceOffering)
		if err != nil {
			return found, fmt.Errorf("plans: %w", err)
		}
		found.Plans = append(found.Plans, plan)
	}
	return found, nil
}

// known reads the metadata that means something to us. It is free in form, so what is of another type is not there.
func known(metadata json.RawMessage) (shareable bool, documentation string) {
	var all map[string]any
	if err := json.Unmarshal(metadata, &all); err != nil {
		return false, ""
	}
	shareable, _ = all["shareable"].(bool)
	if at, _ := all["documentationUrl"].(string); webAddress(at) {
		documentation = at
	}
	return shareable, documentation
}

// maxPolling keeps what a broker says within what can be counted.
const maxPolling = 366 * 24 * 60 * 60

func (p planReply) plan(of platform.ServiceOffering) (platform.ServicePlan, error) {
	plan := platform.ServicePlan{
		OfferingName: of.Name, UniqueID: p.ID, Name: p.Name, Description: p.Description, Active: true,
		Free: or(p.Free, true), Bindable: or(p.Bindable, of.Bindable), PlanUpdateable: p.or(of.PlanUpdateable), Maintenance: p.Maintenance,
	}
	if p.MaxPolling != nil {
		plan.MaxPolling = time.Duration(min(max(*p.MaxPolling, 0), maxPolling)) * time.Second
	}
	var err error
	if plan.Catalog, err = shaped(p.Metadata, '{', "{}"); err != nil {
		return plan, fmt.Errorf("metadata: %w", err)
	}
	if plan.Schemas, err = shaped(p.Schemas, '{', "{}"); err != nil {
		return plan, fmt.Errorf("schemas: %w", err)
	}
	return plan, nil
}
