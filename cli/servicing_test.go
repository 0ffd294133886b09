package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	v3 "github.com/proa-dev/proa/platform/v3"
)

// servicing is the part of the API about services: postgres with a free plan and one that costs, cache of a broker for one space, and the app
// shop. A job goes through the states that the test sets, and what it is about happens when it is complete.
type servicing struct {
	*world
	brokers   []v3.ServiceBroker
	offerings []v3.ServiceOffering
	plans     []v3.ServicePlan
	instances []v3.ServiceInstance
	bindings  []v3.ServiceBinding
	visible   map[string][]v3.Named // organizations, by plan
	shared    []v3.Ref
	states    []string // of the next job; complete at once without them
	fails     string   // why the next job fails
	said      string   // what the broker says while a job is polled
	jobs      map[string]*standingJob
	bodies    []string // of the changes, in order
	queries   []string // of the requests that changed nothing
	last      int
}

type standingJob struct {
	states []string
	fails  string
	then   func(failed bool)
}

func record(guid string) v3.Resource { return v3.Resource{GUID: guid} }

func to(pairs ...string) map[string]v3.ToOne {
	all := map[string]v3.ToOne{}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = v3.One(pairs[i+1])
	}
	return all
}

func (p *servicing) serve(w *world) map[string]http.HandlerFunc {
	p.world, p.jobs, p.visible = w, map[string]*standingJob{}, map[string][]v3.Named{}
	p.brokers = []v3.ServiceBroker{
		{Resource: record("br-1"), Name: "pg", URL: "https://pg.example.com", State: "AVAILABLE"},
		{Resource: record("br-2"), Name: "team", URL: "https://team.example.com", State: "SYNCHRONIZATION_FAILED", Relationships: to("space", "s-1")},
	}
	p.offerings = []v3.ServiceOffering{
		{Resource: record("of-1"), Name: "postgres", Description: "Real databases", Relationships: to("service_broker", "br-1"), DocumentationURL: "https://docs.example.com"},
		{Resource: record("of-2"), Name: "cache", Description: "Forgets", Relationships: to("service_broker", "br-2")},
	}
	p.plans = []v3.ServicePlan{
		{Resource: record("pl-1"), Name: "small", Description: "One at a time", Free: true, Available: true, VisibilityType: "public", Relationships: to("service_offering", "of-1")},
		{Resource: record("pl-2"), Name: "large", Description: "Many", Available: true, VisibilityType: "admin", Relationships: to("service_offering", "of-1"),
			Costs: []v3.Cost{{Amount: 99.5, Currency: "usd", Unit: "MONTHLY"}, {Amount: 0.1, Currency: "eur", Unit: "1GB of traffic"}}, Maintenance: &v3.MaintenanceInfo{Version: "2.0.0", Description: "Takes a minute."}},
		{Resource: record("pl-3"), Name: "tiny", Available: false, VisibilityType: "space", Relationships: to("service_offering", "of-2")},
	}
	all := map[string]http.HandlerFunc{
		"GET /v3/service_plans": p.listPlans, "GET /v3/service_plans/{guid}": p.getPlan,
		"GET /v3/service_plans/{guid}/visibility": p.getVisibility, "POST /v3/service_plans/{guid}/visibility": p.setVisibility,
		"PATCH /v3/service_plans/{guid}/visibility": p.setVisibility, "DELETE /v3/service_plans/{guid}/visibility/{org}": p.setVisibility,
		"GET /v3/service_offerings": p.listOfferings,
		"GET /v3/service_brokers":   p.listBrokers, "POST /v3/service_brokers": p.createBroker,
		"PATCH /v3/service_brokers/{guid}": p.changeBroker, "DELETE /v3/service_brokers/{guid}": p.deleteBroker,
		"GET /v3/service_instances": p.listInstances, "POST /v3/service_instances": p.createInstance,
		"PATCH /v3/service_instances/{guid}": p.changeInstance, "DELETE /v3/service_instances/{guid}": p.deleteInstance,
		"GET /v3/service_instances/{guid}/parameters":                             p.getParameters,
		"GET /v3/service_instances/{guid}/relationships/shared_spaces":            p.getShared,
		"GET /v3/service_instances/{guid}/relationships/shared_spaces/{usage}":    p.getUsage,
		"POST /v3/service_instances/{guid}/relationships/shared_spaces":           p.share,
		"DELETE /v3/service_instances/{guid}/relationships/shared_spaces/{space}": p.unshare,
		"GET /v3/service_credential_bindings":                                     p.listBindings, "POST /v3/service_credential_bindings": p.createBinding,
		"DELETE /v3/service_credential_bindings/{guid}": p.deleteBinding, "GET /v3/service_credential_bindings/{guid}/details": p.getDetails,
		"GET /v3/jobs/{guid}": p.getJob,
		"GET /v3/apps":        p.listApps, "GET /v3/spaces": p.listSpaces,
	}
	for pattern, reply := range all {
		all[pattern] = p.noted(reply)
	}
	return all
}

