package work_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/broker/brokertest"
	"github.com/proa-dev/proa/platform/store"
)

// other registers another broker, and makes instances of it.
func (w *world) other() (create func(name string) platform.Job) {
	w.t.Helper()
	b := get[*brokertest.Broker](w.t)(brokertest.Start(brokertest.Options{}))
	w.t.Cleanup(b.Close)
	job := get[platform.Job](w.t)(w.store.CreateServiceBroker(w.t.Context(), w.ann, platform.ServiceBroker{Name: "other", URL: b.URL}, b.Account))
	if job = w.ended(job.GUID); job.State != platform.JobComplete {
		w.t.Fatal(details(job))
	}
	w.publish()
	plan := w.value(`select p.guid from service_plans p join service_offerings o on o.guid = p.offering_guid join service_brokers b on b.guid = o.broker_guid where b.name = 'other' and p.name = 'small'`)
	return func(name string) platform.Job {
		return get[platform.Job](w.t)(w.store.CreateServiceInstance(w.t.Context(), w.ann, platform.ServiceInstance{Name: name, SpaceGUID: w.space.GUID, PlanGUID: plan}, nil))
	}
}

// orphans notes some that a broker never had.
func (w *world) orphans(broker string, n int) {
	w.t.Helper()
	w.exec(`insert into service_orphans (broker_guid, broker_url, credentials, service_id, plan_id, instance_guid) select guid, url, credentials, $1, $2, name || n from service_brokers, generate_series(1, $4) n where name = $3`,
		brokertest.ServiceID, brokertest.SmallID, broker, n)
}

// TestSlowBroker asks more of a broker that does not answer than there are workers. Another one does not wait for it, and it gets its turn.
func TestSlowBroker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brokertest.Options{})
	w.work(limits, patience)
	w.register()
	hold := make(chan struct{})
	letGo := sync.OnceFunc(func() { close(hold) })
	t.Cleanup(letGo)
	w.broker.Always(brokertest.Provision, brokertest.Act{Until: hold})
	var jobs []platform.Job
	for i := range 60 {
		jobs = append(jobs, w.create(fmt.Sprintf("db%d", i), "standard", ""))
	}
	must(t, w.broker.Await(t.Context(), brokertest.Provision, 10))
	if job := w.ended(w.other()("quick").GUID); job.State != platform.JobComplete {
		t.Error(details(job))
	}
	if n := len(w.broker.Asked(brokertest.Provision)); n != 10 {
		t.Errorf("the slow one was asked %d things at once", n)
	}
	letGo()
	for _, job := range jobs {
		if job = w.ended(job.GUID); job.State != platform.JobComplete {
			t.Error(details(job))
		}
	}
}

// TestSlowOrphans has a broker that does not answer when it is to delete orphans. An operation whose job was lost is found all the same.
func TestSlowOrphans(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brokertest.Options{})
	stop := w.work(limits, patience)
	w.register()
	create := w.other()
	stop()
	hold := make(chan struct{})
	letGo := sync.OnceFunc(func() { close(hold) })
	t.Cleanup(letGo)
	w.broker.Always(brokertest.Deprovision, brokertest.Act{Until: hold})
	w.orphans("pg", 7)
	job := create("quick")
	w.exec(`delete from river_job`)
	w.work(limits, patience)
	must(t, w.broker.Await(t.Context(), brokertest.Deprovision, 5))
	if job = w.ended(job.GUID); job.State != platform.JobComplete {
		t.Error(details(job))
	}
	if n := len(w.broker.Asked(brokertest.Deprovision)); n != 5 {
		t.Errorf("the slow one was asked for %d orphans at once", n)
	}
	letGo()
	w.calm()
}

// TestOrphansOfEach takes some of each broker, however many another one has.
func TestOrphansOfEach(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brokertest.Options{})
	for _, name := range []string{"first", "second"} {
		w.exec(`insert into service_brokers (guid, name, url, credentials, state) values ($1, $1, $1, '', '')`, name)
	}
	w.orphans("first", 30)
	w.orphans("second", 3)
	for _, want := range []map[string]int{{"first": 5, "second": 3}, {"first": 5}} {
		got := map[string]int{}
		for _, o := range get[[]store.Orphan](t)(w.store.ClaimOrphans(t.Context(), 20, 5, time.Minute)) {
			got[o.BrokerGUID]++
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// TestPlanLeaves takes the plan that an instance is being changed to out of the catalog. Whoever has begun goes on; nobody begins.
func TestPlanLeaves(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brokertest.Options{})
	stop := w.work(limits, timeout)
	w.register()
	w.planned = "small"
	w.ended(provision(w).GUID)
	w.broker.Script(brokertest.Update, brokertest.Never)
	job := update(w)
	must(t, w.broker.Await(t.Context(), brokertest.PollInstance, 1))
	w.broker.SetCatalog(fmt.Sprintf(service, one))
	if got := details(w.ended(change(w).GUID)); got != "COMPLETE | warning: "+platform.MissingPlans([]string{"'large' of 'database'"}) {
		t.Error(got)
	}
	w.broker.Finish()
	if got := details(w.ended(job.GUID)); got != "COMPLETE" {
		t.Error(got)
	}
	if plan := w.value(`select p.name || ' ' || i.plan_id from service_instances i join service_plans p on p.guid = i.plan_guid`); plan != "large "+brokertest.LargeID {
		t.Errorf("it has %s", plan)
	}

	w.broker.SetCatalog(brokertest.Catalog)
	w.ended(change(w).GUID)
	w.publish()
	w.ended(w.create("db2", "small", "").GUID)
	stop()
	again := platform.InstanceChange{PlanGUID: w.plan("large")}
	job = *get[store.Asked[platform.ServiceInstance]](t)(w.store.UpdateServiceInstance(t.Context(), w.ann, w.instance("db2"), again)).Job
	w.exec(`update service_plans set active = false where name = 'large'`)
	w.broker.Forget()
	w.work(limits, timeout)
	if got := details(w.ended(job.GUID)); got != "FAILED: Updating service instance 'db2' failed. The service plan is no longer in the catalog of the service broker. Choose another one." {
		t.Error(got)
	}
	same(t, "asked", w.story(), []string{})
}
