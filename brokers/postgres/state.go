package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/kit/seal"
)

//go:embed migrations/*.sql
var embedded embed.FS

// State is the broker's own database: what was asked for, and how far it came.
type State struct {
	pool *pgxpool.Pool
	box  *seal.Box
}

// OpenState connects and brings the schema up to date. The box seals the passwords.
func OpenState(ctx context.Context, url string, box *seal.Box) (*State, error) {
	pool, err := pg.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	migrations, err := fs.Sub(embedded, "migrations")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	if err := pg.Migrate(ctx, pool, migrations, "pgbroker_schema"); err != nil {
		pool.Close()
		return nil, err
	}
	return &State{pool: pool, box: box}, nil
}

// Close lets the connections go.
func (s *State) Close() { s.pool.Close() }

// Ping tells whether the database answers.
func (s *State) Ping(ctx context.Context) error { return s.pool.Ping(ctx) }

// kind is what an operation does.
type kind string

const (
	create kind = "create"
	update kind = "update"
	remove kind = "delete"
)

// The states of an operation, in the protocol's own words.
const (
	inProgress = "in progress"
	succeeded  = "succeeded"
	failed     = "failed"
)

// instance is a row: the instance, and the last operation on it.
type instance struct {
	ID, Plan            string
	Extensions          []string
	Organization, Space string
	Op                  kind
	OpID, OpState       string
	Said                string // why it failed
	ToPlan              string // where the operation leads
	ToExtensions        []string
	Age                 time.Duration // of the operation
	Tries               int
}

func (i instance) busy() bool { return i.OpState == inProgress }

// usable tells whether there is a database that may be used.
func (i instance) usable() bool {
	return i.Op == update || i.Op == create && i.OpState == succeeded
}

const instanceColumns = `id, plan, extensions, organization, space, op, op_id, op_state, op_said, op_plan, op_extensions, now() - op_since, op_tries`

func scanInstance(row pgx.CollectableRow) (i instance, err error) {
	err = row.Scan(&i.ID, &i.Plan, &i.Extensions, &i.Organization, &i.Space, &i.Op, &i.OpID, &i.OpState, &i.Said, &i.ToPlan, &i.ToExtensions, &i.Age, &i.Tries)
	return i, err
}

var errNoInstance = errors.New("no such instance")

const findInstance = `select ` + instanceColumns + ` from instances where id = $1`

// one reads the row that a query for an instance found.
func one(rows pgx.Rows, err error) (instance, error) {
	if err != nil {
		return instance{}, fmt.Errorf("find instance: %w", err)
	}
	i, err := pgx.CollectExactlyOneRow(rows, scanInstance)
	if pg.NoRows(err) {
		return i, errNoInstance
	}
	if err != nil {
		return i, fmt.Errorf("find instance: %w", err)
	}
	return i, nil
}

func (s *State) instance(ctx context.Context, id string) (instance, error) {
	return one(s.pool.Query(ctx, findInstance, id))
}

// add writes an instance that is to be created, or finds the one that has its id. One that goes while we look is written after all.
func (s *State) add(ctx context.Context, i instance) (instance, error) {
	found, err := s.addOnce(ctx, i)
	if errors.Is(err, errNoInstance) {
		found, err = s.addOnce(ctx, i)
	}
	return found, err
}

func (s *State) addOnce(ctx context.Context, i instance) (instance, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (instance, error) {
		_, err := tx.Exec(ctx, `insert into instances (id, plan, extensions, organization, space, op_id, op_plan, op_extensions)
			values ($1, $2, $3, $4, $5, $6, $2, $3) on conflict (id) do nothing`, i.ID, i.Plan, i.Extensions, i.Organization, i.Space, i.OpID)
		if err != nil {
			return i, fmt.Errorf("add instance: %w", err)
		}
		return one(tx.Query(ctx, findInstance, i.ID))
	})
}

// change lets decide say what to do with an instance, alone with it. An operation with another id than the row's is written and queued.
func (s *State) change(ctx context.Context, id string, decide func(*instance) error) (instance, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (instance, error) {
		i, err := one(tx.Query(ctx, findInstance+` for update`, id))
		if err != nil {
			return i, err
		}
		before := i.OpID
		if err := decide(&i); err != nil || i.OpID == before {
			return i, err
		}
		i.OpState, i.Said = inProgress, ""
		_, err = tx.Exec(ctx, `update instances set op = $2, op_id = $3, op_state = 'in progress', op_said = '', op_plan = $4, op_extensions = $5,
			op_since = now(), op_tries = 0, op_due = now(), leased_until = '-infinity' where id = $1`, i.ID, i.Op, i.OpID, i.ToPlan, i.ToExtensions)
		if err != nil {
			return i, fmt.Errorf("queue operation: %w", err)
		}
		return i, nil
	})
}

