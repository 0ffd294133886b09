package postgres_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/brokers/postgres"
	"github.com/proa-dev/proa/kit/pg/pgtest"
	"github.com/proa-dev/proa/kit/seal"
)

const (
	patience = 60 * time.Second
	password = "a password of the platform"
)

// world is a server of PostgreSQL with an account for the broker that is no superuser, and the broker behind real HTTP.
type world struct {
	t      *testing.T
	root   *pgx.Conn // the server's superuser
	server string    // URLs
	state  string
	keys   []byte
	log    *logged
	plans  []postgres.Plan
	broker *postgres.Broker
	url    string
	stop   func() // ends the broker, as a signal would
}

type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// notes are the lines that are not about a request.
func (l *logged) notes() string {
	return strings.Join(slices.DeleteFunc(strings.SplitAfter(l.String(), "\n"), func(line string) bool { return strings.Contains(line, `"msg":"request"`) }), "")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newWorld prepares the server as an operator would; the broker runs, with whatever is changed in it first.
func newWorld(t *testing.T, change ...func(*postgres.Broker)) *world {
	t.Helper()
	w := prepare(t, os.Getenv("PROA_TEST_DATABASE_URL"))
	w.start(change...)
	return w
}

func prepare(t *testing.T, server string) *world {
	t.Helper()
	if server == "" {
		t.Fatal(`PROA_TEST_DATABASE_URL is not set. Run: eval "$(make -s test-db)"`)
	}
	root, err := pgx.Connect(t.Context(), server)
	must(t, err)
	w := &world{t: t, root: root, log: &logged{}}
	t.Cleanup(func() { _ = root.Close(context.Background()) })
	account := fmt.Sprintf("proa_test_%d_%s", time.Now().Unix(), strings.ToLower(rand.Text()[:8]))
	w.exec(`create role ` + account + ` login createdb createrole password 'broker'`)
	t.Cleanup(func() { w.sweep(account) })
	w.exec(`begin; select pg_advisory_xact_lock(4711); revoke connect, temporary on database postgres, template1 from public;
		grant set on parameter temp_file_limit to ` + account + `; commit`)
	for _, u := range []*string{&w.server, &w.state} {
		*u = as(t, pgtest.URL(t, nil), account, "broker")
		w.exec(`alter database ` + database(t, *u) + ` owner to ` + account)
	}
	w.keys, err = seal.Generate()
	must(t, err)
	w.plans, err = postgres.Plans(postgres.Limits{Connections: 3, Statement: 300 * time.Millisecond, TempFiles: 1 << 20},
		postgres.Limits{Connections: 10, Statement: time.Minute, TempFiles: 1 << 30}, 10)
	must(t, err)
	return w
}

func as(t *testing.T, raw, user, password string) string {
	t.Helper()
	u, err := url.Parse(raw)
	must(t, err)
	u.User = url.UserPassword(user, password)
	return u.String()
}

func database(t *testing.T, raw string) string {
	t.Helper()
	u, err := url.Parse(raw)
	must(t, err)
	return strings.TrimPrefix(u.Path, "/")
}

func (w *world) exec(sql string) {
	w.t.Helper()
	_, err := w.root.Exec(context.Background(), sql, pgx.QueryExecModeSimpleProtocol)
	must(w.t, err)
}

// list asks the superuser.
func (w *world) list(sql string, args ...any) []string {
	w.t.Helper()
	rows, err := w.root.Query(context.Background(), sql, args...)
	must(w.t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(w.t, err)
	return names
}

const (
	madeDatabases = `select datname from pg_database where datname like 'db\_%' and datdba = $1::regrole order by 1`
	madeRoles     = `select m.roleid::regrole::text from pg_auth_members m where m.member = $1::regrole and m.roleid::regrole::text like $2 order by 1`
)

func (w *world) account() string {
	u, err := url.Parse(w.server)
	must(w.t, err)
	return u.User.Username()
}

// made is what the broker has on the server.
func (w *world) made() (databases, owners, logins []string) {
	w.t.Helper()
	return w.list(madeDatabases, w.account()), w.list(madeRoles, w.account(), "owner%"), w.list(madeRoles, w.account(), "login%")
}

func (w *world) wantMade(databases, owners, logins int) {
	w.t.Helper()
	d, o, l := w.made()
	if len(d) != databases || len(o) != owners || len(l) != logins {
		w.t.Errorf("on the server are %d databases, %d owners and %d logins; want %d, %d, %d: %v %v %v", len(d), len(o), len(l), databases, owners, logins, d, o, l)
	}
}

func (w *world) sweep(account string) {
	for _, name := range w.list(madeDatabases, account) {
		w.exec(`drop database ` + name + ` with (force)`)
	}
	for _, name := range append(w.list(madeRoles, account, "login%"), w.list(madeRoles, account, "owner%")...) {
		w.exec(`drop role ` + name)
	}
	w.exec(`begin; select pg_advisory_xact_lock(4711); drop owned by ` + account + `; drop role ` + account + `; commit`)
}

// start runs a broker on the same state and server, as another process would.
func (w *world) start(change ...func(*postgres.Broker)) {
	w.t.Helper()
	box, err := seal.New(w.keys)
	must(w.t, err)
	state, err := postgres.OpenState(w.t.Context(), w.state, box)
	must(w.t, err)
	server, err := postgres.OpenServer(w.t.Context(), w.server)
	must(w.t, err)
	u, err := url.Parse(w.server)
	must(w.t, err)
	port, err := strconv.Atoi(u.Port())
	must(w.t, err)
	log := slog.New(slog.NewJSONHandler(w.log, nil))
	must(w.t, server.Guard(w.t.Context(), log))
	w.broker = &postgres.Broker{State: state, Server: server, Plans: w.plans, Host: u.Hostname(), Port: port, SSLMode: "disable", Log: log, Lease: 500 * time.Millisecond}
	for _, f := range change {
		f(w.broker)
	}
	part := w.broker.Part()
	door := httptest.NewServer(w.broker.Handler(postgres.Account{Username: "platform", Password: password}, nil))
	w.url = door.URL
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = part.Run(ctx)
	}()
	w.stop = sync.OnceFunc(func() {
		door.Close()
		cancel()
		<-ended
		state.Close()
		server.Close()
	})
	w.t.Cleanup(w.stop)
}

type reply struct {
	status int
	body   string
	json   map[string]any
}

// call is a request as a platform makes it. In the path, a dot at the end stands for the ids of the offering and the plan.
func (w *world) call(method, path string, body any) reply {
	w.t.Helper()
	r, err := w.try(method, path, body)
	must(w.t, err)
	return r
}

func (w *world) try(method, path string, body any) (reply, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return reply{}, err
	}
	if body == nil {
		data = nil
	}
	r, err := http.NewRequest(method, w.url+path, bytes.NewReader(data))
	if err != nil {
		return reply{}, err
	}
	r.SetBasicAuth("platform", password)
	r.Header.Set("X-Broker-API-Version", "2.17")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded") // as curl says, unless it is told otherwise
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return reply{}, err
	}
	out := reply{status: answer.StatusCode, body: string(text)}
	_ = json.Unmarshal(text, &out.json)
	return out, nil
}

