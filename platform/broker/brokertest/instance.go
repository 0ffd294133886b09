package brokertest

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Instance is one that the broker has.
type Instance struct {
	ID         string
	ServiceID  string
	PlanID     string
	OrgGUID    string
	SpaceGUID  string
	Context    map[string]any
	Parameters map[string]any
	Version    string // of its maintenance
	Ready      bool   // false: it is being made

	plans []string // that it has or had: who missed the answer to an update still names the one before
}

// Instances are what it has, by id.
func (b *Broker) Instances() []Instance {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []Instance
	for _, i := range b.instances {
		all = append(all, *i)
	}
	slices.SortFunc(all, func(x, y Instance) int { return strings.Compare(x.ID, y.ID) })
	return all
}

// Lose forgets an instance and its bindings, as when somebody deleted them behind our back.
func (b *Broker) Lose(instanceID string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.instances, instanceID)
	maps.DeleteFunc(b.bindings, func(_ string, x *Binding) bool { return x.InstanceID == instanceID })
	maps.DeleteFunc(b.running, func(key string, _ *operation) bool { return strings.HasPrefix(key, instanceID+"/") })
}

// request is the body of a call that makes or changes something.
type request struct {
	ServiceID   string         `json:"service_id"`
	PlanID      string         `json:"plan_id"`
	OrgGUID     string         `json:"organization_guid"`
	SpaceGUID   string         `json:"space_guid"`
	Context     map[string]any `json:"context"`
	Parameters  map[string]any `json:"parameters"`
	AppGUID     string         `json:"app_guid"`
	Maintenance *struct {
		Version string `json:"version"`
	} `json:"maintenance_info"`
	Resource struct {
		AppGUID string `json:"app_guid"`
	} `json:"bind_resource"`
	Previous struct {
		ServiceID string `json:"service_id"`
		PlanID    string `json:"plan_id"`
	} `json:"previous_values"`
}

func (r request) app() string {
	if r.Resource.AppGUID != "" {
		return r.Resource.AppGUID
	}
	return r.AppGUID
}

// of is what counts in a request, to know it again.
func (r request) of() string {
	text, err := json.Marshal([]any{r.ServiceID, r.PlanID, r.OrgGUID, r.SpaceGUID, r.Parameters, r.app(), r.Maintenance})
	if err != nil {
		panic("brokertest: " + err.Error())
	}
	return string(text)
}

// read refuses what is not JSON and what lacks an offering.
func read(asked *Asked) (r request, no reply, bad bool) {
	if !strings.HasPrefix(asked.Header.Get("Content-Type"), "application/json") {
		return r, badRequest("The Content-Type must be application/json."), true
	}
	if err := json.NewDecoder(bytes.NewReader(asked.Body)).Decode(&r); err != nil {
		return r, badRequest("The body cannot be read: " + err.Error()), true
	}
	if r.ServiceID == "" {
		return r, badRequest("service_id is missing."), true
	}
	return r, reply{}, false
}

// outdated refuses a version that is not that of the plan.
func outdated(r request, p plan) (reply, bool) {
	if r.Maintenance != nil && (p.Maintenance == nil || p.Maintenance.Version != r.Maintenance.Version) {
		return refusal(http.StatusUnprocessableEntity, "MaintenanceInfoConflict", "The plan has another version by now."), true
	}
	return reply{}, false
}

func (b *Broker) provision(asked *Asked, act Act) reply {
	r, no, bad := read(asked)
	if bad {
		return no
	}
	_, plan, known := b.catalog.find(r.ServiceID, r.PlanID)
	switch {
	case !known:
		return badRequest("There is no such service or plan.")
	case r.OrgGUID == "" || r.SpaceGUID == "":
		return badRequest("organization_guid or space_guid is missing.")
	}
	if no, bad := outdated(r, plan); bad {
		return no
	}
	board := map[string]any{"dashboard_url": "https://dashboard.example.org/" + asked.InstanceID}
	if old := b.instances[asked.InstanceID]; old != nil {
		return b.provisionAgain(asked, old, r, board)
	}
	made := &Instance{ID: asked.InstanceID, ServiceID: r.ServiceID, PlanID: r.PlanID, OrgGUID: r.OrgGUID, SpaceGUID: r.SpaceGUID, Context: r.Context, Parameters: r.Parameters, plans: []string{r.PlanID}}
	if r.Maintenance != nil {
		made.Version = r.Maintenance.Version
	}
	return b.do(task{
		asked: asked, act: act, of: r.of(), planID: r.PlanID, more: board,
		begin: func() { b.instances[made.ID] = made },
		finish: func(done bool) {
			if made.Ready = done; done {
				b.instances[made.ID] = made
			} else {
				delete(b.instances, made.ID)
			}
		},
		answer: func() reply { return say(http.StatusCreated, board) },
	})
}

