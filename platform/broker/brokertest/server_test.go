package brokertest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proa-dev/proa/platform/broker/brokertest"
)

func start(t *testing.T, opt brokertest.Options) *brokertest.Broker {
	t.Helper()
	b, err := brokertest.Start(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// send asks as plainly as can be, so that what the broker refuses can be sent too.
func send(t *testing.T, b *brokertest.Broker, line, body string, change ...func(*http.Request)) (int, string) {
	t.Helper()
	method, path, _ := strings.Cut(line, " ")
	r, err := http.NewRequestWithContext(t.Context(), method, b.URL+"/v2/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth(b.Account.Username, b.Account.Password)
	r.Header.Set("X-Broker-API-Version", "2.17")
	r.Header.Set("Content-Type", "application/json")
	for _, c := range change {
		c(r)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

const (
	made    = `{"service_id":"service-database","plan_id":"plan-small","organization_guid":"o","space_guid":"s","parameters":{"a":1}}`
	bound   = `{"service_id":"service-database","plan_id":"plan-small","bind_resource":{"app_guid":"a"}}`
	of      = "?service_id=service-database&plan_id=plan-small"
	patient = "?accepts_incomplete=true"
)

// step is a request and the answer of a correct broker: its status and, if there is one, a part of its body.
type step struct {
	line, body string
	status     int
	says       string
}

func walk(t *testing.T, b *brokertest.Broker, steps []step) {
	t.Helper()
	for _, s := range steps {
		if status, said := send(t, b, s.line, s.body); status != s.status || !strings.Contains(said, s.says) {
			t.Errorf("%s %s: got %d %s, want %d %s", s.line, s.body, status, said, s.status, s.says)
		}
	}
}

func TestStrangers(t *testing.T) {
	b := start(t, brokertest.Options{})
	for name, x := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"nobody":         {func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"wrong password": {func(r *http.Request) { r.SetBasicAuth(b.Account.Username, "x") }, 401},
		"no version":     {func(r *http.Request) { r.Header.Del("X-Broker-API-Version") }, 412},
		"old version":    {func(r *http.Request) { r.Header.Set("X-Broker-API-Version", "1.0") }, 412},
		"other path":     {func(r *http.Request) { r.URL.Path = "/v2/other" }, 404},
		"other method":   {func(r *http.Request) { r.Method = http.MethodPost }, 404},
	} {
		if got, said := send(t, b, "GET catalog", "", x.change); got != x.want {
			t.Errorf("%s: got %d %s, want %d", name, got, said, x.want)
		}
	}
}

func TestAtOnce(t *testing.T) {
	b := start(t, brokertest.Options{})
	walk(t, b, []step{
		{"GET catalog", "", 200, "service-database"},
		{"PUT service_instances/i", `{"service_id":"none","plan_id":"plan-small","organization_guid":"o","space_guid":"s"}`, 400, "no such service"},
		{"PUT service_instances/i", `{"service_id":"service-database","plan_id":"plan-small"}`, 400, "organization_guid"},
		{"PUT service_instances/i", `{"service_id":"service-database","plan_id":"plan-small","organization_guid":"o","space_guid":"s","parameters":[]}`, 400, ""},
		{"PUT service_instances/i", `{"service_id":"service-database","plan_id":"plan-small","organization_guid":"o","space_guid":"s","maintenance_info":{"version":"1"}}`, 422, "MaintenanceInfoConflict"},
		{"PUT service_instances/i", `no`, 400, ""},
		{"GET service_instances/i", "", 404, ""},
		{"PUT service_instances/i", made, 201, "dashboard_url"},
		{"PUT service_instances/i", made, 200, ""},
		{"PUT service_instances/i", strings.Replace(made, "small", "large", 1), 409, ""},
		{"PUT service_instances/i", strings.Replace(made, `"a":1`, `"a":2`, 1), 409, ""},
		{"GET service_instances/i", "", 200, `"parameters":{"a":1}`},
		{"PATCH service_instances/none", made, 404, ""},
		{"PATCH service_instances/i", `{"service_id":"service-database","plan_id":"none"}`, 400, ""},
		{"PATCH service_instances/i", `{"service_id":"service-database","plan_id":"plan-large","previous_values":{"plan_id":"plan-large"}}`, 400, "before"},
		{"PATCH service_instances/i", `{"service_id":"service-database","plan_id":"plan-large","parameters":{"a":3},"previous_values":{"plan_id":"plan-small"}}`, 200, "{}"},
		{"PATCH service_instances/i", `{"service_id":"service-database","plan_id":"plan-large","parameters":{"a":3},"previous_values":{"plan_id":"plan-small"}}`, 200, "{}"},
		{"PUT service_instances/none/service_bindings/b", bound, 404, ""},
		{"PUT service_instances/i/service_bindings/b", `{"service_id":"service-plain","plan_id":"plan-plain"}`, 400, ""},
		{"PUT service_instances/i/service_bindings/b", bound, 201, brokertest.Password("b")},
		{"PUT service_instances/i/service_bindings/b", bound, 200, brokertest.Password("b")},
		{"PUT service_instances/i/service_bindings/b", strings.Replace(bound, `"a"`, `"z"`, 1), 409, ""},
		{"GET service_instances/i/service_bindings/b", "", 200, brokertest.Password("b")},
		{"DELETE service_instances/i", "", 400, ""},
		{"DELETE service_instances/i?service_id=service-plain&plan_id=plan-plain", "", 400, ""},
		{"DELETE service_instances/i" + of, "", 422, "still has bindings"},
		{"DELETE service_instances/i/service_bindings/b", "", 400, ""},
		{"DELETE service_instances/i/service_bindings/b" + of, "", 200, "{}"},
		{"DELETE service_instances/i/service_bindings/b" + of, "", 410, "{}"},
		{"GET service_instances/i/last_operation", "", 200, "succeeded"},
		{"DELETE service_instances/i" + of, "", 200, "{}"},
		{"DELETE service_instances/i" + of, "", 410, "{}"},
		{"GET service_instances/i/last_operation", "", 410, ""},
	})
	if i, x := b.Instances(), b.Bindings(); len(i)+len(x) != 0 {
		t.Errorf("kept %v and %v", i, x)
	}
}

func TestWhatAPlainServiceCannot(t *testing.T) {
	plain := strings.NewReplacer("service-database", "service-plain", "plan-small", "plan-plain")
	walk(t, start(t, brokertest.Options{}), []step{
		{"PUT service_instances/i", plain.Replace(made), 201, ""},
		{"GET service_instances/i", "", 404, ""},
		{"PUT service_instances/i/service_bindings/b", plain.Replace(bound), 201, ""},
		{"GET service_instances/i/service_bindings/b", "", 404, ""},
	})
	b := start(t, brokertest.Options{Catalog: `{"services":[{"id":"s","bindable":true,"plans":[{"id":"p","bindable":false},{"id":"q"}]}]}`})
	fixed := strings.NewReplacer("service-database", "s", "plan-small", "p")
	walk(t, b, []step{
		{"PUT service_instances/i", fixed.Replace(made), 201, ""},
		{"PUT service_instances/i/service_bindings/b", fixed.Replace(bound), 400, "cannot be bound"},
		{"PATCH service_instances/i", `{"service_id":"s","plan_id":"q"}`, 422, "cannot be changed"},
	})
}

func TestLater(t *testing.T) {
	b := start(t, brokertest.Options{Polls: 2})
	const update = `{"service_id":"service-database","plan_id":"plan-large"}`
	walk(t, b, []step{
		{"PUT service_instances/i", made, 422, "AsyncRequired"},
		{"PUT service_instances/i" + patient, made, 202, `"operation":"provision-1"`},
		{"PUT service_instances/i" + patient, made, 202, `"operation":"provision-1"`},
		{"PUT service_instances/i" + patient, strings.Replace(made, "small", "large", 1), 409, ""},
		{"PUT service_instances/i/service_bindings/b" + patient, bound, 422, "ConcurrencyError"},
		{"GET service_instances/i", "", 404, ""},
		{"GET service_instances/i/last_operation?operation=other", "", 400, ""},
		{"GET service_instances/i/last_operation?operation=provision-1", "", 200, "in progress"},
		{"GET service_instances/i/last_operation?operation=provision-1", "", 200, "succeeded"},
		{"PUT service_instances/i" + patient, made, 200, ""},
		{"PATCH service_instances/i" + patient, update, 202, "update-2"},
		{"PATCH service_instances/i" + patient, update, 202, "update-2"},
		{"PATCH service_instances/i" + patient, made, 422, "ConcurrencyError"},
		{"DELETE service_instances/i" + of + "&accepts_incomplete=true", "", 422, "ConcurrencyError"},
		{"GET service_instances/i", "", 422, "ConcurrencyError"},
		{"GET service_instances/i/last_operation?operation=update-2&plan_id=plan-large", "", 400, "before"},
		{"GET service_instances/i/last_operation?operation=update-2&plan_id=plan-small", "", 200, "in progress"},
		{"GET service_instances/i/last_operation?operation=update-2", "", 200, "succeeded"},
		{"GET service_instances/i", "", 200, "plan-large"},
		{"PUT service_instances/i/service_bindings/b" + patient, bound, 202, "bind-3"},
		{"GET service_instances/i/service_bindings/b", "", 404, ""},
		{"GET service_instances/i/service_bindings/b/last_operation?operation=bind-3", "", 200, "in progress"},
		{"GET service_instances/i/service_bindings/b/last_operation?operation=bind-3", "", 200, "succeeded"},
		{"GET service_instances/i/service_bindings/b", "", 200, brokertest.Password("b")},
		{"DELETE service_instances/i/service_bindings/b" + of + "&accepts_incomplete=true", "", 202, "unbind-4"},
		{"DELETE service_instances/i/service_bindings/b" + of + "&accepts_incomplete=true", "", 202, "unbind-4"},
		{"GET service_instances/i/service_bindings/b/last_operation?operation=unbind-4", "", 200, "in progress"},
		{"DELETE service_instances/i" + of + "&accepts_incomplete=true", "", 422, "still has bindings"},
		{"GET service_instances/i/service_bindings/b/last_operation?operation=unbind-4", "", 200, "succeeded"},
		{"GET service_instances/i/service_bindings/b/last_operation?operation=unbind-4", "", 410, ""},
		{"DELETE service_instances/i" + of + "&accepts_incomplete=true", "", 202, "deprovision-5"},
		{"PUT service_instances/i" + patient, strings.NewReplacer("small", "large").Replace(made), 422, "ConcurrencyError"},
		{"GET service_instances/i/last_operation?operation=deprovision-5", "", 200, "in progress"},
		{"GET service_instances/i/last_operation?operation=deprovision-5", "", 200, "succeeded"},
		{"GET service_instances/i/last_operation?operation=deprovision-5", "", 410, ""},
	})
}

func TestFailsLater(t *testing.T) {
	b := start(t, brokertest.Options{})
	b.Script(brokertest.Provision, brokertest.LaterFails(1, "no room"), brokertest.Never)
	walk(t, b, []step{
		{"PUT service_instances/i" + patient, made, 202, "provision-1"},
		{"GET service_instances/i/last_operation?operation=provision-1", "", 200, `"description":"no room","state":"failed"`},
		{"GET service_instances/i/last_operation?operation=provision-1", "", 200, "failed"},
		{"DELETE service_instances/i" + of, "", 410, ""},
		{"PUT service_instances/n" + patient, made, 202, "provision-2"},
		{"GET service_instances/n/last_operation?operation=provision-2", "", 200, "in progress"},
		{"GET service_instances/n/last_operation?operation=provision-2", "", 200, "in progress"},
	})
	if all := b.Instances(); len(all) != 1 || all[0].ID != "n" || all[0].Ready {
		t.Errorf("has %+v", all)
	}
	b.Script(brokertest.Deprovision, brokertest.LaterFails(1, "stuck"))
	walk(t, b, []step{
		{"DELETE service_instances/n" + of + "&accepts_incomplete=true", "", 202, "deprovision-3"}, // ends what is being made
		{"GET service_instances/n/last_operation?operation=deprovision-3", "", 200, "failed"},
		{"DELETE service_instances/n" + of, "", 200, ""},
	})
	b.Script(brokertest.Provision, brokertest.Never)
	walk(t, b, []step{{"PUT service_instances/m" + patient, made, 202, "provision-4"}})
	b.Finish()
	walk(t, b, []step{{"GET service_instances/m/last_operation?operation=provision-4", "", 200, "succeeded"}})
}

func TestScript(t *testing.T) {
	b := start(t, brokertest.Options{})
	b.Always(brokertest.Provision, brokertest.Refuse(503, "", "closed"))
	b.Script(brokertest.Provision, brokertest.Refuse(422, "RequiresApp", "no app"), brokertest.LostBefore, brokertest.LostAfter, brokertest.DoAndSay(500, "<html>"), brokertest.Say(201, ""), brokertest.Behave)
	walk(t, b, []step{
		{"PUT service_instances/1", made, 422, `"error":"RequiresApp"`},
		{"PUT service_instances/2", made, 0, "EOF"},
		{"PUT service_instances/3", made, 0, "EOF"},
		{"PUT service_instances/4", made, 500, "<html>"},
		{"PUT service_instances/5", made, 201, ""},
		{"PUT service_instances/6", made, 201, "dashboard"},
		{"PUT service_instances/7", made, 503, "closed"},
		{"PUT service_instances/8", made, 503, "closed"},
	})
	var kept []string
	for _, i := range b.Instances() {
		kept = append(kept, i.ID)
	}
	if !slices.Equal(kept, []string{"3", "4", "6"}) {
		t.Errorf("kept %v", kept)
	}
	var statuses []int
	for _, a := range b.Asked(brokertest.Provision) {
		statuses = append(statuses, a.Status)
	}
	if !slices.Equal(statuses, []int{422, 0, 0, 500, 201, 201, 503, 503}) || b.Unplayed() != 0 {
		t.Errorf("answered %v, unplayed %d", statuses, b.Unplayed())
	}
	if story := b.Story()[:2]; !slices.Equal(story, []string{"provision 1", "provision 2"}) {
		t.Errorf("story %v", story)
	}
	b.Forget()
	b.Lose("3")
	if len(b.Story()) != 0 || len(b.Instances()) != 2 {
		t.Errorf("remembers %v, has %v", b.Story(), b.Instances())
	}
}

func TestHeldUntil(t *testing.T) {
	b := start(t, brokertest.Options{})
	release, said := make(chan struct{}), make(chan int)
	b.Script(brokertest.Provision, brokertest.Act{Until: release})
	go func() {
		status, _ := send(t, b, "PUT service_instances/i", made)
		said <- status
	}()
	if err := b.Await(t.Context(), brokertest.Provision, 1); err != nil {
		t.Fatal(err)
	}
	if len(b.Instances()) != 1 || b.Asked()[0].Status != 0 {
		t.Errorf("awaited, but %+v was not done or is answered", b.Asked())
	}
	close(release)
	if status := <-said; status != http.StatusCreated {
		t.Errorf("got %d", status)
	}
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := b.Await(short, brokertest.Provision, 2); err == nil {
		t.Error("what was not asked was awaited")
	}
}

func TestDownAndUp(t *testing.T) {
	b := start(t, brokertest.Options{})
	walk(t, b, []step{{"PUT service_instances/i", made, 201, ""}})
	b.Script(brokertest.GetInstance, brokertest.Act{Hang: true})
	said := make(chan int)
	go func() {
		status, _ := send(t, b, "GET service_instances/i", "")
		said <- status
	}()
	if err := b.Await(t.Context(), brokertest.GetInstance, 1); err != nil {
		t.Fatal(err)
	}
	b.Down()
	b.Down()
	if status := <-said; status != 0 {
		t.Errorf("got %d from a broker that went down", status)
	}
	walk(t, b, []step{{"GET service_instances/i", "", 0, "refused"}})
	at := b.URL
	if err := b.Up(); err != nil {
		t.Fatal(err)
	}
	if b.URL != at {
		t.Errorf("it was at %s and is at %s", at, b.URL)
	}
	walk(t, b, []step{{"GET service_instances/i", "", 200, "plan-small"}})
}

func TestMany(t *testing.T) {
	b := start(t, brokertest.Options{})
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			id := fmt.Sprint("i", n)
			walk(t, b, []step{{"PUT service_instances/" + id, made, 201, ""}, {"PUT service_instances/" + id + "/service_bindings/b", bound, 201, ""}})
			b.Story()
			b.Instances()
		})
	}
	all.Wait()
	if i, x := len(b.Instances()), len(b.Bindings()); i != 20 || x != 20 {
		t.Errorf("%d instances, %d bindings", i, x)
	}
}
