package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

// Who sees a plan stands beside what follows from it: who sees its offering.
var servicePlans = noun[platform.ServicePlan]{
	name: "Service plan", from: `service_plans t join service_offerings o on o.guid = t.offering_guid join service_brokers b on b.guid = o.broker_guid`,
	columns: `t.guid, t.offering_guid, o.name, b.guid, b.name, coalesce(b.space_guid, ''), t.unique_id, t.name, t.description, t.free, t.active, t.bindable, t.plan_updateable, t.visibility,
		t.max_polling * 1000000000::bigint, t.maintenance_info, t.catalog_metadata, t.schemas, t.labels, t.annotations, t.created_at, t.updated_at`,
	into: func(p *platform.ServicePlan) []any {
		return []any{&p.GUID, &p.OfferingGUID, &p.OfferingName, &p.BrokerGUID, &p.BrokerName, &p.BrokerSpace, &p.UniqueID, &p.Name, &p.Description, &p.Free, &p.Active, &p.Bindable, &p.PlanUpdateable, &p.Visibility,
			&p.MaxPolling, &p.Maintenance, &p.Catalog, &p.Schemas, &p.Metadata.Labels, &p.Metadata.Annotations, &p.CreatedAt, &p.UpdatedAt}
	},
	filters: map[string]string{"names": `t.name`, "available": `t.active::text`, "broker_catalog_ids": `t.unique_id`, "service_offering_guids": `t.offering_guid`, "service_offering_names": `o.name`,
		"service_broker_guids": `o.broker_guid`, "service_broker_names": `b.name`},
	holding: map[string]string{"service_instance_guids": `select i.plan_guid from service_instances i where i.guid = any(%s)`},
	narrow:  map[string]string{"space_guids": inSpaces(`t`), "organization_guids": inOrgs(`t`)},
	order:   map[string]string{"name": `t.name`}, labels: `t.labels`,
	open: func(q *query, who platform.Who) string { return seesPlan(q, who, `t`) },
}

// ServicePlans lists plans.
func (s *Store) ServicePlans(ctx context.Context, who platform.Who, l platform.List) (platform.Page[platform.ServicePlan], error) {
	return servicePlans.list(ctx, s.pool, who, l)
}

// ServicePlan reads one plan.
func (s *Store) ServicePlan(ctx context.Context, who platform.Who, guid string) (platform.ServicePlan, error) {
	return servicePlans.find(ctx, s.pool, who, platform.Read, guid)
}

func ownPlan(ctx context.Context, tx pgx.Tx, who platform.Who, guid string) (platform.ServicePlan, error) {
	p, err := servicePlans.lock(ctx, tx, who, platform.Read, guid)
	if err != nil {
		return p, err
	}
	return p, ownsService(ctx, tx, who, p.BrokerSpace)
}

func recordPlan(ctx context.Context, tx pgx.Tx, who platform.Who, kind string, p platform.ServicePlan, data map[string]any) error {
	target := platform.Actor{GUID: p.GUID, Type: "service_plan", Name: p.Name}
	return record(ctx, tx, who, platform.On("audit."+kind, target, "", "").With(data))
}

// UpdateServicePlan changes what is noted on a plan.
func (s *Store) UpdateServicePlan(ctx context.Context, who platform.Who, guid string, change platform.MetadataChange) (platform.ServicePlan, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.ServicePlan, error) {
		p, err := ownPlan(ctx, tx, who, guid)
		if err != nil {
			return p, err
		}
		p.Metadata.Apply(change)
		if err := p.Metadata.Check(); err != nil {
			return p, err
		}
		if _, err := tx.Exec(ctx, `update service_plans set labels = $2, annotations = $3, updated_at = now() where guid = $1`, guid, p.Metadata.Labels, p.Metadata.Annotations); err != nil {
			return p, fmt.Errorf("save service plan: %w", err)
		}
		if err := recordPlan(ctx, tx, who, "service_plan.update", p, map[string]any{}); err != nil {
			return p, err
		}
		return servicePlans.read(ctx, tx, guid)
	})
}

// DeleteServicePlan removes a plan that nobody has an instance of. It comes back with the next catalog that has it.
func (s *Store) DeleteServicePlan(ctx context.Context, who platform.Who, guid string) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		p, err := ownPlan(ctx, tx, who, guid)
		if err != nil {
			return err
		}
		if used, err := plansUsed(ctx, tx, `guid`, guid); err != nil || used {
			return orElse(err, platform.ErrServiceInUse("service plan", p.Name))
		}
		if _, err := tx.Exec(ctx, `delete from service_plans where guid = $1`, guid); err != nil {
			return fmt.Errorf("delete service plan: %w", err)
		}
		return recordPlan(ctx, tx, who, "service_plan.delete", p, map[string]any{})
	})
}

// PlanVisibility tells who can have a plan. Of the organizations one learns those that one sees.
func (s *Store) PlanVisibility(ctx context.Context, who platform.Who, guid string) (platform.PlanVisibility, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.PlanVisibility, error) {
		p, err := servicePlans.find(ctx, tx, who, platform.Read, guid)
		if err != nil {
			return platform.PlanVisibility{}, err
		}
		return visibilityOf(ctx, tx, who, p)
	})
}

