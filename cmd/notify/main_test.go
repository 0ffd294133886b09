package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/pg/pgtest"
	"github.com/proa-dev/proa/kit/token"
	"github.com/proa-dev/proa/notify/api/contract"
	"github.com/proa-dev/proa/notify/deliver/smtptest"
)

const adminPassword = "correct horse battery"

// world is the real programs: an authorization server and notification services on databases of their own, and a mail server and a
// platform at the wire.
type world struct {
	t        *testing.T
	authURL  string
	url      string
	auth     *uaa.Conn // as the administrator
	sink     *smtptest.Server
	platform *platform
	env      []string
	database string
	people   string // the authorization server's database
	log      *logged
	http     *http.Client // holds every request and reply against the OpenAPI description
}

type logged struct {
	mu   sync.Mutex
	text bytes.Buffer // not embedded: its ReadFrom would go round the lock
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

var binaries string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "notify")
	if err != nil {
		panic(err)
	}
	binaries = dir
	if out, err := exec.Command("go", "build", "-o", dir+"/", "../auth", "../proa", ".").CombinedOutput(); err != nil {
		panic(fmt.Sprintf("build: %v\n%s", err, out))
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// freeAddress finds an address that nothing listens on, below the range from which the system gives ports away by itself.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(10000))
		if l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("no free port was found in 100 tries")
	return ""
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, log: &logged{}, http: &http.Client{Transport: contract.Load(t).Transport(t, http.DefaultTransport)}}
	authAddress, address := freeAddress(t), freeAddress(t)
	w.authURL, w.url = "http://"+authAddress, "http://"+address
	keyset, err := exec.CommandContext(t.Context(), filepath.Join(binaries, "auth"), "keyset", "new").Output()
	must(t, err)
	w.sink, err = smtptest.Start(smtptest.Options{Keep: true})
	must(t, err)
	t.Cleanup(w.sink.Close)
	w.people = pgtest.URL(t, nil)
	w.start("auth", authAddress, []string{"PROA_AUTH_DATABASE_URL=" + w.people, "PROA_AUTH_KEYSET=" + string(keyset), "PROA_AUTH_URL=" + w.authURL, "PROA_AUTH_LISTEN=" + authAddress,
		"PROA_AUTH_METRICS_LISTEN=127.0.0.1:0", "PROA_AUTH_START_FILE=../../deploy/auth/start.yaml", "PROA_ADMIN_USERNAME=admin", "PROA_ADMIN_PASSWORD=" + adminPassword,
		"PROA_SSH_CLIENT_SECRET=x", "PROA_NOTIFY_CLIENT_SECRET=notify secret", "PROA_API_CLIENT_SECRET=x"})
	w.auth = &uaa.Conn{URL: w.authURL, HTTP: http.DefaultClient}
	admin, err := w.auth.Fetch(t.Context(), "cf", "", url.Values{"grant_type": {"password"}, "username": {"admin"}, "password": {adminPassword}})
	must(t, err)
	w.auth.Token = uaa.Static(admin.Access)
	w.platform = newPlatform(t, w.authURL)
	w.database = pgtest.URL(t, nil)
	w.env = []string{"PROA_NOTIFY_DATABASE_URL=" + w.database, "PROA_NOTIFY_KEYSET=" + string(keyset), "PROA_NOTIFY_URL=" + w.url, "PROA_AUTH_URL=" + w.authURL,
		"PROA_NOTIFY_CLIENT_SECRET=notify secret", "PROA_NOTIFY_PLATFORM_URL=" + w.platform.URL, "PROA_NOTIFY_RELAYS=smtp://" + w.sink.Addr + "?tls=none",
		"PROA_NOTIFY_FROM=Proa <notifications@proa.localhost>", "PROA_NOTIFY_DOMAIN=proa.localhost", "PROA_NOTIFY_METRICS_LISTEN=127.0.0.1:0"}
	return w
}

