package work_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/broker/brokertest"
	"github.com/proa-dev/proa/platform/store"
)

// row is one thing that a broker does, and what comes of it.
type row struct {
	name   string
	have   string // what is there before: nothing, "instance", or "binding" (with its instance)
	plan   string // of the instance; small unless it says so
	script func(b *brokertest.Broker)
	ask    func(w *world) platform.Job

	sees  string // what the user sees of the record: its last operation, or that it has gone
	job   string // what the job says
	asked string // what the broker was asked
	left  string // what the broker has in the end: instances and bindings
}

// The requests.
func provision(w *world) platform.Job { return w.create("db", w.planned, `{"size": 1}`) }
func bind(w *world) platform.Job      { return w.bind("db", "") }
func key(w *world) platform.Job       { return w.bind("db", "key") }

func update(w *world) platform.Job {
	change := platform.InstanceChange{PlanGUID: w.plan("large"), Parameters: []byte(`{"size": 2}`)}
	return *get[store.Asked[platform.ServiceInstance]](w.t)(w.store.UpdateServiceInstance(w.t.Context(), w.ann, w.instance("db"), change)).Job
}

func deprovision(w *world) platform.Job {
	return *get[*platform.Job](w.t)(w.store.DeleteServiceInstance(w.t.Context(), w.ann, w.instance("db")))
}

func unbind(w *world) platform.Job {
	return *get[*platform.Job](w.t)(w.store.DeleteBinding(w.t.Context(), w.ann, w.guid("binding")))
}

// again asks until the second request ends: after a failure the user may try again.
func again(ask func(*world) platform.Job) func(*world) platform.Job {
	return func(w *world) platform.Job {
		w.ended(ask(w).GUID)
		return ask(w)
	}
}

// downed asks while nobody listens at the broker's address.
func downed(ask func(*world) platform.Job) func(*world) platform.Job {
	return func(w *world) platform.Job {
		w.broker.Down()
		job := w.ended(ask(w).GUID)
		must(w.t, w.broker.Up())
		return job
	}
}

// script lets the broker behave so in the next requests of a call.
func script(call brokertest.Call, acts ...brokertest.Act) func(*brokertest.Broker) {
	return func(b *brokertest.Broker) { b.Script(call, acts...) }
}

func scripts(all ...func(*brokertest.Broker)) func(*brokertest.Broker) {
	return func(b *brokertest.Broker) {
		for _, s := range all {
			s(b)
		}
	}
}

var (
	refuse = brokertest.Refuse
	say    = brokertest.Say
	doSay  = brokertest.DoAndSay
	later  = brokertest.Later
	fails  = brokertest.LaterFails
	slow   = brokertest.Act{Hang: true} // it works, and never answers
)

// TestConformance is the table of what a broker may do: what its user sees, what the job says, what the broker was asked, and what it has
// in the end. The rows share a world, one after the other; each has its own instance.
func TestConformance(t *testing.T) {
	w := newWorld(t, brokertest.Options{})
	w.work(limits, timeout)
	w.register()
	for _, group := range []struct {
		name  string
		table string
		of    string
		rows  []row
	}{
		{"Provisioning", "service_instances", "db", provisioning},
		{"Updating", "service_instances", "db", updating},
		{"Deprovisioning", "service_instances", "db", deprovisioning},
		{"Binding", "service_bindings", "binding", binding},
		{"Unbinding", "service_bindings", "binding", unbinding},
	} {
		t.Run(group.name, func(t *testing.T) {
			var shown strings.Builder
			for _, r := range group.rows {
				t.Run(r.name, func(t *testing.T) {
					got := w.play(t, r, group.table, group.of)
					show(&shown, r.name, got.sees, got.job, got.asked, got.left)
					for _, c := range [][3]string{{"the user sees", got.sees, r.sees}, {"the job says", got.job, r.job}, {"the broker was asked", got.asked, r.asked}, {"the broker has", got.left, r.left}} {
						if c[1] != c[2] {
							t.Errorf("%s\n got %s\nwant %s", c[0], c[1], c[2])
						}
					}
				})
			}
			t.Logf("%s\n%s", group.name, shown.String())
		})
	}
	w.t = t
	w.hushed("hush-", w.broker.Account.Password)
}

