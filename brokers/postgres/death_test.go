package postgres_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proa-dev/proa/brokers/postgres"
)

// The worker dies before each step of each operation, holding its lease; another process takes the operation up. In the end there is
// what there should be, once.
func TestWorkerDiesAtEachStep(t *testing.T) {
	for _, step := range []string{
		"create: owner", "create: database", "create: rights", "create: content", "create: done",
		"update: extensions", "update: limits", "update: done",
		"delete: database", "delete: login", "delete: role", "delete: done",
	} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			var died sync.Once
			dead := make(chan struct{})
			w := newWorld(t, func(b *postgres.Broker) {
				b.Workers = 1
				b.Step = func(name string) error {
					if name == step {
						died.Do(func() { close(dead) })
						runtime.Goexit() // nothing is said, nothing is given back
					}
					return nil
				}
			})
			end := func() {
				t.Helper()
				select {
				case <-dead:
				default:
					return
				}
				w.stop()
				w.start()
				dead = make(chan struct{})
			}
			wait := func() {
				t.Helper()
				for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
					select {
					case <-dead:
						return
					default:
					}
					if r := w.call(http.MethodGet, w.at("one")+"/last_operation", nil); r.status != 200 || r.json["state"] != "in progress" {
						return
					}
				}
				t.Fatal("neither dead nor done")
			}
			w.want(202, w.provision("one", 0))
			wait()
			end()
			w.wantEnd("one", "succeeded")
			w.wantMade(1, 1, 0)
			a := credentials(w.want(201, w.bind("one", "a")))
			sql(t, w.connect(a), `create table t (n int)`)
			w.want(202, w.call(http.MethodPatch, w.at("one")+"?accepts_incomplete=true", w.request(1, "parameters", map[string]any{"extensions": []string{"citext"}})))
			wait()
			end()
			w.wantEnd("one", "succeeded")
			sql(t, w.connect(a), `insert into t values (1); select 'A'::citext; select pg_sleep(0.5)`)
			w.want(202, w.delete("one"))
			wait()
			end()
			w.wantEnd("one", "gone")
			w.wantMade(0, 0, 0)
			if w.broker.Step != nil {
				t.Errorf("nobody died at %s", step)
			}
		})
	}
}

// A request dies at each step of binding and unbinding, and the platform sends it again to another process.
func TestRequestDiesAtEachStep(t *testing.T) {
	for _, step := range []string{"bind: login", "bind: ready", "unbind: login", "unbind: role", "unbind: done"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(b *postgres.Broker) {
				b.Step = func(name string) error {
					if name == step {
						return errors.New("died")
					}
					return nil
				}
			})
			again := func(r reply, ask func() reply) reply {
				t.Helper()
				if r.status == 500 {
					w.want(404, w.call(http.MethodGet, w.at("one")+"/service_bindings/a", nil))
					w.stop()
					w.start()
					r = ask()
				}
				return r
			}
			w.ready("one", 0)
			r := w.bind("one", "a")
			if strings.HasPrefix(step, "unbind") {
				w.want(201, r)
			}
			a := credentials(w.want(201, again(r, func() reply { return w.bind("one", "a") })))
			sql(t, w.connect(a), `create table t (n int)`)
			w.wantMade(1, 1, 1)
			r = w.unbind("one", "a")
			if r.status == 500 {
				w.stop()
				w.start()
				r = w.unbind("one", "a")
			}
			w.want(200, r)
			w.wantMade(1, 1, 0)
			if w.broker.Step != nil {
				t.Errorf("nobody died at %s", step)
			}
		})
	}
}