// start runs a program and waits until it is ready.
func (w *world) start(program, address string, env []string) *process {
	w.t.Helper()
	cmd := exec.Command(filepath.Join(binaries, program))
	cmd.Env, cmd.Stderr = slices.Concat(os.Environ(), env), w.log
	must(w.t, cmd.Start())
	p := &process{Cmd: cmd, done: make(chan error, 1)}
	go func() { p.done <- cmd.Wait() }()
	w.t.Cleanup(func() { w.stop(p) })
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline) && len(p.done) == 0; time.Sleep(20 * time.Millisecond) {
		if resp, err := http.Get("http://" + address + "/readyz"); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return p
			}
		}
	}
	w.t.Fatalf("%s did not become ready:\n%s", program, w.log)
	return nil
}

// serve starts the notification service.
func (w *world) serve() *process {
	address := strings.TrimPrefix(w.url, "http://")
	return w.start("notify", address, append(slices.Clone(w.env), "PROA_NOTIFY_LISTEN="+address))
}

// stop asks a process to end and wants it to end well.
func (w *world) stop(p *process) {
	if p.ended {
		return
	}
	p.ended = true
	_ = p.Process.Signal(syscall.SIGTERM)
	if err := <-p.done; err != nil {
		w.t.Errorf("%s did not end well: %v", p.Path, err)
	}
}

// kill ends a process as a power cut would.
func (w *world) kill(p *process) {
	p.ended = true
	_ = p.Process.Kill()
	<-p.done
}

// process is a program that runs.
type process struct {
	*exec.Cmd
	done  chan error
	ended bool
}

// client makes a client of the authorization server and returns its token.
func (w *world) client(id string, scopes ...string) string {
	w.t.Helper()
	must(w.t, w.auth.Call(w.t.Context(), http.MethodPost, "/oauth/clients", uaa.Client{ID: id, Secret: "s", Grants: uaa.List{"client_credentials"}, Authorities: scopes}, nil))
	got, err := w.auth.Fetch(w.t.Context(), id, "s", url.Values{"grant_type": {"client_credentials"}})
	must(w.t, err)
	return got.Access
}

// person adds somebody and returns their id.
func (w *world) person(name string) string {
	w.t.Helper()
	var u uaa.User
	must(w.t, w.auth.Call(w.t.Context(), http.MethodPost, "/Users", uaa.User{UserName: name, Password: name + "'s password", Emails: []uaa.Email{{Value: name + "@example.org"}}}, &u))
	return u.ID
}

// login is a person's own token.
func (w *world) login(name string) string {
	w.t.Helper()
	got, err := w.auth.Fetch(w.t.Context(), "cf", "", url.Values{"grant_type": {"password"}, "username": {name}, "password": {name + "'s password"}})
	must(w.t, err)
	return got.Access
}

type reply struct {
	status int
	header http.Header
	body   string
}

