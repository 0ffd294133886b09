package main_test

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/store"
)

// TestLife takes an app through its life, by the records alone.
func TestLife(t *testing.T) {
	w := newWorld(t)
	p := w.start()
	a, pkg := w.app("shop", w.smoke())
	b := w.build(pkg)
	if b.State != platform.BuildStaged {
		t.Fatalf("the build is %+v\n%s", b, w.log(a.GUID))
	}
	log := w.log(a.GUID)
	if !strings.Contains(log, "[STG/0] Staging begins.\n") || !strings.Contains(log, "[STG/0] -----> detector\n") || !strings.Contains(log, "[STG/0] -----> exporter\n") {
		t.Errorf("the log is\n%s", log)
	}
	d := get[platform.Droplet](w)(w.store.Droplet(t.Context(), admin, b.DropletGUID))
	if len(d.Processes) != 1 || d.Processes[0].Type != "web" || len(d.Buildpacks) != 1 || d.Buildpacks[0].ID != "proa/procfile" || !strings.Contains(d.Image, "/droplets/"+a.GUID+"@sha256:") {
		t.Errorf("the droplet is %+v", d)
	}
	t.Logf("RUNNING %.1f s after the start", w.run(a, d.GUID).Seconds())
	if got := w.there("pods", "staging"); len(got) != 0 {
		t.Errorf("the staging is still there: %v", got)
	}
	set := w.there("statefulsets", "app")
	if len(set) != 1 {
		t.Fatalf("the sets are %v", set)
	}

	t.Run("restart", func(t *testing.T) {
		get[platform.App](w)(w.store.RestartApp(t.Context(), admin, a.GUID, store.Settings{}))
		took := w.instances(a, "RUNNING")
		t.Logf("RUNNING again %.1f s after the restart", took.Seconds())
		w.until(30*time.Second, "one new set", func() error {
			if now := w.there("statefulsets", "app"); len(now) != 1 || now[0] == set[0] {
				return fmt.Errorf("the sets are %v", now)
			}
			return nil
		})
		set = w.there("statefulsets", "app")
	})
	t.Run("comes back", func(t *testing.T) {
		w.try("--namespace="+w.space.Namespace(), "delete", set[0])
		took := w.until(time.Minute, "the set", func() error {
			if now := w.there("statefulsets", "app"); len(now) != 1 || now[0] != set[0] {
				return fmt.Errorf("the sets are %v", now)
			}
			return nil
		})
		w.instances(a, "RUNNING")
		t.Logf("the set was there again after %.1f s", took.Seconds())
	})
	t.Run("scale", func(t *testing.T) {
		for n, want := range []string{"RUNNING RUNNING", "RUNNING"} {
			get[platform.Process](w)(w.store.ScaleProcess(t.Context(), admin, w.web(a).GUID, platform.ProcessScale{Instances: new(2 - n)}))
			took := w.instances(a, want)
			took += w.until(time.Minute, "as many pods", func() error {
				if pods := w.there("pods", "app"); len(pods) != 2-n {
					return fmt.Errorf("they are %v", pods)
				}
				return nil
			})
			t.Logf("%s after %.1f s", want, took.Seconds())
		}
	})
	t.Run("stop", func(t *testing.T) {
		get[platform.App](w)(w.store.StopApp(t.Context(), admin, a.GUID))
		took := w.until(time.Minute, "nothing left", func() error {
			if left := append(w.there("statefulsets,pods,secrets", "app"), w.there("pods", "staging")...); len(left) > 0 {
				return fmt.Errorf("still there: %v", left)
			}
			return nil
		})
		w.instances(a, "")
		t.Logf("nothing left after %.1f s", took.Seconds())
	})
	t.Run("health", func(t *testing.T) {
		if got := p.ask("/readyz"); !strings.HasPrefix(got, "200") {
			t.Errorf("readyz is %s", got)
		}
		metrics := p.ask("/metrics")
		for _, want := range []string{`proa_controller_steps_total{kind="create"}`, `proa_controller_steps_total{kind="delete"}`, `proa_controller_pass_seconds_count`, `proa_controller_staging_seconds_count{outcome="staged"} 1`} {
			if !strings.Contains(metrics, want) {
				t.Errorf("metrics lack %s:\n%s", want, metrics)
			}
		}
		if strings.Contains(metrics, "proa_controller_errors_total{") {
			t.Errorf("steps failed:\n%s", p.log)
		}
	})
	t.Run("delete space", func(t *testing.T) {
		get[platform.Job](w)(w.store.DeleteSpace(t.Context(), admin, w.space.GUID))
		w.until(time.Minute, "the namespace is gone", func() error {
			if left := w.try("get", "namespaces", "-o", "name", "-l", "proa.dev/installation="+w.installation); left != "" {
				return fmt.Errorf("still there: %v", left)
			}
			return nil
		})
	})
}

