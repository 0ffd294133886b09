package main_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/store"
)

// A death is a process of an app and how its first instance dies.
type death struct {
	kind    string // process type
	command string // of the main process
	sidecar string // command of a sidecar of that name with "-side" behind it
	check   platform.HealthCheck
	memory  int
	by      func(w *world, pod string) // what ends it, if it does not do so by itself
	away    bool                       // no controller is there while it dies
	want    string                     // of the exit record, below APP/PROC/TYPE
}

const forever = "while true; do sleep 1; done"

func deaths() []death {
	process := platform.HealthCheck{Type: platform.CheckProcess}
	hand := func(args ...string) func(*world, string) {
		return func(w *world, pod string) {
			w.try(append([]string{"--namespace=" + w.space.Namespace()}, append(args, pod)...)...)
		}
	}
	return []death{
		{kind: "zero", command: "sleep 5; exit 0", check: process, want: `: Exited with status 0`},
		{kind: "one", command: "sleep 5; exit 1", check: process, want: `: Exited with status 1`},
		{kind: "calm", command: forever, sidecar: "sleep 5; exit 0", check: process, want: `/SIDECAR/CALM-SIDE: Exited with status 0`},
		{kind: "segv", command: forever, sidecar: "sleep 5; kill -SEGV $$", check: process, want: `/SIDECAR/SEGV-SIDE: Exited with status 139`},
		{kind: "hungry", command: "sleep 5; exec tail /dev/zero", check: process, memory: 64, want: `: Exited with status 137 \(out of memory\)`},
		{kind: "greedy", command: forever, sidecar: "sleep 5; exec tail /dev/zero", check: process, memory: 64, want: `/SIDECAR/GREEDY-SIDE: Exited with status 137 \(out of memory\)`},
		{kind: "web", command: "./app $PORT & sleep 8; kill $!; " + forever, check: platform.HealthCheck{Type: platform.CheckHTTP, Endpoint: "/", Interval: 3},
			want: `: Failed its health check: Get "http://[0-9.]+:8080/": dial tcp [0-9.]+:8080: connect: connection refused`},
		{kind: "closed", command: forever, check: platform.HealthCheck{Type: platform.CheckPort, Timeout: 5}, want: `: Not well within 5 s: dial tcp [0-9.]+:8080: connect: connection refused`},
		{kind: "missing", command: "exec ./nothing-of-this-name", check: process, want: `: Exited with status 127`},
		{kind: "deleted", command: forever, check: process, by: hand("delete", "pod", "--wait=false"), want: `: The instance was deleted from its node`},
		{kind: "forced", command: forever, check: process, by: hand("delete", "pod", "--wait=false", "--force", "--grace-period=0"), want: `: The instance was deleted from its node`},
		{kind: "killed", command: forever, check: process, by: killFirst, want: `: Exited with status 137`},
		{kind: "away-kin", command: forever, sidecar: forever, check: process, away: true, by: killSide, want: `/SIDECAR/AWAY-KIN-SIDE: Exited with status 137`},
		{kind: "away-killed", command: forever, check: process, away: true, by: killFirst, want: `: Exited with status 137`},
		{kind: "away-deleted", command: forever, check: process, away: true, by: hand("delete", "pod", "--wait=false"), want: `: The instance was deleted from its node`},
		{kind: "away-forced", command: forever, check: process, away: true, by: hand("delete", "pod", "--wait=false", "--force", "--grace-period=0"), want: `: The instance was deleted from its node`},
	}
}

// killFirst ends pid 1 of a container from its node, where it leaves no record.
func killFirst(w *world, pod string) {
	id := w.try("--namespace="+w.space.Namespace(), "get", "pod", pod, "-o", "jsonpath={.status.containerStatuses[0].containerID}")
	_, id, _ = strings.Cut(id, "://")
	out, err := exec.CommandContext(w.Context(), "sh", "-c", `for p in /proc/[0-9]*; do
		if grep -q `+id+` $p/cgroup 2>/dev/null && tr '\0' ' ' <$p/cmdline | grep -q '^/proa/launcher run'; then kill -KILL ${p#/proc/}; exit 0; fi
	done; exit 1`).CombinedOutput()
	if err != nil || id == "" {
		w.Errorf("pid 1 of %q was not found: %v %s", id, err, out)
	}
}

