package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// apply applies a manifest and follows its job.
func (w *world) apply(space v3.Space, token, manifest string) v3.Job {
	w.t.Helper()
	got := w.call(http.MethodPost, "/v3/spaces/"+space.GUID+"/actions/apply_manifest", token, manifest)
	if got.status != http.StatusAccepted || got.body != "" {
		w.t.Fatalf("apply: %d %s", got.status, got.body)
	}
	return do[v3.Job](w, 200, http.MethodGet, got.header.Get("Location"), token, nil)
}

func (w *world) applied(space v3.Space, token, manifest string) {
	w.t.Helper()
	if job := w.apply(space, token, manifest); job.State != "COMPLETE" || len(job.Errors) != 0 {
		w.t.Fatalf("the job: %+v", job)
	}
}

func (w *world) appCalled(space v3.Space, name string) (v3.App, bool) {
	w.t.Helper()
	list := do[v3.List[v3.App]](w, 200, http.MethodGet, "/v3/apps?names="+name+"&space_guids="+space.GUID, w.admin, nil)
	if len(list.Resources) == 0 {
		return v3.App{}, false
	}
	return list.Resources[0], true
}

const blue = `---
applications:
- name: blue
  path: /somewhere/here
  buildpacks: [proa/java]
  memory: 512M
  disk-quota: 256M
  instances: 2
  command: serve
  health-check-type: http
  health-check-http-endpoint: /well
  timeout: 90
  default-route: true
  env:
    A: "1"
    B: two
  metadata:
    labels: {tier: front}
  sidecars:
  - name: config
    process_types: [web]
    command: configure
    memory: 64M
  processes:
  - type: worker
    instances: 1
    disk_quota: 128M
    memory: 128M
- name: image
  docker: {image: nginx, username: u}
  no-route: true
`

func TestManifestIsApplied(t *testing.T) {
	w := newWorld(t)
	_, space, dev := w.place()
	w.applied(space, dev, blue)
	app, _ := w.appCalled(space, "blue")
	if app.Lifecycle.Type != "buildpack" || app.Lifecycle.Data.Stack != "proa" || app.Lifecycle.Data.Buildpacks[0] != "proa/java" || app.Metadata.Labels["tier"] != "front" {
		t.Errorf("the app: %+v", app)
	}
	if image, _ := w.appCalled(space, "image"); image.Lifecycle.Type != "docker" {
		t.Errorf("the image: %+v", image)
	}
	web := do[v3.Process](w, 200, http.MethodGet, "/v3/apps/"+app.GUID+"/processes/web", dev, nil)
	if web.GUID != app.GUID || web.Instances != 2 || web.MemoryMB != 512 || web.DiskMB != 256 || *web.Command != "serve" || web.HealthCheck.Data.Endpoint != "/well" || *web.HealthCheck.Data.Timeout != 90 {
		t.Errorf("web: %+v", web)
	}
	worker := do[v3.Process](w, 200, http.MethodGet, "/v3/apps/"+app.GUID+"/processes/worker", dev, nil)
	if worker.Instances != 1 || worker.MemoryMB != 128 || worker.DiskMB != 128 {
		t.Errorf("worker: %+v", worker)
	}

	// The same again changes nothing, and what a manifest does not name stays.
	diff := do[v3.ManifestDiff](w, 201, http.MethodPost, "/v3/spaces/"+space.GUID+"/manifest_diff", dev, strings.ReplaceAll(strings.ReplaceAll(blue, "  default-route: true\n", ""), "  docker: {image: nginx, username: u}\n", ""))
	if len(diff.Diff) != 0 {
		t.Errorf("the same again: %+v", diff)
	}
	w.applied(space, dev, `{"applications": [{"name": "blue", "env": {"A": null, "C": 3}, "features": {"ssh": false}, "sidecars": [{"name": "other", "command": "run", "process_types": ["worker"]}]}]}`)
	env := do[v3.AppEnv](w, 200, http.MethodGet, "/v3/apps/"+app.GUID+"/env", dev, nil).Variables
	if !reflect.DeepEqual(env, map[string]string{"B": "two", "C": "3"}) {
		t.Errorf("env: %v", env)
	}
	if list := do[v3.List[v3.Sidecar]](w, 200, http.MethodGet, "/v3/apps/"+app.GUID+"/sidecars", dev, nil); len(list.Resources) != 2 || *list.Resources[0].MemoryMB != 64 {
		t.Errorf("sidecars: %+v", list)
	}
	if f := do[v3.Feature](w, 200, http.MethodGet, "/v3/apps/"+app.GUID+"/features/ssh", dev, nil); f.Enabled {
		t.Errorf("ssh: %+v", f)
	}
	// A process and its sidecar shrink together, though either alone would break the rule.
	w.applied(space, dev, "applications: [{name: blue, memory: 60M, sidecars: [{name: config, command: c, process_types: [web], memory: 32M}]}]")
	w.applied(space, dev, "applications: [{name: fresh, features: {ssh: false}}]")
	if fresh, _ := w.appCalled(space, "fresh"); do[v3.Feature](w, 200, http.MethodGet, "/v3/apps/"+fresh.GUID+"/features/ssh", dev, nil).Enabled {
		t.Error("a new app has ssh though the manifest says no")
	}
}

