package work_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/broker/brokertest"
	"github.com/proa-dev/proa/platform/store"
)

// catalogRow is something that a broker offers, and what comes of it.
type catalogRow struct {
	name   string
	known  bool   // the broker was registered before, with the usual catalog, and there is an instance of its plan small
	offers string // instead of the usual catalog
	script func(*brokertest.Broker)
	ask    func(*world) platform.Job

	sees string // the state of the broker and its plans; those in brackets are not active
	job  string
}

func register(w *world) platform.Job {
	return get[platform.Job](w.t)(w.store.CreateServiceBroker(w.t.Context(), w.ann, platform.ServiceBroker{Name: "pg", URL: w.broker.URL}, w.broker.Account))
}

// change has the broker renamed, and read again.
func change(w *world) platform.Job {
	guid := w.value(`select guid from service_brokers`)
	return *get[store.Asked[platform.ServiceBroker]](w.t)(w.store.UpdateServiceBroker(w.t.Context(), w.ann, guid, platform.BrokerChange{Name: new("renamed")})).Job
}

const (
	one       = `{"id": "plan-small", "name": "small", "description": "d"}`
	service   = `{"services": [{"id": "service-database", "name": "database", "description": "d", "bindable": true, "plans": [%s]}]}`
	usual     = "AVAILABLE pg: large, small, standard"
	usualThen = "AVAILABLE pg: large, small, standard" // nothing of the change was taken over
	failedNew = "SYNCHRONIZATION_FAILED pg: "
)

// TestCatalogs is the table of what a broker may say of what it offers.
func TestCatalogs(t *testing.T) {
	w := newWorld(t, brokertest.Options{})
	w.work(limits, timeout)
	correct, stays := " Correct that, and update the service broker.", " The service broker stays as it was."
	reading, updating := "FAILED: Reading the catalog of service broker 'pg' failed. ", "FAILED: Updating service broker 'pg' failed. "
	var shown strings.Builder
	for _, r := range []catalogRow{
		{"tells", false, "", nil, register, usual, "COMPLETE"},
		{"breaks", false, "", script(brokertest.GetCatalog, refuse(500, "", "oops")), register, failedNew, reading + "The service broker failed with status 500: oops." + correct},
		{"does not know us", false, "", script(brokertest.GetCatalog, refuse(401, "", "")), register, failedNew,
			reading + "The service broker refused our account. Whoever registered it has to correct the user name and the password." + correct},
		{"does not answer", false, "", script(brokertest.GetCatalog, slow), register, failedNew, reading + "The service broker did not answer in time, or the connection broke." + correct},
		{"is not there", false, "", nil, downed(register), failedNew, reading + "The service broker could not be reached." + correct},
		{"talks nonsense", false, `nonsense`, nil, register, failedNew, reading + "The service broker answered with status 200 and a body that is not in the protocol." + correct},
		{"is no broker", false, `{}`, nil, register, failedNew, reading + "The service broker answered with status 200 and a body that is not in the protocol." + correct},
		{"offers nothing", false, `{"services": []}`, nil, register, failedNew, reading + "*no services*"},
		{"has an id twice", false, fmt.Sprintf(service, one+`,{"id": "plan-small", "name": "other", "description": "d"}`), nil, register, failedNew, reading + "*id*"},
		{"breaks, and is then read again", false, "", script(brokertest.GetCatalog, refuse(500, "", "")), func(w *world) platform.Job { w.ended(register(w).GUID); return change(w) },
			"AVAILABLE renamed: large, small, standard", "COMPLETE"},
		{"tells the same again", true, "", nil, change, "AVAILABLE renamed: large, small, standard", "COMPLETE"},
		{"renames a plan", true, strings.Replace(brokertest.Catalog, `"name": "small"`, `"name": "tiny"`, 1), nil, change, "AVAILABLE renamed: large, standard, tiny", "COMPLETE"},
		{"drops a plan that nobody uses", true, fmt.Sprintf(service, one), nil, change, "AVAILABLE renamed: small", "COMPLETE"},
		{"drops a plan in use", true, fmt.Sprintf(service, `{"id": "plan-new", "name": "new", "description": "d"}`), nil, change, "AVAILABLE renamed: new, [small]", "COMPLETE | warning: *small*"},
		{"breaks when read again", true, "", script(brokertest.GetCatalog, refuse(500, "", "")), change, usualThen, updating + "The service broker failed with status 500." + stays},
		{"has an id twice when read again", true, fmt.Sprintf(service, one+","+one), nil, change, usualThen, updating + "*id*"},
		{"is not there when read again", true, "", nil, downed(change), usualThen, updating + "The service broker could not be reached." + stays},
	} {
		t.Run(r.name, func(t *testing.T) {
			w.t = t
			w.exec(`update service_instances set held = false`)
			w.exec(`delete from service_instances`)
			w.exec(`delete from service_brokers`)
			w.broker.SetCatalog(brokertest.Catalog)
			if r.known {
				w.ended(register(w).GUID)
				w.publish()
				w.ended(w.create("db", "small", "").GUID)
			}
			w.broker.Forget()
			if r.offers != "" {
				w.broker.SetCatalog(r.offers)
			}
			if r.script != nil {
				r.script(w.broker)
			}
			job := details(w.ended(r.ask(w).GUID))
			sees := w.value(`select b.state || ' ' || b.name || ': ' || coalesce((select string_agg(case when p.active then p.name else '[' || p.name || ']' end, ', ' order by p.name)
				from service_plans p join service_offerings o on o.guid = p.offering_guid where o.broker_guid = b.guid), '') from service_brokers b`)
			show(&shown, r.name, sees, job, strings.Join(w.story(), ", "))
			if sees != r.sees {
				t.Errorf("the user sees\n got %s\nwant %s", sees, r.sees)
			}
			if start, inside, ok := strings.Cut(strings.TrimSuffix(r.job, "*"), "*"); job != r.job && (!ok || !strings.HasPrefix(job, start) || !strings.Contains(job, inside)) {
				t.Errorf("the job says\n got %s\nwant %s", job, r.job)
			}
		})
	}
	t.Logf("Catalogs\n%s", shown.String())
	w.t = t
	w.hushed(w.broker.Account.Password)
}
