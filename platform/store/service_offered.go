package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

// offered is what a plan and its offering let somebody do with an instance in a space.
type offered struct {
	planID, planName        string
	offeringGUID, serviceID string
	offeringName            string
	brokerSpace             string // where the broker is only for one
	usable                  bool   // instances of it can be made in the space
	bindable, updateable    bool
	contextUpdates          bool
	shareable               bool
	instancesRetrievable    bool
	bindingsRetrievable     bool
	maintenance             *platform.Maintenance
}

// usableIn is the condition under which instances of a plan (p, with its offering o and broker b) can be made in the space $2.
const usableIn = `p.active and o.active and b.state <> 'DELETE_IN_PROGRESS' and (p.visibility = 'public' or coalesce(b.space_guid = $2, false) or p.visibility = 'organization'
	and exists(select from service_plan_orgs x join spaces s on s.org_guid = x.org_guid where x.plan_guid = p.guid and s.guid = $2))`

// readOffered reads a plan for an instance in a space.
func readOffered(ctx context.Context, tx pgx.Tx, plan, space string) (offered, error) {
	var o offered
	err := tx.QueryRow(ctx, `select p.unique_id, p.name, o.guid, o.unique_id, o.name, coalesce(b.space_guid, ''), `+usableIn+`, p.bindable, p.plan_updateable, o.context_updates, o.shareable,
		o.instances_retrievable, o.bindings_retrievable, p.maintenance_info
		from service_plans p join service_offerings o on o.guid = p.offering_guid join service_brokers b on b.guid = o.broker_guid where p.guid = $1`, plan, space).
		Scan(&o.planID, &o.planName, &o.offeringGUID, &o.serviceID, &o.offeringName, &o.brokerSpace, &o.usable, &o.bindable, &o.updateable, &o.contextUpdates, &o.shareable,
			&o.instancesRetrievable, &o.bindingsRetrievable, &o.maintenance)
	switch {
	case pg.NoRows(err):
		return o, platform.ErrInvalidPlan
	case err != nil:
		return o, fmt.Errorf("read service plan: %w", err)
	}
	return o, nil
}

// Surroundings are what instances refer to, by no more than their names and what leads from one to the next. Whoever sees an instance
// learns these, wherever they live: where it is shared from, and who offers it.
type Surroundings struct {
	Spaces    []platform.Space
	Orgs      []platform.Org
	Plans     []platform.ServicePlan
	Offerings []platform.ServiceOffering
	Brokers   []platform.ServiceBroker
}

// Surroundings reads them for instances that were found already: two statements, however many there are. Each stands in it once.
func (s *Store) Surroundings(ctx context.Context, spaces, plans []string) (Surroundings, error) {
	var all Surroundings
	seen := map[string]bool{}
	first := func(guid string) bool {
		again := seen[guid]
		seen[guid] = true
		return !again
	}
	rows, err := s.pool.Query(ctx, `select s.guid, s.name, o.guid, o.name from spaces s join orgs o on o.guid = s.org_guid where s.guid = any($1) order by s.guid`, spaces)
	if err != nil {
		return all, fmt.Errorf("read spaces: %w", err)
	}
	var space platform.Space
	var org platform.Org
	if _, err = pgx.ForEachRow(rows, []any{&space.GUID, &space.Name, &org.GUID, &org.Name}, func() error {
		space.OrgGUID = org.GUID
		all.Spaces = append(all.Spaces, space)
		if first(org.GUID) {
			all.Orgs = append(all.Orgs, org)
		}
		return nil
	}); err != nil {
		return all, fmt.Errorf("read spaces: %w", err)
	}
	rows, err = s.pool.Query(ctx, `select p.guid, p.name, o.guid, o.name, o.description, o.documentation_url, o.tags, b.guid, b.name
		from service_plans p join service_offerings o on o.guid = p.offering_guid join service_brokers b on b.guid = o.broker_guid where p.guid = any($1) order by p.guid`, plans)
	if err != nil {
		return all, fmt.Errorf("read plans: %w", err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (line struct {
		plan     platform.ServicePlan
		offering platform.ServiceOffering
		broker   platform.ServiceBroker
	}, err error) {
		o := &line.offering
		err = row.Scan(&line.plan.GUID, &line.plan.Name, &o.GUID, &o.Name, &o.Description, &o.DocumentationURL, &o.Tags, &line.broker.GUID, &line.broker.Name)
		line.plan.OfferingGUID, o.BrokerGUID = o.GUID, line.broker.GUID
		return line, err
	})
	if err != nil {
		return all, fmt.Errorf("read plans: %w", err)
	}
	for _, line := range found {
		all.Plans = append(all.Plans, line.plan)
		if first(line.offering.GUID) {
			all.Offerings = append(all.Offerings, line.offering)
		}
		if first(line.broker.GUID) {
			all.Brokers = append(all.Brokers, line.broker)
		}
	}
	return all, nil
}
