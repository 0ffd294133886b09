package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

const cluster = "default"

// deploy asks for a deployment of an app.
func (w *world) deploy(app v3.App, token string, more object) v3.Deployment {
	w.t.Helper()
	body := object{"relationships": object{"app": to(app.GUID)}}
	maps.Copy(body, more)
	return do[v3.Deployment](w, 201, http.MethodPost, "/v3/deployments", token, body)
}

func (w *world) status(d v3.Deployment) string {
	w.t.Helper()
	got := do[v3.Deployment](w, 200, http.MethodGet, "/v3/deployments/"+d.GUID, w.admin, nil)
	return got.Status.Value + " " + got.Status.Reason
}

// A controller that does what one does, on a cluster where everything is ready at once.
type controller struct {
	*world
	seen   []platform.Seen
	broken int // the version from which on nothing becomes ready, if not 0
}

// roll makes so many passes.
func (c *controller) roll(passes int) {
	c.t.Helper()
	for range passes {
		wanted, err := c.store.Wanted(c.t.Context(), cluster)
		must(c.t, err)
		now, progress := platform.Roll(wanted, c.seen)
		for _, p := range progress {
			must(c.t, c.store.AdvanceDeployment(c.t.Context(), p))
		}
		c.seen = nil
		for _, n := range now {
			s := platform.Seen{Namespace: n.Release.Namespace, Name: n.Release.GUID, Release: n.Release.GUID, Process: n.Release.ProcessGUID, Count: n.Instances}
			for i := range n.Instances {
				if c.broken > 0 && n.Release.Version >= c.broken {
					s.Instances = append(s.Instances, platform.Instance{Index: i, State: platform.InstanceStarting, Details: "it does not start"})
					continue
				}
				s.Instances = append(s.Instances, platform.Instance{Index: i, State: platform.InstanceRunning, Ready: true})
			}
			c.seen = append(c.seen, s)
		}
		must(c.t, c.store.RecordSeen(c.t.Context(), cluster, c.seen))
	}
}

// wanted tells which versions of an app's web process are wanted, the one to run with a star.
func (w *world) wanted(app v3.App) string {
	w.t.Helper()
	all, err := w.store.Wanted(w.t.Context(), cluster)
	must(w.t, err)
	var versions []string
	for _, one := range all {
		if one.Release.ProcessGUID == app.GUID {
			versions = append(versions, fmt.Sprint(one.Release.Version, map[bool]string{false: "*"}[one.Draining]))
		}
	}
	slices.Sort(versions)
	return strings.Join(versions, " ")
}

func (w *world) eventTypes(app v3.App) []string {
	w.t.Helper()
	var types []string
	for _, e := range do[v3.List[v3.Event]](w, 200, http.MethodGet, "/v3/audit_events?target_guids="+app.GUID, w.admin, nil).Resources {
		types = append(types, e.Type)
	}
	return types
}

// running is an app that was started with a droplet.
func (w *world) running(space v3.Space) v3.App {
	w.t.Helper()
	app := w.startable(space, "shop", platform.Droplet{})
	return do[v3.App](w, 200, http.MethodPost, "/v3/apps/"+app.GUID+"/actions/start", w.admin, nil)
}

