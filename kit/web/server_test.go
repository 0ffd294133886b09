package web_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
)

func TestMetrics(t *testing.T) {
	app, _ := newApp()
	app.Metrics = web.NewMetrics()
	app.Handle("GET /apps/{name}", fine)
	app.Handle("POST /apps/{name}", func(http.ResponseWriter, *http.Request) error { return fault.Forbidden("Not for you.") })
	for _, path := range []string{"/apps/blue", "/apps/red?x=1", "/wp-login.php", "/.env", "/apps"} {
		get(app, path)
	}
	do(app, httptest.NewRequest(http.MethodPost, "/apps/blue", nil))
	do(app, httptest.NewRequest("BREW", "/apps/blue", nil))

	inner := app.Metrics.Handler()
	w := get(inner, "/metrics")
	body := w.Body.String()
	for _, want := range []string{
		`proa_http_request_seconds_count{route="GET /apps/{name}",status="2xx"} 2`,
		`proa_http_request_seconds_bucket{route="GET /apps/{name}",status="2xx",le="10"} 2`,
		`proa_http_request_seconds_count{route="POST /apps/{name}",status="4xx"} 1`,
		`proa_http_request_seconds_count{route="none",status="4xx"} 4`,
		"# TYPE proa_http_request_seconds histogram", "go_goroutines ", "process_open_fds ",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s", want)
		}
	}
	if got := strings.Count(body, "proa_http_request_seconds_count{"); w.Code != http.StatusOK || got != 3 {
		t.Errorf("status %d with %d series, want 3", w.Code, got)
	}
	for _, stranger := range []string{"wp-login", ".env", "blue", "BREW"} {
		if strings.Contains(body, stranger) {
			t.Errorf("a caller's own text %q is in the metrics", stranger)
		}
	}
	if w := get(inner, "/"); w.Code != http.StatusNotFound {
		t.Errorf("/ beside the metrics: %d", w.Code)
	}
	if w := do(inner, httptest.NewRequest(http.MethodPost, "/metrics", nil)); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST /metrics: %d", w.Code)
	}
	if w := get(app, "/metrics"); w.Code != http.StatusNotFound {
		t.Errorf("metrics on the users' port: %d", w.Code)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := web.Listen(t.Context(), "test", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestListenSaysWhichPortIsTaken(t *testing.T) {
	addr := listen(t).Addr().String()
	_, err := web.Listen(t.Context(), "auth", addr)
	if err == nil || !strings.Contains(err.Error(), "listen for auth on "+addr) || !strings.Contains(err.Error(), "is another copy running?") {
		t.Errorf("%v", err)
	}
}

// start runs a Part and returns how to stop it and where its end is told.
func start(t *testing.T, l net.Listener, h http.Handler) (stop context.CancelFunc, ended <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	part := web.Part("test", l, h, slog.New(slog.DiscardHandler))
	done := make(chan error, 1)
	go func() { done <- part.Run(ctx) }()
	return cancel, done
}

func wantEnd(t *testing.T, ended <-chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(10 * time.Second):
		t.Fatal("the part does not end")
		return nil
	}
}

func TestPartLetsARequestUnderWayFinish(t *testing.T) {
	l := listen(t)
	entered, release := make(chan struct{}), make(chan struct{})
	app, _ := newApp()
	app.Handle("GET /slow", func(w http.ResponseWriter, r *http.Request) error {
		close(entered)
		<-release
		if err := r.Context().Err(); err != nil {
			return fmt.Errorf("the request was cut off: %w", err)
		}
		return fine(w, r)
	})
	stop, ended := start(t, l, app)

	type reply struct {
		status int
		body   string
		err    error
	}
	replied := make(chan reply, 1)
	client := &http.Client{Transport: &http.Transport{}}
	go func() {
		resp, err := client.Get("http://" + l.Addr().String() + "/slow")
		if err != nil {
			replied <- reply{err: err}
			return
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		replied <- reply{resp.StatusCode, string(body), err}
	}()
	<-entered
	stop()

	// The door closes while the request is still inside.
	dialer := net.Dialer{Timeout: time.Second}
	for deadline := time.Now().Add(10 * time.Second); ; {
		conn, err := dialer.DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			break
		}
		_ = conn.Close()
		if time.Now().After(deadline) {
			t.Fatal("new connections are still taken after the stop")
		}
	}
	select {
	case err := <-ended:
		t.Fatalf("the part ended with a request under way: %v", err)
	case r := <-replied:
		t.Fatalf("answered before the handler was done: %+v", r)
	default:
	}
	close(release)
	if r := <-replied; r.err != nil || r.status != http.StatusOK || r.body != "\"fine\"\n" {
		t.Errorf("the request under way got %+v", r)
	}
	if err := wantEnd(t, ended); err != nil {
		t.Errorf("the part ended with %v", err)
	}
}

func TestPartEndsWithItsListener(t *testing.T) {
	l := listen(t)
	_, ended := start(t, l, http.NotFoundHandler())
	_ = l.Close()
	if err := wantEnd(t, ended); !errors.Is(err, net.ErrClosed) {
		t.Errorf("ended with %v", err)
	}
}

func TestPartStoppedBeforeItServed(t *testing.T) {
	l := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := web.Part("test", l, http.NotFoundHandler(), slog.New(slog.DiscardHandler)).Run(ctx); err != nil {
		t.Error(err)
	}
}

func TestPartLimitsHeaders(t *testing.T) {
	l := listen(t)
	start(t, l, http.NotFoundHandler())
	for size, want := range map[int]int{16 << 10: http.StatusNotFound, 48 << 10: http.StatusRequestHeaderFieldsTooLarge} {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: x\r\nX-Long: %s\r\n\r\n", strings.Repeat("a", size))
		}()
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if resp.StatusCode != want {
			t.Errorf("%d bytes of header: %s, want %d", size, resp.Status, want)
		}
		_ = resp.Body.Close()
		_ = conn.Close()
	}
}
