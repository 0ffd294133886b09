package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBindService(t *testing.T) {
	p := &servicing{}
	w := loggedIn(t, p.serve)
	w.ok("create-service", "postgres", "small", "db")
	w.ok("create-user-provided-service", "ldap")
	guid := p.instances[0].GUID
	out := w.ok("bind-service", "shop", "db", "--binding-name", "orders", "-c", `{"role": "reader"}`)
	contains(t, out, "Binding service instance db to app shop in org research / space dev as ada...", "OK\n\nThe app gets the credentials with its next release.\nNext: proa restage shop    # or restart\n")
	want := `POST /v3/service_credential_bindings {"type":"app","name":"orders","parameters":{"role":"reader"},"relationships":{"service_instance":{"data":{"guid":"` + guid + `"}},"app":{"data":{"guid":"a-1"}}}}`
	if p.lately() != want {
		t.Errorf("asked\n%s\nwant\n%s", p.lately(), want)
	}
	contains(t, w.ok("bind-service", "shop", "db"), "The app is already bound to the service instance.", "OK", "--strategy multiple")
	contains(t, w.ok("bind-service", "shop", "ldap"), "proa restage shop") // answers without a job
	contains(t, w.refused(ExitUsage, "bind-service", "shop", "db", "--strategy", "several"), "single or multiple")
	contains(t, w.refused(ExitNotFound, "bind-service", "shopp", "db"), `There is no app "shopp" in space dev. Did you mean shop?`, "proa apps")
	contains(t, w.refused(ExitNotFound, "bind-service", "shop", "bd"), "There is no service instance")

	// Rotation: the new credentials beside the old ones, and then without them.
	p.states = []string{"PROCESSING", "POLLING"}
	contains(t, w.ok("bind-service", "shop", "db", "--strategy", "multiple"), "Binding in progress. Watch it with: proa service db", "proa restage shop")
	contains(t, p.lately(), `"strategy":"multiple"`)
	contains(t, w.ok("service", "db"), "create in progress")
	contains(t, w.ok("bind-service", "shop", "db", "--strategy", "multiple", "--wait"), "Waiting for the broker...", "proa restage shop")
	contains(t, w.ok("service", "db"), "binding guid", p.bindings[0].GUID)
	p.states = nil
	newest := p.bindings[len(p.bindings)-1].GUID
	lacks(t, w.ok("unbind-service", "shop", "db", "--outdated"), "proa restart")
	if len(p.bindings) != 3 || p.bindings[2].GUID != newest { // that of ldap, one that is being made, and the newest
		t.Fatalf("left are %v", p.bindings)
	}
	p.bindings[1].LastOperation.State = "failed"
	w.ok("unbind-service", "shop", "db", "--outdated")
	if len(p.bindings) != 2 || p.bindings[1].GUID != newest {
		t.Fatalf("left are %v", p.bindings)
	}
	contains(t, w.ok("unbind-service", "shop", "db", "--outdated"), "None of its bindings is outdated.", "OK")
	contains(t, w.refused(ExitNotFound, "unbind-service", "shop", "db", "--guid", p.bindings[0].GUID), "has no binding") // that of ldap
	contains(t, w.ok("unbind-service", "shop", "db", "--guid", newest), "Unbinding service instance db from app shop", "OK\n\nIf app shop was started since it was bound, it holds credentials that work no more.\nNext: proa restart shop\n")
	contains(t, w.ok("unbind-service", "shop", "db"), "It is not bound.", "OK")

	p.fails = "The broker said no."
	contains(t, w.refused(ExitFailed, "bind-service", "shop", "db"), "The broker said no.", "proa service db")
	contains(t, w.ok("service", "db"), "create failed", "The broker said no.")
	contains(t, w.refused(ExitFailed, "unbind-service", "shop", "db", "-w"), "The broker said no.")
	p.fails, p.states = "", []string{"POLLING"}
	contains(t, w.ok("unbind-service", "shop", "db"), "Unbinding in progress. Watch it with: proa service db")
}

