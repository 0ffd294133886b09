package work_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/proa-dev/proa/kit/seal"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/broker/brokertest"
	"github.com/proa-dev/proa/platform/store"
	"github.com/proa-dev/proa/platform/work"
)

// The test binary is also the worker that the kill tests start and kill.
func TestMain(m *testing.M) {
	if os.Getenv("WORK_TEST_DATABASE") == "" {
		flag.Parse()
		_ = flag.Set("test.parallel", "6") // they wait for each other's deaths, and seldom for a processor
		os.Exit(m.Run())
	}
	if err := worker(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// brief are the limits of workers that are killed: others count them as dead after three seconds.
var brief = work.Limits{Poll: 100 * time.Millisecond, Margin: time.Second, Sweep: 100 * time.Millisecond}

const briefly = 2 * time.Second

// worker works until it is killed, and says when it is where it was to stop.
func worker() error {
	keyset, err := base64.StdEncoding.DecodeString(os.Getenv("WORK_TEST_KEYSET"))
	if err != nil {
		return err
	}
	box, err := seal.New(keyset)
	if err != nil {
		return err
	}
	s, err := store.Open(context.Background(), os.Getenv("WORK_TEST_DATABASE"), box)
	if err != nil {
		return err
	}
	when, call, _ := strings.Cut(os.Getenv("WORK_TEST_STOP"), " ")
	stop := &gate{call: call, after: when == "after", reached: func() { fmt.Println("reached") }}
	service := &work.Service{
		Store: s, HTTP: &http.Client{Timeout: briefly, Transport: stop}, Limits: brief, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Metrics: work.NewMetrics(prometheus.NewRegistry()), Now: time.Now,
	}
	if at := os.Getenv("WORK_TEST_NOTIFY"); at != "" {
		service.Notify = notifyAt(at)
	}
	return service.Part().Run(context.Background())
}

// process is a worker in a process of its own.
type process struct {
	t       testing.TB
	cmd     *exec.Cmd
	reached chan struct{}
	kill    func()
}

// start starts a worker that stops at a place such as "before provision", or nowhere.
func (w *world) start(stop string) *process {
	w.t.Helper()
	p := &process{t: w.t, cmd: exec.Command(os.Args[0]), reached: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), "WORK_TEST_DATABASE="+w.url, "WORK_TEST_KEYSET="+base64.StdEncoding.EncodeToString(sealing()), "WORK_TEST_STOP="+stop)
	if w.notify != nil {
		p.cmd.Env = append(p.cmd.Env, "WORK_TEST_NOTIFY="+w.notify.URL)
	}
	p.cmd.Stderr = w.log
	out, err := p.cmd.StdoutPipe()
	must(w.t, err)
	must(w.t, p.cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if lines.Text() == "reached" {
				close(p.reached)
			}
		}
	}()
	p.kill = sync.OnceFunc(func() {
		_ = p.cmd.Process.Kill()
		<-ended
		_ = p.cmd.Wait() // it was killed
	})
	w.t.Cleanup(p.kill)
	return p
}

// wait waits until the worker is where it was to stop.
func (p *process) wait() {
	p.t.Helper()
	select {
	case <-p.reached:
	case <-time.After(patience):
		p.t.Fatal("the worker did not get there")
	}
}

// place is a step of an operation at which something dies.
type place struct {
	name  string
	stop  string // where the worker stops by itself
	call  brokertest.Call
	acts  []brokertest.Act // what the broker does with the first requests of the call
	await brokertest.Call  // the request whose work is done when the time has come; empty: when the worker says so
	hold  string           // a row that we lock, so that the worker is stuck while it writes
}

func places(call brokertest.Call, name string, poll brokertest.Call) []place {
	return []place{
		{"before it asks", "before " + name, "", nil, "", ""},
		{"before the answer", "", call, []brokertest.Act{{Hang: true}}, call, ""},
		{"before the answer that it takes longer", "", call, []brokertest.Act{{Hang: true, Polls: 2}}, call, ""},
		{"before the answer, and the broker is still busy with it", "", call, []brokertest.Act{{Hang: true}, refuse(422, "ConcurrencyError", ""), refuse(422, "ConcurrencyError", "")}, call, ""},
		{"after the answer", "after " + name, "", nil, "", ""},
		{"while it writes", "", "", nil, call, `select from jobs where guid = $1 for update`},
		{"while it waits", "", call, []brokertest.Act{brokertest.Never}, poll, ""},
		{"before a poll", "before poll", call, []brokertest.Act{later(2)}, "", ""},
		{"after a poll", "after poll", call, []brokertest.Act{later(1)}, "", ""},
	}
}

var killPlaces = map[string][]place{
	"provision": places(brokertest.Provision, "provision", brokertest.PollInstance),
	"bind": append(places(brokertest.Bind, "bind", brokertest.PollBinding),
		place{"before it fetches the credentials", "before fetch", brokertest.Bind, []brokertest.Act{later(1)}, "", ""},
		place{"after it fetched the credentials", "after fetch", brokertest.Bind, []brokertest.Act{later(1)}, "", ""}),
}

// TestKill kills the process that works on an operation, at each step of it. Another one goes on: the job ends as it should, there is
// exactly one instance, and one binding, and nothing is left to do.
func TestKill(t *testing.T) {
	for call, all := range killPlaces {
		for _, at := range all {
			t.Run(call+" "+at.name, func(t *testing.T) {
				t.Parallel()
				w := prepared(t, call)
				job := w.begin(call, at)
				unlock := w.lock(at.hold, job.GUID)
				first := w.start(at.stop)
				w.arrive(at, first.wait)
				first.kill()
				unlock()
				w.broker.Finish()
				killed := time.Now()
				w.start("")
				w.whole(call, job)
				t.Logf("ended %s after the death; asked: %s", time.Since(killed).Round(time.Millisecond), strings.Join(w.story(), ", "))
			})
		}
	}
}

