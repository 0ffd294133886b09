package store

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/kit/pg/pgtest"
	"github.com/proa-dev/proa/platform"
)

func catalogPlans(service string, plans ...string) platform.CatalogOffering {
	o := platform.CatalogOffering{ServiceOffering: platform.ServiceOffering{UniqueID: service + "-id", Name: service, Description: "a " + service, Bindable: true, Tags: []string{"sql", "a,b"}}}
	for _, name := range plans {
		o.Plans = append(o.Plans, platform.ServicePlan{UniqueID: service + "-" + name + "-id", Name: name, Description: "a plan", Free: true, Bindable: true})
	}
	return o
}

// TestApplyCatalog tells the store what a broker offers, again and again, while there is an instance of one plan.
func TestApplyCatalog(t *testing.T) {
	pool := pgtest.New(t, Migrations(), Table)
	ctx := t.Context()
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := pool.Exec(ctx, sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`insert into orgs (guid, name) values ('o', 'o')`)
	exec(`insert into spaces (guid, org_guid, name, cluster_id) values ('s', 'o', 's', 'default')`)
	exec(`insert into service_brokers (guid, name, url, credentials, state, space_guid) values ('b', 'b', 'http://b', '', 'AVAILABLE', null), ('own', 'own', 'http://own', '', 'AVAILABLE', 's')`)
	broker, own := platform.ServiceBroker{GUID: "b"}, platform.ServiceBroker{GUID: "own", SpaceGUID: "s"}
	apply := func(b platform.ServiceBroker, c platform.Catalog) []string {
		t.Helper()
		warnings, err := pg.InTx(ctx, pool, func(tx pgx.Tx) ([]string, error) { return applyCatalog(ctx, tx, b, c) })
		if err != nil {
			t.Fatal(err)
		}
		return warnings
	}
	listed := func(b string) []string {
		t.Helper()
		rows, err := pool.Query(ctx, `select o.name || case when o.active then '' else ' (gone)' end || coalesce('/' || p.name || ' ' || p.visibility || case when p.active then '' else ' (gone)' end, '')
			from service_offerings o left join service_plans p on p.offering_guid = o.guid where o.broker_guid = $1 order by o.created_at, p.created_at`, b)
		if err != nil {
			t.Fatal(err)
		}
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	want := func(b string, lines ...string) {
		t.Helper()
		if got := listed(b); !reflect.DeepEqual(got, lines) {
			t.Errorf("the broker offers %q\nwant %q", got, lines)
		}
	}
	guidOf := func(unique string) (guid string, updated time.Time) {
		t.Helper()
		if err := pool.QueryRow(ctx, `select guid, updated_at from service_plans where unique_id = $1`, unique).Scan(&guid, &updated); err != nil {
			t.Fatal(err)
		}
		return guid, updated
	}

	if w := apply(broker, platform.Catalog{catalogPlans("sql", "small", "large"), catalogPlans("cache", "only")}); w != nil {
		t.Errorf("warnings at first: %q", w)
	}
	want("b", "sql/small admin", "sql/large admin", "cache/only admin")
	apply(own, platform.Catalog{catalogPlans("sql", "small")})
	want("own", "sql/small space")

	exec(`update service_plans set visibility = 'public', labels = '{"a": "b"}' where unique_id = 'sql-large-id' and visibility = 'admin'`)
	guid, updated := guidOf("sql-large-id")
	exec(`insert into service_instances (guid, space_guid, name, plan_guid) values ('i', 's', 'i', $1)`, guid)

	same := platform.Catalog{catalogPlans("sql", "small", "large"), catalogPlans("cache", "only")}
	apply(broker, same)
	if again, at := guidOf("sql-large-id"); again != guid || !at.Equal(updated) {
		t.Errorf("the same catalog again: plan %s of %s, it was %s of %s", again, at, guid, updated)
	}

	renamed := platform.Catalog{catalogPlans("sql", "small", "large"), catalogPlans("cache", "only")}
	renamed[0].Name, renamed[0].Plans[1].Name, renamed[0].Plans[1].Maintenance = "postgres", "huge", &platform.Maintenance{Version: "2.0.0"}
	apply(broker, renamed)
	want("b", "postgres/small admin", "postgres/huge public", "cache/only admin")
	if again, at := guidOf("sql-large-id"); again != guid || at.Equal(updated) {
		t.Errorf("renamed: plan %s of %s, it was %s of %s", again, at, guid, updated)
	}

	warnings := apply(broker, platform.Catalog{catalogPlans("cache", "only", "more")})
	want("b", "postgres (gone)/huge public (gone)", "cache/only admin", "cache/more admin")
	if len(warnings) != 1 || !strings.Contains(warnings[0], "'huge' of 'postgres'") {
		t.Errorf("warnings of a plan that has gone: %q", warnings)
	}

	if w := apply(broker, renamed); w != nil {
		t.Errorf("warnings of a plan that came back: %q", w)
	}
	want("b", "postgres/huge public", "postgres/small admin", "cache/only admin")

	exec(`delete from service_instances`)
	apply(broker, platform.Catalog{catalogPlans("cache", "only")})
	want("b", "cache/only admin")
	want("own", "sql/small space") // another broker's ids are its own

	_, err := pg.InTx(ctx, pool, func(tx pgx.Tx) ([]string, error) {
		return applyCatalog(ctx, tx, broker, platform.Catalog{catalogPlans("sql", "small"), catalogPlans("sql", "small")})
	})
	if !fault.Is(err, fault.KindUnprocessable) {
		t.Errorf("ids that are there twice: %v", err)
	}
	want("b", "cache/only admin")
}

// TestApplyCatalogKeepsWhatCheckAllows writes odd values: what the rules let through, the database must take.
func TestApplyCatalogKeepsWhatCheckAllows(t *testing.T) {
	pool := pgtest.New(t, Migrations(), Table)
	ctx := t.Context()
	if _, err := pool.Exec(ctx, `insert into service_brokers (guid, name, url, credentials, state) values ('b', 'b', 'http://b', '', 'AVAILABLE')`); err != nil {
		t.Fatal(err)
	}
	for _, raw := range []string{``, `null`, `{}`, ` {"a": 1} `, `{"a":"\u0000"}`, `{"\u0000":1}`, `{"a":"\ud800"}`, `{"a":1e400000}`, `{"a":1e-400000}`, `{"a":1e300}`, `{"a":5e-324}`, `{"a":-0}`,
		`{"a":0.` + strings.Repeat("0", 20_000) + `1}`, `{"a":` + strings.Repeat("9", 20_000) + `}`, `{"a":1,"a":2}`, `[]`, `7`, `{`, `{} {}`, `{"a":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`,
		`{"a":` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + `}`, `{"` + strings.Repeat("k", 60_000) + `":"` + strings.Repeat(`\\`, 2000) + `"}`} {
		one := catalogPlans("sql", "small")
		one.Catalog, one.Plans[0].Catalog, one.Plans[0].Schemas = json.RawMessage(raw), json.RawMessage(raw), json.RawMessage(raw)
		one.Description = "línea\n\"1\" \\ ☃"
		_, err := pg.InTx(ctx, pool, func(tx pgx.Tx) ([]string, error) {
			return applyCatalog(ctx, tx, platform.ServiceBroker{GUID: "b"}, platform.Catalog{one})
		})
		if err != nil && !fault.Is(err, fault.KindUnprocessable) {
			t.Errorf("metadata %.80s: %v", raw, err)
		}
	}
	var description, tags string
	if err := pool.QueryRow(ctx, `select description, tags::text from service_offerings`).Scan(&description, &tags); err != nil || description != "línea\n\"1\" \\ ☃" || tags != `{sql,"a,b"}` {
		t.Errorf("kept %q with tags %s: %v", description, fmt.Sprint(tags), err)
	}
}
