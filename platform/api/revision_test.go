package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

func (w *world) revisions(app v3.App, query string) []v3.Revision {
	w.t.Helper()
	return do[v3.List[v3.Revision]](w, 200, http.MethodGet, "/v3/apps/"+app.GUID+"/revisions"+query, w.admin, nil).Resources
}

func TestRevisions(t *testing.T) {
	w := newWorld(t)
	org, space, dev := w.place()
	app := w.running(space)
	c := &controller{world: w}
	c.roll(1)
	self := "/v3/apps/" + app.GUID
	restart := func() { do[v3.App](w, 200, http.MethodPost, self+"/actions/restart", dev, nil) }
	restart() // unchanged: no revision
	do[v3.Variables](w, 200, http.MethodPatch, self+"/environment_variables", dev, object{"var": object{"A": "one", "B": "two"}})
	restart()
	do[v3.Process](w, 200, http.MethodPatch, "/v3/processes/"+app.GUID, dev, object{"command": "secret run"})
	do[v3.Sidecar](w, 201, http.MethodPost, self+"/sidecars", dev, object{"name": "side", "command": "true", "process_types": []string{"web"}, "memory_in_mb": 10})
	restart()
	second := w.staged(app, platform.Droplet{})
	w.deploy(app, dev, object{"droplet": object{"guid": second}})
	var got []string
	for _, r := range w.revisions(app, "?order_by=-created_at") {
		got = append(got, fmt.Sprintf("%d %s %v", r.Version, r.Description, r.Deployable))
	}
	if want := "4 New droplet deployed. true\n3 Custom start command added for 'web' process. New sidecars deployed. true\n2 New environment variables deployed. true\n1 Initial revision. true"; strings.Join(got, "\n") != want {
		t.Fatalf("the revisions are\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	if up := w.revisions(app, "/deployed"); len(up) != 2 {
		t.Errorf("%d revisions run", len(up))
	}
	c.roll(3)
	if up := w.revisions(app, "/deployed"); len(up) != 1 || up[0].Version != 4 {
		t.Errorf("what runs is %+v", up)
	}
	third := w.revisions(app, "?versions=3&per_page=2&page=1")
	if len(third) != 1 || third[0].Processes["web"].Command == nil || *third[0].Processes["web"].Command != v3.Hidden || third[0].Metadata.Labels == nil {
		t.Fatalf("the third in a list is %+v", third)
	}
	one := do[v3.Revision](w, 200, http.MethodGet, third[0].Links["self"].Href, dev, nil)
	if *one.Processes["web"].Command != "secret run" || len(one.Sidecars) != 1 || *one.Sidecars[0].MemoryMB != 10 || one.Droplet.GUID == second {
		t.Errorf("the third is %+v", one)
	}
	w.give("aud", platform.SpaceAuditor, org, space)
	if hidden := do[v3.Revision](w, 200, http.MethodGet, third[0].Links["self"].Href, w.token("aud"), nil); *hidden.Processes["web"].Command != v3.Hidden {
		t.Errorf("an auditor sees %+v", hidden)
	}
	if env := do[v3.Variables](w, 200, http.MethodGet, third[0].Links["environment_variables"].Href, dev, nil); len(env.Var) != 2 || *env.Var["A"] != "one" {
		t.Errorf("its environment is %+v", env)
	}
	if got := do[v3.Revision](w, 200, http.MethodPatch, third[0].Links["self"].Href, dev, object{"metadata": object{"annotations": object{"a": "b"}}}); got.Metadata.Annotations["a"] != "b" {
		t.Errorf("it is noted %+v", got.Metadata)
	}

	// Back to the second: its droplet, environment, commands and sidecars, but not fewer instances.
	do[any](w, 202, http.MethodPost, "/v3/processes/"+app.GUID+"/actions/scale", dev, object{"instances": 2})
	d := w.deploy(app, dev, object{"revision": object{"guid": w.revisions(app, "?versions=2")[0].GUID}})
	if d.Revision.Version != 5 || d.Droplet.GUID == second || d.Previous.GUID != second {
		t.Errorf("the deployment is %+v", d)
	}
	if r := w.revisions(app, "?versions=5"); r[0].Description != "New droplet deployed. Custom start command removed for 'web' process. New sidecars deployed. Rolled back to revision 2." {
		t.Errorf("the fifth says %q", r[0].Description)
	}
	wanted, err := w.store.Wanted(t.Context(), cluster)
	must(t, err)
	for _, one := range wanted {
		if r := one.Release; !one.Draining && (r.Command != "" || len(r.Sidecars) != 0 || r.Env["A"] != "one" || one.Instances != 2) {
			t.Errorf("the release is %+v", one)
		}
	}
	c.roll(4)
	w.unprocessable(w.call(http.MethodPost, "/v3/deployments", dev, object{"relationships": object{"app": to(app.GUID)}, "revision": object{"guid": w.revisions(app, "?versions=2")[0].GUID}}),
		"Unable to rollback. The code and configuration you are rolling back to is the same as the deployed revision.")

	// Without its droplet nobody goes back to it.
	w.deleted("/v3/droplets/"+second, dev)
	for query, n := range map[string]int{"?deployable=false": 1, "?deployable=true": 4} {
		if got := w.revisions(app, query); len(got) != n {
			t.Errorf("%s finds %d", query, len(got))
		}
	}
	w.unprocessable(w.call(http.MethodPost, "/v3/deployments", dev, object{"relationships": object{"app": to(app.GUID)}, "revision": object{"guid": w.revisions(app, "?versions=4")[0].GUID}}),
		"Unable to deploy this revision, the droplet for this revision no longer exists.")
	do[v3.App](w, 200, http.MethodPost, self+"/actions/stop", dev, nil)
	if up := w.revisions(app, "/deployed"); len(up) != 0 {
		t.Errorf("of a stopped app %+v run", up)
	}
}

// The newest hundred are kept.
func TestRevisionsAreForgotten(t *testing.T) {
	w := newWorld(t)
	_, space, dev := w.place()
	app := w.running(space)
	for n := range 101 {
		do[v3.Variables](w, 200, http.MethodPatch, "/v3/apps/"+app.GUID+"/environment_variables", dev, object{"var": object{"N": fmt.Sprint(n)}})
		do[v3.App](w, 200, http.MethodPost, "/v3/apps/"+app.GUID+"/actions/restart", dev, nil)
	}
	if got := w.revisions(app, "?per_page=200"); len(got) != 100 || got[0].Version != 3 {
		t.Errorf("there are %d, and the first is %+v", len(got), got[0])
	}
}