// TestBuildsThatFail tries what cannot become a droplet.
func TestBuildsThatFail(t *testing.T) {
	w := newWorld(t)
	w.start()
	nothing := map[string]string{"README": "Nothing to run.\n"}
	for name, c := range map[string]struct {
		buildpacks []string
		want       string
	}{
		"nothing fits":      {nil, "NoAppDetectedError - None of the builder's buildpacks fits this app."},
		"unknown buildpack": {[]string{"proa/cobol"}, `StagingError - The builder has no buildpack "proa/cobol". It has: proa/go@`},
		"unknown version":   {[]string{"proa/go@99.0"}, `StagingError - The builder has no buildpack "proa/go@99.0".`},
		"no such image":     {[]string{"docker://registry.example.invalid/buildpacks/cobol:1"}, "StagingError - The registry of the image "},
		"a repository":      {[]string{"https://github.com/cobol/buildpack"}, "is neither an image nor one of the builder's."},
		"does not fit":      {[]string{"proa/java"}, "NoAppDetectedError"},
	} {
		t.Run(name, func(t *testing.T) {
			_, pkg := w.app(name, nothing, c.buildpacks...)
			if b := w.build(pkg); b.State != platform.BuildFailed || !strings.Contains(b.Error, c.want) {
				t.Errorf("the build is %s: %s", b.State, b.Error)
			}
		})
	}
}

// TestStagingIsLost takes the pod away, twice.
func TestStagingIsLost(t *testing.T) {
	w := newWorld(t)
	w.start()
	a, pkg := w.app("lost", w.smoke())
	b := get[platform.Build](w)(w.store.CreateBuild(t.Context(), admin, platform.Build{PackageGUID: pkg.GUID, MemoryMB: 512, DiskMB: 512}))
	last := ""
	for range 2 {
		w.until(time.Minute, "the staging's pod", func() error {
			uid := w.try("--namespace="+w.space.Namespace(), "get", "pod", "b-"+b.GUID, "-o", "jsonpath={.metadata.uid}")
			if strings.Contains(uid, " ") || uid == last {
				return fmt.Errorf("it is not there: %s", uid)
			}
			last = uid
			return nil
		})
		w.try("--namespace="+w.space.Namespace(), "delete", "pod", "b-"+b.GUID, "--grace-period=0", "--force")
	}
	b = w.ended(b)
	if b.State != platform.BuildFailed || !strings.Contains(b.Error, "was lost, and the one after it too") {
		t.Errorf("the build is %s: %s", b.State, b.Error)
	}
	if log := w.log(a.GUID); !strings.Contains(log, "[STG/1] The staging was lost with the machine it ran on. It begins again.") {
		t.Errorf("the log is\n%s", log)
	}
}

