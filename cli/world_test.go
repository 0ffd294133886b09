package cli

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// world is a platform on the wire: an API, an authorization server and a log cache that refuse what the real ones refuse.
type world struct {
	*httptest.Server
	t    *testing.T
	home string
	env  map[string]string

	mu       sync.Mutex
	heard    []string // method and path of each request but polls, in order
	good     string   // the access token that is accepted
	refresh  string
	issued   int
	manifest string
	uploaded map[string]*zip.File
	fails    string // why staging fails
	stages   bool   // something is staged already
	endless  bool   // staging does not end
	states   []string
	broken   bool // no log can be read
	ssh      sshWorld
}

// newWorld makes one; a test may bring parts of the API along that the others do not need.
func newWorld(t *testing.T, parts ...func(*world) map[string]http.HandlerFunc) *world {
	w := &world{t: t, home: t.TempDir(), env: map[string]string{}, states: []string{"STARTING", "RUNNING"}}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(rw http.ResponseWriter, _ *http.Request) {
		w.refuse(rw, http.StatusNotFound, "CF-NotFound", "Unknown request")
	})
	all := w.routes()
	maps.Copy(all, w.sshRoutes())
	for _, part := range parts {
		maps.Copy(all, part(w))
	}
	for pattern, reply := range all {
		mux.HandleFunc(pattern, reply)
	}
	w.Server = httptest.NewServer(w.guard(mux))
	t.Cleanup(w.Close)
	return w
}

// guard notes the request, and refuses one without a good token.
func (w *world) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		line := r.Method + " " + r.URL.Path
		if !slices.Contains(w.heard, line) || r.Method != http.MethodGet {
			w.heard = append(w.heard, line)
		}
		guarded := strings.HasPrefix(r.URL.Path, "/v3") || strings.HasPrefix(r.URL.Path, "/api/")
		if guarded && r.Header.Get("Authorization") != "bearer "+w.good {
			w.refuse(rw, http.StatusUnauthorized, "CF-InvalidAuthToken", "Invalid Auth Token")
			return
		}
		next.ServeHTTP(rw, r)
	})
}

func (w *world) refuse(rw http.ResponseWriter, status int, title, detail string) {
	w.say(rw, status, map[string]any{"errors": []any{map[string]any{"code": 10008, "title": title, "detail": detail}}})
}

func (w *world) say(rw http.ResponseWriter, status int, body any) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	if err := json.NewEncoder(rw).Encode(body); err != nil {
		w.t.Error(err)
	}
}

func (w *world) list(rw http.ResponseWriter, resources ...any) {
	w.say(rw, http.StatusOK, map[string]any{"pagination": map[string]any{"next": nil}, "resources": append([]any{}, resources...)})
}

// jwt is a token as the authorization server writes it; nobody here verifies its signature.
func jwt(user string, expires time.Time, n int) string {
	body := fmt.Sprintf(`{"user_name":%q,"user_id":"u-1","origin":"uaa","client_id":"cf","exp":%d,"jti":"%d"}`, user, expires.Unix(), n)
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(body)) + ".c2ln"
}

func (w *world) token(rw http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	switch {
	case id != "cf" || secret != "":
		w.say(rw, http.StatusUnauthorized, map[string]string{"error": "invalid_client", "error_description": "Bad client."})
		return
	case r.FormValue("grant_type") == "password" && r.FormValue("username") == "ada" && r.FormValue("password") == "lovelace":
	case r.FormValue("grant_type") == "refresh_token" && w.refresh != "" && r.FormValue("refresh_token") == w.refresh:
	default:
		w.say(rw, http.StatusUnauthorized, map[string]string{"error": "unauthorized", "error_description": "The user name or the password is wrong."})
		return
	}
	w.issued++
	w.good, w.refresh = jwt("ada", time.Now().Add(10*time.Minute), w.issued), fmt.Sprintf("refresh-%d", w.issued)
	w.say(rw, http.StatusOK, map[string]any{"access_token": w.good, "refresh_token": w.refresh, "token_type": "bearer", "expires_in": 600})
}

// run runs a command there and gives what it wrote and its exit code.
func (w *world) run(args ...string) (out, errs string, code int) {
	w.t.Helper()
	return w.runIn(w.t.Context(), func(*Env) {}, args...)
}

// runIn is run in a world that is changed, until a context ends.
func (w *world) runIn(ctx context.Context, change func(*Env), args ...string) (out, errs string, code int) {
	w.t.Helper()
	var o, e shared
	env := &Env{
		In: strings.NewReader(""), Out: &o, Err: &e, Width: func() int { return 80 }, Getenv: func(name string) string { return w.env[name] },
		Hidden: func(context.Context) (string, error) { return "", io.EOF },
		Dir:    w.t.TempDir(), Home: w.home, Now: time.Now, Poll: time.Millisecond, Transport: http.DefaultTransport, Version: "test",
	}
	if dir := w.env["DIR"]; dir != "" {
		env.Dir = dir
	}
	change(env)
	code = Run(ctx, env, args)
	return o.String(), e.String(), code
}

// shared is a buffer that several may write to.
type shared struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *shared) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(b)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// ok is run for a command that must work.
func (w *world) ok(args ...string) string {
	w.t.Helper()
	out, errs, code := w.run(args...)
	if code != ExitOK {
		w.t.Fatalf("proa %s: exit %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

// loggedIn is a world in which ada works in research / dev.
func loggedIn(t *testing.T, parts ...func(*world) map[string]http.HandlerFunc) *world {
	w := newWorld(t, parts...)
	w.ok("login", "-a", w.URL, "-u", "ada", "-p", "lovelace", "-o", "research", "-s", "dev")
	w.heard = nil
	return w
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is not in:\n%s", p, text)
		}
	}
}
