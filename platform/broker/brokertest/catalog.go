package brokertest

import "encoding/json"

// The ids of Catalog.
const (
	ServiceID = "service-database"
	SmallID   = "plan-small"
	LargeID   = "plan-large"

	PlainServiceID = "service-plain"
	PlainPlanID    = "plan-plain"
)

// Catalog is what a broker offers unless it is told otherwise: a database that can do all there is, with a free and a paid plan, and a
// plain service of which nothing can be read back or changed.
const Catalog = `{"services": [
  {"id": "service-database", "name": "database", "description": "A database", "bindable": true, "plan_updateable": true,
   "instances_retrievable": true, "bindings_retrievable": true, "allow_context_updates": true, "tags": ["sql", "relational"],
   "metadata": {"displayName": "Database", "shareable": true, "documentationUrl": "https://docs.example.org/database"},
   "plans": [
     {"id": "plan-small", "name": "small", "description": "A small database", "free": true},
     {"id": "plan-large", "name": "large", "description": "A large database", "free": false,
      "metadata": {"costs": [{"amount": {"usd": 99.0}, "unit": "MONTHLY"}]}}]},
  {"id": "service-plain", "name": "plain", "description": "A plain service", "bindable": true,
   "plans": [{"id": "plan-plain", "name": "standard", "description": "The only plan"}]}]}`

// catalog is what is offered, and what the broker itself reads in it.
type catalog struct {
	text     string
	services map[string]service
}

type service struct {
	ID                   string `json:"id"`
	Bindable             bool   `json:"bindable"`
	PlanUpdateable       bool   `json:"plan_updateable"`
	InstancesRetrievable bool   `json:"instances_retrievable"`
	BindingsRetrievable  bool   `json:"bindings_retrievable"`
	Plans                []plan `json:"plans"`
}

type plan struct {
	ID             string `json:"id"`
	Bindable       *bool  `json:"bindable"`
	PlanUpdateable *bool  `json:"plan_updateable"`
	Maintenance    *struct {
		Version string `json:"version"`
	} `json:"maintenance_info"`
}

// SetCatalog offers something else from now on: the text as it is, be it a catalog or not. What there is of plans that it no longer has
// stays, and can be deleted.
func (b *Broker) SetCatalog(text string) {
	var read struct {
		Services []service `json:"services"`
	}
	_ = json.Unmarshal([]byte(text), &read) // of what is no catalog nothing can be had
	b.mu.Lock()
	defer b.mu.Unlock()
	b.catalog = catalog{text: text, services: map[string]service{}}
	for _, s := range read.Services {
		b.catalog.services[s.ID] = s
	}
}

func (c catalog) find(serviceID, planID string) (service, plan, bool) {
	s := c.services[serviceID]
	for _, p := range s.Plans {
		if p.ID == planID {
			return s, p, true
		}
	}
	return s, plan{}, false
}
