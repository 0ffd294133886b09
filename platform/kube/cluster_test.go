package kube

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/launch"
)

const procfile = `web: echo "main is in $(readlink /proc/self/ns/pid /proc/self/ns/net /proc/self/ns/mnt | xargs)"; exec ./app $PORT` + "\n"

func TestStagingWhereNothingFits(t *testing.T) {
	w := here(t)
	_, staged, log := w.stage("nothing", map[string][]byte{"README": []byte("Nothing to run.\n")}, func(*platform.Staging) {})
	if staged.State != platform.StagingFailed || staged.Phase != platform.PhaseDetect || !strings.Contains(fmt.Sprint(staged.Failure), "NoAppDetectedError - None of the builder's buildpacks fits this app.") {
		t.Errorf("staging ended with %+v: %v\n%s", staged, staged.Failure, log)
	}
}

func TestStagingTakesTooLong(t *testing.T) {
	w := here(t)
	_, staged, log := w.stage("late", map[string][]byte{"go.mod": []byte("module late\n"), "main.go": []byte("package main\n\nfunc main() {}\n")}, func(b *platform.Staging) { b.Timeout = 2 * time.Second })
	if staged.State != platform.StagingFailed || !strings.Contains(fmt.Sprint(staged.Failure), "StagingTimeExpired") {
		t.Errorf("staging ended with %+v: %v\n%s", staged, staged.Failure, log)
	}
}