// noted keeps what was asked.
func (p *servicing) noted(next http.HandlerFunc) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			p.t.Error(err)
		}
		if r.Method == http.MethodGet {
			p.queries = append(p.queries, r.URL.RequestURI())
		} else {
			p.bodies = append(p.bodies, r.Method+" "+r.URL.RequestURI()+" "+string(body))
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		next(rw, r)
	}
}

// lately is the last change that was asked for.
func (p *servicing) lately() string {
	if len(p.bodies) == 0 {
		return ""
	}
	return p.bodies[len(p.bodies)-1]
}

// aside are records that can be asked for beside a list, whole or some fields of them.
type aside struct {
	under   string // the key in included
	records any
	fields  string // those that can be asked for; empty: only whole
}

// answer gives the records that the query names and what it asks for beside them, and refuses what the list does not know.
func answer[T any](p *servicing, rw http.ResponseWriter, r *http.Request, all []T, filters map[string]func(T) string, asides map[string]aside) {
	included := map[string]any{}
	q := r.URL.Query()
	for name := range q {
		beside, known := asides[name]
		if name == "include" {
			beside, known = asides["include="+q.Get(name)]
		}
		if filters[name] == nil && !known && !slices.Contains([]string{"per_page", "page", "order_by"}, name) {
			p.refuse(rw, 400, "CF-BadQueryParameter", "The query parameter is invalid: Unknown query parameter(s): '"+name+"'")
			return
		}
		if !known {
			continue
		}
		var err error
		if included[beside.under], err = beside.pick(q.Get(name)); err != nil {
			p.refuse(rw, 400, "CF-BadQueryParameter", err.Error())
			return
		}
	}
	found := []T{}
	for _, one := range all {
		fits := true
		for name, value := range filters {
			fits = fits && (!q.Has(name) || slices.Contains(strings.Split(q.Get(name), ","), strings.ReplaceAll(value(one), ",", "%2C")))
		}
		if fits {
			found = append(found, one)
		}
	}
	if q.Get("per_page") == "1" {
		found = found[:min(1, len(found))]
	}
	p.say(rw, http.StatusOK, map[string]any{"pagination": map[string]any{"next": nil}, "resources": found, "included": included})
}

// pick leaves the fields that were asked for.
func (a aside) pick(asked string) (any, error) {
	if a.fields == "" {
		return a.records, nil
	}
	text, err := json.Marshal(a.records)
	if err != nil {
		return nil, err
	}
	var records []map[string]any
	if err := json.Unmarshal(text, &records); err != nil {
		return nil, err
	}
	for i, all := range records {
		part := map[string]any{}
		for field := range strings.SplitSeq(asked, ",") {
			if !slices.Contains(strings.Split(a.fields, ","), field) {
				return nil, fmt.Errorf("fields valid keys are: '%s'", a.fields)
			}
			if of, is := strings.CutPrefix(field, "relationships."); is {
				part["relationships"] = map[string]any{of: all["relationships"].(map[string]any)[of]}
			} else {
				part[field] = all[field]
			}
		}
		records[i] = part
	}
	return records, nil
}

func (p *servicing) offeringOf(plan v3.ServicePlan) v3.ServiceOffering {
	i := slices.IndexFunc(p.offerings, func(o v3.ServiceOffering) bool { return o.GUID == plan.Relationships["service_offering"].GUID() })
	return p.offerings[i]
}

func (p *servicing) brokerName(o v3.ServiceOffering) string {
	i := slices.IndexFunc(p.brokers, func(b v3.ServiceBroker) bool { return b.GUID == o.Relationships["service_broker"].GUID() })
	return p.brokers[i].Name
}

