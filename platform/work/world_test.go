package work_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/proa-dev/proa/kit/pg/pgtest"
	"github.com/proa-dev/proa/kit/seal"
	v1 "github.com/proa-dev/proa/notify/v1"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/broker/brokertest"
	"github.com/proa-dev/proa/platform/store"
	"github.com/proa-dev/proa/platform/work"
)

// patience is how long something may take on a busy machine before a test gives up.
const patience = 60 * time.Second

var sealing = sync.OnceValue(func() []byte {
	keyset, err := seal.Generate()
	if err != nil {
		panic(err)
	}
	return keyset
})

func box(t testing.TB, keyset []byte) *seal.Box {
	t.Helper()
	return get[*seal.Box](t)(seal.New(keyset))
}

// get gives the value of a call that must not fail.
func get[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		must(t, err)
		return v
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// diary is a log that tests can search.
type diary struct {
	mu   sync.Mutex
	text strings.Builder
}

func (d *diary) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(p)
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

// world is a platform with a space, an app and a broker whose plans everybody can have.
type world struct {
	t      testing.TB
	url    string
	pool   *pgxpool.Pool
	store  *store.Store
	broker *brokertest.Broker
	log    *diary
	notify *v1.Client // nil: there is no notification service
	ann    platform.Who
	space  platform.Space
	app    platform.App
	names  map[string]string // what the tables call records, by their guids

	planned string // the plan that instances are made of
	times   times  // of the requests to the broker
}

// times notes when requests are sent.
type times struct {
	mu  sync.Mutex
	all []time.Time
}

// RoundTrip sends a request as it is.
func (c *times) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.all = append(c.all, time.Now())
	c.mu.Unlock()
	return http.DefaultTransport.RoundTrip(r)
}

// waits are the times between the last n requests.
func (c *times) waits(n int) (between []time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.all[max(len(c.all)-n, 0):]
	for i := 1; i < len(last); i++ {
		between = append(between, last[i].Sub(last[i-1]))
	}
	return between
}

// limits are small, so that what takes a week takes a second. The timeout is what a request to the broker may take.
var limits = work.Limits{Poll: 100 * time.Millisecond, Margin: 2 * time.Second, Sweep: 100 * time.Millisecond}

const timeout = 700 * time.Millisecond

var notes = platform.Metadata{Labels: map[string]string{}, Annotations: map[string]string{}}

// newWorld makes one whose broker is registered, with workers if there shall be some.
func newWorld(t testing.TB, opt brokertest.Options) *world {
	t.Helper()
	w := &world{t: t, log: &diary{}, names: map[string]string{}, ann: platform.Who{GUID: "guid-of-ann", Name: "ann", Origin: "uaa", Scopes: []string{platform.ScopeAdmin}}}
	w.url = pgtest.URL(t, store.Migrations(), store.Table)
	w.pool = get[*pgxpool.Pool](t)(pgxpool.New(t.Context(), w.url))
	t.Cleanup(w.pool.Close)
	w.store = store.New(w.pool, box(t, sealing()))
	w.broker = get[*brokertest.Broker](t)(brokertest.Start(opt))
	t.Cleanup(w.broker.Close)
	org := get[platform.Org](t)(w.store.CreateOrg(t.Context(), w.ann, platform.Org{Name: "acme", Metadata: notes}))
	w.space = get[platform.Space](t)(w.store.CreateSpace(t.Context(), w.ann, platform.Space{Name: "dev", OrgGUID: org.GUID, Metadata: notes}))
	w.app = get[platform.App](t)(w.store.CreateApp(t.Context(), w.ann, platform.App{Name: "shop", SpaceGUID: w.space.GUID, Lifecycle: platform.Lifecycle{Type: "docker"}, Metadata: notes}))
	return w
}

// work starts workers in this process, until the test or the returned function ends them.
func (w *world) work(l work.Limits, wait time.Duration) (stop func()) {
	w.t.Helper()
	s := &work.Service{
		Store: w.store, HTTP: &http.Client{Timeout: wait, Transport: &w.times}, Notify: w.notify, Limits: l, Log: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Metrics: work.NewMetrics(prometheus.NewRegistry()), Now: time.Now,
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Part().Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("the workers ended with %v", err)
		}
	})
	w.t.Cleanup(func() {
		stop()
		if w.t.Failed() && os.Getenv("PROA_TEST_LOG") != "" {
			_, _ = io.WriteString(os.Stderr, w.log.String())
		}
	})
	return stop
}

// register has the broker registered, and waits until it is known what it offers.
func (w *world) register() {
	w.t.Helper()
	job := get[platform.Job](w.t)(w.store.CreateServiceBroker(w.t.Context(), w.ann, platform.ServiceBroker{Name: "pg", URL: w.broker.URL}, w.broker.Account))
	if job = w.ended(job.GUID); job.State != platform.JobComplete {
		w.t.Fatalf("registering: %+v", job)
	}
	w.publish()
	w.broker.Forget()
}

// publish lets everybody have all plans.
func (w *world) publish() { w.exec(`update service_plans set visibility = 'public'`) }

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	_, err := w.pool.Exec(w.t.Context(), sql, args...)
	must(w.t, err)
}

func (w *world) value(sql string, args ...any) (text string) {
	w.t.Helper()
	must(w.t, w.pool.QueryRow(w.t.Context(), sql, args...).Scan(&text))
	return text
}

func (w *world) plan(name string) string {
	w.t.Helper()
	return w.value(`select guid from service_plans where name = $1`, name)
}

// ended waits until a job has ended.
func (w *world) ended(guid string) platform.Job {
	w.t.Helper()
	return w.job(guid, func(j platform.Job) bool { return j.State == platform.JobComplete || j.State == platform.JobFailed })
}

