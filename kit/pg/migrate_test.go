package pg_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/kit/pg/pgtest"
)

// steps makes migrations 1, 2, ... of the given statements.
func steps(up ...string) fs.FS {
	fsys := fstest.MapFS{}
	for i, sql := range up {
		fsys[fmt.Sprintf("%05d_step.sql", i+1)] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + sql + "\n")}
	}
	return fsys
}

const (
	boat  = "CREATE TABLE boat (id int);"
	slow  = "SELECT pg_sleep(0.3);"
	first = "INSERT INTO boat VALUES (1);"
)

// TestMigrateManyAtOnce starts as many processes would: each with its own pool on an empty database.
func TestMigrateManyAtOnce(t *testing.T) {
	url := pgtest.URL(t, nil)
	var wg sync.WaitGroup
	for range 5 {
		pool := open(t, url)
		wg.Go(func() {
			if err := pg.Migrate(t.Context(), pool, steps(boat, slow, first), "boat_version"); err != nil {
				t.Error(err)
			}
			if n := one[int](t, pool, "SELECT count(*) FROM boat"); n != 1 {
				t.Errorf("returned with %d boats", n)
			}
		})
	}
	wg.Wait()
	pool := open(t, url)
	if n := one[int](t, pool, "SELECT count(*) FROM boat_version WHERE version_id > 0"); n != 3 {
		t.Errorf("%d migrations are noted", n)
	}
	if n := one[int](t, pool, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = "+
		"(SELECT oid FROM pg_database WHERE datname = current_database())"); n != 0 {
		t.Errorf("%d locks are left", n)
	}
}

func TestMigrateAgainAndFurther(t *testing.T) {
	pool := pgtest.New(t, nil)
	for _, fsys := range []fs.FS{
		steps(boat), steps(boat), steps(boat, first),
		steps(boat), // the previous release beside the next one
	} {
		if err := pg.Migrate(t.Context(), pool, fsys, ""); err != nil {
			t.Fatal(err)
		}
	}
	if n := one[int](t, pool, "SELECT count(*) FROM boat"); n != 1 {
		t.Errorf("%d boats", n)
	}
	if n := one[int](t, pool, "SELECT max(version_id) FROM "+pg.DefaultTable); n != 2 {
		t.Errorf("version %d", n)
	}
}

func TestMigrateFailureCanBeRepaired(t *testing.T) {
	pool := pgtest.New(t, nil)
	err := pg.Migrate(t.Context(), pool, steps(boat, first+"\nSELECT no_such_column;"), "")
	if err == nil || !strings.Contains(err.Error(), "no_such_column") {
		t.Errorf("got %v", err)
	}
	if n := one[int](t, pool, "SELECT count(*) FROM boat"); n != 0 {
		t.Error("half of the second migration is there")
	}
	if err := pg.Migrate(t.Context(), pool, steps(boat, first), ""); err != nil {
		t.Error(err)
	}
}

func TestMigrateIsNotTimedOutAndLeavesThePoolAlone(t *testing.T) {
	pool := open(t, with(t, pgtest.URL(t, nil), "statement_timeout=100ms"))
	if err := pg.Migrate(t.Context(), pool, steps(slow), ""); err != nil {
		t.Error(err)
	}
	if got := one[string](t, pool, "SHOW statement_timeout"); got != "100ms" {
		t.Errorf("statement_timeout is %s", got)
	}
	if n := pool.Stat().AcquiredConns(); n != 0 {
		t.Errorf("%d connections kept", n)
	}
}

func TestMigrateEndsWithItsContext(t *testing.T) {
	pool := pgtest.New(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err := pg.Migrate(ctx, pool, steps("SELECT pg_sleep(60);"), "")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if err := pg.Migrate(t.Context(), pool, steps(boat), ""); err != nil {
		t.Errorf("the lock is left: %v", err)
	}
}

func TestMigrateWithoutFilesIsAnError(t *testing.T) {
	if err := pg.Migrate(t.Context(), pgtest.New(t, nil), fstest.MapFS{}, ""); err == nil {
		t.Error("no error")
	}
}
