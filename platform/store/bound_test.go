package store_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proa-dev/proa/kit/pg/pgtest"
	"github.com/proa-dev/proa/kit/seal"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/store"
)

// binder is a space with an app that can be started, and a managed and a user-provided service. It writes bindings as those who ask brokers do.
type binder struct {
	*testing.T
	*store.Store

	pool *pgxpool.Pool
	box  *seal.Box
}

func newBinder(t *testing.T) *binder {
	t.Helper()
	keyset, err := seal.Generate()
	if err != nil {
		t.Fatal(err)
	}
	box, err := seal.New(keyset)
	if err != nil {
		t.Fatal(err)
	}
	b := &binder{T: t, pool: pgtest.New(t, store.Migrations(), store.Table), box: box}
	b.Store = store.New(b.pool, box)
	for _, statement := range []string{
		`insert into orgs (guid, name) values ('o', 'o')`,
		`insert into spaces (guid, org_guid, name, cluster_id) values ('s', 'o', 's', 'default')`,
		`insert into apps (guid, space_guid, name, lifecycle, stack, droplet_guid) values ('a', 's', 'shop', 'buildpack', 'proa', 'd')`,
		`insert into processes (guid, app_guid, type, command, instances, memory_mb, disk_mb, log_rate, health, readiness) values ('a', 'a', 'web', null, 1, 64, 64, -1, '{"type": "process"}', '{"type": "process"}')`,
		`insert into droplets (guid, app_guid, package_guid, build_guid, state, image, lifecycle) values ('d', 'a', '', '', 'STAGED', 'r/d@sha256:1', 'buildpack')`,
		`insert into service_brokers (guid, name, url, credentials, state) values ('br', 'br', 'http://broker', '', 'AVAILABLE')`,
		`insert into service_offerings (guid, broker_guid, unique_id, name, description, active, bindable, plan_updateable, instances_retrievable, bindings_retrievable, context_updates, shareable, tags, requires, documentation_url, catalog_metadata)
			values ('of', 'br', 'of-id', 'postgres', '', true, true, true, false, false, false, false, '{sql,db}', '{}', '', '{}')`,
		`insert into service_plans (guid, offering_guid, unique_id, name, description, free, active, bindable, plan_updateable, visibility, max_polling, catalog_metadata, schemas)
			values ('pl', 'of', 'pl-id', 'small', '', true, true, true, true, 'public', 0, '{}', '{}')`,
		`insert into service_instances (guid, space_guid, name, plan_guid, tags) values ('i', 's', 'my-db', 'pl', '{mine,sql}')`,
	} {
		b.exec(statement)
	}
	b.exec(`insert into service_instances (guid, space_guid, name, credentials) values ('u', 's', 'own', $1)`, b.seal(`{"key":"provided hush","n":1.50}`, "service instance u"))
	return b
}

func (b *binder) exec(statement string, args ...any) {
	b.Helper()
	if _, err := b.pool.Exec(b.Context(), statement, args...); err != nil {
		b.Fatalf("%s: %v", statement, err)
	}
}

func (b *binder) seal(plain, context string) []byte {
	b.Helper()
	sealed, err := b.box.Seal([]byte(plain), []byte(context))
	if err != nil {
		b.Fatal(err)
	}
	return sealed
}

// bind writes a binding to the managed service whose last operation stands so; credentials are empty before a broker has given any.
func (b *binder) bind(guid, operation, state, password string) {
	b.Helper()
	var sealed []byte
	if password != "" {
		details, err := json.Marshal(platform.BindingDetails{Credentials: json.RawMessage(`{"password":"` + password + `","port":5432.0}`)})
		if err != nil {
			b.Fatal(err)
		}
		sealed = b.seal(string(details), "service binding "+guid)
	}
	b.exec(`insert into service_bindings (guid, type, instance_guid, app_guid, space_guid, credentials, op_type, op_state) values ($1, 'app', 'i', 'a', 's', $2, $3, $4)`, guid, sealed, operation, state)
}

// release is what the app's web process runs, or would.
func (b *binder) release() platform.Release {
	b.Helper()
	wanted, err := b.Wanted(b.Context(), "default")
	if err != nil || len(wanted) != 1 {
		b.Fatalf("%d are wanted: %v", len(wanted), err)
	}
	return wanted[0].Release
}

// restarted is the app's next release.
func (b *binder) restarted() platform.Release {
	b.Helper()
	if _, err := b.RestartApp(b.Context(), admin, "a", store.Settings{}); err != nil {
		b.Fatal(err)
	}
	return b.release()
}

