package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/launch"
)

// A sidecar that takes all the processor it gets, 30 MB of memory and 20 MB of disk.
const glutton = `(head -c 30000000 /dev/zero; sleep 1000) | tail -c 30000000 & head -c 20000000 /dev/zero > /tmp/ballast; while :; do :; done`

func TestUsage(t *testing.T) {
	w := here(t)
	image, staged, log := w.stage("usage", map[string][]byte{"Procfile": []byte("web: exec sleep 1000\n")}, func(*platform.Staging) {})
	if staged.State != platform.StagingSucceeded {
		t.Fatalf("staging ended with %+v: %v\n%s", staged, staged.Failure, log)
	}
	watch, err := w.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := platform.Release{
		GUID: platform.GUIDOf(w.namespace), AppGUID: "a", AppName: "usage", SpaceGUID: w.space, Namespace: w.namespace, ProcessGUID: "p", ProcessType: "web",
		Image: image, MemoryMB: 128, DiskMB: 64, Health: platform.Probe{Type: platform.ProbeProcess},
		Sidecars: []platform.ReleaseSidecar{{Name: "the glutton", Command: glutton, MemoryMB: 64}, {Name: "idle", Command: "exec sleep 1000"}},
	}
	if err := w.Apply(t.Context(), platform.Wanted{Instances: 1, Release: r}); err != nil {
		t.Fatal(err)
	}
	w.states(watch, "RUNNING")
	seen := watch.Seen()[0].Instances
	home, pod := platform.HomeOf("here", r), SetName(r.GUID)+"-0"
	m := NewMeter()

	ask := func() (u platform.Usage) { // on a busy machine what is inside may come too late, and is left out
		w.until(time.Minute, "what is inside", func() error {
			if u = m.Measure(t.Context(), w.Cluster, home, seen)[0]; len(u.Processes) != 3 {
				return fmt.Errorf("there are %+v", u.Processes)
			}
			return nil
		})
		return u
	}
	first := ask()
	main, fat, idle := first.Processes[0], first.Processes[1], first.Processes[2]
	if main.Sidecar != "" || main.Reserved != 64<<20 || fat.Sidecar != "the glutton" || fat.Reserved != 64<<20 || idle.Sidecar != "idle" || idle.Reserved != 0 {
		t.Errorf("got %+v", first.Processes)
	}
	for _, p := range first.Processes {
		if p.State != "running" || p.PID < 2 || time.Since(p.Since) < 0 || time.Since(p.Since) > time.Minute {
			t.Errorf("got %+v", p)
		}
	}

	// Between two samples the share is what the kernel says of the same time.
	time.Sleep(usageFresh) // nobody is asked before
	since, before := time.Now(), w.ticks(pod, fat.PID)
	ask()
	time.Sleep(usageFresh)
	second := ask()
	between, after := time.Since(since), w.ticks(pod, fat.PID)
	want := float64(after-before) / 100 / between.Seconds()
	if got := *second.Processes[1].CPU; math.Abs(got-want) > 0.3*want+0.02 { // the times differ a little
		t.Errorf("the glutton uses %.3f processors, and the kernel says %.3f", got, want)
	}
	if idle := *second.Processes[2].CPU; idle > 0.01 {
		t.Errorf("a process that sleeps uses %.3f processors", idle)
	}
	if got := second.Processes[1].Memory; got < 30_000_000 || got > 50_000_000 {
		t.Errorf("the glutton uses %d bytes of memory", got)
	}

	// The kubelet looks every 10 s or so.
	w.until(time.Minute, "what the kubelet says", func() error {
		u := m.Measure(t.Context(), w.Cluster, home, seen)[0]
		switch {
		case u.CPU == nil || u.Memory == nil || u.Disk == nil:
			return errors.New("something is not measured yet")
		case *u.Disk < 20_000_000 || *u.Disk > 30_000_000 || *u.Memory < 30_000_000 || *u.Memory > 128<<20 || *u.CPU < want/2:
			return fmt.Errorf("%.3f processors, %d bytes of memory, %d of disk", *u.CPU, *u.Memory, *u.Disk)
		}
		t.Logf("%.3f processors (kernel: %.3f), %d bytes of memory, %d of disk; measured %s ago", *u.CPU, want, *u.Memory, *u.Disk, time.Since(u.Time).Round(time.Second))
		return nil
	})

	start := time.Now()
	NewMeter().Measure(t.Context(), w.Cluster, home, seen)
	if took := time.Since(start); took > usagePatience+time.Second {
		t.Errorf("asking takes %s", took)
	} else {
		t.Logf("asking takes %s", took.Round(time.Millisecond))
	}
	gone := seen[0]
	gone.Index, gone.Pod = 1, SetName(r.GUID)+"-1"
	if got := m.Measure(t.Context(), w.Cluster, home, []platform.Instance{gone}); len(got) != 0 {
		t.Errorf("an instance that is not there uses %+v", got)
	}
}

