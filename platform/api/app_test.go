package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/api"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// place is an organization and a space with somebody who develops in it.
func (w *world) place() (v3.Organization, v3.Space, string) {
	w.t.Helper()
	org := w.org("org")
	space := w.space(org, "space")
	w.give("dev", platform.SpaceDeveloper, org, space)
	return org, space, w.token("dev")
}

func (w *world) app(space v3.Space, name string) v3.App {
	w.t.Helper()
	return do[v3.App](w, 201, http.MethodPost, "/v3/apps", w.admin, object{"name": name, "relationships": object{"space": to(space.GUID)}})
}

// unprocessable wants one sentence.
func (w *world) unprocessable(got reply, detail string) {
	w.t.Helper()
	w.refused(got, 422, 10008, "CF-UnprocessableEntity", detail)
}

// staged gives an app a package, a build and a droplet, as the controller would.
func (w *world) staged(app v3.App, d platform.Droplet) string {
	w.t.Helper()
	p := do[v3.Package](w, 201, http.MethodPost, "/v3/packages", w.admin, object{"type": "bits", "relationships": object{"app": to(app.GUID)}})
	_, err := w.pool.Exec(w.t.Context(), `update packages set state = 'READY', image = 'r/p@sha256:1' where guid = $1`, p.GUID)
	must(w.t, err)
	b := do[v3.Build](w, 201, http.MethodPost, "/v3/builds", w.admin, object{"package": object{"guid": p.GUID}})
	if d.Image == "" {
		d.Image = "r/d@sha256:" + b.GUID
	}
	must(w.t, w.store.FinishBuild(w.t.Context(), b.GUID, &d, ""))
	return d.GUID
}

// startable is an app with a droplet.
func (w *world) startable(space v3.Space, name string, d platform.Droplet) v3.App {
	w.t.Helper()
	app := w.app(space, name)
	do[v3.CurrentDroplet](w, 200, http.MethodPatch, "/v3/apps/"+app.GUID+"/relationships/current_droplet", w.admin, to(w.staged(app, d)))
	return do[v3.App](w, 200, http.MethodGet, "/v3/apps/"+app.GUID, w.admin, nil)
}