func TestRollingDeployment(t *testing.T) {
	w := newWorld(t)
	_, space, dev := w.place()
	app := w.running(space)
	c := &controller{world: w}
	c.roll(1)
	first := do[v3.App](w, 200, http.MethodGet, "/v3/apps/"+app.GUID+"/droplets/current", dev, nil).GUID
	second := w.staged(app, platform.Droplet{})
	// As the command-line client sends it: nulls for what is not set.
	d := w.deploy(app, dev, object{"strategy": "rolling", "droplet": object{"guid": second},
		"options": object{"max_in_flight": 2, "web_instances": 3, "memory_in_mb": nil, "disk_in_mb": nil, "log_rate_limit_in_bytes_per_second": nil}})
	if d.Status.Value != "ACTIVE" || d.Status.Reason != "DEPLOYING" || d.Strategy != "rolling" || d.Options.MaxInFlight != 2 || *d.Options.WebInstances != 3 || d.Droplet.GUID != second || d.Previous.GUID != first ||
		len(d.NewProcesses) != 1 || d.NewProcesses[0] != (v3.DeploymentProcess{GUID: app.GUID, Type: "web"}) || d.Revision == nil || d.Revision.Version != 2 || d.Links["cancel"] == nil || d.Links["continue"] != nil || d.Status.Canary != nil {
		t.Errorf("the deployment is %+v", d)
	}
	if got := w.wanted(app); got != "1 2*" {
		t.Errorf("wanted are %s", got)
	}
	if p := do[v3.Process](w, 200, http.MethodGet, "/v3/processes/"+app.GUID, dev, nil); p.Instances != 3 {
		t.Errorf("there should be %d", p.Instances)
	}
	c.roll(2) // two in place of none, as three were asked for
	stats := do[v3.Stats](w, 200, http.MethodGet, "/v3/processes/"+app.GUID+"/stats", dev, nil)
	if got := w.status(d); got != "ACTIVE DEPLOYING" || len(stats.Resources) != 3 {
		t.Errorf("it is %s with %+v", got, stats)
	}
	c.roll(4)
	if got := w.status(d); got != "FINALIZED DEPLOYED" || w.wanted(app) != "2*" {
		t.Errorf("it is %s, wanted are %s", got, w.wanted(app))
	}
	if got := do[v3.CurrentDroplet](w, 200, http.MethodGet, "/v3/apps/"+app.GUID+"/relationships/current_droplet", dev, nil); got.Data.GUID != second {
		t.Errorf("the droplet is %+v", got)
	}
	w.unprocessable(w.call(http.MethodPost, "/v3/deployments/"+d.GUID+"/actions/cancel", dev, nil), "Cannot cancel a DEPLOYED deployment")
	w.unprocessable(w.call(http.MethodPost, "/v3/deployments/"+d.GUID+"/actions/continue", dev, nil), "Cannot continue a deployment with status: FINALIZED and reason: DEPLOYED")
	for query, n := range map[string]int{"status_values=ACTIVE": 0, "status_values=FINALIZED": 1, "status_reasons=DEPLOYED,CANCELED": 1, "states=CANCELED": 0, "label_selector=a=b": 0} {
		if got := do[v3.List[v3.Deployment]](w, 200, http.MethodGet, "/v3/deployments?app_guids="+app.GUID+"&order_by=-created_at&per_page=1&page=1&"+query, dev, nil); len(got.Resources) != n {
			t.Errorf("%s finds %d", query, len(got.Resources))
		}
	}
	if got := w.eventTypes(app); !slices.Contains(got, "audit.app.deployment.create") || !slices.Contains(got, "audit.app.revision.create") {
		t.Errorf("the events are %v", got)
	}
	if got := do[v3.Deployment](w, 200, http.MethodPatch, "/v3/deployments/"+d.GUID, dev, object{"metadata": object{"labels": object{"a": "b"}}}); got.Metadata.Labels["a"] != "b" {
		t.Errorf("it is noted %+v", got.Metadata)
	}
}

