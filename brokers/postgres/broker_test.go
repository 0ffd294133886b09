package postgres_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proa-dev/proa/brokers/postgres"
)

func TestLifeOfAnInstance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(422, w.call(http.MethodPut, w.at("one"), w.request(0))) // it must be asynchronous
	first := w.want(202, w.provision("one", 0, "parameters", map[string]any{"extensions": []string{"uuid-ossp", "pg_trgm", "pg_trgm"}}))
	if first.json["operation"] == "" {
		t.Error("no operation is named")
	}
	w.wantEnd("one", "succeeded")
	same := []any{"parameters", map[string]any{"extensions": []string{"pg_trgm", "uuid-ossp"}}}
	w.want(200, w.provision("one", 0, same...))
	w.want(409, w.provision("one", 1, same...))
	w.want(409, w.provision("one", 0))
	w.want(409, w.provision("one", 0, append(same, "space_guid", "elsewhere")...))
	if r := w.want(200, w.call(http.MethodGet, w.at("one"), nil)); r.json["plan_id"] != w.plans[0].ID || !strings.Contains(r.body, `{"extensions":["pg_trgm","uuid-ossp"]}`) {
		t.Errorf("the instance: %s", r.body)
	}
	w.want(404, w.call(http.MethodGet, w.at("two"), nil))
	w.want(410, w.call(http.MethodGet, w.at("two")+"/last_operation", nil))

	w.want(404, w.bind("two", "b"))
	a := credentials(w.want(201, w.bind("one", "a")))
	if again := credentials(w.want(200, w.bind("one", "a"))); again != a || a.Password == "" || a.Port == 0 {
		t.Errorf("the same binding has the credentials %+v and %+v", a, again)
	}
	if r := w.want(200, w.call(http.MethodGet, w.at("one")+"/service_bindings/a", nil)); credentials(r) != a || !strings.Contains(r.body, `"parameters":{}`) {
		t.Errorf("the binding as fetched: %+v", credentials(r))
	}
	w.want(409, w.call(http.MethodPut, w.at("one")+"/service_bindings/a", w.request(0, "app_guid", "another")))
	w.want(404, w.call(http.MethodGet, w.at("one")+"/service_bindings/x", nil))

	app := w.connect(a)
	sql(t, app, `create table boats (name text); insert into boats values ('proa'); create schema harbour; create table harbour.piers (n int); select similarity('a', 'b'), uuid_generate_v4()`)
	sql(t, app, `set role none; create table public.mine (n int); create view mine_view as select * from mine; select lo_create(0); grant select on boats to current_user; alter default privileges grant select on tables to public; reset role`)

	b := credentials(w.want(201, w.bind("one", "b")))
	if b.Username == a.Username || b.Password == a.Password || b.Database != a.Database {
		t.Errorf("the second binding has %+v, the first %+v", b, a)
	}
	other := w.connect(b)
	sql(t, other, `insert into boats values ('dhow'); alter table boats add column masts int`)

	w.want(200, w.unbind("one", "a"))
	if _, err := app.Exec(t.Context(), `select 1`); err == nil {
		t.Error("the session goes on after its binding is gone")
	}
	w.refused(a.URI, "28P01", "28000")
	w.want(410, w.unbind("one", "a"))
	w.want(404, w.call(http.MethodGet, w.at("one")+"/service_bindings/a", nil))
	sql(t, other, `insert into mine values (1); drop view mine_view; alter table mine add column m int; select count(*) from harbour.piers, boats; drop table mine`)
	w.wantMade(1, 1, 1)

	w.want(202, w.delete("one")) // with a binding that nobody took away
	w.wantEnd("one", "gone")
	w.want(410, w.delete("one"))
	w.want(410, w.unbind("one", "b"))
	w.wantMade(0, 0, 0)
	for _, secret := range []string{a.Password, b.Password, password, "uri"} {
		if strings.Contains(w.log.String(), secret) {
			t.Errorf("%q stands in the log:\n%s", secret, w.log)
		}
	}
}

