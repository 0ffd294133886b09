package work_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/broker/brokertest"
	"github.com/proa-dev/proa/platform/store"
)

// TestShared lets two services work on operations that are all queued three times. Each is still asked once.
func TestShared(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brokertest.Options{Polls: 1})
	w.work(limits, briefly)()
	stop := w.work(limits, briefly)
	w.register()
	stop()
	var jobs []platform.Job
	for i := range 10 {
		jobs = append(jobs, w.create(fmt.Sprintf("db%d", i), "small", ""))
	}
	for range 2 {
		w.exec(`insert into river_job (args, kind, max_attempts, queue) select distinct args, kind, max_attempts, queue from river_job where state = 'available'`)
	}
	w.work(limits, briefly)
	w.work(limits, briefly)
	for _, job := range jobs {
		if job = w.ended(job.GUID); job.State != platform.JobComplete {
			t.Error(details(job))
		}
	}
	story := w.story()
	slices.Sort(story)
	for i := range 10 {
		for _, call := range []string{"provision", "poll instance", "get instance"} {
			name := fmt.Sprintf("%s db%d", call, i)
			if n := len(slices.DeleteFunc(slices.Clone(story), func(s string) bool { return s != name })); n != 1 {
				t.Errorf("%s: %d times", name, n)
			}
		}
	}
}

// TestLostJob deletes the job of an operation from the queue, as a hand or a restored backup might. The operation is found again.
func TestLostJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brokertest.Options{})
	stop := w.work(limits, timeout)
	w.register()
	stop()
	job := w.create("db", "small", "")
	w.exec(`delete from river_job`)
	w.work(limits, timeout)
	if job = w.ended(job.GUID); job.State != platform.JobComplete {
		t.Error(details(job))
	}
	same(t, "asked", w.story(), []string{"provision db", "get instance db"})
}

// TestJobOfSeveral has a job with many operations, as that of a manifest: it ends with the last of them, and says all that failed.
func TestJobOfSeveral(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brokertest.Options{})
	stop := w.work(limits, briefly)
	w.register()
	for name, broken := range map[string]bool{"all is well": false, "some fail": true} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			stop()
			var job platform.Job
			for i := range 8 {
				job = w.create(strings.ReplaceAll(name, " ", "-")+fmt.Sprint(i), "standard", "")
			}
			w.exec(`update service_operations set job_guid = $1`, job.GUID)
			hold := make(chan struct{})
			if broken {
				w.broker.Script(brokertest.Provision, later(1), refuse(400, "", "one"), refuse(400, "", "two"))
				w.broker.Script(brokertest.PollInstance, brokertest.Act{Until: hold})
			}
			stop = w.work(limits, briefly)
			if broken {
				w.until("one is left", func() bool { return w.value(`select count(*)::text from service_operations`) == "1" })
				if j := get[platform.Job](t)(w.store.Job(t.Context(), w.ann, job.GUID)); j.State != platform.JobPolling {
					t.Errorf("while one is polled: %s", details(j))
				}
			}
			close(hold)
			job = w.ended(job.GUID)
			if !broken && details(job) != "COMPLETE" {
				t.Error(details(job))
			}
			if got := details(job); broken && (len(job.Errors) != 2 || !strings.Contains(got, "400: one.") || !strings.Contains(got, "400: two.")) {
				t.Error(got)
			}
		})
	}
	w.t = t
}

// TestLastTwo lets the last two operations of a job end at the same moment: we hold the job's row until both want it. One of them ends it.
func TestLastTwo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brokertest.Options{})
	stop := w.work(limits, briefly)
	w.register()
	stop()
	w.create("db1", "standard", "")
	job := w.create("db2", "standard", "")
	w.exec(`update service_operations set job_guid = $1`, job.GUID)
	unlock := w.lock(`select from jobs where guid = $1 for update`, job.GUID)
	w.work(limits, briefly)
	w.until("both want it", func() bool {
		return w.value(`select count(*)::text from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%jobs%'`) == "2"
	})
	unlock()
	if got := details(w.ended(job.GUID)); got != "COMPLETE" {
		t.Error(got)
	}
}

// TestOvertaken has a worker that comes back after others counted it as dead. What it brings changes nothing.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brokertest.Options{})
	stop := w.work(limits, briefly)
	w.register()
	stop()
	job := w.create("db", "small", "")
	guid := w.value(`select guid from service_operations`)
	claim := func(lease time.Duration) store.Errand {
		t.Helper()
		return get[store.Errand](t)(w.store.Claim(t.Context(), guid, lease))
	}
	slow := claim(time.Millisecond)
	if slow.Again || slow.NotDue > 0 {
		t.Errorf("the first has %+v", slow)
	}
	time.Sleep(5 * time.Millisecond) // its time is over: that is the test
	quick := claim(time.Minute)
	if !quick.Again || quick.NotDue > 0 {
		t.Errorf("the second has %+v", quick)
	}
	if third := claim(time.Minute); third.NotDue < 30*time.Second {
		t.Errorf("the third may begin in %s, while the second works", third.NotDue)
	}
	failed := platform.Verdict{Next: platform.NextFail, Orphan: true, Words: "It is too late."}
	for name, err := range map[string]error{
		"fail": w.store.Fail(t.Context(), slow, failed), "park": w.store.Park(t.Context(), slow, store.Pause{Stage: platform.StagePoll}),
		"succeed": w.store.Succeed(t.Context(), slow, store.Result{}), "vanish": w.store.Vanish(t.Context(), slow),
	} {
		if !errors.Is(err, store.ErrOvertaken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, w.store.Succeed(t.Context(), quick, store.Result{}))
	if _, err := w.store.Claim(t.Context(), guid, time.Minute); !errors.Is(err, store.ErrEnded) {
		t.Errorf("after the end: %v", err)
	}
	if got := details(w.ended(job.GUID)) + " " + w.seen("service_instances", "db"); got != "COMPLETE create succeeded" {
		t.Error(got)
	}
}
