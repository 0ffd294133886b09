package api_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/pg/pgtest"
	"github.com/proa-dev/proa/kit/seal"
	"github.com/proa-dev/proa/kit/token"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/api"
	"github.com/proa-dev/proa/platform/store"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// world is a whole API on a database of its own, with tokens that are really signed and a neighbour that knows some people.
type world struct {
	t     testing.TB
	url   string
	pool  *pgxpool.Pool
	store *store.Store
	admin string
	apps  platform.Domain // the shared one
}

const issuer = "http://auth.test"

var signing = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

var sealing = sync.OnceValue(func() *seal.Box {
	keyset, err := seal.Generate()
	if err != nil {
		panic(err)
	}
	box, err := seal.New(keyset)
	if err != nil {
		panic(err)
	}
	return box
})

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newWorld makes one; what is special about a test's is done to the server before it serves.
func newWorld(t testing.TB, special ...func(*api.Server)) *world {
	t.Helper()
	w := &world{t: t, pool: pgtest.New(t, store.Migrations(), store.Table)}
	w.store = store.New(w.pool, sealing())
	domain, err := w.store.AppsDomain(t.Context(), "apps.example.org")
	must(t, err)
	w.apps = domain
	server := httptest.NewUnstartedServer(nil)
	w.url = "http://" + server.Listener.Addr().String()
	base, err := url.Parse(w.url)
	must(t, err)
	login, err := url.Parse(issuer)
	must(t, err)
	neighbour := httptest.NewServer(http.HandlerFunc(authServer))
	t.Cleanup(neighbour.Close)
	conn := &uaa.Conn{URL: neighbour.URL, HTTP: neighbour.Client(), Token: uaa.Static(directoryToken)}
	s := &api.Server{
		Store: w.store, URL: base, Auth: login, Log: slog.New(slog.DiscardHandler), Directory: &api.Directory{Conn: conn},
		Offer: api.Offer{Domain: domain, Reserved: platform.ReserveHosts(domain.Name, "api", "login", "uaa.example.com"), Since: domain.CreatedAt, Stacks: []platform.Stack{{Name: "proa", Default: true}},
			Buildpacks: []platform.Buildpack{{Name: "proa/java", Version: "1.0.0", Stack: "proa"}, {Name: "proa/procfile", Version: "1.0.0", Stack: "proa"}}},
		Verifier: &token.Verifier{Issuer: issuer, Audience: api.Audience, Now: time.Now, Key: func(_ context.Context, kid string) (crypto.PublicKey, error) {
			if kid != "k1" {
				return nil, token.ErrUnknownKey
			}
			return signing().Public(), nil
		}},
	}
	for _, change := range special {
		change(s)
	}
	server.Config.Handler = s.Handler()
	server.Start()
	t.Cleanup(server.Close)
	w.admin = w.token("admin", platform.ScopeAdmin)
	return w
}

const directoryToken = "the platform's own"

// authServer knows two people and a client. Like the real one it refuses who does not show a token.
func authServer(w http.ResponseWriter, r *http.Request) {
	reply := func(status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	people := []uaa.User{{ID: "guid-of-ann", UserName: "ann", Origin: "uaa"}, {ID: "guid-of-bob", UserName: "bob", Origin: "uaa"}, {ID: "guid-of-bob-ldap", UserName: "bob", Origin: "ldap"}}
	id, ofUsers := strings.CutPrefix(r.URL.Path, "/Users/")
	switch {
	case r.Header.Get("Authorization") != "bearer "+directoryToken:
		reply(http.StatusUnauthorized, uaa.Error{Code: "unauthorized", Description: "An access token is needed."})
	case r.URL.Path == "/Users":
		var page uaa.Page[uaa.User]
		for _, p := range people {
			if filter := r.URL.Query().Get("filter"); filter == fmt.Sprintf(`userName eq %q`, p.UserName) || filter == fmt.Sprintf(`userName eq %q and origin eq %q`, p.UserName, p.Origin) {
				page.Resources = append(page.Resources, p)
			}
		}
		reply(http.StatusOK, page)
	case ofUsers:
		for _, p := range people {
			if p.ID == id {
				reply(http.StatusOK, p)
				return
			}
		}
		reply(http.StatusNotFound, uaa.Error{Code: "scim_resource_not_found", Description: "There is no such user."})
	case r.URL.Path == "/oauth/clients/robot":
		reply(http.StatusOK, uaa.Client{ID: "robot"})
	default:
		reply(http.StatusNotFound, uaa.Error{Code: "not_found", Description: "There is no such client."})
	}
}

// token is a signed token of a person, whose guid is their name with "-guid" behind it.
func (w *world) token(name string, scopes ...string) string {
	w.t.Helper()
	return w.signed(token.Claims{UserID: name + "-guid", UserName: name, Origin: "uaa", ClientID: "cf", Scopes: append(scopes, platform.ScopeRead, platform.ScopeWrite)})
}

func (w *world) signed(c token.Claims) string {
	w.t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: signing(), KeyID: "k1"}}, nil)
	must(w.t, err)
	c.ID, c.Issuer, c.Audience = platform.NewGUID(), issuer, append(c.Audience, "cloud_controller")
	c.Issued, c.Expires = *jwt.NewNumericDate(time.Now()), *jwt.NewNumericDate(time.Now().Add(time.Hour))
	raw, err := jwt.Signed(signer).Claims(c).Serialize()
	must(w.t, err)
	return raw
}

