package work_test

import (
	"strings"
	"testing"
	"time"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/broker/brokertest"
)

// TestRetryAfter holds the times of requests against what the broker said. It says nothing of the last wait, which is ours.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brokertest.Options{})
	w.work(limits, timeout)
	w.register()
	w.broker.Script(brokertest.Provision, brokertest.Act{Polls: 3, RetryAfter: "2"})
	w.broker.Script(brokertest.PollInstance, brokertest.Act{RetryAfter: "1"}, brokertest.Act{Undone: true, Status: 503, RetryAfter: "1"})
	job := w.create("db", "standard", "")
	w.job(job.GUID, func(j platform.Job) bool { return j.State == platform.JobPolling })
	if job = w.ended(job.GUID); job.State != platform.JobComplete {
		t.Fatal(details(job))
	}
	same(t, "asked", w.story(), []string{"provision db", "poll instance db", "poll instance db", "poll instance db", "poll instance db"})
	waits := w.times.waits(5)
	for i, least := range []time.Duration{2 * time.Second, time.Second, time.Second} {
		if waits[i] < least || waits[i] > least+10*time.Second {
			t.Errorf("the broker said %s, we asked after %s", least, waits[i])
		}
	}
	t.Log("waits:", waits)
}

// TestNeverFinishes has a broker that is for ever in progress: our limit ends that, or the plan's if it is shorter. What was made is
// deleted; what was to be changed or deleted stays.
func TestNeverFinishes(t *testing.T) {
	t.Parallel()
	ours := limits
	ours.Polling = time.Second
	short := strings.ReplaceAll(brokertest.Catalog, `"id": "plan-`, `"maximum_polling_duration": 1, "id": "plan-`)
	for name, c := range map[string]struct {
		limits  func(w *world) (stop func())
		catalog string
	}{
		"our limit":  {func(w *world) func() { return w.work(ours, timeout) }, ""},
		"the plan's": {func(w *world) func() { return w.work(limits, timeout) }, short},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, brokertest.Options{Catalog: c.catalog})
			c.limits(w)
			w.register()
			w.planned = "small"
			const why = "The service broker did not finish in the time that it has for this. "
			for _, step := range []struct {
				ask   func(*world) platform.Job
				call  brokertest.Call
				table string
				of    string
				sees  string
				left  int
			}{
				{provision, brokertest.Provision, "service_instances", "db", "create failed: " + why + "Delete the service instance, and create it again.", 0},
				{deprovision, "", "service_instances", "db", "gone", 0},
				{provision, "", "service_instances", "db", "create succeeded", 1},
				{bind, brokertest.Bind, "service_bindings", "binding", "create failed: " + why + "Delete the binding, and bind again.", 1},
				{deprovision, brokertest.Deprovision, "service_instances", "db", "delete failed: " + why + "Try to delete it again.", 1},
				{deprovision, "", "service_instances", "db", "gone", 0},
				{provision, "", "service_instances", "db", "create succeeded", 1},
				{update, brokertest.Update, "service_instances", "db", "update failed: " + why + "The service instance may have been changed. Update it again.", 1},
			} {
				for guid, name := range w.names { // of two that had the name, the last counts
					if name == step.of && step.sees == "create succeeded" {
						delete(w.names, guid)
					}
				}
				if step.call != "" {
					w.broker.Script(step.call, brokertest.Never)
				}
				begin := time.Now()
				job := w.ended(step.ask(w).GUID)
				w.broker.Finish() // what it was busy with
				w.calm()
				if sees := w.seen(step.table, step.of); sees != step.sees {
					t.Errorf("got %s, want %s\n%s", sees, step.sees, details(job))
				}
				if failed := step.call != ""; failed != (job.State == platform.JobFailed) || failed && time.Since(begin) < time.Second {
					t.Errorf("%s after %s", details(job), time.Since(begin))
				}
				if n := len(w.broker.Instances()); n != step.left || len(w.broker.Bindings()) != 0 {
					t.Errorf("the broker has %d instances and %v", n, w.broker.Bindings())
				}
			}
		})
	}
}

// TestOurOwnFault takes the key away with which requests are sealed. The operation is tried until its time is over; then its job ends.
func TestOurOwnFault(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brokertest.Options{})
	stop := w.work(limits, timeout)
	w.register()
	stop()
	job := w.create("db", "small", "")
	w.exec(`update service_operations set request = 'broken'`)
	brief := limits
	brief.Polling = 2 * time.Second
	w.work(brief, timeout)
	if job = w.ended(job.GUID); !strings.Contains(details(job), "FAILED: Creating service instance 'db' failed. It could not be worked for reasons on our side.") {
		t.Error(details(job))
	}
	if sees := w.seen("service_instances", "db"); !strings.HasPrefix(sees, "create failed: It could not be worked") {
		t.Error(sees)
	}
	same(t, "asked", w.story(), []string{})
}

// TestAbandoned has a broker that never deletes what it must not have. After a while it is left to people: loudly, and not forgotten.
func TestAbandoned(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brokertest.Options{})
	brief := limits
	brief.Keep = time.Second
	w.work(brief, timeout)
	w.register()
	w.broker.Script(brokertest.Provision, brokertest.LostAfter)
	w.broker.Always(brokertest.Deprovision, refuse(500, "", "never"))
	w.ended(w.create("db", "small", "").GUID)
	w.until("abandoned", func() bool {
		return w.value(`select count(*)::text from service_orphans where due_at = 'infinity'`) == "1"
	})
	if log := w.log.String(); !strings.Contains(log, "level=ERROR") || !strings.Contains(log, "does not delete an orphan, and is not asked again") {
		t.Error(log)
	}
	if why := w.value(`select last_error from service_orphans`); !strings.Contains(why, "status 500: never") {
		t.Error(why)
	}
	w.ended(deprovision(w).GUID)
	get[platform.Job](t)(w.store.DeleteServiceBroker(t.Context(), w.ann, w.value(`select guid from service_brokers`)))
	if n := w.value(`select count(*)::text from service_orphans where due_at = 'infinity'`); n != "1" {
		t.Errorf("%s orphans are left for people", n)
	}
}