// play does what a row says in a world where nothing is left of the row before, and tells what came of it.
func (w *world) play(t *testing.T, r row, table, of string) row {
	t.Helper()
	w.t = t
	w.exec(`update service_instances set held = false`)
	w.exec(`update service_bindings set held = false`)
	w.exec(`delete from service_instances`)
	for _, i := range w.broker.Instances() {
		w.broker.Lose(i.ID)
	}
	clear(w.names)
	w.planned = "small"
	if r.plan != "" {
		w.planned = r.plan
	}
	if r.have != "" {
		w.ended(provision(w).GUID)
	}
	if r.have == "binding" {
		w.ended(bind(w).GUID)
	}
	w.broker.Forget()
	if r.script != nil {
		r.script(w.broker)
	}
	job := w.ended(r.ask(w).GUID)
	w.calm()
	if n := w.broker.Unplayed(); n > 0 {
		t.Errorf("%d acts of the script were not played", n)
	}
	if of == "binding" && w.guid("key") != "" {
		of = "key"
	}
	return row{
		sees: w.seen(table, of), job: details(job), asked: strings.Join(w.story(), ", "),
		left: fmt.Sprintf("%d %d", len(w.broker.Instances()), len(w.broker.Bindings())),
	}
}

// What follows a failure, for the job and for whoever looks at the record.
func failedTo(doing, what, why, step string) (sees, job string) {
	op := map[string]string{"Creating": "create", "Updating": "update", "Deleting": "delete"}[doing]
	return op + " failed: " + why + " " + step, "FAILED: " + doing + " " + what + " failed. " + why + " " + step
}

// failing completes rows whose operation fails: each says only why, and whether the broker may have changed something.
func failing(doing, what, step string, rows []row) []row {
	for i := range rows {
		told, maybe := strings.CutPrefix(rows[i].sees, unsure)
		then := step
		if maybe {
			then = "The service instance may have been changed. Update it again."
		}
		if why, ok := strings.CutPrefix(told, "fails: "); ok {
			rows[i].sees, rows[i].job = failedTo(doing, what, why, then)
		}
	}
	return rows
}

const (
	unsure    = "unsure, "
	noAnswer  = "fails: The service broker did not answer in time, or the connection broke."
	malformed = "fails: The service broker answered with status %d and a body that is not in the protocol."
)

