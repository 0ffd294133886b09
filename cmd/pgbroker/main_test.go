package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/pg/pgtest"
	"github.com/proa-dev/proa/kit/seal"
)

const (
	password = "a password of the platform"
	patience = 90 * time.Second
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is the real program on a server that it has an account on, and that a superuser looks at.
type world struct {
	t       *testing.T
	binary  string
	account string
	root    *pgx.Conn
	env     []string
	address string
	log     *logged
	cmd     *exec.Cmd
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

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, binary: filepath.Join(t.TempDir(), "pgbroker"), account: fmt.Sprintf("proa_test_%d_%s", time.Now().Unix(), strings.ToLower(rand.Text()[:8])),
		address: freeAddress(t), log: &logged{}}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", w.binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	var err error
	w.root, err = pgx.Connect(t.Context(), os.Getenv("PROA_TEST_DATABASE_URL"))
	must(t, err)
	w.exec(`create role ` + w.account + ` login createdb createrole password 'broker'`)
	t.Cleanup(w.sweep)
	keyset, err := seal.Generate()
	must(t, err)
	w.env = []string{"PROA_PGBROKER_LISTEN=" + w.address, "PROA_PGBROKER_METRICS_LISTEN=" + freeAddress(t), "PROA_PGBROKER_PASSWORD=" + password,
		"PROA_PGBROKER_KEYSET=" + string(keyset), "PROA_PGBROKER_HOST=127.0.0.1", "PROA_PGBROKER_SSLMODE=disable"}
	for _, name := range []string{"DATABASE", "SERVER"} {
		u, err := url.Parse(pgtest.URL(t, nil))
		must(t, err)
		w.exec(`alter database ` + u.Path[1:] + ` owner to ` + w.account)
		u.User = url.UserPassword(w.account, "broker")
		w.env = append(w.env, "PROA_PGBROKER_"+name+"_URL="+u.String())
		if name == "SERVER" {
			w.env = append(w.env, "PROA_PGBROKER_PORT="+u.Port())
		}
	}
	return w
}

func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 10000+mathrand.IntN(10000))
		if l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("no free port was found in 100 tries")
	return ""
}

func (w *world) exec(sql string) {
	w.t.Helper()
	_, err := w.root.Exec(context.Background(), sql)
	must(w.t, err)
}

func (w *world) list(sql string, args ...any) []string {
	w.t.Helper()
	rows, err := w.root.Query(context.Background(), sql, args...)
	must(w.t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(w.t, err)
	return names
}

func (w *world) databases() []string {
	return w.list(`select datname from pg_database where datdba = $1::regrole and datname like 'db\_%'`, w.account)
}

func (w *world) roles(kind string) []string {
	return w.list(`select roleid::regrole::text from pg_auth_members where member = $1::regrole and roleid::regrole::text like $2`, w.account, kind+"%")
}

func (w *world) sweep() {
	for _, name := range w.databases() {
		w.exec(`drop database ` + name + ` with (force)`)
	}
	for _, name := range append(w.roles("login"), w.roles("owner")...) {
		w.exec(`drop role ` + name)
	}
	w.exec(`drop role ` + w.account)
	_ = w.root.Close(context.Background())
}

func (w *world) start() {
	w.t.Helper()
	w.cmd = exec.Command(w.binary)
	w.cmd.Env, w.cmd.Stderr = w.env, w.log
	must(w.t, w.cmd.Start())
	cmd := w.cmd
	w.t.Cleanup(func() { _ = cmd.Process.Kill() })
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if r, err := http.Get("http://" + w.address + "/readyz"); err == nil {
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return
			}
		}
	}
	w.t.Fatalf("it is not ready in %v\n%s", patience, w.log)
}

// kill ends the program as a power cut would.
func (w *world) kill() {
	w.t.Helper()
	must(w.t, w.cmd.Process.Kill())
	_ = w.cmd.Wait()
}

// ask sends a request as a platform does; no answer is 0.
func (w *world) ask(method, path string, body any) (int, map[string]any) {
	data, err := json.Marshal(body)
	must(w.t, err)
	r, err := http.NewRequestWithContext(w.t.Context(), method, "http://"+w.address+path, bytes.NewReader(data))
	must(w.t, err)
	r.SetBasicAuth("platform", password)
	r.Header.Set("X-Broker-API-Version", "2.17")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		return 0, nil
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, nil
	}
	out := map[string]any{}
	_ = json.Unmarshal(text, &out)
	return answer.StatusCode, out
}

// until repeats a request, as a platform does that gets no answer, until it has one of these.
func (w *world) until(method, path string, body any, good func(int, map[string]any) bool) map[string]any {
	w.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if status, answer := w.ask(method, path, body); good(status, answer) {
			return answer
		}
	}
	w.t.Fatalf("%s %s came to no good end in %v\n%s", method, path, patience, w.log)
	return nil
}