// credentials are those of the managed service in a release; empty if there is none.
func (b *binder) credentials(r platform.Release) string {
	b.Helper()
	var services map[string][]struct{ Credentials json.RawMessage }
	if err := json.Unmarshal([]byte(r.Env["VCAP_SERVICES"]), &services); err != nil {
		b.Fatalf("%v in %s", err, r.Env["VCAP_SERVICES"])
	}
	switch its := services["postgres"]; len(its) {
	case 0:
		return ""
	case 1:
		return string(its[0].Credentials)
	default:
		b.Fatalf("one instance is there %d times: %s", len(its), r.Env["VCAP_SERVICES"])
		return ""
	}
}

func password(is string) string { return `{"password":"` + is + `","port":5432.0}` }

// TestCredentialsComeWithTheNextRelease, and nothing of them can be read in the database.
func TestCredentialsComeWithTheNextRelease(t *testing.T) {
	b := newBinder(t)
	if got := b.restarted().Env["VCAP_SERVICES"]; got != `{}` {
		t.Errorf("without services there is %s", got)
	}
	before := b.release()
	b.bind("b1", "create", "succeeded", "hush")
	b.exec(`insert into service_bindings (guid, type, name, instance_guid, app_guid, space_guid) values ('ub', 'app', 'renamed', 'u', 'a', 's')`)
	b.exec(`insert into service_bindings (guid, type, name, instance_guid, space_guid, credentials) values ('key', 'key', 'k', 'i', 's', $1)`, b.seal(`{"Credentials":{"password":"of a key"}}`, "service binding key"))
	if now := b.release(); now.GUID != before.GUID || now.Env["VCAP_SERVICES"] != `{}` {
		t.Errorf("what runs was changed: %s", now.Env["VCAP_SERVICES"])
	}
	want := `{"postgres":[{"label":"postgres","provider":null,"plan":"small","name":"my-db","tags":["db","mine","sql"],"instance_guid":"i","instance_name":"my-db","binding_guid":"b1","binding_name":null,` +
		`"credentials":` + password("hush") + `,"syslog_drain_url":null,"volume_mounts":[]}],"user-provided":[{"label":"user-provided","provider":null,"name":"renamed","tags":[],"instance_guid":"u","instance_name":"own",` +
		`"binding_guid":"ub","binding_name":"renamed","credentials":{"key":"provided hush","n":1.50},"syslog_drain_url":null,"volume_mounts":[]}]}`
	if got := b.restarted().Env["VCAP_SERVICES"]; got != want {
		t.Errorf("the next release has\n%s, want\n%s", got, want)
	}
	shot, err := b.AppEnvironment(t.Context(), admin, "a", store.Settings{})
	if system, _ := shot.System(); err != nil || system["VCAP_SERVICES"] != want {
		t.Errorf("it is shown as %v, %v", system, err)
	}

	// The plan of the moment, and what the user provides at the moment.
	b.exec(`update service_plans set name = 'large'`)
	b.exec(`update service_instances set name = 'mine', credentials = $1 where guid = 'u'`, b.seal(`{}`, "service instance u"))
	if got := b.restarted().Env["VCAP_SERVICES"]; !strings.Contains(got, `"plan":"large"`) || !strings.Contains(got, `"instance_name":"mine","binding_guid":"ub","binding_name":"renamed","credentials":{}`) {
		t.Errorf("later there is %s", got)
	}

	for _, table := range []string{"releases", "service_bindings", "service_instances", "audit_events", "log_lines", "revisions", "jobs"} {
		var found int
		if err := b.pool.QueryRow(t.Context(), `select count(*) from `+table+` x where x::text like '%hush%' or x::text like '%'||encode('hush', 'hex')||'%' or x::text like '%'||encode('hush', 'base64')||'%'`).Scan(&found); err != nil || found != 0 {
			t.Errorf("%s tells the password in %d rows, %v", table, found, err)
		}
	}
}

// TestWhichBindingsCount: a binding gives what it has from when it was made until it is being taken away.
func TestWhichBindingsCount(t *testing.T) {
	for name, c := range map[string]struct {
		operation, state, password string
		counts                     bool
	}{
		"made":                                {"create", "succeeded", "p", true},
		"not asked for yet":                   {"create", "initial", "", false},
		"being made":                          {"create", "in progress", "", false},
		"never made":                          {"create", "failed", "", false},
		"never made, though it has something": {"create", "failed", "p", false},
		"to be deleted":                       {"delete", "initial", "p", false},
		"being deleted":                       {"delete", "in progress", "p", false},
		"could not be deleted":                {"delete", "failed", "p", true},
		"never made, could not be deleted":    {"delete", "failed", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBinder(t)
			b.bind("b1", c.operation, c.state, c.password)
			want := ""
			if c.counts {
				want = password("p")
			}
			if got := b.credentials(b.restarted()); got != want {
				t.Errorf("the app is given %q", got)
			}
			m, err := b.AppManifest(t.Context(), admin, "a")
			if err != nil || c.counts != (fmt.Sprint(m.Applications[0].Services) == "[{my-db  map[]}]") || !c.counts && len(m.Applications[0].Services) > 0 {
				t.Errorf("its manifest names %+v, %v", m.Applications[0].Services, err)
			}
		})
	}
}