var provisioning = failing("Creating", "service instance 'db'", "Delete the service instance, and create it again.", []row{
	{"does it", "", "", nil, provision, "create succeeded", "COMPLETE", "provision db, get instance db", "1 0"},
	{"has it already", "", "", script(brokertest.Provision, doSay(200, `{}`)), provision, "create succeeded", "COMPLETE", "provision db, get instance db", "1 0"},
	{"tells nothing of instances", "", "standard", nil, provision, "create succeeded", "COMPLETE", "provision db", "1 0"},
	{"tells nothing although it should", "", "", script(brokertest.GetInstance, refuse(500, "", "no")), provision, "create succeeded", "COMPLETE", "provision db, get instance db", "1 0"},
	{"takes longer", "", "", script(brokertest.Provision, later(2)), provision, "create succeeded: provision is succeeded", "COMPLETE",
		"provision db, poll instance db, poll instance db, get instance db", "1 0"},
	{"takes longer and fails", "", "", script(brokertest.Provision, fails(1, "no space left.")), provision, "fails: The service broker could not do it: no space left.", "",
		"provision db, poll instance db, deprovision db", "0 0"},
	{"refuses", "", "", script(brokertest.Provision, refuse(400, "", "size must be 2")), provision, "fails: The service broker refused it with status 400: size must be 2.", "", "provision db", "0 0"},
	{"does not know us", "", "", script(brokertest.Provision, refuse(401, "", "")), provision,
		"fails: The service broker refused our account. Whoever registered it has to correct the user name and the password.", "", "provision db", "0 0"},
	{"has another of that id", "", "", script(brokertest.Provision, refuse(409, "", "other plan")), provision, "fails: The service broker has something else under the same id: other plan.", "", "provision db", "0 0"},
	{"is busy", "", "", script(brokertest.Provision, refuse(422, "ConcurrencyError", "")), provision, "fails: The service broker is busy with another operation on this service instance.", "", "provision db", "0 0"},
	{"wants more time", "", "", script(brokertest.Provision, refuse(422, "AsyncRequired", "")), provision,
		"fails: The service broker says that it needs more time than we give it, though we give it all it needs. Ask its operator.", "", "provision db", "0 0"},
	{"has another version", "", "", script(brokertest.Provision, refuse(422, "MaintenanceInfoConflict", "it is 2.0")), provision,
		"fails: The service broker has another version of this plan by now. An administrator has to read its catalog again with update-service-broker: it is 2.0.", "", "provision db", "0 0"},
	{"redirects", "", "", script(brokertest.Provision, say(302, `{}`)), provision, "fails: The service broker answered with status 302, which means nothing here.", "", "provision db", "0 0"},
	{"is not there", "", "", nil, downed(provision), "fails: The service broker could not be reached.", "", "", "0 0"},
	{"breaks after doing it", "", "", script(brokertest.Provision, doSay(500, `{"description": "oops"}`)), provision, "fails: The service broker failed with status 500: oops.", "", "provision db, deprovision db", "0 0"},
	{"breaks before doing it", "", "", script(brokertest.Provision, refuse(503, "", "")), provision, "fails: The service broker failed with status 503.", "", "provision db, deprovision db", "0 0"},
	{"says that we were too slow", "", "", script(brokertest.Provision, refuse(408, "", "")), provision, "fails: The service broker refused it with status 408.", "", "provision db, deprovision db", "0 0"},
	{"does it and does not answer", "", "", script(brokertest.Provision, slow), provision, noAnswer, "", "provision db, deprovision db", "0 0"},
	{"loses the request", "", "", script(brokertest.Provision, brokertest.LostBefore), provision, noAnswer, "", "provision db, deprovision db", "0 0"},
	{"loses the answer", "", "", script(brokertest.Provision, brokertest.LostAfter), provision, noAnswer, "", "provision db, deprovision db", "0 0"},
	{"says 200 and nonsense", "", "", script(brokertest.Provision, say(200, `nonsense`)), provision, fmt.Sprintf(malformed, 200), "", "provision db", "0 0"},
	{"says 201 and nonsense", "", "", script(brokertest.Provision, doSay(201, `[]`)), provision, fmt.Sprintf(malformed, 201), "", "provision db, deprovision db", "0 0"},
	{"says 202 and nonsense", "", "", script(brokertest.Provision, doSay(202, `{"operation": 7}`)), provision, fmt.Sprintf(malformed, 202), "", "provision db, deprovision db", "0 0"},
	{"says 206", "", "", script(brokertest.Provision, doSay(206, `{}`)), provision, "fails: The service broker answered with status 206, which means nothing here.", "", "provision db, deprovision db", "0 0"},
	{"breaks while it is polled", "", "", scripts(script(brokertest.Provision, later(1)), script(brokertest.PollInstance, refuse(500, "", ""), refuse(503, "", ""))), provision,
		"create succeeded: provision is succeeded", "COMPLETE", "provision db, poll instance db, poll instance db, poll instance db, get instance db", "1 0"},
	{"talks nonsense while it is polled", "", "", scripts(script(brokertest.Provision, later(1)), script(brokertest.PollInstance, say(200, `{"state": "fine"}`), say(200, `{`))), provision,
		"create succeeded: provision is succeeded", "COMPLETE", "provision db, poll instance db, poll instance db, poll instance db, get instance db", "1 0"},
	{"does not answer while it is polled", "", "", scripts(script(brokertest.Provision, later(1)), script(brokertest.PollInstance, brokertest.LostBefore)), provision,
		"create succeeded: provision is succeeded", "COMPLETE", "provision db, poll instance db, poll instance db, get instance db", "1 0"},
	{"says that it is gone while it makes it", "", "", scripts(script(brokertest.Provision, later(1)), script(brokertest.PollInstance, say(410, `{}`), say(404, `{}`))), provision,
		"create succeeded: provision is succeeded", "COMPLETE", "provision db, poll instance db, poll instance db, poll instance db, get instance db", "1 0"},
	{"does not understand the poll", "", "", scripts(script(brokertest.Provision, later(1)), script(brokertest.PollInstance, refuse(400, "", "which?"))), provision,
		"fails: The service broker refused it with status 400: which?", "", "provision db, poll instance db, deprovision db", "0 0"},
	{"breaks while it cleans up", "", "", scripts(script(brokertest.Provision, brokertest.LostAfter), script(brokertest.Deprovision, refuse(500, "", ""), brokertest.LostBefore, refuse(422, "ConcurrencyError", ""))), provision,
		noAnswer, "", "provision db, deprovision db, deprovision db, deprovision db, deprovision db", "0 0"},
	{"takes longer to clean up", "", "", scripts(script(brokertest.Provision, brokertest.LostAfter), script(brokertest.Deprovision, later(2)), script(brokertest.PollInstance, refuse(500, "", ""))), provision,
		noAnswer, "", "provision db, deprovision db, poll instance db, poll instance db, poll instance db", "0 0"},
	{"takes longer to clean up, and fails first", "", "", scripts(script(brokertest.Provision, brokertest.LostAfter), script(brokertest.Deprovision, fails(1, "no"))), provision,
		noAnswer, "", "provision db, deprovision db, poll instance db, deprovision db", "0 0"},
})