// prepared is a world in which an operation can begin, and nobody works.
func prepared(t *testing.T, call string) *world {
	t.Helper()
	w := newWorld(t, brokertest.Options{})
	w.planned = "small"
	stop := w.work(limits, timeout)
	w.register()
	if call == "bind" {
		w.ended(provision(w).GUID)
	}
	stop()
	w.broker.Forget()
	return w
}

func (w *world) begin(call string, at place) platform.Job {
	w.t.Helper()
	if at.call != "" {
		w.broker.Script(at.call, at.acts...)
	}
	if call == "bind" {
		return bind(w)
	}
	return provision(w)
}

// lock holds a row until the returned function is called.
func (w *world) lock(sql, guid string) (unlock func()) {
	w.t.Helper()
	if sql == "" {
		return func() {}
	}
	conn := get[*pgxpool.Conn](w.t)(w.pool.Acquire(w.t.Context()))
	_, err := conn.Exec(w.t.Context(), `begin`)
	must(w.t, err)
	_, err = conn.Exec(w.t.Context(), sql, guid)
	must(w.t, err)
	return sync.OnceFunc(func() {
		_, err := conn.Exec(w.t.Context(), `rollback`)
		must(w.t, err)
		conn.Release()
	})
}

// arrive waits until the worker is at the place.
func (w *world) arrive(at place, reached func()) {
	w.t.Helper()
	if at.await == "" {
		reached()
		return
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	must(w.t, w.broker.Await(ctx, at.await, 1))
	if at.hold != "" {
		w.until("stuck", func() bool {
			return w.value(`select count(*)::text from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%from jobs%'`) != "0"
		})
	}
}

// whole waits until the job has ended, and looks whether all is as if nothing had happened.
func (w *world) whole(call string, job platform.Job) {
	w.t.Helper()
	if job = w.ended(job.GUID); job.State != platform.JobComplete {
		w.t.Errorf("%s\n%s", details(job), w.log)
	}
	w.calm()
	i, b := w.broker.Instances(), w.broker.Bindings()
	wanted := map[string]int{"provision": 0, "bind": 1}[call]
	if len(i) != 1 || i[0].ID != w.instance("db") || !i[0].Ready || len(b) != wanted {
		w.t.Errorf("the broker has %v %v", i, b)
	}
	if sees := w.seen("service_instances", "db"); !strings.HasPrefix(sees, "create succeeded") {
		w.t.Errorf("the instance: %s", sees)
	}
	if call == "bind" {
		guid := w.guid("binding")
		if d := get[platform.BindingDetails](w.t)(w.store.BindingDetails(w.t.Context(), w.ann, guid)); !strings.Contains(string(d.Credentials), brokertest.Password(guid)) {
			w.t.Errorf("the credentials are %s", d.Credentials)
		}
	}
	if n := len(w.broker.Asked(brokertest.Deprovision, brokertest.Unbind)); n != 0 {
		w.t.Errorf("the broker was asked to delete something: %v", w.story())
	}
	if n := w.value(`select count(*)::text from audit_events where type ~ '(instance|binding)\.create$' and target_guid in ($1, $2)`, w.guid("db"), w.guid("binding")); n != fmt.Sprint(1+wanted) {
		w.t.Errorf("%s events of creations", n)
	}
}

// TestDatabaseGoes cuts the line between a worker and PostgreSQL at each step, for so short that the worker gets over it and for so long
// that it has to give up.
func TestDatabaseGoes(t *testing.T) {
	for call, all := range killPlaces {
		for _, at := range all {
			if at.hold != "" || len(at.acts) > 1 {
				continue // the row is ours then; and nobody asks twice
			}
			for name, away := range map[string]time.Duration{"for a moment": 200 * time.Millisecond, "for long": 2 * time.Second} {
				t.Run(call+" "+at.name+" "+name, func(t *testing.T) {
					t.Parallel()
					w := prepared(t, call)
					cut, over := newLine(t, w.url)
					reached, letGo, held := make(chan struct{}), make(chan struct{}), make(chan struct{})
					at := at // its acts are changed below, and it is shared by two of these
					at.acts = slices.Clone(at.acts)
					for i := range at.acts {
						if at.acts[i].Hang {
							at.acts[i].Hang, at.acts[i].Until = false, held
						}
					}
					job := w.begin(call, at)
					w.workOver(over, &gate{call: strings.TrimPrefix(strings.TrimPrefix(at.stop, "before "), "after "), after: strings.HasPrefix(at.stop, "after"), reached: func() { close(reached) }, letGo: letGo})
					w.arrive(at, func() {
						select {
						case <-reached:
						case <-time.After(patience):
							t.Fatal("the worker did not get there")
						}
					})
					cut.set(true)
					close(letGo)
					close(held)
					w.broker.Finish()
					time.Sleep(away) // the database is away: that is the test
					cut.set(false)
					w.whole(call, job)
				})
			}
		}
	}
}

// workOver starts workers in this process that reach the database over a line and the broker through a gate.
func (w *world) workOver(database string, g *gate) {
	w.t.Helper()
	s := get[*store.Store](w.t)(store.Open(w.t.Context(), database, box(w.t, sealing())))
	service := &work.Service{
		Store: s, HTTP: &http.Client{Timeout: briefly, Transport: g}, Limits: brief, Log: slog.New(slog.NewTextHandler(w.log, nil)),
		Metrics: work.NewMetrics(prometheus.NewRegistry()), Now: time.Now,
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- service.Part().Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("the workers ended with %v", err)
		}
		s.Close()
	})
}
