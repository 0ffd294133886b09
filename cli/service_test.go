package cli

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v3 "github.com/proa-dev/proa/platform/v3"
)

func lacks(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if strings.Contains(text, p) {
			t.Errorf("%q is in:\n%s", p, text)
		}
	}
}

func TestMarketplace(t *testing.T) {
	p := &servicing{}
	w := loggedIn(t, p.serve)
	out := w.ok("marketplace")
	contains(t, out, "postgres  small, large  Real databases  pg", "proa marketplace -e OFFERING")
	lacks(t, out, "cache")
	lacks(t, w.ok("marketplace", "--no-plans"), "small", "plans  ")
	contains(t, w.ok("marketplace", "--show-unavailable"), "cache", "tiny")
	contains(t, w.ok("marketplace", "-e", "postgres"), "small  One at a time  free          -", "large  Many           paid          99.5 USD monthly, 0.1 EUR per 1GB of traffic",
		"proa create-service postgres PLAN NAME", "https://docs.example.com")
	contains(t, w.ok("marketplace", "-e", "cache", "--show-unavailable"), "available", "no")
	contains(t, w.ok("marketplace", "-b", "pg", "--output", "json"), `"service_broker_name": "pg"`, `"name": "large"`)
	contains(t, w.refused(ExitNotFound, "marketplace", "-e", "postgrse"), `There is no offering "postgrse"`, "Did you mean postgres?")
	w.refused(ExitUsage, "marketplace", "-e", "postgres", "--no-plans")
	if n := len(p.queries); !strings.Contains(p.queries[1], "space_guids=s-1") || !strings.Contains(p.queries[1], "available=true") || n > 10 {
		t.Errorf("%d requests: %q", n, p.queries)
	}
	p.plans = nil
	_, errs, _ := w.run("marketplace")
	contains(t, errs, "Nothing is offered here.")
}

func TestCreateService(t *testing.T) {
	p := &servicing{states: []string{"PROCESSING", "POLLING"}, said: "half done"}
	w := loggedIn(t, p.serve)
	out, errs, code := w.run("create-service", "postgres", "large", "db", "-t", "sql, orders,", "-c", `{"n": 12345678901234567890}`)
	if code != ExitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	contains(t, out, "Creating service instance db in org research / space dev as ada...", "OK\n", "Creation in progress. Watch it with: proa service db\n")
	contains(t, errs, "Warning: Plan large of offering postgres is not free: 99.5 USD monthly, 0.1 EUR per 1GB of traffic.")
	want := `POST /v3/service_instances {"type":"managed","name":"db","tags":["sql","orders"],"parameters":{"n":12345678901234567890},"relationships":{"space":{"data":{"guid":"s-1"}},"service_plan":{"data":{"guid":"pl-2"}}}}`
	if p.lately() != want {
		t.Errorf("asked\n%s\nwant\n%s", p.lately(), want)
	}
	if left := len(p.jobs); left != 1 {
		t.Errorf("it was followed too far: %d jobs left", left)
	}
	contains(t, w.ok("service", "db"), "create in progress", "half done")
	contains(t, w.ok("services"), "create in progress")

	// A free plan costs no word. The name that is taken is not an error.
	p.states, p.said = []string{"PROCESSING", "PROCESSING"}, ""
	out, errs, _ = w.run("create-service", "postgres", "small", "cheap")
	contains(t, out, "Service instance cheap is ready. Next: proa bind-service APP cheap")
	lacks(t, out+errs, "Warning", "Watch")
	contains(t, w.ok("create-service", "postgres", "small", "cheap"), "Service instance cheap exists already; nothing was created.\nOK", "proa service cheap")

	p.states, p.said = []string{"PROCESSING", "POLLING", "POLLING"}, "half \x1b[2Jdone"
	out = w.ok("create-service", "postgres", "small", "waited", "--wait")
	contains(t, out, "Waiting for the broker...\n", "Waiting for the broker... half done\n", "is ready")
	watched := func(e *Env) { e.OutTTY = true }
	out, _, _ = w.runIn(t.Context(), watched, "create-service", "postgres", "small", "seen", "--wait")
	contains(t, out, "\x1b[K  in progress for 0s\n", "\x1b[K  in progress for 0s: half done\n")
	p.fails = "The broker refused: no room. Next: try another plan."
	contains(t, w.refused(ExitFailed, "create-service", "postgres", "small", "bad", "-w"), "Error: The broker refused: no room.", "Next:  proa delete-service bad    # then create it again")
	contains(t, w.ok("service", "bad"), "create failed", "no room", "proa delete-service bad")
	p.states = nil // fails before the broker takes its time
	contains(t, w.refused(ExitFailed, "create-service", "postgres", "small", "worse"), "no room")
}

