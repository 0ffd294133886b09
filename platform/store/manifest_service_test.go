package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/store"
)

// apply applies a manifest in the binder's space. What is wrong is told by the job.
func (b *binder) apply(manifest string) platform.Job {
	b.Helper()
	m, err := platform.ParseManifest([]byte(manifest))
	if err != nil {
		b.Fatal(err)
	}
	job, err := b.ApplyManifest(b.Context(), admin, "s", m, store.Settings{Stacks: []string{"proa"}})
	if err != nil {
		b.Fatal(err)
	}
	return job
}

// refused wants a job that has failed with this sentence.
func (b *binder) refused(manifest, detail string) {
	b.Helper()
	if job := b.apply(manifest); job.State != platform.JobFailed || len(job.Errors) != 1 || job.Errors[0].Detail != detail {
		b.Errorf("%s: %+v\nwant %s", manifest, job, detail)
	}
}

// text is one value of the database.
func (b *binder) text(query string, args ...any) (text string) {
	b.Helper()
	if err := b.pool.QueryRow(b.Context(), query, args...).Scan(&text); err != nil {
		b.Fatalf("%s: %v", query, err)
	}
	return text
}

const bindings = `select coalesce(string_agg(i.name || ' ' || b.name || ' ' || b.op_type || ' ' || b.op_state, ', ' order by i.name, b.created_at), '')
	from service_bindings b join service_instances i on i.guid = b.instance_guid join apps a on a.guid = b.app_guid where a.name = $1`

// TestManifestBinds: what the user provides is bound at once; for the rest the job waits, and nothing else does.
func TestManifestBinds(t *testing.T) {
	b := newBinder(t)
	job := b.apply("applications: [{name: shop, env: {X: y}, services: [own, {name: my-db, binding_name: main, parameters: {secret: hush}}, own, my-db]}]")
	if job.State != platform.JobProcessing || len(job.Errors) != 0 {
		t.Errorf("the job: %+v", job)
	}
	if got := b.text(bindings, "shop"); got != "my-db main create initial, own  create succeeded" {
		t.Errorf("the bindings: %s", got)
	}
	if got := b.text(`select string_agg(kind || ' ' || job_guid, ', ') from service_operations`); got != "service_bindings.create "+job.GUID {
		t.Errorf("brokers are asked: %s", got)
	}
	if got := b.text(`select count(*)::text from service_operations o where o::text like '%hush%' or o::text like '%' || encode('hush', 'hex') || '%'`); got != "0" {
		t.Error("parameters can be read in the database")
	}
	if a, err := b.AppWithEnv(t.Context(), admin, "a"); err != nil || a.Env["X"] != "y" {
		t.Errorf("the rest of the manifest waits: %+v, %v", a.Env, err)
	}

	const shop = "applications: [{name: shop, services: [my-db, {name: own, binding_name: other}]}]"
	b.refused(shop, "For application 'shop': services: An operation for the service binding between app shop and service instance my-db is in progress. Wait until it has ended (proa service my-db), and apply the manifest again.")
	b.exec(`update service_bindings set op_state = 'succeeded'`)
	b.exec(`delete from service_operations`)
	if job := b.apply(shop); job.State != platform.JobComplete {
		t.Errorf("with nothing left to bind: %+v", job)
	}
	b.exec(`update service_instances set op_type = 'update', op_state = 'in progress' where guid = 'i'`)
	if job := b.apply(shop); job.State != platform.JobComplete {
		t.Errorf("what is bound is left alone: %+v", job)
	}
	if got := b.text(bindings, "shop"); got != "my-db main create succeeded, own  create succeeded" {
		t.Errorf("the bindings: %s", got)
	}
	m, err := b.AppManifest(t.Context(), admin, "a")
	if text := string(m.Render()); err != nil || !strings.Contains(text, "    services:\n      - name: my-db\n        binding_name: main\n      - own\n") {
		t.Errorf("its manifest: %v\n%s", err, text)
	}
}

func TestManifestBindsAgain(t *testing.T) {
	b := newBinder(t)
	b.bind("b1", "create", "failed", "")
	if job := b.apply("applications: [{name: shop, services: [my-db]}]"); job.State != platform.JobProcessing {
		t.Errorf("the job: %+v", job)
	}
	if got := b.text(bindings, "shop"); got != "my-db  create initial" {
		t.Errorf("what was never made is still there: %s", got)
	}
}

func TestManifestCannotBind(t *testing.T) {
	b := newBinder(t)
	b.exec(`insert into spaces (guid, org_guid, name, cluster_id) values ('s2', 'o', 's2', 'default')`)
	b.exec(`insert into service_instances (guid, space_guid, name, plan_guid) values ('far', 's2', 'far', 'pl'), ('near', 's2', 'near', 'pl')`)
	b.exec(`insert into service_instance_shares (instance_guid, space_guid) values ('near', 's')`)
	b.exec(`insert into service_instances (guid, space_guid, name, plan_guid, op_state) values ('i2', 's', 'soon', 'pl', 'in progress'), ('i3', 's', 'never', 'pl', 'failed')`)
	const missing = "For application 'new': services: there is no service instance '%[1]s' in this space. Create it with: proa create-service OFFERING PLAN %[1]s"
	for service, detail := range map[string]string{
		"nothing":                           fmt.Sprintf(missing, "nothing"),
		"far":                               fmt.Sprintf(missing, "far"),
		"soon":                              "For application 'new': services: An operation for service instance soon is in progress. Wait until it has ended (proa service soon), and apply the manifest again.",
		"never":                             "For application 'new': services: Service instance 'never' could not be created. Delete it, and create it again.",
		"{name: my-db, binding_name: 'a/'}": "For application 'new': services: Name must be made of letters, digits, '.', '_' and '-'.",
		"{name: own, parameters: {a: 1}}":   "For application 'new': services: Binding parameters are not supported for user-provided service instances.",
	} {
		b.refused("applications: [{name: new, services: [near, "+service+"]}]", detail)
		if got := b.text(`select (select count(*) from service_bindings) || ' ' || (select count(*) from service_operations) || ' ' || (select count(*) from apps where name = 'new')`); got != "0 0 0" {
			t.Fatalf("%s: half of it was applied: %s", service, got)
		}
	}
	if job := b.apply("applications: [{name: new, services: [near]}]"); job.State != platform.JobProcessing || b.text(bindings, "new") != "near  create initial" {
		t.Errorf("what is shared with the space: %+v", job)
	}
	if job := b.apply("applications: [{name: other, services: [own]}, {name: shop}]"); job.State != platform.JobComplete || b.text(bindings, "other") != "own  create succeeded" {
		t.Errorf("what the user provides: %+v", job)
	}
}

func TestManifestDiffOfServices(t *testing.T) {
	b := newBinder(t)
	b.bind("b1", "create", "succeeded", "hush")
	m, err := platform.ParseManifest([]byte("applications: [{name: shop, services: [{name: my-db, binding_name: other}, own]}]"))
	if err != nil {
		t.Fatal(err)
	}
	diff, err := b.DiffManifest(t.Context(), admin, "s", m)
	if err != nil || fmt.Sprint(diff) != "[{add /applications/0/services/1 <nil> own}]" {
		t.Errorf("the difference is %v, %v", diff, err)
	}
}
