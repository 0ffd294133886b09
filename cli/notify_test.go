package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// asHarbour is a world with a notification service, in which ada is logged in and the client harbour sends.
func asHarbour(t *testing.T) (*world, *notifying) {
	n := newNotifying()
	w := loggedIn(t, n.serve)
	w.env["PROA_NOTIFY_CLIENT_ID"], w.env["PROA_NOTIFY_CLIENT_SECRET"] = "harbour", "mast"
	return w, n
}

func registered(t *testing.T) (*world, *notifying) {
	w, n := asHarbour(t)
	w.ok("notify", "register", "--source", "The harbour office", "--kind", "tides=High and low water", "--kind", "storm:critical=Storm: all of it")
	return w, n
}

func TestNotifyRegister(t *testing.T) {
	w, n := asHarbour(t)
	contains(t, w.ok("notify", "register", "--source", "The harbour office", "--kind", "tides=High = low water", "--kind", "storm:critical=Storm: all of it"),
		"Registering 2 kinds of The harbour office as client harbour...", "OK", "proa notify send --everyone --kind storm")
	if want := `PUT /notifications {"source_name":"The harbour office","notifications":{"storm":{"description":"Storm: all of it","critical":true},"tides":{"description":"High = low water","critical":false}}}`; n.lately() != want {
		t.Errorf("said\n%s\nwant\n%s", n.lately(), want)
	}
	out := w.ok("notify", "kinds")
	contains(t, out, "storm  yes       Storm: all of it", "t-9") // the client's template serves a kind that has none
	lacks(t, out, "Theirs")
	contains(t, w.ok("notify", "kinds", "--all"), "Theirs", "Somebody else")
	contains(t, w.ok("notify", "kinds", "--output", "json"), `"kind_id": "tides"`, `"critical": false`)

	w.env["DIR"] = t.TempDir()
	put(t, filepath.Join(w.env["DIR"], "kinds.json"), `{"source_name": "Files", "notifications": {"a": {"description": "A", "critical": false}}}`)
	contains(t, w.ok("notify", "register", "-f", "kinds.json"), "Registering 1 kind of Files")
	contains(t, w.refused(ExitFailed, "notify", "register", "-f", `{"source_name": "Files", "notification": {}}`), `The field "notification" is not known here.`)
	for _, args := range [][]string{{"--source", "x"}, {"--kind", "a=b"}, {"--source", "x", "--kind", "a"}, {"--source", "x", "--kind", "a:urgent=b"}, {"--source", "x", "--kind", "=b"},
		{"--source", "x", "--kind", "a=b", "--kind", "a=c"}, {"-f", "kinds.json", "--source", "x"}, {"-f", "nothing.json"}, {"-f", `{"notifications": 3}`}} {
		w.refused(ExitUsage, append([]string{"notify", "register"}, args...)...)
	}
	n.scopes = []string{"notifications.manage"}
	contains(t, w.refused(ExitFailed, "notify", "register", "--source", "x", "--kind", "a:critical=b"), "This kind is critical", "proa update-client harbour --add-authority critical_notifications.write")
	n.scopes = nil
	contains(t, w.refused(ExitFailed, "notify", "kinds"), "This needs the scope notifications.manage", "proa update-client harbour --add-authority notifications.manage")
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestNotifySend(t *testing.T) {
	w, n := registered(t)
	content := []string{"--kind", "tides", "--subject", "High water", "--text", "At 14:20."}
	const body = ` {"kind_id":"tides","subject":"High water","text":"At 14:20."}`
	for path, to := range map[string][]string{
		"/users/" + person: {"--user", "ann"}, "/spaces/s-1": {"--space", "dev"}, "/organizations/o-1": {"--org", "research"}, "/everyone": {"--everyone"},
		"/uaa_scopes/uaa.admin": {"--scope", "uaa.admin"}, "/spaces/" + person: {"--space", person}, "/organizations/" + person: {"--org", person},
	} {
		contains(t, w.ok(append(append([]string{"notify", "send"}, to...), content...)...), "OK Message m-1 is on its way.", "proa notify message m-1 --wait")
		if want := "POST " + path + body; n.lately() != want {
			t.Errorf("%v said\n%s\nwant\n%s", to, n.lately(), want)
		}
	}
	w.ok("notify", "send", "--user", person, "--kind", "tides", "--html", "<b>now</b>", "--reply-to", "office@example.org")
	contains(t, n.lately(), `"html":"\u003cb\u003enow\u003c/b\u003e","reply_to":"office@example.org"`)
	w.ok("notify", "send", "--org", "research", "--role", "OrgManager", "--kind", "tides", "--text", "x")
	contains(t, n.lately(), `"role":"OrgManager"`)
	w.ok("notify", "send", "--space", "dev", "--role", "SpaceDeveloper", "--kind", "tides", "--text", "x")
	contains(t, n.lately(), `POST /spaces/s-1 `, `"role":"SpaceDeveloper"`)
	contains(t, w.ok("notify", "send", "--email", "pilot@example.org", "--text", "x", "--output", "json"), `"notification_id": "m-1"`)
	contains(t, n.lately(), `POST /emails {"to":"pilot@example.org","text":"x"}`)
	for i, key := range n.keys {
		if key == "" || i > 0 && key == n.keys[i-1] {
			t.Errorf("send %d had the key %q: each needs its own, so that it can be repeated", i, key)
		}
	}
	w.ok("notify", "send", "--everyone", "--kind", "tides", "--text", "x", "--once", "today")
	if last := n.keys[len(n.keys)-1]; last != "today" {
		t.Errorf("the key was %q", last)
	}
	n.down = 2
	w.ok("notify", "send", "--everyone", "--kind", "tides", "--text", "again")
}

// A user whom the platform has not met is asked for at the authorization server, by whoever may look there.
func TestNotifySendToStrangers(t *testing.T) {
	w, n := registered(t)
	to := func(name string) []string {
		return []string{"notify", "send", "--user", name, "--kind", "tides", "--text", "x"}
	}
	unknown := func(name string) {
		t.Helper()
		errs := w.refused(ExitNotFound, to(name)...)
		contains(t, errs, `There is no user "`+name+`", or you may not see them.`, "give the user's id")
		lacks(t, errs, "another service", "proa login")
	}
	found := func() {
		t.Helper()
		w.ok(to("cid")...)
		contains(t, n.lately(), "POST /users/u-cid ")
		contains(t, w.refused(ExitFailed, to("dan")...), `There are 2 users of the name "dan"`, "give the user's id")
		unknown("bob")
	}
	unknown("cid") // neither may look
	n.reader = true
	found()
	n.reader, n.scopes = false, append(n.scopes, "scim.read")
	found()
	w.ok("auth", "harbour", "mast", "--client-credentials") // whose token is not for the platform
	found()
	n.scopes = slices.DeleteFunc(n.scopes, func(s string) bool { return s == "scim.read" })
	unknown("cid")

	w.env["PROA_NOTIFY_CLIENT_SECRET"] = "guess"
	contains(t, w.refused(ExitLogin, to("cid")...), "does not take the client harbour and its secret")
}

func TestNotifyWords(t *testing.T) {
	w, n := registered(t)
	w.env["DIR"] = t.TempDir()
	put(t, filepath.Join(w.env["DIR"], "news.txt"), "from a file")
	put(t, filepath.Join(w.env["DIR"], "large.txt"), strings.Repeat("x", maxWords+1))
	typed := func(e *Env) { e.In = strings.NewReader("typed") }
	if _, errs, code := w.runIn(t.Context(), typed, "notify", "send", "--everyone", "--kind", "tides", "--text", "@news.txt", "--html", "-"); code != ExitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	contains(t, n.lately(), `"text":"from a file","html":"typed"`)
	send := []string{"notify", "send", "--kind", "tides", "--everyone"}
	contains(t, w.refused(ExitUsage, append(send, "--text", "@ann hello")...), `There is no file "ann hello" for --text.`, "with -.")
	contains(t, w.refused(ExitUsage, append(send, "--text", "@large.txt")...), "larger than 1M")
	contains(t, w.refused(ExitUsage, append(send, "--text", "-")...), "What is meant for --text is empty.")
	w.refused(ExitUsage, append(send, "--text", "-", "--html", "-")...)
	w.refused(ExitUsage, append(send, "--text", "@.")...)
}

func TestNotifySendRefusals(t *testing.T) {
	w, n := registered(t)
	said := len(n.said)
	for _, args := range [][]string{{}, {"--everyone", "--user", "ann", "--kind", "tides", "--text", "x"}, {"--user", "ann", "--text", "x"}, {"--everyone", "--kind", "tides"},
		{"--everyone", "--role", "OrgManager", "--kind", "tides", "--text", "x"}} {
		w.refused(ExitUsage, append([]string{"notify", "send"}, args...)...)
	}
	contains(t, w.refused(ExitNotFound, "notify", "send", "--user", "bob", "--kind", "tides", "--text", "x"), `There is no user "bob", or you may not see them.`, "give the user's id")
	contains(t, w.refused(ExitNotFound, "notify", "send", "--org", "nowhere", "--kind", "tides", "--text", "x"), `There is no organization "nowhere".`)
	if len(n.said) != said {
		t.Errorf("the service heard %q", n.said[said:])
	}
	contains(t, w.refused(ExitNotFound, "notify", "send", "--everyone", "--kind", "ebb", "--text", "x"), `The kind "ebb" is not registered for the client "harbour".`,
		"proa notify register --source NAME --kind ebb=DESCRIPTION")
	contains(t, w.refused(ExitFailed, "notify", "send", "--everyone", "--kind", "tides", "--text", "x", "--subject", "bad"), "subject must be one line", "\n       reply_to must be one e-mail address")
	n.scopes = []string{"notifications.write"}
	contains(t, w.refused(ExitFailed, "notify", "send", "--email", "a@example.org", "--text", "x"), "This needs the scope emails.write", "proa update-client harbour --add-authority emails.write")
	n.down = 100
	contains(t, w.refused(ExitUnavailable, "notify", "send", "--everyone", "--kind", "tides", "--text", "x"), "The service cannot answer now.")
}

func TestNotifyProgress(t *testing.T) {
	w, n := registered(t)
	n.progress = []string{`"status":"queued","audience_complete":false,"total":500,"queued":500,"delivered":0,"failed":0,"skipped":{}`,
		`"status":"queued","audience_complete":true,"total":900,"queued":10,"delivered":880,"failed":0,"skipped":{"no_address":3,"unsubscribed":7}`,
		`"status":"delivered","audience_complete":true,"total":900,"queued":0,"delivered":890,"failed":0,"skipped":{"no_address":3,"unsubscribed":7}`}
	out := w.ok("notify", "send", "--everyone", "--kind", "tides", "--text", "x", "--wait")
	want := "Message m-1 to 500 so far: 500 queued, 0 delivered, 0 failed\n" +
		"Message m-1 to 900: 10 queued, 880 delivered, 0 failed, 10 passed over (3 no address, 7 unsubscribed)\n" +
		"Message m-1 to 900: 0 queued, 890 delivered, 0 failed, 10 passed over (3 no address, 7 unsubscribed)\nOK\n"
	if out != want {
		t.Errorf("wrote\n%s\nwant\n%s", out, want)
	}
	for progress, says := range map[string]string{
		`"status":"delivered","audience_complete":true,"total":3,"queued":0,"delivered":1,"failed":2,"skipped":{}`:                                   "The message did not reach 2 recipients.\nNext:  proa notify message m-1 --status failed",
		`"status":"undeliverable","audience_complete":true,"total":1,"queued":0,"delivered":0,"failed":0,"skipped":{"unsubscribed":1}`:               "The message reached nobody: all were passed over.",
		`"status":"failed","audience_complete":false,"total":0,"queued":0,"delivered":0,"failed":0,"skipped":{},"reason":"There is no scope \"x\"."`: `The message was not sent: There is no scope "x".`,
	} {
		n.progress = []string{progress}
		contains(t, w.refused(ExitFailed, "notify", "message", "m-1", "--wait"), says)
	}
	n.progress = []string{`"status":"queued","audience_complete":true,"total":1,"queued":1,"delivered":0,"failed":0,"skipped":{}`}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, errs, code := w.runIn(ctx, func(*Env) {}, "notify", "message", "m-1", "--wait"); code != ExitInterrupted {
		t.Errorf("exit %d: %s", code, errs)
	}
}

func TestNotifyMessage(t *testing.T) {
	w, n := registered(t)
	n.progress = []string{`"status":"delivered","audience_complete":true,"total":3,"queued":0,"delivered":1,"failed":1,"skipped":{"unsubscribed_all":1}`}
	contains(t, w.ok("notify", "message", "m-1"), "kind:    tides", "to:      everyone\n", "people:  3: 0 queued, 1 delivered, 1 failed, 1 passed over (1 unsubscribed all)",
		"u-1        failed  2         0s ago  550 5.1.1 mailbox unavailable", "proa notify message m-1 --after d-1")
	contains(t, n.lately(), "recipients?count=50")
	out := w.ok("notify", "message", "m-1", "--all")
	contains(t, out, "u-1", "u-2        undeliverable  0         0s ago  unsubscribed all")
	lacks(t, out, "There are more.")
	contains(t, w.ok("notify", "message", "m-1", "--after", "d-1", "--count", "7"), "u-2")
	contains(t, n.lately(), "after=d-1&count=7")
	contains(t, w.ok("notify", "message", "m-1", "--status", "failed", "--output", "json"), `"delivery_id": "d-1"`, `"total": 3`)
	contains(t, w.refused(ExitNotFound, "notify", "message", "m-2"), `There is no message "m-2" of this client.`)
	w.refused(ExitUsage, "notify", "message", "m-1", "--count", "501")
}

func TestNotifyTemplates(t *testing.T) {
	w, n := registered(t)
	contains(t, w.ok("notify", "template", "create", "Harbour", "--subject", "[harbour] {{.Subject}}", "--text", "{{.Text}}\n-- \nThe office", "--html", "<h1>{{.HTML}}</h1>"),
		"OK Template Harbour has the id t-1.", "proa notify template assign t-1 --kind KIND")
	contains(t, n.lately(), `POST /templates {"name":"Harbour","subject":"[harbour] {{.Subject}}"`)
	contains(t, w.ok("notify", "template", "list"), "t-1  Harbour")
	contains(t, w.ok("notify", "template", "show", "t-1"), "name:    Harbour", "text\n  {{.Text}}\n  -- \n  The office\n", "html\n  <h1>{{.HTML}}</h1>\n")
	contains(t, w.ok("notify", "template", "show", "default"), "CF Notification: {{.Subject}}")
	contains(t, w.ok("notify", "template", "preview", "t-1", "--subject", "Ebb", "--text", "At 20:30."), "subject: [harbour] Ebb", "\n  At 20:30.\n")
	contains(t, w.ok("notify", "template", "preview", "t-1", "--subject", "Ebb", "--output", "json"), `"subject": "[harbour] Ebb"`)
	w.ok("notify", "template", "assign", "t-1", "--kind", "tides")
	if want := `PUT /clients/harbour/notifications/tides/template {"template":"t-1"}`; n.lately() != want {
		t.Errorf("said %s, want %s", n.lately(), want)
	}
	contains(t, w.refused(ExitFailed, "notify", "template", "delete", "t-1", "-f"), "The template is in use.", "proa notify template assign default --kind KIND")
	w.ok("notify", "template", "assign", "default", "--all-kinds")
	contains(t, n.lately(), `PUT /clients/harbour/template {"template":"default"}`)
	w.ok("notify", "template", "delete", "t-1", "-f")
	contains(t, w.refused(ExitNotFound, "notify", "template", "show", "t-1"), `There is no template "t-1".`, "proa notify template list")
	contains(t, w.refused(ExitFailed, "notify", "template", "assign", "t-1", "--kind", "tides"), "there is no template", "proa notify template list")
	contains(t, w.refused(ExitFailed, "notify", "template", "create", "Bad", "--text", "{{range}}"), "range cannot be used")
	w.refused(ExitUsage, "notify", "template", "assign", "t-1")
	w.refused(ExitUsage, "notify", "template", "assign", "t-1", "--kind", "x", "--all-kinds")
	_, errs, _ := w.run("notify", "template", "list")
	contains(t, errs, "There is only the default template.")
}

func TestNotifyPreferences(t *testing.T) {
	w, n := asHarbour(t)
	contains(t, w.ok("notify", "preferences"), "harbour/tides  on    High and low water  The harbour office")
	w.ok("notify", "preferences", "--off", "harbour/tides", "--on", "a/b/berths", "--all-on")
	if want := `PATCH {"global_unsubscribe":false,"clients":{"a/b":{"berths":{"email":true}},"harbour":{"tides":{"email":false}}}}`; n.lately() != want {
		t.Errorf("said\n%s\nwant\n%s", n.lately(), want)
	}
	contains(t, w.refused(ExitFailed, "notify", "preferences", "--off", "harbour/storm"), "nobody can unsubscribe from it", "proa notify preferences")
	for _, args := range [][]string{{"--off", "tides"}, {"--off", "/x"}, {"--on", "x/"}, {"--on", "a/b", "--off", "a/b"}, {"--all-on", "--all-off"}} {
		w.refused(ExitUsage, append([]string{"notify", "preferences"}, args...)...)
	}
	w.ok("logout")
	w.refused(ExitLogin, "notify", "preferences")
}

// Who sends and where to is taken from the options, the environment, the login and the API, in this order.
func TestNotifySender(t *testing.T) {
	w, n := registered(t)
	w.ok("notify", "kinds", "--client", "harbour")
	contains(t, w.refused(ExitLogin, "notify", "kinds", "--client", "other"), "does not take the client other", "Bad client credentials.", "set PROA_NOTIFY_CLIENT_ID and PROA_NOTIFY_CLIENT_SECRET")
	delete(w.env, "PROA_NOTIFY_CLIENT_SECRET")
	contains(t, w.refused(ExitUsage, "notify", "kinds"), "The secret of the client harbour is missing.")
	asked := func(e *Env) {
		e.InTTY, e.Hidden = true, func(context.Context) (string, error) { return "mast", nil }
	}
	if _, errs, code := w.runIn(t.Context(), asked, "notify", "kinds"); code != ExitOK {
		t.Errorf("exit %d: %s", code, errs)
	}
	delete(w.env, "PROA_NOTIFY_CLIENT_ID")
	contains(t, w.refused(ExitUsage, "notify", "kinds"), "No client is named", "proa create-client ID --authority notifications.write")
	n.hidden = true
	contains(t, w.refused(ExitFailed, "notify", "kinds"), "does not name a notification service", "set PROA_NOTIFY_URL")
	w.env["PROA_NOTIFY_URL"] = "ftp://x"
	contains(t, w.refused(ExitUsage, "notify", "kinds"), "is not an address")
	w.env["PROA_NOTIFY_URL"] = w.URL + "/"
	w.ok("auth", "harbour", "mast", "--client-credentials")
	contains(t, w.ok("notify", "kinds"), "tides")
	contains(t, w.refused(ExitFailed, "notify", "preferences"), "A client has no preferences")

	w.home = t.TempDir() // nobody is logged in, and there is no platform
	w.env["PROA_NOTIFY_CLIENT_ID"], w.env["PROA_NOTIFY_CLIENT_SECRET"] = "harbour", "mast"
	contains(t, w.refused(ExitLogin, "notify", "kinds"), "Nothing says where the notification service is.", "PROA_AUTH_URL")
	w.env["PROA_AUTH_URL"] = w.URL
	contains(t, w.ok("notify", "kinds"), "tides")
	w.ok("notify", "send", "--user", person, "--kind", "tides", "--text", "x")
	contains(t, w.refused(ExitLogin, "notify", "send", "--org", "research", "--kind", "tides", "--text", "x"), "No API is set yet.")
	w.env["PROA_NOTIFY_URL"] = w.URL + "/nowhere"
	contains(t, w.refused(ExitNotFound, "notify", "kinds"), "answered with status 404")
}

func TestCommandFamilies(t *testing.T) {
	w := newWorld(t)
	for _, args := range [][]string{{"notify"}, {"notify", "--help"}, {"help", "notify"}, {"notify", "-h"}} {
		contains(t, w.ok(args...), "Notifications", "notify register", "notify template assign")
	}
	lacks(t, w.ok("notify", "template"), "notify register")
	contains(t, w.ok("help", "notify", "template", "show"), "proa notify template show ID")
	contains(t, w.refused(ExitUsage, "notify", "sned"), `There is no command "notify sned". Did you mean notify send?`, "proa notify send --help")
	contains(t, w.refused(ExitUsage, "notify", "template", "xyzzy"), `There is no command "notify template xyzzy".`, "proa notify template --help")
	contains(t, w.refused(ExitUsage, "notifi"), "Did you mean notify?")
	contains(t, w.refused(ExitUsage, "help", "push", "more"), "one argument too many")
	contains(t, w.refused(ExitUsage, "notify", "message"), "ID is missing.", "proa notify message ID")
	contains(t, w.refused(ExitUsage, "notify", "send", "--wiat"), "Did you mean --wait?", "proa notify send --help")
}

// The Tab key is tried in a real bash.
func TestBashCompletes(t *testing.T) {
	w := newWorld(t)
	for typed, want := range map[string]string{"pus": "push", "notif": "notify", "notify temp": "template", "notify template as": "assign", "notify send --ev": "--everyone", "notify template show --out": "--output",
		"push --he": "--health-check-type --help"} {
		words := strings.Fields("proa " + typed)
		script := w.ok("completion", "bash") + "\nCOMP_WORDS=(" + strings.Join(words, " ") + "); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _proa; echo \"${COMPREPLY[@]}\""
		cmd := exec.CommandContext(t.Context(), "bash", "--norc", "-c", script)
		out, err := cmd.Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%q completes to %q, %v: want %q", typed, got, err, want)
		}
	}
}
