package work_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/broker/brokertest"
)

// TestLongWords has a broker that says more than a log should hold.
func TestLongWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brokertest.Options{})
	w.work(limits, timeout)
	w.register()
	w.broker.Script(brokertest.Provision, refuse(400, strings.Repeat("x", 100_000), ""))
	w.ended(w.create("db", "small", "").GUID)
	if log := w.log.String(); strings.Contains(log, strings.Repeat("x", 400)) || !strings.Contains(log, "code=xxx") {
		t.Errorf("%d characters: %.3000s", len(log), log)
	}
}

// TestUnsweptOrphans deletes an instance whose broker may have a binding that nobody has. It is asked for that one first, and not kept by it.
func TestUnsweptOrphans(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brokertest.Options{})
	rare := limits
	rare.Sweep = time.Hour // nobody looks for orphans but at the start
	w.work(rare, timeout)
	w.register()
	unknown := script(brokertest.Unbind, refuse(404, "", "which?"))
	abandon := func(w *world) platform.Job {
		w.exec(`update service_orphans set due_at = 'infinity'`)
		return deprovision(w)
	}
	no, noJob := failedTo("Deleting", "service instance 'db'", "The service broker refused it with status 422: The instance still has bindings.", "Try to delete it again.")
	const both = "unbind db/binding, deprovision db"
	for _, r := range []struct {
		row
		bind    brokertest.Act // how the broker lost the line when it was asked for the binding
		orphans string         // that are noted in the end
	}{
		{row{"deletes it", "", "", nil, deprovision, "gone", "COMPLETE", both, "0 0"}, brokertest.LostAfter, "0"},
		{row{"has none", "", "", nil, deprovision, "gone", "COMPLETE", both, "0 0"}, brokertest.LostBefore, "0"},
		{row{"does not know it", "", "", unknown, deprovision, "gone", "COMPLETE", both, "0 0"}, brokertest.LostBefore, "0"},
		{row{"did not know it for a week", "", "", unknown, abandon, "gone", "COMPLETE", both, "0 0"}, brokertest.LostBefore, "0"},
		{row{"did not delete it for a week", "", "", nil, abandon, "gone", "COMPLETE", both, "0 0"}, brokertest.LostAfter, "0"},
		{row{"keeps it", "", "", script(brokertest.Unbind, fails(1, "locked")), deprovision, no, noJob, "unbind db/binding, poll binding db/binding, deprovision db", "1 1"}, brokertest.LostAfter, "1"},
		{row{"keeps it, and then not", "", "", script(brokertest.Unbind, refuse(500, "", "")), again(deprovision), "gone", "COMPLETE", both + ", " + both, "0 0"}, brokertest.LostAfter, "0"},
	} {
		t.Run(r.name, func(t *testing.T) {
			w.t = t
			w.exec(`update service_instances set held = false`)
			w.exec(`delete from service_instances`)
			w.exec(`delete from service_orphans`)
			for _, i := range w.broker.Instances() {
				w.broker.Lose(i.ID)
			}
			clear(w.names)
			w.planned = "small"
			w.ended(provision(w).GUID)
			w.broker.Script(brokertest.Bind, r.bind)
			w.ended(bind(w).GUID)
			w.ended(unbind(w).GUID)
			if n := w.value(`select count(*)::text from service_orphans`); n != "1" {
				t.Fatalf("%s orphans are noted before", n)
			}
			w.broker.Forget()
			if r.script != nil {
				r.script(w.broker)
			}
			ended := details(w.ended(r.ask(w).GUID))
			for _, c := range [][3]string{{"the user sees", w.seen("service_instances", "db"), r.sees}, {"the job says", ended, r.job}, {"the broker was asked", strings.Join(w.story(), ", "), r.asked},
				{"the broker has", fmt.Sprintf("%d %d", len(w.broker.Instances()), len(w.broker.Bindings())), r.left}, {"orphans are noted", w.value(`select count(*)::text from service_orphans`), r.orphans}} {
				if c[1] != c[2] {
					t.Errorf("%s\n got %s\nwant %s", c[0], c[1], c[2])
				}
			}
		})
	}
}
