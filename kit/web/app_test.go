package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
)

// journal keeps the log lines of an App.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// lines are the request lines so far.
func (j *journal) lines(t *testing.T) []map[string]any {
	t.Helper()
	var all []map[string]any
	for text := range strings.Lines(j.String()) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("log line %q: %v", text, err)
		}
		all = append(all, line)
	}
	return all
}

// only is the one line that there must be.
func (j *journal) only(t *testing.T) map[string]any {
	t.Helper()
	all := j.lines(t)
	if len(all) != 1 {
		t.Fatalf("%d log lines, want 1:\n%s", len(all), j.String())
	}
	return all[0]
}

// rendered is the shape in which the App of these tests shows a fault.
type rendered struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

func newApp() (*web.App, *journal) {
	j := &journal{}
	return &web.App{
		Log: slog.New(slog.NewJSONHandler(j, nil)),
		Fault: func(w http.ResponseWriter, _ *http.Request, f *fault.Error) {
			status := f.Status()
			if f.Code == web.CodeMethod {
				status = http.StatusMethodNotAllowed
			}
			w.Header().Set("X-Rendered", "fault")
			_ = web.JSON(w, status, rendered{f.Code, f.Detail})
		},
	}, j
}

func do(app http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	app.ServeHTTP(w, r)
	return w
}

func get(app http.Handler, target string) *httptest.ResponseRecorder {
	return do(app, httptest.NewRequest(http.MethodGet, target, nil))
}

// wantFault checks a reply that App.Fault wrote.
func wantFault(t *testing.T, w *httptest.ResponseRecorder, status int, want rendered) {
	t.Helper()
	var got rendered
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("status %d, body %q: %v", w.Code, w.Body, err)
	}
	if w.Code != status || got != want || w.Header().Get("X-Rendered") != "fault" {
		t.Errorf("got %d %+v, want %d %+v, rendered by Fault", w.Code, got, status, want)
	}
}

func fine(w http.ResponseWriter, _ *http.Request) error { return web.JSON(w, http.StatusOK, "fine") }

const internal = "Something went wrong on our side. Try again, and give the request id to your operator if it stays."

func TestRequestID(t *testing.T) {
	made := regexp.MustCompile(`^[a-z2-7]{26}$`)
	for _, c := range []struct {
		name   string
		header http.Header
		want   string // "" when one must be made
	}{
		{"none", http.Header{}, ""},
		{"X-Request-Id", http.Header{"X-Request-Id": {"abc-DEF_1.2:3"}}, "abc-DEF_1.2:3"},
		{"X-Vcap-Request-Id", http.Header{"X-Vcap-Request-Id": {"v-1"}}, "v-1"},
		{"both", http.Header{"X-Request-Id": {"x-1"}, "X-Vcap-Request-Id": {"v-1"}}, "v-1"},
		{"the first malformed", http.Header{"X-Request-Id": {"x-1"}, "X-Vcap-Request-Id": {"v 1"}}, "x-1"},
		{"empty", http.Header{"X-Request-Id": {""}}, ""},
		{"longest", http.Header{"X-Request-Id": {strings.Repeat("a", 128)}}, strings.Repeat("a", 128)},
		{"too long", http.Header{"X-Request-Id": {strings.Repeat("a", 129)}}, ""},
		{"space", http.Header{"X-Request-Id": {"a b"}}, ""},
		{"line break", http.Header{"X-Request-Id": {"a\r\nSet-Cookie: b=c"}}, ""},
		{"quote", http.Header{"X-Request-Id": {`a"b`}}, ""},
		{"markup", http.Header{"X-Request-Id": {"<b>"}}, ""},
		{"not ASCII", http.Header{"X-Request-Id": {"Zoë"}}, ""},
		{"not UTF-8", http.Header{"X-Request-Id": {"a\xff"}}, ""},
		{"NUL", http.Header{"X-Request-Id": {"a\x00"}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			app, log := newApp()
			var inside string
			app.Handle("GET /", func(w http.ResponseWriter, r *http.Request) error {
				inside = web.RequestID(r.Context())
				return fine(w, r)
			})
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header = c.header
			w := do(app, r)
			if c.want == "" && !made.MatchString(inside) {
				t.Fatalf("the handler saw the id %q, want a new one", inside)
			}
			if c.want != "" && inside != c.want {
				t.Fatalf("the handler saw the id %q, want %q", inside, c.want)
			}
			for _, name := range []string{"X-Request-Id", "X-Vcap-Request-Id"} {
				if got := w.Result().Header.Values(name); !slices.Equal(got, []string{inside}) {
					t.Errorf("%s is %q, want %q", name, got, inside)
				}
			}
			if got := log.only(t)["request_id"]; got != inside {
				t.Errorf("the log has the id %v, want %q", got, inside)
			}
		})
	}
	app, _ := newApp()
	if a, b := get(app, "/").Header().Get("X-Request-Id"), get(app, "/").Header().Get("X-Request-Id"); a == b {
		t.Errorf("two requests got the same id %q", a)
	}
}

