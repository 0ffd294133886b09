package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

// A broker of a space is that space's; the others are the administrators'.
var serviceBrokers = noun[platform.ServiceBroker]{
	name: "Service broker", from: `service_brokers t`, space: `t.space_guid`, org: brokerOrg,
	columns: `t.guid, t.name, t.url, coalesce(t.space_guid, ''), coalesce(` + brokerOrg + `, ''), t.state, t.labels, t.annotations, t.created_at, t.updated_at`,
	into: func(b *platform.ServiceBroker) []any {
		return []any{&b.GUID, &b.Name, &b.URL, &b.SpaceGUID, &b.OrgGUID, &b.State, &b.Metadata.Labels, &b.Metadata.Annotations, &b.CreatedAt, &b.UpdatedAt}
	},
	filters: map[string]string{"names": `t.name`, "space_guids": `t.space_guid`}, order: map[string]string{"name": `t.name`}, labels: `t.labels`,
}

const brokerOrg = `(select x.org_guid from spaces x where x.guid = t.space_guid)`

func recordBroker(ctx context.Context, tx pgx.Tx, who platform.Who, kind string, b platform.ServiceBroker, data map[string]any) error {
	target := platform.Actor{GUID: b.GUID, Type: "service_broker", Name: b.Name}
	return record(ctx, tx, who, platform.On("audit.service_broker."+kind, target, b.OrgGUID, b.SpaceGUID).With(data))
}

// ServiceBrokers lists brokers.
func (s *Store) ServiceBrokers(ctx context.Context, who platform.Who, l platform.List) (platform.Page[platform.ServiceBroker], error) {
	return serviceBrokers.list(ctx, s.pool, who, l)
}

// ServiceBroker reads one broker.
func (s *Store) ServiceBroker(ctx context.Context, who platform.Who, guid string) (platform.ServiceBroker, error) {
	return serviceBrokers.find(ctx, s.pool, who, platform.Read, guid)
}

// CreateServiceBroker registers a broker, and has it asked what it offers.
func (s *Store) CreateServiceBroker(ctx context.Context, who platform.Who, b platform.ServiceBroker, account platform.BrokerAccount) (platform.Job, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Job, error) {
		if err := mayCreateBroker(ctx, tx, who, &b); err != nil {
			return platform.Job{}, err
		}
		if err := b.Check(); err != nil {
			return platform.Job{}, err
		}
		if err := account.Check(); err != nil {
			return platform.Job{}, err
		}
		b.GUID = platform.NewGUID()
		sealed, err := s.seal(account, "service broker "+b.GUID)
		if err != nil {
			return platform.Job{}, err
		}
		_, err = tx.Exec(ctx, `insert into service_brokers (guid, name, url, credentials, space_guid, state, labels, annotations) values ($1, $2, $3, $4, nullif($5, ''), $6, $7, $8)`,
			b.GUID, b.Name, b.URL, sealed, b.SpaceGUID, platform.BrokerSynchronizing, none2(b.Metadata.Labels), none2(b.Metadata.Annotations))
		if err != nil {
			return platform.Job{}, brokerConflict(err)
		}
		if err := recordBroker(ctx, tx, who, "create", b, map[string]any{"name": b.Name, "url": b.URL}); err != nil {
			return platform.Job{}, err
		}
		return s.synchronize(ctx, tx, who, platform.BrokerCreate, b.GUID, platform.Request{})
	})
}

// mayCreateBroker asks for an administrator, or for a developer of the only space that the broker is for.
func mayCreateBroker(ctx context.Context, tx pgx.Tx, who platform.Who, b *platform.ServiceBroker) error {
	if b.SpaceGUID == "" {
		return who.MayAdminister()
	}
	sp, err := spaces.named(ctx, tx, who, platform.Develop, b.SpaceGUID)
	if err != nil {
		return err
	}
	b.OrgGUID = sp.OrgGUID
	return allowed(ctx, tx, who, platform.FlagSpaceBrokers)
}

func brokerConflict(err error) error {
	switch name, _ := pg.Conflict(err); name {
	case "service_broker_name":
		return platform.ErrBrokerExists
	case "service_broker_space":
		return invalid("Space") // it went while we looked
	}
	return fmt.Errorf("write service broker: %w", err)
}