func TestServiceKeys(t *testing.T) {
	p := &servicing{}
	w := loggedIn(t, p.serve)
	w.ok("create-service", "postgres", "small", "db")
	w.ok("create-user-provided-service", "ldap")
	_, errs, _ := w.run("service-keys", "db")
	contains(t, errs, "Service instance db has no keys.", "proa create-service-key db KEY")
	out := w.ok("create-service-key", "db", "my laptop", "-c", `{"ttl":1}`)
	contains(t, out, "OK", "proa service-key db 'my laptop'")
	lacks(t, out, "postgres://")
	contains(t, p.lately(), `{"type":"key","name":"my laptop","parameters":{"ttl":1},"relationships":{"service_instance":{"data":{"guid":"`+p.instances[0].GUID+`"}}}}`)
	contains(t, w.ok("create-service-key", "db", "my laptop"), "Key my laptop exists already; nothing was created.\nOK", "proa service-key db 'my laptop'")
	out = w.ok("service-keys", "db")
	contains(t, out, "my laptop  create succeeded")
	lacks(t, out, "postgres://")
	if got, want := w.ok("service-key", "db", "my laptop"), "{\n  \"credentials\": {\n    \"port\": 12345678901234567890,\n    \"uri\": \"postgres://u:p@db.example.com:5432/d?a=1&b=2\"\n  }\n}\n"; got != want {
		t.Errorf("got %s", got)
	}
	if got := w.ok("service-key", "db", "my laptop", "--guid"); got != p.bindings[0].GUID+"\n" {
		t.Errorf("got %s", got)
	}
	contains(t, w.refused(ExitNotFound, "service-key", "db", "gone"), `has no key "gone"`, "proa service-keys db")
	contains(t, w.refused(ExitFailed, "create-service-key", "ldap", "k"), "not supported for user-provided")

	p.states = []string{"POLLING"}
	contains(t, w.ok("create-service-key", "db", "slow"), "Creation in progress. Watch it with: proa service-keys db")
	contains(t, w.refused(ExitFailed, "service-key", "db", "slow"), "still being created")
	p.fails = "No more roles."
	contains(t, w.refused(ExitFailed, "create-service-key", "db", "bad", "--wait"), "No more roles.", "proa delete-service-key db bad    # then create it again")
	contains(t, w.ok("service-keys", "db"), "bad        create failed", "bad: No more roles.")
	contains(t, w.refused(ExitFailed, "service-key", "db", "bad"), "No more roles.", "proa delete-service-key db bad")
	p.fails = ""
	contains(t, w.refused(ExitUsage, "delete-service-key", "db", "bad"), "Really delete key bad")
	contains(t, w.ok("delete-service-key", "db", "bad", "-f"), "Deletion in progress.")
	w.ok("delete-service-key", "db", "my laptop", "-f", "--wait")
	lacks(t, w.ok("service-keys", "db"), "my laptop")
}

func TestUserProvided(t *testing.T) {
	p := &servicing{}
	w := loggedIn(t, p.serve)
	answers := []string{"ldap://x", "geheim"}
	person := func(e *Env) {
		e.InTTY = true
		e.Hidden = func(context.Context) (string, error) {
			one := answers[0]
			answers = answers[1:]
			return one, nil
		}
	}
	out, errs, code := w.runIn(t.Context(), person, "create-user-provided-service", "ldap", "-p", "uri, password", "-t", "directory")
	if code != ExitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	contains(t, out, "Creating user-provided service instance ldap", "OK", "proa bind-service APP ldap")
	contains(t, errs, "uri: \npassword: \n")
	lacks(t, out+errs, "geheim")
	want := `POST /v3/service_instances {"type":"user-provided","name":"ldap","tags":["directory"],"credentials":{"password":"geheim","uri":"ldap://x"},"relationships":{"space":{"data":{"guid":"s-1"}}}}`
	if p.lately() != want {
		t.Errorf("asked\n%s\nwant\n%s", p.lately(), want)
	}
	contains(t, w.ok("create-user-provided-service", "ldap"), "Service instance ldap exists already; nothing was created.\nOK")
	contains(t, w.refused(ExitUsage, "create-user-provided-service", "x", "-p", "uri,password"), "nobody can be asked for credentials here")

	w.env["DIR"] = t.TempDir()
	if err := os.WriteFile(filepath.Join(w.env["DIR"], "secrets"), []byte(`{"a": {"b": 1.50}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	contains(t, w.ok("update-user-provided-service", "ldap", "-p", "secrets"), "OK", "proa restart APP")
	if !strings.HasSuffix(p.lately(), ` {"credentials":{"a":{"b":1.50}}}`) {
		t.Errorf("asked %s", p.lately())
	}
	w.ok("update-user-provided-service", "ldap", "-t", "")
	contains(t, p.lately(), ` {"tags":[]}`)
	contains(t, w.refused(ExitUsage, "update-user-provided-service", "ldap", "-p", `{"password": "geheim"`), "not valid JSON")
	contains(t, w.refused(ExitUsage, "update-user-provided-service", "ldap"), "nothing to change")
	w.ok("create-service", "postgres", "small", "db")
	contains(t, w.refused(ExitFailed, "update-user-provided-service", "db", "-t", "x"), "is not user-provided", "proa update-service db")
}

func TestShareService(t *testing.T) {
	p := &servicing{}
	w := loggedIn(t, p.serve)
	w.ok("create-service", "postgres", "small", "db")
	contains(t, w.ok("share-service", "db", "-s", "staging"), "Sharing service instance db with org research / space staging as ada...", "OK")
	contains(t, p.lately(), `/relationships/shared_spaces {"data":[{"guid":"s-2"}]}`)
	contains(t, w.ok("service", "db"), "shared with org  space    bound apps", "research         staging  3")
	contains(t, w.refused(ExitUsage, "share-service", "db"), "-s SPACE")
	contains(t, w.refused(ExitNotFound, "share-service", "db", "-s", "gone"), "There is no space")
	contains(t, w.refused(ExitUsage, "unshare-service", "db", "-s", "staging"), "lose their bindings")
	w.ok("unshare-service", "db", "-s", "staging", "-o", "research", "-f")
	contains(t, p.lately(), "/relationships/shared_spaces/s-2")
	lacks(t, w.ok("service", "db"), "shared with")

	p.instances[0].Relationships["space"] = to("", "s-2")[""] // it comes from there
	p.queries = nil
	contains(t, w.ok("service", "db"), "shared from:   org research / space staging")
	if strings.Contains(strings.Join(p.queries, " "), "shared_spaces") {
		t.Errorf("asked with whom an instance is shared that is another space's: %q", p.queries)
	}
}