func TestAppIsCreatedChangedAndDeleted(t *testing.T) {
	w := newWorld(t)
	_, space, dev := w.place()
	app := do[v3.App](w, 201, http.MethodPost, "/v3/apps", dev, object{"name": "blue", "relationships": object{"space": to(space.GUID)},
		"environment_variables": object{"A": "1"}, "metadata": object{"labels": object{"tier": "front"}},
		"lifecycle": object{"type": "buildpack", "data": object{"buildpacks": []string{"proa/java"}}}})
	if app.State != "STOPPED" || app.Lifecycle.Type != "buildpack" || app.Lifecycle.Data.Stack != "proa" || !slices.Equal(app.Lifecycle.Data.Buildpacks, []string{"proa/java"}) ||
		app.Relationships["space"].GUID() != space.GUID || app.Relationships["current_droplet"].Data != nil || app.Metadata.Labels["tier"] != "front" {
		t.Errorf("got %+v", app)
	}
	self := "/v3/apps/" + app.GUID
	w.unprocessable(w.call(http.MethodPost, "/v3/apps", dev, object{"name": "blue", "relationships": object{"space": to(space.GUID)}}), "App with the name 'blue' already exists.")
	w.unprocessable(w.call(http.MethodPost, "/v3/apps", dev, object{"name": "", "relationships": object{"space": to(space.GUID)}}), "Name can't be blank")
	w.unprocessable(w.call(http.MethodPost, "/v3/apps", dev, object{"name": "x"}), "Relationships 'relationships' must include one or more valid relationships")
	w.unprocessable(w.call(http.MethodPost, "/v3/apps", dev, object{"name": "x", "color": "red", "relationships": object{"space": to(space.GUID)}}), "Unknown field(s): 'color'")
	w.unprocessable(w.call(http.MethodPost, "/v3/apps", dev, object{"name": "x", "relationships": object{"space": to("elsewhere")}}), "Invalid space. Ensure that the space exists and you have access to it.")
	w.unprocessable(w.call(http.MethodPost, "/v3/apps", dev, object{"name": "x", "relationships": object{"space": to(space.GUID)}, "lifecycle": object{"type": "buildpack", "data": object{"stack": "windows"}}}),
		"Stack must be an existing stack: there is no 'windows'. `stacks` lists those there are.")

	docker := do[v3.App](w, 201, http.MethodPost, "/v3/apps", dev, object{"name": "image", "relationships": object{"space": to(space.GUID)}, "lifecycle": object{"type": "docker", "data": object{}}})
	if got := w.call(http.MethodGet, "/v3/apps/"+docker.GUID, dev, nil); !strings.Contains(got.body, `"lifecycle":{"type":"docker","data":{}}`) {
		t.Errorf("a docker app: %s", got.body)
	}
	w.unprocessable(w.call(http.MethodPatch, self, dev, object{"lifecycle": object{"type": "docker", "data": object{}}}), "Lifecycle data must be empty for docker: an image brings what it needs.")
	w.unprocessable(w.call(http.MethodPatch, "/v3/apps/"+docker.GUID, dev, object{"lifecycle": object{"type": "cnb", "data": object{}}}), "Lifecycle type cannot be changed from docker to cnb. Create another app instead.")

	app = do[v3.App](w, 200, http.MethodPatch, self, dev, object{"name": "green", "lifecycle": object{"type": "cnb", "data": object{"buildpacks": nil}}, "metadata": object{"labels": object{"tier": nil, "a": "b"}}})
	if app.Name != "green" || app.Lifecycle.Type != "cnb" || len(app.Lifecycle.Data.Buildpacks) != 0 || !reflect.DeepEqual(app.Metadata.Labels, map[string]string{"a": "b"}) {
		t.Errorf("changed to %+v", app)
	}
	w.deleted(self, dev)
	w.refused(w.call(http.MethodGet, self, dev, nil), 404, 10010, "CF-ResourceNotFound", "App not found")
	events := do[v3.List[v3.Event]](w, 200, http.MethodGet, "/v3/audit_events?order_by=created_at&target_guids="+app.GUID, dev, nil)
	var kinds []string
	for _, e := range events.Resources {
		kinds = append(kinds, e.Type)
	}
	if got := strings.Join(kinds, " "); got != "audit.app.create audit.app.update audit.app.delete-request" {
		t.Errorf("the trail: %s", got)
	}
}