func (w *world) want(status int, r reply) reply {
	w.t.Helper()
	if r.status != status {
		w.t.Fatalf("the answer is %d %s, want %d\n%s", r.status, r.body, status, w.log.notes())
	}
	return r
}

func (w *world) offering() string {
	services, err := w.broker.Services(context.Background())
	must(w.t, err)
	return services[0].ID
}

func (w *world) request(plan int, more ...any) map[string]any {
	m := map[string]any{"service_id": w.offering(), "plan_id": w.plans[plan].ID, "organization_guid": "org", "space_guid": "space"}
	for n := 0; n+1 < len(more); n += 2 {
		m[more[n].(string)] = more[n+1]
	}
	return m
}

const instances = "/v2/service_instances/"

// at is where an instance is. On the server, which other worlds use too, it has a name of this world's.
func (w *world) at(id string) string { return instances + w.name(id) }

func (w *world) name(id string) string { return w.account() + "-" + id }

func (w *world) query() string {
	return "?accepts_incomplete=true&service_id=" + w.offering() + "&plan_id=" + w.plans[0].ID
}

func (w *world) provision(id string, plan int, more ...any) reply {
	w.t.Helper()
	return w.call(http.MethodPut, w.at(id)+"?accepts_incomplete=true", w.request(plan, more...))
}