func TestStagingIsDeletedMeanwhile(t *testing.T) {
	w := here(t)
	b := w.staging("brief", map[string][]byte{"Procfile": []byte(procfile)})
	if err := w.Stage(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	deleted := false
	staged, err := w.Follow(t.Context(), b, func(string, string) {
		if !deleted {
			deleted = true
			if err := w.DeleteStaging(t.Context(), b.Namespace, b.BuildGUID); err != nil {
				t.Error(err)
			}
		}
	})
	// It may be seen to fail before it is gone.
	if !deleted || (staged.State != platform.StagingLost && staged.State != platform.StagingFailed) {
		t.Errorf("staging ended with %+v, %v", staged, err)
	}
}

// TestBuildpackFindsNoCredentials stages with a buildpack that prints all it can read and lays traps for the phase that
// has them. It stands in the builder, and is asked for by name.
func TestBuildpackFindsNoCredentials(t *testing.T) {
	w := here(t)
	const home = "../../engines/smoke/testdata/snoop/buildpacks/proa_snoop/0.0.1/"
	snoop := map[string][]byte{}
	for _, file := range []string{"buildpack.toml", "bin/detect", "bin/build", "bin/look"} {
		content, err := os.ReadFile(home + file)
		if err != nil {
			t.Fatal(err)
		}
		snoop["cnb/buildpacks/proa_snoop/0.0.1/"+file] = content
	}
	image, staged, log := w.stage("snoop", map[string][]byte{"file": []byte("of the app")}, func(b *platform.Staging) {
		b.Builder, b.Buildpacks = w.pushOn("proa/builder", "builder", snoop), []string{"proa/snoop@0.0.1"}
	})
	if staged.State != platform.StagingSucceeded {
		t.Fatalf("staging ended with %+v: %v\n%s", staged, staged.Failure, log)
	}
	for _, seen := range []string{"CNB_PLATFORM_API=", "staging sings", "MOUNT /workspace", "MOUNT /layers", "[run-image]"} {
		if !strings.Contains(log, seen) {
			t.Errorf("the look around misses %q, so it proves nothing:\n%s", seen, log)
		}
	}
	account := w.Settings.Registry.Push
	for _, secret := range []string{account.Password, account.basic(), "kubernetes.io/serviceaccount"} {
		if strings.Contains(log, secret) {
			t.Error("buildpacks see credentials")
		}
		for _, content := range w.added(image) {
			if bytes.Contains(content, []byte(secret)) {
				t.Error("the droplet holds credentials")
			}
		}
	}
}

// TestUnhealthy runs an app that never listens: its instance starts until its time is up, and then it is a crash.
func TestUnhealthy(t *testing.T) {
	w := here(t)
	image, _, _ := w.stage("deaf", map[string][]byte{"Procfile": []byte("web: exec sleep 1000\n")}, func(*platform.Staging) {})
	watch, err := w.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = w.Apply(t.Context(), platform.Wanted{Instances: 1, Release: platform.Release{
		GUID: platform.GUIDOf(w.namespace), AppGUID: "a", AppName: "deaf", SpaceGUID: w.space, Namespace: w.namespace, ProcessGUID: "p", ProcessType: "web",
		Image: image, Ports: []int{8080}, MemoryMB: 64, DiskMB: 64, Health: platform.Probe{Type: platform.ProbePort, Timeout: 3 * time.Second},
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.states(watch, "STARTING")
	w.until(60*time.Second, "the end of its time", func() error {
		i := watch.Seen()[0].Instances[0]
		if i.State == platform.InstanceRunning || i.Ready {
			t.Fatalf("it is %+v", i)
		}
		if i.LastExit == nil {
			return fmt.Errorf("it is %+v", i)
		}
		if !i.LastExit.Stopped {
			t.Fatalf("the exit is %+v", i.LastExit)
		}
		return nil
	})
}

// TestStageAndRun takes an app with two sidecars through its life.
func TestStageAndRun(t *testing.T) {
	w := here(t)
	image, staged, log := w.stage("shop", map[string][]byte{"Procfile": []byte(procfile), "app": w.build("engines/smoke/app")}, func(b *platform.Staging) {
		b.Buildpacks = []string{"proa/procfile@" + version(t, "../../buildpacks/procfile/buildpack.toml")}
	})
	if staged.State != platform.StagingSucceeded {
		t.Fatalf("staging ended with %+v: %v\n%s", staged, staged.Failure, log)
	}
	described, err := remote.Head(w.reference(w.namespace+"/shop"), w.remote...)
	if err != nil || described.Digest.String() != staged.Digest {
		t.Fatalf("staging says %s, the registry %+v, %v", staged.Digest, described, err)
	}
	if order := phasesIn(log); !slices.IsSortedFunc(order, func(a, b string) int { return slices.Index(phases, a) - slices.Index(phases, b) }) || !slices.Contains(order, platform.PhaseBuild) {
		t.Errorf("the phases of the log are %v\n%s", order, log)
	}

	watch, err := w.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := platform.Release{
		GUID: platform.GUIDOf(w.namespace, "release"), AppGUID: "app-guid", AppName: "shop", SpaceGUID: w.space, Namespace: w.namespace,
		ProcessGUID: "process-guid", ProcessType: "web", Version: 1, Image: image,
		Sidecars: []platform.ReleaseSidecar{
			{Name: "config server", Command: look("config"), MemoryMB: 32},
			{Name: "agent", Command: `until curl -sS localhost:$PORT; do sleep 0.1; done; echo; ` + look("agent")},
		},
		Env: map[string]string{"CANARY": "release sings", "odd.name": "odd"}, Ports: []int{8080}, MemoryMB: 128, DiskMB: 256,
		Files:  map[string]string{"my-db/password": "file sings", "my-db/type": "postgres"},
		Health: platform.Probe{Type: platform.ProbeHTTP, Endpoint: "/"},
	}
	since := time.Now()
	if err := w.Apply(t.Context(), platform.Wanted{Release: r, Instances: 1}); err != nil {
		t.Fatal(err)
	}
	w.states(watch, "RUNNING")
	t.Logf("one instance was running after %.1f s", time.Since(since).Seconds())
	if err := w.Apply(t.Context(), platform.Wanted{Release: r, Instances: 1}); err != nil {
		t.Fatal("again:", err)
	}
	pod := SetName(r.GUID) + "-0"
	t.Run("one container", func(t *testing.T) { w.oneContainer(t, pod) })
	t.Run("environment", func(t *testing.T) { w.environment(t, pod) })
	t.Run("files", func(t *testing.T) { w.files(t, pod) })
	t.Run("network", func(t *testing.T) { w.network(t, watch, pod) })
	t.Run("crash", func(t *testing.T) { w.crash(t, watch, pod) })
	t.Run("scale", func(t *testing.T) {
		if err := w.Scale(t.Context(), w.namespace, SetName(r.GUID), 2); err != nil {
			t.Fatal(err)
		}
		w.states(watch, "RUNNING RUNNING")
		if out, err := w.try("exec", pod, "--", "curl", "-sS", "-m", "2", "http://"+watch.Seen()[0].Instances[1].Address+":8080"); err == nil {
			t.Errorf("an instance reaches another past the gateway: %s", out)
		}
		first := watch.Seen()[0].Instances[1]
		if err := w.Bury(t.Context(), w.namespace, first); err != nil {
			t.Fatal(err)
		}
		w.until(60*time.Second, "another instance in its place", func() error {
			if i := watch.Seen()[0].Instances[1]; i.State != platform.InstanceRunning || i.PodUID == first.PodUID {
				return fmt.Errorf("it is %+v", i)
			}
			return nil
		})
		if err := w.Bury(t.Context(), w.namespace, first); err != nil {
			t.Error("what is another instance by now:", err)
		}
	})
	t.Run("sweep", func(t *testing.T) {
		left := platform.Wanted{Release: r}
		left.Release.GUID = platform.GUIDOf(w.namespace, "left")
		objects, err := w.Settings.ReleaseObjects(left)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.apply(t.Context(), objects[:2]); err != nil {
			t.Fatal(err)
		}
		if err := w.Sweep(t.Context(), map[string]bool{r.GUID: true}); err != nil {
			t.Fatal(err)
		}
		if got := w.kubectl("get", "secrets", "-o", "name", "-l", LabelRelease); got != "secret/"+SetName(r.GUID)+"\nsecret/"+filesName(r.GUID)+"\n" {
			t.Errorf("the environments and files are %q", got)
		}
	})
	t.Run("delete", func(t *testing.T) {
		for range 2 {
			if err := w.Delete(t.Context(), w.namespace, SetName(r.GUID)); err != nil {
				t.Fatal(err)
			}
		}
		w.until(60*time.Second, "the end", func() error {
			if left := w.kubectl("get", "pods,secrets,statefulsets,controllerrevisions", "-o", "name", "-l", LabelRelease); left != "" || len(watch.Seen()) > 0 {
				return fmt.Errorf("still there: %s %+v", left, watch.Seen())
			}
			return nil
		})
	})
}

// TestStartTime measures a release beside a StatefulSet of the same image and probes without what we add to it.
func TestStartTime(t *testing.T) {
	w := here(t)
	image, staged, log := w.stage("quick", map[string][]byte{"Procfile": []byte("web: exec ./app $PORT\n"), "app": w.build("engines/smoke/app")}, func(*platform.Staging) {})
	if staged.State != platform.StagingSucceeded {
		t.Fatalf("staging ended with %+v\n%s", staged, log)
	}
	watch, err := w.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	took := map[string][]time.Duration{}
	for round := range 8 {
		kind := []string{"release", "bare StatefulSet"}[round%2]
		r := platform.Release{
			GUID: platform.GUIDOf(w.namespace, fmt.Sprint(round)), AppGUID: "a", AppName: "quick", SpaceGUID: w.space, Namespace: w.namespace, ProcessGUID: "p", ProcessType: "web",
			Image: image, Ports: []int{8080}, MemoryMB: 128, DiskMB: 128, Health: platform.Probe{Type: platform.ProbePort},
		}
		objects, err := w.Settings.ReleaseObjects(platform.Wanted{Release: r, Instances: 1})
		if err != nil {
			t.Fatal(err)
		}
		if round%2 == 1 {
			objects = objects[1:]
			c := &objects[0].(*appsv1.StatefulSet).Spec.Template.Spec.Containers[0]
			c.Command, c.EnvFrom, c.Env = []string{"/workspace/app", "8080"}, nil, nil
		}
		since := time.Now()
		if err := w.apply(t.Context(), objects); err != nil {
			t.Fatal(err)
		}
		w.states(watch, "RUNNING")
		if round > 1 { // the first of each pulls
			took[kind] = append(took[kind], time.Since(since).Round(10*time.Millisecond))
		}
		if err := w.Delete(t.Context(), w.namespace, SetName(r.GUID)); err != nil {
			t.Fatal(err)
		}
		w.states(watch, "")
	}
	t.Logf("one instance runs after %v", took)
}

// look prints in which namespaces a sidecar is, and leaves a file for the others.
func look(name string) string {
	return `echo "` + name + ` is in $(readlink /proc/self/ns/pid /proc/self/ns/net /proc/self/ns/mnt | xargs)"; echo $$ > /tmp/` + name + `; exec sleep 1000`
}

func version(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(?m)^version = "(.*)"`).FindStringSubmatch(string(text))[1]
}

func phasesIn(log string) []string {
	var order []string
	for lines := bufio.NewScanner(strings.NewReader(log)); lines.Scan(); {
		phase, _, _ := strings.Cut(lines.Text(), ":")
		order = append(order, phase)
	}
	return slices.Compact(order)
}

// states waits until the instances of the only release are in these states.
func (w *world) states(watch *Watch, want string) {
	w.Helper()
	w.until(90*time.Second, want, func() error {
		var got []string
		for _, s := range watch.Seen() {
			for _, i := range s.Instances {
				got = append(got, string(i.State))
			}
		}
		if strings.Join(got, " ") != want {
			return fmt.Errorf("instances are %v", got)
		}
		return nil
	})
}

func (w *world) oneContainer(t *testing.T, pod string) {
	if got := w.kubectl("get", "pod", pod, "-o", "jsonpath={.spec.containers[*].name} {.spec.initContainers[*].name}"); strings.TrimSpace(got) != appContainer {
		t.Errorf("the containers are %q", got)
	}
	var log string
	w.until(20*time.Second, "the sidecars' words", func() error {
		if log = w.kubectl("logs", pod); strings.Count(log, " is in ") < 3 {
			return fmt.Errorf("the log is %q", log)
		}
		return nil
	})
	places := map[string]bool{}
	for _, m := range regexp.MustCompile(`(main|config|agent) is in (.*)`).FindAllStringSubmatch(log, -1) {
		places[m[2]] = true
	}
	if len(places) != 1 || strings.Contains(log, "is in \n") {
		t.Errorf("main and sidecars are in different namespaces: %v\n%s", places, log)
	}
	if !strings.Contains(log, pod+" on 8080") {
		t.Errorf("the agent did not reach the app over localhost:\n%s", log)
	}
	w.kubectl("exec", pod, "--", "cat", "/tmp/config", "/tmp/agent")
}

func (w *world) environment(t *testing.T, pod string) {
	if spec := w.kubectl("get", "pod,statefulset", "-o", "yaml"); strings.Contains(spec, "release sings") || strings.Contains(spec, "sleep 1000") {
		t.Error("the environment or a command stands in the open")
	}
	for pid, want := range map[string][]string{
		"1":                         {"CANARY=release sings"},
		w.pid(pod, ""):              {"CANARY=release sings", "odd.name=odd", "PORT=8080", "MEMORY_LIMIT=96m", "CF_INSTANCE_INDEX=0", "CF_PROCESS_TYPE=web"},
		w.pid(pod, "agent"):         {"CANARY=release sings", "odd.name=odd", "MEMORY_LIMIT=96m"},
		w.pid(pod, "config server"): {"CANARY=release sings", "MEMORY_LIMIT=32m"},
	} {
		got := strings.Split(w.kubectl("exec", pod, "--", "cat", "/proc/"+pid+"/environ"), "\x00")
		for _, pair := range want {
			if !slices.Contains(got, pair) {
				t.Errorf("process %s has no %s: %q", pid, pair, got)
			}
		}
		if pid != "1" && strings.Contains(strings.Join(got, " "), launch.EnvConfig) {
			t.Errorf("process %s inherited launch's configuration", pid)
		}
	}
	uid := w.kubectl("get", "pod", pod, "-o", "jsonpath={.metadata.uid} {.status.podIP}:8080")
	if got := w.kubectl("exec", pod, "--", "sh", "-c", "echo -n $CF_INSTANCE_GUID $CF_INSTANCE_ADDR"); got != uid {
		t.Errorf("the instance is told %q, want %q", got, uid)
	}
}

// files are read by the app's user, and by nobody changed.
func (w *world) files(t *testing.T, pod string) {
	if spec := w.kubectl("get", "pod,statefulset", "-o", "yaml"); strings.Contains(spec, "file sings") {
		t.Error("what is in a file stands in the open")
	}
	if got := w.kubectl("exec", pod, "--", "sh", "-c", "cd "+platform.BindingsRoot+" && cat my-db/password && echo -n ' ' && cat my-db/type && echo -n ' ' && ls"); got != "file sings postgres my-db\n" {
		t.Errorf("the files are %q", got)
	}
	if got := w.kubectl("exec", pod, "--", "cat", "/proc/1/environ"); strings.Contains(got, "file sings") {
		t.Error("what is in a file is a variable, too")
	}
	for _, file := range []string{"my-db/password", "my-db/new", "new"} {
		if out, err := w.try("exec", pod, "--", "sh", "-c", "echo x >"+platform.BindingsRoot+"/"+file); err == nil {
			t.Errorf("an app can write %s: %s", file, out)
		}
	}
}

// pid asks launch for the pid of a process of the container; the main one has no name.
func (w *world) pid(pod, sidecar string) string {
	w.Helper()
	var status launch.Status
	if err := json.Unmarshal([]byte(w.kubectl("exec", pod, "--", ourLauncher, "status")), &status); err != nil {
		w.Fatal(err)
	}
	for _, p := range status.Processes {
		if p.Sidecar == sidecar {
			return fmt.Sprint(p.PID)
		}
	}
	w.Fatalf("%+v has no %q", status, sidecar)
	return ""
}

func (w *world) network(t *testing.T, watch *Watch, pod string) {
	address := watch.Seen()[0].Instances[0].Address
	w.until(10*time.Second, "the gateway's host reaches the app", func() error {
		client := http.Client{Timeout: 2 * time.Second}
		response, err := client.Get("http://" + address + ":8080/")
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	})
	if out, err := w.try("exec", pod, "--", "getent", "hosts", "kubernetes.default.svc.cluster.local"); err != nil {
		t.Errorf("the DNS does not answer: %v %s", err, out)
	}
	for _, forbidden := range []string{"https://" + w.host + ":6443/version", "https://kubernetes.default.svc.cluster.local/version", "https://" + w.registry + "/v2/"} {
		if out, err := w.try("exec", pod, "--", "curl", "-sSk", "-m", "2", forbidden); err == nil {
			t.Errorf("the app reaches %s: %s", forbidden, out)
		}
	}
}

// crash kills a sidecar, and follows the watch: one exit is seen, with launch's record, and then the instance runs again.
func (w *world) crash(t *testing.T, watch *Watch, pod string) {
	exits, crashed := map[string]platform.Exit{}, 0
	w.kubectl("exec", pod, "--", "sh", "-c", "kill -9 "+w.pid(pod, "config server"))
	limit := time.After(60 * time.Second)
	for again := false; !again; {
		select {
		case <-watch.Changed():
		case <-limit:
			t.Fatalf("the instance does not run again: %+v", watch.Seen())
		}
		i := watch.Seen()[0].Instances[0]
		if i.LastExit != nil {
			exits[i.LastExit.ID] = *i.LastExit
		}
		if i.State == platform.InstanceCrashed {
			crashed++
		}
		again = i.State == platform.InstanceRunning && i.Restarts == 1
	}
	if len(exits) != 1 || crashed == 0 {
		t.Errorf("%d exits, and CRASHED was seen %d times: %+v", len(exits), crashed, exits)
	}
	for _, e := range exits {
		if e.Description != "APP/PROC/WEB/SIDECAR/CONFIG SERVER: Exited with status 137" {
			t.Errorf("the exit is %+v", e)
		}
	}
}