func (w *world) job(guid string, enough func(platform.Job) bool) (job platform.Job) {
	w.t.Helper()
	w.until("job "+guid, func() bool {
		job = get[platform.Job](w.t)(w.store.Job(w.t.Context(), w.ann, guid))
		return enough(job)
	})
	return job
}

// until waits for something that others do.
func (w *world) until(what string, so func() bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("%s: not so after %s\n%s", what, patience, w.log)
		}
	}
}

// create asks for an instance.
func (w *world) create(name, plan string, parameters string) platform.Job {
	w.t.Helper()
	var raw json.RawMessage
	if parameters != "" {
		raw = json.RawMessage(parameters)
	}
	job := get[platform.Job](w.t)(w.store.CreateServiceInstance(w.t.Context(), w.ann, platform.ServiceInstance{Name: name, SpaceGUID: w.space.GUID, PlanGUID: w.plan(plan)}, raw))
	w.names[w.instance(name)] = name
	return job
}

func (w *world) instance(name string) string {
	w.t.Helper()
	return w.value(`select coalesce((select guid from service_instances where name = $1), '')`, name)
}

// bind asks for a binding: of the app, or a key if it has a name.
func (w *world) bind(instance, key string) platform.Job {
	w.t.Helper()
	b := platform.ServiceBinding{Type: platform.BindingApp, AppGUID: w.app.GUID, InstanceGUID: w.instance(instance)}
	if key != "" {
		b = platform.ServiceBinding{Type: platform.BindingKey, Name: key, InstanceGUID: w.instance(instance)}
	}
	made := get[store.Asked[platform.ServiceBinding]](w.t)(w.store.CreateBinding(w.t.Context(), w.ann, b, nil, false))
	if key == "" {
		key = "binding"
	}
	w.names[made.Record.GUID] = key
	return *made.Job
}

// called puts names for guids.
func (w *world) called(text string) string {
	for guid, name := range w.names {
		text = strings.ReplaceAll(text, guid, name)
	}
	return text
}

// story is what the broker was asked, with names for guids.
func (w *world) story() []string {
	all := w.broker.Story()
	for i := range all {
		all[i] = w.called(all[i])
	}
	return slices.DeleteFunc(all, func(s string) bool { return strings.HasSuffix(s, never) })
}

// never is the id of what no broker has.
const never = "never-made"

// seen is the last operation of an instance or a binding, as its user sees it.
func (w *world) seen(table, name string) string {
	w.t.Helper()
	return w.value(`select coalesce((select op_type || ' ' || op_state || case op_description when '' then '' else ': ' || op_description end from `+table+` where guid = $1), 'gone')`, w.guid(name))
}

// guid is that of what the tables call so, also when it has gone.
func (w *world) guid(name string) string {
	for guid, called := range w.names {
		if called == name {
			return guid
		}
	}
	return ""
}

// calm waits until nothing is left to do: no operation and no orphan.
func (w *world) calm() {
	w.t.Helper()
	w.until("calm", func() bool {
		return w.value(`select (select count(*) from service_operations) || ' ' || (select count(*) from service_orphans where due_at < 'infinity')`) == "0 0"
	})
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %s\nwant %s", what, strings.Join(got, " | "), strings.Join(want, " | "))
	}
}

// show prints a row of a table so that it can be read.
func show(to *strings.Builder, columns ...string) {
	for i, name := range []string{"the broker ", "  the user sees        ", "  the job says         ", "  the broker was asked ", "  the broker has       "} {
		if i < len(columns) {
			fmt.Fprintf(to, "%s%s\n", name, strings.ReplaceAll(columns[i], "\n", "\n                       "))
		}
	}
}

func details(j platform.Job) string {
	text := string(j.State)
	for _, e := range j.Errors {
		text += ": " + e.Detail
		if e.Code != 10009 || e.Title != "UnableToPerform" {
			text += fmt.Sprintf(" (%d %s)", e.Code, e.Title)
		}
	}
	for _, warning := range j.Warnings {
		text += " | warning: " + warning
	}
	return text
}

func rawBytes(raw json.RawMessage, err error) ([]byte, error) { return raw, err }

// events holds the audit trail against what happened on the path: each with who asked for it.
func (w *world) events() {
	w.t.Helper()
	got := w.value(`select string_agg(type || ' ' || actor_name, ', ' order by type, created_at) from audit_events where type ~ '(instance|binding|key)\.(create|update|delete)$'`)
	want := "audit.service_binding.create ann, audit.service_binding.delete ann, audit.service_instance.create ann, audit.service_instance.delete ann, " +
		"audit.service_instance.update ann, audit.service_key.create ann, audit.service_key.delete ann"
	if got != want {
		w.t.Errorf("events:\n got %s\nwant %s", got, want)
	}
}

// hushed looks for secrets where none may be: in all of the log, and in every column of every table.
func (w *world) hushed(secrets ...string) {
	w.t.Helper()
	rows, err := w.pool.Query(w.t.Context(), `select table_name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'`)
	must(w.t, err)
	var tables []string
	for rows.Next() {
		var name string
		must(w.t, rows.Scan(&name))
		tables = append(tables, name)
	}
	must(w.t, rows.Err())
	for _, secret := range secrets {
		if log := w.log.String(); strings.Contains(log, secret) {
			w.t.Errorf("%s stands in the log:\n%s", secret, log)
		}
		for _, table := range tables {
			if n := w.value(`select count(*)::text from ` + table + ` t where t::text like '%` + secret + `%'`); n != "0" {
				w.t.Errorf("%s stands in %s", secret, table)
			}
		}
	}
}