// A platform that sends the same thing many times at once gets one database and one login.
func TestTheSameAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mu sync.Mutex
	seen := map[string]int{}
	together := func(n int, ask func() (reply, error), key func(reply) string) {
		t.Helper()
		clear(seen)
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				r, err := ask()
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				seen[key(r)]++
			})
		}
		all.Wait()
	}
	together(20, func() (reply, error) {
		return w.try(http.MethodPut, w.at("one")+"?accepts_incomplete=true", w.request(0))
	}, func(r reply) string {
		if r.status == 200 { // it came when all was done
			return "done"
		}
		return fmt.Sprint(r.status, r.json["operation"])
	})
	delete(seen, "done")
	if len(seen) != 1 {
		t.Errorf("the answers: %v", seen)
	}
	w.wantEnd("one", "succeeded")
	together(10, func() (reply, error) {
		return w.try(http.MethodPut, w.at("one")+"/service_bindings/a", w.request(0))
	}, func(r reply) string { return fmt.Sprint(r.status, credentials(r)) })
	if len(seen) != 2 {
		t.Errorf("the answers: %v", seen)
	}
	for key, n := range seen {
		if strings.HasPrefix(key, "201") && n != 1 || strings.HasPrefix(key, "200") && n != 9 || !strings.Contains(key, "db_") {
			t.Errorf("%d times %s", n, key)
		}
	}
	w.wantMade(1, 1, 1)
	together(10, func() (reply, error) {
		return w.try(http.MethodDelete, w.at("one")+w.query(), nil)
	}, func(r reply) string { return fmt.Sprint(r.status) })
	if delete(seen, "410"); len(seen) != 1 || seen["202"] == 0 {
		t.Errorf("the answers: %v", seen)
	}
	w.wantEnd("one", "gone")
	w.wantMade(0, 0, 0)
}

// Two processes share the work on twenty databases.
func TestTwentyAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.broker
	w.start()
	if first == w.broker {
		t.Fatal("there is one process only")
	}
	begin := time.Now()
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			if r, err := w.try(http.MethodPut, w.at(fmt.Sprint("i", n))+"?accepts_incomplete=true", w.request(n%2)); err != nil || r.status != 202 {
				t.Errorf("%v %v", r, err)
			}
		})
	}
	all.Wait()
	for n := range 20 {
		w.wantEnd(fmt.Sprint("i", n), "succeeded")
	}
	t.Logf("20 databases took %.1f s", time.Since(begin).Seconds())
	w.wantMade(20, 20, 0)
	for n := range 20 {
		w.want(202, w.delete(fmt.Sprint("i", n)))
	}
	for n := range 20 {
		w.wantEnd(fmt.Sprint("i", n), "gone")
	}
	w.wantMade(0, 0, 0)
}

// The server of the databases goes away and comes back, while the state stays.
func TestServerAway(t *testing.T) {
	state := fmt.Sprintf("/var/tmp/proa-pgbroker-%d", os.Getpid()) // its own user must be able to get there
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("../../engines/postgres/run.sh", args...)
		cmd.Env = append(os.Environ(), "PROA_STATE="+state)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("PostgreSQL: %s: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	t.Cleanup(func() { run("destroy", "services") })
	run("start", "services")
	records := os.Getenv("PROA_TEST_DATABASE_URL")
	t.Setenv("PROA_TEST_DATABASE_URL", run("url", "services"))
	w := prepare(t, os.Getenv("PROA_TEST_DATABASE_URL"))
	t.Setenv("PROA_TEST_DATABASE_URL", records)
	w.state = newDatabase(t)
	w.start()
	w.ready("one", 0)
	a := credentials(w.want(201, w.bind("one", "a")))

	run("stop", "services")
	w.want(202, w.provision("two", 0))
	w.want(503, w.bind("one", "b"))
	w.want(503, w.unbind("one", "a"))
	w.want(200, w.call(http.MethodGet, "/readyz", nil)) // it takes what it can do later
	for deadline := time.Now().Add(patience); !strings.Contains(w.log.String(), "operation is tried again"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nobody tried")
		}
	}
	if r := w.want(200, w.call(http.MethodGet, w.at("two")+"/last_operation", nil)); r.json["state"] != "in progress" {
		t.Errorf("meanwhile: %s", r.body)
	}
	run("start", "services")
	w.wantEnd("two", "succeeded")
	w.reconnect(run("url", "services"))
	w.want(201, w.bind("one", "b"))
	sql(t, w.connect(a), `create table t (n int)`)
	w.want(200, w.unbind("one", "a"))
	w.wantMade(2, 2, 1)
}