// reply is what came back.
type reply struct {
	status int
	header http.Header
	body   string
}

// call sends a request; the body may be text or something to be written as JSON.
func (w *world) call(method, path, token string, body any) reply {
	w.t.Helper()
	var in io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		in = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		must(w.t, err)
		in = bytes.NewReader(text)
	}
	if !strings.HasPrefix(path, "http") {
		path = w.url + path
	}
	req, err := http.NewRequestWithContext(w.t.Context(), method, path, in)
	must(w.t, err)
	if token != "" {
		req.Header.Set("Authorization", "bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	must(w.t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	must(w.t, err)
	return reply{resp.StatusCode, resp.Header, strings.TrimSpace(string(text))}
}

// do is a call that must succeed with a status; the reply is read into a shape.
func do[T any](w *world, status int, method, path, token string, body any) T {
	w.t.Helper()
	var v T
	got := w.call(method, path, token, body)
	if got.status != status {
		w.t.Fatalf("%s %s: %d %s, want %d", method, path, got.status, got.body, status)
	}
	if got.body != "" {
		if err := json.Unmarshal([]byte(got.body), &v); err != nil {
			w.t.Fatalf("%s %s: %v in %s", method, path, err, got.body)
		}
	}
	return v
}

// refused wants exactly one error.
func (w *world) refused(got reply, status, code int, title, detail string) {
	w.t.Helper()
	want, err := json.Marshal(v3.Errors{Errors: []v3.Error{{Code: code, Title: title, Detail: detail}}})
	must(w.t, err)
	if got.status != status || got.body != string(want) {
		w.t.Errorf("got %d %s\nwant %d %s", got.status, got.body, status, want)
	}
}

// deleted wants a job that is complete.
func (w *world) deleted(path, token string) {
	w.t.Helper()
	got := w.call(http.MethodDelete, path, token, nil)
	if got.status != http.StatusAccepted || !strings.HasPrefix(got.header.Get("Location"), w.url+"/v3/jobs/") {
		w.t.Fatalf("DELETE %s: %d %s", path, got.status, got.body)
	}
	if job := do[v3.Job](w, 200, http.MethodGet, got.header.Get("Location"), token, nil); job.State != "COMPLETE" {
		w.t.Errorf("DELETE %s: the job is %s", path, job.State)
	}
}

type object = map[string]any

func to(guid string) object { return object{"data": object{"guid": guid}} }

func (w *world) org(name string) v3.Organization {
	w.t.Helper()
	return do[v3.Organization](w, 201, http.MethodPost, "/v3/organizations", w.admin, object{"name": name})
}

func (w *world) space(org v3.Organization, name string) v3.Space {
	w.t.Helper()
	return do[v3.Space](w, 201, http.MethodPost, "/v3/spaces", w.admin, object{"name": name, "relationships": object{"organization": to(org.GUID)}})
}

// give gives somebody a role, and for one in a space also one in its organization.
func (w *world) give(user string, t platform.RoleType, org v3.Organization, space v3.Space) {
	w.t.Helper()
	w.call(http.MethodGet, "/v3/users", w.token(user), nil) // so that the platform has met them
	in := object{"user": to(user + "-guid"), "organization": to(org.GUID)}
	if t.InSpace() {
		w.call(http.MethodPost, "/v3/roles", w.admin, object{"type": "organization_user", "relationships": in})
		in = object{"user": to(user + "-guid"), "space": to(space.GUID)}
	}
	do[v3.Role](w, 201, http.MethodPost, "/v3/roles", w.admin, object{"type": t, "relationships": in})
}