// killSide ends a sidecar. With it all of the container ends, and what we run there may be among it; only who finds nothing says 1.
func killSide(w *world, pod string) {
	if out := w.try("--namespace="+w.space.Namespace(), "exec", pod, "--", "pkill", "-KILL", "-f", "side.sh"); strings.HasPrefix(out, "exit status 1 ") {
		w.Errorf("the sidecar was not killed: %s", out)
	}
}

// TestDeaths lets instances die in all ways, beside each other. Each leaves one record, and is there again.
func TestDeaths(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start()
	rows := deaths()
	files := w.smoke()
	files["Procfile"] = ""
	for _, d := range rows {
		files["Procfile"] += d.kind + ": exec bash ./" + d.kind + ".sh\n"
		files[d.kind+".sh"] = "echo main of " + d.kind + " begins\n" + d.command + "\n"
		files[d.kind+"-side.sh"] = "echo side of " + d.kind + " begins\n" + d.sidecar + "\n"
	}
	a, pkg := w.app("mortal", files)
	b := w.build(pkg)
	if b.State != platform.BuildStaged {
		t.Fatalf("the build is %+v\n%s", b, w.log(a.GUID))
	}
	get[platform.App](w)(w.store.AssignDroplet(t.Context(), admin, a.GUID, b.DropletGUID))
	for _, d := range rows {
		process := get[platform.Process](w)(w.store.ProcessOf(t.Context(), admin, a.GUID, d.kind))
		get[platform.Process](w)(w.store.UpdateProcess(t.Context(), admin, process.GUID, func(p *platform.Process) error {
			p.HealthCheck, p.Instances, p.MemoryMB, p.DiskMB = d.check, 1, cmp.Or(d.memory, 32), 64
			return nil
		}))
		if d.sidecar != "" {
			get[platform.Sidecar](w)(w.store.CreateSidecar(t.Context(), admin, platform.Sidecar{AppGUID: a.GUID, Name: d.kind + "-side", Command: "exec bash ./" + d.kind + "-side.sh",
				ProcessTypes: []string{d.kind}, Origin: platform.SidecarOfUser, MemoryMB: new(16)}))
		}
	}
	began := time.Now()
	get[platform.App](w)(w.store.StartApp(t.Context(), admin, a.GUID, store.Settings{}))
	gone := w.imageGone()
	alone := slices.DeleteFunc(slices.Clone(rows), func(d death) bool { return d.by == nil || d.away })
	for _, d := range alone {
		d.by(w, w.running(a, d.kind))
	}
	for _, d := range rows {
		if !d.away {
			w.record(a, d)
		}
	}
	t.Logf("%d deaths were recorded %.0f s after the start", len(rows), time.Since(began).Seconds())

	// The same with nobody there who could see it.
	unseen := slices.DeleteFunc(slices.Clone(rows), func(d death) bool { return !d.away })
	pods := map[string]string{}
	for _, d := range unseen {
		pods[w.running(a, d.kind)] = d.kind
	}
	p.kill()
	run := func(pod string) string {
		return w.try("--namespace="+w.space.Namespace(), "get", "pod", pod, "-o", "jsonpath={.metadata.uid} {.status.containerStatuses[0].containerID}")
	}
	for pod, kind := range pods {
		before := run(pod)
		unseen[slices.IndexFunc(unseen, func(d death) bool { return d.kind == kind })].by(w, pod)
		w.until(time.Minute, "the end of "+kind, func() error {
			if now := run(pod); now == before {
				return fmt.Errorf("it is still %s", now)
			}
			return nil
		})
	}
	w.start()
	for _, d := range unseen {
		w.record(a, d)
	}
	w.record(gone, death{kind: platform.WebProcess, want: `: Its container could not be started: (ErrImagePull|ImagePullBackOff): .*`})
	t.Logf("all deaths were recorded %.0f s after the start", time.Since(began).Seconds())

	// Each death is told once, and those that do not die by themselves are alive since.
	dead := map[string]bool{}
	for _, r := range w.records(a.GUID) {
		id := fmt.Sprint(r.Instance, r.Time) // while nobody was there, a pod can have died twice
		if dead[id] {
			t.Errorf("%+v is told twice", r)
		}
		dead[id] = true
	}
	for _, d := range rows {
		if n := len(w.recordsOf(a.GUID, d.kind)); d.by != nil && n != 1 {
			t.Errorf("%s has %d records", d.kind, n)
		}
	}
}