func (b *Broker) provisionAgain(asked *Asked, old *Instance, r request, board map[string]any) reply {
	o := b.running[key(asked)]
	same := old.ServiceID == r.ServiceID && old.PlanID == r.PlanID && old.OrgGUID == r.OrgGUID && old.SpaceGUID == r.SpaceGUID && sameJSON(old.Parameters, r.Parameters)
	switch {
	case !same:
		return refusal(http.StatusConflict, "", "There is an instance of this id with other attributes.")
	case o.busy() && o.call != Provision:
		return busy()
	case o.busy():
		return accepted(o, board)
	}
	return say(http.StatusOK, board)
}

func sameJSON(x, y map[string]any) bool {
	one, err := json.Marshal(x)
	two, err2 := json.Marshal(y)
	return err == nil && err2 == nil && (bytes.Equal(one, two) || len(x) == 0 && len(y) == 0)
}

func (b *Broker) update(asked *Asked, act Act) reply {
	r, no, bad := read(asked)
	if bad {
		return no
	}
	is, o, of := b.instances[asked.InstanceID], b.running[key(asked)], r.of()
	switch {
	case is == nil:
		return refusal(http.StatusNotFound, "", "There is no such instance.")
	case is.ServiceID != r.ServiceID:
		return badRequest("The instance is of another service.")
	case o.busy() && o.call == Update && o.of == of:
		return accepted(o, nil)
	case o.busy():
		return busy()
	}
	if r.PlanID == "" {
		r.PlanID = is.PlanID
	}
	if no, bad := b.changes(is, r); bad {
		return no
	}
	return b.do(task{
		asked: asked, act: act, of: of, planID: is.PlanID,
		finish: func(done bool) {
			if done {
				is.change(r)
			}
		},
		answer: func() reply { return say(http.StatusOK, map[string]any{}) },
	})
}

// changes refuses a plan that the instance cannot have.
func (b *Broker) changes(is *Instance, r request) (reply, bool) {
	_, to, known := b.catalog.find(r.ServiceID, r.PlanID)
	if r.PlanID != is.PlanID {
		s, from, _ := b.catalog.find(is.ServiceID, is.PlanID)
		allowed := s.PlanUpdateable
		if from.PlanUpdateable != nil {
			allowed = *from.PlanUpdateable
		}
		switch {
		case !known:
			return badRequest("There is no such plan."), true
		case !allowed:
			return refusal(http.StatusUnprocessableEntity, "", "The plan of an instance cannot be changed."), true
		case r.Previous.PlanID != "" && r.Previous.PlanID != is.PlanID:
			return badRequest("The plan was another before."), true
		}
	}
	return outdated(r, to)
}

func (i *Instance) change(r request) {
	if r.PlanID != i.PlanID {
		i.PlanID, i.plans = r.PlanID, append(i.plans, r.PlanID)
	}
	if r.Parameters != nil {
		i.Parameters = r.Parameters
	}
	if r.Context != nil {
		i.Context = r.Context
	}
	if r.Maintenance != nil {
		i.Version = r.Maintenance.Version
	}
}

func (b *Broker) deprovision(asked *Asked, act Act) reply {
	is, o := b.instances[asked.InstanceID], b.running[key(asked)]
	if no, bad := misnamed(asked, is); bad {
		return no
	}
	switch {
	case is == nil:
		return say(http.StatusGone, map[string]any{})
	case o.busy() && o.call == Deprovision:
		return accepted(o, nil)
	case o.busy() && o.call == Update:
		return busy()
	case b.bound(is.ID):
		return refusal(http.StatusUnprocessableEntity, "", "The instance still has bindings.")
	}
	return b.do(task{
		asked: asked, act: act, planID: is.PlanID,
		finish: func(done bool) {
			if done {
				delete(b.instances, is.ID)
			}
		},
		answer: func() reply { return say(http.StatusOK, map[string]any{}) },
	})
}

// misnamed refuses a deletion that does not name what it is of.
func misnamed(asked *Asked, is *Instance) (reply, bool) {
	serviceID, planID := asked.Query.Get("service_id"), asked.Query.Get("plan_id")
	switch {
	case serviceID == "" || planID == "":
		return badRequest("service_id or plan_id is missing."), true
	case is != nil && (is.ServiceID != serviceID || !slices.Contains(is.plans, planID)):
		return badRequest("The instance is of another service or plan."), true
	}
	return reply{}, false
}

func (b *Broker) bound(instanceID string) bool {
	for _, x := range b.bindings {
		if x.InstanceID == instanceID {
			return true
		}
	}
	return false
}

func (b *Broker) getInstance(asked *Asked) reply {
	is, o := b.instances[asked.InstanceID], b.running[key(asked)]
	switch {
	case is == nil || !is.Ready || !b.catalog.services[is.ServiceID].InstancesRetrievable:
		return refusal(http.StatusNotFound, "", "There is no such instance.")
	case o.busy() && o.call == Update:
		return busy()
	}
	return say(http.StatusOK, map[string]any{
		"service_id": is.ServiceID, "plan_id": is.PlanID, "dashboard_url": "https://dashboard.example.org/" + is.ID, "parameters": orEmpty(is.Parameters),
	})
}

func orEmpty(parameters map[string]any) map[string]any {
	if parameters == nil {
		return map[string]any{}
	}
	return parameters
}