var updating = failing("Updating", "service instance 'db'", "The service instance stays as it was.", []row{
	{"does it", "instance", "", nil, update, "update succeeded", "COMPLETE", "update db, get instance db", "1 0"},
	{"takes longer", "instance", "", script(brokertest.Update, later(2)), update, "update succeeded: update is succeeded", "COMPLETE", "update db, poll instance db, poll instance db, get instance db", "1 0"},
	{"takes longer and fails", "instance", "", script(brokertest.Update, fails(1, "too full")), update, "fails: The service broker could not do it: too full.", "", "update db, poll instance db", "1 0"},
	{"refuses", "instance", "", script(brokertest.Update, refuse(400, "", "not to that plan")), update, "fails: The service broker refused it with status 400: not to that plan.", "", "update db", "1 0"},
	{"is busy, and then not", "instance", "", script(brokertest.Update, refuse(422, "ConcurrencyError", "")), again(update), "update succeeded", "COMPLETE", "update db, update db, get instance db", "1 0"},
	{"has another version", "instance", "", script(brokertest.Update, refuse(422, "MaintenanceInfoConflict", "")), update,
		"fails: The service broker has another version of this plan by now. An administrator has to read its catalog again with update-service-broker.", "", "update db", "1 0"},
	{"breaks", "instance", "", script(brokertest.Update, refuse(500, "", "")), update, unsure + "fails: The service broker failed with status 500.", "", "update db", "1 0"},
	{"does not answer", "instance", "", script(brokertest.Update, slow), update, unsure + noAnswer, "", "update db", "1 0"},
	{"loses the answer, and does it again", "instance", "", script(brokertest.Update, brokertest.LostAfter), again(update), "update succeeded", "COMPLETE", "update db, update db, get instance db", "1 0"},
	{"is not there", "instance", "", nil, downed(update), "fails: The service broker could not be reached.", "", "", "1 0"},
	{"says 200 and nonsense", "instance", "", script(brokertest.Update, say(200, `nonsense`)), update, unsure + fmt.Sprintf(malformed, 200), "", "update db", "1 0"},
	{"says 201", "instance", "", script(brokertest.Update, say(201, `{}`)), update, unsure + "fails: The service broker answered with status 201, which means nothing here.", "", "update db", "1 0"},
	{"says 202 and nonsense", "instance", "", script(brokertest.Update, say(202, `nonsense`)), update, unsure + fmt.Sprintf(malformed, 202), "", "update db", "1 0"},
	{"breaks while it is polled", "instance", "", scripts(script(brokertest.Update, later(1)), script(brokertest.PollInstance, refuse(500, "", ""), say(410, `{}`))), update, "update succeeded: update is succeeded", "COMPLETE",
		"update db, poll instance db, poll instance db, poll instance db, get instance db", "1 0"},
})

