// Package pgtest owns the databases that tests run on: each test gets one of its own on a real
// PostgreSQL, already migrated, and it is gone when the test ends.
//
// Migrations run once for all: the first test that needs them, in whichever process, makes a
// template database, and every other test gets a copy of it. All names carry the time they were made:
//
//	proa_test_<unix time>_template_<hash of the migrations>
//	proa_test_<unix time>_<random>
//
// What is older than an hour and not in use was left by a run that was killed. Templates age the
// same way, and whoever makes the next one sweeps. An advisory lock in the maintenance database
// keeps them apart: copying shares it, making and sweeping hold it alone.
package pgtest

import (
	"cmp"
	"context"
	"io/fs"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proa-dev/proa/kit/pg"
)

const (
	variable = "PROA_TEST_DATABASE_URL"
	maxAge   = time.Hour
	lockKey  = 0x70726f61 // "proa"
	patience = 2 * time.Minute
	leaving  = 10 * time.Second
	maxConns = "8"
)

// New gives the test a database with the migrations of fsys, or an empty one when fsys is nil.
// The versions are noted in table, pg.DefaultTable when it is left out; a program under test that
// migrates too must use the same one.
func New(t testing.TB, fsys fs.FS, table ...string) *pgxpool.Pool {
	t.Helper()
	pool, err := pg.Open(t.Context(), URL(t, fsys, table...))
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		closed := make(chan struct{})
		go func() {
			pool.Close()
			close(closed)
		}()
		select {
		case <-closed:
		case <-time.After(leaving):
			t.Errorf("pgtest: the test ended with %d connections not given back", pool.Stat().AcquiredConns())
		}
	})
	return pool
}

// URL is New for a program under test: it connects by itself.
func URL(t testing.TB, fsys fs.FS, table ...string) string {
	t.Helper()
	s := connect(t)
	defer s.close()
	name, err := s.database(t.Context(), fsys, cmp.Or(append(table, pg.DefaultTable)...))
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		s := connect(t)
		defer s.close()
		if err := s.drop(context.Background(), name, "WITH (FORCE)"); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return s.url(name)
}
