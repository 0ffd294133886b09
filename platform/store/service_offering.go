package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

// An offering is seen by those who see one of its plans.
var serviceOfferings = noun[platform.ServiceOffering]{
	name: "Service offering", from: `service_offerings t join service_brokers b on b.guid = t.broker_guid`,
	columns: `t.guid, t.broker_guid, b.name, coalesce(b.space_guid, ''), t.unique_id, t.name, t.description, t.active, t.bindable, t.plan_updateable, t.instances_retrievable, t.bindings_retrievable,
		t.context_updates, t.shareable, t.tags, t.requires, t.documentation_url, t.catalog_metadata, t.labels, t.annotations, t.created_at, t.updated_at`,
	into: func(o *platform.ServiceOffering) []any {
		return []any{&o.GUID, &o.BrokerGUID, &o.BrokerName, &o.BrokerSpace, &o.UniqueID, &o.Name, &o.Description, &o.Active, &o.Bindable, &o.PlanUpdateable, &o.InstancesRetrievable, &o.BindingsRetrievable,
			&o.ContextUpdates, &o.Shareable, &o.Tags, &o.Requires, &o.DocumentationURL, &o.Catalog, &o.Metadata.Labels, &o.Metadata.Annotations, &o.CreatedAt, &o.UpdatedAt}
	},
	filters: map[string]string{"names": `t.name`, "available": `t.active::text`, "service_broker_guids": `t.broker_guid`, "service_broker_names": `b.name`},
	narrow: map[string]string{
		"space_guids":        itsPlans + inSpaces(`p`) + `))`,
		"organization_guids": itsPlans + inOrgs(`p`) + `))`,
	},
	order: map[string]string{"name": `t.name`}, labels: `t.labels`,
	open: func(q *query, who platform.Who) string {
		return itsPlans + seesPlan(q, who, `p`) + `))`
	},
}

const itsPlans = `exists(select from service_plans p where p.offering_guid = t.guid and (`

// inSpaces is the condition under which a plan of a broker (b) can be had in one of some spaces, with %[1]s for those.
func inSpaces(plan string) string {
	return plan + `.visibility = 'public' or b.space_guid = any(%[1]s) or ` + plan + `.visibility = 'organization'
		and ` + plan + `.guid in (select x.plan_guid from service_plan_orgs x join spaces y on y.org_guid = x.org_guid where y.guid = any(%[1]s))`
}

// inOrgs is the same for organizations.
func inOrgs(plan string) string {
	return plan + `.visibility = 'public' or b.space_guid in (select y.guid from spaces y where y.org_guid = any(%[1]s)) or ` + plan + `.visibility = 'organization'
		and ` + plan + `.guid in (select x.plan_guid from service_plan_orgs x where x.org_guid = any(%[1]s))`
}

// seesPlan is the condition under which somebody sees a plan of a broker (b): they can have it where they are, or there is an instance
// of it that they see.
func seesPlan(q *query, who platform.Who, plan string) string {
	seen := spacesOf(q, who, platform.Read)
	return plan + `.visibility = 'public'
		or ` + plan + `.visibility = 'organization' and ` + plan + `.guid in (select x.plan_guid from service_plan_orgs x where x.org_guid in (` + orgsOf(q, who, platform.Read) + `))
		or b.space_guid in (` + seen + `)
		or ` + plan + `.guid in (select i.plan_guid from service_instances i where i.space_guid in (` + seen + `))
		or ` + plan + `.guid in (select i.plan_guid from service_instance_shares x join service_instances i on i.guid = x.instance_guid where x.space_guid in (` + seen + `))`
}

// ServiceOfferings lists offerings.
func (s *Store) ServiceOfferings(ctx context.Context, who platform.Who, l platform.List) (platform.Page[platform.ServiceOffering], error) {
	return serviceOfferings.list(ctx, s.pool, who, l)
}

// ServiceOffering reads one offering.
func (s *Store) ServiceOffering(ctx context.Context, who platform.Who, guid string) (platform.ServiceOffering, error) {
	return serviceOfferings.find(ctx, s.pool, who, platform.Read, guid)
}

// ownsService refuses whoever may not change what a broker offers: administrators may, and of a broker of one space its developers.
func ownsService(ctx context.Context, tx pgx.Tx, who platform.Who, brokerSpace string) error {
	if brokerSpace == "" {
		return who.MayAdminister()
	}
	_, err := spaces.find(ctx, tx, who, platform.Develop, brokerSpace)
	if fault.Is(err, fault.KindNotFound) { // they see the service for another reason
		return platform.ErrForbidden
	}
	return err
}

