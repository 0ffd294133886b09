package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

func names[T any](list v3.List[T], of func(T) string) []string {
	found := []string{}
	for _, one := range list.Resources {
		found = append(found, of(one))
	}
	slices.Sort(found)
	return found
}

// TestMarketplace asks as `cf marketplace` does: one request, with the offerings, and of the brokers no more than their names.
func TestMarketplace(t *testing.T) {
	w := newWorld(t)
	f := w.fixture(1, "none")
	w.exec(`update service_plans set catalog_metadata = '{"costs":[{"amount":{"usd":9.5,"eur":8},"unit":"MONTHLY"}]}', max_polling = 90, maintenance_info = '{"version":"1.2.3"}',
		schemas = '{"service_instance":{"create":{"parameters":{"type":"object"}}}}' where guid = $1`, ofPlan(f))
	org := v3.Organization{Resource: v3.Resource{GUID: f.org.GUID}}
	w.give("dev", platform.SpaceDeveloper, org, v3.Space{Resource: v3.Resource{GUID: f.space.GUID}})
	dev := w.token("dev")

	got := w.call(http.MethodGet, "/v3/service_plans?include=service_offering&fields[service_offering.service_broker]=name,guid&per_page=5000&available=true&space_guids="+f.space.GUID+"&service_offering_names=sql", dev, nil)
	if got.status != 200 || strings.Contains(got.body, "http://broker.test") {
		t.Fatalf("%d %s", got.status, got.body)
	}
	list := do[v3.List[v3.ServicePlan]](w, 200, http.MethodGet, "/v3/service_plans?include=service_offering,space.organization&fields[service_offering.service_broker]=name,guid&available=true&space_guids="+f.space.GUID+"&service_offering_names=sql", dev, nil)
	if found := names(list, func(p v3.ServicePlan) string { return p.GUID }); !slices.Equal(found, []string{ofPlan(f), onPlan(f)}) {
		t.Fatalf("plans %q", found)
	}
	if in := list.Included; in == nil || len(in.ServiceOfferings) != 2 || len(in.ServiceBrokers) != 2 || in.ServiceBrokers[0].Name == "" || len(in.Spaces) != 1 || len(in.Organizations) != 1 {
		t.Errorf("included %+v", list.Included)
	}
	p := do[v3.ServicePlan](w, 200, http.MethodGet, "/v3/service_plans/"+ofPlan(f), dev, nil)
	if !slices.Equal(p.Costs, []v3.Cost{{Amount: 8, Currency: "EUR", Unit: "MONTHLY"}, {Amount: 9.5, Currency: "USD", Unit: "MONTHLY"}}) || p.Maintenance.Version != "1.2.3" ||
		*p.BrokerCatalog.MaxPolling != 90 || p.Relationships["service_offering"].GUID() != ofOffering(f) || p.VisibilityType != "organization" {
		t.Errorf("the plan is %+v", p)
	}
	const wantSchemas = `{"service_instance":{"create":{"parameters":{"type":"object"}},"update":{"parameters":{}}},"service_binding":{"create":{"parameters":{}}}}`
	if string(p.Schemas) != wantSchemas {
		t.Errorf("schemas %s", p.Schemas)
	}
	one := do[struct {
		v3.ServicePlan
		Included v3.Included `json:"included"`
	}](w, 200, http.MethodGet, "/v3/service_plans/"+onPlan(f)+"?include=service_offering&fields[service_offering.service_broker]=guid", dev, nil)
	if len(one.Included.ServiceOfferings) != 1 || len(one.Included.ServiceBrokers) != 1 || one.Included.ServiceBrokers[0].GUID != onBroker(f) || one.Included.ServiceBrokers[0].Name != "" {
		t.Errorf("included %+v", one.Included)
	}
	w.exec(`update service_plans set visibility = 'admin' where guid = $1`, ofPlan(f)) // of a broker for all: no space is not one of theirs
	if got := w.call(http.MethodGet, "/v3/service_plans/"+ofPlan(f), dev, nil); got.status != 404 {
		t.Errorf("a plan that only administrators see: %d %s", got.status, got.body)
	}
}

