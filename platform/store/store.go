// Package store holds every SQL statement of the platform. An exported method is one transaction.
//
// To add a noun: a migration with its table; a file with a noun value, which says where its records stand, which columns they have and
// where these go (see space.go); then its exported methods. The noun value brings list, find and lock: each is told who asks, and a find
// or lock what for. What changes a record also records an event, in the same transaction.
package store

import (
	"context"
	"embed"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/kit/queue"
	"github.com/proa-dev/proa/kit/seal"
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
const Table = "platform_schema"

// Store keeps the records of the platform in PostgreSQL.
type Store struct {
	pool  *pgxpool.Pool
	box   *seal.Box             // for what must not be read from a stolen database
	queue *river.Client[pgx.Tx] // inserts only
}

// Open connects, and brings the schema and the queue's tables up to date.
func Open(ctx context.Context, url string, box *seal.Box) (*Store, error) {
	pool, err := pg.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	if err := pg.Migrate(ctx, pool, Migrations(), Table); err != nil {
		pool.Close()
		return nil, err
	}
	return New(pool, box), nil
}

// New is a store on a pool that is migrated already.
func New(pool *pgxpool.Pool, box *seal.Box) *Store {
	return &Store{pool: pool, box: box, queue: queue.Inserter(pool)}
}

// Pool is for the workers, which need one to work on the queue.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// Close lets the connections go.
func (s *Store) Close() { s.pool.Close() }

// Ping tells whether the database answers.
func (s *Store) Ping(ctx context.Context) error { return s.pool.Ping(ctx) }
