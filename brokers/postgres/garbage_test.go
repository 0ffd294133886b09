package postgres_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/brokers/postgres"
)

func sweepFast(b *postgres.Broker) { b.Sweep = 50 * time.Millisecond }

// wantSoon waits until the server has this, and nothing is left to be dropped.
func (w *world) wantSoon(databases, owners, logins int) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if d, o, l := w.made(); len(d) == databases && len(o) == owners && len(l) == logins && w.garbage() == 0 {
			return
		}
	}
	w.wantMade(databases, owners, logins)
	w.t.Fatalf("%d roles are left to be dropped\n%s", w.garbage(), w.log.notes())
}

func (w *world) garbage() (n int) {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), plain(w.state))
	must(w.t, err)
	defer func() { _ = conn.Close(w.t.Context()) }()
	must(w.t, conn.QueryRow(w.t.Context(), `select count(*) from garbage`).Scan(&n))
	return n
}

// Names of roles are public. A tenant that hangs something of its own on another's roles, or keeps them locked, does not hold up the
// other's unbinding and deletion; what is left of the roles goes later.
func TestIsolationOfDeletion(t *testing.T) {
	for name, c := range map[string]struct {
		bait  string
		open  bool // its transaction stays open
		stays int  // logins and owners that stay for as long as the bait does
	}{
		"grant":               {bait: `create table bait (n int); grant select on bait to LOGIN, OWNER`},
		"grant of a column":   {bait: `create table bait (n int); grant select (n) on bait to LOGIN, OWNER`},
		"policy":              {bait: `create table bait (n int); create policy p on bait to LOGIN, OWNER`},
		"default privileges":  {bait: `alter default privileges grant select on tables to LOGIN, OWNER`},
		"large object":        {bait: `select lo_create(4711); grant select on large object 4711 to LOGIN, OWNER`},
		"of the login itself": {bait: `set role none; create schema bait; grant usage on schema bait to LOGIN, OWNER`},
		"grant passed on":     {bait: `create table bait (n int); grant select on bait to SELF with grant option; set role none; grant select on bait to LOGIN, OWNER`, stays: 1},
		"open transaction":    {bait: `create table bait (n int); begin; grant select on bait to LOGIN, OWNER`, open: true},
		"locked database":     {bait: `set role none; begin; alter role session_user in database DATABASE set work_mem = '1MB'`, open: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, sweepFast)
			w.ready("one", 0)
			w.ready("two", 1)
			mine, yours := credentials(w.want(201, w.bind("one", "a"))), credentials(w.want(201, w.bind("two", "a")))
			w.want(201, w.bind("two", "b"))
			app := w.connect(yours)
			conn := w.connect(mine)
			owner := strings.Replace(yours.Database, "db_", "owner_", 1)
			sql(t, conn, strings.NewReplacer("SELF", mine.Username, "LOGIN", yours.Username, "OWNER", owner, "DATABASE", yours.Database).Replace(c.bait))

			begin := time.Now()
			w.want(200, w.unbind("two", "a"))
			w.want(410, w.unbind("two", "a"))
			if _, err := app.Exec(t.Context(), `select 1`); err == nil {
				t.Error("the session goes on after its binding is gone")
			}
			w.refused(yours.URI, "28P01", "28000")
			w.want(202, w.delete("two"))
			w.wantEnd("two", "gone")
			if took := time.Since(begin); took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
			if c.open && !conn.IsClosed() {
				_, _ = conn.Exec(t.Context(), `commit`) // what it did stays, unless the session was ended
			}
			if c.stays == 0 {
				w.wantSoon(1, 1, 1)
			}
			w.wantMade(1, 1+c.stays, 1+c.stays)
			sql(t, w.connect(mine), `create table still_mine (n int)`)
			w.want(202, w.delete("one"))
			w.wantEnd("one", "gone")
			w.wantSoon(0, 0, 0)
		})
	}
}

// A role that is needed again before it could be dropped is not dropped under whoever uses it.
func TestGarbageIsNeededAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sweepFast)
	w.ready("one", 0)
	w.ready("two", 1)
	mine, yours := credentials(w.want(201, w.bind("one", "a"))), credentials(w.want(201, w.bind("two", "a")))
	conn := w.connect(mine)
	sql(t, conn, `create table bait (n int); begin; grant select on bait to `+yours.Username+`, `+strings.Replace(yours.Database, "db_", "owner_", 1))
	w.want(200, w.unbind("two", "a"))
	if w.garbage() != 1 {
		t.Errorf("%d roles are left to be dropped, want 1", w.garbage())
	}
	again := credentials(w.want(201, w.bind("two", "a")))
	if again.Password == yours.Password {
		t.Error("the binding has its old password")
	}
	w.refused(yours.URI, "28P01")
	app := w.connect(again)
	sql(t, app, `create table boats (n int)`)
	w.want(202, w.delete("two"))
	w.wantEnd("two", "gone")
	w.ready("two", 1)
	again = credentials(w.want(201, w.bind("two", "a")))
	sql(t, conn, `commit`)
	time.Sleep(500 * time.Millisecond) // ten turns of the sweep, which must find nothing to do
	sql(t, w.connect(again), `create table boats (n int)`)
	w.wantMade(2, 2, 2)
	w.want(200, w.unbind("two", "a"))
	w.want(202, w.delete("two"))
	w.wantEnd("two", "gone")
	w.wantSoon(1, 1, 1)
}

// Whoever has stolen credentials cannot keep them by a change of the login that is never committed.
func TestUnbindOfAThief(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ready("one", 0)
	a := credentials(w.want(201, w.bind("one", "a")))
	sql(t, w.connect(a), `set role none; begin; alter role session_user password 'x'`)
	w.want(200, w.unbind("one", "a"))
	w.refused(a.URI, "28P01", "28000")
	w.wantMade(1, 1, 0)
}

// A session that is let in while its login is shut out, and that nobody can see yet, is ended too.
func TestUnbindOfASessionThatBegins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ready("one", 0)
	a := credentials(w.want(201, w.bind("one", "a")))
	w.exec(`begin; alter database ` + a.Database + ` rename to ` + a.Database + `_x`) // a login waits for this after its password was found right
	late := make(chan *pgx.Conn)
	go func() {
		conn, err := pgx.Connect(t.Context(), a.URI)
		if err != nil {
			conn = nil // ended in time
		}
		late <- conn
	}()
	waiting := func(n int) {
		t.Helper()
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			if len(w.list(`select pid::text from pg_locks where not granted and locktype = 'object' and classid = 'pg_database'::regclass
				and objid = (select oid from pg_database where datname = $1)`, a.Database+"_x")) == n {
				return
			}
		}
		t.Fatalf("no %d sessions wait", n)
	}
	waiting(1)
	answer := make(chan reply)
	go func() {
		r, _ := w.try(http.MethodDelete, w.at("one")+"/service_bindings/a"+w.query(), nil)
		answer <- r
	}()
	waiting(2) // the broker has shut the login out, and wants to get in
	w.exec(`rollback`)
	w.want(200, <-answer)
	if conn := <-late; conn != nil {
		if _, err := conn.Exec(t.Context(), `select 1`); err == nil {
			t.Error("a session survives its login")
		}
		_ = conn.Close(t.Context())
	}
	w.wantMade(1, 1, 0)
}
