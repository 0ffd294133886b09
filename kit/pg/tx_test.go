package pg_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/kit/pg/pgtest"
)

// ledger gives a database with two accounts of 100.
func ledger(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.New(t, nil)
	exec(t, pool, "CREATE TABLE account (id int PRIMARY KEY, sum int NOT NULL)")
	exec(t, pool, "INSERT INTO account VALUES (1, 100), (2, 100)")
	return pool
}

func sum(t *testing.T, pool *pgxpool.Pool, id int) int {
	t.Helper()
	return one[int](t, pool, "SELECT sum FROM account WHERE id = $1", id)
}

func add(ctx context.Context, tx pgx.Tx, id, n int) error {
	_, err := tx.Exec(ctx, "UPDATE account SET sum = sum + $2 WHERE id = $1", id, n)
	return err
}

func TestInTxCommits(t *testing.T) {
	pool, ctx := ledger(t), t.Context()
	got, err := pg.InTx(ctx, pool, func(tx pgx.Tx) (string, error) { return "done", add(ctx, tx, 1, 5) })
	if got != "done" || err != nil || sum(t, pool, 1) != 105 {
		t.Errorf("got %q, %v, sum %d", got, err, sum(t, pool, 1))
	}
}

func TestInTxRollsBackOnError(t *testing.T) {
	pool, ctx, refused := ledger(t), t.Context(), errors.New("refused")
	got, err := pg.InTx(ctx, pool, func(tx pgx.Tx) (string, error) {
		if err := add(ctx, tx, 1, 5); err != nil {
			return "", err
		}
		return "half", refused
	})
	if got != "" || !errors.Is(err, refused) || sum(t, pool, 1) != 100 {
		t.Errorf("got %q, %v, sum %d", got, err, sum(t, pool, 1))
	}
}

func TestInTxRollsBackOnPanic(t *testing.T) {
	pool, ctx := ledger(t), t.Context()
	func() {
		defer func() {
			if v := recover(); v != "overboard" {
				t.Errorf("recovered %v", v)
			}
		}()
		_ = pg.Do(ctx, pool, func(tx pgx.Tx) error {
			if err := add(ctx, tx, 1, 5); err != nil {
				t.Error(err)
			}
			panic("overboard")
		})
	}()
	if sum(t, pool, 1) != 100 || pool.Stat().AcquiredConns() != 0 {
		t.Errorf("sum %d, %d connections kept", sum(t, pool, 1), pool.Stat().AcquiredConns())
	}
}

func TestInTxKeepsItsConnectionWhenTheContextEnds(t *testing.T) {
	pool := ledger(t)
	ctx, cancel := context.WithCancel(t.Context())
	var before uint32
	err := pg.Do(ctx, pool, func(tx pgx.Tx) error {
		before = tx.Conn().PgConn().PID()
		if err := add(ctx, tx, 1, 5); err != nil {
			return err
		}
		cancel()
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) || sum(t, pool, 1) != 100 {
		t.Errorf("got %v, sum %d", err, sum(t, pool, 1))
	}
	if after := one[int64](t, pool, "SELECT pg_backend_pid()"); after != int64(before) {
		t.Error("the connection was thrown away")
	}
}

// TestInTxRetriesSerializationFailure changes, between the read and the write of the first try, the
// row that a repeatable read transaction has seen.
func TestInTxRetriesSerializationFailure(t *testing.T) {
	pool, ctx, tries := ledger(t), t.Context(), 0
	got, err := pg.InTx(ctx, pool, func(tx pgx.Tx) (int, error) {
		tries++
		if _, err := tx.Exec(ctx, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"); err != nil {
			return 0, err
		}
		var seen int
		if err := tx.QueryRow(ctx, "SELECT sum FROM account WHERE id = 1").Scan(&seen); err != nil {
			return 0, err
		}
		if tries == 1 {
			exec(t, pool, "UPDATE account SET sum = 200 WHERE id = 1")
		}
		if _, err := tx.Exec(ctx, "UPDATE account SET sum = $1 WHERE id = 1", seen+1); err != nil {
			return 0, fmt.Errorf("save: %w", err)
		}
		return seen, nil
	})
	if err != nil || tries != 2 || got != 200 || sum(t, pool, 1) != 201 {
		t.Errorf("got %d, %v after %d tries, sum %d", got, err, tries, sum(t, pool, 1))
	}
}

func TestInTxRetriesAreBounded(t *testing.T) {
	pool, ctx, tries := ledger(t), t.Context(), 0
	got, err := pg.InTx(ctx, pool, func(tx pgx.Tx) (int, error) {
		tries++
		_, err := tx.Exec(ctx, "DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = 'serialization_failure'; END $$")
		return 7, err
	})
	var pgErr *pgconn.PgError
	if got != 0 || !errors.As(err, &pgErr) || pgErr.Code != "40001" || tries != 6 {
		t.Errorf("got %d, %v after %d tries", got, err, tries)
	}
}

func TestInTxDoesNotRetryOtherErrors(t *testing.T) {
	pool, ctx, tries := ledger(t), t.Context(), 0
	err := pg.Do(ctx, pool, func(tx pgx.Tx) error {
		tries++
		_, err := tx.Exec(ctx, "INSERT INTO account VALUES (1, 0)")
		return err
	})
	if _, ok := pg.Conflict(err); !ok || tries != 1 {
		t.Errorf("got %v after %d tries", err, tries)
	}
}

// TestInTxSurvivesDeadlock moves money both ways at once, each holding what the other needs next.
func TestInTxSurvivesDeadlock(t *testing.T) {
	pool, ctx := ledger(t), t.Context()
	var holding, done sync.WaitGroup
	holding.Add(2)
	tries := make([]int, 2)
	for i, way := range [][2]int{{1, 2}, {2, 1}} {
		done.Go(func() {
			err := pg.Do(ctx, pool, func(tx pgx.Tx) error {
				tries[i]++
				if _, err := tx.Exec(ctx, "SET LOCAL deadlock_timeout = '50ms'"); err != nil {
					return err
				}
				if err := add(ctx, tx, way[0], -10); err != nil {
					return err
				}
				if tries[i] == 1 {
					holding.Done()
					holding.Wait()
				}
				return add(ctx, tx, way[1], 10)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	if a, b := sum(t, pool, 1), sum(t, pool, 2); a != 100 || b != 100 {
		t.Errorf("sums %d and %d", a, b)
	}
	if tries[0]+tries[1] < 3 {
		t.Error("there was no deadlock")
	}
}

func TestInTxReportsASwallowedError(t *testing.T) {
	pool, ctx := ledger(t), t.Context()
	err := pg.Do(ctx, pool, func(tx pgx.Tx) error {
		_, _ = tx.Exec(ctx, "SELECT no_such_column")
		return nil
	})
	if !errors.Is(err, pgx.ErrTxCommitRollback) {
		t.Errorf("got %v", err)
	}
}
