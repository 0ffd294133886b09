package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/platform"
)

// applyCatalog makes what a broker offers of what it says. Offerings and plans are known by the broker's ids: what is renamed keeps its
// guid, its notes and its visibility. What has gone is deleted, or kept for the instances that there are of it, which the warnings name.
// A catalog that cannot be used is refused with a fault that says all that is wrong with it.
func applyCatalog(ctx context.Context, tx pgx.Tx, broker platform.ServiceBroker, c platform.Catalog) (warnings []string, err error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, `select from service_brokers where guid = $1 for update`, broker.GUID); err != nil { // one at a time
		return nil, fmt.Errorf("lock service broker: %w", err)
	}
	offerings, plans := catalogRows(c)
	if err := putOfferings(ctx, tx, broker.GUID, offerings); err != nil {
		return nil, err
	}
	visibility := platform.VisibleAdmin
	if broker.SpaceGUID != "" {
		visibility = platform.VisibleSpace
	}
	if err := putPlans(ctx, tx, broker.GUID, plans, visibility); err != nil {
		return nil, err
	}
	return retire(ctx, tx, broker.GUID, plans, offerings)
}

// catalogOffering is an offering as it is sent to the database, which reads all of them in one statement.
type catalogOffering struct {
	GUID                 string          `json:"guid"`
	Place                int             `json:"place"`
	UniqueID             string          `json:"unique_id"`
	Name                 string          `json:"name"`
	Description          string          `json:"description"`
	Bindable             bool            `json:"bindable"`
	PlanUpdateable       bool            `json:"plan_updateable"`
	InstancesRetrievable bool            `json:"instances_retrievable"`
	BindingsRetrievable  bool            `json:"bindings_retrievable"`
	ContextUpdates       bool            `json:"context_updates"`
	Shareable            bool            `json:"shareable"`
	Tags                 []string        `json:"tags"`
	Requires             []string        `json:"requires"`
	DocumentationURL     string          `json:"documentation_url"`
	Catalog              json.RawMessage `json:"catalog_metadata"`
}

// catalogPlan is the same of a plan.
type catalogPlan struct {
	GUID           string                `json:"guid"`
	Place          int                   `json:"place"`
	Offering       string                `json:"offering"`
	UniqueID       string                `json:"unique_id"`
	Name           string                `json:"name"`
	Description    string                `json:"description"`
	Free           bool                  `json:"free"`
	Bindable       bool                  `json:"bindable"`
	PlanUpdateable bool                  `json:"plan_updateable"`
	MaxPolling     int                   `json:"max_polling"`
	Maintenance    *platform.Maintenance `json:"maintenance_info,omitempty"`
	Catalog        json.RawMessage       `json:"catalog_metadata"`
	Schemas        json.RawMessage       `json:"schemas"`
}

func catalogRows(c platform.Catalog) (offerings []catalogOffering, plans []catalogPlan) {
	for i, o := range c {
		offerings = append(offerings, catalogOffering{GUID: platform.NewGUID(), Place: i, UniqueID: o.UniqueID, Name: o.Name, Description: o.Description, Bindable: o.Bindable,
			PlanUpdateable: o.PlanUpdateable, InstancesRetrievable: o.InstancesRetrievable, BindingsRetrievable: o.BindingsRetrievable, ContextUpdates: o.ContextUpdates,
			Shareable: o.Shareable, Tags: none(o.Tags), Requires: none(o.Requires), DocumentationURL: o.DocumentationURL, Catalog: o.Catalog})
		for _, p := range o.Plans {
			plans = append(plans, catalogPlan{GUID: platform.NewGUID(), Place: len(plans), Offering: o.UniqueID, UniqueID: p.UniqueID, Name: p.Name, Description: p.Description,
				Free: p.Free, Bindable: p.Bindable, PlanUpdateable: p.PlanUpdateable, MaxPolling: int(p.MaxPolling / time.Second), Maintenance: p.Maintenance,
				Catalog: p.Catalog, Schemas: p.Schemas})
		}
	}
	return offerings, plans
}

// putOfferings writes all of them. They are created in the order of the catalog, microseconds apart: lists show them so.
func putOfferings(ctx context.Context, tx pgx.Tx, broker string, offerings []catalogOffering) error {
	const told = `name, description, active, bindable, plan_updateable, instances_retrievable, bindings_retrievable, context_updates, shareable, tags, requires, documentation_url, catalog_metadata`
	_, err := tx.Exec(ctx, `insert into service_offerings as t (guid, broker_guid, unique_id, created_at, `+told+`)
		select guid, $1, unique_id, now() + place * interval '1 microsecond', name, description, true, bindable, plan_updateable, instances_retrievable, bindings_retrievable, context_updates, shareable,
			tags, requires, documentation_url, catalog_metadata
		from jsonb_to_recordset($2) x(guid text, place int, unique_id text, name text, description text, bindable bool, plan_updateable bool, instances_retrievable bool, bindings_retrievable bool,
			context_updates bool, shareable bool, tags text[], requires text[], documentation_url text, catalog_metadata jsonb)
		on conflict on constraint service_offering_id do update set (`+told+`, updated_at) = (`+of("excluded", told)+`, now())
		where (`+of("t", told)+`) is distinct from (`+of("excluded", told)+`)`, broker, offerings)
	if err != nil {
		return fmt.Errorf("write service offerings: %w", err)
	}
	return nil
}

