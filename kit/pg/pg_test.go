package pg_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/kit/pg/pgtest"
)

func exec(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func one[T any](t *testing.T, pool *pgxpool.Pool, sql string, args ...any) (v T) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// with adds settings to a URL and takes off the limit that pgtest sets.
func with(t *testing.T, raw, settings string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	more, err := url.ParseQuery(settings)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Del("pool_max_conns")
	for name := range more {
		q.Set(name, more.Get(name))
	}
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20") // as in PostgreSQL's own URLs, + is a plus
	return u.String()
}

func open(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pg.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func TestOpenSettings(t *testing.T) {
	raw := pgtest.URL(t, nil)
	settings := func(pool *pgxpool.Pool) string {
		return fmt.Sprint(
			one[string](t, pool, "SHOW statement_timeout"), " ",
			one[string](t, pool, "SHOW idle_in_transaction_session_timeout"), " ",
			one[string](t, pool, "SHOW application_name"), " ",
			pool.Config().MaxConns, " ", pool.Config().ConnConfig.ConnectTimeout)
	}
	want := fmt.Sprintf("30s 1min pg.test %d 5s", max(4, 4*runtime.NumCPU()))
	if got := settings(open(t, with(t, raw, ""))); got != want {
		t.Errorf("got %s, want %s", got, want)
	}

	given := "statement_timeout=1s&idle_in_transaction_session_timeout=2s&application_name=x&pool_max_conns=3&connect_timeout=7"
	if got := settings(open(t, with(t, raw, given))); got != "1s 2s x 3 7s" {
		t.Errorf("the URL does not win: %s", got)
	}

	byOptions := open(t, with(t, raw, "options="+url.QueryEscape("-c statement_timeout=9s")))
	if got := one[string](t, byOptions, "SHOW statement_timeout"); got != "9s" {
		t.Errorf("options of the URL do not win: %s", got)
	}

	pool, err := pg.Open(t.Context(), raw, func(c *pgxpool.Config) { c.MaxConns = 2 })
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if pool.Config().MaxConns != 2 {
		t.Error("the option does not win")
	}
}

// TestOpenWaits reaches the server through a relay that comes up late.
func TestOpenWaits(t *testing.T) {
	var log lockedBuffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(old)

	u, err := url.Parse(with(t, pgtest.URL(t, nil), "sslmode=disable"))
	if err != nil {
		t.Fatal(err)
	}
	server := u.Host
	u.Host = freeAddr(t)
	password, _ := u.User.Password()

	opened := make(chan error, 1)
	go func() {
		pool, err := pg.Open(t.Context(), u.String())
		if err == nil {
			pool.Close()
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		t.Fatalf("did not wait: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	relay(t, u.Host, server)
	select {
	case err := <-opened:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("did not notice the server")
	}
	if text := log.String(); (password != "" && strings.Contains(text, password)) || strings.Count(text, "waiting for PostgreSQL") != 1 {
		t.Errorf("logged %s", text)
	}
}

func TestOpenGivesUpWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := pg.Open(ctx, "postgres://u:hunter2@"+freeAddr(t)+"/db")
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("got %v", err)
	}
	if strings.Contains(fmt.Sprint(err), "hunter2") {
		t.Errorf("shows the password: %v", err)
	}
}

func TestOpenDoesNotWaitInVain(t *testing.T) {
	u, err := url.Parse(pgtest.URL(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	u.Path, u.User = "/no_such_database", url.UserPassword(u.User.Username(), "hunter2")
	start := time.Now()
	_, err = pg.Open(t.Context(), u.String())
	if err == nil || !strings.Contains(err.Error(), "no_such_database") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
	if time.Since(start) > 5*time.Second {
		t.Errorf("took %s", time.Since(start))
	}
}

func TestBadURLsDoNotShowThePassword(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for raw, want := range map[string]string{
		"postgres://u:hunter2@h/db?sslmode=perhaps":   "sslmode is invalid",
		"postgres://u@h/db?pool_max_conns=many":       "pool_max_conns",
		"postgres://u:hunter2@h:port/db":              "invalid port",
		"postgres://u:a/hunter2@h/db":                 "escaped",
		"postgres://u:12/hunter2@h/db":                "escaped",
		"postgres://u:a@hunter2@h/db":                 "escaped",
		"postgres://u:hunter2%zz@h/db":                "escaped",
		"host=h password=hunter2 sslmode=perhaps":     "escaped",
		"host=h password=hunter2 and more":            "escaped",
		"postgres://u:hunter2@h/db?connect_timeout=x": "connect_timeout",
	} {
		_, err := pg.Open(ctx, raw)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", raw, err)
		}
		if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "hunter2") {
			t.Errorf("%s: shows the password: %v", raw, err)
		}
	}
}

func TestConflictAndNoRows(t *testing.T) {
	pool := pgtest.New(t, nil)
	exec(t, pool, `CREATE TABLE crew (id int CONSTRAINT crew_once PRIMARY KEY)`)
	exec(t, pool, `CREATE TABLE task (crew int CONSTRAINT task_crew REFERENCES crew, n int CHECK (n > 0))`)
	exec(t, pool, `INSERT INTO crew VALUES (1)`)
	for sql, want := range map[string]string{
		"INSERT INTO crew VALUES (1)":    "crew_once true",
		"INSERT INTO task VALUES (2, 1)": "task_crew true",
		"INSERT INTO task VALUES (1, 0)": " false",
	} {
		_, err := pool.Exec(t.Context(), sql)
		if err == nil {
			t.Fatalf("%s: no error", sql)
		}
		name, ok := pg.Conflict(fmt.Errorf("save: %w", err))
		if got := fmt.Sprint(name, " ", ok); got != want {
			t.Errorf("%s: got %q, want %q", sql, got, want)
		}
		if pg.NoRows(err) {
			t.Errorf("%s: read as no rows", sql)
		}
	}
	var n int
	err := pool.QueryRow(t.Context(), "SELECT n FROM task").Scan(&n)
	if !pg.NoRows(fmt.Errorf("find: %w", err)) || pg.NoRows(nil) {
		t.Errorf("got %v", err)
	}
	if _, ok := pg.Conflict(nil); ok {
		t.Error("nil is a conflict")
	}
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// relay passes connections on until the test ends.
func relay(t *testing.T, from, to string) {
	t.Helper()
	l, err := net.Listen("tcp", from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			pass := func(dst, src net.Conn) {
				_, _ = io.Copy(dst, src)
				_ = dst.Close()
			}
			go pass(in, out)
			go pass(out, in)
		}
	}()
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
