// Package queue owns how Proa reaches River: its tables beside those of a product, and a client that queues jobs in the transactions of
// the rows that they are about. Which jobs there are and who works them belongs to the products.
package queue

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// With is migrations of a product that bring the tables of the queue along.
func With(steps fs.FS) fs.FS { return migrations{steps} }

type migrations struct{ fs.FS }

// Follow makes it pg.Followed.
func (migrations) Follow(ctx context.Context, pool *pgxpool.Pool) error { return Migrate(ctx, pool) }

// lock keeps processes that start together from migrating together.
const lock = 0x71756575 // "queu"

// Migrate brings the tables of the queue up to date. Any number of processes may do so at once.
func Migrate(ctx context.Context, pool *pgxpool.Pool) error {
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return fmt.Errorf("migrate the queue: %w", err)
	}
	// One of its steps cannot stand in a transaction with others, so the lock belongs to a connection.
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("migrate the queue: %w", err)
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, `select pg_advisory_lock($1)`, lock); err != nil {
		return fmt.Errorf("migrate the queue: %w", err)
	}
	defer func() { _, _ = conn.Exec(context.WithoutCancel(ctx), `select pg_advisory_unlock($1)`, lock) }()
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrate the queue: %w", err)
	}
	return nil
}

// Inserter is a client that queues jobs and works none. It asks nothing of the database before the first job.
func Inserter(pool *pgxpool.Pool) *river.Client[pgx.Tx] {
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{FetchCooldown: time.Millisecond}) // or a hint to the workers may be swallowed
	if err != nil {
		panic(err) // it only looks at the configuration, which stands above
	}
	return client
}