// A container that has just begun shows its average: the kubelet says 0 until it has seen it twice.
func TestShareOfAContainer(t *testing.T) {
	for text, want := range map[string]float64{
		`"startTime":"2026-01-02T03:00:00Z","cpu":{"time":"2026-01-02T03:00:10Z","usageNanoCores":0,"usageCoreNanoSeconds":5000000000}`:          0.5,
		`"startTime":"2026-01-02T03:00:00Z","cpu":{"time":"2026-01-02T03:10:00Z","usageNanoCores":0,"usageCoreNanoSeconds":5000000000}`:          0,
		`"startTime":"2026-01-02T03:00:00Z","cpu":{"time":"2026-01-02T03:10:00Z","usageNanoCores":250000000,"usageCoreNanoSeconds":5000000000}`:  0.25,
		`"startTime":"2026-01-02T03:00:00Z","cpu":{"time":"2026-01-02T03:00:00.1Z","usageNanoCores":1000000,"usageCoreNanoSeconds":5000000000}`:  0.001,
		`"startTime":"2026-01-02T03:00:20Z","cpu":{"time":"2026-01-02T03:00:00Z","usageNanoCores":1000000000,"usageCoreNanoSeconds":5000000000}`: 1,
	} {
		var s nodeSummary
		if err := json.Unmarshal([]byte(`{"pods":[{"podRef":{"name":"p","namespace":"n"},"containers":[{"name":"app",`+text+`}]}]}`), &s); err != nil {
			t.Fatal(err)
		}
		if got := s.usage()["n/p"]; got.CPU == nil || *got.CPU != want {
			t.Errorf("%s: %v, want %v", text, got.CPU, want)
		}
	}
}

// ticks is the processor time of a process, in hundredths of a second.
func (w *world) ticks(pod string, pid int) int64 {
	w.Helper()
	var out strings.Builder
	if _, err := w.Exec(w.Context(), w.namespace, pod, Exec{Command: []string{"cat", fmt.Sprintf("/proc/%d/stat", pid)}, Stdout: &out}); err != nil {
		w.Fatal(err)
	}
	fields := strings.Fields(out.String()[strings.LastIndex(out.String(), ")")+1:])
	var sum int64
	for _, f := range fields[11:15] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			w.Fatal(err)
		}
		sum += n
	}
	return sum
}

// neighbour is an API server that knows two nodes with an instance each, lets nobody into a container, and counts.
type neighbour struct {
	summaries, execs atomic.Int32
	open             chan struct{} // while it is not closed, nobody is answered
}

func (n *neighbour) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer let me in" {
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/exec") {
		n.execs.Add(1)
	} else {
		n.summaries.Add(1)
	}
	select {
	case <-n.open:
	case <-r.Context().Done():
		return
	}
	pod := map[string]string{"/api/v1/nodes/node-1/proxy/stats/summary": "pod-1", "/api/v1/nodes/node-2/proxy/stats/summary": "pod-2"}[r.URL.Path]
	switch {
	case pod != "":
		fmt.Fprintf(w, `{"node":{"nodeName":"x"},"pods":[{"podRef":{"name":"other","namespace":"space"},"containers":[{"name":"phase"}]},
			{"podRef":{"name":%q,"namespace":"space"},"containers":[{"name":"app","cpu":{"time":"2026-01-02T03:04:05Z","usageNanoCores":250000000},
			"memory":{"workingSetBytes":1000},"rootfs":{"usedBytes":20},"logs":{"usedBytes":3}}]}]}`, pod)
	default:
		http.Error(w, "Not found", http.StatusNotFound)
	}
}