func TestCanaryDeployment(t *testing.T) {
	w := newWorld(t)
	_, space, dev := w.place()
	app := w.running(space)
	c := &controller{world: w}
	c.roll(1)
	do[any](w, 202, http.MethodPost, "/v3/processes/"+app.GUID+"/actions/scale", dev, object{"instances": 4})
	c.roll(1)
	d := w.deploy(app, dev, object{"strategy": "canary", "options": object{"canary": object{"steps": []object{{"instance_weight": 25}, {"instance_weight": 50}}}}})
	for step, instances := range []int{1, 2} {
		c.roll(5)
		got := do[v3.Deployment](w, 200, http.MethodGet, "/v3/deployments/"+d.GUID, dev, nil)
		if got.Status.Value != "ACTIVE" || got.Status.Reason != "PAUSED" || got.Status.Canary.Steps.Current != step+1 || got.Status.Canary.Steps.Total != 2 || got.Links["continue"] == nil {
			t.Fatalf("it is %+v", got)
		}
		if stats := do[v3.Stats](w, 200, http.MethodGet, "/v3/processes/"+app.GUID+"/stats", dev, nil); len(stats.Resources) != instances {
			t.Errorf("step %d shows %+v", step+1, stats.Resources)
		}
		do[v3.Deployment](w, 200, http.MethodPost, "/v3/deployments/"+d.GUID+"/actions/continue", dev, nil)
		w.unprocessable(w.call(http.MethodPost, "/v3/deployments/"+d.GUID+"/actions/continue", dev, nil), "Cannot continue a deployment with status: ACTIVE and reason: DEPLOYING")
	}
	c.roll(5)
	if got := w.status(d); got != "FINALIZED DEPLOYED" {
		t.Errorf("it is %s", got)
	}
	if got := w.eventTypes(app); !slices.Contains(got, "audit.app.deployment.continue") {
		t.Errorf("the events are %v", got)
	}
}

// What was before a deployment comes back with a cancel: the release, the droplet, the environment, the size.
func TestDeploymentIsCanceled(t *testing.T) {
	w := newWorld(t)
	_, space, dev := w.place()
	app := w.running(space)
	c := &controller{world: w}
	c.roll(1)
	self := "/v3/apps/" + app.GUID
	first := do[v3.App](w, 200, http.MethodGet, self+"/droplets/current", dev, nil).GUID
	second := w.staged(app, platform.Droplet{})
	d := w.deploy(app, dev, object{"droplet": object{"guid": second}, "options": object{"web_instances": 5, "memory_in_mb": 333}})
	c.roll(2)
	for range 2 {
		if got := do[v3.Deployment](w, 200, http.MethodPost, "/v3/deployments/"+d.GUID+"/actions/cancel", dev, nil); got.Status.Value != "ACTIVE" || got.Status.Reason != "CANCELING" {
			t.Fatalf("it is %+v", got.Status)
		}
		if got := w.wanted(app); got != "1* 2" {
			t.Errorf("wanted are %s", got)
		}
	}
	if got := do[v3.CurrentDroplet](w, 200, http.MethodGet, self+"/relationships/current_droplet", dev, nil); got.Data.GUID != first {
		t.Errorf("the droplet is %+v", got)
	}
	if p := do[v3.Process](w, 200, http.MethodGet, "/v3/processes/"+app.GUID, dev, nil); p.Instances != 1 || p.MemoryMB != platform.DefaultMemoryMB {
		t.Errorf("the process is %+v", p)
	}
	c.roll(3)
	if got := w.status(d); got != "FINALIZED CANCELED" || w.wanted(app) != "1*" {
		t.Errorf("it is %s, wanted are %s", got, w.wanted(app))
	}
	w.unprocessable(w.call(http.MethodPost, "/v3/deployments/"+d.GUID+"/actions/cancel", dev, nil), "Cannot cancel a CANCELED deployment")

	// A rollback changes more than the droplet.
	do[v3.Variables](w, 200, http.MethodPatch, self+"/environment_variables", dev, object{"var": object{"A": "later"}})
	do[v3.App](w, 200, http.MethodPost, self+"/actions/restart", dev, nil)
	do[v3.Sidecar](w, 201, http.MethodPost, self+"/sidecars", dev, object{"name": "new", "command": "true", "process_types": []string{"web"}})
	revisions := do[v3.List[v3.Revision]](w, 200, http.MethodGet, self+"/revisions?versions=1", dev, nil).Resources
	d = w.deploy(app, dev, object{"revision": object{"guid": revisions[0].GUID}})
	if got := do[v3.Variables](w, 200, http.MethodGet, self+"/environment_variables", dev, nil); len(got.Var) != 0 {
		t.Errorf("the environment is %+v", got)
	}
	do[v3.Deployment](w, 200, http.MethodPost, "/v3/deployments/"+d.GUID+"/actions/cancel", dev, nil)
	if got := do[v3.Variables](w, 200, http.MethodGet, self+"/environment_variables", dev, nil); got.Var["A"] == nil || *got.Var["A"] != "later" {
		t.Errorf("the environment is %+v", got)
	}
	if got := do[v3.List[v3.Sidecar]](w, 200, http.MethodGet, self+"/sidecars", dev, nil); len(got.Resources) != 1 {
		t.Errorf("the sidecars are %+v", got.Resources)
	}
}