// imageGone starts an app whose image is in the registry no more, and on no node.
func (w *world) imageGone() platform.App {
	w.Helper()
	a := get[platform.App](w)(w.store.CreateApp(w.Context(), admin, platform.App{SpaceGUID: w.space.GUID, Name: "gone", Metadata: noted, Lifecycle: platform.Lifecycle{Type: platform.LifecycleDocker}}))
	pkg := get[platform.Package](w)(w.store.CreatePackage(w.Context(), admin, platform.Package{AppGUID: a.GUID, Type: platform.PackageDocker,
		Docker: platform.DockerSource{Image: w.foreign("team/app"), Username: w.packer.Registry.Username, Password: w.packer.Registry.Password}}))
	d := get[platform.Droplet](w)(w.store.Droplet(w.Context(), admin, w.build(pkg).DropletGUID))
	must(w, remote.Delete(w.reference(d.Image), w.remote()...))
	get[platform.App](w)(w.store.AssignDroplet(w.Context(), admin, a.GUID, d.GUID))
	return get[platform.App](w)(w.store.StartApp(w.Context(), admin, a.GUID, store.Settings{}))
}

// running waits for the pod of a process that runs.
func (w *world) running(a platform.App, kind string) string {
	w.Helper()
	process := get[platform.Process](w)(w.store.ProcessOf(w.Context(), admin, a.GUID, kind)).GUID
	pod := ""
	w.until(time.Minute, kind+" runs", func() error {
		all, err := w.store.Instances(w.Context(), []string{process})
		must(w, err)
		if i := all[process][0]; i.State == platform.InstanceRunning && i.PodUID != "" {
			pod = i.Pod
			return nil
		}
		return fmt.Errorf("it is %+v", all[process])
	})
	return pod
}

// An exitRecord is what a line of the stream tells.
type exitRecord struct {
	Instance    string `json:"instance"`
	Index       int    `json:"index"`
	Cell        string `json:"cellid"`
	Reason      string `json:"reason"`
	Description string `json:"exitdescription"`
	Count       int    `json:"crashcount"`
	Time        int64  `json:"crashtimestamp"`
	Version     string `json:"version"`
	At          time.Time
}

func (w *world) records(app string) []exitRecord {
	w.Helper()
	lines, err := w.store.Log(w.Context(), admin, app, store.LogWindow{To: 1 << 62, Limit: 10000})
	must(w, err)
	var all []exitRecord
	for _, l := range lines {
		payload, is := strings.CutPrefix(l.Text, "App instance exited with guid "+app+" payload: ")
		if !is || l.Source != platform.SourceAPI {
			continue
		}
		r := exitRecord{At: l.At}
		if err := json.Unmarshal([]byte(payload), &r); err != nil || l.Instance != fmt.Sprint(r.Index) || l.Stderr {
			w.Errorf("%v: %+v", err, l)
		}
		all = append(all, r)
	}
	return all
}

// recordsOf are those of one process.
func (w *world) recordsOf(app, kind string) []exitRecord {
	w.Helper()
	path := "APP/PROC/" + strings.ToUpper(kind)
	return slices.DeleteFunc(w.records(app), func(r exitRecord) bool {
		return !strings.HasPrefix(r.Description, path+":") && !strings.HasPrefix(r.Description, path+"/")
	})
}