func TestOneLogLinePerRequest(t *testing.T) {
	for _, c := range []struct {
		name, target, route, level string
		status                     float64
		fault                      string
	}{
		{"good", "/apps/blue?code=s3cret", "GET /apps/{name}", "INFO", 200, ""},
		{"silent", "/silent?code=s3cret", "GET /silent", "INFO", 200, ""},
		{"status only", "/gone?code=s3cret", "GET /gone", "INFO", 204, ""},
		{"refused", "/refused?code=s3cret", "GET /refused", "INFO", 409, "The name is taken. Choose another. (row 7)"},
		{"broken", "/broken?code=s3cret", "GET /broken", "ERROR", 500, internal + " (disk on fire)"},
		{"no such route", "/else?code=s3cret", "", "INFO", 404, "There is nothing at this address. Check the path."},
	} {
		t.Run(c.name, func(t *testing.T) {
			app, log := newApp()
			app.Handle("GET /apps/{name}", fine)
			app.Handle("GET /silent", func(http.ResponseWriter, *http.Request) error { return nil })
			app.Handle("GET /gone", func(w http.ResponseWriter, _ *http.Request) error {
				w.WriteHeader(http.StatusNoContent)
				return nil
			})
			app.Handle("GET /refused", func(http.ResponseWriter, *http.Request) error {
				return fmt.Errorf("save app: %w", fault.Conflict("The name is taken. Choose another.").Because(errors.New("row 7")))
			})
			app.Handle("GET /broken", func(http.ResponseWriter, *http.Request) error { return errors.New("disk on fire") })

			w := get(app, c.target)
			line := log.only(t)
			for name, want := range map[string]any{
				"msg": "request", "level": c.level, "method": "GET", "route": c.route, "path": strings.TrimSuffix(c.target, "?code=s3cret"),
				"status": c.status, "bytes": float64(w.Body.Len()), "request_id": w.Header().Get("X-Request-Id"), "from": "192.0.2.1",
			} {
				if line[name] != want {
					t.Errorf("%s is %v, want %v", name, line[name], want)
				}
			}
			if got, _ := line["fault"].(string); got != c.fault {
				t.Errorf("fault is %q, want %q", got, c.fault)
			}
			if took, ok := line["took"].(float64); !ok || took < 0 {
				t.Errorf("took is %v", line["took"])
			}
			if strings.Contains(log.String(), "s3cret") || strings.Contains(log.String(), "code=") {
				t.Errorf("the query is in the log: %s", log.String())
			}
			if strings.Contains(w.Body.String(), "disk") || strings.Contains(w.Body.String(), "row 7") {
				t.Errorf("the cause left the process: %s", w.Body)
			}
		})
	}
}

func TestPanicCostsOneRequest(t *testing.T) {
	app, log := newApp()
	app.Handle("GET /panic", func(http.ResponseWriter, *http.Request) error { panic("hunter2") })
	app.Handle("GET /late", func(w http.ResponseWriter, _ *http.Request) error {
		_, _ = io.WriteString(w, "half")
		panic("late")
	})
	app.Handle("GET /fine", fine)

	w := get(app, "/panic")
	wantFault(t, w, http.StatusInternalServerError, rendered{"", internal})
	line := log.only(t)
	text, _ := line["fault"].(string)
	if line["level"] != "ERROR" || line["status"] != 500.0 || !strings.Contains(text, "panic: hunter2") || !strings.Contains(text, "app_test.go") {
		t.Errorf("the log must tell of the panic and where it was: %v", line)
	}
	if w := get(app, "/late"); w.Code != http.StatusOK || w.Body.String() != "half" {
		t.Errorf("a panic in the middle of a reply: %d %q", w.Code, w.Body)
	}
	if line := log.lines(t)[1]; line["level"] != "ERROR" {
		t.Errorf("a panic in the middle of a reply is logged as %v", line)
	}
	if w := get(app, "/fine"); w.Code != http.StatusOK {
		t.Errorf("after the panics: %d", w.Code)
	}
}