var deprovisioning = failing("Deleting", "service instance 'db'", "Try to delete it again.", []row{
	{"does it", "instance", "", nil, deprovision, "gone", "COMPLETE", "deprovision db", "0 0"},
	{"does not have it", "instance", "", script(brokertest.Deprovision, say(410, `{}`)), deprovision, "gone", "COMPLETE", "deprovision db", "1 0"},
	{"does it and talks nonsense", "instance", "", script(brokertest.Deprovision, doSay(200, `nonsense`)), deprovision, "gone", "COMPLETE", "deprovision db", "0 0"},
	{"takes longer", "instance", "", script(brokertest.Deprovision, later(2)), deprovision, "gone", "COMPLETE", "deprovision db, poll instance db, poll instance db", "0 0"},
	{"takes longer, and has it no more", "instance", "", scripts(script(brokertest.Deprovision, later(2)), script(brokertest.PollInstance, refuse(500, "", ""), say(410, `{}`))), deprovision, "gone", "COMPLETE",
		"deprovision db, poll instance db, poll instance db", "1 0"},
	{"takes longer and fails", "instance", "", script(brokertest.Deprovision, fails(1, "in use")), deprovision, "fails: The service broker could not do it: in use.", "", "deprovision db, poll instance db", "1 0"},
	{"refuses", "instance", "", script(brokertest.Deprovision, refuse(400, "", "no")), deprovision, "fails: The service broker refused it with status 400: no.", "", "deprovision db", "1 0"},
	{"says 404", "instance", "", script(brokertest.Deprovision, refuse(404, "", "")), deprovision, "fails: The service broker refused it with status 404.", "", "deprovision db", "1 0"},
	{"is busy", "instance", "", script(brokertest.Deprovision, refuse(422, "ConcurrencyError", "")), deprovision, "fails: The service broker is busy with another operation on this service instance.", "", "deprovision db", "1 0"},
	{"breaks, and then does it", "instance", "", script(brokertest.Deprovision, refuse(500, "", "")), again(deprovision), "gone", "COMPLETE", "deprovision db, deprovision db", "0 0"},
	{"does it and does not answer, and then says so", "instance", "", script(brokertest.Deprovision, slow), again(deprovision), "gone", "COMPLETE", "deprovision db, deprovision db", "0 0"},
	{"does not answer", "instance", "", script(brokertest.Deprovision, brokertest.LostBefore), deprovision, noAnswer, "", "deprovision db", "1 0"},
	{"is not there", "instance", "", nil, downed(deprovision), "fails: The service broker could not be reached.", "", "", "1 0"},
	{"says 202 and nonsense", "instance", "", script(brokertest.Deprovision, say(202, `nonsense`)), deprovision, fmt.Sprintf(malformed, 202), "", "deprovision db", "1 0"},
	{"never made it", "", "", script(brokertest.Provision, refuse(400, "", "")), func(w *world) platform.Job { w.ended(provision(w).GUID); return deprovision(w) }, "gone", "COMPLETE", "provision db", "0 0"},
	{"has it though it did not say so", "", "", scripts(script(brokertest.Provision, brokertest.LostAfter), script(brokertest.Deprovision, refuse(503, "", ""), refuse(503, "", ""))),
		func(w *world) platform.Job { w.ended(provision(w).GUID); return deprovision(w) }, "gone", "COMPLETE", "provision db, deprovision db, deprovision db, deprovision db", "0 0"},
	{"has a binding of it", "binding", "", nil, deprovision, "gone", "COMPLETE", "unbind db/binding, deprovision db", "0 0"},
	{"takes longer for a binding of it", "binding", "", scripts(script(brokertest.Unbind, later(2)), script(brokertest.Deprovision, later(1))), deprovision, "gone", "COMPLETE",
		"unbind db/binding, poll binding db/binding, poll binding db/binding, deprovision db, poll instance db", "0 0"},
	{"does not let a binding go", "binding", "", script(brokertest.Unbind, refuse(500, "", "locked")), deprovision,
		"fails: First the binding of app 'shop' to service instance 'db' has to go. The service broker failed with status 500: locked.", "", "unbind db/binding", "1 1"},
	{"does not let a binding go, and then does", "binding", "", script(brokertest.Unbind, fails(1, "locked")), again(deprovision), "gone", "COMPLETE",
		"unbind db/binding, poll binding db/binding, unbind db/binding, deprovision db", "0 0"},
})