// The program is killed again and again, at moments of chance, while it makes, binds, unbinds and drops. There is never more than
// one database and one owner of an instance, in the end there is exactly what was asked for, and it stops cleanly when told.
func TestKilledAgainAndAgain(t *testing.T) {
	w := newWorld(t)
	w.start()
	_, catalog := w.ask(http.MethodGet, "/v2/catalog", nil)
	service := catalog["services"].([]any)[0].(map[string]any)
	plan := service["plans"].([]any)[0].(map[string]any)["id"]
	request := map[string]any{"service_id": service["id"], "plan_id": plan, "organization_guid": "o", "space_guid": "s"}
	query := fmt.Sprintf("?accepts_incomplete=true&service_id=%s&plan_id=%s", service["id"], plan)
	status := func(codes ...int) func(int, map[string]any) bool {
		return func(got int, _ map[string]any) bool {
			for _, code := range codes {
				if got == code {
					return true
				}
			}
			return false
		}
	}
	// killing ends the program some milliseconds after something was begun, and starts it again.
	killing := func(begin func()) {
		t.Helper()
		var all sync.WaitGroup
		all.Go(begin)
		time.Sleep(mathrand.N(150 * time.Millisecond)) // the moment of chance
		w.kill()
		all.Wait()
		w.start()
		if d, o := w.databases(), w.roles("owner"); len(d) > 1 || len(o) > 1 {
			t.Fatalf("after a kill there are %v and %v", d, o)
		}
	}
	const rounds = 3
	for round := range rounds {
		at := fmt.Sprintf("/v2/service_instances/%s-%d", w.account, round)
		put := func() { w.ask(http.MethodPut, at+query, request) }
		killing(put)
		killing(put)
		w.until(http.MethodPut, at+query, request, status(200, 202))
		killing(func() {})
		w.until(http.MethodGet, at+"/last_operation", nil, func(code int, m map[string]any) bool { return code == 200 && m["state"] == "succeeded" })

		killing(func() { w.ask(http.MethodPut, at+"/service_bindings/b", request) })
		c := w.until(http.MethodPut, at+"/service_bindings/b", request, status(200, 201))["credentials"].(map[string]any)
		if d, o, l := w.databases(), w.roles("owner"), w.roles("login"); len(d) != 1 || len(o) != 1 || len(l) != 1 {
			t.Fatalf("bound: %v %v %v", d, o, l)
		}
		app, err := pgx.Connect(t.Context(), c["uri"].(string))
		must(t, err)
		_, err = app.Exec(t.Context(), `create table boats (n int)`)
		must(t, err)
		killing(func() { w.ask(http.MethodDelete, at+"/service_bindings/b"+query, nil) })
		w.until(http.MethodDelete, at+"/service_bindings/b"+query, nil, status(200, 410))
		if l := w.roles("login"); len(l) != 0 {
			t.Fatalf("unbound, but there is %v", l)
		}
		killing(func() { w.ask(http.MethodDelete, at+query, nil) })
		w.until(http.MethodDelete, at+query, nil, status(202, 410))
		killing(func() {})
		w.until(http.MethodGet, at+"/last_operation", nil, status(410))
		if d, o := w.databases(), w.roles("owner"); len(d) != 0 || len(o) != 0 {
			t.Fatalf("deleted, but there are %v and %v", d, o)
		}
		if strings.Contains(w.log.String(), c["password"].(string)) {
			t.Errorf("a password stands in the log:\n%s", w.log)
		}
		_ = app.Close(context.Background())
	}
	must(t, w.cmd.Process.Signal(syscall.SIGTERM))
	if err := w.cmd.Wait(); err != nil {
		t.Errorf("told to stop: %v\n%s", err, w.log)
	}
	if log := w.log.String(); strings.Contains(log, password) || strings.Contains(log, "postgres://") || strings.Contains(log, "is stuck") {
		t.Errorf("the log:\n%s", log)
	}
	t.Logf("killed %d times", rounds*7)
}

// What is wrong with the settings is said at once, all of it, and nothing secret.
func TestSettings(t *testing.T) {
	w := newWorld(t)
	cmd := exec.CommandContext(t.Context(), w.binary)
	cmd.Env = append(append([]string{}, w.env...), "PROA_PGBROKER_SSLMODE=never", "PROA_PGBROKER_PORT=70000", "PROA_PGBROKER_PASSWORD=short7")
	out, err := cmd.CombinedOutput()
	for _, want := range []string{"PROA_PGBROKER_SSLMODE", "PROA_PGBROKER_PORT", "PROA_PGBROKER_PASSWORD", "pgbroker help"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s is not in: %s", want, out)
		}
	}
	if err == nil || strings.Contains(string(out), "short7") {
		t.Errorf("%v: %s", err, out)
	}
}