func (w *world) call(method, path, token string, body any, header ...string) reply {
	w.t.Helper()
	var in io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		in = strings.NewReader(b)
	default:
		encoded, err := json.Marshal(b)
		must(w.t, err)
		in = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, w.url+path, in)
	must(w.t, err)
	if token != "" {
		req.Header.Set("Authorization", "bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := w.http.Do(req)
	must(w.t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	must(w.t, err)
	return reply{resp.StatusCode, resp.Header, strings.TrimSpace(string(text))}
}

func (w *world) want(status int, r reply) reply {
	w.t.Helper()
	if r.status != status {
		w.t.Fatalf("got %d %s, want %d", r.status, r.body, status)
	}
	return r
}

// send sends a message and returns its id.
func (w *world) send(path, token string, body map[string]any, header ...string) string {
	w.t.Helper()
	r := w.want(200, w.call(http.MethodPost, path, token, body, header...))
	var list []struct {
		ID     string `json:"notification_id"`
		Status string `json:"status"`
	}
	must(w.t, json.Unmarshal([]byte(r.body), &list))
	if len(list) != 1 || list[0].ID == "" || list[0].Status != "queued" {
		w.t.Fatalf("the reply to a send: %s", r.body)
	}
	return list[0].ID
}

// status is how far a message is.
type status struct {
	Status    string         `json:"status"`
	Total     int            `json:"total"`
	Queued    int            `json:"queued"`
	Delivered int            `json:"delivered"`
	Failed    int            `json:"failed"`
	Skipped   map[string]int `json:"skipped"`
	Complete  bool           `json:"audience_complete"`
	Reason    string         `json:"reason"`
}

// settled waits until nothing more happens to a message.
func (w *world) settled(id, token string) status {
	w.t.Helper()
	var s status
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		r := w.want(200, w.call(http.MethodGet, "/messages/"+id, token, nil))
		s = status{}
		must(w.t, json.Unmarshal([]byte(r.body), &s))
		if s.Status != "queued" {
			return s
		}
	}
	w.t.Fatalf("the message is still queued after 30 s: %+v\n%s", s, w.log)
	return s
}

// mailsTo are those that reached an address.
func (w *world) mailsTo(address string) []string {
	var list []string
	for _, m := range w.sink.Mails() {
		if m.To == address {
			list = append(list, string(m.Raw))
		}
	}
	return list
}

// platform is the platform's API at the wire. It refuses what the real one refuses: no token, a token without the scope, a page
// that is too large, and things that are not there.
type platform struct {
	URL   string
	mu    sync.Mutex
	roles map[string][]string // of a space or organization: user guids, one for each role
	names map[string]string
	orgs  map[string]string // of a space
}

func newPlatform(t *testing.T, authURL string) *platform {
	p := &platform{roles: map[string][]string{}, names: map[string]string{}, orgs: map[string]string{}}
	keys := &token.Remote{URL: authURL + "/token_keys", Client: http.DefaultClient, Now: time.Now}
	verifier := &token.Verifier{Issuer: authURL, Audience: []string{"cloud_controller"}, Key: keys.Key, Now: time.Now}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refuse := func(status, code int, title, detail string) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(map[string]any{"errors": []map[string]any{{"code": code, "title": title, "detail": detail}}})
		}
		claims, err := verifier.FromRequest(r)
		if err != nil {
			refuse(401, 1000, "CF-InvalidAuthToken", "Invalid Auth Token")
			return
		}
		if !claims.Has("cloud_controller.admin", "cloud_controller.global_auditor", "cloud_controller.admin_read_only") {
			refuse(403, 10003, "CF-NotAuthorized", "You are not authorized to perform the requested action")
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.answer(w, r, refuse)
	}))
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

func (p *platform) answer(w http.ResponseWriter, r *http.Request, refuse func(int, int, string, string)) {
	what, guid, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v3/"), "/")
	switch {
	case (what == "spaces" || what == "organizations") && p.names[guid] != "":
		_ = json.NewEncoder(w).Encode(map[string]any{"guid": guid, "name": p.names[guid],
			"relationships": map[string]any{"organization": map[string]any{"data": map[string]string{"guid": p.orgs[guid]}}}})
	case what == "roles":
		q := r.URL.Query()
		per, _ := strconv.Atoi(q.Get("per_page"))
		if per < 1 || per > 5000 {
			refuse(400, 10005, "CF-BadQueryParameter", "The query parameter is invalid: Per page must be between 1 and 5000")
			return
		}
		per = min(per, 3) // so that a small test needs several pages
		page := max(1, atoi(q.Get("page")))
		all := p.roles[q.Get("space_guids")+q.Get("organization_guids")+q.Get("types")]
		from, to := min((page-1)*per, len(all)), min(page*per, len(all))
		var list []any
		for _, user := range all[from:to] {
			list = append(list, map[string]any{"relationships": map[string]any{"user": map[string]any{"data": map[string]string{"guid": user}}}})
		}
		var next any
		if to < len(all) {
			q.Set("page", strconv.Itoa(page+1))
			next = map[string]string{"href": p.URL + "/v3/roles?" + q.Encode()}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"pagination": map[string]any{"next": next}, "resources": list})
	default:
		refuse(404, 10010, "CF-ResourceNotFound", "Resource not found")
	}
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}
