package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

func TestProcessIsShownChangedAndScaled(t *testing.T) {
	w := newWorld(t)
	org, space, dev := w.place()
	w.give("auditor", platform.SpaceAuditor, org, space)
	app := w.startable(space, "blue", platform.Droplet{Processes: []platform.DropletProcess{{Type: "web", Command: "serve --fast"}}})
	self := "/v3/processes/" + app.GUID
	byType := "/v3/apps/" + app.GUID + "/processes/web"
	p := do[v3.Process](w, 200, http.MethodGet, self, dev, nil)
	if p.Type != "web" || *p.Command != "serve --fast" || p.Instances != 1 || p.MemoryMB != 1024 || p.LogRate != -1 || p.HealthCheck.Type != "port" || p.Readiness.Type != "process" || p.Relationships["app"].GUID() != app.GUID {
		t.Errorf("got %+v", p)
	}
	if other := do[v3.Process](w, 200, http.MethodGet, byType, dev, nil); other.GUID != p.GUID {
		t.Errorf("by type: %+v", other)
	}
	w.refused(w.call(http.MethodGet, "/v3/apps/"+app.GUID+"/processes/worker", dev, nil), 404, 10010, "CF-ResourceNotFound", "Process not found")

	p = do[v3.Process](w, 200, http.MethodPatch, self, dev, object{"command": "mine", "metadata": object{"labels": object{"a": "b"}},
		"health_check": object{"type": "http", "data": object{"endpoint": "/well", "timeout": 90, "invocation_timeout": 5}}})
	if *p.Command != "mine" || p.HealthCheck.Data.Endpoint != "/well" || *p.HealthCheck.Data.Timeout != 90 || *p.HealthCheck.Data.InvocationTimeout != 5 || p.Metadata.Labels["a"] != "b" {
		t.Errorf("changed to %+v", p)
	}
	for who, want := range map[string]string{dev: "mine", w.token("auditor"): v3.Hidden} {
		if got := do[v3.Process](w, 200, http.MethodGet, self, who, nil); *got.Command != want {
			t.Errorf("the command is shown as %q, want %q", *got.Command, want)
		}
		if got := do[v3.List[v3.Process]](w, 200, http.MethodGet, "/v3/processes", who, nil); len(got.Resources) != 1 || *got.Resources[0].Command != v3.Hidden {
			t.Errorf("in a list: %+v", got)
		}
	}
	p = do[v3.Process](w, 200, http.MethodPatch, self, dev, object{"command": nil, "health_check": object{"type": "process", "data": object{"timeout": nil}}})
	if *p.Command != "serve --fast" || p.HealthCheck.Type != "process" || p.HealthCheck.Data.Timeout != nil || p.HealthCheck.Data.Endpoint != "" || *p.HealthCheck.Data.InvocationTimeout != 5 {
		t.Errorf("taken back: %+v", p)
	}
	w.unprocessable(w.call(http.MethodPatch, self, dev, object{"health_check": object{"type": "magic"}}), `Health check type must be "port", "process", or "http"`)

	p = do[v3.Process](w, 202, http.MethodPost, byType+"/actions/scale", dev, object{"instances": 3, "memory_in_mb": 512})
	if p.Instances != 3 || p.MemoryMB != 512 || p.DiskMB != 1024 {
		t.Errorf("scaled to %+v", p)
	}
	if p = do[v3.Process](w, 202, http.MethodPost, self+"/actions/scale", dev, object{"instances": 0, "disk_in_mb": 64, "log_rate_limit_in_bytes_per_second": 1000}); p.Instances != 0 || p.DiskMB != 64 || p.LogRate != 1000 {
		t.Errorf("scaled to %+v", p)
	}
	w.unprocessable(w.call(http.MethodPost, self+"/actions/scale", dev, object{"instances": -1}), "Instances must be greater than or equal to 0")
	if got := w.call(http.MethodPost, self+"/actions/scale", dev, object{"instances": -1, "memory_in_mb": 0}); got.status != 422 || strings.Count(got.body, `"code"`) != 2 {
		t.Errorf("two faults: %s", got.body)
	}
	w.unprocessable(w.call(http.MethodPost, self+"/actions/scale", dev, object{"cpus": 1}), "Unknown field(s): 'cpus'")
}

