// Package postgres is a service broker that provides PostgreSQL databases: an offering with two plans, spoken over the Open
// Service Broker API.
//
// An instance is a database and a role that owns what is in it; a binding is a login of its own, which acts as that role. The
// database itself belongs to the broker's account, so that no tenant can lift the limits of its plan. What was asked for stands in
// the broker's own database, its state; the databases stand on a server, which may be another one.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"code.cloudfoundry.org/brokerapi/v13/domain"
)

// The ids by which platforms know the offering and its plans. They never change.
const (
	offeringID = "07e38270-b8ad-4d85-a7fd-3a2ff4b6bb91"
	freeID     = "b1c7d289-b0d7-43f7-9f3f-23990c2a2df4"
	standardID = "76182f2b-05c9-46c7-81df-cadc07b909b7"
)

// polling is how long platforms should ask after an operation. We give up before that, see Broker.Patience.
const polling = 2 * time.Hour

// Plan is what an instance may take.
type Plan struct {
	ID, Name string
	Price    int // euros a month; a plan that costs nothing is free
	Limits
}

// Limits are what plans differ in.
type Limits struct {
	Connections int           // to the database, of all bindings together
	Statement   time.Duration // after which a statement is cancelled, unless the session asks for another time
	TempFiles   int64         // bytes on disk for the sorts and joins of one process of a session
}

// Plans are the two that we have.
func Plans(free, standard Limits, price int) ([]Plan, error) {
	for _, l := range []Limits{free, standard} {
		if l.Connections < 1 || l.Connections > 100_000 || l.Statement < time.Millisecond || l.Statement > 24*time.Hour || l.TempFiles < 1<<20 || l.TempFiles > 1<<40 {
			return nil, errors.New("a plan needs 1 to 100000 connections, statements of 1ms to 24h, and 1MiB to 1TiB of temporary files")
		}
	}
	if price < 1 {
		return nil, errors.New("the plan standard needs a price of at least 1")
	}
	return []Plan{{ID: freeID, Name: "free", Limits: free}, {ID: standardID, Name: "standard", Price: price, Limits: standard}}, nil
}

func (p Plan) wire() domain.ServicePlan {
	free, longest := p.Price == 0, int(polling.Seconds())
	meta := &domain.ServicePlanMetadata{DisplayName: p.Name, Bullets: []string{
		fmt.Sprintf("%d connections", p.Connections),
		fmt.Sprintf("statements of %s, unless the app sets another time", p.Statement),
		fmt.Sprintf("%d MiB of temporary files for each session", p.TempFiles>>20),
	}}
	if !free {
		meta.Costs = []domain.ServicePlanCost{{Amount: map[string]float64{"eur": float64(p.Price)}, Unit: "MONTHLY"}}
	}
	return domain.ServicePlan{ID: p.ID, Name: p.Name, Description: fmt.Sprintf("A PostgreSQL database with %d connections", p.Connections), Free: &free,
		Metadata: meta, MaximumPollingDuration: &longest, Schemas: schemas()}
}

// schemas say which parameters there are, for platforms that check them.
func schemas() *domain.ServiceSchemas {
	object := func(properties map[string]any) domain.Schema {
		return domain.Schema{Parameters: map[string]any{
			"$schema": "http://json-schema.org/draft-04/schema#", "type": "object", "additionalProperties": false, "properties": properties}}
	}
	instance := object(map[string]any{"extensions": map[string]any{
		"type": "array", "description": "PostgreSQL extensions to have in the database", "items": map[string]any{"type": "string", "enum": extensions}}})
	return &domain.ServiceSchemas{
		Instance: domain.ServiceInstanceSchema{Create: instance, Update: instance},
		Binding:  domain.ServiceBindingSchema{Create: object(map[string]any{})},
	}
}

// Services is the catalog.
func (b *Broker) Services(context.Context) ([]domain.Service, error) {
	offering := domain.Service{
		ID: offeringID, Name: "postgres", Description: "PostgreSQL databases", Tags: []string{"postgres", "postgresql", "relational"},
		Bindable: true, InstancesRetrievable: true, BindingsRetrievable: true, PlanUpdatable: true,
		Metadata: &domain.ServiceMetadata{DisplayName: "PostgreSQL", LongDescription: "A PostgreSQL database of your own, with a login for each binding."},
	}
	for _, p := range b.Plans {
		offering.Plans = append(offering.Plans, p.wire())
	}
	return []domain.Service{offering}, nil
}

func (b *Broker) plan(id string) (Plan, bool) {
	for _, p := range b.Plans {
		if p.ID == id {
			return p, true
		}
	}
	return Plan{}, false
}