// record waits for the first record of a process. It is the first of that instance, and its events are there too.
func (w *world) record(a platform.App, d death) {
	w.Helper()
	w.until(2*time.Minute, "the record of "+d.kind, func() error {
		if len(w.recordsOf(a.GUID, d.kind)) == 0 {
			return fmt.Errorf("there is none")
		}
		return nil
	})
	first := w.recordsOf(a.GUID, d.kind)[0]
	if !regexp.MustCompile("^APP/PROC/" + strings.ToUpper(d.kind) + d.want + "$").MatchString(first.Description) {
		w.Errorf("%s is recorded as %q", d.kind, first.Description)
	}
	if first.Instance == "" || first.Index != 0 || first.Cell == "" || first.Reason != "CRASHED" || first.Count != 1 || first.Version == "" || time.Since(time.Unix(0, first.Time)).Abs() > 5*time.Minute {
		w.Errorf("the record of %s is %+v", d.kind, first)
	}
	w.Logf("%-12s %s: %.1f s until it was recorded", d.kind, first.Description, first.At.Sub(time.Unix(0, first.Time)).Seconds())
	events := get[platform.Page[platform.Event]](w)(w.store.Events(w.Context(), admin, platform.List{PerPage: 1000, Values: map[string][]string{"target_guids": {a.GUID}}}))
	for _, kind := range []string{"app.crash", "audit.app.process.crash"} {
		n := 0
		for _, e := range events.Records {
			if e.Type == kind && e.Data["instance"] == first.Instance && e.Data["exit_description"] == first.Description {
				n++
			}
		}
		if n != 1 {
			w.Errorf("%s has %d events %s", d.kind, n, kind)
		}
	}
}