func TestStats(t *testing.T) {
	w := newWorld(t)
	_, space, dev := w.place()
	app := w.startable(space, "blue", platform.Droplet{})
	self := "/v3/processes/" + app.GUID
	do[v3.Process](w, 202, http.MethodPost, self+"/actions/scale", dev, object{"instances": 3})
	stats := func() []v3.InstanceStats {
		t.Helper()
		all := do[v3.Stats](w, 200, http.MethodGet, self+"/stats", dev, nil).Resources
		if other := do[v3.Stats](w, 200, http.MethodGet, "/v3/apps/"+app.GUID+"/processes/web/stats", dev, nil).Resources; len(other) != len(all) {
			t.Errorf("by type: %+v", other)
		}
		return all
	}
	states := func() string {
		var all []string
		for i, s := range stats() {
			if s.Index != i || s.Type != "web" {
				t.Errorf("at %d: %+v", i, s)
			}
			all = append(all, s.State)
		}
		return strings.Join(all, " ")
	}
	if got := w.call(http.MethodGet, self+"/stats", dev, nil).body; got != `{"resources":[]}` {
		t.Errorf("a stopped app: %s", got)
	}
	do[v3.App](w, 200, http.MethodPost, "/v3/apps/"+app.GUID+"/actions/start", dev, nil)
	if got := states(); got != "STARTING STARTING STARTING" {
		t.Errorf("right after the start: %s", got)
	}
	release := do[v3.Process](w, 200, http.MethodGet, self, dev, nil).Version
	seen := platform.Seen{Release: release, Process: app.GUID, App: app.GUID, Count: 3, Instances: []platform.Instance{
		{Index: 0, State: platform.InstanceRunning, Since: time.Now().Add(-time.Minute), Ready: true, Node: "node-1", Address: "10.0.0.1"},
		{Index: 2, State: platform.InstanceCrashed, Since: time.Now(), Details: "It went away."}}}
	must(t, w.store.RecordSeen(t.Context(), "default", []platform.Seen{seen}))
	if got := states(); got != "RUNNING STARTING CRASHED" {
		t.Errorf("when two were seen: %s", got)
	}
	all := stats()
	if one := all[0]; one.Uptime < 60 || one.Uptime > 90 || one.MemoryQuota != 1<<30 || one.DiskQuota != 1<<30 || one.LogRate != -1 || !*one.Routable || *one.Host != "node-1" || one.Details != nil || one.Usage.Time == nil {
		t.Errorf("got %+v", one)
	}
	if *all[2].Details != "It went away." || *all[2].Routable || all[1].Host != nil {
		t.Errorf("got %+v", all)
	}
	body := w.call(http.MethodGet, self+"/stats", dev, nil).body
	for _, field := range []string{`"isolation_segment":null`, `"instance_ports":[]`, `"details":null`, `"mem":null`, `"log_rate_limit":-1`} {
		if !strings.Contains(body, field) {
			t.Errorf("%s is not in %s", field, body)
		}
	}

	embedded := do[v3.List[v3.Process]](w, 200, http.MethodGet, "/v3/processes?space_guids="+space.GUID+"&embed=process_instances", dev, nil).Resources
	var short []string
	for _, i := range embedded[0].Seen {
		short = append(short, i.State)
	}
	if len(embedded) != 1 || !slices.Equal(short, []string{"RUNNING", "STARTING", "CRASHED"}) || time.Since(time.Unix(embedded[0].Seen[0].Since, 0)) < time.Minute {
		t.Errorf("embedded %+v", embedded)
	}
	if got := w.call(http.MethodGet, "/v3/processes?embed=magic", dev, nil); got.status != 400 {
		t.Errorf("an unknown embed: %d", got.status)
	}
	if got := w.call(http.MethodGet, "/v3/processes", dev, nil); strings.Contains(got.body, "process_instances") {
		t.Errorf("not asked for: %s", got.body)
	}

	do[v3.App](w, 200, http.MethodPost, "/v3/apps/"+app.GUID+"/actions/restart", dev, nil)
	if got := states(); got != "STARTING STARTING STARTING" {
		t.Errorf("what ran before a restart counts no more: %s", got)
	}
	do[v3.Process](w, 202, http.MethodPost, self+"/actions/scale", dev, object{"instances": 1})
	if got := states(); got != "STARTING" {
		t.Errorf("scaled down: %s", got)
	}
	do[v3.App](w, 200, http.MethodPost, "/v3/apps/"+app.GUID+"/actions/stop", dev, nil)
	if got := states(); got != "" {
		t.Errorf("stopped: %s", got)
	}
	var none map[string]json.RawMessage
	must(t, json.Unmarshal([]byte(w.call(http.MethodGet, self+"?embed=process_instances", dev, nil).body), &none))
	if string(none["process_instances"]) != "[]" {
		t.Errorf("embedded when stopped: %s", none["process_instances"])
	}
}