func TestDeploymentIsSuperseded(t *testing.T) {
	w := newWorld(t)
	_, space, dev := w.place()
	app := w.running(space)
	c := &controller{world: w}
	c.roll(1)
	self := "/v3/apps/" + app.GUID
	one := w.deploy(app, dev, nil)
	two := w.deploy(app, dev, nil)
	if got := w.status(one); got != "FINALIZED SUPERSEDED" || w.wanted(app) != "1 2 3*" {
		t.Errorf("the first is %s, wanted are %s", got, w.wanted(app))
	}
	do[v3.Deployment](w, 200, http.MethodPost, "/v3/deployments/"+two.GUID+"/actions/cancel", dev, nil)
	if got := w.wanted(app); got != "1* 2 3" { // 2 has never had a ready instance
		t.Errorf("wanted are %s", got)
	}
	three := w.deploy(app, dev, nil)
	if got := w.status(two); got != "FINALIZED CANCELED" {
		t.Errorf("the second is %s", got)
	}
	do[v3.App](w, 200, http.MethodPost, self+"/actions/start", dev, nil) // it runs: nothing happens
	if got := w.status(three); got != "ACTIVE DEPLOYING" || w.wanted(app) != "1 2 3 4*" {
		t.Errorf("the third is %s, wanted are %s", got, w.wanted(app))
	}
	do[v3.App](w, 200, http.MethodPost, self+"/actions/restart", dev, nil)
	if got := w.status(three); got != "FINALIZED SUPERSEDED" || w.wanted(app) != "5*" {
		t.Errorf("the third is %s, wanted are %s", got, w.wanted(app))
	}
	four := w.deploy(app, dev, nil)
	do[v3.App](w, 200, http.MethodPost, self+"/actions/stop", dev, nil)
	if got := w.status(four); got != "FINALIZED CANCELED" || w.wanted(app) != "" {
		t.Errorf("the fourth is %s, wanted are %s", got, w.wanted(app))
	}
	five := w.deploy(app, dev, nil)
	if got := w.status(five); got != "FINALIZED DEPLOYED" || w.wanted(app) != "7*" {
		t.Errorf("the deployment of a stopped app is %s, wanted are %s", got, w.wanted(app))
	}
	// More of them than releases are kept, and none of those that drain is forgotten.
	for range 25 {
		w.deploy(app, dev, nil)
	}
	if got := len(strings.Fields(w.wanted(app))); got != 26 {
		t.Errorf("%d releases are wanted", got)
	}
	c.roll(3)
	if got := w.wanted(app); got != "32*" {
		t.Errorf("wanted are %s", got)
	}
	w.deploy(app, dev, nil)
	w.deleted(self, dev)
}