func TestServiceQueries(t *testing.T) {
	w := newWorld(t)
	f := w.fixture(1, "none")
	other := w.org("other")
	away := w.space(other, "away")
	w.exec(`insert into service_instances (guid, space_guid, name, plan_guid) values ('i', $1, 'i', $2)`, f.space.GUID, onPlan(f))
	w.exec(`update service_plans set active = false, name = 'old' where guid = $1`, ofPlan(f))
	w.exec(`update service_plans set visibility = 'public' where guid = $1`, "p-"+f.app)
	w.exec(`update service_offerings set active = false where guid = $1`, ofOffering(f))
	all := []string{onPlan(f), ofPlan(f), "p-" + f.app}
	for query, want := range map[string][]string{
		"":               all,
		"available=true": {onPlan(f), "p-" + f.app}, "available=false": {ofPlan(f)}, "names=old": {ofPlan(f)}, "broker_catalog_ids=plan": {onPlan(f), ofPlan(f)},
		"service_broker_guids=" + onBroker(f): {onPlan(f)}, "service_broker_names=all-" + onBroker(f): {ofPlan(f)}, "service_offering_guids=" + onOffering(f): {onPlan(f)},
		"service_offering_names=sql": {onPlan(f), ofPlan(f)}, "service_instance_guids=i": {onPlan(f)}, "guids=" + onPlan(f): {onPlan(f)},
		"space_guids=" + f.space.GUID: all, "organization_guids=" + f.org.GUID: all, "space_guids=" + away.GUID: {"p-" + f.app}, "organization_guids=" + other.GUID: {"p-" + f.app},
		"per_page=1&order_by=name&names=small": {onPlan(f)},
	} {
		list := do[v3.List[v3.ServicePlan]](w, 200, http.MethodGet, "/v3/service_plans?"+query, w.admin, nil)
		slices.Sort(want)
		if found := names(list, func(p v3.ServicePlan) string { return p.GUID }); !slices.Equal(found, want) {
			t.Errorf("plans with %q: %q, want %q", query, found, want)
		}
	}
	offerings := []string{onOffering(f), ofOffering(f), "o-" + f.app}
	for query, want := range map[string][]string{
		"": offerings, "names=sql": {onOffering(f), ofOffering(f)}, "available=false": {ofOffering(f)}, "service_broker_guids=" + onBroker(f): {onOffering(f)}, "service_broker_names=b-" + f.app: {"o-" + f.app},
		"space_guids=" + f.space.GUID: offerings, "organization_guids=" + other.GUID: {"o-" + f.app}, "order_by=-name&fields[service_broker]=name,guid": offerings,
	} {
		list := do[v3.List[v3.ServiceOffering]](w, 200, http.MethodGet, "/v3/service_offerings?"+query, w.admin, nil)
		slices.Sort(want)
		if found := names(list, func(o v3.ServiceOffering) string { return o.GUID }); !slices.Equal(found, want) {
			t.Errorf("offerings with %q: %q, want %q", query, found, want)
		}
		if asked := strings.Contains(query, "fields"); asked != (list.Included != nil) || asked && len(list.Included.ServiceBrokers) != 3 {
			t.Errorf("included with %q: %+v", query, list.Included)
		}
	}
	for query, want := range map[string]string{
		"/v3/service_plans?available=maybe":                                      "Available only accepts values 'true' or 'false'",
		"/v3/service_plans?include=service_broker":                               "Invalid included resource: 'service_broker'",
		"/v3/service_plans?fields[service_broker]=name":                          "Fields valid resources are: 'service_offering.service_broker'",
		"/v3/service_plans?fields=name":                                          "Fields valid resources are",
		"/v3/service_offerings?fields[service_broker]=url":                       "Fields valid keys for 'service_broker' are: 'guid', 'name'",
		"/v3/service_offerings?fields[service_broker]=":                          "Fields valid keys for 'service_broker' are: 'guid', 'name'",
		"/v3/service_offerings?fields[service_broker]]=name":                     "Fields valid resources are",
		"/v3/service_offerings?order_by=color":                                   "Order by can only be",
		"/v3/service_offerings/" + onOffering(f) + "?fields[service_broker]=url": "Fields valid keys",
	} {
		if got := w.call(http.MethodGet, query, w.admin, nil); got.status != 400 || !strings.Contains(got.body, want) {
			t.Errorf("%s: %d %s, want %q", query, got.status, got.body, want)
		}
	}
}