func (p *servicing) listPlans(rw http.ResponseWriter, r *http.Request) {
	type plan = v3.ServicePlan
	answer(p, rw, r, p.plans, map[string]func(plan) string{
		"names": func(o plan) string { return o.Name }, "available": func(o plan) string { return fmt.Sprint(o.Available) },
		"service_offering_names": func(o plan) string { return p.offeringOf(o).Name }, "service_offering_guids": func(o plan) string { return p.offeringOf(o).GUID },
		"service_broker_names": func(o plan) string { return p.brokerName(p.offeringOf(o)) }, "space_guids": func(plan) string { return "s-1" },
		"organization_guids": func(plan) string { return "o-1" },
	}, map[string]aside{
		"include=service_offering": {"service_offerings", p.offerings, ""}, "fields[service_offering.service_broker]": {"service_brokers", p.brokers, "guid,name"}})
}

func (p *servicing) listOfferings(rw http.ResponseWriter, r *http.Request) {
	answer(p, rw, r, p.offerings, map[string]func(v3.ServiceOffering) string{
		"names": func(o v3.ServiceOffering) string { return o.Name }, "service_broker_names": p.brokerName,
	}, map[string]aside{"fields[service_broker]": {"service_brokers", p.brokers, "guid,name"}})
}

func (p *servicing) listBrokers(rw http.ResponseWriter, r *http.Request) {
	answer(p, rw, r, p.brokers, map[string]func(v3.ServiceBroker) string{"names": func(b v3.ServiceBroker) string { return b.Name }}, nil)
}

func (p *servicing) listInstances(rw http.ResponseWriter, r *http.Request) {
	orgs := []Place{{GUID: "o-1", Name: "research"}}
	answer(p, rw, r, p.instances, map[string]func(v3.ServiceInstance) string{
		"names": func(i v3.ServiceInstance) string { return i.Name }, "space_guids": func(v3.ServiceInstance) string { return "s-1" },
	}, map[string]aside{
		"fields[service_plan]":                                 {"service_plans", p.plans, "guid,name,relationships.service_offering"},
		"fields[service_plan.service_offering]":                {"service_offerings", p.offerings, "guid,name,description,tags,documentation_url,relationships.service_broker"},
		"fields[service_plan.service_offering.service_broker]": {"service_brokers", p.brokers, "guid,name"},
		"fields[space]":                                        {"spaces", p.spaces(), "guid,name,relationships.organization"},
		"fields[space.organization]":                           {"organizations", orgs, "guid,name"}})
}

func (p *servicing) listBindings(rw http.ResponseWriter, r *http.Request) {
	type binding = v3.ServiceBinding
	answer(p, rw, r, p.bindings, map[string]func(binding) string{
		"type": func(b binding) string { return b.Type }, "names": func(b binding) string { return as(b.Name) },
		"service_instance_guids": func(b binding) string { return b.Relationships["service_instance"].GUID() }, "app_guids": func(b binding) string { return b.Relationships["app"].GUID() },
	}, map[string]aside{"include=app": {"apps", p.apps(), ""}})
}

func (p *servicing) apps() []v3.App {
	return []v3.App{{Resource: record("a-1"), Name: "shop", State: "STARTED", Relationships: to("space", "s-1")}, {Resource: record("a-2"), Name: "far", Relationships: to("space", "s-2")}}
}

func (p *servicing) listApps(rw http.ResponseWriter, r *http.Request) {
	answer(p, rw, r, p.apps(), map[string]func(v3.App) string{
		"names": func(a v3.App) string { return a.Name }, "space_guids": func(a v3.App) string { return a.Relationships["space"].GUID() }}, nil)
}

func (p *servicing) spaces() []v3.Space {
	return []v3.Space{{Resource: record("s-1"), Name: "dev", Relationships: to("organization", "o-1")}, {Resource: record("s-2"), Name: "staging", Relationships: to("organization", "o-1")}}
}

func (p *servicing) listSpaces(rw http.ResponseWriter, r *http.Request) {
	answer(p, rw, r, p.spaces(), map[string]func(v3.Space) string{"names": func(s v3.Space) string { return s.Name }, "guids": func(s v3.Space) string { return s.GUID },
		"organization_guids": func(s v3.Space) string { return s.Relationships["organization"].GUID() }}, nil)
}

// begin makes a job of what happens when it is complete, or has failed.
func (p *servicing) begin(rw http.ResponseWriter, then func(failed bool)) {
	p.last++
	guid := fmt.Sprintf("job-%d", p.last)
	p.jobs[guid] = &standingJob{append(slices.Clone(p.states), "COMPLETE"), p.fails, then}
	rw.Header().Set("Location", p.URL+"/v3/jobs/"+guid)
	rw.WriteHeader(http.StatusAccepted)
}

