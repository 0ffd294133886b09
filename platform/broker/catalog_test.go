package broker_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/broker/brokertest"
)

func TestCatalog(t *testing.T) {
	b, c := start(t, brokertest.Options{})
	b.SetCatalog(`{"services": [
	  {"id": "s1", "name": "db", "description": "A database", "bindable": true, "plan_updateable": true, "instances_retrievable": true,
	   "bindings_retrievable": true, "allow_context_updates": true, "tags": ["sql"], "requires": ["syslog_drain"], "dashboard_client": {"secret": "x"},
	   "metadata": {"shareable": true, "documentationUrl": "https://docs.example.org", "more": 1},
	   "plans": [
	     {"id": "p1", "name": "small", "description": "small"},
	     {"id": "p2", "name": "large", "description": "large", "free": false, "bindable": false, "plan_updateable": false, "maximum_polling_duration": 90,
	      "maintenance_info": {"version": "1.2.3", "description": "patched"}, "metadata": {"bullets": []}, "schemas": {"service_instance": {}}},
	     {"id": "p3", "maximum_polling_duration": 1e300},
	     {"id": "p4", "maximum_polling_duration": -5, "plan_updatable": false}]},
	  {"id": "s2", "name": "bare", "metadata": {"shareable": "yes", "documentationUrl": "javascript:x"}, "tags": null, "plan_updatable": true,
	   "plans": [{"id": "p5", "bindable": true}]},
	  {"id": "s3", "plan_updateable": false, "plan_updatable": true, "metadata": null}]}`)
	got, a := c.Catalog(t.Context())
	if !reflect.DeepEqual(a, platform.Answer{Status: 200}) {
		t.Fatalf("got %+v", a)
	}
	none, empty := []string{}, json.RawMessage(`{}`)
	plan := func(p platform.ServicePlan) platform.ServicePlan {
		p.Active = true
		if p.Catalog == nil {
			p.Catalog, p.Schemas = empty, empty
		}
		return p
	}
	want := platform.Catalog{
		{
			ServiceOffering: platform.ServiceOffering{
				UniqueID: "s1", Name: "db", Description: "A database", Active: true, Bindable: true, PlanUpdateable: true, InstancesRetrievable: true,
				BindingsRetrievable: true, ContextUpdates: true, Shareable: true, Tags: []string{"sql"}, Requires: []string{"syslog_drain"},
				DocumentationURL: "https://docs.example.org", Catalog: json.RawMessage(`{"documentationUrl":"https://docs.example.org","more":1,"shareable":true}`),
			},
			Plans: []platform.ServicePlan{
				plan(platform.ServicePlan{OfferingName: "db", UniqueID: "p1", Name: "small", Description: "small", Free: true, Bindable: true, PlanUpdateable: true}),
				plan(platform.ServicePlan{
					OfferingName: "db", UniqueID: "p2", Name: "large", Description: "large", MaxPolling: 90 * time.Second,
					Maintenance: &platform.Maintenance{Version: "1.2.3", Description: "patched"}, Catalog: json.RawMessage(`{"bullets":[]}`), Schemas: json.RawMessage(`{"service_instance":{}}`),
				}),
				plan(platform.ServicePlan{OfferingName: "db", UniqueID: "p3", Free: true, Bindable: true, PlanUpdateable: true, MaxPolling: 366 * 24 * time.Hour}),
				plan(platform.ServicePlan{OfferingName: "db", UniqueID: "p4", Free: true, Bindable: true}),
			},
		},
		{
			ServiceOffering: platform.ServiceOffering{
				UniqueID: "s2", Name: "bare", Active: true, PlanUpdateable: true, Tags: none, Requires: none,
				Catalog: json.RawMessage(`{"documentationUrl":"javascript:x","shareable":"yes"}`),
			},
			Plans: []platform.ServicePlan{plan(platform.ServicePlan{OfferingName: "bare", UniqueID: "p5", Free: true, Bindable: true, PlanUpdateable: true})},
		},
		{ServiceOffering: platform.ServiceOffering{UniqueID: "s3", Active: true, Tags: none, Requires: none, Catalog: empty}},
	}
	if len(got) != len(want) {
		t.Fatalf("got %d offerings", len(got))
	}
	for i := range want {
		if !reflect.DeepEqual(got[i].ServiceOffering, want[i].ServiceOffering) {
			t.Errorf("offering %d:\n got %+v\nwant %+v", i, got[i].ServiceOffering, want[i].ServiceOffering)
		}
		if !reflect.DeepEqual(got[i].Plans, want[i].Plans) {
			t.Errorf("plans of offering %d:\n got %+v\nwant %+v", i, got[i].Plans, want[i].Plans)
		}
	}
}

func TestCatalogMayBeEmpty(t *testing.T) {
	b, c := start(t, brokertest.Options{})
	b.SetCatalog(`{"services": []}`)
	if got, a := c.Catalog(t.Context()); a.Malformed || got == nil || len(got) != 0 {
		t.Errorf("got %v, %+v", got, a)
	}
}