// TestRestartsOfOneThatDies measures when an instance that dies at once is started: three times at once, then after 30 s and 60 s.
func TestRestartsOfOneThatDies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	files := w.smoke()
	files["Procfile"] = "sick: echo begins at $(date +%s.%N); echo says goodbye >&2; exit 3\n"
	a, pkg := w.app("sick", files)
	b := w.build(pkg)
	get[platform.App](w)(w.store.AssignDroplet(t.Context(), admin, a.GUID, b.DropletGUID))
	get[platform.Process](w)(w.store.ScaleProcess(t.Context(), admin, w.web(a).GUID, platform.ProcessScale{Instances: new(0)}))
	process := get[platform.Process](w)(w.store.ProcessOf(t.Context(), admin, a.GUID, "sick"))
	get[platform.Process](w)(w.store.ScaleProcess(t.Context(), admin, process.GUID, platform.ProcessScale{Instances: new(1), MemoryMB: new(32), DiskMB: new(64)}))
	get[platform.App](w)(w.store.StartApp(t.Context(), admin, a.GUID, store.Settings{}))
	w.until(3*time.Minute, "six crashes", func() error {
		if n := len(w.records(a.GUID)); n < 6 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	records := w.records(a.GUID)
	for n, r := range records {
		if r.Count != n+1 {
			t.Errorf("crash %d has the number %d", n+1, r.Count)
		}
	}
	var starts []time.Time
	for _, line := range regexp.MustCompile(`(?m)^\[APP/PROC/SICK/0\] begins at ([0-9]+)\.([0-9]+)$`).FindAllStringSubmatch(w.log(a.GUID), -1) {
		var seconds, nanos int64
		_, err := fmt.Sscan(line[1]+" "+strings.TrimLeft(line[2], "0")+" ", &seconds, &nanos)
		must(t, err)
		starts = append(starts, time.Unix(seconds, nanos))
	}
	if len(starts) != 6 || strings.Count(w.log(a.GUID), "[APP/PROC/SICK/0] says goodbye") != 6 {
		t.Fatalf("of 6 runs, %d are in the log:\n%s", len(starts), w.log(a.GUID))
	}
	// A pod may come to another node, which has to pull the image first. That takes less than the shortest wait, so the waits are told apart.
	const slowStart = 25 * time.Second
	for n, wait := range []time.Duration{0, 0, 0, 30 * time.Second, 60 * time.Second} {
		took := starts[n+1].Sub(starts[n])
		t.Logf("restart %d began %.1f s after the start before", n+1, took.Seconds())
		if took < wait || took > wait+slowStart {
			t.Errorf("restart %d should have begun after %s", n+1, wait)
		}
	}
	w.instancesOf(process.GUID, func(i platform.Instance) error {
		if wait := time.Until(i.NextTry); i.State != platform.InstanceCrashed || i.Crashes != 6 || i.LastExit == nil || i.LastExit.Description != "APP/PROC/SICK: Exited with status 3" || wait < 90*time.Second || wait > 2*time.Minute {
			return fmt.Errorf("it is %+v", i)
		}
		return nil
	})

	// The next release begins anew, and the one that waits goes.
	get[platform.App](w)(w.store.RestartApp(t.Context(), admin, a.GUID, store.Settings{}))
	w.until(time.Minute, "the seventh crash", func() error {
		if all := w.records(a.GUID); len(all) < 7 || all[6].Count != 1 || all[6].Version == records[0].Version {
			return fmt.Errorf("they are %+v", all)
		}
		return nil
	})

	// What waits does not hold up its space.
	w.until(time.Minute, "it waits again", func() error {
		if all := w.records(a.GUID); len(all) < 11 {
			return fmt.Errorf("there are %d records", len(all))
		}
		return nil
	})
	get[platform.Job](w)(w.store.DeleteSpace(t.Context(), admin, w.space.GUID))
	took := w.until(time.Minute, "the namespace is gone", func() error {
		if left := w.try("get", "namespaces", "-o", "name", "-l", "proa.dev/installation="+w.installation); left != "" {
			return fmt.Errorf("still there: %v", left)
		}
		return nil
	})
	t.Logf("the namespace was gone after %.1f s", took.Seconds())
}

// instancesOf waits until the first instance of a process is as it should be.
func (w *world) instancesOf(process string, ask func(platform.Instance) error) {
	w.Helper()
	w.until(time.Minute, "the instance", func() error {
		all, err := w.store.Instances(w.Context(), []string{process})
		must(w, err)
		return ask(all[process][0])
	})
}

// TestNodeLost turns the second node off. What ran there runs elsewhere soon, and the record says why it went.
func TestNodeLost(t *testing.T) {
	w := newWorld(t)
	if !strings.Contains(w.try("get", "nodes", "-o", "name"), "node/node-2") {
		t.Skip("This needs a second node: make cluster-up NODES=2.")
	}
	w.start()
	a, pkg := w.app("far", w.smoke())
	b := w.build(pkg)
	get[platform.Process](w)(w.store.ScaleProcess(t.Context(), admin, w.web(a).GUID, platform.ProcessScale{Instances: new(4), MemoryMB: new(32), DiskMB: new(64)}))
	get[platform.App](w)(w.store.AssignDroplet(t.Context(), admin, a.GUID, b.DropletGUID))
	get[platform.App](w)(w.store.StartApp(t.Context(), admin, a.GUID, store.Settings{}))
	w.instances(a, "RUNNING RUNNING RUNNING RUNNING")
	process := w.web(a).GUID
	all, err := w.store.Instances(t.Context(), []string{process})
	must(t, err)
	far := slices.DeleteFunc(slices.Clone(all[process]), func(i platform.Instance) bool { return i.Node != "node-2" })
	if len(far) == 0 {
		t.Fatalf("none runs on the second node: %+v", all[process])
	}
	node := func(what string) {
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "make", "node-"+what, "NODE=2")
		cmd.Dir = "../.."
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("node %s: %v %s", what, err, out)
		}
	}
	defer node("start")
	node("stop")
	began := time.Now()
	w.until(3*time.Minute, "the records", func() error {
		if n := len(w.records(a.GUID)); n < len(far) {
			return fmt.Errorf("%d instances were there, and %d records are", len(far), n)
		}
		return nil
	})
	t.Logf("recorded %.0f s after the node went", time.Since(began).Seconds())
	w.instances(a, "RUNNING RUNNING RUNNING RUNNING")
	t.Logf("all run again %.0f s after the node went", time.Since(began).Seconds())
	records := w.records(a.GUID)
	if len(records) != len(far) {
		t.Errorf("there are %d records of %d instances", len(records), len(far))
	}
	for _, r := range records {
		if r.Description != "APP/PROC/WEB: Its node node-2 was lost" || r.Cell != "node-2" || !slices.ContainsFunc(far, func(i platform.Instance) bool { return i.PodUID == r.Instance && i.Index == r.Index }) {
			t.Errorf("the record is %+v", r)
		}
	}
}

