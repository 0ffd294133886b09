package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

// orphan notes that the broker may have what an operation was to make, and must not.
func orphan(ctx context.Context, tx pgx.Tx, t Errand) error {
	instance, binding := `i.guid = $1`, `''`
	if t.Kind.OfBinding() {
		instance, binding = `i.guid = (select x.instance_guid from service_bindings x where x.guid = $1)`, `$1`
	}
	_, err := tx.Exec(ctx, `insert into service_orphans (broker_guid, broker_url, credentials, service_id, plan_id, instance_guid, binding_guid)
		select b.guid, b.url, b.credentials, i.service_id, i.plan_id, i.guid, `+binding+` from service_instances i join service_plans p on p.guid = i.plan_guid
		join service_offerings o on o.guid = p.offering_guid join service_brokers b on b.guid = o.broker_guid where `+instance+` on conflict do nothing`, t.Subject)
	if err != nil {
		return fmt.Errorf("note orphan: %w", err)
	}
	return nil
}

// unorphan forgets what the broker is known not to have. With an instance, all of its bindings have gone.
func unorphan(ctx context.Context, tx pgx.Tx, instance, binding string) error {
	if _, err := tx.Exec(ctx, `delete from service_orphans where instance_guid = $1 and $2 in ('', binding_guid)`, instance, binding); err != nil {
		return fmt.Errorf("forget orphan: %w", err)
	}
	return nil
}

// Orphan is something that a broker is to delete, and how to reach the broker.
type Orphan struct {
	GUID              string
	BrokerGUID, URL   string
	Account           platform.BrokerAccount
	ServiceID, PlanID string
	InstanceID        string
	BindingID         string // empty: the instance itself
	Token             string // of its deletion, when the broker takes longer
	Tries             int    // this one included
	CreatedAt         time.Time
	sealed            []byte
}

// Kind is what its broker is asked.
func (o *Orphan) Kind() platform.OperationKind {
	if o.BindingID != "" {
		return platform.BindingDelete
	}
	return platform.InstanceDelete
}

// dueOrphans are those that can go, each with its place among those of its broker. Bindings go before their instance, and nothing goes
// while an operation on it is under way, so that what is being made is not missed; nor does a binding while its instance is being deleted.
const dueOrphans = `select x.guid, x.due_at, row_number() over (partition by x.broker_guid order by x.due_at, x.guid) as place from service_orphans x
	where x.due_at <= clock_timestamp() and not exists (select from service_operations o where o.subject = coalesce(nullif(x.binding_guid, ''), x.instance_guid))
	and not exists (select from service_operations o where o.subject = x.instance_guid and o.kind = 'service_instance.delete')
	and (x.binding_guid <> '' or not exists (select from service_orphans y where y.instance_guid = x.instance_guid and y.binding_guid <> '' and y.due_at < 'infinity'))`

// ClaimOrphans takes some that are due on for a while, and no more than some of each broker: one that is slow should not keep the others
// waiting. A broker that is still registered is reached as it is now.
func (s *Store) ClaimOrphans(ctx context.Context, n, each int, lease time.Duration) ([]Orphan, error) {
	rows, err := s.pool.Query(ctx, `update service_orphans t set tries = tries + 1, due_at = clock_timestamp() + $3
		from (select x.guid, coalesce(b.url, x.broker_url) as url, coalesce(b.credentials, x.credentials) as credentials from service_orphans x left join service_brokers b on b.guid = x.broker_guid
			where x.due_at <= clock_timestamp() and x.guid in (select y.guid from (`+dueOrphans+`) y where y.place <= $2 order by y.due_at limit $1) for update of x skip locked) d
		where t.guid = d.guid returning t.guid, t.broker_guid, d.url, d.credentials, t.service_id, t.plan_id, t.instance_guid, t.binding_guid, t.token, t.tries, t.created_at`, n, each, lease)
	if err != nil {
		return nil, fmt.Errorf("claim orphans: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Orphan, error) {
		var o Orphan
		err := row.Scan(&o.GUID, &o.BrokerGUID, &o.URL, &o.sealed, &o.ServiceID, &o.PlanID, &o.InstanceID, &o.BindingID, &o.Token, &o.Tries, &o.CreatedAt)
		return o, err
	})
	if err != nil {
		return nil, fmt.Errorf("claim orphans: %w", err)
	}
	return all, nil
}

// OpenOrphan reads how to log in to the broker of an orphan.
func (s *Store) OpenOrphan(o *Orphan) error {
	return s.open(o.sealed, "service broker "+o.BrokerGUID, &o.Account)
}

// EndOrphan forgets an orphan that its broker has deleted.
func (s *Store) EndOrphan(ctx context.Context, o Orphan) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error { return unorphan(ctx, tx, o.InstanceID, o.BindingID) })
}

// ParkOrphan puts an orphan off.
func (s *Store) ParkOrphan(ctx context.Context, o Orphan, token string, wait time.Duration, why string) error {
	_, err := s.pool.Exec(ctx, `update service_orphans set token = $2, due_at = clock_timestamp() + $3, last_error = $4 where guid = $1`, o.GUID, token, wait, why)
	if err != nil {
		return fmt.Errorf("park orphan: %w", err)
	}
	return nil
}

// AbandonOrphan keeps an orphan for people to look at.
func (s *Store) AbandonOrphan(ctx context.Context, o Orphan, why string) error {
	if _, err := s.pool.Exec(ctx, `update service_orphans set due_at = 'infinity', last_error = $2 where guid = $1`, o.GUID, why); err != nil {
		return fmt.Errorf("abandon orphan: %w", err)
	}
	return nil
}

// CountOrphans is how many wait, and how many of them were given up.
func (s *Store) CountOrphans(ctx context.Context) (waiting, abandoned int, err error) {
	err = s.pool.QueryRow(ctx, `select count(*) filter (where due_at < 'infinity'), count(*) filter (where due_at = 'infinity') from service_orphans`).Scan(&waiting, &abandoned)
	if err != nil {
		return 0, 0, fmt.Errorf("count orphans: %w", err)
	}
	return waiting, abandoned, nil
}
