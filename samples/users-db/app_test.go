package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// settings is an environment.
type settings map[string]string

func (s settings) get(name string) string { return s[name] }

// newDatabase gives the test a database of its own on a real PostgreSQL, and the settings that name it as if it were of this machine.
func newDatabase(t *testing.T) settings {
	t.Helper()
	url := os.Getenv("PROA_TEST_DATABASE_URL")
	if url == "" {
		t.Skip("needs a PostgreSQL: set PROA_TEST_DATABASE_URL, in this repository with eval \"$(make -s test-db)\"")
	}
	server, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	name := "users_db_" + strings.ToLower(rand.Text())
	if _, err := server.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := server.Exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
		_ = server.Close(ctx)
	})
	c := server.Config()
	return settings{"DB_HOST": c.Host, "DB_PORT": fmt.Sprint(c.Port), "DB_NAME": name, "DB_USER": c.User, "DB_PASSWORD": c.Password}
}

// start runs the app in an environment.
func start(t *testing.T, s settings) *httptest.Server {
	t.Helper()
	a := open(context.Background(), s.get)
	t.Cleanup(a.close)
	server := httptest.NewServer(a.routes())
	t.Cleanup(server.Close)
	return server
}

// ask is what the app answers.
func ask(t *testing.T, server *httptest.Server, path string, want int) string {
	t.Helper()
	resp, err := server.Client().Get(server.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != want {
		t.Fatalf("%s: %s, want %d: %s", path, resp.Status, want, body)
	}
	if kind, keep := resp.Header.Get("Content-Type"), resp.Header.Get("Cache-Control"); kind != "application/json" || keep != "no-store" {
		t.Errorf("%s is %q and may be kept as %q", path, kind, keep)
	}
	return strings.TrimSpace(string(body))
}

func read[T any](t *testing.T, body string) (v T) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return v
}

// refused asserts an error with a trace.
func refused(t *testing.T, body, want string) {
	t.Helper()
	if f := read[failed](t, body); !strings.Contains(f.Error, want) || len(f.Trace) == 0 {
		t.Errorf("got %s, want an error with %q and a trace", body, want)
	}
}

func TestUsers(t *testing.T) {
	server := start(t, newDatabase(t))
	for _, path := range []string{"/users", "/users/add/2", "/users/delete"} {
		refused(t, ask(t, server, path, http.StatusConflict), "Call /migrate once")
	}
	for range 2 { // again does no harm
		if got := ask(t, server, "/migrate", http.StatusOK); got != `{"migrated":true}` {
			t.Errorf("migrate: %s", got)
		}
	}
	if got := ask(t, server, "/users", http.StatusOK); got != `{"count":0,"users":[]}` {
		t.Errorf("before: %s", got)
	}

	body := ask(t, server, "/users/add/3", http.StatusOK)
	first := read[added](t, body)
	if first.Amount != 3 || len(first.Users) != 3 || !strings.Contains(body, `"users added":[{"firstName":`) {
		t.Fatalf("added: %s", body)
	}
	for _, u := range first.Users {
		if u.FirstName == "" || u.LastName == "" || !strings.Contains(u.Email, "@") || len(u.Password) != 16 {
			t.Errorf("a user lacks something: %+v", u)
		}
		if day, err := time.Parse(time.DateOnly, u.Birthday); err != nil || day.After(time.Now()) {
			t.Errorf("born on %q: %v", u.Birthday, err)
		}
	}
	second := read[added](t, ask(t, server, "/users/add/1", http.StatusOK))
	all := read[listed](t, ask(t, server, "/users", http.StatusOK))
	if want := append(first.Users, second.Users...); all.Count != 4 || !reflect.DeepEqual(all.Users, want) {
		t.Errorf("got %+v, want %+v", all, want)
	}

	if got := ask(t, server, "/users/delete", http.StatusOK); got != `{"users":[]}` {
		t.Errorf("delete: %s", got)
	}
	if got := ask(t, server, "/users", http.StatusOK); got != `{"count":0,"users":[]}` {
		t.Errorf("after: %s", got)
	}
}

func TestAmounts(t *testing.T) {
	server := start(t, newDatabase(t))
	ask(t, server, "/migrate", http.StatusOK)
	for _, amount := range []string{"0", "-1", "10001", "many", "1.5", "99999999999999999999", "%00"} {
		refused(t, ask(t, server, "/users/add/"+amount, http.StatusBadRequest), "from 1 to 10000")
	}
	if got := read[added](t, ask(t, server, "/users/add/10000", http.StatusOK)); len(got.Users) != most {
		t.Errorf("added %d", len(got.Users))
	}
	if got := read[listed](t, ask(t, server, "/users", http.StatusOK)); got.Count != most {
		t.Errorf("%d users, so not all of them or some that were refused", got.Count)
	}
	if got := read[failed](t, ask(t, server, "/people", http.StatusNotFound)); got.Trace == nil {
		t.Error("the trace is no list")
	}
}

// TestMigrateAtOnce is two instances that are asked at the same time.
func TestMigrateAtOnce(t *testing.T) {
	s := newDatabase(t)
	servers := []*httptest.Server{start(t, s), start(t, s)}
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			resp, err := http.Get(servers[i%2].URL + "/migrate")
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if body, _ := io.ReadAll(resp.Body); strings.TrimSpace(string(body)) != `{"migrated":true}` {
				t.Errorf("%s", body)
			}
		})
	}
	all.Wait()
}

// TestMigrateFails meets a table that somebody else has made.
func TestMigrateFails(t *testing.T) {
	s := newDatabase(t)
	d, err := findDatabase(s.get)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), d.url())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "CREATE TABLE users (name text)"); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	body := ask(t, start(t, s), "/migrate", http.StatusInternalServerError)
	if f := read[failed](t, body); len(f.Trace) < 2 || !strings.Contains(f.Trace[len(f.Trace)-1], `relation "users" already exists`) {
		t.Errorf("the trace does not end with the cause: %s", body)
	}
}

// TestBound has the database in VCAP_SERVICES, which wins over what else is set.
func TestBound(t *testing.T) {
	s := newDatabase(t)
	credentials := fmt.Sprintf(`{"host":%q,"port":%s,"database":%q,"username":%q,"password":%q}`, s["DB_HOST"], s["DB_PORT"], s["DB_NAME"], s["DB_USER"], s["DB_PASSWORD"])
	server := start(t, settings{"DB_HOST": "nowhere.invalid", "VCAP_SERVICES": `{"any-label":[{"name":"db","credentials":` + credentials + `}]}`})
	if got := ask(t, server, "/migrate", http.StatusOK); got != `{"migrated":true}` {
		t.Errorf("migrate: %s", got)
	}
}

func TestWithoutDatabase(t *testing.T) {
	refused(t, ask(t, start(t, settings{"VCAP_SERVICES": "{}"}), "/users", http.StatusServiceUnavailable), "Bind one to it and restage it")

	body := ask(t, start(t, settings{"DB_HOST": "127.0.0.1", "DB_PORT": "1", "DB_NAME": "x", "DB_USER": "x", "DB_PASSWORD": "secret-word"}), "/users", http.StatusServiceUnavailable)
	refused(t, body, "cannot be reached")
	if strings.Contains(body, "secret-word") {
		t.Errorf("the password is told: %s", body)
	}
}
