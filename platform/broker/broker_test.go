package broker_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/broker"
	"github.com/proa-dev/proa/platform/broker/brokertest"
)

// start gives a broker and a client that may ask it.
func start(t *testing.T, opt brokertest.Options) (*brokertest.Broker, *broker.Broker) {
	t.Helper()
	b, err := brokertest.Start(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b, &broker.Broker{URL: b.URL, Account: b.Account, HTTP: &http.Client{Timeout: 10 * time.Second}}
}

var ana = platform.Actor{GUID: "ana-guid", Type: "user", Name: "ana"}

var call = broker.Call{
	InstanceID: "i1", BindingID: "b1", ServiceID: brokertest.ServiceID, PlanID: brokertest.SmallID, Who: ana, OrgGUID: "o1", SpaceGUID: "s1",
	Context: map[string]any{"organization_name": "org", "space_name": "dev", "instance_name": "db"},
}

func with(change func(*broker.Call)) broker.Call {
	c := call
	change(&c)
	return c
}

func TestSent(t *testing.T) {
	const where = `"context":{"instance_name":"db","organization_guid":"o1","organization_name":"org","platform":"cloudfoundry","space_guid":"s1","space_name":"dev"}`
	full := with(func(c *broker.Call) {
		c.Parameters, c.Maintenance = json.RawMessage(`{"size":3}`), &platform.Maintenance{Version: "2.0", Description: "new"}
		c.Previous = &broker.Previous{ServiceID: "s", PlanID: "old", OrgGUID: "o1", SpaceGUID: "s1", Maintenance: &platform.Maintenance{Version: "1.0"}}
		c.AppGUID, c.Token = "a1", "task 1&2"
	})
	for name, x := range map[string]struct {
		ask  func(*broker.Broker, context.Context, broker.Call) platform.Answer
		call broker.Call
		line string
		body string
	}{
		"provision": {(*broker.Broker).Provision, full, "PUT /v2/service_instances/i1?accepts_incomplete=true",
			`{"service_id":"service-database","plan_id":"plan-small",` + where + `,"organization_guid":"o1","space_guid":"s1","parameters":{"size":3},"maintenance_info":{"version":"2.0"}}`},
		"provision as little as possible": {(*broker.Broker).Provision, broker.Call{InstanceID: "i", ServiceID: "s", PlanID: "p"}, "PUT /v2/service_instances/i?accepts_incomplete=true",
			`{"service_id":"s","plan_id":"p","context":{"platform":"cloudfoundry"},"organization_guid":"","space_guid":""}`},
		"update": {(*broker.Broker).Update, full, "PATCH /v2/service_instances/i1?accepts_incomplete=true",
			`{"service_id":"service-database","plan_id":"plan-small",` + where + `,"parameters":{"size":3},` +
				`"previous_values":{"service_id":"s","plan_id":"old","organization_id":"o1","space_id":"s1","maintenance_info":{"version":"1.0"}},"maintenance_info":{"version":"2.0"}}`},
		"deprovision": {(*broker.Broker).Deprovision, full, "DELETE /v2/service_instances/i1?accepts_incomplete=true&plan_id=plan-small&service_id=service-database", ""},
		"bind an app": {(*broker.Broker).Bind, full, "PUT /v2/service_instances/i1/service_bindings/b1?accepts_incomplete=true",
			`{"service_id":"service-database","plan_id":"plan-small",` + where + `,"app_guid":"a1","bind_resource":{"app_guid":"a1","space_guid":"s1"},"parameters":{"size":3}}`},
		"bind a key": {(*broker.Broker).Bind, call, "PUT /v2/service_instances/i1/service_bindings/b1?accepts_incomplete=true",
			`{"service_id":"service-database","plan_id":"plan-small",` + where + `,"bind_resource":{"space_guid":"s1"}}`},
		"unbind":        {(*broker.Broker).Unbind, full, "DELETE /v2/service_instances/i1/service_bindings/b1?accepts_incomplete=true&plan_id=plan-small&service_id=service-database", ""},
		"poll instance": {(*broker.Broker).InstanceOperation, full, "GET /v2/service_instances/i1/last_operation?operation=task+1%262&plan_id=plan-small&service_id=service-database", ""},
		"poll binding":  {(*broker.Broker).BindingOperation, call, "GET /v2/service_instances/i1/service_bindings/b1/last_operation?plan_id=plan-small&service_id=service-database", ""},
		"get instance":  {(*broker.Broker).Instance, full, "GET /v2/service_instances/i1?plan_id=plan-small&service_id=service-database", ""},
		"get binding":   {(*broker.Broker).Binding, full, "GET /v2/service_instances/i1/service_bindings/b1?plan_id=plan-small&service_id=service-database", ""},
		"ids that want to be paths": {(*broker.Broker).Unbind, broker.Call{InstanceID: "a/../b?c", BindingID: "%2e", ServiceID: "s&t", PlanID: "p"},
			"DELETE /v2/service_instances/a%2F..%2Fb%3Fc/service_bindings/%252e?accepts_incomplete=true&plan_id=p&service_id=s%26t", ""},
		"the platform can be told more": {(*broker.Broker).Provision, broker.Call{InstanceID: "i", Context: map[string]any{"instance_annotations": map[string]string{"a": "b"}}},
			"PUT /v2/service_instances/i?accepts_incomplete=true",
			`{"service_id":"","plan_id":"","context":{"instance_annotations":{"a":"b"},"platform":"cloudfoundry"},"organization_guid":"","space_guid":""}`},
	} {
		t.Run(name, func(t *testing.T) {
			b, c := start(t, brokertest.Options{})
			x.ask(c, t.Context(), x.call)
			asked := b.Asked()
			if len(asked) != 1 {
				t.Fatalf("asked %d times", len(asked))
			}
			if line := asked[0].Method + " " + asked[0].Path + "?" + asked[0].Query.Encode(); line != x.line {
				t.Errorf("sent %s\nwant %s", line, x.line)
			}
			if string(asked[0].Body) != x.body {
				t.Errorf("sent %s\nwant %s", asked[0].Body, x.body)
			}
			if kind := asked[0].Header.Get("Content-Type"); kind != "" && x.body == "" || kind != "application/json" && x.body != "" {
				t.Errorf("content type %q", kind)
			}
		})
	}
}

func TestHeaders(t *testing.T) {
	b, c := start(t, brokertest.Options{})
	c.URL += "/behind/a/path/"
	if _, a := c.Catalog(t.Context()); a.Status != http.StatusOK {
		t.Fatalf("catalog behind a path: %+v", a)
	}
	c.Instance(t.Context(), call)
	asked := b.Asked()
	if asked[0].Path != "/behind/a/path/v2/catalog" || asked[1].Path != "/behind/a/path/v2/service_instances/i1" {
		t.Errorf("asked at %s and %s", asked[0].Path, asked[1].Path)
	}
	ids := map[string]bool{}
	for _, a := range asked {
		ids[a.Header.Get("X-Broker-Api-Request-Identity")] = true
		if v := a.Header.Get("X-Broker-Api-Version"); v != "2.17" {
			t.Errorf("version %q", v)
		}
	}
	if len(ids) != 2 || ids[""] {
		t.Errorf("identities of requests: %v", ids)
	}
	if got := asked[0].Header.Get("X-Broker-Api-Originating-Identity"); got != "" {
		t.Errorf("a catalog is asked for by nobody, not %q", got)
	}
	value, found := strings.CutPrefix(asked[1].Header.Get("X-Broker-Api-Originating-Identity"), "cloudfoundry ")
	plain, err := base64.StdEncoding.DecodeString(value)
	if !found || err != nil || string(plain) != `{"user_id":"ana-guid"}` {
		t.Errorf("identity %s, %v", plain, err)
	}
}

func TestCallIsNotChanged(t *testing.T) {
	_, c := start(t, brokertest.Options{})
	where := map[string]any{"instance_name": "db"}
	c.Provision(t.Context(), with(func(c *broker.Call) { c.Context = where }))
	if !reflect.DeepEqual(where, map[string]any{"instance_name": "db"}) {
		t.Errorf("the caller's context became %v", where)
	}
}
