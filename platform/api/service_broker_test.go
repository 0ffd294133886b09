package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

const brokerPassword = "correct horse battery staple"

func broker(name string) object {
	return object{"name": name, "url": "https://broker.example.org/osb/", "authentication": object{"type": "basic", "credentials": object{"username": "platform", "password": brokerPassword}}}
}

// exec runs a statement on the world's database.
func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	_, err := w.pool.Exec(w.t.Context(), sql, args...)
	must(w.t, err)
}

// value reads one value from it.
func value[T any](w *world, sql string, args ...any) (v T) {
	w.t.Helper()
	must(w.t, w.pool.QueryRow(w.t.Context(), sql, args...).Scan(&v))
	return v
}

// begun wants a job that somebody goes on with, and gives the guid of what it is about.
func (w *world) begun(got reply, operation string) (subject string) {
	w.t.Helper()
	if got.status != http.StatusAccepted || !strings.HasPrefix(got.header.Get("Location"), w.url+"/v3/jobs/") {
		w.t.Fatalf("%d %s, want a job", got.status, got.body)
	}
	job := do[v3.Job](w, 200, http.MethodGet, got.header.Get("Location"), w.admin, nil)
	if job.State != "PROCESSING" || job.Operation != operation {
		w.t.Errorf("the job is %s and %s", job.Operation, job.State)
	}
	return value[string](w, `select subject from service_operations where job_guid = $1`, job.GUID)
}

func TestServiceBrokers(t *testing.T) {
	w := newWorld(t)
	guid := w.begun(w.call(http.MethodPost, "/v3/service_brokers", w.admin, broker("postgres")), "service_broker.catalog.synchronize")
	path := "/v3/service_brokers/" + guid
	b := do[v3.ServiceBroker](w, 200, http.MethodGet, path, w.admin, nil)
	if b.Name != "postgres" || b.URL != "https://broker.example.org/osb" || b.State != "SYNCHRONIZING" || len(b.Relationships) != 0 {
		t.Errorf("registered %+v", b)
	}
	w.refused(w.call(http.MethodPost, "/v3/service_brokers", w.admin, broker("postgres")), 422, 10008, "CF-UnprocessableEntity", "Name must be unique")

	note := object{"metadata": object{"labels": object{"tier": "gold"}}}
	if b := do[v3.ServiceBroker](w, 200, http.MethodPatch, path, w.admin, note); b.Metadata.Labels["tier"] != "gold" || b.State != "SYNCHRONIZING" {
		t.Errorf("noted %+v", b)
	}
	if list := do[v3.List[v3.ServiceBroker]](w, 200, http.MethodGet, "/v3/service_brokers?names=postgres,none&label_selector=tier%3Dgold", w.admin, nil); len(list.Resources) != 1 {
		t.Errorf("found %d brokers", len(list.Resources))
	}
	if got := w.call(http.MethodPatch, path, w.admin, object{"url": "http://elsewhere.example.org"}); got.status != 422 || !strings.Contains(got.body, "other operation is already in progress") {
		t.Errorf("changing it while its catalog is read: %d %s", got.status, got.body)
	}

	w.exec(`update service_brokers set state = 'AVAILABLE'`)
	w.exec(`delete from service_operations`)
	w.begun(w.call(http.MethodPost, "/v3/service_brokers", w.admin, broker("mysql")), "service_broker.catalog.synchronize")
	w.refused(w.call(http.MethodPatch, path, w.admin, object{"name": "mysql"}), 422, 10008, "CF-UnprocessableEntity", "Name must be unique")
	if got := w.call(http.MethodPatch, path, w.admin, object{"url": "http://broker.example.org/osb"}); got.status != 422 || !strings.Contains(got.body, "Give the authentication for it, too") {
		t.Errorf("another scheme without an account: %d %s", got.status, got.body)
	}
	w.begun(w.call(http.MethodPatch, path, w.admin, object{"name": "pg", "url": "http://elsewhere.example.org", "authentication": broker("")["authentication"]}), "service_broker.update")
	if b := do[v3.ServiceBroker](w, 200, http.MethodGet, path, w.admin, nil); b.Name != "postgres" || b.URL != "https://broker.example.org/osb" || b.State != "SYNCHRONIZING" {
		t.Errorf("before its catalog was read it is %+v", b)
	}
	if n := value[int](w, `select count(*) from audit_events where type in ('audit.service_broker.create', 'audit.service_broker.update') and target_type = 'service_broker'`); n != 4 {
		t.Errorf("%d events", n)
	}
	w.secretless()
}

// secretless looks for the password in every row of every table.
func (w *world) secretless() {
	w.t.Helper()
	rows, err := w.pool.Query(w.t.Context(), `select table_name from information_schema.tables where table_schema = 'public'`)
	must(w.t, err)
	var tables []string
	for rows.Next() {
		var name string
		must(w.t, rows.Scan(&name))
		tables = append(tables, name)
	}
	must(w.t, rows.Err())
	if len(tables) < 20 {
		w.t.Errorf("looked into %d tables", len(tables))
	}
	for _, name := range tables {
		secret := fmt.Sprintf(`select count(*) from %s t where t::text like '%%' || $1 || '%%' or t::text like '%%' || encode($1::bytea, 'hex') || '%%'`, name)
		if n := value[int](w, secret, brokerPassword); n > 0 {
			w.t.Errorf("%s has the password in %d rows", name, n)
		}
	}
}