func TestAbortPasses(t *testing.T) {
	app, _ := newApp()
	app.Handle("GET /abort", func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) })
	app.Handle("GET /fine", fine)
	func() {
		defer func() {
			if p := recover(); p != http.ErrAbortHandler { //nolint:errorlint // the very value must pass
				t.Errorf("recovered %v, want http.ErrAbortHandler", p)
			}
		}()
		get(app, "/abort")
	}()

	server := httptest.NewServer(app)
	defer server.Close()
	if resp, err := server.Client().Get(server.URL + "/abort"); err == nil {
		_ = resp.Body.Close()
		t.Errorf("an aborted request was answered with %s", resp.Status)
	}
	resp, err := server.Client().Get(server.URL + "/fine")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}

func TestBodyLimit(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	app, _ := newApp()
	app.MaxBody = 100
	app.Handle("POST /json", func(w http.ResponseWriter, r *http.Request) error {
		var v any
		if err := web.Read(r, &v); err != nil {
			return err
		}
		return fine(w, r)
	})
	app.Handle("POST /form", func(w http.ResponseWriter, r *http.Request) error {
		if err := r.ParseForm(); err != nil {
			return err
		}
		return fine(w, r)
	})
	app.Handle("POST /wrapped", func(w http.ResponseWriter, r *http.Request) error {
		if err := r.ParseForm(); err != nil {
			return fault.Invalid("The body must be a form.").Because(err)
		}
		return fine(w, r)
	})
	app.Handle("POST /multipart", func(w http.ResponseWriter, r *http.Request) error {
		if err := r.ParseMultipartForm(1 << 10); err != nil {
			return fmt.Errorf("read upload: %w", err)
		}
		return fine(w, r)
	})
	long := strings.Repeat("a", 101)
	multipart := func(content string) string {
		return "--B\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\n" + content + "\r\n--B--\r\n"
	}
	for _, c := range []struct {
		name, path, kind, body string
		large                  bool
	}{
		{"JSON of the limit", "/json", "application/json", `"` + long[:98] + `"`, false},
		{"JSON", "/json", "application/json", `"` + long[:99] + `"`, true},
		{"JSON with a tail of blanks", "/json", "application/json", `1` + strings.Repeat(" ", 1000), true},
		{"form of the limit", "/form", form, "a=" + long[:98], false},
		{"form", "/form", form, "a=" + long[:99], true},
		{"form whose error a handler wrapped in a fault", "/wrapped", form, "a=" + long, true},
		{"small multipart", "/multipart", "multipart/form-data; boundary=B", multipart("hi"), false},
		{"multipart", "/multipart", "multipart/form-data; boundary=B", multipart(long), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, c.path, strings.NewReader(c.body))
			r.Header.Set("Content-Type", c.kind)
			w := do(app, r)
			if !c.large {
				if w.Code != http.StatusOK {
					t.Fatalf("a body of %d bytes: %d %s", len(c.body), w.Code, w.Body)
				}
				return
			}
			wantFault(t, w, http.StatusRequestEntityTooLarge, rendered{"", "The request body is larger than 100 bytes. Send less."})
		})
	}

	t.Run("the connection is closed", func(t *testing.T) {
		server := httptest.NewServer(app)
		defer server.Close()
		resp, err := server.Client().Post(server.URL+"/json", "application/json", strings.NewReader(`"`+long+`"`))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusRequestEntityTooLarge || !resp.Close {
			t.Errorf("status %d, connection closed: %t", resp.StatusCode, resp.Close)
		}
	})
	t.Run("1 MiB unless told", func(t *testing.T) {
		app.MaxBody = 0
		for size, want := range map[int]int{1 << 20: http.StatusOK, 1<<20 + 1: http.StatusRequestEntityTooLarge} {
			w := do(app, httptest.NewRequest(http.MethodPost, "/json", strings.NewReader(`"`+strings.Repeat("a", size-2)+`"`)))
			if w.Code != want {
				t.Errorf("%d bytes: %d, want %d", size, w.Code, want)
			}
		}
	})
}

