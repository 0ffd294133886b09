package work_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/broker/brokertest"
)

// TestGoneMeanwhile deletes what an operation is about while its broker is at work. The job ends, and the broker keeps nothing.
func TestGoneMeanwhile(t *testing.T) {
	w := newWorld(t, brokertest.Options{})
	w.work(limits, patience)
	w.register()
	const gone = " failed. It was deleted before that was done. What the service broker made of it will be deleted too, unless it was purged."
	for _, r := range []struct {
		name  string
		have  string
		call  brokertest.Call
		later bool
		ask   func(*world) platform.Job
		job   string
		asked []string
	}{
		{"while it is made", "", brokertest.Provision, false, provision, "FAILED: Creating the service instance" + gone, []string{"provision db", "get instance db", "deprovision db"}},
		{"while its making is polled", "", brokertest.PollInstance, true, provision, "FAILED: Creating the service instance" + gone, []string{"provision db", "poll instance db", "get instance db", "deprovision db"}},
		{"while it is changed", "instance", brokertest.Update, false, update, "FAILED: Updating the service instance" + gone, []string{"update db", "get instance db", "deprovision db"}},
		{"while it is deleted", "instance", brokertest.Deprovision, false, deprovision, "COMPLETE", []string{"deprovision db"}},
		{"while it is bound", "instance", brokertest.Bind, false, bind, "FAILED: Creating the binding" + gone, []string{"bind db/binding", "get binding db/binding", "unbind db/binding", "deprovision db"}},
		{"while it is unbound", "binding", brokertest.Unbind, false, unbind, "COMPLETE", []string{"unbind db/binding", "deprovision db"}},
		{"while a binding of it goes first", "binding", brokertest.Unbind, false, deprovision, "COMPLETE", []string{"unbind db/binding", "deprovision db"}},
	} {
		t.Run(r.name, func(t *testing.T) {
			w.t = t
			clear(w.names)
			w.planned = "small"
			w.space = get[platform.Space](t)(w.store.CreateSpace(t.Context(), w.ann, platform.Space{Name: strings.ReplaceAll(r.name, " ", "-"), OrgGUID: w.space.OrgGUID, Metadata: notes}))
			w.app = get[platform.App](t)(w.store.CreateApp(t.Context(), w.ann, platform.App{Name: "shop", SpaceGUID: w.space.GUID, Lifecycle: w.app.Lifecycle, Metadata: notes}))
			if r.have != "" {
				w.ended(provision(w).GUID)
			}
			if r.have == "binding" {
				w.ended(bind(w).GUID)
			}
			w.broker.Forget()
			hold := make(chan struct{})
			if r.later {
				w.broker.Script(brokertest.Provision, later(1))
			}
			w.broker.Script(r.call, brokertest.Act{Until: hold})
			job := r.ask(w)
			must(t, w.broker.Await(t.Context(), r.call, 1))
			get[platform.Job](t)(w.store.DeleteSpace(t.Context(), w.ann, w.space.GUID))
			w.swept()
			same(t, "asked while the broker is at work", w.story(), r.asked[:slices.Index(r.asked, w.called(w.broker.Asked(r.call)[0].String()))+1])
			close(hold)
			if got := details(w.ended(job.GUID)); got != r.job {
				t.Errorf("the job says\n got %s\nwant %s", got, r.job)
			}
			w.calm()
			same(t, "asked", w.story(), r.asked)
			if n := len(w.broker.Instances()) + len(w.broker.Bindings()); n != 0 {
				t.Errorf("%d are left at the broker", n)
			}
		})
	}
}

// TestDeletedWhileMade deletes an instance that is being made, as its user may: before the broker was asked, and while it is at work.
func TestDeletedWhileMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brokertest.Options{})
	stop := w.work(limits, patience)
	w.register()
	w.planned = "small"
	const failed = "FAILED: Creating the service instance failed. It was deleted before that was done. What the service broker made of it will be deleted too, unless it was purged."
	check := func(made platform.Job, asked ...string) {
		t.Helper()
		if got := details(w.ended(made.GUID)); got != failed {
			t.Error(got)
		}
		w.calm()
		same(t, "asked", w.story(), asked)
		if n := len(w.broker.Instances()); n != 0 {
			t.Errorf("%d are left at the broker", n)
		}
	}
	hold := make(chan struct{})
	w.broker.Script(brokertest.Provision, brokertest.Act{Until: hold})
	made := provision(w)
	must(t, w.broker.Await(t.Context(), brokertest.Provision, 1))
	if gone := deprovision(w); details(gone) != "COMPLETE" || gone.Operation != string(platform.InstanceDelete) {
		t.Errorf("%s: %s", gone.Operation, details(gone))
	}
	close(hold)
	check(made, "provision db", "get instance db", "deprovision db")

	stop()
	w.broker.Forget()
	clear(w.names)
	made = provision(w)
	if gone := deprovision(w); details(gone) != "COMPLETE" {
		t.Error(details(gone))
	}
	w.work(limits, patience)
	check(made)
}

// TestLockOrder has a worker wait for an instance that is locked. It does not hold the binding meanwhile, which others lock after it.
func TestLockOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brokertest.Options{})
	stop := w.work(limits, timeout)
	w.register()
	w.planned = "small"
	w.ended(provision(w).GUID)
	w.ended(bind(w).GUID)
	stop()
	job := unbind(w)
	unlock := w.lock(`select from service_instances where guid = $1 for update`, w.instance("db"))
	defer unlock()
	w.work(limits, timeout)
	w.until("the worker waits", func() bool {
		return w.value(`select count(*)::text from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%service_instances%'`) == "1"
	})
	w.exec(`select from service_bindings for update nowait`)
	unlock()
	if got := details(w.ended(job.GUID)); got != "COMPLETE" {
		t.Error(got)
	}
}

// swept waits until a sweep has come and gone: it has another orphan deleted, which the broker never had. No story tells of that.
func (w *world) swept() {
	w.t.Helper()
	w.exec(`insert into service_orphans (broker_guid, broker_url, credentials, service_id, plan_id, instance_guid) select guid, url, credentials, $1, $2, $3 from service_brokers`,
		brokertest.ServiceID, brokertest.SmallID, never)
	w.until("swept", func() bool {
		return w.value(`select count(*)::text from service_orphans where instance_guid = $1`, never) == "0"
	})
}

// TestSpaceWithServices deletes a space in which all is calm: the broker deletes what it has of it, bindings first, and nothing else.
func TestSpaceWithServices(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brokertest.Options{Polls: 1})
	w.work(limits, timeout)
	w.register()
	w.ended(w.create("other", "small", "").GUID)
	home := w.space
	w.space = get[platform.Space](t)(w.store.CreateSpace(t.Context(), w.ann, platform.Space{Name: "old", OrgGUID: home.OrgGUID, Metadata: notes}))
	w.ended(w.create("db", "small", "").GUID)
	w.ended(w.bind("db", "one").GUID)
	w.ended(w.bind("db", "two").GUID)
	w.broker.Forget()
	get[platform.Job](t)(w.store.DeleteSpace(t.Context(), w.ann, w.space.GUID))
	w.calm()
	if left := w.broker.Instances(); len(left) != 1 || w.called(left[0].ID) != "other" || len(w.broker.Bindings()) != 0 {
		t.Errorf("left: %v %v", left, w.broker.Bindings())
	}
	story := strings.Join(w.story(), ", ")
	if last := strings.LastIndex(story, "unbind"); !strings.HasSuffix(story, "deprovision db, poll instance db") || last > strings.Index(story, "deprovision") {
		t.Errorf("asked: %s", story)
	}
}
