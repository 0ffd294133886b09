package platform_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/proa-dev/proa/platform"
)

func release() platform.Release {
	return platform.Release{
		GUID: "release", AppGUID: "app", AppName: "shop", SpaceGUID: "space", Namespace: "space-space", ProcessGUID: "process", ProcessType: "web", Version: 3,
		Image:    "registry/droplet@sha256:" + strings.Repeat("0", 64),
		Sidecars: []platform.ReleaseSidecar{{Name: "config server", Command: "./config", MemoryMB: 100}, {Name: "agent", Command: "./agent"}},
		Env:      map[string]string{"VCAP_SERVICES": "{}", "PORT": "1", "MEMORY_LIMIT": "9g", "LANG": "C"},
		Ports:    []int{8080, 9000}, MemoryMB: 256, DiskMB: 1024,
	}
}

func TestReleaseEnvironment(t *testing.T) {
	want := map[string]string{
		"VCAP_SERVICES": "{}", "LANG": "C", "MEMORY_LIMIT": "156m", "BPL_JVM_HEAD_ROOM": "40", "CF_PROCESS_TYPE": "web",
		"PORT": "8080", "VCAP_APP_PORT": "8080", "VCAP_APP_HOST": "0.0.0.0", "CF_INSTANCE_PORT": "8080",
		"CF_INSTANCE_PORTS": `[{"external":8080,"internal":8080},{"external":9000,"internal":9000}]`,
	}
	r := release()
	if got := r.Environment(); !maps.Equal(got, want) {
		t.Errorf("the environment is\n%v, want\n%v", got, want)
	}
	if r.Env["PORT"] != "1" {
		t.Error("the release was altered")
	}
	worker := platform.Release{ProcessType: "worker", MemoryMB: 64}
	want = map[string]string{"LANG": platform.DefaultLang, "MEMORY_LIMIT": "64m", "CF_PROCESS_TYPE": "worker"}
	if got := worker.Environment(); !maps.Equal(got, want) {
		t.Errorf("the environment of a process without ports is\n%v, want\n%v", got, want)
	}
}

func TestReleaseLaunch(t *testing.T) {
	l := release().Launch()
	if l.Process != "web" || l.Main.Command != "" || l.Main.MemoryMB != 156 || len(l.Sidecars) != 2 {
		t.Fatalf("launch is %+v", l)
	}
	if s := l.Sidecars[0]; s.Name != "config server" || s.MemoryMB != 100 || s.Env["MEMORY_LIMIT"] != "100m" {
		t.Errorf("a sidecar with memory of its own is told %+v", s)
	}
	if s := l.Sidecars[1]; s.Env != nil {
		t.Errorf("a sidecar that shares the main process's memory is told %+v", s)
	}
}

func TestReleaseCheck(t *testing.T) {
	if err := release().Check(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*platform.Release)
		says   string
	}{
		"no namespace":       {func(r *platform.Release) { r.Namespace = "" }, "not whole"},
		"a tag":              {func(r *platform.Release) { r.Image = "registry/droplet:latest" }, "digest"},
		"no disk":            {func(r *platform.Release) { r.DiskMB = 0 }, "disk"},
		"greedy sidecar":     {func(r *platform.Release) { r.Sidecars[0].MemoryMB = 256 }, "take 256M of its 256M"},
		"a check, no port":   {func(r *platform.Release) { r.Ports, r.Health.Type = nil, platform.ProbeHTTP }, "no port"},
		"readiness, no port": {func(r *platform.Release) { r.Ports, r.Readiness.Type = nil, platform.ProbePort }, "no port"},
	} {
		t.Run(name, func(t *testing.T) {
			r := release()
			c.change(&r)
			if err := r.Check(); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it says %v, want something about %q", err, c.says)
			}
		})
	}
}