// A route with room takes more, and longer than the server lets others; the limits of the others stay.
func TestRoom(t *testing.T) {
	app, _ := newApp()
	app.MaxBody, app.Deadline = 10, 50*time.Millisecond
	slow := func(w http.ResponseWriter, r *http.Request) error {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		select {
		case <-r.Context().Done():
			return r.Context().Err()
		case <-time.After(200 * time.Millisecond):
		}
		return web.JSON(w, http.StatusOK, len(body))
	}
	app.HandleIn(web.Room{Body: 100, Time: time.Minute}, "POST /large", slow)
	app.Handle("POST /small", slow)
	server := httptest.NewUnstartedServer(app)
	server.Config.ReadTimeout, server.Config.WriteTimeout = 100*time.Millisecond, 100*time.Millisecond
	server.Start()
	defer server.Close()
	send := func(path string, body io.Reader) (int, string) {
		t.Helper()
		resp, err := server.Client().Post(server.URL+path, "text/plain", body)
		if err != nil {
			return 0, err.Error()
		}
		defer func() { _ = resp.Body.Close() }()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, strings.TrimSpace(string(text))
	}
	if status, text := send("/large", strings.NewReader(strings.Repeat("a", 100))); status != http.StatusOK || text != "100" {
		t.Errorf("as much as there is room for: %d %s", status, text)
	}
	r, w := io.Pipe()
	go func() { // a client that sends slowly
		for range 5 {
			time.Sleep(50 * time.Millisecond)
			_, _ = io.WriteString(w, "a")
		}
		_ = w.Close()
	}()
	if status, text := send("/large", r); status != http.StatusOK || text != "5" {
		t.Errorf("slowly: %d %s", status, text)
	}
	if status, text := send("/large", strings.NewReader(strings.Repeat("a", 101))); status != http.StatusRequestEntityTooLarge {
		t.Errorf("more than there is room for: %d %s", status, text)
	}
	if status, text := send("/small", strings.NewReader(strings.Repeat("a", 11))); status != http.StatusRequestEntityTooLarge {
		t.Errorf("another route: %d %s", status, text)
	}
	if status, text := send("/small", strings.NewReader("a")); status != http.StatusServiceUnavailable {
		t.Errorf("another route, slowly: %d %s", status, text)
	}
}

func TestRouterFaults(t *testing.T) {
	app, _ := newApp()
	app.Handle("GET /apps/{name}", fine)
	app.Handle("DELETE /apps/{name}", fine)

	nothing := rendered{web.CodeRoute, "There is nothing at this address. Check the path."}
	for _, path := range []string{"/", "/apps", "/apps/blue/more"} {
		wantFault(t, get(app, path), http.StatusNotFound, nothing)
	}
	w := do(app, httptest.NewRequest(http.MethodPost, "/apps/blue", nil))
	wantFault(t, w, http.StatusMethodNotAllowed, rendered{web.CodeMethod, "POST is not possible here. Use DELETE or GET or HEAD."})
	if got := w.Header().Get("Allow"); got != "DELETE, GET, HEAD" {
		t.Errorf("Allow is %q", got)
	}
	if w := do(app, httptest.NewRequest(http.MethodHead, "/apps/blue", nil)); w.Code != http.StatusOK {
		t.Errorf("HEAD: %d", w.Code)
	}
}