// TestPlanVisibility follows a plan from its broker to everybody, as an operator would, and asks at each step who sees it.
func TestPlanVisibility(t *testing.T) {
	w := newWorld(t)
	f := w.fixture(1, "none")
	w.exec(`delete from service_plan_orgs`)
	w.exec(`update service_plans set visibility = 'admin' where guid = $1`, ofPlan(f))
	one, two := w.org("one"), w.org("two")
	w.give("ann1", platform.OrgUser, one, v3.Space{})
	w.give("bob2", platform.SpaceAuditor, two, w.space(two, "s"))
	people := map[string]string{"admin": w.admin, "ann": w.token("ann1"), "bob": w.token("bob2"), "nobody": w.token("nobody3")}
	path := "/v3/service_plans/" + ofPlan(f)
	sees := func(when string, want ...string) {
		t.Helper()
		for name, token := range people {
			seen := slices.Contains(want, name)
			list := do[v3.List[v3.ServicePlan]](w, 200, http.MethodGet, "/v3/service_plans?guids="+ofPlan(f), token, nil)
			offerings := do[v3.List[v3.ServiceOffering]](w, 200, http.MethodGet, "/v3/service_offerings?guids="+ofOffering(f), token, nil)
			got := w.call(http.MethodGet, path, token, nil)
			if seen != (len(list.Resources) == 1) || seen != (got.status == 200) || seen != (len(offerings.Resources) == 1) {
				t.Errorf("%s: %s finds %d plans, %d offerings and %d, want it seen: %v", when, name, len(list.Resources), len(offerings.Resources), got.status, seen)
			}
		}
	}
	set := func(method string, body any) v3.PlanVisibility {
		t.Helper()
		return do[v3.PlanVisibility](w, 200, method, path+"/visibility", w.admin, body)
	}
	to := func(orgs ...v3.Organization) object {
		refs := []object{}
		for _, o := range orgs {
			refs = append(refs, object{"guid": o.GUID})
		}
		return object{"type": "organization", "organizations": refs}
	}
	sees("at first", "admin")
	if v := set(http.MethodPost, to(one)); v.Type != "organization" || len(v.Organizations) != 1 || v.Organizations[0] != (v3.Named{GUID: one.GUID, Name: "one"}) {
		t.Errorf("after the first: %+v", v)
	}
	sees("for one", "admin", "ann")
	if v := set(http.MethodPost, to(two, two)); len(v.Organizations) != 2 {
		t.Errorf("after the second: %+v", v)
	}
	sees("for both", "admin", "ann", "bob")
	if v := do[v3.PlanVisibility](w, 200, http.MethodGet, path+"/visibility", people["bob"], nil); len(v.Organizations) != 1 || v.Organizations[0].GUID != two.GUID {
		t.Errorf("bob learns of %+v", v)
	}
	if got := w.call(http.MethodDelete, path+"/visibility/"+one.GUID, w.admin, nil); got.status != 204 {
		t.Errorf("hide it: %d %s", got.status, got.body)
	}
	sees("for two", "admin", "bob")
	if v := set(http.MethodPatch, to(one)); len(v.Organizations) != 1 {
		t.Errorf("replaced: %+v", v)
	}
	sees("for one again", "admin", "ann")
	set(http.MethodPost, object{"type": "public"})
	sees("for all", "admin", "ann", "bob", "nobody")
	set(http.MethodPatch, object{"type": "admin"})
	sees("for none", "admin")
	if n := value[int](w, `select count(*) from service_plan_orgs`); n != 0 {
		t.Errorf("%d organizations are left", n)
	}
	w.exec(`insert into service_instances (guid, space_guid, name, plan_guid) select 'i', guid, 'i', $1 from spaces where org_guid = $2`, ofPlan(f), two.GUID)
	sees("by an instance", "admin", "bob")

	for name, row := range map[string]struct {
		method, path string
		body         any
		status       int
		want         string
	}{
		"no type":          {http.MethodPatch, path + "/visibility", object{}, 422, "Type must be one of"},
		"space":            {http.MethodPost, path + "/visibility", object{"type": "space"}, 422, "Type must be one of"},
		"no orgs":          {http.MethodPost, path + "/visibility", to(), 422, "at least one organization"},
		"orgs for all":     {http.MethodPost, path + "/visibility", object{"type": "public", "organizations": []object{{"guid": one.GUID}}}, 422, "only be given with the type"},
		"unknown org":      {http.MethodPost, path + "/visibility", object{"type": "organization", "organizations": []object{{"guid": "none"}, {"guid": one.GUID}}}, 422, "Could not find Organizations with guids: none"},
		"of a space":       {http.MethodPost, "/v3/service_plans/" + onPlan(f) + "/visibility", object{"type": "public"}, 422, "belongs to a broker of one space"},
		"hide from none":   {http.MethodDelete, path + "/visibility/" + one.GUID, nil, 422, "visibility type 'admin'"},
		"delete it in use": {http.MethodDelete, path, nil, 422, "There are service instances of the service plan 'small'"},
	} {
		if got := w.call(row.method, row.path, w.admin, row.body); got.status != row.status || !strings.Contains(got.body, row.want) {
			t.Errorf("%s: %d %s, want %d %q", name, got.status, got.body, row.status, row.want)
		}
	}
	set(http.MethodPatch, to(one))
	if got := w.call(http.MethodDelete, path+"/visibility/"+two.GUID, w.admin, nil); got.status != 404 {
		t.Errorf("hide it from who did not see it: %d %s", got.status, got.body)
	}
	if v := do[v3.PlanVisibility](w, 200, http.MethodGet, "/v3/service_plans/"+onPlan(f)+"/visibility", w.admin, nil); v.Type != "space" || v.Space == nil || v.Space.GUID != f.space.GUID {
		t.Errorf("of a space: %+v", v)
	}
}

