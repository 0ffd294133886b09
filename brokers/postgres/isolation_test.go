package postgres_test

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/brokers/postgres"
)

// fails wants a statement to be refused with a code.
func fails(t *testing.T, conn *pgx.Conn, code, sql string) {
	t.Helper()
	_, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	if err == nil || !strings.Contains(err.Error(), "SQLSTATE "+code) {
		t.Errorf("%s: %v, want %s", sql, err, code)
	}
}

// in is the same login at another database of the server.
func in(t *testing.T, uri, database string) string {
	t.Helper()
	u, err := url.Parse(uri)
	must(t, err)
	u.Path = "/" + database
	return u.String()
}

// The credentials of one binding open its database and nothing else.
func TestIsolation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ready("one", 0)
	w.ready("two", 1)
	mine, yours := credentials(w.want(201, w.bind("one", "a"))), credentials(w.want(201, w.bind("two", "a")))
	owner := w.connect(yours)
	sql(t, owner, `create table secrets (text text); insert into secrets values ('treasure')`)

	// With psql, as whoever has stolen them would.
	out, err := psql(t, in(t, mine.URI, yours.Database), `select * from secrets`)
	if err == nil || strings.Contains(out, "treasure") || !strings.Contains(out, "permission denied for database") {
		t.Errorf("psql with the other's credentials: %v\n%s", err, out)
	}
	if out, err := psql(t, yours.URI, `select * from secrets`); err != nil || !strings.Contains(out, "treasure") { // proof that the above can succeed
		t.Errorf("psql with the right credentials: %v\n%s", err, out)
	}
	for _, other := range []string{yours.Database, "postgres", "template1", database(t, w.server), database(t, w.state)} {
		w.refused(in(t, mine.URI, other), "42501")
	}
	w.refused(in(t, mine.URI, "template0"), "55000")
	wrong, err := url.Parse(mine.URI)
	must(t, err)
	wrong.User = url.UserPassword(yours.Username, mine.Password)
	wrong.Path = "/" + yours.Database
	w.refused(wrong.String(), "28P01")

	conn := w.connect(mine)
	_, owners, _ := w.made()
	ours := strings.Replace(mine.Database, "db_", "owner_", 1)
	for _, role := range append(owners, yours.Username, w.account(), "proa", "pg_read_server_files", "pg_signal_backend", "pg_write_all_data") {
		if role != ours {
			fails(t, conn, "42501", `set role none; set role `+role)
		}
	}
	for sql, code := range map[string]string{
		`select rolpassword from pg_authid`:                               "42501",
		`select passwd from pg_shadow`:                                    "42501",
		`create database x`:                                               "42501",
		`create role x`:                                                   "42501",
		`alter role current_user createdb`:                                "42501",
		`alter role current_user superuser`:                               "42501",
		`alter role current_user login`:                                   "42501",
		`alter role ` + yours.Username + ` password 'x'`:                  "42501",
		`grant ` + ours + ` to ` + yours.Username:                         "42501",
		`alter database ` + mine.Database + ` connection limit -1`:        "42501",
		`alter database ` + mine.Database + ` set statement_timeout = 0`:  "42501",
		`alter database ` + mine.Database + ` owner to current_user`:      "42501",
		`drop database ` + yours.Database:                                 "42501",
		`drop database ` + mine.Database:                                  "42501",
		`set temp_file_limit = -1`:                                        "42501",
		`set role none; alter role session_user set temp_file_limit = -1`: "42501",
		`copy (select 1) to program 'id'`:                                 "42501",
		`select pg_read_file('/etc/passwd')`:                              "42501",
		`create extension file_fdw`:                                       "42501",
		`create extension dblink`:                                         "42501",
		`create function t() returns event_trigger language plpgsql as $$ begin end $$; create event trigger t on ddl_command_start execute function t()`: "42501",
		`select lo_import('/etc/passwd')`: "42501",
		`select pg_terminate_backend(pid) from pg_stat_activity where usename = '` + yours.Username + `'`: "42501",
	} {
		fails(t, conn, code, sql)
	}
	var seen string
	must(t, conn.QueryRow(t.Context(), `select coalesce(string_agg(query, ' '), '') from pg_stat_activity where usename = $1`, yours.Username).Scan(&seen))
	if strings.Contains(seen, "treasure") {
		t.Errorf("statements of others are seen: %s", seen)
	}
	var kept string
	must(t, w.root.QueryRow(t.Context(), `select rolpassword from pg_authid where rolname = $1`, mine.Username).Scan(&kept))
	if !strings.HasPrefix(kept, "SCRAM-SHA-256$4096:") {
		t.Errorf("the server keeps %s", kept)
	}
	state, err := pgx.Connect(t.Context(), plain(w.state))
	must(t, err)
	defer func() { _ = state.Close(context.Background()) }()
	var sealed []byte
	must(t, state.QueryRow(t.Context(), `select password from bindings where instance = $1`, w.name("one")).Scan(&sealed))
	if strings.Contains(string(sealed), mine.Password) {
		t.Error("the state holds the password in clear")
	}
}

