package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	v3 "github.com/proa-dev/proa/platform/v3"
)

// deployments is the part of the API about deployments and revisions of the app shop. Each look at a deployment finds it one step
// further: two of deploying, then done, or paused once if it is a canary.
type deployments struct {
	*world
	asked   string // the body of the last request for one
	current *v3.Deployment
	looks   int
	stuck   bool
	ends    string // what becomes of it, instead of DEPLOYED
	staged  bool   // the newest package has been staged already
}

var revisionsOfShop = []v3.Revision{
	{Resource: v3.Resource{GUID: "v-3"}, Version: 3, Description: "New droplet deployed.", Deployable: true},
	{Resource: v3.Resource{GUID: "v-2"}, Version: 2, Description: "Initial revision.", Deployable: true},
	{Resource: v3.Resource{GUID: "v-1"}, Version: 1, Description: "Initial revision.", Deployable: false},
}

func (d *deployments) serve(w *world) map[string]http.HandlerFunc {
	d.world = w
	w.manifest = "applied"
	return map[string]http.HandlerFunc{
		"POST /v3/deployments":                       d.create,
		"GET /v3/deployments":                        d.listActive,
		"GET /v3/deployments/{guid}":                 d.look,
		"POST /v3/deployments/{guid}/actions/{what}": d.steer,
		"GET /v3/processes/n-1/stats": func(rw http.ResponseWriter, _ *http.Request) {
			w.say(rw, http.StatusOK, map[string]any{"resources": []any{map[string]any{"type": "web", "index": 0, "state": map[bool]string{true: "RUNNING", false: "STARTING"}[d.looks > 1]}}})
		},
		"GET /v3/packages": func(rw http.ResponseWriter, _ *http.Request) {
			w.list(rw, map[string]any{"guid": "k-1", "state": "READY"})
		},
		"GET /v3/packages/k-1/droplets": func(rw http.ResponseWriter, _ *http.Request) {
			if d.staged {
				w.list(rw, map[string]any{"guid": "d-0", "state": "STAGED"})
				return
			}
			w.list(rw)
		},
		"GET /v3/apps/a-1/features/revisions": func(rw http.ResponseWriter, _ *http.Request) {
			w.say(rw, http.StatusOK, v3.Feature{Name: "revisions", Enabled: true})
		},
		"GET /v3/apps/a-1/revisions":          d.listRevisions,
		"GET /v3/apps/a-1/revisions/deployed": func(rw http.ResponseWriter, _ *http.Request) { w.list(rw, revisionsOfShop[0]) },
		"GET /v3/revisions/v-2/environment_variables": func(rw http.ResponseWriter, _ *http.Request) {
			w.say(rw, http.StatusOK, map[string]any{"var": map[string]string{"COLOUR": "green"}})
		},
	}
}

func (d *deployments) create(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		d.t.Error(err)
	}
	d.asked = string(body)
	dec := json.NewDecoder(strings.NewReader(d.asked))
	dec.DisallowUnknownFields()
	var ask v3.DeploymentCreate
	if err := dec.Decode(&ask); err != nil {
		d.refuse(rw, 422, "CF-UnprocessableEntity", "Unknown field(s): "+err.Error())
		return
	}
	known := func(r v3.Revision) bool { return ask.Revision != nil && r.GUID == ask.Revision.GUID && r.Deployable }
	switch {
	case ask.Relationships.App.GUID() != "a-1":
		d.refuse(rw, 422, "CF-UnprocessableEntity", "Unable to use app. Ensure that the app exists and you have access to it.")
	case ask.Strategy != "rolling" && ask.Strategy != "canary":
		d.refuse(rw, 422, "CF-UnprocessableEntity", fmt.Sprintf("Strategy '%s' is not a supported deployment strategy", ask.Strategy))
	case ask.Droplet != nil && ask.Revision != nil:
		d.refuse(rw, 422, "CF-UnprocessableEntity", "Cannot set both fields 'droplet' and 'revision'")
	case ask.Revision != nil && !slices.ContainsFunc(revisionsOfShop, known):
		d.refuse(rw, 422, "CF-UnprocessableEntity", "The revision does not exist")
	case ask.Strategy != "canary" && ask.Options != nil && ask.Options.Canary != nil:
		d.refuse(rw, 422, "CF-UnprocessableEntity", "Canary options are only valid for Canary deployments")
	case ask.Options != nil && strings.Count(d.asked, `"web_instances"`)+strings.Count(d.asked, `"log_rate_limit_in_bytes_per_second"`) != 2:
		d.refuse(rw, 422, "CF-UnprocessableEntity", "All sizes are wanted, or null.")
	default:
		d.looks = 0
		d.current = &v3.Deployment{Resource: v3.Resource{GUID: "y-1"}, Strategy: ask.Strategy, Status: v3.DeploymentStatus{Value: "ACTIVE", Reason: "DEPLOYING"},
			NewProcesses: []v3.DeploymentProcess{{GUID: "n-1", Type: "web"}}}
		d.say(rw, http.StatusCreated, d.current)
	}
}

func (d *deployments) look(rw http.ResponseWriter, _ *http.Request) {
	d.looks++
	switch c := d.current; {
	case c.Status.Reason == "PAUSED" || d.stuck || d.looks < 3:
	case c.Strategy == "canary" && d.looks == 3:
		c.Status.Reason = "PAUSED"
	default:
		c.Status = v3.DeploymentStatus{Value: "FINALIZED", Reason: firstOf(d.ends, "DEPLOYED")}
	}
	d.say(rw, http.StatusOK, d.current)
}

func (d *deployments) listActive(rw http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if d.current == nil || d.current.Status.Value != "ACTIVE" || q.Get("app_guids") != "a-1" || q.Get("status_values") != "ACTIVE" {
		d.list(rw)
		return
	}
	d.list(rw, d.current)
}

func (d *deployments) steer(rw http.ResponseWriter, r *http.Request) {
	if body, err := io.ReadAll(r.Body); err != nil || len(body) > 0 {
		d.refuse(rw, 400, "CF-MessageParseError", "A body is not wanted.")
		return
	}
	switch status := &d.current.Status; {
	case r.PathValue("what") == "continue" && status.Reason == "PAUSED":
		status.Reason = "DEPLOYING"
	case r.PathValue("what") == "cancel" && status.Value == "ACTIVE":
		status.Reason = "CANCELING"
	default:
		d.refuse(rw, 422, "CF-UnprocessableEntity", fmt.Sprintf("Cannot %s a deployment with status: %s and reason: %s", r.PathValue("what"), status.Value, status.Reason))
		return
	}
	d.say(rw, http.StatusOK, d.current)
}

func (d *deployments) listRevisions(rw http.ResponseWriter, r *http.Request) {
	var found []any
	for _, one := range revisionsOfShop {
		if v := r.URL.Query().Get("versions"); v == "" || v == fmt.Sprint(one.Version) {
			one.Links = v3.Links{"environment_variables": {Href: d.URL + "/v3/revisions/" + one.GUID + "/environment_variables"}}
			found = append(found, one)
		}
	}
	d.list(rw, found...)
}