// TestRotation: of two bindings of one instance the newest that was made counts. An app that goes back to an earlier revision, or whose
// release is made again, gets the credentials of now.
func TestRotation(t *testing.T) {
	b := newBinder(t)
	b.bind("b1", "create", "succeeded", "old")
	if got := b.credentials(b.restarted()); got != password("old") {
		t.Errorf("the first release has %s", got)
	}
	b.bind("a-newer-one", "create", "in progress", "")
	if got := b.credentials(b.restarted()); got != password("old") {
		t.Errorf("while the next is being made there is %s", got)
	}
	b.exec(`delete from service_bindings where guid = 'a-newer-one'`)
	b.bind("a-newer-one", "create", "succeeded", "new")
	b.bind("a-failed-one", "create", "failed", "")
	if got := b.credentials(b.release()); got != password("old") {
		t.Errorf("what runs has %s", got)
	}
	if got := b.credentials(b.restarted()); got != password("new") {
		t.Errorf("the next release has %s", got)
	}
	if m, err := b.AppManifest(t.Context(), admin, "a"); err != nil || len(m.Applications[0].Services) != 1 {
		t.Errorf("its manifest names %+v, %v", m, err)
	}

	// The old binding goes, and then the app goes back to how it was when that was its only one.
	first, err := b.RevisionsOf(t.Context(), admin, "a", platform.List{Page: 1, PerPage: 10})
	if err != nil || len(first.Records) != 1 {
		t.Fatalf("revisions: %+v, %v", first, err)
	}
	b.exec(`delete from service_bindings where guid = 'b1'`)
	if _, err := b.UpdateApp(t.Context(), admin, "a", func(a *platform.App) error { return a.SetEnv(map[string]*string{"X": new("1")}) }); err != nil {
		t.Fatal(err)
	}
	b.restarted()
	d, err := b.CreateDeployment(t.Context(), admin, platform.Deployment{AppGUID: "a", RevisionGUID: first.Records[0].GUID}, store.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := b.Wanted(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	back := slices.IndexFunc(wanted, func(w platform.Wanted) bool { return w.Release.Version == d.Version })
	if _, set := wanted[back].Release.Env["X"]; set || b.credentials(wanted[back].Release) != password("new") {
		t.Errorf("the release of the rollback has %v", wanted[back].Release.Env)
	}
}

// TestFilesOfARelease: they are there when the app asks for them, from the next release on, and sealed like everything else of it.
func TestFilesOfARelease(t *testing.T) {
	b := newBinder(t)
	b.bind("b1", "create", "succeeded", "hush")
	if r := b.restarted(); r.Files != nil || r.Env["SERVICE_BINDING_ROOT"] != "" {
		t.Errorf("there are files that nobody asked for: %v", r.Files)
	}
	feature := func(on bool) {
		t.Helper()
		a, err := b.UpdateApp(t.Context(), admin, "a", func(a *platform.App) error { return a.SetFeature(platform.FeatureBindingFiles, on) })
		if err != nil || a.BindingFiles != on {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	feature(true)
	if r := b.release(); r.Files != nil {
		t.Error("what runs was changed")
	}
	r := b.restarted()
	if r.Files["my-db/password"] != "hush" || r.Files["my-db/port"] != "5432.0" || r.Files["my-db/type"] != "postgres" || r.Env["SERVICE_BINDING_ROOT"] != platform.BindingsRoot || b.credentials(r) != password("hush") {
		t.Errorf("the files are %v", r.Files)
	}
	m, err := b.AppManifest(t.Context(), admin, "a")
	if err != nil || !m.Applications[0].Features[platform.FeatureBindingFiles] {
		t.Errorf("the manifest does not tell: %v, %v", m.Applications[0].Features, err)
	}
	feature(false)
	if r := b.restarted(); r.Files != nil {
		t.Errorf("there are still %v", slices.Sorted(maps.Keys(r.Files)))
	}
	// More than a variable holds: the start is refused with what helps, and that helps.
	b.exec(`update service_bindings set credentials = $1`, b.seal(`{"Credentials":{"big":"`+strings.Repeat("x", 200_000)+`"}}`, "service binding b1"))
	if _, err := b.RestartApp(t.Context(), admin, "a", store.Settings{}); err == nil || !strings.Contains(err.Error(), "switch on the feature service-binding-k8s") {
		t.Errorf("it says %v", err)
	}
	feature(true)
	if r := b.restarted(); len(r.Files["my-db/big"]) != 200_000 || r.Env["VCAP_SERVICES"] != "" {
		t.Errorf("the file has %d bytes, the variable %d", len(r.Files["my-db/big"]), len(r.Env["VCAP_SERVICES"]))
	}
}