func psql(t *testing.T, uri, sql string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/usr/lib/postgresql/15/bin/psql", uri, "-Atc", sql)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestPlanLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ready("one", 0)
	a, b := credentials(w.want(201, w.bind("one", "a"))), credentials(w.want(201, w.bind("one", "b")))
	conn := w.connect(a)
	fails(t, conn, "57014", `select pg_sleep(10)`)
	fails(t, conn, "53400", `set work_mem = '64kB'; set statement_timeout = 0; select count(*) from (select n from generate_series(1, 1000000) n order by n desc offset 1) s`)
	w.connect(a)
	last := w.connect(b)
	w.refused(a.URI, "53300") // those of all bindings count
	w.refused(b.URI, "53300")

	// The tenant uses every connection there is: the broker gets in nevertheless, and the limit holds after it.
	c := credentials(w.want(201, w.bind("one", "c")))
	w.want(200, w.unbind("one", "c"))
	w.refused(c.URI, "28P01", "28000")
	w.refused(a.URI, "53300")
	w.refused(b.URI, "53300")

	w.want(202, w.call("PATCH", w.at("one")+"?accepts_incomplete=true", w.request(1, "parameters", map[string]any{"extensions": []string{"hstore"}})))
	w.wantEnd("one", "succeeded")
	sql(t, w.connect(a), `select pg_sleep(0.5); set work_mem = '64kB'; select count(*) from (select n from generate_series(1, 1000000) n order by n desc offset 1) s`)
	sql(t, last, `select 'a=>1'::public.hstore`)
	w.want(202, w.call("PATCH", w.at("one")+"?accepts_incomplete=true", w.request(0)))
	w.wantEnd("one", "succeeded")
	w.refused(a.URI, "53300")
}

// A server without a connection left is not taken for a database without one, whose door could be opened a little; and it is told at the start
// that tenants can bring it there.
func TestServerIsFull(t *testing.T) {
	t.Parallel()
	w := prepare(t, os.Getenv("PROA_TEST_DATABASE_URL"))
	w.state = newDatabase(t)
	var err error
	w.plans, err = postgres.Plans(postgres.Limits{Connections: 100_000, Statement: time.Minute, TempFiles: 1 << 20},
		postgres.Limits{Connections: 10, Statement: time.Minute, TempFiles: 1 << 30}, 10)
	must(t, err)
	w.start()
	w.ready("one", 0)
	a := credentials(w.want(201, w.bind("one", "a")))
	const warning = "instances may use more connections than the server has"
	if strings.Contains(w.log.String(), warning) {
		t.Errorf("it warns before there is an instance:\n%s", w.log.notes())
	}
	row := func() string { return w.list(`select xmin::text from pg_database where datname = $1`, a.Database)[0] }
	before := row()
	w.exec(`do $$ begin execute format('alter role %I connection limit %s', '` + w.account() + `',
		(select count(*) from pg_stat_activity where usename = '` + w.account() + `')); end $$`) // to the account it is as if the server were full
	w.want(503, w.unbind("one", "a"))
	if !strings.Contains(w.log.notes(), "connect to "+a.Database) {
		t.Errorf("it failed elsewhere:\n%s", w.log.notes())
	}
	if row() != before {
		t.Error("the limit of the database was changed, which cannot help")
	}
	w.exec(`alter role ` + w.account() + ` connection limit -1`)
	w.want(200, w.unbind("one", "a"))
	w.stop()
	w.start()
	if !strings.Contains(w.log.String(), warning) {
		t.Errorf("it does not warn:\n%s", w.log.notes())
	}
}

// A session that will not let go of what the broker needs makes an unbinding fail in time, and it can be asked for again.
func TestUnbindBehindALock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ready("one", 1)
	a, b := credentials(w.want(201, w.bind("one", "a"))), credentials(w.want(201, w.bind("one", "b")))
	sql(t, w.connect(a), `set role none; create table public.mine (n int); grant all on mine to `+strings.Replace(a.Database, "db_", "owner_", 1))
	other := w.connect(b)
	sql(t, other, `begin; lock table mine in access exclusive mode`)
	begin := time.Now()
	if r := w.want(503, w.unbind("one", "a")); !strings.Contains(r.body, "keeps a lock") {
		t.Errorf("it says: %s", r.body)
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	w.refused(a.URI, "28P01", "28000") // it is out already
	sql(t, other, `rollback`)
	w.want(200, w.unbind("one", "a"))
	w.wantMade(1, 1, 1)
}

// Every extension that can be asked for is there and can be made by an owner that is no superuser.
func TestExtensions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := []string{"btree_gin", "btree_gist", "citext", "cube", "fuzzystrmatch", "hstore", "intarray", "isn", "lo", "ltree", "pg_trgm", "pgcrypto",
		"seg", "tablefunc", "tsm_system_rows", "tsm_system_time", "unaccent", "uuid-ossp"}
	w.ready("one", 1, "parameters", map[string]any{"extensions": all})
	conn := w.connect(credentials(w.want(201, w.bind("one", "a"))))
	var n int
	must(t, conn.QueryRow(t.Context(), `select count(*) from pg_extension where extname = any($1)`, all).Scan(&n))
	if n != len(all) {
		t.Errorf("%d of %d extensions are there", n, len(all))
	}
	sql(t, conn, `drop extension hstore`) // they are the tenant's
}