func TestPathIsCleanedByRedirect(t *testing.T) {
	app, log := newApp()
	app.Handle("GET /apps/{name}", fine)
	for target, want := range map[string]string{
		"/apps//blue?a=b":            "/apps/blue?a=b",
		"/x/../apps/blue":            "/apps/blue",
		"//evil.example/..//nothing": "/nothing", // also to where nothing is, and never to another host
		"/.//evil.example":           "/evil.example",
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		path, query, _ := strings.Cut(target, "?")
		r.URL.Path, r.URL.RawQuery, r.RequestURI = path, query, target
		w := do(app, r)
		if w.Code != http.StatusTemporaryRedirect || w.Header().Get("Location") != want {
			t.Errorf("%s: %d to %q, want 307 to %q", target, w.Code, w.Header().Get("Location"), want)
		}
	}
	for _, line := range log.lines(t) {
		if line["status"] != 307.0 {
			t.Errorf("logged as %v", line)
		}
	}
}

func TestErrorAfterTheReplyBeganIsOnlyLogged(t *testing.T) {
	for name, begin := range map[string]func(http.ResponseWriter) error{
		"written":      func(w http.ResponseWriter) error { return web.JSON(w, http.StatusOK, "half") },
		"header only":  func(w http.ResponseWriter) error { w.WriteHeader(http.StatusOK); return nil },
		"only flushed": func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() },
	} {
		t.Run(name, func(t *testing.T) {
			app, log := newApp()
			app.Handle("GET /", func(w http.ResponseWriter, _ *http.Request) error {
				if err := begin(w); err != nil {
					t.Error(err)
				}
				return errors.New("the stream broke")
			})
			w := get(app, "/")
			if w.Code != http.StatusOK || strings.Contains(w.Body.String(), "detail") || w.Header().Get("X-Rendered") != "" {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			line := log.only(t)
			if text, _ := line["fault"].(string); line["level"] != "ERROR" || line["status"] != 200.0 || !strings.Contains(text, "the stream broke") {
				t.Errorf("logged as %v", line)
			}
		})
	}
}

func TestAnEarlyHintDoesNotHideAFault(t *testing.T) {
	app, _ := newApp()
	app.Handle("GET /", func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusEarlyHints)
		return fault.Forbidden("Not for you.")
	})
	server := httptest.NewServer(app)
	defer server.Close()
	resp, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// A caller who leaves is not our failure; a bug that shows while the caller leaves is.
func TestRequestThatEndedEarly(t *testing.T) {
	app, log := newApp()
	app.Handle("GET /query", func(_ http.ResponseWriter, r *http.Request) error {
		return fmt.Errorf("list apps: %w", r.Context().Err())
	})
	app.Handle("GET /bug", func(http.ResponseWriter, *http.Request) error { panic("bug") })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := do(app, httptest.NewRequestWithContext(ctx, http.MethodGet, "/query", nil))
	wantFault(t, w, http.StatusServiceUnavailable, rendered{"", "The request was ended before it was done. Try again."})
	w = do(app, httptest.NewRequestWithContext(ctx, http.MethodGet, "/bug", nil))
	wantFault(t, w, http.StatusInternalServerError, rendered{"", internal})
	lines := log.lines(t)
	if lines[0]["level"] != "INFO" || lines[1]["level"] != "ERROR" {
		t.Errorf("logged as %s", log.String())
	}
}

func TestHealthAndReadiness(t *testing.T) {
	app, log := newApp()
	down := errors.New("dial tcp 10.0.0.7:5432: refused")
	ready := down
	app.Ready = func(ctx context.Context) error {
		if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > 2*time.Second {
			t.Error("Ready is asked without a deadline")
		}
		return ready
	}
	app.Health()

	w := get(app, "/readyz")
	wantFault(t, w, http.StatusServiceUnavailable, rendered{"", "Not ready yet. Try again in a moment."})
	if strings.Contains(w.Body.String(), "10.0.0.7") || !strings.Contains(log.String(), "10.0.0.7") {
		t.Error("the reason belongs in the log, not in the reply")
	}
	if w := get(app, "/healthz"); w.Code != http.StatusOK || w.Body.String() != `{"status":"alive"}`+"\n" {
		t.Errorf("a process that is not ready lives: %d %s", w.Code, w.Body)
	}
	ready = nil
	if w := get(app, "/readyz"); w.Code != http.StatusOK || w.Body.String() != `{"status":"ready"}`+"\n" {
		t.Errorf("ready: %d %s", w.Code, w.Body)
	}
	app.Ready = nil
	if w := get(app, "/readyz"); w.Code != http.StatusOK {
		t.Errorf("with nothing to ask: %d", w.Code)
	}
}
