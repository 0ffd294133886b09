package cli

import (
	"context"
	"io"
	"strings"
	"testing"

	v3 "github.com/proa-dev/proa/platform/v3"
)

func TestServiceBrokers(t *testing.T) {
	p := &servicing{states: []string{"PROCESSING"}}
	w := loggedIn(t, p.serve)
	contains(t, w.ok("service-brokers"), "pg    https://pg.example.com    all        available", "team  https://team.example.com  space dev  synchronization failed")
	out := w.ok("create-service-broker", "new", "me", "geheim", "https://new.example.com")
	contains(t, out, "Creating service broker new as ada...", "OK", "proa service-access -b new", "proa enable-service-access OFFERING")
	lacks(t, out, "geheim")
	want := `POST /v3/service_brokers {"name":"new","url":"https://new.example.com","authentication":{"type":"basic","credentials":{"username":"me","password":"geheim"}}}`
	if p.lately() != want {
		t.Errorf("asked\n%s\nwant\n%s", p.lately(), want)
	}
	w.env["PROA_BROKER_PASSWORD"] = "from outside"
	contains(t, w.ok("create-service-broker", "mine", "me", "https://mine.example.com", "--space-scoped"), "in org research / space dev", "proa marketplace -b mine")
	contains(t, p.lately(), `"password":"from outside"`, `"relationships":{"space":{"data":{"guid":"s-1"}}}`)
	contains(t, w.refused(ExitFailed, "create-service-broker", "pg", "me", "https://pg.example.com"), `There is a service broker "pg" already.`, "--update-if-exists")
	contains(t, w.ok("create-service-broker", "pg", "me", "https://pg2.example.com", "--update-if-exists"), "Updating service broker pg", "OK")
	contains(t, p.lately(), `PATCH /v3/service_brokers/br-1 {"url":"https://pg2.example.com","authentication":`)
	w.ok("create-service-broker", "fresh", "me", "https://fresh.example.com", "--update-if-exists")

	w.ok("update-service-broker", "pg")
	if want := `PATCH /v3/service_brokers/br-1 {"url":"https://pg2.example.com"}`; p.lately() != want {
		t.Errorf("asked %s", p.lately())
	}
	w.ok("update-service-broker", "pg", "you", "secret", "https://pg.example.com")
	contains(t, p.lately(), `"username":"you","password":"secret"`)
	contains(t, w.refused(ExitUsage, "update-service-broker", "pg", "you"), "URL is missing")
	w.ok("rename-service-broker", "fresh", "stale")
	contains(t, p.lately(), `{"name":"stale"}`)
	contains(t, w.refused(ExitNotFound, "rename-service-broker", "fresh", "x"), `There is no service broker "fresh".`, "proa service-brokers")
	contains(t, w.refused(ExitUsage, "delete-service-broker", "stale"), "Really delete service broker stale and what it offers?")
	w.ok("delete-service-broker", "stale", "-f")
	p.instances = append(p.instances, v3.ServiceInstance{})
	contains(t, w.refused(ExitFailed, "delete-service-broker", "pg", "-f"), "Can not remove brokers that have associated service instances")
}

// The password is asked for where somebody can be asked, and stands in no refusal.
func TestBrokerPassword(t *testing.T) {
	p := &servicing{}
	w := loggedIn(t, p.serve)
	contains(t, w.refused(ExitUsage, "create-service-broker", "new", "me", "https://new.example.com"), "PROA_BROKER_PASSWORD")
	for _, given := range [][]string{{"new", "me", "geheim"}, {"new", "me", "https://new.example.com", "geheim"}, {"new", "me", "x", "geheim:geheim"}} {
		errs := w.refused(ExitUsage, append([]string{"create-service-broker"}, given...)...)
		contains(t, errs, "URL comes last, and begins with http:// or https://.")
		lacks(t, errs, "geheim")
	}
	contains(t, w.refused(ExitUsage, "create-service-broker", "new", "me"), "URL is missing.")
	person := func(e *Env) {
		e.InTTY, e.In = true, io.LimitReader(strings.NewReader(""), 0)
		e.Hidden = func(context.Context) (string, error) { return "geheim", nil }
	}
	out, errs, code := w.runIn(t.Context(), person, "create-service-broker", "new", "me", "https://new.example.com")
	if code != ExitOK || !strings.Contains(errs, "Password of broker new: ") || strings.Contains(out+errs, "geheim") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	contains(t, p.lately(), `"password":"geheim"`)
	p.fails = "The broker answers 401: its user name or its password is wrong."
	contains(t, w.refused(ExitFailed, "create-service-broker", "other", "me", "geheim", "https://new.example.com"), "The broker answers 401", "proa update-service-broker other USERNAME URL")
}

func TestServiceAccess(t *testing.T) {
	p := &servicing{}
	w := loggedIn(t, p.serve)
	contains(t, w.ok("service-access"), "pg      postgres  small  all", "pg      postgres  large  none", "team    cache     tiny   limited  space dev")
	contains(t, w.ok("enable-service-access", "postgres", "-p", "large", "-o", "research"), "Enabling access to plan large of offering postgres for org research as ada...", "OK")
	contains(t, p.lately(), `POST /v3/service_plans/pl-2/visibility {"type":"organization","organizations":[{"guid":"o-1"}]}`)
	contains(t, w.ok("service-access", "-e", "postgres", "-b", "pg", "-o", "research"), "large  limited  research")
	contains(t, w.ok("service-access", "--output", "json"), `"organization_names": [`)

	contains(t, w.refused(ExitFailed, "disable-service-access", "postgres", "-o", "research"), "Everybody can have plan small")
	if n := len(p.bodies); n != 1 {
		t.Errorf("something was changed before the refusal: %q", p.bodies)
	}
	w.ok("disable-service-access", "postgres", "-p", "large", "-o", "research")
	contains(t, p.lately(), "DELETE /v3/service_plans/pl-2/visibility/o-1")
	contains(t, w.ok("enable-service-access", "postgres"), "Everybody can have plan small already.", "access to all plans")
	contains(t, p.lately(), `POST /v3/service_plans/pl-2/visibility {"type":"public"}`)
	w.ok("disable-service-access", "postgres")
	contains(t, p.lately(), `PATCH /v3/service_plans/pl-2/visibility {"type":"admin"}`)
	contains(t, w.ok("disable-service-access", "postgres"), "Nobody can have plan large already.")

	contains(t, w.refused(ExitFailed, "enable-service-access", "cache"), "for one space")
	contains(t, w.refused(ExitNotFound, "enable-service-access", "cahce"), "Did you mean cache?")
	contains(t, w.refused(ExitNotFound, "enable-service-access", "postgres", "-p", "lage"), "Did you mean large? It has: small, large.")
	contains(t, w.refused(ExitNotFound, "enable-service-access", "postgres", "-o", "gone"), "There is no organization")
	p.offerings = append(p.offerings, v3.ServiceOffering{Resource: record("of-3"), Name: "postgres", Relationships: to("service_broker", "br-2")})
	contains(t, w.refused(ExitUsage, "enable-service-access", "postgres"), "pg, team", "-b BROKER")
	w.ok("enable-service-access", "postgres", "-b", "pg")
}