func (w *world) bind(id, binding string) reply {
	w.t.Helper()
	return w.call(http.MethodPut, w.at(id)+"/service_bindings/"+binding, w.request(0, "bind_resource", map[string]any{"app_guid": "app"}))
}

func (w *world) unbind(id, binding string) reply {
	w.t.Helper()
	return w.call(http.MethodDelete, w.at(id)+"/service_bindings/"+binding+w.query(), nil)
}

func (w *world) delete(id string) reply {
	w.t.Helper()
	return w.call(http.MethodDelete, w.at(id)+w.query(), nil)
}

// ended waits for the end of the operation, or for the instance to be gone.
func (w *world) ended(id string) (state, said string) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		r := w.call(http.MethodGet, w.at(id)+"/last_operation", nil)
		if r.status == http.StatusGone {
			return "gone", ""
		}
		if r.status == http.StatusOK && r.json["state"] != "in progress" {
			said, _ = r.json["description"].(string)
			return r.json["state"].(string), said
		}
	}
	w.t.Fatalf("the operation on %s did not end in %v\n%s", id, patience, w.log.notes())
	return "", ""
}

func (w *world) wantEnd(id, state string) {
	w.t.Helper()
	if got, said := w.ended(id); got != state {
		w.t.Fatalf("the operation on %s ended as %s (%s), want %s\n%s", id, got, said, state, w.log.notes())
	}
}

// ready makes an instance.
func (w *world) ready(id string, plan int, more ...any) {
	w.t.Helper()
	w.want(http.StatusAccepted, w.provision(id, plan, more...))
	w.wantEnd(id, "succeeded")
}

func credentials(r reply) postgres.Credentials {
	var b struct{ Credentials postgres.Credentials }
	_ = json.Unmarshal([]byte(r.body), &b)
	return b.Credentials
}

// connect logs in as an app would.
func (w *world) connect(c postgres.Credentials) *pgx.Conn {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), c.URI)
	must(w.t, err)
	w.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func sql(t *testing.T, conn *pgx.Conn, text string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// stateExec changes the broker's own records behind its back.
func (w *world) stateExec(text string) {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), plain(w.state))
	must(w.t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	sql(w.t, conn, text)
}

// plain is a URL without what only a pool understands.
func plain(raw string) string {
	before, _, _ := strings.Cut(raw, "?")
	return before + "?sslmode=disable"
}

// refused wants a login to fail with one of these codes.
func (w *world) refused(uri string, codes ...string) {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), uri)
	if err == nil {
		_ = conn.Close(context.Background())
		w.t.Errorf("a login to %s succeeds", database(w.t, uri))
		return
	}
	if !slices.ContainsFunc(codes, func(code string) bool { return strings.Contains(err.Error(), "SQLSTATE "+code) }) {
		w.t.Errorf("the login fails with %v, want one of %v", err, codes)
	}
}

// newDatabase is an empty one on the tests' server.
func newDatabase(t *testing.T) string {
	t.Helper()
	return pgtest.URL(t, nil)
}

// reconnect lets the superuser in again after a restart of the server.
func (w *world) reconnect(server string) {
	w.t.Helper()
	_ = w.root.Close(context.Background())
	root, err := pgx.Connect(w.t.Context(), server)
	must(w.t, err)
	w.root = root
}
