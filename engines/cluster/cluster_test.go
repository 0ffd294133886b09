package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A trial is the program itself, with a cluster that is nobody else's.
type trial struct {
	*testing.T
	program, state string
	env            []string
}

func newTrial(t *testing.T) *trial {
	t.Helper()
	if os.Getenv("PROA_TEST_CLUSTER") == "" {
		t.Skip("This brings up a cluster of its own, as root. To run it: PROA_TEST_CLUSTER=1 go test ./engines/cluster")
	}
	base := "/var/tmp"
	if state := os.Getenv("PROA_STATE"); state != "" {
		base = filepath.Dir(state) // where CI looks for what an interrupted test has left
	}
	dir, err := os.MkdirTemp(base, "proa-trial-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	r := &trial{T: t, program: filepath.Join(dir, "cluster"), state: filepath.Join(dir, "state")}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", r.program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r.env = append(os.Environ(), "PROA_STATE="+r.state, "PROA_RUN="+dir+"/run", "PROA_GATEWAY_HTTP="+freeAddress(t), "PROA_GATEWAY_HTTPS="+freeAddress(t), "PROA_TCP_PORTS="+freePorts(t))
	t.Cleanup(func() {
		if out, code := r.run("clean"); code != 0 {
			t.Errorf("clean ends with %d: %s", code, out)
		}
	})
	return r
}

// freePorts is a range of one.
func freePorts(t *testing.T) string {
	t.Helper()
	_, port, _ := strings.Cut(freeAddress(t), ":")
	return port + "-" + port
}

func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000)) // below those that connections are given
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

func (r *trial) run(args ...string) (string, int) {
	r.Helper()
	cmd := exec.Command(r.program, args...)
	cmd.Dir, cmd.Env = "../..", r.env
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		r.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// must runs a command that has to succeed, and answers how long it took.
func (r *trial) must(args ...string) time.Duration {
	r.Helper()
	since := time.Now()
	if out, code := r.run(args...); code != 0 {
		r.Fatalf("cluster %s ends with %d:\n%s", strings.Join(args, " "), code, out)
	}
	return time.Since(since)
}

func (r *trial) cluster() *Cluster {
	r.Helper()
	c, err := load(r.state + "-cluster")
	if err != nil || c == nil {
		r.Fatal("there is no cluster:", err)
	}
	return c
}

func (r *trial) traces() []string {
	r.Helper()
	lines, err := listTraces(r.Context(), r.state+"-cluster")
	if err != nil {
		r.Fatal(err)
	}
	return lines
}

// beyond lists what is in one list and not in the other.
func beyond(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(line string) bool { return slices.Contains(other, line) })
}

// TestUpAndDown brings a cluster up with all caches warm, and takes it down again: quickly, and without a trace.
func TestUpAndDown(t *testing.T) {
	r := newTrial(t)
	before := r.traces()
	first := r.must("up")
	during := beyond(r.traces(), before)
	for _, kind := range []string{"process", "namespace", "mount-inside", "link", "address", "route", "cgroup"} {
		if !slices.ContainsFunc(during, func(line string) bool { return strings.HasPrefix(line, kind+" ") }) {
			t.Errorf("a running cluster shows no %s, so its absence would prove nothing", kind)
		}
	}
	c := r.cluster()
	pids := func() (all []int) {
		for _, name := range c.mains() {
			all = append(all, c.pid(name))
		}
		return all
	}
	running := pids()
	again := r.must("up")
	if now := pids(); !slices.Equal(running, now) {
		t.Errorf("the second up started something again: %v became %v", running, now)
	}
	down := r.must("down")
	if left := beyond(r.traces(), before); len(left) > 0 {
		t.Errorf("down leaves behind:\n%s", strings.Join(left, "\n"))
	}
	if gone := beyond(before, r.traces()); len(gone) > 0 {
		t.Errorf("down took along what was not the cluster's:\n%s", strings.Join(gone, "\n"))
	}
	second := r.must("up") // the registry has its images now
	downAgain := r.must("down")
	r.must("down")
	t.Logf("up with an empty registry %.1f s, up while up %.1f s, up %.1f s (aim 60 s); down %.1f s and %.1f s (aim 15 s)",
		first.Seconds(), again.Seconds(), second.Seconds(), down.Seconds(), downAgain.Seconds())
	if first > time.Minute || second > time.Minute || down > 15*time.Second || downAgain > 15*time.Second {
		t.Error("that is slower than it has to be")
	}
}