// TestKilled kills the controller again and again while an app is pushed. It ends running once, and no line is there twice.
func TestKilled(t *testing.T) {
	w := newWorld(t)
	p := w.start()
	stop, stopped := make(chan struct{}), make(chan int)
	go func() {
		kills := 0
		for {
			select {
			case <-stop:
				stopped <- kills
				return
			case <-time.After(500*time.Millisecond + rand.N(3*time.Second)):
				p.kill()
				kills++
				p = w.start()
			}
		}
	}()
	a, pkg := w.app("tough", w.smoke())
	b := w.build(pkg)
	if b.State == platform.BuildStaged {
		t.Logf("RUNNING %.1f s after the start", w.run(a, b.DropletGUID).Seconds())
	}
	close(stop)
	t.Logf("the controller was killed %d times", <-stopped)
	log := w.log(a.GUID)
	if b.State != platform.BuildStaged {
		t.Fatalf("the build is %+v\n%s", b, log)
	}
	for _, once := range []string{"Staging begins.", "-----> detector", "Process web: exec ./app $PORT", "-----> exporter", "Setting default process type 'web'", "*** Images"} {
		if n := strings.Count(log, once); n != 1 {
			t.Errorf("%q is %d times in the log\n%s", once, n, log)
		}
	}
	w.until(time.Minute, "one set, one pod, nothing of staging", func() error {
		if sets, pods, staging := w.there("statefulsets", "app"), w.there("pods", "app"), w.there("pods,secrets", "staging"); len(sets) != 1 || len(pods) != 1 || len(staging) != 0 {
			return fmt.Errorf("there are %v, %v and %v", sets, pods, staging)
		}
		return nil
	})
	w.instances(a, "RUNNING")
}

// TestOneFails keeps one app from starting. The others start, its instance says why, and it starts when the reason has gone.
func TestOneFails(t *testing.T) {
	w := newWorld(t)
	p := w.start()
	first, pkg := w.app("first", w.smoke())
	b := w.build(pkg)
	w.run(first, b.DropletGUID)
	w.try("--namespace="+w.space.Namespace(), "create", "quota", "one", "--hard=count/statefulsets.apps=1")
	w.until(20*time.Second, "the quota counts", func() error {
		if used := w.try("--namespace="+w.space.Namespace(), "get", "quota", "one", "-o", "jsonpath={.status.used}"); !strings.Contains(used, `"1"`) {
			return fmt.Errorf("it says %s", used)
		}
		return nil
	})
	second, pkg := w.app("second", w.smoke())
	b = w.build(pkg)
	get[platform.App](w)(w.store.AssignDroplet(t.Context(), admin, second.GUID, b.DropletGUID))
	get[platform.App](w)(w.store.StartApp(t.Context(), admin, second.GUID, store.Settings{}))
	w.instances(second, "DOWN")
	process := w.web(second).GUID
	all, err := w.store.Instances(t.Context(), []string{process})
	must(t, err)
	if got := all[process][0].Details; !strings.HasPrefix(got, "The platform could not start this instance") {
		t.Errorf("the details are %q", got)
	}
	get[platform.Process](w)(w.store.ScaleProcess(t.Context(), admin, w.web(first).GUID, platform.ProcessScale{Instances: new(2)}))
	w.instances(first, "RUNNING RUNNING")
	if !strings.Contains(p.log.String(), "exceeded quota") {
		t.Error("the log does not say why")
	}
	w.try("--namespace="+w.space.Namespace(), "delete", "quota", "one")
	w.instances(second, "RUNNING")
}