func TestCatalog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.want(200, w.call(http.MethodGet, "/v2/catalog", nil))
	var c struct {
		Services []struct {
			Name      string
			Updatable bool `json:"plan_updateable"`
			Instances bool `json:"instances_retrievable"`
			Bindings  bool `json:"bindings_retrievable"`
			Plans     []struct {
				Name     string
				Free     bool
				Metadata struct {
					Costs []struct {
						Amount map[string]float64
						Unit   string
					}
				}
			}
		}
	}
	must(t, json.Unmarshal([]byte(r.body), &c))
	s := c.Services[0]
	if s.Name != "postgres" || !s.Updatable || !s.Instances || !s.Bindings || len(s.Plans) != 2 {
		t.Errorf("the offering: %+v", s)
	}
	free, standard := s.Plans[0], s.Plans[1]
	if !free.Free || len(free.Metadata.Costs) != 0 || standard.Free || standard.Metadata.Costs[0].Amount["eur"] != 10 || standard.Metadata.Costs[0].Unit != "MONTHLY" {
		t.Errorf("the plans: %+v", s.Plans)
	}
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	patch := func(more ...any) reply {
		body := map[string]any{"service_id": w.offering()}
		for n := 0; n < len(more); n += 2 {
			body[more[n].(string)] = more[n+1]
		}
		return w.call(http.MethodPatch, w.at("one")+"?accepts_incomplete=true", body)
	}
	w.want(410, patch("plan_id", w.plans[1].ID))
	w.ready("one", 0)
	w.want(200, patch("plan_id", w.plans[0].ID))
	w.want(400, patch("plan_id", "no such plan"))
	w.want(400, patch("parameters", map[string]any{"size": 3}))
	w.want(422, patch("maintenance_info", map[string]any{"version": "2.0.0"}))
	w.want(422, w.call(http.MethodPatch, w.at("one"), map[string]any{"service_id": w.offering(), "plan_id": w.plans[1].ID}))
	w.want(202, patch("plan_id", w.plans[1].ID, "parameters", map[string]any{"extensions": []string{"hstore"}}))
	w.wantEnd("one", "succeeded")
	w.want(202, patch("parameters", map[string]any{"extensions": []string{"citext"}})) // the plan stays
	w.wantEnd("one", "succeeded")
	r := w.want(200, w.call(http.MethodGet, w.at("one"), nil))
	if r.json["plan_id"] != w.plans[1].ID || !strings.Contains(r.body, `["citext","hstore"]`) {
		t.Errorf("after the updates: %s", r.body)
	}
	conn := w.connect(credentials(w.want(201, w.bind("one", "a"))))
	sql(t, conn, `select 'a=>1'::hstore, 'A'::citext`)
	var timeout string
	must(t, conn.QueryRow(t.Context(), `show statement_timeout`).Scan(&timeout))
	if limit := w.list(`select datconnlimit::text from pg_database where datname = $1`, conn.Config().Database); timeout != "1min" || limit[0] != "10" {
		t.Errorf("the limits of the new plan: %s, %s connections", timeout, limit)
	}
}

// An operation that cannot succeed says why and leaves what was there.
func TestOperationFails(t *testing.T) {
	t.Parallel()
	var ready atomic.Bool
	w := newWorld(t, func(b *postgres.Broker) {
		b.Step = func(string) error {
			if !ready.Load() {
				return errors.New("not yet")
			}
			return nil
		}
	})
	w.want(202, w.provision("one", 0))
	w.stateExec(`update instances set extensions = '{no_such}', op_extensions = '{no_such}'`) // as if the server had lost one
	ready.Store(true)
	if state, said := w.ended("one"); state != "failed" || !strings.Contains(said, "no_such is not installed") {
		t.Errorf("it ended as %s: %s", state, said)
	}
	w.want(404, w.call(http.MethodGet, w.at("one"), nil))
	w.want(422, w.bind("one", "a"))
	w.stateExec(`update instances set extensions = '{}', op_extensions = '{}'`)
	w.want(202, w.provision("one", 0)) // asked for again
	w.wantEnd("one", "succeeded")
	w.wantMade(1, 1, 0)
	w.want(202, w.delete("one"))
	w.wantEnd("one", "gone")
	w.wantMade(0, 0, 0)
}

