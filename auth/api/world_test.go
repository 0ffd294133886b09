package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/auth/api"
	"github.com/proa-dev/proa/auth/grant"
	"github.com/proa-dev/proa/auth/store"
	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/pg/pgtest"
	"github.com/proa-dev/proa/kit/seal"
	"github.com/proa-dev/proa/kit/web"
)

// world is a whole authorization server on a database of its own, with a clock that a test can move and a log that it can read.
type world struct {
	t       testing.TB
	url     string
	store   *store.Store
	keys    *grant.Keys
	engine  *grant.Engine
	handler http.Handler
	log     *logged
	offset  atomic.Int64
	frozen  atomic.Pointer[time.Time] // nil: the clock runs
	admin   string                    // the administrator's access token
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

const adminPassword = "correct horse battery"

func (w *world) now() time.Time {
	if at := w.frozen.Load(); at != nil {
		return *at
	}
	return time.Now().Add(time.Duration(w.offset.Load()))
}

// freeze stops the clock.
func (w *world) freeze() {
	at := w.now()
	w.frozen.Store(&at)
}

// later moves the clock.
func (w *world) later(d time.Duration) { w.offset.Add(int64(d)) }

// signing is one key pair for all worlds: making one takes longer than most tests.
var signing = sync.OnceValues(func() (*seal.Box, auth.SigningKey) {
	keyset, err := seal.Generate()
	if err != nil {
		panic(err)
	}
	box, err := seal.New(keyset)
	if err != nil {
		panic(err)
	}
	key, err := (&grant.Keys{Box: box}).NewKey(time.Now().Add(-time.Minute))
	if err != nil {
		panic(err)
	}
	return box, key
})

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, store: store.New(pgtest.New(t, store.Migrations(), store.Table)), log: &logged{}}
	must(t, w.store.Apply(t.Context(), auth.Start{
		Groups: []auth.StartGroup{{Name: "openid", Everyone: true, Description: "Know who you are"}, {Name: "uaa.user", Everyone: true}, {Name: "password.write", Everyone: true},
			{Name: "cloud_controller.read", Everyone: true}, {Name: "uaa.admin"}, {Name: "scim.read"}, {Name: "scim.write"}},
		Clients: []auth.StartClient{
			{ID: "cf", Grants: []string{"password", "refresh_token"}, Scopes: []string{"openid", "uaa.user", "password.write", "cloud_controller.read", "uaa.admin", "scim.read", "scim.write"}},
			{ID: "ssh-proxy", SecretFrom: "X", Secret: "ssh secret", Grants: []string{"authorization_code"}, Scopes: []string{"openid", "uaa.user", "cloud_controller.read"},
				Redirects: []string{"http://localhost/ssh"}, AutoApprove: []string{"true"}},
			{ID: "app", Name: "Sample app", Grants: []string{"authorization_code", "refresh_token"}, Scopes: []string{"openid", "cloud_controller.read"},
				Redirects: []string{"https://app.example.org/callback"}},
			{ID: "backend", SecretFrom: "X", Secret: "backend secret", Grants: []string{"authorization_code", "client_credentials"}, Scopes: []string{"openid"},
				Authorities: []string{"uaa.resource"}, Redirects: []string{"https://backend.example.org/callback"}},
		},
		Administrator: auth.StartAdmin{Name: "admin", Password: adminPassword, Email: "admin@example.org", Groups: []string{"uaa.admin", "scim.read", "scim.write"}},
	}))
	server := httptest.NewUnstartedServer(nil)
	w.url = "http://" + server.Listener.Addr().String()
	base, err := url.Parse(w.url)
	must(t, err)
	box, key := signing()
	w.keys = &grant.Keys{Store: w.store, Box: box, Log: slog.New(slog.NewJSONHandler(w.log, nil)), Now: w.now}
	must(t, w.store.FirstKey(t.Context(), auth.Who{Name: "test"}, key))
	must(t, w.keys.Start(t.Context()))
	w.engine = grant.New(grant.Engine{Store: w.store, Keys: w.keys, Issuer: w.url, Now: w.now,
		Lives: grant.Lives{Access: 10 * time.Minute, Client: time.Hour, Refresh: 24 * time.Hour, Code: 5 * time.Minute}})
	w.handler = (&api.Server{Store: w.store, Engine: w.engine, URL: base, Log: slog.New(slog.NewJSONHandler(w.log, nil)),
		Metrics: web.NewMetrics(), MinPassword: 8, Now: w.now}).Handler()
	server.Config.Handler = w.handler
	server.Start()
	t.Cleanup(server.Close)
	w.admin = w.login("admin", adminPassword).Access
	return w
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// reply is what came back.
type reply struct {
	status int
	header http.Header
	body   string
}