// TestKilledWhileTheyDie kills the controller again and again while instances die. No death is told twice, and none is told that was ours.
func TestKilledWhileTheyDie(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start()
	files := w.smoke()
	files["Procfile"] = ""
	for n := range 6 {
		files["Procfile"] += fmt.Sprintf("p%d: echo begins; sleep %d; exit %d\n", n, 1+n%3, n)
	}
	a, pkg := w.app("restless", files)
	b := w.build(pkg)
	get[platform.App](w)(w.store.AssignDroplet(t.Context(), admin, a.GUID, b.DropletGUID))
	get[platform.Process](w)(w.store.ScaleProcess(t.Context(), admin, w.web(a).GUID, platform.ProcessScale{Instances: new(0)}))
	for n := range 6 {
		process := get[platform.Process](w)(w.store.ProcessOf(t.Context(), admin, a.GUID, fmt.Sprint("p", n)))
		get[platform.Process](w)(w.store.ScaleProcess(t.Context(), admin, process.GUID, platform.ProcessScale{Instances: new(1), MemoryMB: new(32), DiskMB: new(64)}))
	}
	get[platform.App](w)(w.store.StartApp(t.Context(), admin, a.GUID, store.Settings{}))
	kills := 0
	for began := time.Now(); time.Since(began) < 40*time.Second; kills++ {
		time.Sleep(time.Second + rand.N(2*time.Second))
		p.kill()
		p = w.start()
	}
	w.until(time.Minute, "four crashes of each", func() error {
		for n := range 6 {
			if all := w.recordsOf(a.GUID, fmt.Sprint("p", n)); len(all) < 4 {
				return fmt.Errorf("p%d has %d", n, len(all))
			}
		}
		return nil
	})
	t.Logf("the controller was killed %d times, and there are %d records", kills, len(w.records(a.GUID)))
	for n := range 6 {
		last := exitRecord{}
		for _, r := range w.recordsOf(a.GUID, fmt.Sprint("p", n)) {
			if r.Description != fmt.Sprintf("APP/PROC/P%d: Exited with status %d", n, n) || r.Count != last.Count+1 || r.Time <= last.Time {
				t.Errorf("after %+v comes %+v", last, r)
			}
			last = r
		}
	}
}

// TestNoDeaths does what users do to instances that are well. Nothing of it is a crash.
func TestNoDeaths(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	a, pkg := w.app("lively", w.smoke())
	b := w.build(pkg)
	scale := func(n int) {
		get[platform.Process](w)(w.store.ScaleProcess(t.Context(), admin, w.web(a).GUID, platform.ProcessScale{Instances: &n, MemoryMB: new(32), DiskMB: new(64)}))
	}
	scale(2)
	get[platform.App](w)(w.store.AssignDroplet(t.Context(), admin, a.GUID, b.DropletGUID))
	get[platform.App](w)(w.store.StartApp(t.Context(), admin, a.GUID, store.Settings{}))
	w.instances(a, "RUNNING RUNNING")
	for _, n := range []int{1, 0} { // and back before they have gone
		scale(n)
		w.until(20*time.Second, "they go", func() error {
			if leaving := w.try("--namespace="+w.space.Namespace(), "get", "pods", "-o", "jsonpath={.items[*].metadata.deletionTimestamp}"); len(strings.Fields(leaving)) < 1 {
				return fmt.Errorf("they stay")
			}
			return nil
		})
		scale(2)
		w.instances(a, "RUNNING RUNNING")
	}
	get[platform.App](w)(w.store.RestartApp(t.Context(), admin, a.GUID, store.Settings{}))
	get[platform.App](w)(w.store.StopApp(t.Context(), admin, a.GUID))
	get[platform.App](w)(w.store.StartApp(t.Context(), admin, a.GUID, store.Settings{}))
	w.instances(a, "RUNNING RUNNING")
	get[platform.App](w)(w.store.RestartApp(t.Context(), admin, a.GUID, store.Settings{}))
	w.until(time.Minute, "one set", func() error {
		if sets := w.there("statefulsets", "app"); len(sets) != 1 {
			return fmt.Errorf("they are %v", sets)
		}
		return nil
	})
	w.instances(a, "RUNNING RUNNING")
	get[platform.App](w)(w.store.StopApp(t.Context(), admin, a.GUID))
	w.until(time.Minute, "nothing left", func() error {
		if left := w.there("pods", "app"); len(left) > 0 {
			return fmt.Errorf("still there: %v", left)
		}
		return nil
	})
	if records := w.records(a.GUID); len(records) > 0 {
		t.Errorf("they are recorded as crashes: %+v", records)
	}
}