var binding = failing("Creating", "the binding of app 'shop' to service instance 'db'", "Delete the binding, and bind again.", []row{
	{"does it", "instance", "", nil, bind, "create succeeded", "COMPLETE", "bind db/binding, get binding db/binding", "1 1"},
	{"has it already", "instance", "", script(brokertest.Bind, doSay(200, `{"credentials": {}}`)), bind, "create succeeded", "COMPLETE", "bind db/binding, get binding db/binding", "1 1"},
	{"tells nothing of bindings", "instance", "standard", nil, bind, "create succeeded", "COMPLETE", "bind db/binding", "1 1"},
	{"makes a key", "instance", "", nil, key, "create succeeded", "COMPLETE", "bind db/key, get binding db/key", "1 1"},
	{"makes no keys", "instance", "", script(brokertest.Bind, refuse(422, "RequiresApp", "")), key, "create failed: This service can only be bound to an app, not to a key. Delete the binding, and bind again.",
		"FAILED: Creating service key 'key' of service instance 'db' failed. This service can only be bound to an app, not to a key. Delete the binding, and bind again.", "bind db/key", "1 0"},
	{"takes longer", "instance", "", script(brokertest.Bind, later(2)), bind, "create succeeded", "COMPLETE",
		"bind db/binding, poll binding db/binding, poll binding db/binding, get binding db/binding", "1 1"},
	{"takes longer and fails", "instance", "", script(brokertest.Bind, fails(1, "no accounts left")), bind, "fails: The service broker could not do it: no accounts left.", "",
		"bind db/binding, poll binding db/binding, unbind db/binding", "1 0"},
	{"takes longer though it tells nothing of bindings", "instance", "standard", script(brokertest.Bind, later(1)), bind,
		"fails: The service broker takes longer for the binding, but says that bindings cannot be fetched from it. Ask its operator.", "", "bind db/binding, unbind db/binding", "1 0"},
	{"takes longer, and breaks while it is asked", "instance", "", scripts(script(brokertest.Bind, later(1)), script(brokertest.PollBinding, refuse(500, "", ""), say(410, `{}`)), script(brokertest.GetBinding, refuse(500, "", ""), brokertest.LostBefore)), bind,
		"create succeeded", "COMPLETE", "bind db/binding, poll binding db/binding, poll binding db/binding, poll binding db/binding, get binding db/binding, get binding db/binding, get binding db/binding", "1 1"},
	{"takes longer, and has no credentials then", "instance", "", scripts(script(brokertest.Bind, later(1)), script(brokertest.GetBinding, refuse(404, "", "which?"))), bind,
		"fails: The service broker made the binding, but did not give its credentials: the service broker refused it with status 404: which?", "",
		"bind db/binding, poll binding db/binding, get binding db/binding, unbind db/binding", "1 0"},
	{"takes longer, and gives nonsense then", "instance", "", scripts(script(brokertest.Bind, later(1)), script(brokertest.GetBinding, say(200, `{"credentials": "none"}`))), bind,
		"fails: The service broker made the binding, but did not give its credentials: the service broker answered with status 200 and a body that is not in the protocol.", "",
		"bind db/binding, poll binding db/binding, get binding db/binding, unbind db/binding", "1 0"},
	{"refuses", "instance", "", script(brokertest.Bind, refuse(400, "", "no")), bind, "fails: The service broker refused it with status 400: no.", "", "bind db/binding", "1 0"},
	{"has another of that id", "instance", "", script(brokertest.Bind, refuse(409, "", "")), bind, "fails: The service broker has something else under the same id.", "", "bind db/binding", "1 0"},
	{"is busy", "instance", "", script(brokertest.Bind, refuse(422, "ConcurrencyError", "")), bind, "fails: The service broker is busy with another operation on this service instance.", "", "bind db/binding", "1 0"},
	{"is not there", "instance", "", nil, downed(bind), "fails: The service broker could not be reached.", "", "", "1 0"},
	{"breaks after doing it", "instance", "", script(brokertest.Bind, doSay(500, `{}`)), bind, "fails: The service broker failed with status 500.", "", "bind db/binding, unbind db/binding", "1 0"},
	{"does it and does not answer", "instance", "", script(brokertest.Bind, slow), bind, noAnswer, "", "bind db/binding, unbind db/binding", "1 0"},
	{"loses the request", "instance", "", script(brokertest.Bind, brokertest.LostBefore), bind, noAnswer, "", "bind db/binding, unbind db/binding", "1 0"},
	{"loses the answer", "instance", "", script(brokertest.Bind, brokertest.LostAfter), bind, noAnswer, "", "bind db/binding, unbind db/binding", "1 0"},
	{"says 200 and nonsense", "instance", "", script(brokertest.Bind, say(200, `{"credentials": 7}`)), bind, fmt.Sprintf(malformed, 200), "", "bind db/binding", "1 0"},
	{"says 201 and nonsense", "instance", "", script(brokertest.Bind, doSay(201, `{"credentials": []}`)), bind, fmt.Sprintf(malformed, 201), "", "bind db/binding, unbind db/binding", "1 0"},
	{"says 202 and nonsense", "instance", "", script(brokertest.Bind, doSay(202, `nonsense`)), bind, fmt.Sprintf(malformed, 202), "", "bind db/binding, unbind db/binding", "1 0"},
	{"breaks while it cleans up", "instance", "", scripts(script(brokertest.Bind, brokertest.LostAfter), script(brokertest.Unbind, refuse(500, "", ""), later(2))), bind, noAnswer, "",
		"bind db/binding, unbind db/binding, unbind db/binding, poll binding db/binding, poll binding db/binding", "1 0"},
	{"breaks, and is asked for another one", "instance", "", script(brokertest.Bind, brokertest.LostAfter), func(w *world) platform.Job {
		w.ended(bind(w).GUID)
		w.calm()
		w.names[w.guid("binding")] = "first"
		return bind(w)
	}, "create succeeded", "COMPLETE", "bind db/first, unbind db/first, bind db/binding, get binding db/binding", "1 1"},
})

