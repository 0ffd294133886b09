package pgtest_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/kit/pg/pgtest"
)

// boats is different in each run of the tests, so that the template has to be made.
var boats = migrations(fmt.Sprintf("CREATE TABLE boat (name text); -- %d", time.Now().UnixNano()))

func migrations(sql string) fstest.MapFS {
	return fstest.MapFS{"00001_start.sql": {Data: []byte("-- +goose Up\n" + sql + "\n")}}
}

func count(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func exec1(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	if _, err := pool.Exec(context.Background(), sql); err != nil {
		t.Fatal(err)
	}
}

// maintenance is the server as the tests of this package see it from outside.
func maintenance(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool, err := pg.Open(t.Context(), os.Getenv("PROA_TEST_DATABASE_URL"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func exists(t *testing.T, pool *pgxpool.Pool, database string) bool {
	t.Helper()
	return count(t, pool, "SELECT count(*) FROM pg_database WHERE datname = $1", database) == 1
}

func TestEachTestHasItsOwnDatabase(t *testing.T) {
	admin := maintenance(t)
	var mu sync.Mutex
	var names []string
	t.Run("group", func(t *testing.T) {
		for i := range 12 {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				pool := pgtest.New(t, boats)
				exec1(t, pool, "INSERT INTO boat VALUES ('proa')")
				if n := count(t, pool, "SELECT count(*) FROM boat"); n != 1 {
					t.Errorf("%d boats", n)
				}
				if n := pool.Config().MaxConns; n != 8 {
					t.Errorf("%d connections at most", n)
				}
				mu.Lock()
				defer mu.Unlock()
				names = append(names, pool.Config().ConnConfig.Database)
			})
		}
	})
	for _, name := range names {
		if exists(t, admin, name) {
			t.Errorf("%s is still there", name)
		}
	}
}

// TestProcessesShareATemplate runs this test binary several times at once on migrations nobody has
// seen before. They draw a random number, so all processes see the same one only if they ran once.
func TestProcessesShareATemplate(t *testing.T) {
	const name = "PGTEST_MARK"
	if mark := os.Getenv(name); mark != "" {
		draw := "CREATE TABLE draw AS SELECT gen_random_uuid()::text AS id, pg_sleep(0.2)::text; -- "
		pool := pgtest.New(t, migrations(draw+mark))
		var id string
		if err := pool.QueryRow(t.Context(), "SELECT id FROM draw").Scan(&id); err != nil {
			t.Fatal(err)
		}
		fmt.Println("drew", id)
		return
	}
	mark := fmt.Sprintf("%s=%d", name, time.Now().UnixNano())
	drawn := make([]string, 4)
	var wg sync.WaitGroup
	for i := range drawn {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestProcessesShareATemplate$")
			cmd.Env = append(os.Environ(), mark)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
			drawn[i], _, _ = strings.Cut(string(out), "\n")
		})
	}
	wg.Wait()
	if got := slices.Compact(drawn); len(got) != 1 || !strings.HasPrefix(got[0], "drew ") {
		t.Errorf("got %q", got)
	}
}

func TestURLIsForAProgram(t *testing.T) {
	raw := pgtest.URL(t, boats, "fleet_version")
	pool, err := pg.Open(t.Context(), raw)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := pg.Migrate(t.Context(), pool, boats, "fleet_version"); err != nil {
		t.Errorf("a program cannot start on it: %v", err)
	}
	if n := count(t, pool, "SELECT count(*) FROM fleet_version"); n != 2 {
		t.Errorf("%d versions noted", n)
	}
}

func TestProgramStillConnectedAtTheEnd(t *testing.T) {
	admin := maintenance(t)
	var database string
	var pool *pgxpool.Pool
	t.Run("program", func(t *testing.T) {
		raw := pgtest.URL(t, nil)
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		database = strings.TrimPrefix(u.Path, "/")
		if pool, err = pg.Open(t.Context(), raw); err != nil {
			t.Fatal(err)
		}
	})
	defer pool.Close()
	if exists(t, admin, database) {
		t.Error("the database is still there")
	}
}

func TestLeftoversAreSwept(t *testing.T) {
	admin := maintenance(t)
	name := func(age time.Duration, end string) string {
		return fmt.Sprintf("proa_test_%d_%s_%d", time.Now().Add(-age).Unix(), end, os.Getpid())
	}
	old, inUse, young := name(2*time.Hour, "old"), name(2*time.Hour, "used"), name(time.Minute, "young")
	for _, db := range []string{old, inUse, young} {
		exec1(t, admin, "CREATE DATABASE "+db+" TEMPLATE template0")
		t.Cleanup(func() { exec1(t, admin, "DROP DATABASE IF EXISTS "+db+" WITH (FORCE)") })
	}
	u, err := url.Parse(os.Getenv("PROA_TEST_DATABASE_URL"))
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + inUse
	user, err := pg.Open(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer user.Close()

	pgtest.New(t, migrations(fmt.Sprintf("SELECT 1; -- %d", time.Now().UnixNano())))
	for db, want := range map[string]bool{old: false, inUse: true, young: true} {
		if exists(t, admin, db) != want {
			t.Errorf("%s: exists is %t", db, !want)
		}
	}
}

func TestBrokenMigrationLeavesNoTemplate(t *testing.T) {
	broken := migrations(fmt.Sprintf("SELECT no_such_column; -- %d", time.Now().UnixNano()))
	for range 2 { // the second try does not get a half-made template
		text := fatal(t, func(tb testing.TB) { pgtest.New(tb, broken) })
		if !strings.Contains(text, "no_such_column") {
			t.Errorf("got %q", text)
		}
	}
}

func TestUnsetVariableIsFatal(t *testing.T) {
	t.Setenv("PROA_TEST_DATABASE_URL", "")
	want := "PROA_TEST_DATABASE_URL is not set: run `make test`, or run `make test-db` and export what it prints."
	if got := fatal(t, func(tb testing.TB) { pgtest.New(tb, nil) }); got != want {
		t.Errorf("got %q", got)
	}
}

// recorder is a test that notes how it failed.
type recorder struct {
	testing.TB
	text string
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.text = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func fatal(t *testing.T, f func(testing.TB)) string {
	r := &recorder{TB: t}
	var wg sync.WaitGroup
	wg.Go(func() { f(r) })
	wg.Wait()
	return r.text
}