// putPlans writes all of them. Visibility is for new ones.
func putPlans(ctx context.Context, tx pgx.Tx, broker string, plans []catalogPlan, visibility platform.Visibility) error {
	const told = `name, description, free, active, bindable, plan_updateable, max_polling, maintenance_info, catalog_metadata, schemas`
	_, err := tx.Exec(ctx, `insert into service_plans as t (guid, offering_guid, unique_id, visibility, created_at, `+told+`)
		select x.guid, o.guid, x.unique_id, $3, now() + place * interval '1 microsecond', x.name, x.description, x.free, true, x.bindable, x.plan_updateable, x.max_polling, x.maintenance_info,
			x.catalog_metadata, x.schemas
		from jsonb_to_recordset($2) x(guid text, place int, offering text, unique_id text, name text, description text, free bool, bindable bool, plan_updateable bool, max_polling int,
			maintenance_info jsonb, catalog_metadata jsonb, schemas jsonb) join service_offerings o on o.broker_guid = $1 and o.unique_id = x.offering
		on conflict on constraint service_plan_id do update set (`+told+`, updated_at) = (`+of("excluded", told)+`, now())
		where (`+of("t", told)+`) is distinct from (`+of("excluded", told)+`)`, broker, plans, visibility)
	if err != nil {
		return fmt.Errorf("write service plans: %w", err)
	}
	return nil
}

// of puts a table before each column.
func of(table, columns string) string {
	return table + "." + strings.ReplaceAll(columns, ", ", ", "+table+".")
}

// retire takes away what the catalog does not have any more. The plans are locked first: nobody makes an instance of one, or begins to change
// one to it, while we look whether there are any.
func retire(ctx context.Context, tx pgx.Tx, broker string, plans []catalogPlan, offerings []catalogOffering) (warnings []string, err error) {
	rows, err := tx.Query(ctx, `select t.guid from service_plans t join service_offerings o on o.guid = t.offering_guid
		where o.broker_guid = $1 and (o.unique_id, t.unique_id) not in (select x.offering, x.unique_id from jsonb_to_recordset($2) x(offering text, unique_id text))
		order by t.guid for update of t`, broker, plans)
	if err != nil {
		return nil, fmt.Errorf("lock service plans: %w", err)
	}
	gone, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("lock service plans: %w", err)
	}
	if _, err := tx.Exec(ctx, `delete from service_plans t where t.guid = any($1) and not exists (select from service_instances i where i.plan_guid = t.guid)
		and not exists (select from service_operations x where x.plan_guid = t.guid)`, gone); err != nil {
		return nil, fmt.Errorf("delete service plans: %w", err)
	}
	rows, err = tx.Query(ctx, `with kept as (update service_plans set active = false, updated_at = case when active then now() else updated_at end where guid = any($1) returning offering_guid, name)
		select '''' || kept.name || ''' of ''' || o.name || '''' from kept join service_offerings o on o.guid = kept.offering_guid order by 1`, gone)
	if err != nil {
		return nil, fmt.Errorf("retire service plans: %w", err)
	}
	kept, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("retire service plans: %w", err)
	}
	if len(kept) > 0 {
		warnings = append(warnings, platform.MissingPlans(kept))
	}
	return warnings, retireOfferings(ctx, tx, broker, offerings)
}

// retireOfferings deletes those without plans, and keeps the others for the instances of theirs.
func retireOfferings(ctx context.Context, tx pgx.Tx, broker string, offerings []catalogOffering) error {
	var has []string
	for _, o := range offerings {
		has = append(has, o.UniqueID)
	}
	if _, err := tx.Exec(ctx, `delete from service_offerings t where t.broker_guid = $1 and t.unique_id <> all($2) and not exists (select from service_plans p where p.offering_guid = t.guid)`, broker, has); err != nil {
		return fmt.Errorf("delete service offerings: %w", err)
	}
	if _, err := tx.Exec(ctx, `update service_offerings set active = false, updated_at = now() where broker_guid = $1 and unique_id <> all($2) and active`, broker, has); err != nil {
		return fmt.Errorf("retire service offerings: %w", err)
	}
	return nil
}