func TestManifestThatBreaksRules(t *testing.T) {
	w := newWorld(t)
	_, space, dev := w.place()
	docker := do[v3.App](w, 201, http.MethodPost, "/v3/apps", dev, object{"name": "image", "relationships": object{"space": to(space.GUID)}, "lifecycle": object{"type": "docker", "data": object{}}})
	for manifest, detail := range map[string]string{
		"applications: [{name: one}, {name: two, memory: 64M, sidecars: [{name: s, command: c, process_types: [web], memory: 64M}]}]": `For application 'two': The memory allocation defined is too large to run with the dependent "web" process: with sidecar 's' (64M) its sidecars leave nothing of 64M to the process. Give the process more memory or the sidecar less.`,
		"applications: [{name: one, services: [db]}]":                "For application 'one': services: there is no service instance 'db' in this space. Create it with: proa create-service OFFERING PLAN db",
		"applications: [{name: one, stack: windows}]":                "For application 'one': Stack must be an existing stack: there is no 'windows'. `stacks` lists those there are.",
		"applications: [{name: one, features: {magic: true}}]":       "For application 'one': features.magic is not a feature of apps: those are ssh, revisions, service-binding-k8s and notifications.",
		"applications: [{name: one}, {name: image, lifecycle: cnb}]": "For application 'image': Lifecycle type cannot be changed from docker to cnb. Create another app instead.",
	} {
		job := w.apply(space, dev, manifest)
		if job.State != "FAILED" || len(job.Errors) != 1 || job.Errors[0].Detail != detail || job.Errors[0].Code != 10008 {
			t.Errorf("%s: %+v", manifest, job)
		}
		if _, there := w.appCalled(space, "one"); there {
			t.Fatalf("%s: half of it was applied", manifest)
		}
	}
	if app, _ := w.appCalled(space, "image"); app.Lifecycle.Type != "docker" || app.GUID != docker.GUID {
		t.Errorf("the app: %+v", app)
	}
	for manifest, detail := range map[string]string{
		"applications: [{name: one, memory: lots}]":                                                          "For application 'one': memory must be a number with a unit such as 256MB.",
		"applications: [{name: one, sidecars: [{name: s, command: c, process_types: [web], instances: 2}]}]": "Sidecars cannot be scaled",
		"applications: []": "applications must be a list of at least one application.",
		"a: [":             "",
	} {
		for _, path := range []string{"/actions/apply_manifest", "/manifest_diff"} {
			got := w.call(http.MethodPost, "/v3/spaces/"+space.GUID+path, dev, manifest)
			if got.status != 422 || !strings.Contains(got.body, detail) {
				t.Errorf("%s: %d %s", manifest, got.status, got.body)
			}
		}
	}
	if got := w.call(http.MethodPost, "/v3/spaces/"+space.GUID+"/actions/apply_manifest", dev, strings.Repeat("#", 2<<20)); got.status != http.StatusRequestEntityTooLarge {
		t.Errorf("too much: %d %s", got.status, got.body)
	}
}

