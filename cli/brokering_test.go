package cli

import (
	"net/http"
	"slices"

	v3 "github.com/proa-dev/proa/platform/v3"
)

func (p *servicing) getPlan(rw http.ResponseWriter, r *http.Request) {
	i := slices.IndexFunc(p.plans, func(o v3.ServicePlan) bool { return o.GUID == r.PathValue("guid") })
	p.say(rw, http.StatusOK, p.plans[i])
}

func (p *servicing) getVisibility(rw http.ResponseWriter, r *http.Request) {
	i := slices.IndexFunc(p.plans, func(o v3.ServicePlan) bool { return o.GUID == r.PathValue("guid") })
	v := v3.PlanVisibility{Type: p.plans[i].VisibilityType, Organizations: p.visible[r.PathValue("guid")]}
	if v.Type == "space" {
		v.Space = &v3.Named{GUID: "s-1", Name: "dev"}
	}
	p.say(rw, http.StatusOK, v)
}

func (p *servicing) setVisibility(rw http.ResponseWriter, r *http.Request) {
	guid := r.PathValue("guid")
	i := slices.IndexFunc(p.plans, func(o v3.ServicePlan) bool { return o.GUID == guid })
	if r.Method == http.MethodDelete {
		p.visible[guid] = slices.DeleteFunc(p.visible[guid], func(o v3.Named) bool { return o.GUID == r.PathValue("org") })
		rw.WriteHeader(http.StatusNoContent)
		return
	}
	var ask v3.PlanVisibility
	if !p.takes(rw, r, &ask) {
		return
	}
	p.plans[i].VisibilityType = ask.Type
	for _, o := range ask.Organizations {
		p.visible[guid] = append(p.visible[guid], v3.Named{GUID: o.GUID, Name: "research"})
	}
	p.say(rw, http.StatusOK, ask)
}

func (p *servicing) createBroker(rw http.ResponseWriter, r *http.Request) {
	var ask v3.ServiceBrokerCreate
	if !p.takes(rw, r, &ask) {
		return
	}
	if slices.ContainsFunc(p.brokers, func(b v3.ServiceBroker) bool { return b.Name == ask.Name }) {
		p.refuse(rw, 422, "CF-UnprocessableEntity", "Name must be unique")
		return
	}
	b := v3.ServiceBroker{Resource: p.id("br"), Name: ask.Name, URL: ask.URL, State: "AVAILABLE"}
	if ask.Relationships != nil {
		b.Relationships = to("space", ask.Relationships.Space.GUID())
	}
	p.begin(rw, func(bool) { p.brokers = append(p.brokers, b) })
}

func (p *servicing) changeBroker(rw http.ResponseWriter, r *http.Request) {
	var ask v3.ServiceBrokerChange
	i := slices.IndexFunc(p.brokers, func(b v3.ServiceBroker) bool { return b.GUID == r.PathValue("guid") })
	if i < 0 || !p.takes(rw, r, &ask) {
		p.refuse(rw, 404, "CF-ResourceNotFound", "Service broker not found")
		return
	}
	p.begin(rw, func(bool) {
		if ask.Name != nil {
			p.brokers[i].Name = *ask.Name
		}
		if ask.URL != nil {
			p.brokers[i].URL = *ask.URL
		}
	})
}

func (p *servicing) deleteBroker(rw http.ResponseWriter, r *http.Request) {
	if len(p.instances) > 0 {
		p.refuse(rw, 422, "CF-UnprocessableEntity", "Can not remove brokers that have associated service instances: pg")
		return
	}
	p.begin(rw, func(bool) {
		p.brokers = slices.DeleteFunc(p.brokers, func(b v3.ServiceBroker) bool { return b.GUID == r.PathValue("guid") })
	})
}

func (p *servicing) getShared(rw http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("fields[space]") != "guid,name,relationships.organization" || q.Get("fields[space.organization]") != "guid,name" {
		p.refuse(rw, 400, "CF-BadQueryParameter", "The fields are not those.")
		return
	}
	p.say(rw, http.StatusOK, map[string]any{"data": append([]v3.Ref{}, p.shared...), "included": map[string]any{"spaces": p.spaces(), "organizations": []Place{{GUID: "o-1", Name: "research"}}}})
}

func (p *servicing) getUsage(rw http.ResponseWriter, _ *http.Request) {
	p.say(rw, http.StatusOK, v3.SharedUsage{UsageSummary: []v3.SpaceUsage{{Space: v3.Ref{GUID: "s-2"}, BoundAppCount: 3}}})
}

func (p *servicing) share(rw http.ResponseWriter, r *http.Request) {
	var ask v3.ToMany
	if p.takes(rw, r, &ask) {
		p.shared = append(p.shared, ask.Data...)
		p.say(rw, http.StatusOK, map[string]any{"data": p.shared})
	}
}

func (p *servicing) unshare(rw http.ResponseWriter, r *http.Request) {
	p.shared = slices.DeleteFunc(p.shared, func(o v3.Ref) bool { return o.GUID == r.PathValue("space") })
	rw.WriteHeader(http.StatusNoContent)
}
