package work_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/broker/brokertest"
)

// telling is a world whose app asks that its developers are told.
func telling(t *testing.T) (*world, *notifier) {
	t.Helper()
	w := newWorld(t, brokertest.Options{})
	n := newNotifier(w)
	w.notify = n.client()
	w.app = get[platform.App](t)(w.store.UpdateApp(t.Context(), w.ann, w.app.GUID, func(a *platform.App) error { return a.SetFeature(platform.FeatureNotices, true) }))
	return w, n
}

// crashes has an instance of the app crash so often in a row.
func (w *world) crashes(release string, times int) {
	w.t.Helper()
	process := w.value(`select guid from processes where app_guid = $1 and type = 'web'`, w.app.GUID)
	for range times {
		pod := platform.NewGUID()
		get[platform.Crash](w.t)(w.store.RecordCrash(w.t.Context(), platform.Crash{App: w.app.GUID, Process: process, Release: release, PodUID: pod,
			Exit: platform.Exit{ID: pod + "/1", Time: time.Now(), Description: "APP/PROC/WEB: Exited with status 1"}}))
	}
}

// told waits until no notice waits any more.
func (w *world) told() {
	w.t.Helper()
	w.until("all is told", func() bool {
		return w.value(`select count(*)::text from river_job where kind = 'tell' and state <> 'completed'`) == "0"
	})
}

// sent wants exactly these messages to have been taken, each for the developers of the app's space.
func (w *world) sent(n *notifier, subjects ...string) {
	w.t.Helper()
	var got []string
	for _, m := range n.sent() {
		got = append(got, m.KindID+": "+m.Subject)
		if m.space != w.space.GUID || m.Role != "SpaceDeveloper" || m.Text == "" || m.HTML == "" {
			w.t.Errorf("sent: %+v", m)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(subjects) {
		w.t.Errorf("sent:\n got %q\nwant %q", got, subjects)
	}
}

const (
	crashed = "app.crashing: App shop crashed three times"
	notYet  = "a notice could not be handed to the notification service; trying again" // as the log says it
)

// TestTell: a crash and a failed operation reach the notification service, once each, whole, and nothing secret with them.
func TestTell(t *testing.T) {
	t.Parallel()
	w, n := telling(t)
	w.work(limits, timeout)
	w.register()
	w.until("we are known", func() bool { return n.heard("PUT /notifications 204") })
	w.crashes("r1", 5)
	w.told()
	w.sent(n, crashed)
	if len(n.kinds) != 2 || n.source != "Proa" || n.kinds["app.crashing"] == "" || n.kinds["service.failed"] == "" {
		t.Errorf("registered: %q %v", n.source, n.kinds)
	}
	w.broker.Script(brokertest.Provision, refuse(400, "", "no room"))
	w.ended(w.create("db", "small", `{"secret": "hush-parameter"}`).GUID)
	w.told()
	w.sent(n, crashed, "service.failed: Creating service instance 'db' failed")
	if last := n.sent()[1]; !strings.Contains(last.Text, "no room") || !strings.Contains(last.Text, "proa service db") {
		t.Errorf("it says:\n%s", last.Text)
	}
	w.hushed("hush-", w.broker.Account.Password)

	// Once we are known, we do not introduce ourselves again; unless we have been forgotten.
	n.with(func() { n.kinds = map[string]string{} })
	w.crashes("r2", 3)
	w.told()
	if got := n.sent(); len(got) != 3 {
		t.Errorf("sent: %+v", got)
	}
	puts := 0
	for _, request := range n.asked {
		puts += strings.Count(request, "PUT /notifications 204")
	}
	if puts != 2 {
		t.Errorf("registered %d times: %q", puts, n.asked)
	}
}

// TestTellAnyway: what stands in the way of a notice is mended, and then it is sent, once.
func TestTellAnyway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		breaks, mends func(*notifier)
		heard         string // what shows that it was tried: a request, or a line in the log
	}{
		"the service is away":     {func(n *notifier) { n.away = true }, func(n *notifier) { n.away = false }, notYet},
		"the client may not":      {func(n *notifier) { n.scopes = nil }, func(n *notifier) { n.scopes = []string{"notifications.write", "notifications.manage"} }, notYet},
		"the client may not send": {func(n *notifier) { n.scopes = []string{"notifications.manage"} }, func(n *notifier) { n.scopes = append(n.scopes, "notifications.write") }, "POST /spaces/%s 403"},
		"its answer is lost":      {func(n *notifier) { n.drop = true }, func(*notifier) {}, "POST /spaces/%s 200"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, n := telling(t)
			n.with(func() { c.breaks(n) })
			w.work(limits, timeout)
			w.crashes("r1", 3)
			if strings.Contains(c.heard, "%s") {
				c.heard = fmt.Sprintf(c.heard, w.space.GUID)
			}
			w.until(c.heard, func() bool { return n.heard(c.heard) || strings.Contains(w.log.String(), c.heard) })
			n.with(func() { c.mends(n) })
			w.told()
			w.sent(n, crashed)
		})
	}
}