func TestManifestDiffAndManifestOfApp(t *testing.T) {
	w := newWorld(t)
	_, space, dev := w.place()
	post := "/v3/spaces/" + space.GUID + "/manifest_diff"
	if got := w.call(http.MethodPost, post, dev, "applications: [{name: blue}]"); got.status != 201 || !strings.HasPrefix(got.body, `{"diff":[`) {
		t.Errorf("a new app: %d %s", got.status, got.body)
	}
	w.applied(space, dev, blue)
	diff := do[v3.ManifestDiff](w, 201, http.MethodPost, post, dev, "applications: [{name: blue, memory: 1G, command: null, env: {A: null, D: x}}]")
	var found []string
	for _, d := range diff.Diff {
		text, err := json.Marshal(d)
		must(t, err)
		found = append(found, string(text))
	}
	want := []string{`{"op":"replace","path":"/applications/0/memory","was":"512M","value":"1G"}`, `{"op":"replace","path":"/applications/0/command","was":"serve","value":null}`,
		`{"op":"replace","path":"/applications/0/env/A","was":"1","value":null}`, `{"op":"add","path":"/applications/0/env/D","value":"x"}`}
	if !reflect.DeepEqual(found, want) {
		t.Errorf("got  %s\nwant %s", strings.Join(found, "\n     "), strings.Join(want, "\n     "))
	}
	app, _ := w.appCalled(space, "blue")
	got := w.call(http.MethodGet, "/v3/apps/"+app.GUID+"/manifest", dev, nil)
	if got.status != 200 || got.header.Get("Content-Type") != "application/x-yaml" {
		t.Fatalf("%d %v", got.status, got.header)
	}
	m, err := platform.ParseManifest([]byte(got.body))
	must(t, err)
	if a := m.Applications[0]; a.Name != "blue" || *a.Env["A"] != "1" || len(a.Processes) != 2 || len(a.Sidecars) != 1 || *a.Sidecars[0].MemoryMB != 64 || *a.Stack != "proa" {
		t.Errorf("the manifest of the app: %s", got.body)
	}
	w.applied(space, dev, got.body) // it is what the app is
	if diff := do[v3.ManifestDiff](w, 201, http.MethodPost, post, dev, got.body); len(diff.Diff) != 0 {
		t.Errorf("its own manifest: %+v", diff)
	}
	image, _ := w.appCalled(space, "image")
	do[v3.Package](w, 201, http.MethodPost, "/v3/packages", dev, object{"type": "docker", "data": object{"image": "nginx", "username": "u", "password": "hunter2"}, "relationships": object{"app": to(image.GUID)}})
	got = w.call(http.MethodGet, "/v3/apps/"+image.GUID+"/manifest", dev, nil)
	if !strings.Contains(got.body, "image: nginx") || strings.Contains(got.body, "hunter2") {
		t.Errorf("of an image: %s", got.body)
	}
}

// Two people push the same new apps at once: both succeed, or one is told why not; nothing is half done.
func TestManifestsAtOnce(t *testing.T) {
	w := newWorld(t)
	_, space, dev := w.place()
	done := make(chan reply)
	for i := range 8 {
		order := []string{"a", "b"}
		go func() {
			done <- w.call(http.MethodPost, "/v3/spaces/"+space.GUID+"/actions/apply_manifest", dev, fmt.Sprintf("applications: [{name: %s}, {name: %s}]", order[i%2], order[1-i%2]))
		}()
	}
	for range 8 {
		if got := <-done; got.status != 202 {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	if list := do[v3.List[v3.App]](w, 200, http.MethodGet, "/v3/apps", dev, nil); len(list.Resources) != 2 {
		t.Errorf("%+v", list.Resources)
	}
}