func TestCreateServiceRefusals(t *testing.T) {
	p := &servicing{}
	w := loggedIn(t, p.serve)
	contains(t, w.refused(ExitNotFound, "create-service", "postgres", "lrage", "db"), `Offering "postgres" has no plan "lrage" here. Did you mean large? It has: small, large.`, "proa marketplace -e postgres")
	contains(t, w.refused(ExitNotFound, "create-service", "postgras", "large", "db"), `There is no offering "postgras" that can be had here. Did you mean postgres?`)
	contains(t, w.refused(ExitNotFound, "create-service", "postgres", "large", "db", "-b", "team"), `of broker "team"`)
	p.offerings = append(p.offerings, v3.ServiceOffering{Resource: record("of-3"), Name: "postgres", Relationships: to("service_broker", "br-2")})
	p.plans = append(p.plans, v3.ServicePlan{Resource: record("pl-4"), Name: "small", Free: true, Relationships: to("service_offering", "of-3")})
	contains(t, w.refused(ExitUsage, "create-service", "postgres", "small", "db"), `Several brokers have an offering "postgres": pg, team.`, "-b BROKER")
	if len(w.changes()) != 0 {
		t.Errorf("something was changed: %q", w.changes())
	}
	w.ok("create-service", "postgres", "small", "db", "-b", "team")
	contains(t, p.lately(), `"guid":"pl-4"`)

	dir := t.TempDir()
	w.env["DIR"] = dir
	for name, text := range map[string]string{"good.json": ` {"a": 1} `, "bad.json": `{"password": "geheim"`, "list.json": `["geheim"]`, "null.json": "null"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := len(w.heard)
	for _, c := range []struct{ given, says string }{
		{"bad.json", "the file bad.json is not valid JSON"}, {"list.json", "is something else"}, {"null.json", "is something else"}, {"gone.json", "There is no such file"},
		{`{"password": "geheim"`, "not valid JSON"}, {`{} geheim`, "not valid JSON"}, {"", "The file for -c cannot be read"},
	} {
		errs := w.refused(ExitUsage, "create-service", "postgres", "small", "x", "-c", c.given)
		contains(t, errs, c.says)
		lacks(t, errs, "geheim")
	}
	if len(w.heard) != before {
		t.Errorf("a mistake was noticed too late: %q", w.heard[before:])
	}
	w.ok("create-service", "postgres", "large", "x", "-c", "good.json")
	contains(t, p.lately(), `"parameters":{"a":1}`)
	contains(t, w.refused(ExitUsage, "create-service", "postgres", "small"), "NAME is missing.")
	w.ok("logout")
	contains(t, w.refused(ExitLogin, "create-service", "postgres", "small", "db"), "proa login")
}

// Who stops waiting is told that the platform goes on.
func TestStopWaiting(t *testing.T) {
	p := &servicing{states: slices.Repeat([]string{"POLLING"}, 100_000)}
	w := loggedIn(t, p.serve)
	ctx, cancel := context.WithCancel(t.Context())
	seen := func(e *Env) { e.Out = writer(func(b []byte) { w.waits(string(b), cancel) }) }
	_, errs, code := w.runIn(ctx, seen, "create-service", "postgres", "small", "db", "--wait")
	if code != ExitInterrupted || !strings.Contains(errs, "Stopped.") {
		t.Errorf("exit %d: %s", code, errs)
	}
	contains(t, w.env["OUT"], "The platform goes on with it. Watch it with: proa service db")
}

// writer is an io.Writer made of a function.
type writer func([]byte)

func (f writer) Write(b []byte) (int, error) { f(b); return len(b), nil }

// waits keeps what is written, and stops at the first word about waiting.
func (w *world) waits(text string, stop func()) {
	if w.env["OUT"] += text; strings.Contains(text, "Waiting") {
		stop()
	}
}

func TestServices(t *testing.T) {
	p := &servicing{}
	w := loggedIn(t, p.serve)
	_, errs, _ := w.run("services")
	contains(t, errs, "There are no service instances in space dev.", "proa marketplace")
	w.ok("create-service", "postgres", "small", "db")
	w.ok("create-service", "postgres", "large", "big", "-t", "sql")
	w.ok("create-user-provided-service", "ldap", "-p", `{"uri": "ldap://x"}`)
	w.ok("bind-service", "shop", "db", "--binding-name", "orders")
	p.bindings = append(p.bindings, v3.ServiceBinding{Resource: record("far"), Type: "app", Relationships: to("service_instance", p.instances[0].GUID, "app", "a-2")})

	p.queries = nil
	contains(t, w.ok("services"), "name  offering       plan   bound apps  last operation    broker  upgrade", "db    postgres       small  shop        create succeeded  pg", "big   postgres       large  -           create succeeded  pg      available",
		"ldap  user-provided  -      -           create succeeded  -")
	if len(p.queries) != 2 {
		t.Errorf("asked %d times: %q", len(p.queries), p.queries)
	}
	contains(t, w.ok("services", "--output", "json"), `"service_offering_name": "postgres"`, `"app_names": [`)

	p.queries = nil
	out := w.ok("service", "db")
	contains(t, out, "name:          db", "type:          managed", "offering:      postgres", "plan:          small", "broker:        pg", "status:        create succeeded", "started:", "updated:",
		"documentation: https://docs.example.com", "bound app  binding name  status", "shop       orders        create succeeded")
	if len(p.queries) != 3 {
		t.Errorf("asked %d times: %q", len(p.queries), p.queries)
	}
	lacks(t, out, "ldap://", "Next:")
	contains(t, w.ok("service", "big"), "tags:          sql", "No app is bound to it.", "An upgrade is there: version 2.0.0. Takes a minute.", "proa upgrade-service big", "proa bind-service APP big")
	lacks(t, w.ok("service", "ldap"), "ldap://", "offering", "broker")
	contains(t, w.ok("service", "db", "--output", "json"), `"app_name": "shop"`, `"service_plan_name": "small"`, `"shared_with": []`)
	if out := w.ok("service", "db", "--guid"); out != p.instances[0].GUID+"\n" {
		t.Errorf("the guid is %q", out)
	}
	contains(t, w.ok("service", "db", "--params"), `"size": 2`)
	contains(t, w.refused(ExitFailed, "service", "big", "--params"), "does not support fetching service instance parameters")
	contains(t, w.refused(ExitFailed, "service", "ldap", "--params"), "user-provided")
	contains(t, w.refused(ExitNotFound, "service", "dba"), `There is no service instance "dba" in space dev. Did you mean db?`, "proa services")
}

func TestUpdateService(t *testing.T) {
	p := &servicing{}
	w := loggedIn(t, p.serve)
	w.ok("create-service", "postgres", "small", "db")
	w.ok("create-user-provided-service", "ldap")
	p.states = []string{"PROCESSING", "POLLING"}
	out, errs, _ := w.run("update-service", "db", "-p", "large", "-t", "")
	contains(t, out, "Updating service instance db", "OK", "Update in progress. Watch it with: proa service db")
	contains(t, errs, "is not free: 99.5 USD monthly")
	contains(t, p.lately(), `{"tags":[],"relationships":{"service_plan":{"data":{"guid":"pl-2"}}}}`)
	contains(t, w.ok("service", "db"), "update in progress")
	lacks(t, w.ok("update-service", "db", "-p", "large", "--wait"), "Watch")

	before := len(p.bodies)
	contains(t, w.ok("update-service", "db", "-p", "large"), "It has plan large already.", "OK")
	if len(p.bodies) != before {
		t.Errorf("nothing was to change: %s", p.lately())
	}
	w.ok("update-service", "db", "-p", "large", "-c", `{"a":1}`)
	if !strings.HasSuffix(p.lately(), ` {"parameters":{"a":1}}`) {
		t.Errorf("asked %s", p.lately())
	}
	contains(t, w.refused(ExitUsage, "update-service", "db"), "nothing to change")
	contains(t, w.refused(ExitNotFound, "update-service", "db", "-p", "smal"), "Did you mean small?")
	contains(t, w.refused(ExitFailed, "update-service", "ldap", "-t", "x"), "user-provided", "proa update-user-provided-service ldap")
	w.ok("update-service", "db", "-t", "a,b")
	contains(t, p.lately(), `{"tags":["a","b"]}`)

	p.states = nil
	contains(t, w.refused(ExitUsage, "upgrade-service", "db"), "Really upgrade service instance db to version 2.0.0?", "--force")
	w.ok("upgrade-service", "db", "-f")
	contains(t, p.lately(), `{"maintenance_info":{"version":"2.0.0"}}`)
	contains(t, w.ok("upgrade-service", "db"), "There is no upgrade")
	p.fails = "The broker did not like it."
	contains(t, w.refused(ExitFailed, "update-service", "db", "-p", "small"), "The broker did not like it.")
	contains(t, w.ok("service", "db"), "update failed", "large")
	w.ok("rename-service", "db", "orders")
	contains(t, w.ok("services"), "orders")
}

func TestDeleteService(t *testing.T) {
	p := &servicing{states: []string{"PROCESSING"}}
	w := loggedIn(t, p.serve)
	w.ok("create-service", "postgres", "small", "db")
	w.ok("create-service", "postgres", "small", "other")
	w.ok("create-user-provided-service", "ldap")
	contains(t, w.refused(ExitUsage, "delete-service", "db"), "Really delete service instance db and all that is in it?", "--force")
	w.ok("create-service", "postgres", "small", "used")
	for _, service := range []string{"used", "ldap", "db"} {
		w.ok("bind-service", "shop", service)
	}
	w.ok("bind-service", "shop", "used", "--strategy", "multiple")
	contains(t, w.refused(ExitUsage, "delete-service", "used"), "Really delete service instance used, which app shop is bound to, and all that is in it?")
	contains(t, w.refused(ExitUsage, "delete-service", "ldap"), "Really delete service instance ldap, which app shop is bound to?")
	contains(t, w.ok("delete-service", "used", "-f"), "OK\n\nIf app shop was started since it was bound, it holds credentials that work no more.\nNext: proa restart shop\n")
	p.states = []string{"POLLING"}
	contains(t, w.ok("delete-service", "db", "-f"), "Deletion in progress. Watch it with: proa service db\nWhen it is done, restart what was bound to it: proa restart shop\n")
	contains(t, w.refused(ExitFailed, "delete-service", "db", "-f"), "An operation for service instance db is in progress.", "proa services    # shows when it has ended")
	p.instances[0].LastOperation.State, p.fails = "failed", "The broker has lost it."
	contains(t, w.refused(ExitFailed, "delete-service", "db", "-f", "-w"), "The broker has lost it.")
	contains(t, w.ok("service", "db"), "delete failed", "proa delete-service db    # tries it again")
	p.fails = ""
	lacks(t, w.ok("delete-service", "db", "-f", "--wait"), "Watch")
	contains(t, w.refused(ExitNotFound, "delete-service", "db", "-f"), "There is no service instance")
	out := w.ok("delete-service", "ldap", "-f")
	contains(t, out, "it holds its credentials until the next restart.\nNext: proa restart shop")
	lacks(t, out, "Watch")
	contains(t, w.refused(ExitUsage, "purge-service-instance", "other"), "The broker will not be asked")
	w.ok("purge-service-instance", "other", "-f")
	contains(t, p.lately(), "?purge=true")
	if len(p.instances) != 0 {
		t.Errorf("left are %v", p.instances)
	}
}

func TestManyBoundApps(t *testing.T) {
	i := v3.ServiceInstance{Name: "db", Type: v3.ManagedInstance}
	for want, apps := range map[string][]string{
		"Really delete service instance db and all that is in it?":                                         nil,
		"Really delete service instance db, which the apps shop, far are bound to, and all that is in it?": {"shop", "far"},
	} {
		if got := reallyDelete(i, apps); got != want {
			t.Errorf("asks %s", got)
		}
	}
	if got := restarts([]string{"shop", "far away"}); got != "proa restart shop && proa restart 'far away'" {
		t.Errorf("says %s", got)
	}
}

// Credentials are copied from what `env` shows, so no & may be written as \u0026.
func TestEnvOfServices(t *testing.T) {
	p := &servicing{}
	w := loggedIn(t, p.serve, func(w *world) map[string]http.HandlerFunc {
		return map[string]http.HandlerFunc{"GET /v3/apps/a-1/env": func(rw http.ResponseWriter, _ *http.Request) {
			w.say(rw, http.StatusOK, map[string]any{"system_env_json": map[string]any{"VCAP_SERVICES": map[string]any{"postgres": []any{map[string]any{"uri": "a?b=1&c=2"}}}}})
		}}
	})
	contains(t, w.ok("env", "shop"), "Services\n  VCAP_SERVICES: {\n    \"postgres\": [", `"uri": "a?b=1&c=2"`)
}