func TestAppsAreListed(t *testing.T) {
	w := newWorld(t)
	org, space, dev := w.place()
	other := w.space(org, "other")
	for i, name := range []string{"c", "a,b", "b"} {
		app := w.app(space, name)
		do[v3.App](w, 200, http.MethodPatch, "/v3/apps/"+app.GUID, w.admin, object{"metadata": object{"labels": object{"n": fmt.Sprint(i)}}})
	}
	hidden := w.app(other, "hidden")
	for query, want := range map[string]string{
		"":                                      "c a,b b",
		"?order_by=name":                        "a,b b c",
		"?names=a%252Cb,b":                      "a,b b",
		"?space_guids=" + other.GUID:            "",
		"?guids=" + hidden.GUID:                 "",
		"?organization_guids=" + org.GUID:       "c a,b b",
		"?stacks=proa&lifecycle_type=buildpack": "c a,b b",
		"?lifecycle_type=docker":                "",
		"?label_selector=n%3D1":                 "a,b",
	} {
		list := do[v3.List[v3.App]](w, 200, http.MethodGet, "/v3/apps"+query, dev, nil)
		var names []string
		for _, a := range list.Resources {
			names = append(names, a.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	list := do[v3.List[v3.App]](w, 200, http.MethodGet, "/v3/apps?include=space,space.organization", dev, nil)
	if list.Included == nil || len(list.Included.Spaces) != 1 || len(list.Included.Organizations) != 1 {
		t.Errorf("included %+v", list.Included)
	}
	if got := w.call(http.MethodGet, "/v3/apps?include=colour", dev, nil); got.status != 400 {
		t.Errorf("an unknown include: %d %s", got.status, got.body)
	}
}

func TestAppStartsStopsAndRestarts(t *testing.T) {
	w := newWorld(t)
	_, space, dev := w.place()
	app := w.app(space, "blue")
	self := "/v3/apps/" + app.GUID
	w.unprocessable(w.call(http.MethodPost, self+"/actions/start", dev, nil), "Assign a droplet before starting this app.")
	w.refused(w.call(http.MethodGet, self+"/droplets/current", dev, nil), 404, 10010, "CF-ResourceNotFound", "Droplet not found")
	w.refused(w.call(http.MethodGet, self+"/relationships/current_droplet", dev, nil), 404, 10010, "CF-ResourceNotFound", "Droplet not found")

	theirs := w.staged(w.app(space, "green"), platform.Droplet{})
	const wrong = "Unable to assign current droplet. Ensure the droplet exists and belongs to this app."
	w.unprocessable(w.call(http.MethodPatch, self+"/relationships/current_droplet", dev, to(theirs)), wrong)
	w.unprocessable(w.call(http.MethodPatch, self+"/relationships/current_droplet", dev, to("none")), wrong)
	droplet := w.staged(app, platform.Droplet{Stack: "proa", Processes: []platform.DropletProcess{{Type: "web", Command: "serve"}, {Type: "worker", Command: "bash", Args: []string{"-c", "work --fast"}}},
		Buildpacks: []platform.DropletBuildpack{{ID: "proa/go", Version: "1.2"}}})
	got := do[v3.CurrentDroplet](w, 200, http.MethodPatch, self+"/relationships/current_droplet", dev, to(droplet))
	if got.Data.GUID != droplet || do[v3.CurrentDroplet](w, 200, http.MethodGet, self+"/relationships/current_droplet", dev, nil).Data.GUID != droplet {
		t.Errorf("assigned %+v", got)
	}
	current := do[v3.Droplet](w, 200, http.MethodGet, self+"/droplets/current", dev, nil)
	if current.GUID != droplet || current.Buildpacks[0].Name != "proa/go" || current.ProcessTypes["worker"] != "work --fast" || *current.Stack != "proa" || current.Image != nil {
		t.Errorf("current %+v", current)
	}
	if list := do[v3.List[v3.Process]](w, 200, http.MethodGet, self+"/processes?types=worker", dev, nil); len(list.Resources) != 1 || list.Resources[0].Instances != 0 {
		t.Errorf("a droplet brings its processes: %+v", list)
	}
	if worker := do[v3.Process](w, 200, http.MethodGet, self+"/processes/worker", dev, nil); worker.Command == nil || *worker.Command != "work --fast" {
		t.Errorf("a process shows the command of its droplet: %+v", worker)
	}

	if app = do[v3.App](w, 200, http.MethodPost, self+"/actions/start", dev, nil); app.State != "STARTED" {
		t.Errorf("started: %+v", app)
	}
	releases := func() (n int) {
		must(t, w.pool.QueryRow(t.Context(), `select count(*) from releases where process_guid = $1`, app.GUID).Scan(&n))
		return n
	}
	do[v3.App](w, 200, http.MethodPost, self+"/actions/start", dev, nil)
	if releases() != 1 {
		t.Errorf("an app that runs is left alone: %d releases", releases())
	}
	do[v3.App](w, 200, http.MethodPost, self+"/actions/restart", dev, nil)
	if app = do[v3.App](w, 200, http.MethodPost, self+"/actions/stop", dev, nil); app.State != "STOPPED" || releases() != 2 {
		t.Errorf("stopped: %+v, %d releases", app, releases())
	}
	w.unprocessable(w.call(http.MethodDelete, "/v3/droplets/"+droplet, dev, nil), "The droplet is the one its app starts with. Assign another first, then delete it.")
}

func TestAppEnvironment(t *testing.T) {
	w := newWorld(t)
	org, space, dev := w.place()
	app := w.app(space, "blue")
	self := "/v3/apps/" + app.GUID
	set := do[v3.Variables](w, 200, http.MethodPatch, self+"/environment_variables", dev, object{"var": object{"A": "1", "B": "2"}})
	if *set.Var["A"] != "1" || *set.Var["B"] != "2" {
		t.Errorf("set %v", set)
	}
	set = do[v3.Variables](w, 200, http.MethodPatch, self+"/environment_variables", dev, object{"var": object{"A": nil, "C": "x"}})
	if len(set.Var) != 2 || set.Var["A"] != nil || *do[v3.Variables](w, 200, http.MethodGet, self+"/environment_variables", dev, nil).Var["C"] != "x" {
		t.Errorf("changed to %v", set)
	}
	env := do[v3.AppEnv](w, 200, http.MethodGet, self+"/env", dev, nil)
	about, _ := env.Application["VCAP_APPLICATION"].(map[string]any)
	if !reflect.DeepEqual(env.Variables, map[string]string{"B": "2", "C": "x"}) || env.System["VCAP_SERVICES"] == nil || env.Running == nil || env.Staging == nil ||
		about["application_id"] != app.GUID || about["organization_name"] != org.Name || about["cf_api"] != w.url || about["space_name"] != space.Name {
		t.Errorf("the environment: %+v", env)
	}
	for body, detail := range map[string]string{
		`{"var":{"VCAP_X":"1"}}`: `Environment variables that begin with VCAP_ are set by the platform: rename "VCAP_X".`,
		`{"var":{"PORT":"1"}}`:   "The platform sets PORT to where requests arrive. Read it in the app instead of setting it.",
		`{"var":{"A":1}}`:        "Non-string value in environment variable for key 'A', value '1'",
		`{}`:                     "Var must be an object: variables by name, null for those to take away.",
	} {
		w.unprocessable(w.call(http.MethodPatch, self+"/environment_variables", dev, body), detail)
	}
	var stored []byte
	must(t, w.pool.QueryRow(t.Context(), `select env from apps where guid = $1`, app.GUID).Scan(&stored))
	if strings.Contains(string(stored), "x") && strings.Contains(string(stored), `"C"`) {
		t.Error("variables are stored as they are")
	}
}

func TestAppFeatures(t *testing.T) {
	w := newWorld(t, func(s *api.Server) { s.Offer.SSH.Address = "ssh.example.org:22" })
	_, space, dev := w.place()
	app := w.app(space, "blue")
	self := "/v3/apps/" + app.GUID
	if list := do[v3.List[v3.Feature]](w, 200, http.MethodGet, self+"/features", dev, nil); len(list.Resources) != 4 || list.Pagination.TotalResults != 4 {
		t.Errorf("got %+v", list)
	}
	files := self + "/features/service-binding-k8s"
	for _, on := range []bool{false, true, false} { // off at first
		if f := do[v3.Feature](w, 200, http.MethodGet, files, dev, nil); f.Enabled != on {
			t.Errorf("got %+v", f)
		}
		if f := do[v3.Feature](w, 200, http.MethodPatch, files, dev, object{"enabled": !on}); f.Enabled == on {
			t.Errorf("got %+v", f)
		}
	}
	if !do[v3.SSHEnabled](w, 200, http.MethodGet, self+"/ssh_enabled", dev, nil).Enabled || !do[v3.Feature](w, 200, http.MethodGet, self+"/features/revisions", dev, nil).Enabled {
		t.Error("ssh and revisions are on at first")
	}
	if f := do[v3.Feature](w, 200, http.MethodPatch, self+"/features/ssh", dev, object{"enabled": false}); f.Enabled {
		t.Errorf("got %+v", f)
	}
	if got := do[v3.SSHEnabled](w, 200, http.MethodGet, self+"/ssh_enabled", dev, nil); got.Enabled || got.Reason != "Disabled for app" {
		t.Errorf("got %+v", got)
	}
	do[v3.Feature](w, 200, http.MethodPatch, "/v3/spaces/"+space.GUID+"/features/ssh", w.admin, object{"enabled": false})
	if got := do[v3.SSHEnabled](w, 200, http.MethodGet, self+"/ssh_enabled", dev, nil); got.Reason != "Disabled for space space" {
		t.Errorf("got %+v", got)
	}
	w.unprocessable(w.call(http.MethodPatch, self+"/features/revisions", dev, object{"enabled": false}), "Revisions cannot be switched off: they are how an app goes back to what it was, and they cost nothing.")
	w.unprocessable(w.call(http.MethodPatch, self+"/features/ssh", dev, object{}), "Enabled must be a boolean")
	for _, method := range []string{http.MethodGet, http.MethodPatch} {
		w.refused(w.call(method, self+"/features/magic", dev, object{"enabled": true}), 404, 10010, "CF-ResourceNotFound", "Feature not found")
	}
	w.give("auditor", platform.SpaceAuditor, v3.Organization{Resource: v3.Resource{GUID: do[v3.Space](w, 200, http.MethodGet, "/v3/spaces/"+space.GUID, w.admin, nil).Relationships["organization"].GUID()}}, space)
	for who, want := range map[string]v3.AppPermissions{dev: {Basic: true, Sensitive: true}, w.token("auditor"): {Basic: true}} {
		if got := do[v3.AppPermissions](w, 200, http.MethodGet, self+"/permissions", who, nil); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// What the command-line client asks for even where there is nothing.
func TestEmptyLists(t *testing.T) {
	w := newWorld(t)
	_, space, dev := w.place()
	app := w.app(space, "blue")
	for _, path := range []string{"/v3/apps/" + app.GUID + "/routes", "/v3/apps/" + app.GUID + "/tasks?per_page=5000", "/v3/apps/" + app.GUID + "/revisions?order_by=-created_at&versions=1&per_page=2&page=1",
		"/v3/apps/" + app.GUID + "/revisions/deployed", "/v3/apps/" + app.GUID + "/sidecars", "/v3/apps/" + app.GUID + "/packages", "/v3/apps/" + app.GUID + "/droplets?current=true", "/v3/apps/" + app.GUID + "/builds",
		"/v3/deployments?app_guids=" + app.GUID + "&status_values=ACTIVE&order_by=-created_at&per_page=1&page=1",
		"/v3/routes?app_guids=" + app.GUID, "/v3/routes?domain_guids=d&hosts=&paths=&ports=1&per_page=1&page=1"} {
		got := do[v3.List[any]](w, 200, http.MethodGet, path, dev, nil)
		if got.Resources == nil || len(got.Resources) != 0 {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

// TestAppNotices: an app asks that its developers are told, where that is possible.
func TestAppNotices(t *testing.T) {
	const none = "Notifications are not available here, because this installation knows no notification service. Ask its operator to set PROA_NOTIFY_URL."
	const on = "applications: [{name: blue, features: {notifications: true}}]"
	w := newWorld(t)
	_, space, dev := w.place()
	self := "/v3/apps/" + w.app(space, "blue").GUID + "/features/notifications"
	w.unprocessable(w.call(http.MethodPatch, self, dev, object{"enabled": true}), none)
	if job := w.apply(space, dev, on); job.State != "FAILED" || len(job.Errors) != 1 || job.Errors[0].Detail != "For application 'blue': "+none {
		t.Errorf("got %+v", job)
	}
	w.applied(space, dev, "applications: [{name: blue, features: {notifications: false}}]")
	if f := do[v3.Feature](w, 200, http.MethodPatch, self, dev, object{"enabled": false}); f.Enabled || f.Name != "notifications" {
		t.Errorf("got %+v", f)
	}

	w = newWorld(t, func(s *api.Server) { s.Offer.Notify = &url.URL{Scheme: "https", Host: "notify.example.org"} })
	_, space, dev = w.place()
	app := w.app(space, "blue")
	self = "/v3/apps/" + app.GUID + "/features/notifications"
	for _, on := range []bool{false, true, false} { // off at first
		if f := do[v3.Feature](w, 200, http.MethodGet, self, dev, nil); f.Enabled != on {
			t.Errorf("got %+v", f)
		}
		if f := do[v3.Feature](w, 200, http.MethodPatch, self, dev, object{"enabled": !on}); f.Enabled == on {
			t.Errorf("got %+v", f)
		}
	}
	w.applied(space, dev, "applications: [{name: blue, features: {notifications: false}}]")
	w.applied(space, dev, on)
	if f := do[v3.Feature](w, 200, http.MethodGet, self, dev, nil); !f.Enabled {
		t.Errorf("got %+v", f)
	}
	if got := w.call(http.MethodGet, "/v3/apps/"+app.GUID+"/manifest", dev, nil); !strings.Contains(got.body, "notifications: true") {
		t.Errorf("its manifest: %s", got.body)
	}
}
