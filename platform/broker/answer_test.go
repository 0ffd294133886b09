package broker_test

import (
	"context"
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

type method func(*broker.Broker, context.Context, broker.Call) platform.Answer

var methods = map[brokertest.Call]method{
	brokertest.Provision: (*broker.Broker).Provision, brokertest.Update: (*broker.Broker).Update, brokertest.Deprovision: (*broker.Broker).Deprovision,
	brokertest.Bind: (*broker.Broker).Bind, brokertest.Unbind: (*broker.Broker).Unbind,
	brokertest.PollInstance: (*broker.Broker).InstanceOperation, brokertest.PollBinding: (*broker.Broker).BindingOperation,
	brokertest.GetInstance: (*broker.Broker).Instance, brokertest.GetBinding: (*broker.Broker).Binding,
	brokertest.GetCatalog: func(b *broker.Broker, ctx context.Context, _ broker.Call) platform.Answer {
		_, a := b.Catalog(ctx)
		return a
	},
}

// answer is what a client makes of what a broker says. The cause is only looked for.
func answer(t *testing.T, call brokertest.Call, act brokertest.Act) platform.Answer {
	t.Helper()
	b, c := start(t, brokertest.Options{})
	b.Script(call, act)
	a := methods[call](c, t.Context(), broker.Call{InstanceID: "i1", BindingID: "b1", ServiceID: "s", PlanID: "p"})
	if b.Unplayed() != 0 {
		t.Fatalf("the broker was not asked: %+v", a)
	}
	return a
}

func TestAnswers(t *testing.T) {
	details := func(credentials, drain, mounts string) platform.BindingDetails {
		return platform.BindingDetails{Credentials: json.RawMessage(credentials), SyslogDrainURL: drain, VolumeMounts: json.RawMessage(mounts)}
	}
	for _, x := range []struct {
		call   brokertest.Call
		status int
		body   string
		want   platform.Answer // but for the status
	}{
		{brokertest.Provision, 201, `{}`, platform.Answer{}},
		{brokertest.Provision, 200, `{"dashboard_url":"https://d.example.org/1","future":[1]}`, platform.Answer{DashboardURL: "https://d.example.org/1"}},
		{brokertest.Provision, 202, `{"operation":"task","dashboard_url":null}`, platform.Answer{Token: "task"}},
		{brokertest.Provision, 202, `{"operation":null}`, platform.Answer{}},
		{brokertest.Provision, 202, `{}`, platform.Answer{}},
		{brokertest.Provision, 201, `{"operation":"of no use"}`, platform.Answer{}},
		{brokertest.Provision, 201, `{"dashboard_url":"javascript:alert(1)"}`, platform.Answer{}},
		{brokertest.Provision, 201, `{"dashboard_url":"/relative"}`, platform.Answer{}},
		{brokertest.Provision, 201, `{"dashboard_url":7}`, platform.Answer{}},
		{brokertest.Provision, 201, `{"dashboard_url":"https://` + strings.Repeat("d", 10_001) + `"}`, platform.Answer{}},
		{brokertest.Update, 200, `{"dashboard_url":"http://d.example.org"}`, platform.Answer{DashboardURL: "http://d.example.org"}},
		{brokertest.Update, 202, `{"operation":"up"}`, platform.Answer{Token: "up"}},
		{brokertest.Deprovision, 200, `{}`, platform.Answer{}},
		{brokertest.Deprovision, 202, `{"operation":"down"}`, platform.Answer{Token: "down"}},
		{brokertest.Deprovision, 410, `{}`, platform.Answer{}},
		{brokertest.Bind, 201, `{"credentials":{"b":"<&>","a":12345678901234567890}}`, platform.Answer{Details: details(`{"a":12345678901234567890,"b":"<&>"}`, "", `[]`)}},
		{brokertest.Bind, 201, `{"credentials":{"lone":"\ud800"}}`, platform.Answer{Details: details(`{"lone":"�"}`, "", `[]`)}},
		{brokertest.Bind, 200, `{}`, platform.Answer{Details: details(`{}`, "", `[]`)}},
		{brokertest.Bind, 201, `{"credentials":null,"syslog_drain_url":"syslog-tls://logs.example.org:6514","volume_mounts":[{"driver":"nfs"}]}`,
			platform.Answer{Details: details(`{}`, "syslog-tls://logs.example.org:6514", `[{"driver":"nfs"}]`)}},
		{brokertest.Bind, 202, `{"operation":"b","credentials":{"not":"yet"}}`, platform.Answer{Token: "b"}},
		{brokertest.Unbind, 202, `{"operation":"u"}`, platform.Answer{Token: "u"}},
		{brokertest.PollInstance, 200, `{"state":"in progress","description":"10%"}`, platform.Answer{State: platform.OperationRunning, Description: "10%"}},
		{brokertest.PollInstance, 200, `{"state":"succeeded","description":5}`, platform.Answer{State: platform.OperationSucceeded}},
		{brokertest.PollBinding, 200, `{"state":"failed","description":"no room"}`, platform.Answer{State: platform.OperationFailed, Description: "no room"}},
		{brokertest.PollBinding, 410, ``, platform.Answer{}},
		{brokertest.GetInstance, 200, `{"dashboard_url":"https://d.example.org","parameters":{"size":1}}`, platform.Answer{DashboardURL: "https://d.example.org", Parameters: json.RawMessage(`{"size":1}`)}},
		{brokertest.GetInstance, 200, `{"parameters":null}`, platform.Answer{}},
		{brokertest.GetBinding, 200, `{"credentials":{"a":1},"parameters":{"role":"r"}}`, platform.Answer{Details: details(`{"a":1}`, "", `[]`), Parameters: json.RawMessage(`{"role":"r"}`)}},
		// Refusals. A body that cannot be read does not make them something else.
		{brokertest.Provision, 422, `{"error":"AsyncRequired","description":"wait"}`, platform.Answer{Code: "AsyncRequired", Description: "wait"}},
		{brokertest.Bind, 400, `{"description":"no"}`, platform.Answer{Description: "no"}},
		{brokertest.Bind, 409, `{"error":["x"],"description":{}}`, platform.Answer{}},
		{brokertest.Update, 500, `<html>`, platform.Answer{}},
		{brokertest.Unbind, 503, ``, platform.Answer{}},
		{brokertest.GetCatalog, 401, `{"description":"who"}`, platform.Answer{Description: "who"}},
		{brokertest.Provision, 408, `{}`, platform.Answer{}},
		{brokertest.Provision, 404, strings.Repeat(" ", 2<<20) + `{"error":"TooFarAway"}`, platform.Answer{}},
	} {
		got := answer(t, x.call, brokertest.Say(x.status, x.body))
		got.Cause, x.want.Status = "", x.status
		if !reflect.DeepEqual(got, x.want) {
			t.Errorf("%s answered %d %.80s:\n got %+v\nwant %+v", x.call, x.status, x.body, got, x.want)
		}
	}
}

func TestMalformed(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 100) + `1` + strings.Repeat(`}`, 100)
	for _, x := range []struct {
		call  brokertest.Call
		body  string
		cause string
	}{
		{brokertest.Provision, ``, "not a JSON object"},
		{brokertest.Provision, `null`, "not a JSON object"},
		{brokertest.Provision, `[]`, "not a JSON object"},
		{brokertest.Provision, `"{}"`, "not a JSON object"},
		{brokertest.Provision, `<html>`, "not a JSON object"},
		{brokertest.Provision, `{"a":`, "not a JSON object"},
		{brokertest.Provision, `{} {}`, "goes on"},
		{brokertest.Provision, `{}}`, "goes on"},
		{brokertest.Provision, deep, "nested too deep"},
		{brokertest.Provision, `{"x":"\u0000"}`, "NUL"},
		{brokertest.Provision, `{"\u0000":1}`, "NUL"},
		{brokertest.Provision, `{"x":1e999}`, "without end"},
		{brokertest.Provision, `{"x":` + strings.Repeat("9", 2000) + `}`, "without end"},
		{brokertest.Provision, `{"x":"` + strings.Repeat("x", 2<<20) + `"}`, "larger than 2 MB"},
		{brokertest.GetInstance, `{"parameters":[]}`, "parameters: not an object"},
		{brokertest.Bind, `{"credentials":"secret-words"}`, "credentials: not an object"},
		{brokertest.Bind, `{"credentials":["secret-words"]}`, "credentials: not an object"},
		{brokertest.Bind, `{"volume_mounts":{}}`, "volume_mounts: not a list"},
		{brokertest.Bind, `{"syslog_drain_url":"secret-words"}`, "syslog_drain_url"},
		{brokertest.Bind, `{"syslog_drain_url":5}`, "syslog_drain_url"},
		{brokertest.PollInstance, `{}`, "state"},
		{brokertest.PollInstance, `{"state":"done"}`, "state"},
		{brokertest.PollBinding, `{"state":1}`, "state"},
		{brokertest.Deprovision, ``, "not a JSON object"},
		{brokertest.GetCatalog, `{}`, "no services"},
		{brokertest.GetCatalog, `{"services":null}`, "no services"},
		{brokertest.GetCatalog, `{"services":{}}`, "services"},
		{brokertest.GetCatalog, `{"services":[{"name":5}]}`, "services"},
		{brokertest.GetCatalog, `{"services":[{"metadata":"x"}]}`, "metadata: not an object"},
		{brokertest.GetCatalog, `{"services":[{"plans":[{"schemas":[]}]}]}`, "schemas: not an object"},
		{brokertest.GetCatalog, `{"services":[{"plans":[{"metadata":1}]}]}`, "metadata: not an object"},
		{brokertest.GetCatalog, `{"services":[{"plans":[{"free":"yes"}]}]}`, "free"},
	} {
		got := answer(t, x.call, brokertest.Say(http.StatusOK, x.body))
		cause := got.Cause
		got.Cause = ""
		if want := (platform.Answer{Status: 200, Malformed: true}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s answered %.80s: got %+v", x.call, x.body, got)
		}
		if !strings.Contains(cause, x.cause) || strings.Contains(cause, "secret-words") {
			t.Errorf("%s answered %.80s: the cause is %q, want one with %q", x.call, x.body, cause, x.cause)
		}
	}
	for _, body := range []string{`{"operation":7}`, `{"operation":"` + strings.Repeat("x", 10_001) + `"}`} {
		for _, call := range []brokertest.Call{brokertest.Provision, brokertest.Update, brokertest.Deprovision, brokertest.Bind, brokertest.Unbind} {
			if got := answer(t, call, brokertest.Say(http.StatusAccepted, body)); !got.Malformed || got.Status != 202 || got.Token != "" {
				t.Errorf("%s answered 202 %.40s: got %+v", call, body, got)
			}
		}
	}
	if got := answer(t, brokertest.GetCatalog, brokertest.Say(http.StatusCreated, `{"services":[]}`)); !got.Malformed {
		t.Errorf("a catalog with 201: %+v", got)
	}
}

func TestRetryAfter(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"7": 7 * time.Second, "0": 0, "3600": time.Hour, "3601": time.Hour, "99999999999999999999": 0, "18446744073709551615": time.Hour,
		"-1": 0, "1.5": 0, "soon": 0, "": 0,
		"Mon, 02 Jan 2006 15:04:05 GMT": 0, time.Now().Add(48 * time.Hour).UTC().Format(http.TimeFormat): time.Hour,
	} {
		act := brokertest.Say(http.StatusOK, `{"state":"in progress"}`)
		act.RetryAfter = value
		if got := answer(t, brokertest.PollInstance, act); got.RetryAfter != want || got.State != platform.OperationRunning {
			t.Errorf("Retry-After %q: got %v, want %v", value, got.RetryAfter, want)
		}
	}
	act := brokertest.Say(http.StatusServiceUnavailable, ``)
	act.RetryAfter = time.Now().Add(10 * time.Minute).UTC().Format(http.TimeFormat)
	if got := answer(t, brokertest.PollInstance, act).RetryAfter; got < 9*time.Minute || got > 10*time.Minute {
		t.Errorf("Retry-After in ten minutes of a refusal: got %v", got)
	}
}