// What never worked is nothing to come back to, however many came in its place; what has worked is.
func TestCancelAfterFailures(t *testing.T) {
	w := newWorld(t)
	_, space, dev := w.place()
	app := w.running(space)
	c := &controller{world: w}
	c.roll(1)
	self := "/v3/apps/" + app.GUID
	droplet := func() string {
		t.Helper()
		return do[v3.CurrentDroplet](w, 200, http.MethodGet, self+"/relationships/current_droplet", dev, nil).Data.GUID
	}
	first := droplet()
	c.broken = 2
	w.deploy(app, dev, object{"droplet": object{"guid": w.staged(app, platform.Droplet{})}, "options": object{"web_instances": 2, "memory_in_mb": 333}})
	c.roll(3)
	do[any](w, 202, http.MethodPost, "/v3/processes/"+app.GUID+"/actions/scale", dev, object{"memory_in_mb": 444})
	d := w.deploy(app, dev, object{"droplet": object{"guid": w.staged(app, platform.Droplet{})}})
	c.roll(3)
	if got := do[v3.Deployment](w, 200, http.MethodGet, "/v3/deployments/"+d.GUID, dev, nil); got.Status.Details.Error != "it does not start" || got.Previous.GUID != first {
		t.Errorf("it is %+v after %+v", got.Status, got.Previous)
	}
	do[v3.Deployment](w, 200, http.MethodPost, "/v3/deployments/"+d.GUID+"/actions/cancel", dev, nil)
	if got := w.wanted(app); got != "1* 2 3" || droplet() != first {
		t.Errorf("wanted are %s of droplet %s", got, droplet())
	}
	if p := do[v3.Process](w, 200, http.MethodGet, "/v3/processes/"+app.GUID, dev, nil); p.Instances != 1 || p.MemoryMB != 444 {
		t.Errorf("the process is %+v", p)
	}
	c.roll(3)
	if got := do[v3.Deployment](w, 200, http.MethodGet, "/v3/deployments/"+d.GUID, dev, nil); got.Status.Reason != "CANCELED" || got.Status.Details.Error != "" {
		t.Errorf("it is %+v", got.Status)
	}

	c.broken = 5
	fourth := w.staged(app, platform.Droplet{})
	w.deploy(app, dev, object{"strategy": "canary", "droplet": object{"guid": fourth}})
	c.roll(3)
	d = w.deploy(app, dev, object{"droplet": object{"guid": w.staged(app, platform.Droplet{})}})
	c.roll(2)
	do[v3.Deployment](w, 200, http.MethodPost, "/v3/deployments/"+d.GUID+"/actions/cancel", dev, nil)
	if got := w.wanted(app); got != "1 4* 5" || droplet() != fourth {
		t.Errorf("wanted are %s of droplet %s", got, droplet())
	}
}

// What somebody changes while a deployment is under way is not the deployment's to give back.
func TestCancelKeepsWhatWasChangedMeanwhile(t *testing.T) {
	w := newWorld(t)
	_, space, dev := w.place()
	app := w.running(space)
	c := &controller{world: w}
	c.roll(1)
	self := "/v3/apps/" + app.GUID
	sidecar := func(name string) {
		t.Helper()
		do[v3.Sidecar](w, 201, http.MethodPost, self+"/sidecars", dev, object{"name": name, "command": "true", "process_types": []string{"web"}})
	}
	command := func(line string) {
		t.Helper()
		do[v3.Process](w, 200, http.MethodPatch, "/v3/processes/"+app.GUID, dev, object{"command": line})
	}
	env := func(vars object) {
		t.Helper()
		do[v3.Variables](w, 200, http.MethodPatch, self+"/environment_variables", dev, object{"var": vars})
	}
	env(object{"A": "later", "B": "later"})
	sidecar("before")
	command("later")
	do[v3.App](w, 200, http.MethodPost, self+"/actions/restart", dev, nil)
	c.roll(1)
	revision := do[v3.List[v3.Revision]](w, 200, http.MethodGet, self+"/revisions?versions=1", dev, nil).Resources[0].GUID
	d := w.deploy(app, dev, object{"strategy": "canary", "revision": object{"guid": revision}, "options": object{"web_instances": 3, "memory_in_mb": 333}})
	c.roll(3)
	env(object{"B": "mine", "MEANWHILE": "mine"})
	sidecar("meanwhile")
	command("mine")
	do[any](w, 202, http.MethodPost, "/v3/processes/"+app.GUID+"/actions/scale", dev, object{"instances": 10})
	do[v3.Deployment](w, 200, http.MethodPost, "/v3/deployments/"+d.GUID+"/actions/cancel", dev, nil)
	var got []string
	for name, value := range do[v3.Variables](w, 200, http.MethodGet, self+"/environment_variables", dev, nil).Var {
		got = append(got, name+"="+*value)
	}
	for _, s := range do[v3.List[v3.Sidecar]](w, 200, http.MethodGet, self+"/sidecars", dev, nil).Resources {
		got = append(got, s.Name)
	}
	slices.Sort(got)
	if want := []string{"A=later", "B=mine", "MEANWHILE=mine", "before", "meanwhile"}; !slices.Equal(got, want) {
		t.Errorf("the app has %v, want %v", got, want)
	}
	if p := do[v3.Process](w, 200, http.MethodGet, "/v3/processes/"+app.GUID, dev, nil); p.Instances != 10 || p.MemoryMB != platform.DefaultMemoryMB || p.Command == nil || *p.Command != "mine" {
		t.Errorf("the process is %+v", p)
	}
}