func connect(t *testing.T, n http.Handler) *Cluster {
	t.Helper()
	server := httptest.NewTLSServer(n) // tokens are not sent without encryption
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
		"clusters":[{"name":"c","cluster":{"server":%q,"insecure-skip-tls-verify":true}}],"users":[{"name":"u","user":{"token":"let me in"}}]}`, server.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Connect(file, Settings{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func twoInstances() (platform.Home, []platform.Instance) {
	return platform.Home{Cluster: "c", Namespace: "space"}, []platform.Instance{
		{Index: 0, Pod: "pod-1", Node: "node-1", State: platform.InstanceRunning}, {Index: 1, Pod: "pod-2", Node: "node-2", State: platform.InstanceRunning},
		{Index: 2, State: platform.InstanceDown}, {Index: 3, Pod: "pod-3", Node: "node-3", State: platform.InstanceStarting},
		{Index: 4, Pod: "pod-4", Node: "node-1", State: platform.InstanceCrashed},
	}
}

func TestManyWhoAskCostOneAnswer(t *testing.T) {
	n := &neighbour{open: make(chan struct{})}
	close(n.open)
	c, m := connect(t, n), NewMeter()
	home, instances := twoInstances()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			got := m.Measure(t.Context(), c, home, instances)
			if len(got) != 2 || *got[0].CPU != 0.25 || *got[1].Memory != 1000 || *got[0].Disk != 23 || got[0].Time.Year() != 2026 || got[0].Processes != nil {
				t.Errorf("got %+v", got)
			}
		})
	}
	all.Wait()
	if n.summaries.Load() != 3 {
		t.Errorf("the nodes were asked %d times, want once each", n.summaries.Load())
	}
	asked := n.execs.Load() // what is refused is asked again in another protocol
	m.Measure(t.Context(), c, home, instances)
	if n.execs.Load() != asked || asked > 4 {
		t.Errorf("the instances were asked %d times and then %d", asked, n.execs.Load())
	}
}

func TestWhatComesLateIsLeftOut(t *testing.T) {
	n := &neighbour{open: make(chan struct{})}
	c, m := connect(t, n), NewMeter()
	m.patience = 100 * time.Millisecond
	home, instances := twoInstances()
	start := time.Now()
	if got := m.Measure(t.Context(), c, home, instances); len(got) != 0 {
		t.Errorf("got %+v from nobody", got)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("it took %s", took)
	}
	close(n.open)
	m.patience = usagePatience // who was asked before answers now, and is not asked again
	if got := m.Measure(t.Context(), c, home, instances); len(got) != 2 {
		t.Errorf("got %+v", got)
	}
	if n.summaries.Load() != 3 {
		t.Errorf("the nodes were asked %d times, want once each", n.summaries.Load())
	}
}

func TestMemoIsBounded(t *testing.T) {
	m := newMemo[int](time.Hour, time.Hour)
	for i := range maxMemory + 10 {
		m.keep(fmt.Sprint(i), answer[int]{value: i, at: time.Now()})
	}
	if len(m.kept) > maxMemory {
		t.Errorf("%d answers are kept", len(m.kept))
	}
	var now, most atomic.Int32
	var all sync.WaitGroup
	for i := range 3 * maxAsked {
		all.Go(func() {
			_, err := m.get(t.Context(), fmt.Sprint("owner", i), fmt.Sprint("q", i), func(context.Context, int) (int, error) {
				for n := now.Add(1); n > most.Load(); {
					most.Store(n)
				}
				time.Sleep(10 * time.Millisecond)
				now.Add(-1)
				return 0, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if most.Load() > maxAsked {
		t.Errorf("%d were asked at once", most.Load())
	}
}

// An owner whose instances do not answer keeps nobody else waiting.
func TestOneOwnerTakesAFewTurns(t *testing.T) {
	m := newMemo[int](time.Hour, time.Hour)
	var stuck atomic.Int32
	release := make(chan struct{})
	var all sync.WaitGroup
	for i := range 3 * maxAsked {
		all.Go(func() {
			_, err := m.get(t.Context(), "glutton", fmt.Sprint("q", i), func(context.Context, int) (int, error) {
				stuck.Add(1)
				<-release
				return 0, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	for stuck.Load() < maxOfOne {
		time.Sleep(time.Millisecond)
	}
	within, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if got, err := m.get(within, "honest", "q", func(context.Context, int) (int, error) { return 7, nil }); got != 7 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
	if n := stuck.Load(); n != maxOfOne {
		t.Errorf("%d of one owner are asked at once", n)
	}
	close(release)
	all.Wait()
	if len(m.owned) != 0 {
		t.Errorf("%d owners are remembered", len(m.owned))
	}
}

func TestShareOfAProcess(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	started := at.Add(-100 * time.Second)
	p := launch.ProcessStatus{Sidecar: "clock", PID: 7, State: launch.Running, Started: &started, CPU: int64(20 * time.Second)}
	earlier := func(pid int, cpu time.Duration, ago time.Duration) launch.Status {
		return launch.Status{Time: at.Add(-ago), Processes: []launch.ProcessStatus{{PID: 1}, {Sidecar: "clock", PID: pid, CPU: int64(cpu)}}}
	}
	for _, c := range []struct {
		name   string
		before launch.Status
		want   float64 // below zero: none
	}{
		{"asked for the first time", launch.Status{}, 0.2},
		{"asked before", earlier(7, 15*time.Second, 10*time.Second), 0.5},
		{"another process then", earlier(8, 15*time.Second, 10*time.Second), 0.2},
		{"a counter that went back", earlier(7, 25*time.Second, 10*time.Second), 0.2},
		{"asked a moment ago", earlier(7, 15*time.Second, time.Millisecond), -1},
		{"a clock that went back", earlier(7, 15*time.Second, -time.Hour), -1},
	} {
		got := used(p, at, c.before)
		if c.want < 0 && got.CPU != nil || c.want >= 0 && (got.CPU == nil || *got.CPU != c.want) {
			t.Errorf("%s: %v, want %v", c.name, got.CPU, c.want)
		}
	}
	if got := used(launch.ProcessStatus{State: launch.Pending}, at, launch.Status{}); got.CPU != nil || !got.Since.IsZero() {
		t.Errorf("one that has not begun: %+v", got)
	}
}

// What pid 1 says is read up to a size.
func TestLimited(t *testing.T) {
	var l limited
	if _, err := l.Write(make([]byte, maxSaid)); err != nil {
		t.Error(err)
	}
	if _, err := l.Write([]byte("x")); !errors.Is(err, errTooMuch) {
		t.Errorf("got %v", err)
	}
	if len(l.bytes()) != maxSaid || json.Valid(l.bytes()) {
		t.Error("something else was kept")
	}
}
