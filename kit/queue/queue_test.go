package queue_test

import (
	"context"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/kit/pg/pgtest"
	"github.com/proa-dev/proa/kit/queue"
)

var steps = fstest.MapFS{"00001_start.sql": {Data: []byte("-- +goose Up\ncreate table guests (name text);\n")}}

type greet struct{ Name string }

func (greet) Kind() string { return "greet" }

// TestProcessesMigrateTogether starts several at once, as replicas do, and then queues a job with the row that it is about.
func TestProcessesMigrateTogether(t *testing.T) {
	url := pgtest.URL(t, nil)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			pool, err := pg.Open(t.Context(), url)
			if err != nil {
				t.Error(err)
				return
			}
			defer pool.Close()
			if err := pg.Migrate(t.Context(), pool, queue.With(steps), pg.DefaultTable); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	pool, err := pg.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	inserts := queue.Inserter(pool)
	for _, outcome := range []error{context.Canceled, nil} { // rolled back, and kept
		err := pg.Do(t.Context(), pool, func(tx pgx.Tx) error {
			if _, err := inserts.InsertTx(t.Context(), tx, greet{"ann"}, nil); err != nil {
				return err
			}
			return outcome
		})
		if err != outcome { //nolint:errorlint // it comes back as it is
			t.Fatal(err)
		}
	}
	var n int
	if err := pool.QueryRow(t.Context(), `select count(*) from river_job where kind = 'greet'`).Scan(&n); err != nil || n != 1 {
		t.Errorf("%d jobs: %v", n, err)
	}
}