func ownOffering(ctx context.Context, tx pgx.Tx, who platform.Who, guid string) (platform.ServiceOffering, error) {
	o, err := serviceOfferings.lock(ctx, tx, who, platform.Read, guid)
	if err != nil {
		return o, err
	}
	return o, ownsService(ctx, tx, who, o.BrokerSpace)
}

func recordOffering(ctx context.Context, tx pgx.Tx, who platform.Who, kind string, o platform.ServiceOffering, data map[string]any) error {
	target := platform.Actor{GUID: o.GUID, Type: "service_offering", Name: o.Name}
	return record(ctx, tx, who, platform.On("audit.service."+kind, target, "", "").With(data))
}

// UpdateServiceOffering changes what is noted on an offering.
func (s *Store) UpdateServiceOffering(ctx context.Context, who platform.Who, guid string, change platform.MetadataChange) (platform.ServiceOffering, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.ServiceOffering, error) {
		o, err := ownOffering(ctx, tx, who, guid)
		if err != nil {
			return o, err
		}
		o.Metadata.Apply(change)
		if err := o.Metadata.Check(); err != nil {
			return o, err
		}
		if _, err := tx.Exec(ctx, `update service_offerings set labels = $2, annotations = $3, updated_at = now() where guid = $1`, guid, o.Metadata.Labels, o.Metadata.Annotations); err != nil {
			return o, fmt.Errorf("save service offering: %w", err)
		}
		if err := recordOffering(ctx, tx, who, "update", o, map[string]any{}); err != nil {
			return o, err
		}
		return serviceOfferings.read(ctx, tx, guid)
	})
}

// DeleteServiceOffering removes an offering that nobody has anything of. It comes back with the next catalog that has it.
func (s *Store) DeleteServiceOffering(ctx context.Context, who platform.Who, guid string) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		o, err := ownOffering(ctx, tx, who, guid)
		if err != nil {
			return err
		}
		if used, err := plansUsed(ctx, tx, `offering_guid`, guid); err != nil || used {
			return orElse(err, platform.ErrServiceInUse("service offering", o.Name))
		}
		return dropOffering(ctx, tx, who, o, map[string]any{})
	})
}

func orElse(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// plansUsed tells whether there are instances of some plans, and lets nobody make one until the transaction ends.
func plansUsed(ctx context.Context, tx pgx.Tx, column, guid string) (used bool, err error) {
	if _, err := tx.Exec(ctx, `select from service_plans where `+column+` = $1 order by guid for update`, guid); err != nil {
		return false, fmt.Errorf("lock service plans: %w", err)
	}
	err = tx.QueryRow(ctx, `select exists(select from service_instances i join service_plans p on p.guid = i.plan_guid where p.`+column+` = $1)`, guid).Scan(&used)
	if err != nil {
		return false, fmt.Errorf("find service instances: %w", err)
	}
	return used, nil
}

func dropOffering(ctx context.Context, tx pgx.Tx, who platform.Who, o platform.ServiceOffering, data map[string]any) error {
	if _, err := tx.Exec(ctx, `delete from service_offerings where guid = $1`, o.GUID); err != nil {
		return fmt.Errorf("delete service offering: %w", err)
	}
	return recordOffering(ctx, tx, who, "delete", o, data)
}

// PurgeServiceOffering forgets an offering with all that there is of it. The broker is not asked, and not told: this is for one that
// has gone for good.
func (s *Store) PurgeServiceOffering(ctx context.Context, who platform.Who, guid string) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		o, err := serviceOfferings.lock(ctx, tx, who, platform.Administer, guid)
		if err != nil {
			return err
		}
		if _, err := plansUsed(ctx, tx, `offering_guid`, guid); err != nil {
			return err
		}
		const its = `(select i.guid from service_instances i join service_plans p on p.guid = i.plan_guid where p.offering_guid = $1)`
		for _, sql := range []string{
			`update service_bindings set held = false where held and instance_guid in ` + its,
			`update service_instances set held = false where held and guid in ` + its,
		} {
			if _, err := tx.Exec(ctx, sql, guid); err != nil {
				return fmt.Errorf("purge service offering: %w", err)
			}
		}
		purged, err := tx.Exec(ctx, `delete from service_instances where guid in `+its, guid)
		if err != nil {
			return fmt.Errorf("purge service instances: %w", err)
		}
		if _, err := tx.Exec(ctx, `delete from service_orphans where broker_guid = $1 and service_id = $2`, o.BrokerGUID, o.UniqueID); err != nil {
			return fmt.Errorf("purge orphans: %w", err)
		}
		return dropOffering(ctx, tx, who, o, map[string]any{"purge": true, "service_instances": purged.RowsAffected()})
	})
}