func (p *servicing) getJob(rw http.ResponseWriter, r *http.Request) {
	j := p.jobs[r.PathValue("guid")]
	if j == nil {
		p.refuse(rw, 404, "CF-ResourceNotFound", "Job not found")
		return
	}
	reply := v3.Job{Resource: record(r.PathValue("guid")), State: j.states[0]}
	if j.states = j.states[1:]; reply.State == "COMPLETE" {
		delete(p.jobs, r.PathValue("guid"))
		j.then(j.fails != "")
		if j.fails != "" {
			reply.State, reply.Errors = "FAILED", []v3.Error{{Code: 10009, Title: "UnableToPerform", Detail: j.fails}}
		}
	}
	p.say(rw, http.StatusOK, reply)
}

// takes reads a body in which nothing may stand that the API does not know.
func (p *servicing) takes(rw http.ResponseWriter, r *http.Request, into any) bool {
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		p.refuse(rw, 422, "CF-UnprocessableEntity", "Unknown field(s): "+err.Error())
		return false
	}
	return true
}

func (p *servicing) id(letters string) v3.Resource {
	p.last++
	now := v3.Time(time.Unix(1_800_000_000+int64(p.last), 0))
	return v3.Resource{GUID: fmt.Sprintf("%s-%d", letters, 100+p.last), CreatedAt: now, UpdatedAt: now}
}

func ended(op *v3.LastOperation, failed bool, why string) {
	op.State, op.Description = "succeeded", ""
	if failed {
		op.State, op.Description = "failed", why
	}
}

func (p *servicing) instance(guid string) *v3.ServiceInstance {
	for i := range p.instances {
		if p.instances[i].GUID == guid {
			return &p.instances[i]
		}
	}
	return nil
}

func (p *servicing) createInstance(rw http.ResponseWriter, r *http.Request) {
	var ask v3.ServiceInstanceCreate
	if !p.takes(rw, r, &ask) {
		return
	}
	i := v3.ServiceInstance{Resource: p.id("si"), Name: ask.Name, Type: ask.Type, Tags: ask.Tags, Relationships: to("space", ask.Relationships.Space.GUID()),
		LastOperation: v3.LastOperation{Type: "create", State: "in progress", Description: p.said}}
	i.LastOperation.CreatedAt, i.LastOperation.UpdatedAt = i.CreatedAt, i.UpdatedAt
	switch {
	case ask.Relationships.Space.GUID() != "s-1":
		p.refuse(rw, 422, "CF-UnprocessableEntity", "Invalid space. Ensure that the space exists and you have access to it.")
	case slices.ContainsFunc(p.instances, func(o v3.ServiceInstance) bool { return o.Name == ask.Name }):
		p.refuse(rw, 422, "CF-UnprocessableEntity", "The service instance name is taken: "+ask.Name+".")
	case ask.Type == v3.UserProvidedInstance:
		ended(&i.LastOperation, false, "")
		p.instances = append(p.instances, i)
		p.say(rw, http.StatusCreated, i)
	case ask.Relationships.Plan == nil:
		p.refuse(rw, 422, "CF-UnprocessableEntity", "Relationships 'service_plan' is missing.")
	default:
		i.Relationships["service_plan"] = *ask.Relationships.Plan
		i.UpgradeAvailable = new(ask.Relationships.Plan.GUID() == "pl-2")
		p.instances = append(p.instances, i)
		why := p.fails
		p.begin(rw, func(failed bool) { ended(&p.instance(i.GUID).LastOperation, failed, why) })
	}
}

func (p *servicing) changeInstance(rw http.ResponseWriter, r *http.Request) {
	var ask v3.ServiceInstanceChange
	i := p.instance(r.PathValue("guid"))
	if i == nil || !p.takes(rw, r, &ask) {
		p.refuse(rw, 404, "CF-ResourceNotFound", "Service instance not found")
		return
	}
	if ask.Name != nil {
		i.Name = *ask.Name
	}
	if ask.Tags != nil {
		i.Tags = *ask.Tags
	}
	if ask.Parameters == nil && ask.Relationships == nil && ask.MaintenanceInfo == nil {
		p.say(rw, http.StatusOK, i)
		return
	}
	i.LastOperation = v3.LastOperation{Type: "update", State: "in progress", Description: p.said}
	guid, why := i.GUID, p.fails
	p.begin(rw, func(failed bool) {
		i := p.instance(guid)
		if ended(&i.LastOperation, failed, why); !failed && ask.Relationships != nil {
			i.Relationships["service_plan"] = *ask.Relationships.Plan
			i.UpgradeAvailable = new(true)
		}
		if !failed && ask.MaintenanceInfo != nil {
			i.UpgradeAvailable = new(false)
		}
	})
}