// claim takes the operation that is due longest, for as long as the lease; false when there is none.
func (s *State) claim(ctx context.Context, lease time.Duration) (instance, bool, error) {
	i, err := one(s.pool.Query(ctx, `update instances set leased_until = now() + $1, op_tries = op_tries + 1 where id = (
		select id from instances where op_state = 'in progress' and op_due <= now() and leased_until <= now() order by op_due limit 1 for update skip locked)
		returning `+instanceColumns, lease))
	if errors.Is(err, errNoInstance) {
		return i, false, nil
	}
	return i, err == nil, err
}

// release gives an operation back, to be taken up after a while.
func (s *State) release(ctx context.Context, i instance, after time.Duration) error {
	_, err := s.pool.Exec(ctx, `update instances set op_due = now() + $3, leased_until = '-infinity' where id = $1 and op_id = $2`, i.ID, i.OpID, after)
	return err
}

// finish ends an operation; said is empty when all went well.
func (s *State) finish(ctx context.Context, i instance, said string) error {
	sql, args := `update instances set op_state = 'succeeded', plan = op_plan, extensions = op_extensions where id = $1 and op_id = $2`, []any{i.ID, i.OpID}
	switch {
	case said != "":
		sql, args = `update instances set op_state = 'failed', op_said = $3 where id = $1 and op_id = $2`, append(args, said)
	case i.Op == remove:
		sql = `delete from instances where id = $1 and op_id = $2`
	}
	if _, err := s.pool.Exec(ctx, sql, args...); err != nil {
		return fmt.Errorf("finish operation: %w", err)
	}
	return nil
}

// binding is a row of its own.
type binding struct {
	ID, Instance, App string
	Password          string
	Ready             bool
}

var errNoBinding = errors.New("no such binding")

func sealContext(instance, id string) []byte { return []byte("binding " + instance + " " + id) }

func (s *State) binding(ctx context.Context, instance, id string) (binding, error) {
	b, sealed := binding{ID: id, Instance: instance}, []byte(nil)
	err := s.pool.QueryRow(ctx, `select app, password, ready from bindings where instance = $1 and id = $2`, instance, id).Scan(&b.App, &sealed, &b.Ready)
	if pg.NoRows(err) {
		return b, errNoBinding
	}
	if err != nil {
		return b, fmt.Errorf("find binding: %w", err)
	}
	password, err := s.box.Open(sealed, sealContext(instance, id))
	b.Password = string(password)
	return b, err
}

// addBinding writes a binding with a new password, or finds the one that has its id.
func (s *State) addBinding(ctx context.Context, instance, id, app string) (binding, error) {
	sealed, err := s.box.Seal([]byte(newPassword()), sealContext(instance, id))
	if err != nil {
		return binding{}, err
	}
	if _, err := s.pool.Exec(ctx, `insert into bindings (instance, id, app, password) values ($1, $2, $3, $4) on conflict do nothing`, instance, id, app, sealed); err != nil {
		return binding{}, fmt.Errorf("add binding: %w", err)
	}
	return s.binding(ctx, instance, id)
}

// setReady says whether a binding's login may be used.
func (s *State) setReady(ctx context.Context, instance, id string, ready bool) error {
	_, err := s.pool.Exec(ctx, `update bindings set ready = $3 where instance = $1 and id = $2`, instance, id, ready)
	return err
}

func (s *State) deleteBinding(ctx context.Context, instance, id string) error {
	_, err := s.pool.Exec(ctx, `delete from bindings where instance = $1 and id = $2`, instance, id)
	return err
}

// logins are the roles of an instance's bindings.
func (s *State) logins(ctx context.Context, instance string) ([]string, error) {
	rows, err := s.pool.Query(ctx, `select id from bindings where instance = $1 order by id`, instance)
	if err != nil {
		return nil, fmt.Errorf("list bindings: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for n, id := range ids {
		ids[n] = loginName(instance, id)
	}
	return ids, err
}