func TestServiceBrokerRefusals(t *testing.T) {
	w := newWorld(t)
	basic := broker("")["authentication"]
	for name, row := range map[string]struct {
		body any
		want string
	}{
		"no authentication":   {object{"name": "b", "url": "http://b"}, "Authentication can't be blank"},
		"another type":        {object{"name": "b", "url": "http://b", "authentication": object{"type": "oauth", "credentials": object{}}}, "must be basic"},
		"no password":         {object{"name": "b", "url": "http://b", "authentication": object{"type": "basic", "credentials": object{"username": "u"}}}, "Password can't be blank"},
		"no name":             {object{"url": "http://b", "authentication": basic}, "Name can't be blank"},
		"a name with NUL":     {object{"name": "a\x00", "url": "http://b", "authentication": basic}, "printable"},
		"no url":              {object{"name": "b", "authentication": basic}, "must be a valid url"},
		"a url with an user":  {object{"name": "b", "url": "http://u:" + brokerPassword + "@b", "authentication": basic}, "url"},
		"an unknown field":    {object{"name": "b", "url": "http://b", "authentication": basic, "extra": 1}, "Unknown field(s): 'extra'"},
		"a url that is no":    {object{"name": "b", "url": 7, "authentication": basic}, "url"},
		"no such space":       {object{"name": "b", "url": "http://b", "authentication": basic, "relationships": object{"space": to("none")}}, "Invalid space"},
		"a space without one": {object{"name": "b", "url": "http://b", "authentication": basic, "relationships": object{"space": object{"data": nil}}}, "must name a space"},
	} {
		got := w.call(http.MethodPost, "/v3/service_brokers", w.admin, row.body)
		if got.status != 422 || !strings.Contains(got.body, row.want) || strings.Contains(got.body, brokerPassword) {
			t.Errorf("%s: %d %s, want %q", name, got.status, got.body, row.want)
		}
	}
	if n := value[int](w, `select (select count(*) from service_brokers) + (select count(*) from jobs) + (select count(*) from service_operations)`); n != 0 {
		t.Errorf("%d rows are left of refusals", n)
	}
}

// A developer's broker is their space's: the flag lets them, others do not learn of it, and no administrator is needed to delete it.
func TestSpaceBrokers(t *testing.T) {
	w := newWorld(t)
	org := w.org("org")
	here, there := w.space(org, "here"), w.space(org, "there")
	w.give("dev", platform.SpaceDeveloper, org, here)
	w.give("other", platform.SpaceDeveloper, org, there)
	dev, other := w.token("dev"), w.token("other")
	mine := broker("mine")
	mine["relationships"] = object{"space": to(here.GUID)}

	if got := w.call(http.MethodPost, "/v3/service_brokers", dev, mine); got.status != 403 || !strings.Contains(got.body, "CF-FeatureDisabled") {
		t.Errorf("without the flag: %d %s", got.status, got.body)
	}
	do[v3.FeatureFlag](w, 200, http.MethodPatch, "/v3/feature_flags/space_scoped_private_broker_creation", w.admin, object{"enabled": true})
	if got := w.call(http.MethodPost, "/v3/service_brokers", dev, broker("for all")); got.status != 403 {
		t.Errorf("a developer's broker for all: %d %s", got.status, got.body)
	}
	guid := w.begun(w.call(http.MethodPost, "/v3/service_brokers", dev, mine), "service_broker.catalog.synchronize")
	for who, want := range map[string]int{dev: 1, other: 0, w.admin: 1} {
		list := do[v3.List[v3.ServiceBroker]](w, 200, http.MethodGet, "/v3/service_brokers?space_guids="+here.GUID, who, nil)
		if len(list.Resources) != want {
			t.Errorf("%d brokers, want %d", len(list.Resources), want)
		}
	}
	b := do[v3.ServiceBroker](w, 200, http.MethodGet, "/v3/service_brokers/"+guid, dev, nil)
	if b.Relationships["space"].GUID() != here.GUID || b.Links["space"] == nil {
		t.Errorf("it is of %+v", b.Relationships)
	}
	w.deleted("/v3/service_brokers/"+guid, dev)
}

func TestDeleteServiceBroker(t *testing.T) {
	w := newWorld(t)
	f := w.fixture(1, "none")
	path := "/v3/service_brokers/" + onBroker(f)
	w.exec(`insert into service_instances (guid, space_guid, name, plan_guid, held, service_id, plan_id) values ('used', $1, 'used', $2, true, 'service', 'plan')`, f.space.GUID, onPlan(f))
	w.refused(w.call(http.MethodDelete, path, w.admin, nil), 422, 270010, "CF-ServiceBrokerNotRemovable", "Can not remove brokers that have associated service instances: "+onBroker(f))
	w.exec(`delete from service_instances where guid = 'used'`)
	if got := w.call(http.MethodDelete, path, w.admin, nil); got.status != 422 || !strings.Contains(got.body, "has still to delete 1 service instances or bindings") {
		t.Errorf("with an orphan: %d %s", got.status, got.body)
	}
	w.exec(`delete from service_orphans`)
	w.deleted(path, w.admin)
	if n := value[int](w, `select count(*) from service_plans where guid = $1`, onPlan(f)); n != 0 {
		t.Errorf("%d plans are left", n)
	}
}