// TestDocker makes a droplet of an image that is not ours.
func TestDocker(t *testing.T) {
	w := newWorld(t)
	w.start()
	image := w.foreign("team/app")
	a := get[platform.App](w)(w.store.CreateApp(t.Context(), admin, platform.App{SpaceGUID: w.space.GUID, Name: "docker", Metadata: noted, Lifecycle: platform.Lifecycle{Type: platform.LifecycleDocker}}))
	for image, want := range map[string]string{
		image:                              "STAGED ",
		image + "-that-is-not-there":       "FAILED StagingError - The image ",
		w.packer.Base:                      "FAILED StagingError - ",
		"169.254.169.254/latest/meta-data": "FAILED StagingError - ",
	} {
		pkg := get[platform.Package](w)(w.store.CreatePackage(t.Context(), admin, platform.Package{AppGUID: a.GUID, Type: platform.PackageDocker,
			Docker: platform.DockerSource{Image: image, Username: w.packer.Registry.Username, Password: w.packer.Registry.Password}}))
		b := w.build(pkg)
		if got := string(b.State) + " " + b.Error; !strings.HasPrefix(got, want) {
			t.Errorf("%s is %s, want %s", image, got, want)
		}
		if b.State != platform.BuildStaged {
			continue
		}
		d := get[platform.Droplet](w)(w.store.Droplet(t.Context(), admin, b.DropletGUID))
		if len(d.Processes) != 1 || d.Processes[0].Command != "/bin/app" || strings.Join(d.Processes[0].Args, " ") != "8080" || !strings.Contains(d.Image, "/proa/droplets/"+a.GUID+"@sha256:") {
			t.Errorf("the droplet is %+v", d)
		}
		if before, after := w.layers(image), w.layers(d.Image); after != before+1 {
			t.Errorf("the droplet has %d layers, the image %d", after, before)
		}
	}
}

// TestTwo starts two controllers: one acts, and when it dies the other does.
func TestTwo(t *testing.T) {
	w := newWorld(t)
	one, two := w.start(), w.start()
	leads := func() error {
		if a, b := one.leads(), two.leads(); a == b {
			return fmt.Errorf("the first leads: %t, the second: %t", a, b)
		}
		return nil
	}
	w.until(20*time.Second, "one leads", leads)
	for range 20 {
		if one.leads() && two.leads() {
			t.Fatal("both lead")
		}
		time.Sleep(50 * time.Millisecond)
	}
	if two.leads() {
		one, two = two, one
	}
	if strings.Contains(two.log.String(), `"msg":"step"`) {
		t.Errorf("the one that stands by acts:\n%s", two.log)
	}
	one.kill()
	took := w.until(15*time.Second, "the other leads", func() error {
		if !two.leads() {
			return fmt.Errorf("it does not")
		}
		return nil
	})
	t.Logf("the other took over after %.1f s", took.Seconds())
	if got := two.ask("/readyz"); !strings.HasPrefix(got, "200") {
		t.Errorf("readyz is %s", got)
	}
}

// TestSettings needs no cluster: what is wrong is said at once, all of it.
func TestSettings(t *testing.T) {
	dir, err := programs()
	must(t, err)
	run := func(env []string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "controller"), args...)
		cmd.Env = env
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	complete := []string{"PROA_CONTROLLER_DATABASE_URL=postgres://nobody@127.0.0.1:1/none", "PROA_CONTROLLER_KEYSET={}", "PROA_REGISTRY=registry.example.org", "PROA_LAUNCHER_FILE=" + filepath.Join(dir, "launcher"), "PROA_SFTP_FILE=" + filepath.Join(dir, "sftp")}
	for want, got := range map[string]string{
		"PROA_LAUNCHER_FILE":                       run(nil),
		"PROA_STAGING_TIMEOUT must be at least 1m": run(append(complete, "PROA_STAGING_TIMEOUT=1s")),
		"PROA_LAUNCHER_FILE must be a program":     run(append(complete, "PROA_LAUNCHER_FILE="+dir)),
		"PROA_SFTP_FILE must be a program":         run(append(complete, "PROA_SFTP_FILE="+dir)),
		"PROA_CONTROLLER_KEYSET:":                  run(complete),
		"PROA_TCP_GATEWAY must be namespace/name":  run(append(complete, "PROA_TCP_GATEWAY=tcp")),
		"need each other":                          run(append(complete, "PROA_REGISTRY_USERNAME=proa")),
		"PROA_GATEWAY_CIDRS":                       run(nil, "help"),
		`"dance" is not a command`:                 run(nil, "dance"),
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
}