// synchronize has a broker asked for its catalog.
func (s *Store) synchronize(ctx context.Context, tx pgx.Tx, who platform.Who, kind platform.OperationKind, guid string, request platform.Request) (platform.Job, error) {
	job, err := insertJob(ctx, tx, who, string(kind), platform.JobProcessing)
	if err != nil {
		return job, err
	}
	return job, s.operate(ctx, tx, who, job, kind, guid, request)
}

// UpdateServiceBroker changes what is noted on a broker. All else changes when the broker has said what it offers under its new address
// and account: until then, and if it does not, it stays what it was.
func (s *Store) UpdateServiceBroker(ctx context.Context, who platform.Who, guid string, change platform.BrokerChange) (Asked[platform.ServiceBroker], error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (asked Asked[platform.ServiceBroker], err error) {
		b, err := serviceBrokers.lock(ctx, tx, who, platform.Develop, guid)
		if err != nil {
			return asked, err
		}
		state := b.State
		if err := b.Apply(change); err != nil {
			return asked, err
		}
		if change.Asks() {
			if asked.Job, err = s.askAgain(ctx, tx, who, b, change); err != nil {
				return asked, err
			}
			state = platform.BrokerSynchronizing
		}
		if _, err := tx.Exec(ctx, `update service_brokers set state = $2, labels = $3, annotations = $4, updated_at = now() where guid = $1`, guid, state, b.Metadata.Labels, b.Metadata.Annotations); err != nil {
			return asked, fmt.Errorf("save service broker: %w", err)
		}
		if err := recordBroker(ctx, tx, who, "update", b, map[string]any{"name": b.Name, "url": b.URL}); err != nil {
			return asked, err
		}
		asked.Record, err = serviceBrokers.read(ctx, tx, guid)
		return asked, err
	})
}

func (s *Store) askAgain(ctx context.Context, tx pgx.Tx, who platform.Who, b platform.ServiceBroker, change platform.BrokerChange) (*platform.Job, error) {
	var taken bool
	if err := tx.QueryRow(ctx, `select exists(select from service_brokers where name = $1 and guid <> $2)`, b.Name, b.GUID).Scan(&taken); err != nil {
		return nil, fmt.Errorf("find service broker: %w", err)
	}
	if taken {
		return nil, platform.ErrBrokerExists
	}
	request := platform.Request{Name: change.Name, Account: change.Account}
	if change.URL != nil {
		request.URL = b.URL
	}
	job, err := s.synchronize(ctx, tx, who, platform.BrokerUpdate, b.GUID, request)
	return &job, err
}

// DeleteServiceBroker removes a broker with what it offers, if nobody has any of it.
func (s *Store) DeleteServiceBroker(ctx context.Context, who platform.Who, guid string) (platform.Job, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Job, error) {
		b, err := serviceBrokers.lock(ctx, tx, who, platform.Develop, guid)
		if err != nil {
			return platform.Job{}, err
		}
		if err := mayDeleteBroker(ctx, tx, b); err != nil {
			return platform.Job{}, err
		}
		if _, err := tx.Exec(ctx, `delete from service_brokers where guid = $1`, guid); err != nil {
			return platform.Job{}, fmt.Errorf("delete service broker: %w", err)
		}
		if err := recordBroker(ctx, tx, who, "delete", b, map[string]any{}); err != nil {
			return platform.Job{}, err
		}
		return insertJob(ctx, tx, who, "service_broker.delete", platform.JobComplete)
	})
}

// mayDeleteBroker locks the plans first: nobody makes an instance of one while we look whether there are any. Orphans that were given up are
// with people, and keep no broker.
func mayDeleteBroker(ctx context.Context, tx pgx.Tx, b platform.ServiceBroker) error {
	const its = `(select p.guid from service_plans p join service_offerings o on o.guid = p.offering_guid where o.broker_guid = $1)`
	if _, err := tx.Exec(ctx, `select from service_plans where guid in `+its+` order by guid for update`, b.GUID); err != nil {
		return fmt.Errorf("lock service plans: %w", err)
	}
	var used bool
	var orphans int
	err := tx.QueryRow(ctx, `select exists(select from service_instances where plan_guid in `+its+`), (select count(*) from service_orphans where broker_guid = $1 and due_at < 'infinity')`, b.GUID).Scan(&used, &orphans)
	switch {
	case err != nil:
		return fmt.Errorf("find service instances: %w", err)
	case used:
		return platform.ErrBrokerInUse(b.Name)
	case orphans > 0:
		return platform.ErrBrokerOwes(b.Name, orphans)
	}
	return nil
}
