// Package store holds every SQL statement of the notification service, and queues a job in the transaction that it is about. An
// exported method is one transaction.
package store

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/kit/queue"
	"github.com/proa-dev/proa/notify"
)

//go:embed migrations/*.sql
var embedded embed.FS

// Migrations are the schema's steps, in order, and the queue's tables.
func Migrations() fs.FS {
	sub, err := fs.Sub(embedded, "migrations")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return queue.With(sub)
}

// Table is where goose notes which migrations were applied.
const Table = "notify_schema"

// Store keeps the records of the notification service in PostgreSQL.
type Store struct {
	pool  *pgxpool.Pool
	queue *river.Client[pgx.Tx] // inserts only
	Now   func() time.Time
}

// Open connects, and brings the schema, the queue's tables and the partitions up to date.
func Open(ctx context.Context, url string, now func() time.Time) (*Store, error) {
	// Partitions start empty and grow by a million: a plan that was cached for the empty one reads the whole of the full one.
	pool, err := pg.Open(ctx, url, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_custom_plan" })
	if err != nil {
		return nil, err
	}
	s, err := prepare(ctx, pool, now)
	if err != nil {
		pool.Close()
	}
	return s, err
}

func prepare(ctx context.Context, pool *pgxpool.Pool, now func() time.Time) (*Store, error) {
	if err := pg.Migrate(ctx, pool, Migrations(), Table); err != nil {
		return nil, err
	}
	s := &Store{pool: pool, queue: queue.Inserter(pool), Now: now}
	if err := s.Partitions(ctx); err != nil {
		return nil, err
	}
	if err := s.seed(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Pool is for the workers, which need one to work on the queue.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// Close lets the connections go.
func (s *Store) Close() { s.pool.Close() }

// Ping tells whether the database answers.
func (s *Store) Ping(ctx context.Context) error { return s.pool.Ping(ctx) }

// Who is the sender of a request, as the audit trail knows it.
type Who struct {
	Name      string // client, and user if there is one
	RequestID string
}

func audit(ctx context.Context, tx pgx.Tx, who Who, action, target string, detail map[string]any) error {
	if detail == nil {
		detail = map[string]any{}
	}
	body, err := json.Marshal(detail)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `insert into audit_events (action, target, actor, request_id, detail) values ($1, $2, $3, $4, $5)`, action, target, who.Name, who.RequestID, body)
	if err != nil {
		return fmt.Errorf("write audit event: %w", err)
	}
	return nil
}

// partitioned are the tables that are cut by day.
var partitioned = []string{"messages", "deliveries", "attempts"}

// partitionLock keeps processes that start together from making the same partitions.
const partitionLock = 0x6e6f7469

// ahead is how many days of partitions are made before they are needed.
const ahead = 7

// Partitions makes those of today and the days to come. Making one that is there does nothing.
func (s *Store) Partitions(ctx context.Context) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, partitionLock); err != nil {
			return err
		}
		for day := range ahead + 2 { // from yesterday on: a message may be a moment old
			from := s.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, day-1)
			for _, table := range partitioned {
				// Each delivery is written once and changed once: with room on its page the change touches no index.
				_, err := tx.Exec(ctx, fmt.Sprintf(`create table if not exists %s partition of %s for values from ('%s') to ('%s') with (fillfactor = 50)`,
					partition(table, from), table, from.Format(time.RFC3339), from.AddDate(0, 0, 1).Format(time.RFC3339)))
				if err != nil {
					return fmt.Errorf("make partition: %w", err)
				}
			}
		}
		return nil
	})
}

func partition(table string, day time.Time) string { return table + "_" + day.Format("20060102") }

// Forget drops the partitions of days that lie longer back than keep, and what else has run out. It says how many were dropped.
func (s *Store) Forget(ctx context.Context, keep time.Duration) (dropped int, err error) {
	oldest := s.Now().UTC().Add(-keep).Truncate(24 * time.Hour)
	rows, err := s.pool.Query(ctx, `select c.relname, p.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent
		where p.relname = any($1) and p.relnamespace = 'public'::regnamespace`, partitioned)
	if err != nil {
		return 0, fmt.Errorf("list partitions: %w", err)
	}
	type pair struct{ Child, Parent string }
	pairs, err := pgx.CollectRows(rows, pgx.RowToStructByPos[pair])
	if err != nil {
		return 0, err
	}
	for _, p := range pairs {
		day, err := time.Parse("20060102", p.Child[len(p.Parent)+1:])
		if err != nil || !day.Before(oldest) {
			continue
		}
		if _, err := s.pool.Exec(ctx, `drop table if exists `+pgx.Identifier{p.Child}.Sanitize()); err != nil {
			return dropped, fmt.Errorf("drop %s: %w", p.Child, err)
		}
		dropped++
	}
	_, err = s.pool.Exec(ctx, `delete from idempotency where expires_at < $1`, s.Now())
	return dropped, err
}

// skippedJSON writes the counts of those passed over; a missing map is an empty one.
func skippedJSON(skipped map[notify.Reason]int) []byte {
	if skipped == nil {
		return []byte("{}")
	}
	b, _ := json.Marshal(skipped) // a map of strings to numbers
	return b
}