var unbinding = failing("Deleting", "the binding of app 'shop' to service instance 'db'", "Try to delete it again.", []row{
	{"does it", "binding", "", nil, unbind, "gone", "COMPLETE", "unbind db/binding", "1 0"},
	{"does not have it", "binding", "", script(brokertest.Unbind, say(410, `{}`)), unbind, "gone", "COMPLETE", "unbind db/binding", "1 1"},
	{"takes longer", "binding", "", script(brokertest.Unbind, later(2)), unbind, "gone", "COMPLETE", "unbind db/binding, poll binding db/binding, poll binding db/binding", "1 0"},
	{"takes longer, and has it no more", "binding", "", scripts(script(brokertest.Unbind, later(2)), script(brokertest.PollBinding, refuse(503, "", ""), say(410, `{}`))), unbind, "gone", "COMPLETE",
		"unbind db/binding, poll binding db/binding, poll binding db/binding", "1 1"},
	{"takes longer and fails", "binding", "", script(brokertest.Unbind, fails(1, "in use")), unbind, "fails: The service broker could not do it: in use.", "", "unbind db/binding, poll binding db/binding", "1 1"},
	{"refuses", "binding", "", script(brokertest.Unbind, refuse(400, "", "")), unbind, "fails: The service broker refused it with status 400.", "", "unbind db/binding", "1 1"},
	{"breaks, and then does it", "binding", "", script(brokertest.Unbind, refuse(500, "", "")), again(unbind), "gone", "COMPLETE", "unbind db/binding, unbind db/binding", "1 0"},
	{"does it and does not answer, and then says so", "binding", "", script(brokertest.Unbind, slow), again(unbind), "gone", "COMPLETE", "unbind db/binding, unbind db/binding", "1 0"},
	{"does not answer", "binding", "", script(brokertest.Unbind, brokertest.LostBefore), unbind, noAnswer, "", "unbind db/binding", "1 1"},
	{"is not there", "binding", "", nil, downed(unbind), "fails: The service broker could not be reached.", "", "", "1 1"},
	{"does it and talks nonsense", "binding", "", script(brokertest.Unbind, doSay(200, `nonsense`)), unbind, "gone", "COMPLETE", "unbind db/binding", "1 0"},
	{"says 202 and nonsense", "binding", "", script(brokertest.Unbind, say(202, `nonsense`)), unbind, fmt.Sprintf(malformed, 202), "", "unbind db/binding", "1 1"},
	{"never made it", "instance", "", script(brokertest.Bind, refuse(400, "", "")), func(w *world) platform.Job { w.ended(bind(w).GUID); return unbind(w) }, "gone", "COMPLETE", "bind db/binding", "1 0"},
	{"has it though it did not say so", "instance", "", scripts(script(brokertest.Bind, brokertest.LostAfter), script(brokertest.Unbind, refuse(503, "", ""), refuse(503, "", ""))),
		func(w *world) platform.Job { w.ended(bind(w).GUID); return unbind(w) }, "gone", "COMPLETE", "bind db/binding, unbind db/binding, unbind db/binding, unbind db/binding", "1 0"},
})