// A new port has no requests before all that run have it.
func TestPortIsPendingWhileItRolls(t *testing.T) {
	w := newWorld(t)
	_, space, dev := w.place()
	app := w.running(space)
	c := &controller{world: w}
	c.roll(1)
	domain := do[v3.List[v3.Domain]](w, 200, http.MethodGet, "/v3/domains", dev, nil).Resources[0].GUID
	route := do[v3.Route](w, 201, http.MethodPost, "/v3/routes", dev, object{"host": "shop", "relationships": object{"space": to(space.GUID), "domain": to(domain)}})
	state := func() string {
		t.Helper()
		got := do[v3.Route](w, 200, http.MethodGet, "/v3/routes/"+route.GUID, dev, nil)
		wanted, err := w.store.WantedRoutes(t.Context(), cluster)
		must(t, err)
		return fmt.Sprint(got.Destinations[0].State, " ", len(wanted))
	}
	do[any](w, 200, http.MethodPost, "/v3/routes/"+route.GUID+"/destinations", dev, object{"destinations": []object{{"app": object{"guid": app.GUID}, "port": 9090}}})
	if got := state(); got != "pending 0" {
		t.Errorf("before the deployment it is %s", got)
	}
	w.deploy(app, dev, nil)
	if got := state(); got != "pending 0" {
		t.Errorf("while it goes on it is %s", got)
	}
	c.roll(3)
	if got := state(); got != "mapped 1" {
		t.Errorf("in the end it is %s", got)
	}
	w.deploy(app, dev, nil)
	if got := state(); got != "mapped 1" {
		t.Errorf("in the next one it is %s", got)
	}
}

// A cancel is never refused, whatever became of the app meanwhile.
func TestCancelOfWhatCannotComeBack(t *testing.T) {
	w := newWorld(t)
	_, space, dev := w.place()
	app := w.running(space)
	self := "/v3/apps/" + app.GUID
	first := do[v3.App](w, 200, http.MethodGet, self+"/droplets/current", dev, nil).GUID
	second := w.staged(app, platform.Droplet{})
	d := w.deploy(app, dev, object{"droplet": object{"guid": second}, "options": object{"memory_in_mb": 4096}})
	do[v3.Sidecar](w, 201, http.MethodPost, self+"/sidecars", dev, object{"name": "big", "command": "true", "process_types": []string{"web"}, "memory_in_mb": 2048})
	w.deleted("/v3/droplets/"+first, dev)
	do[v3.Deployment](w, 200, http.MethodPost, "/v3/deployments/"+d.GUID+"/actions/cancel", dev, nil)
	if p := do[v3.Process](w, 200, http.MethodGet, "/v3/processes/"+app.GUID, dev, nil); p.MemoryMB != 4096 {
		t.Errorf("the process is %+v", p)
	}
	if got := do[v3.CurrentDroplet](w, 200, http.MethodGet, self+"/relationships/current_droplet", dev, nil); got.Data.GUID != second || w.wanted(app) != "1* 2" {
		t.Errorf("the droplet is %+v, wanted are %s", got, w.wanted(app))
	}
}

