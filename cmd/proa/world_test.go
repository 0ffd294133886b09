package main_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proa-dev/proa/cli"
	"github.com/proa-dev/proa/kit/pg/pgtest"
	"github.com/proa-dev/proa/kit/seal"
	"github.com/proa-dev/proa/kit/token"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/api"
	"github.com/proa-dev/proa/platform/store"
)

// world is the platform's real API on a database of its own, and a person with the command. Only who people are is made up.
type world struct {
	*testing.T
	home  string
	env   map[string]string
	url   string
	pool  *pgxpool.Pool
	store *store.Store
	key   *rsa.PrivateKey
	auth  *httptest.Server
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const appsDomain = "apps.example.org"

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, home: t.TempDir(), env: map[string]string{}, pool: pgtest.New(t, store.Migrations(), store.Table)}
	keyset, err := seal.Generate()
	must(t, err)
	box, err := seal.New(keyset)
	must(t, err)
	w.key, err = rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	w.store = store.New(w.pool, box)
	domain, err := w.store.AppsDomain(t.Context(), appsDomain)
	must(t, err)
	w.auth = httptest.NewServer(http.HandlerFunc(w.login))
	t.Cleanup(w.auth.Close)
	server := httptest.NewUnstartedServer(nil)
	w.url = "http://" + server.Listener.Addr().String()
	s := &api.Server{
		Store: w.store, URL: w.parse(w.url), Auth: w.parse(w.auth.URL), Log: slog.New(slog.DiscardHandler),
		Offer: api.Offer{Domain: domain, Reach: w.parse("https://" + appsDomain + ":8443"), Reserved: platform.ReserveHosts(domain.Name, "api"), Since: domain.CreatedAt,
			Stacks: []platform.Stack{{Name: "proa", Default: true}}},
		Verifier: &token.Verifier{Issuer: w.auth.URL, Audience: api.Audience, Now: time.Now, Key: func(context.Context, string) (crypto.PublicKey, error) { return w.key.Public(), nil }},
	}
	server.Config.Handler = s.Handler()
	server.Start()
	t.Cleanup(server.Close)
	return w
}

func (w *world) parse(address string) *url.URL {
	u, err := url.Parse(address)
	must(w, err)
	return u
}

// login is an authorization server that knows ada, who administers the platform, and bob, who does not.
func (w *world) login(rw http.ResponseWriter, r *http.Request) {
	reply := func(status int, body any) {
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(status)
		_ = json.NewEncoder(rw).Encode(body)
	}
	if r.URL.Path == "/login" {
		reply(http.StatusOK, map[string]any{"prompts": map[string]any{"username": []string{"text", "Name"}, "password": []string{"password", "Password"}}})
		return
	}
	scopes, known := map[string][]string{"ada": {platform.ScopeAdmin}, "bob": {}}[r.FormValue("username")]
	if id, _, _ := r.BasicAuth(); id != "cf" || r.URL.Path != "/oauth/token" || !known || r.FormValue("password") != "secret" {
		reply(http.StatusUnauthorized, map[string]string{"error": "unauthorized", "error_description": "The user name or the password is wrong."})
		return
	}
	name := r.FormValue("username")
	claims := token.Claims{UserID: name + "-guid", UserName: name, Origin: "uaa", ClientID: "cf", Scopes: append(scopes, platform.ScopeRead, platform.ScopeWrite)}
	claims.ID, claims.Issuer, claims.Audience = platform.NewGUID(), w.auth.URL, api.Audience
	claims.Issued, claims.Expires = *jwt.NewNumericDate(time.Now()), *jwt.NewNumericDate(time.Now().Add(time.Hour))
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: w.key, KeyID: "k1"}}, nil)
	must(w, err)
	raw, err := jwt.Signed(signer).Claims(claims).Serialize()
	must(w, err)
	reply(http.StatusOK, map[string]any{"access_token": raw, "refresh_token": "r", "token_type": "bearer"})
}

// run runs a command line, in which no argument has a space, and gives what it wrote and its exit code.
func (w *world) run(line string) (out, errs string, code int) {
	w.Helper()
	var o, e bytes.Buffer
	env := &cli.Env{
		In: strings.NewReader(""), Out: &o, Err: &e, Width: func() int { return 0 }, Getenv: func(name string) string { return w.env[name] },
		Hidden: func(context.Context) (string, error) { return "", io.EOF },
		Dir:    w.TempDir(), Home: w.home, Now: time.Now, Poll: 10 * time.Millisecond, Transport: http.DefaultTransport, Version: "test",
	}
	code = cli.Run(w.Context(), env, strings.Fields(line))
	return o.String(), e.String(), code
}

// ok runs a command that must work, and say all of this.
func (w *world) ok(line string, says ...string) string {
	w.Helper()
	out, errs, code := w.run(line)
	if code != cli.ExitOK {
		w.Fatalf("proa %s: exit %d\n%s%s", line, code, out, errs)
	}
	w.says(line, out+errs, says)
	return out
}

// refused runs a command that must not work, and say why.
func (w *world) refused(line string, says ...string) {
	w.Helper()
	out, errs, code := w.run(line)
	if code == cli.ExitOK {
		w.Errorf("proa %s worked, and should not have\n%s", line, out)
	}
	w.says(line, errs, says)
}

func (w *world) says(line, text string, parts []string) {
	w.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			w.Errorf("proa %s does not say %q:\n%s", line, p, text)
		}
	}
}

// as logs somebody in; the target is gone then.
func (w *world) as(name string) {
	w.Helper()
	w.ok("login -a " + w.url + " -u " + name + " -p secret")
}

// started makes an app that runs, as staging and a start would.
func (w *world) started(name string) {
	w.Helper()
	w.ok("create-app " + name)
	guid := strings.TrimSpace(w.ok("app " + name + " --guid"))
	w.ok(`curl /v3/packages -d {"type":"bits","relationships":{"app":{"data":{"guid":"` + guid + `"}}}}`)
	var pkg string
	must(w, w.pool.QueryRow(w.Context(), `update packages set state = 'READY', image = 'r/p@sha256:1' where app_guid = $1 returning guid`, guid).Scan(&pkg))
	var b struct{ GUID string }
	must(w, json.Unmarshal([]byte(w.ok(`curl /v3/builds -d {"package":{"guid":"`+pkg+`"}}`)), &b))
	d := platform.Droplet{Image: "r/d@sha256:1"}
	must(w, w.store.FinishBuild(w.Context(), b.GUID, &d, ""))
	w.ok(`curl -X PATCH /v3/apps/` + guid + `/relationships/current_droplet -d {"data":{"guid":"` + d.GUID + `"}}`)
	w.ok("curl -X POST --fail /v3/apps/" + guid + "/actions/start")
}
