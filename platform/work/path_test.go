package work_test

import (
	"strings"
	"testing"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/broker/brokertest"
	"github.com/proa-dev/proa/platform/store"
)

// TestPath walks from the registration of a broker to the deletion of what it made, once with a broker that is done at once and once
// with one that takes its time. Secrets stand nowhere but in what is sealed.
func TestPath(t *testing.T) {
	for name, polls := range map[string]int{"at once": 0, "later": 2} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, brokertest.Options{Polls: polls})
			w.work(limits, timeout)
			w.register()
			step := func(what string, job platform.Job) {
				t.Helper()
				if job = w.ended(job.GUID); job.State != platform.JobComplete || len(job.Errors) > 0 {
					t.Fatalf("%s: %s", what, details(job))
				}
			}
			step("create", w.create("db", "small", `{"size": 3, "secret": "hush-parameter"}`))
			guid := w.instance("db")
			i := get[platform.ServiceInstance](t)(w.store.ServiceInstance(t.Context(), w.ann, guid))
			if i.LastOperation.State != platform.OperationSucceeded || i.DashboardURL != "https://dashboard.example.org/"+guid {
				t.Errorf("got %+v", i)
			}
			if p := string(get[[]byte](t)(rawBytes(w.store.InstanceParameters(t.Context(), w.ann, guid)))); !strings.Contains(p, `"size":3`) {
				t.Errorf("parameters are %s", p)
			}
			step("bind", w.bind("db", ""))
			step("key", w.bind("db", "mykey"))
			for guid, name := range w.names {
				if name == "db" {
					continue
				}
				d := get[platform.BindingDetails](t)(w.store.BindingDetails(t.Context(), w.ann, guid))
				if !strings.Contains(string(d.Credentials), brokertest.Password(guid)) {
					t.Errorf("credentials of %s are %s", name, d.Credentials)
				}
			}
			change := platform.InstanceChange{PlanGUID: w.plan("large"), Name: new("store"), Parameters: []byte(`{"size": 4}`)}
			step("update", *get[store.Asked[platform.ServiceInstance]](t)(w.store.UpdateServiceInstance(t.Context(), w.ann, guid, change)).Job)
			if got := w.value(`select i.name || ' ' || p.name || ' ' || i.plan_id || ' ' || i.op_type || ' ' || i.op_state from service_instances i join service_plans p on p.guid = i.plan_guid`); got != "store large plan-large update succeeded" {
				t.Errorf("after the update: %s", got)
			}
			if at := w.broker.Instances()[0]; at.PlanID != brokertest.LargeID || at.Context["instance_name"] != "store" || at.Context["space_name"] != "dev" || at.Context["organization_name"] != "acme" {
				t.Errorf("at the broker: %+v", at)
			}
			job := get[*platform.Job](t)(w.store.DeleteServiceInstance(t.Context(), w.ann, guid))
			step("delete", *job)
			if n := len(w.broker.Instances()) + len(w.broker.Bindings()); n != 0 || w.instance("store") != "" {
				t.Errorf("%d are left at the broker: %v %v", n, w.broker.Instances(), w.broker.Bindings())
			}
			if got := w.value(`select (select count(*) from service_bindings) || ' ' || (select count(*) from service_orphans) || ' ' || (select count(*) from service_operations)`); got != "0 0 0" {
				t.Errorf("bindings, orphans and operations: %s", got)
			}
			w.events()
			w.hushed("hush-", w.broker.Account.Password)
		})
	}
}