// A controller that looked at a deployment before somebody changed it does not undo that.
func TestDeploymentAdvancesOnlyAsSeen(t *testing.T) {
	w := newWorld(t)
	_, space, dev := w.place()
	app := w.running(space)
	d := w.deploy(app, dev, nil)
	wanted, err := w.store.Wanted(t.Context(), cluster)
	must(t, err)
	_, progress := platform.Roll(wanted, nil)
	do[v3.Deployment](w, 200, http.MethodPost, "/v3/deployments/"+d.GUID+"/actions/cancel", dev, nil)
	progress[0].Reached = true
	must(t, w.store.AdvanceDeployment(t.Context(), progress[0]))
	if got := w.status(d); got != "ACTIVE CANCELING" || w.wanted(app) != "1* 2" {
		t.Errorf("it is %s, wanted are %s", got, w.wanted(app))
	}
}

func TestDeploymentsThatAreRefused(t *testing.T) {
	w := newWorld(t)
	org, space, dev := w.place()
	app, bare := w.running(space), w.app(space, "bare")
	other := w.startable(space, "other", platform.Droplet{})
	foreign := do[v3.Droplet](w, 200, http.MethodGet, "/v3/apps/"+other.GUID+"/droplets/current", dev, nil).GUID
	w.give("sam", platform.SpaceSupporter, org, space)
	sam := w.token("sam")
	on := func(app v3.App, more object) object {
		body := object{"relationships": object{"app": to(app.GUID)}}
		maps.Copy(body, more)
		return body
	}
	revision := do[v3.List[v3.Revision]](w, 200, http.MethodGet, "/v3/apps/"+app.GUID+"/revisions", dev, nil).Resources[0].GUID
	for name, c := range map[string]struct {
		body any
		says string
	}{
		"no app":           {object{}, "Relationships 'relationships' must include one or more valid relationships"},
		"unknown app":      {on(v3.App{Resource: v3.Resource{GUID: "nope"}}, nil), "Invalid app. Ensure that the app exists and you have access to it."},
		"no droplet":       {on(bare, nil), "Invalid droplet. Please specify a droplet in the request or set a current droplet for the app."},
		"foreign droplet":  {on(app, object{"droplet": object{"guid": foreign}}), "Unable to assign current droplet. Ensure the droplet exists and belongs to this app."},
		"droplet and more": {on(app, object{"droplet": object{"guid": foreign}, "revision": object{"guid": revision}}), "Cannot set both fields 'droplet' and 'revision'"},
		"unknown revision": {on(app, object{"revision": object{"guid": "nope"}}), "The revision does not exist"},
		"foreign revision": {on(other, object{"revision": object{"guid": revision}}), "The revision does not exist"},
		"what runs":        {on(app, object{"revision": object{"guid": revision}}), "Unable to rollback. The code and configuration you are rolling back to is the same as the deployed revision."},
		"strategy":         {on(app, object{"strategy": "recreate"}), "Strategy 'recreate' is not a supported deployment strategy"},
		"unknown field":    {on(app, object{"strateggy": "rolling"}), "Unknown field(s): 'strateggy'"},
		"size":             {on(app, object{"options": object{"memory_in_mb": 0}}), "Memory in mb must be greater than 0"},
	} {
		t.Run(name, func(t *testing.T) {
			w.unprocessable(w.call(http.MethodPost, "/v3/deployments", dev, c.body), c.says)
		})
	}
	if got := w.call(http.MethodPost, "/v3/deployments", sam, on(app, object{"droplet": object{"guid": foreign}})); got.status != http.StatusForbidden {
		t.Errorf("a supporter deploys a droplet: %d %s", got.status, got.body)
	}
	if got := w.wanted(app); got != "1*" {
		t.Errorf("what was refused left %s", got)
	}
	w.deploy(app, sam, nil)
}