func (r reply) json(t testing.TB, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.body), into); err != nil {
		t.Fatalf("%v in %s", err, r.body)
	}
}

func (w *world) do(req *http.Request) reply {
	w.t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	must(w.t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	must(w.t, err)
	return reply{resp.StatusCode, resp.Header, strings.TrimSpace(string(body))}
}

// call sends JSON with a token; "" sends none.
func (w *world) call(method, path, token string, body any) reply {
	w.t.Helper()
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		must(w.t, err)
		in = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, w.url+path, in)
	must(w.t, err)
	if token != "" {
		req.Header.Set("Authorization", "bearer "+token)
	}
	return w.do(req)
}

// form posts a form as a client; an empty id sends no Basic header.
func (w *world) form(path, clientID, secret string, pairs ...string) reply {
	w.t.Helper()
	values := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		values.Add(pairs[i], pairs[i+1])
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, w.url+path, strings.NewReader(values.Encode()))
	must(w.t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if clientID != "" {
		req.SetBasicAuth(clientID, secret)
	}
	return w.do(req)
}

func (w *world) token(r reply) uaa.Token {
	w.t.Helper()
	if r.status != http.StatusOK {
		w.t.Fatalf("no token: %d %s", r.status, r.body)
	}
	var t uaa.Token
	r.json(w.t, &t)
	return t
}

func (w *world) login(name, password string) uaa.Token {
	w.t.Helper()
	return w.token(w.form("/oauth/token", "cf", "", "grant_type", "password", "username", name, "password", password))
}

// person adds somebody and returns their id.
func (w *world) person(name, password string) string {
	w.t.Helper()
	r := w.call(http.MethodPost, "/Users", w.admin, map[string]any{"userName": name, "password": password, "emails": []map[string]string{{"value": name + "@example.org"}}})
	if r.status != http.StatusCreated {
		w.t.Fatalf("create %s: %d %s", name, r.status, r.body)
	}
	var u uaa.User
	r.json(w.t, &u)
	return u.ID
}

// group finds a group's id.
func (w *world) group(name string) string {
	w.t.Helper()
	var page uaa.Page[uaa.Group]
	w.call(http.MethodGet, "/Groups?filter="+url.QueryEscape(`displayName eq "`+name+`"`), w.admin, nil).json(w.t, &page)
	if len(page.Resources) != 1 {
		w.t.Fatalf("group %s: %+v", name, page)
	}
	return page.Resources[0].ID
}

// sshCode gets a one-time code as `cf ssh-code` does.
func (w *world) sshCode(token string) string {
	w.t.Helper()
	r := w.call(http.MethodGet, "/oauth/authorize?client_id=ssh-proxy&response_type=code", token, nil)
	return w.codeIn(r)
}

func (w *world) codeIn(r reply) string {
	w.t.Helper()
	place, err := url.Parse(r.header.Get("Location"))
	must(w.t, err)
	code := place.Query().Get("code")
	if r.status >= 400 || code == "" {
		w.t.Fatalf("no code: %d %s %s", r.status, place, r.body)
	}
	return code
}

// browser keeps cookies, asks for pages and stops before leaving for another site.
func (w *world) browser() *http.Client {
	jar, err := cookiejar.New(nil)
	must(w.t, err)
	return &http.Client{Jar: jar, CheckRedirect: func(req *http.Request, _ []*http.Request) error {
		if !strings.HasPrefix(req.URL.String(), w.url) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
}