// TestPurge forgets an offering whose broker has gone, with all that is bound to it, and leaves nothing for the sweep.
func TestPurge(t *testing.T) {
	w := newWorld(t)
	f := w.fixture(1, "none")
	path := "/v3/service_offerings/o-" + f.app
	if got := w.call(http.MethodDelete, path, w.admin, nil); got.status != 422 || !strings.Contains(got.body, "There are service instances of the service offering") {
		t.Errorf("without purge: %d %s", got.status, got.body)
	}
	if got := w.call(http.MethodDelete, path+"?purge=yes", w.admin, nil); got.status != 400 {
		t.Errorf("purge=yes: %d %s", got.status, got.body)
	}
	w.give("dev", platform.SpaceDeveloper, v3.Organization{Resource: v3.Resource{GUID: f.org.GUID}}, v3.Space{Resource: v3.Resource{GUID: f.space.GUID}})
	if got := w.call(http.MethodDelete, "/v3/service_offerings/"+onOffering(f)+"?purge=true", w.token("dev"), nil); got.status != 403 {
		t.Errorf("purged by a developer: %d %s", got.status, got.body)
	}
	w.exec(`insert into service_orphans (broker_guid, broker_url, credentials, service_id, plan_id, instance_guid) values ($1, '', '', $2, '', 'x'), ($1, '', '', 'another', '', 'y')`, "b-"+f.app, "o-"+f.app)
	if got := w.call(http.MethodDelete, path+"?purge=true", w.admin, nil); got.status != 204 {
		t.Fatalf("purge: %d %s", got.status, got.body)
	}
	left := value[int](w, `select (select count(*) from service_instances where plan_guid is not null) + (select count(*) from service_bindings) + (select count(*) from service_plans where guid = $1)`, "p-"+f.app)
	if orphans := value[int](w, `select count(*) from service_orphans`); left != 0 || orphans != 1 {
		t.Errorf("%d rows and %d orphans are left, want 0 and 1", left, orphans)
	}
	if n := value[int](w, `select (data->>'service_instances')::int from audit_events where type = 'audit.service.delete'`); n != 2 {
		t.Errorf("the event tells of %d instances", n)
	}
}