func visibilityOf(ctx context.Context, tx pgx.Tx, who platform.Who, p platform.ServicePlan) (platform.PlanVisibility, error) {
	v := platform.PlanVisibility{Type: p.Visibility}
	switch p.Visibility {
	case platform.VisibleSpace:
		found, err := spaces.list(ctx, tx, who, platform.Only([]string{p.BrokerSpace}))
		if err != nil || len(found.Records) == 0 { // who sees the plan by an instance that was shared does not see where it is from
			return v, err
		}
		v.Space = found.Records[0]
	case platform.VisibleOrganization:
		rows, err := tx.Query(ctx, `select org_guid from service_plan_orgs where plan_guid = $1`, p.GUID)
		if err != nil {
			return v, fmt.Errorf("find organizations: %w", err)
		}
		guids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return v, fmt.Errorf("find organizations: %w", err)
		}
		found, err := orgs.list(ctx, tx, who, platform.Only(guids))
		if err != nil {
			return v, err
		}
		v.Orgs = found.Records
	}
	return v, nil
}

// SetPlanVisibility changes who can have a plan. Organizations replace those that can have it, or are added to them.
func (s *Store) SetPlanVisibility(ctx context.Context, who platform.Who, guid string, v platform.PlanVisibility, add bool) (platform.PlanVisibility, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.PlanVisibility, error) {
		p, err := lockVisibility(ctx, tx, who, guid)
		if err != nil {
			return v, err
		}
		if err := v.Check(); err != nil {
			return v, err
		}
		if !add || v.Type != platform.VisibleOrganization || p.Visibility != platform.VisibleOrganization {
			if _, err := tx.Exec(ctx, `delete from service_plan_orgs where plan_guid = $1`, guid); err != nil {
				return v, fmt.Errorf("clear visibility: %w", err)
			}
		}
		guids, err := showTo(ctx, tx, p.GUID, v.Orgs)
		if err != nil {
			return v, err
		}
		if _, err := tx.Exec(ctx, `update service_plans set visibility = $2, updated_at = now() where guid = $1`, guid, v.Type); err != nil {
			return v, fmt.Errorf("save service plan: %w", err)
		}
		p.Visibility = v.Type
		if err := recordPlan(ctx, tx, who, "service_plan_visibility.update", p, map[string]any{"type": v.Type, "organizations": guids}); err != nil {
			return v, err
		}
		return visibilityOf(ctx, tx, who, p)
	})
}

// lockVisibility locks a plan for an administrator who changes who can have it.
func lockVisibility(ctx context.Context, tx pgx.Tx, who platform.Who, guid string) (platform.ServicePlan, error) {
	p, err := servicePlans.lock(ctx, tx, who, platform.Administer, guid)
	if err == nil && p.BrokerSpace != "" {
		err = platform.ErrPlanOfSpace
	}
	return p, err
}

// showTo adds the organizations, all of which must be there.
func showTo(ctx context.Context, tx pgx.Tx, plan string, to []platform.Org) ([]string, error) {
	guids := []string{}
	for _, o := range to {
		guids = append(guids, o.GUID)
	}
	slices.Sort(guids)
	guids = slices.Compact(guids)
	rows, err := tx.Query(ctx, `select guid from orgs where guid = any($1) order by guid for share`, guids)
	if err != nil {
		return nil, fmt.Errorf("find organizations: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("find organizations: %w", err)
	}
	if missing := slices.DeleteFunc(slices.Clone(guids), func(guid string) bool { return slices.Contains(found, guid) }); len(missing) > 0 {
		return nil, fault.Unprocessable("Could not find Organizations with guids: %s", strings.Join(missing[:min(len(missing), 10)], ", "))
	}
	if _, err := tx.Exec(ctx, `insert into service_plan_orgs (plan_guid, org_guid) select $1, unnest($2::text[]) on conflict do nothing`, plan, guids); err != nil {
		return nil, fmt.Errorf("write visibility: %w", err)
	}
	return guids, nil
}

// HideServicePlan takes a plan away from an organization. The instances that it has stay.
func (s *Store) HideServicePlan(ctx context.Context, who platform.Who, guid, org string) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		p, err := lockVisibility(ctx, tx, who, guid)
		if err != nil {
			return err
		}
		if p.Visibility != platform.VisibleOrganization {
			return fault.Unprocessable("Cannot delete organization level access for service plans with visibility type '%s'.", p.Visibility)
		}
		tag, err := tx.Exec(ctx, `delete from service_plan_orgs where plan_guid = $1 and org_guid = $2`, guid, org)
		if err != nil {
			return fmt.Errorf("delete visibility: %w", err)
		}
		if err := exactly(tag.RowsAffected(), "Service plan visibility"); err != nil {
			return err
		}
		return recordPlan(ctx, tx, who, "service_plan_visibility.delete", p, map[string]any{"organizations": []string{org}})
	})
}
