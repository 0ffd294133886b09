package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/platform"
)

// isBound is true of a binding b that gives an app something: its creation has succeeded, and it is not on its way out.
// One that could not be deleted may still work; one without credentials that could not be deleted was never made.
const isBound = `(b.op_type = 'create' and b.op_state = 'succeeded' or b.op_type = 'delete' and b.op_state = 'failed' and b.credentials is not null)`

// boundServices reads what an app is bound to at this moment, with the credentials: where it has several bindings of one instance, those
// of the newest. They are opened here and nowhere else on their way into a release, which is sealed again.
func (s *Store) boundServices(ctx context.Context, tx pgx.Tx, app string) ([]platform.BoundService, error) {
	rows, err := tx.Query(ctx, `select distinct on (i.guid) b.guid, b.name, b.credentials, i.guid, i.name, i.credentials, i.plan_guid is not null, coalesce(o.name, ''), coalesce(p.name, ''),
			array(select distinct x from unnest(i.tags || coalesce(o.tags, '{}')) x order by x)
		from service_bindings b join service_instances i on i.guid = b.instance_guid left join service_plans p on p.guid = i.plan_guid left join service_offerings o on o.guid = p.offering_guid
		where b.app_guid = $1 and `+isBound+` order by i.guid, b.created_at desc, b.guid desc`, app)
	if err != nil {
		return nil, fmt.Errorf("read services: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (platform.BoundService, error) {
		var b platform.BoundService
		var details, provided []byte
		var managed bool
		if err := row.Scan(&b.BindingGUID, &b.BindingName, &details, &b.InstanceGUID, &b.InstanceName, &provided, &managed, &b.Label, &b.Plan, &b.Tags); err != nil {
			return b, err
		}
		if !managed { // what its user says now is what counts
			b.Label = platform.LabelUserProvided
			return b, s.open(provided, "service instance "+b.InstanceGUID, &b.Credentials)
		}
		var given platform.BindingDetails
		err := s.open(details, "service binding "+b.BindingGUID, &given)
		b.Credentials = given.Credentials
		return b, err
	})
	if err != nil {
		return nil, fmt.Errorf("read services: %w", err)
	}
	return all, nil
}

// manifestServices are the services of an app as its manifest names them.
func manifestServices(ctx context.Context, tx pgx.Tx, app string) ([]platform.ManifestService, error) {
	rows, err := tx.Query(ctx, `select name, binding_name from (select distinct on (i.guid) i.guid, i.name, b.name as binding_name
		from service_bindings b join service_instances i on i.guid = b.instance_guid where b.app_guid = $1 and `+isBound+` order by i.guid, b.created_at desc, b.guid desc) x order by name, guid`, app)
	if err != nil {
		return nil, fmt.Errorf("read services: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (platform.ManifestService, error) {
		var m platform.ManifestService
		err := row.Scan(&m.Name, &m.BindingName)
		return m, err
	})
	if err != nil {
		return nil, fmt.Errorf("read services: %w", err)
	}
	return all, nil
}