// What the tenant has made may stand in the way of an extension. That is said at once, and the instance is as usable as before.
func TestExtensionInTheWay(t *testing.T) {
	for name, c := range map[string]struct{ before, said string }{
		"type":      {`create type public.citext as (n int)`, `type "citext" already exists`},
		"no schema": {`drop schema public cascade`, `schema "public" does not exist`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.ready("one", 1)
			conn := w.connect(credentials(w.want(201, w.bind("one", "a"))))
			sql(t, conn, c.before)
			begin := time.Now()
			w.want(202, w.call(http.MethodPatch, w.at("one")+"?accepts_incomplete=true", w.request(1, "parameters", map[string]any{"extensions": []string{"citext"}})))
			if state, said := w.ended("one"); state != "failed" || !strings.Contains(said, c.said) || !strings.Contains(said, "citext cannot be made") {
				t.Errorf("it ended as %s: %s", state, said)
			}
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
			w.want(200, w.unbind("one", "a"))
		})
	}
}

// An instance may go between the two looks that a request for it takes.
func TestProvisionWhileItGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ready("one", 0)
	w.stateExec(`create sequence times; create function go() returns trigger language plpgsql as $$ begin
		if nextval('times') = 1 then delete from instances; end if; return null; end $$;
		create trigger go after insert on instances for each statement execute function go()`)
	w.want(200, w.provision("one", 0))
}

func TestGivesUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(b *postgres.Broker) {
		b.Patience = time.Nanosecond
		b.Step = func(string) error { return http.ErrHandlerTimeout } // whatever
	})
	w.want(202, w.provision("one", 0))
	if state, said := w.ended("one"); state != "failed" || !strings.Contains(said, "in time") {
		t.Errorf("it ended as %s: %s", state, said)
	}
}

func TestOneOperationAtATime(t *testing.T) {
	t.Parallel()
	held, step := make(chan struct{}), ""
	w := newWorld(t, func(b *postgres.Broker) {
		b.Step = func(name string) error {
			if name == step {
				<-held
			}
			return nil
		}
	})
	conflict := func(r reply) {
		t.Helper()
		if w.want(422, r); r.json["error"] != "ConcurrencyError" {
			t.Errorf("refused with %s", r.body)
		}
	}
	patch := func(plan int) reply {
		return w.call(http.MethodPatch, w.at("one")+"?accepts_incomplete=true", w.request(plan))
	}
	step = "create: database"
	operation := w.want(202, w.provision("one", 0)).json["operation"]
	if again := w.want(202, w.provision("one", 0)); again.json["operation"] != operation {
		t.Errorf("the same request is another operation: %s", again.body)
	}
	w.want(409, w.provision("one", 1))
	conflict(w.bind("one", "a"))
	conflict(w.delete("one"))
	conflict(patch(1))
	w.want(404, w.call(http.MethodGet, w.at("one"), nil))
	held <- struct{}{}
	w.wantEnd("one", "succeeded")
	w.want(201, w.bind("one", "a"))

	step = "update: limits"
	w.want(202, patch(1))
	w.want(202, patch(1))
	conflict(patch(0))
	conflict(w.delete("one"))
	conflict(w.bind("one", "b"))
	conflict(w.unbind("one", "a"))
	conflict(w.call(http.MethodGet, w.at("one"), nil))
	held <- struct{}{}
	w.wantEnd("one", "succeeded")

	step = "delete: database"
	w.want(202, w.delete("one"))
	w.want(202, w.delete("one"))
	conflict(w.provision("one", 1))
	conflict(w.bind("one", "b"))
	held <- struct{}{}
	w.wantEnd("one", "gone")
	w.wantMade(0, 0, 0)
}

func TestHostileRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ready("one", 0)
	long := strings.Repeat("a", 101)
	for _, id := range []string{"%00", "a%00b", "..%2F..", "a%2Fb", "'%3B%20drop%20table%20instances%3B--", "%22", "a%20b", "%C3%A9", long, "-x", ".x"} {
		w.want(400, w.call(http.MethodPut, instances+id+"?accepts_incomplete=true", w.request(0)))
		w.want(400, w.call(http.MethodDelete, instances+id+w.query(), nil))
		w.want(400, w.bind("one", id))
		w.want(400, w.unbind("one", id))
		if r := w.call(http.MethodGet, instances+id, nil); r.status != 404 && r.status != 400 {
			t.Errorf("GET %s: %d %s", id, r.status, r.body)
		}
	}
	for _, c := range []struct {
		status int
		more   []any
	}{
		{400, []any{"parameters", map[string]any{"superuser": true}}},
		{400, []any{"parameters", map[string]any{"extensions": []string{"plpython3u"}}}},
		{400, []any{"parameters", map[string]any{"extensions": []string{`x"; drop table t; --`}}}},
		{400, []any{"parameters", map[string]any{"extensions": "pg_trgm"}}},
		{400, []any{"parameters", []int{1}}},
		{400, []any{"parameters", "text"}},
		{400, []any{"parameters", 1e300}},
		{400, []any{"plan_id", "x"}},
		{400, []any{"service_id", "x"}},
		{400, []any{"organization_guid", strings.Repeat("x", 201)}},
		{400, []any{"space_guid", "a\x00b"}},
		{422, []any{"plan_id", 7}},
		{422, []any{"maintenance_info", map[string]any{"version": "1.0.0"}}},
		{422, []any{"parameters", strings.Repeat("x", 70<<10)}}, // more than a request may have
	} {
		if r := w.want(c.status, w.provision("bad", 0, c.more...)); len(r.json["description"].(string)) > 600 {
			t.Errorf("a long answer: %s", r.body)
		}
	}
	w.want(400, w.call(http.MethodPut, w.at("one")+"/service_bindings/b", w.request(0, "parameters", map[string]any{"role": "superuser"})))
	w.want(400, w.call(http.MethodPut, w.at("one")+"/service_bindings/b", w.request(0, "app_guid", "a\x00b")))
	w.want(404, w.call(http.MethodGet, "/v2/nothing", nil))
	w.wantMade(1, 1, 0)
}

func TestDoor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ask := func(user, password, version, path string) int {
		t.Helper()
		r, err := http.NewRequest(http.MethodGet, w.url+path, nil)
		must(t, err)
		r.SetBasicAuth(user, password)
		if version != "" {
			r.Header.Set("X-Broker-API-Version", version)
		}
		answer, err := http.DefaultClient.Do(r)
		must(t, err)
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	for _, c := range []struct {
		user, password, version, path string
		want                          int
	}{
		{"platform", password, "2.17", "/v2/catalog", 200},
		{"platform", password, "", "/v2/catalog", 412},
		{"platform", password, "1.0", "/v2/catalog", 412},
		{"platform", "wrong", "2.17", "/v2/catalog", 401},
		{"", "", "2.17", "/v2/catalog", 401},
		{"someone", password, "2.17", w.at("one"), 401},
		{"", "", "", "/healthz", 200},
		{"", "", "", "/readyz", 200},
	} {
		if got := ask(c.user, c.password, c.version, c.path); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	var got []int
	for range 30 {
		got = append(got, ask("platform", "guess", "2.17", "/v2/catalog"))
	}
	if !slices.Contains(got, 429) {
		t.Errorf("guessing goes on: %v", got)
	}
}