func TestSidecars(t *testing.T) {
	w := newWorld(t)
	_, space, dev := w.place()
	app := w.startable(space, "blue", platform.Droplet{Processes: []platform.DropletProcess{{Type: "web"}, {Type: "worker"}}})
	path := "/v3/apps/" + app.GUID + "/sidecars"
	one := do[v3.Sidecar](w, 201, http.MethodPost, path, dev, object{"name": "config", "command": "serve", "process_types": []string{"web"}, "memory_in_mb": 100})
	if one.Origin != "user" || *one.MemoryMB != 100 || one.Relationships["app"].GUID() != app.GUID {
		t.Errorf("got %+v", one)
	}
	two := do[v3.Sidecar](w, 201, http.MethodPost, path, dev, object{"name": "proxy", "command": "run", "process_types": []string{"web", "worker"}})
	for list, want := range map[string]string{path: "config proxy", path + "?names=proxy": "proxy", "/v3/processes/" + app.GUID + "/sidecars": "config proxy", "/v3/processes/" + app.GUID + "/sidecars?per_page=1&page=2": "proxy"} {
		var names []string
		for _, c := range do[v3.List[v3.Sidecar]](w, 200, http.MethodGet, list, dev, nil).Resources {
			names = append(names, c.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %q, want %q", list, got, want)
		}
	}
	self := "/v3/sidecars/" + one.GUID
	if one = do[v3.Sidecar](w, 200, http.MethodPatch, self, dev, object{"command": "serve more"}); one.Command != "serve more" || *one.MemoryMB != 100 {
		t.Errorf("changed to %+v", one)
	}
	if one = do[v3.Sidecar](w, 200, http.MethodPatch, self, dev, object{"memory_in_mb": nil}); one.MemoryMB != nil {
		t.Errorf("memory taken back: %+v", one)
	}
	const health = "Sidecars support only process health checks: a sidecar is healthy while it runs. Take the key away, or check an endpoint of the main process."
	const scale = "Sidecars cannot be scaled on their own: there is one in each instance of the process. Set instances on the process instead."
	for method, at := range map[string]string{http.MethodPost: path, http.MethodPatch: self} {
		w.unprocessable(w.call(method, at, dev, object{"health_check": object{"type": "http"}}), health)
		w.unprocessable(w.call(method, at, dev, object{"instances": 2}), scale)
		w.unprocessable(w.call(method, at, dev, object{"color": 2}), "Unknown field(s): 'color'")
		w.refused(w.call(method, at, dev, "{"), 400, 1001, "CF-MessageParseError", "Request invalid due to parse error: invalid request body")
	}
	w.unprocessable(w.call(http.MethodPatch, self, dev, object{"name": "proxy"}), "Sidecar with name 'proxy' already exists for given app")
	if got := w.call(http.MethodPatch, self, dev, object{"memory_in_mb": 1024}); got.status != 422 || !strings.Contains(got.body, "leave nothing of 1G to the process") {
		t.Errorf("more than the process has: %d %s", got.status, got.body)
	}
	do[v3.Sidecar](w, 200, http.MethodPatch, self, dev, object{"memory_in_mb": 500})
	if got := w.call(http.MethodPost, "/v3/processes/"+app.GUID+"/actions/scale", dev, object{"memory_in_mb": 500}); got.status != 422 {
		t.Errorf("a process smaller than its sidecar: %d %s", got.status, got.body)
	}
	if got := w.call(http.MethodDelete, "/v3/sidecars/"+two.GUID, dev, nil); got.status != 204 {
		t.Errorf("deleted: %d %s", got.status, got.body)
	}
	w.refused(w.call(http.MethodGet, "/v3/sidecars/"+two.GUID, dev, nil), 404, 10010, "CF-ResourceNotFound", "Sidecar not found")
}