// TestTroubleIsToldAndMended kills a process of the cluster, which status reports and up mends.
func TestTroubleIsToldAndMended(t *testing.T) {
	r := newTrial(t)
	if out, code := r.run("status"); code != 3 || !strings.Contains(out, "not up") {
		t.Errorf("status without a cluster ends with %d: %s", code, out)
	}
	if out, code := r.run("node", "stop", "1"); code != 1 || !strings.Contains(out, "make cluster-up") {
		t.Errorf("stopping a node without a cluster ends with %d: %s", code, out)
	}
	r.must("up")
	r.must("status")
	c := r.cluster()
	if err := syscall.Kill(c.pid("registry"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for c.pid("registry") != 0 {
		time.Sleep(time.Millisecond)
	}
	if out, code := r.run("status"); code != 3 || !strings.Contains(out, "registry is not running") {
		t.Errorf("status without the registry ends with %d: %s", code, out)
	}
	pods := func() string {
		out, err := c.kubectl(t.Context(), "get", "pods", "-A", "-o", "jsonpath={.items[*].metadata.uid}")
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	running := pods()
	r.must("up")
	r.must("status")
	if now := pods(); now != running {
		t.Errorf("up replaced what ran: %s became %s", running, now)
	}
}

// TestForeignStateIsRefused plants a directory where the cluster would keep its own, as another user of the machine could.
func TestForeignStateIsRefused(t *testing.T) {
	r := newTrial(t)
	dir := r.state + "-cluster"
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"up", "status", "down"} {
		if out, code := r.run(command); code != 1 || !strings.Contains(out, "not a directory of yours alone") {
			t.Errorf("%s in a directory of somebody else ends with %d: %s", command, code, out)
		}
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	r := newTrial(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	held := port(taken.Addr().String())
	for setting, says := range map[string]string{
		"PROA_GATEWAY_HTTP=80":                        "must be a loopback address with a port",
		"PROA_GATEWAY_HTTP=:80":                       "must be a loopback address with a port",
		"PROA_GATEWAY_HTTPS=0.0.0.0:443":              "must be a loopback address with a port",
		"PROA_GATEWAY_HTTPS=" + taken.Addr().String(): "choose another address with PROA_GATEWAY_HTTPS",
		"PROA_GATEWAY_HTTP=localhost:" + "notanumber": "must be a loopback address with a port",
		"PROA_TCP_PORTS=all":                          "must be a range of at most 60 ports",
		"PROA_TCP_PORTS=20009-20000":                  "must be a range of at most 60 ports",
		"PROA_TCP_PORTS=20000-20060":                  "must be a range of at most 60 ports",
		"PROA_TCP_PORTS=" + held + "-" + held:         "choose another address with PROA_TCP_PORTS",
	} {
		before := r.env
		r.env = append(slices.Clone(r.env), setting)
		if out, code := r.run("up"); code != 1 || !strings.Contains(out, says) {
			t.Errorf("%s: up ends with %d: %s", setting, code, out)
		}
		r.env = before
	}
	if left, _ := filepath.Glob(r.state + "*"); len(left) > 0 {
		t.Errorf("what was refused left %v behind", left)
	}
	for _, args := range [][]string{{"up", "9"}, {"up", "x"}, {"node", "stop"}, {"sideways"}} {
		if out, code := r.run(args...); code == 0 || len(out) < 20 {
			t.Errorf("cluster %v ends with %d: %s", args, code, out)
		}
	}
}

// TestPowerLoss turns a second node off without a word and on again.
func TestPowerLoss(t *testing.T) {
	r := newTrial(t)
	before := r.traces()
	r.must("up", "2")
	c := r.cluster()
	ready := func(want string) {
		t.Helper()
		end := time.Now().Add(2 * time.Minute)
		for {
			got, err := c.kubectl(t.Context(), "get", "node", "node-2", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
			if err == nil && got == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("node-2 is ready: %s, %v; want %s", got, err, want)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	ready("True")
	if _, err := c.kubectl(t.Context(), "run", "sleeper", "--image="+c.PauseImage(), "--image-pull-policy=Never", `--overrides={"spec":{"nodeName":"node-2"}}`); err != nil {
		t.Fatal(err)
	}
	if _, err := c.kubectl(t.Context(), "wait", "--for=condition=Ready", "--timeout=60s", "pod/sleeper"); err != nil {
		t.Fatal(err)
	}
	// A connection with something under way keeps a network alive after its node is gone: there must be none left of it.
	hold := exec.Command("nsenter", "--target", fmt.Sprint(c.pid("node-2")), "--net", "--pid", "bash", "-c",
		"exec 3<>/dev/tcp/"+c.node(1).Address()+"/10250; echo open; sleep 3; head -c 4096 /dev/zero >&3; sleep 100")
	opened, err := hold.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := hold.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = hold.Wait() }()
	if _, err := opened.Read(make([]byte, 5)); err != nil {
		t.Fatal("no connection between the nodes:", err)
	}
	r.must("node", "stop", "1")
	time.Sleep(4 * time.Second) // until it has sent what nobody answers
	since := time.Now()
	r.must("node", "stop", "2")
	r.must("node", "start", "1")
	if c.pid("node-2") != 0 {
		t.Fatal("node-2 still runs")
	}
	ready("Unknown")
	lost := time.Since(since)
	since = time.Now()
	r.must("node", "start", "2")
	ready("True")
	if _, err := c.kubectl(t.Context(), "wait", "--for=jsonpath={.status.containerStatuses[0].restartCount}=1", "--timeout=60s", "pod/sleeper"); err != nil {
		t.Fatal("the pod of the node that was cut off does not run again:", err)
	}
	if _, err := c.kubectl(t.Context(), "wait", "--for=condition=Ready", "--timeout=60s", "pod/sleeper"); err != nil {
		t.Fatal(err)
	}
	t.Logf("the loss of a node is noticed after %.1f s; %.1f s after it was turned on its pod runs again", lost.Seconds(), time.Since(since).Seconds())
	r.must("down")
	if left := beyond(r.traces(), before); len(left) > 0 {
		t.Errorf("down leaves behind:\n%s", strings.Join(left, "\n"))
	}
}

func TestAddressesDoNotOverlap(t *testing.T) {
	c := &Cluster{Net: 87}
	seen := []string{c.Host(), c.DNS()}
	for number := 1; number <= maxNodes; number++ {
		seen = append(seen, c.node(number).Address())
	}
	slices.Sort(seen)
	if len(slices.Compact(seen)) != maxNodes+2 {
		t.Errorf("two share an address: %v", seen)
	}
	_, services, err := net.ParseCIDR(c.ServicesNet())
	if err != nil {
		t.Fatal(err)
	}
	_, pods, err := net.ParseCIDR(c.PodsNet())
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range seen {
		if ip := net.ParseIP(address); services.Contains(ip) != (address == c.DNS()) {
			t.Errorf("%s is on the wrong side of %s", address, services)
		}
	}
	for number := 1; number <= maxNodes; number++ {
		ip, _, err := net.ParseCIDR(c.node(number).PodNet())
		if err != nil || !pods.Contains(ip) || services.Contains(ip) {
			t.Errorf("the pods of node %d: %v %v", number, ip, err)
		}
	}
	if name := c.node(maxNodes).Veth(); len(name) > 15 {
		t.Errorf("the kernel does not take %s as the name of a link", name)
	}
	if got, want := fmt.Sprint(c.node(2).Cgroup()), "/proa87/node-2"; got != want {
		t.Errorf("the cgroup is %s, want %s", got, want)
	}
}
