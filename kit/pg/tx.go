package pg

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// attempts bounds how often a transaction is tried. The waits between them are random, up to 10,
// 20, 40, 80 and 160 ms: a third of a second together at most.
const attempts = 6

// InTx runs f in a transaction and commits when f returns no error. After an error or a panic it
// rolls back. When PostgreSQL gave up the transaction because of others (a serialization failure
// or a deadlock), f is run again from the start, so f must not change anything but the database.
func InTx[T any](ctx context.Context, pool *pgxpool.Pool, f func(pgx.Tx) (T, error)) (T, error) {
	for try := 1; ; try++ {
		v, err := once(ctx, pool, f)
		if err == nil {
			return v, nil
		}
		if try == attempts || !collision(err) || !pause(ctx, try) {
			var zero T
			return zero, err
		}
	}
}

// Do is InTx without a value.
func Do(ctx context.Context, pool *pgxpool.Pool, f func(pgx.Tx) error) error {
	_, err := InTx(ctx, pool, func(tx pgx.Tx) (struct{}, error) { return struct{}{}, f(tx) })
	return err
}

func once[T any](ctx context.Context, pool *pgxpool.Pool, f func(pgx.Tx) (T, error)) (T, error) {
	var zero T
	tx, err := pool.Begin(ctx)
	if err != nil {
		return zero, fmt.Errorf("begin transaction: %w", err)
	}
	defer rollback(ctx, tx)
	v, err := f(tx)
	if err != nil {
		return zero, err
	}
	if err := tx.Commit(ctx); err != nil {
		return zero, fmt.Errorf("commit transaction: %w", err)
	}
	return v, nil
}

// rollback does nothing after a commit. It works after ctx has ended too, which saves the
// connection; where it fails, pgx closes the connection, and that rolls back as well.
func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = tx.Rollback(ctx)
}

func collision(err error) bool {
	c := code(err)
	return c == "40001" || c == "40P01"
}

// pause waits before the next try, and says false when ctx ends first.
func pause(ctx context.Context, try int) bool {
	wait := rand.N(5 * time.Millisecond << try) //nolint:gosec // it keeps two apart, it keeps no secret
	select {
	case <-time.After(wait):
		return true
	case <-ctx.Done():
		return false
	}
}