func (p *servicing) deleteInstance(rw http.ResponseWriter, r *http.Request) {
	i := p.instance(r.PathValue("guid"))
	if i == nil {
		p.refuse(rw, 404, "CF-ResourceNotFound", "Service instance not found")
		return
	}
	if i.Type == v3.ManagedInstance && pending(i.LastOperation) && r.URL.RawQuery == "" {
		p.refuse(rw, 409, "CF-AsyncServiceInstanceOperationInProgress", "An operation for service instance "+i.Name+" is in progress.")
		return
	}
	guid, why := i.GUID, p.fails
	gone := func() {
		p.instances = slices.DeleteFunc(p.instances, func(o v3.ServiceInstance) bool { return o.GUID == guid })
		p.bindings = slices.DeleteFunc(p.bindings, func(b v3.ServiceBinding) bool { return b.Relationships["service_instance"].GUID() == guid })
	}
	if i.Type == v3.UserProvidedInstance || r.URL.RawQuery == "purge=true" {
		gone()
		rw.WriteHeader(http.StatusNoContent)
		return
	}
	i.LastOperation = v3.LastOperation{Type: "delete", State: "in progress"}
	p.begin(rw, func(failed bool) {
		if failed {
			ended(&p.instance(guid).LastOperation, failed, why)
			return
		}
		gone()
	})
}

func (p *servicing) getParameters(rw http.ResponseWriter, r *http.Request) {
	if i := p.instance(r.PathValue("guid")); i == nil || i.Relationships["service_plan"].GUID() != "pl-1" {
		p.refuse(rw, 400, "CF-ServiceFetchInstanceParametersNotSupported", "This service does not support fetching service instance parameters.")
		return
	}
	p.say(rw, http.StatusOK, map[string]any{"size": 2})
}

func (p *servicing) createBinding(rw http.ResponseWriter, r *http.Request) {
	var ask v3.ServiceBindingCreate
	if !p.takes(rw, r, &ask) {
		return
	}
	i := p.instance(ask.Relationships.Instance.GUID())
	app := as(ask.Relationships.App).GUID()
	same := func(b v3.ServiceBinding) bool {
		return b.Type == ask.Type && b.Relationships["service_instance"].GUID() == i.GUID && b.Relationships["app"].GUID() == app && (app != "" || as(b.Name) == as(ask.Name))
	}
	switch {
	case i == nil || ask.Type == "app" && app == "":
		p.refuse(rw, 422, "CF-UnprocessableEntity", "The service instance or the app could not be found.")
		return
	case ask.Type == "key" && i.Type == v3.UserProvidedInstance:
		p.refuse(rw, 422, "CF-UnprocessableEntity", "Service credential bindings of type 'key' are not supported for user-provided service instances.")
		return
	case ask.Type == "key" && slices.ContainsFunc(p.bindings, same):
		p.refuse(rw, 422, "CF-UnprocessableEntity", "The binding name is invalid. Key binding names must be unique. The service instance already has a key binding with name '"+as(ask.Name)+"'.")
		return
	case ask.Type == "app" && ask.Strategy != "multiple" && slices.ContainsFunc(p.bindings, same):
		p.refuse(rw, 422, "CF-UnprocessableEntity", "The app is already bound to the service instance.")
		return
	}
	b := v3.ServiceBinding{Resource: p.id("sb"), Name: ask.Name, Type: ask.Type, Relationships: to("service_instance", i.GUID, "app", app), LastOperation: v3.LastOperation{Type: "create", State: "in progress"}}
	why, at := p.fails, len(p.bindings)
	if i.Type == v3.UserProvidedInstance {
		ended(&b.LastOperation, false, "")
		p.bindings = append(p.bindings, b)
		p.say(rw, http.StatusCreated, b)
		return
	}
	p.bindings = append(p.bindings, b)
	p.begin(rw, func(failed bool) { ended(&p.bindings[at].LastOperation, failed, why) })
}

func (p *servicing) deleteBinding(rw http.ResponseWriter, r *http.Request) {
	p.begin(rw, func(failed bool) {
		if !failed {
			p.bindings = slices.DeleteFunc(p.bindings, func(b v3.ServiceBinding) bool { return b.GUID == r.PathValue("guid") })
		}
	})
}

func (p *servicing) getDetails(rw http.ResponseWriter, _ *http.Request) {
	p.say(rw, http.StatusOK, map[string]any{"credentials": map[string]any{"uri": "postgres://u:p@db.example.com:5432/d?a=1&b=2", "port": json.Number("12345678901234567890")}})
}
