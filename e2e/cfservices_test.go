package e2e_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/cloudfoundry/go-cfclient/v3/client"
	"github.com/cloudfoundry/go-cfclient/v3/resource"

	"github.com/proa-dev/proa/platform/broker/brokertest"
)

// TestCfclientServices drives brokers, offerings, plans, instances, keys and bindings with the same public client. The broker is a
// stand-in at the wire that takes its time for everything.
func TestCfclientServices(t *testing.T) {
	if os.Getenv("PROA_TEST_E2E") == "" {
		t.Skip("needs a whole Proa: make up, then . .run/env, then PROA_TEST_E2E=1 go test ./e2e")
	}
	there, err := brokertest.Start(brokertest.Options{Polls: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(there.Close)
	w := &cfServices{cfWorld: newCfWorld(t), there: there}
	w.register()
	w.offered()
	w.instance()
	w.keys()
	w.bindings()
	w.userProvided()
	w.end()
}

type cfServices struct {
	*cfWorld

	there  *brokertest.Broker
	name   string // of the broker
	broker *resource.ServiceBroker
	plans  map[string]*resource.ServicePlan
	db     *resource.ServiceInstance
}

func (w *cfServices) register() {
	w.name = "broker-of-" + w.org.Name
	w.finish("register a broker")(w.cf.ServiceBrokers.Create(w.ctx, resource.NewServiceBrokerCreate(w.name, w.there.URL, w.there.Account.Username, w.there.Account.Password)))
	named := client.NewServiceBrokerListOptions()
	named.Names = client.Filter{Values: []string{w.name}}
	var err error
	w.broker, err = w.cf.ServiceBrokers.Single(w.ctx, named)
	w.must("find the broker", err)
	cfWant(w.cfWorld, "its address", w.broker.URL, w.there.URL)
	change := resource.NewServiceBrokerUpdate()
	change.URL = &w.there.URL
	job, _, err := w.cf.ServiceBrokers.Update(w.ctx, w.broker.GUID, change)
	w.finish("read its catalog again")(job, err)
}

func (w *cfServices) offered() {
	of := client.NewServiceOfferingListOptions()
	of.ServiceBrokerGUIDs = client.Filter{Values: []string{w.broker.GUID}}
	offerings, err := w.cf.ServiceOfferings.ListAll(w.ctx, of)
	w.must("list offerings", err)
	cfWant(w.cfWorld, "offerings", len(offerings), 2)
	list := client.NewServicePlanListOptions()
	list.ServiceBrokerGUIDs = client.Filter{Values: []string{w.broker.GUID}}
	plans, beside, err := w.cf.ServicePlans.ListIncludeServiceOfferingAll(w.ctx, list)
	w.must("list plans", err)
	cfWant(w.cfWorld, "offerings beside the plans", len(beside), 2)
	w.plans = map[string]*resource.ServicePlan{}
	for _, p := range plans {
		w.plans[p.Name] = p
		to := resource.NewServicePlanVisibilityUpdate(resource.ServicePlanVisibilityOrganization)
		to.Organizations = []resource.ServicePlanVisibilityRelation{{GUID: w.org.GUID}}
		_, err := w.cf.ServicePlansVisibility.Apply(w.ctx, p.GUID, to)
		w.must("let the organization have it", err)
	}
	cfWant(w.cfWorld, "large is free", w.plans["large"].Free, false)
}

func (w *cfServices) instance() {
	ask := resource.NewServiceInstanceCreateManaged("db", w.space.GUID, w.plans["small"].GUID)
	ask.Tags = []string{"mine"}
	parameters := json.RawMessage(`{"size":3}`)
	ask.Parameters = &parameters
	w.finish("create a service instance")(w.cf.ServiceInstances.CreateManaged(w.ctx, ask))
	named := client.NewServiceInstanceListOptions()
	named.Names, named.SpaceGUIDs = client.Filter{Values: []string{"db"}}, client.Filter{Values: []string{w.space.GUID}}
	var err error
	w.db, err = w.cf.ServiceInstances.Single(w.ctx, named)
	w.must("find it", err)
	cfWant(w.cfWorld, "last operation", w.db.LastOperation.Type+" "+w.db.LastOperation.State, "create succeeded")
	told, err := w.cf.ServiceInstances.GetManagedParameters(w.ctx, w.db.GUID)
	w.must("ask for its parameters", err)
	cfWant(w.cfWorld, "parameters", strings.ReplaceAll(string(*told), " ", ""), `{"size":3}`)

	change := resource.NewServiceInstanceManagedUpdate().WithServicePlan(w.plans["large"].GUID)
	job, _, err := w.cf.ServiceInstances.UpdateManaged(w.ctx, w.db.GUID, change)
	w.finish("change its plan")(job, err)
	now, err := w.cf.ServiceInstances.Get(w.ctx, w.db.GUID)
	w.must("read it", err)
	cfWant(w.cfWorld, "plan", now.Relationships.ServicePlan.Data.GUID, w.plans["large"].GUID)
}

func (w *cfServices) keys() {
	job, _, err := w.cf.ServiceCredentialBindings.Create(w.ctx, resource.NewServiceCredentialBindingCreateKey(w.db.GUID, "laptop"))
	w.finish("create a key")(job, err)
	w.binding("laptop", "key")
}

func (w *cfServices) bindings() {
	a, err := w.cf.Applications.Create(w.ctx, resource.NewAppCreate("bound", w.space.GUID))
	w.must("create an app", err)
	ask := resource.NewServiceCredentialBindingCreateApp(w.db.GUID, a.GUID)
	name := "main-db"
	ask.Name = &name
	job, _, err := w.cf.ServiceCredentialBindings.Create(w.ctx, ask)
	w.finish("bind an app")(job, err)
	w.binding(name, "app")
	env, err := w.cf.Applications.GetEnvironment(w.ctx, a.GUID)
	w.must("read the app's environment", err)
	if services := string(env.SystemEnvVars["VCAP_SERVICES"]); !strings.Contains(services, `"binding_name":"main-db"`) {
		w.Errorf("VCAP_SERVICES: got %s", services)
	}
}

// binding looks at one, and deletes it if it is a key.
func (w *cfServices) binding(name, kind string) {
	named := client.NewServiceCredentialBindingListOptions()
	named.Names, named.ServiceInstanceGUIDs = client.Filter{Values: []string{name}}, client.Filter{Values: []string{w.db.GUID}}
	b, err := w.cf.ServiceCredentialBindings.Single(w.ctx, named)
	w.must("find "+name, err)
	cfWant(w.cfWorld, "type", b.Type, kind)
	details, err := w.cf.ServiceCredentialBindings.GetDetails(w.ctx, b.GUID)
	w.must("read its credentials", err)
	if text, _ := json.Marshal(details.Credentials); !strings.Contains(string(text), brokertest.Password(b.GUID)) {
		w.Errorf("credentials of %s: got %s", name, text)
	}
	if kind == "key" {
		w.finish("delete " + name)(w.cf.ServiceCredentialBindings.Delete(w.ctx, b.GUID))
	}
}

func (w *cfServices) userProvided() {
	ask := resource.NewServiceInstanceCreateUserProvided("outside", w.space.GUID)
	credentials := json.RawMessage(`{"token":"t"}`)
	ask.Credentials = &credentials
	made, err := w.cf.ServiceInstances.CreateUserProvided(w.ctx, ask)
	w.must("create a user-provided service instance", err)
	told, err := w.cf.ServiceInstances.GetUserProvidedCredentials(w.ctx, made.GUID)
	w.must("read its credentials", err)
	cfWant(w.cfWorld, "credentials", strings.ReplaceAll(string(*told), " ", ""), `{"token":"t"}`)
	if job, err := w.cf.ServiceInstances.Delete(w.ctx, made.GUID); err != nil || job != "" {
		w.Errorf("delete it: got job %q and %v", job, err)
	}
}

// end deletes the instance with the binding that it has, and the broker.
func (w *cfServices) end() {
	w.finish("delete the service instance")(w.cf.ServiceInstances.Delete(w.ctx, w.db.GUID))
	if left := len(w.there.Instances()) + len(w.there.Bindings()); left != 0 {
		w.Errorf("the broker still has %d instances and bindings", left)
	}
	w.finish("delete the broker")(w.cf.ServiceBrokers.Delete(w.ctx, w.broker.GUID))
}