// TestTellRefused: a notice that the service will never take ends, and the operator is told. So it is when there is no service.
func TestTellRefused(t *testing.T) {
	t.Parallel()
	const old = `update river_job set created_at = created_at - interval '13 hours' where kind = 'tell'`
	for name, c := range map[string]struct {
		prepare func(*world, *notifier)
		says    string
	}{
		"by the service": {func(w *world, _ *notifier) {
			w.exec(`update river_job set args = jsonb_set(args, '{notice,subject}', '"two\nlines"') where kind = 'tell'`)
		}, "the notification service refuses a notice"},
		"by nobody": {func(w *world, _ *notifier) { w.notify = nil }, "PROA_NOTIFY_URL is not set"},
		"by time": {func(w *world, n *notifier) {
			n.away = true
			w.exec(old)
		}, "for half a day, and is dropped"},
		"by time, though it could be sent now": {func(w *world, n *notifier) { w.exec(old) }, "for half a day, and is dropped"},
		"by time, while the service hangs": {func(w *world, n *notifier) {
			n.hang = make(chan struct{})
			w.exec(old)
		}, "for half a day, and is dropped"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, n := telling(t)
			w.crashes("r1", 3)
			c.prepare(w, n)
			w.work(limits, timeout)
			w.told()
			w.sent(n)
			if log := w.log.String(); !strings.Contains(log, c.says) {
				t.Errorf("the log says nothing of it:\n%s", log)
			}
		})
	}
}

// TestTellHangs: of a service that never answers the operator hears, and it is left alone for a while, not asked again at once.
func TestTellHangs(t *testing.T) {
	t.Parallel()
	w, n := telling(t)
	n.hang = make(chan struct{})
	w.crashes("r1", 3)
	w.work(limits, timeout)
	w.until("the log says so", func() bool {
		return strings.Contains(w.log.String(), "could not be handed to the notification service; trying again")
	})
	w.until("it waits", func() bool {
		return w.value(`select count(*)::text from river_job where kind = 'tell' and scheduled_at > attempted_at + interval '500 milliseconds' and state in ('scheduled', 'available')`) == "1"
	})
	n.with(func() { n.hang = nil })
	w.told()
	w.sent(n, crashed)
}

// TestIntroduction: our kinds are known soon after the start, so that people can unsubscribe before the first notice.
func TestIntroduction(t *testing.T) {
	t.Parallel()
	w, n := telling(t)
	n.away = true
	w.work(limits, timeout)
	w.until("the log says so", func() bool {
		return strings.Contains(w.log.String(), "cannot be registered with the notification service")
	})
	n.with(func() { n.away = false })
	w.until("it is known", func() bool { return n.heard("PUT /notifications 204") })
	if w.sent(n); len(n.kinds) != 2 {
		t.Errorf("registered: %v", n.kinds)
	}
}

// TestTellKilled kills the process that hands a notice over when the service has taken it, and before it has said so. Another process
// hands it over again, and it is one message.
func TestTellKilled(t *testing.T) {
	t.Parallel()
	w, n := telling(t)
	n.hang = make(chan struct{})
	w.crashes("r1", 3)
	p := w.start("")
	select {
	case <-n.arrived:
	case <-time.After(patience):
		t.Fatalf("nothing arrived\n%s", w.log)
	}
	p.kill()
	n.with(func() { n.hang = nil })
	w.exec(`update river_job set state = 'available', attempted_by = null where kind = 'tell'`) // as the queue does by itself, after some time
	w.work(limits, timeout)
	w.told()
	w.sent(n, crashed)
	again := 0
	for _, request := range n.asked {
		again += strings.Count(request, "POST /spaces/")
	}
	if again < 2 {
		t.Errorf("it was not handed over again: %q", n.asked)
	}
}
