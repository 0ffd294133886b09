package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/mail"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/notify/deliver/smtptest"
)

var allScopes = []string{"notifications.write", "notifications.manage", "notification_templates.write", "notification_templates.read", "critical_notifications.write", "emails.write"}

func registration(kinds ...string) map[string]any {
	list := map[string]any{}
	for _, k := range kinds {
		list[k] = map[string]any{"description": "About " + k, "critical": strings.HasPrefix(k, "critical")}
	}
	return map[string]any{"source_name": "The watch", "notifications": list}
}

func words(kind string) map[string]any {
	return map[string]any{"kind_id": kind, "subject": "The subject", "text": "The text", "html": "<p>The <b>html</b></p>", "reply_to": "watch@example.org"}
}

// The walk of spec 1, from the client to the delivered mail, to each of the six audiences.
func TestEveryAudienceGetsItsMail(t *testing.T) {
	w := newWorld(t)
	w.serve()
	token := w.client("watch", allScopes...)
	ann, bob, eve := w.person("ann"), w.person("bob"), w.person("eve")
	var group uaa.Group
	must(t, w.auth.Call(t.Context(), http.MethodPost, "/Groups", uaa.Group{Name: "harbour.read", Members: &[]uaa.Member{{Value: ann}, {Value: eve}}}, &group))
	w.platform.names["space-1"], w.platform.names["org-1"], w.platform.orgs["space-1"] = "production", "ferry & sons", "org-1"
	w.platform.roles["space-1"] = []string{ann, ann, bob, bob, ann, "nobody-knows-me"} // several roles, several pages
	w.platform.roles["space-1space_developer"] = []string{ann}
	w.platform.roles["org-1"] = []string{ann, bob, eve}
	w.platform.roles["org-1organization_manager"] = []string{bob}
	w.want(204, w.call(http.MethodPut, "/notifications", token, registration("tides", "critical.flood")))

	for _, c := range []struct {
		name, path string
		body       map[string]any
		reaches    []string
		skipped    int
		says       string
	}{
		{"user", "/users/" + ann, words("tides"), []string{"ann@example.org"}, 0, ""},
		{"space", "/spaces/space-1", words("tides"), []string{"ann@example.org", "bob@example.org"}, 1, "production"},
		{"organization", "/organizations/org-1", words("tides"), []string{"ann@example.org", "bob@example.org", "eve@example.org"}, 0, "ferry & sons"},
		{"space's developers", "/spaces/space-1", with(words("tides"), "role", "SpaceDeveloper"), []string{"ann@example.org"}, 0, "a developer"},
		{"organization's managers", "/organizations/org-1", with(words("tides"), "role", "OrgManager"), []string{"bob@example.org"}, 0, "a manager"},
		{"everyone", "/everyone", words("critical.flood"), []string{"admin@proa.localhost", "ann@example.org", "bob@example.org", "eve@example.org"}, 0, ""},
		{"scope", "/uaa_scopes/harbour.read", words("tides"), []string{"ann@example.org", "eve@example.org"}, 0, "harbour.read"},
		{"address", "/emails", with(words("tides"), "to", "Zoe <zoe@example.org>"), []string{"zoe@example.org"}, 0, ""},
		{"address without a kind", "/emails", map[string]any{"to": "zoe@example.org", "text": "hello"}, []string{"zoe@example.org"}, 0, ""},
	} {
		before := len(w.sink.Mails())
		s := w.settled(w.send(c.path, token, c.body), token)
		skipped := 0
		for _, n := range s.Skipped {
			skipped += n
		}
		if s.Status != "delivered" || s.Delivered != len(c.reaches) || s.Total != len(c.reaches)+c.skipped || skipped != c.skipped || s.Failed != 0 || s.Queued != 0 || !s.Complete {
			t.Errorf("%s: %+v", c.name, s)
		}
		got := map[string]string{}
		for _, m := range w.sink.Mails()[before:] {
			if got[m.To] != "" {
				t.Errorf("%s: two mails to %s", c.name, m.To)
			}
			got[m.To] = string(m.Raw)
		}
		for _, address := range c.reaches {
			raw := got[address]
			if raw == "" || !strings.Contains(strings.ReplaceAll(raw, "=\r\n", ""), c.says) {
				t.Errorf("%s: the mail to %s:\n%s", c.name, address, raw)
			}
		}
		if len(got) != len(c.reaches) {
			t.Errorf("%s: mails to %d addresses, want %d", c.name, len(got), len(c.reaches))
		}
	}
}

func with(m map[string]any, key string, value any) map[string]any {
	m[key] = value
	return m
}

func TestTheMailIsWhatWasAsked(t *testing.T) {
	w := newWorld(t)
	w.serve()
	token := w.client("watch", allScopes...)
	ann := w.person("ann")
	w.want(204, w.call(http.MethodPut, "/notifications", token, registration("tides")))
	created := w.want(201, w.call(http.MethodPost, "/templates", token, map[string]any{"name": "Tides", "subject": "[tides] {{.Subject}}",
		"text": "{{.Text}} -- {{.KindDescription}} from {{.SourceDescription}}", "html": "<h1>{{.Subject}}</h1>{{.HTML}}<a href=\"{{.UnsubscribeURL}}\">no more</a>"}))
	var template map[string]string
	must(t, json.Unmarshal([]byte(created.body), &template))
	if len(template) != 1 || template["template-id"] == "" {
		t.Fatalf("creating a template answers one field, template-id: %s", created.body)
	}
	if list := w.want(200, w.call(http.MethodGet, "/templates", token, nil)); list.body != fmt.Sprintf(`{"%s":{"name":"Tides"}}`, template["template-id"]) {
		t.Errorf("templates: %s", list.body)
	}
	w.want(204, w.call(http.MethodPut, "/clients/watch/notifications/tides/template", token, map[string]string{"template": template["template-id"]}))
	body := words("tides")
	body["subject"] = "High <water> ⛵"
	w.settled(w.send("/users/"+ann, token, body), token)
	mails := w.mailsTo("ann@example.org")
	if len(mails) != 1 {
		t.Fatalf("%d mails", len(mails))
	}
	m, err := mail.ReadMessage(strings.NewReader(mails[0]))
	must(t, err)
	if subject, err := decodeHeader(m.Header.Get("Subject")); err != nil || subject != "[tides] High <water> ⛵" {
		t.Errorf("subject: %q %v", subject, err)
	}
	for name, want := range map[string]string{"From": "Proa", "To": "ann@example.org", "Reply-To": "watch@example.org", "X-Cf-Client-Id": "watch", "List-Unsubscribe": w.url + "/unsubscribe?token=",
		"List-Unsubscribe-Post": "List-Unsubscribe=One-Click", "Message-Id": "@proa.localhost>", "Content-Type": "multipart/alternative", "Auto-Submitted": "auto-generated"} {
		if !strings.Contains(m.Header.Get(name), want) {
			t.Errorf("%s: %q", name, m.Header.Get(name))
		}
	}
	raw, err := io.ReadAll(m.Body)
	must(t, err)
	flat := strings.ReplaceAll(string(raw), "=\r\n", "")
	if !strings.Contains(flat, "The text -- About tides from The watch") || !strings.Contains(flat, "<h1>High &lt;water&gt;") || !strings.Contains(flat, "<b>html</b>") {
		t.Errorf("body:\n%s", flat)
	}
	if strings.Index(flat, "text/plain") > strings.Index(flat, "text/html") {
		t.Error("text must come first")
	}
	if r := w.call(http.MethodDelete, "/templates/"+template["template-id"], token, nil); r.status != 409 {
		t.Errorf("deleting a template in use: %d %s", r.status, r.body)
	}
	preview := w.want(200, w.call(http.MethodPost, "/templates/"+template["template-id"]+"/preview", token, map[string]string{"subject": "S", "text": "T"}))
	if !strings.Contains(preview.body, `"subject":"[tides] S"`) || len(w.sink.Mails()) != 1 {
		t.Errorf("preview: %s, %d mails", preview.body, len(w.sink.Mails()))
	}
	// Taken back, the default template is used again.
	w.want(204, w.call(http.MethodPut, "/clients/watch/notifications/tides/template", token, map[string]any{"template": nil}))
	w.settled(w.send("/users/"+ann, token, words("tides")), token)
	if mails := w.mailsTo("ann@example.org"); len(mails) != 2 || !strings.Contains(mails[1], "\r\nSubject: CF Notification: The subject\r\n") {
		t.Errorf("without the template:\n%s", mails[len(mails)-1])
	}
	w.want(204, w.call(http.MethodDelete, "/templates/"+template["template-id"], token, nil))
}

var linkAt = regexp.MustCompile(`List-Unsubscribe: <([^>]+)>`)

func unfold(raw string) string { return strings.ReplaceAll(raw, "\r\n ", " ") }

func TestPeopleDecide(t *testing.T) {
	w := newWorld(t)
	w.serve()
	token, admin := w.client("watch", allScopes...), w.client("operator", "notification_preferences.admin")
	ann := w.person("ann")
	w.want(204, w.call(http.MethodPut, "/notifications", token, registration("tides", "winds", "critical.flood")))
	deliver := func(kind string) status {
		t.Helper()
		return w.settled(w.send("/users/"+ann, token, words(kind)), token)
	}
	deliver("tides")
	own := w.login("ann")
	prefs := w.want(200, w.call(http.MethodGet, "/user_preferences", own, nil)).body
	if want := `{"global_unsubscribe":false,"clients":{"watch":{"tides":{"email":true,"kind_description":"About tides","source_description":"The watch"},"winds":{"email":true,"kind_description":"About winds","source_description":"The watch"}}}}`; prefs != want {
		t.Errorf("preferences: %s", prefs)
	}
	// One click, as a mail program sends it. Looking at the link changes nothing.
	link := strings.ReplaceAll(linkAt.FindStringSubmatch(unfold(w.mailsTo("ann@example.org")[0]))[1], " ", "")
	at := strings.TrimPrefix(link, w.url)
	if page := w.want(200, w.call(http.MethodGet, at, "", nil, "Accept", "text/html")); !strings.Contains(page.body, "About tides") {
		t.Errorf("page: %s", page.body)
	}
	if s := deliver("tides"); s.Delivered != 1 {
		t.Errorf("looking at the link has unsubscribed: %+v", s)
	}
	w.want(200, w.call(http.MethodPost, at, "", "List-Unsubscribe=One-Click", "Content-Type", "application/x-www-form-urlencoded"))
	if s := deliver("tides"); s.Skipped["unsubscribed"] != 1 || s.Status != "undeliverable" {
		t.Errorf("after one click: %+v", s)
	}
	if s := deliver("winds"); s.Delivered != 1 {
		t.Errorf("another kind: %+v", s)
	}
	// A true PATCH: leaving the global flag out leaves it.
	w.want(204, w.call(http.MethodPatch, "/user_preferences", own, `{"global_unsubscribe":true}`))
	w.want(204, w.call(http.MethodPatch, "/user_preferences", own, `{"clients":{"watch":{"tides":{"email":true}}}}`))
	if s := deliver("tides"); s.Skipped["unsubscribed_all"] != 1 {
		t.Errorf("after leaving all: %+v", s)
	}
	if s := deliver("critical.flood"); s.Delivered != 1 {
		t.Errorf("critical must reach them: %+v", s)
	}
	if last := w.mailsTo("ann@example.org"); strings.Contains(last[len(last)-1], "List-Unsubscribe") {
		t.Error("a critical mail offers to unsubscribe")
	}
	w.want(204, w.call(http.MethodPatch, "/user_preferences/"+ann, admin, `{"global_unsubscribe":false}`))
	if s := deliver("tides"); s.Delivered != 1 {
		t.Errorf("after coming back: %+v", s)
	}
	for body, want := range map[string]string{
		`{"clients":{"watch":{"critical.flood":{"email":false}}}}`: "critical", `{"clients":{"watch":{"nothing":{"email":false}}}}`: "no such kind",
		`{"clients":{"watch":{}}}`: "names no kind", `{"clients":{"watch":{"tides":{}}}}`: "email is missing", `{"other":1}`: "not a field", `{`: "JSON",
	} {
		if r := w.call(http.MethodPatch, "/user_preferences", own, body); r.status != 422 || !strings.Contains(r.body, want) {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
	for _, forged := range []string{"/unsubscribe?token=AAAA", "/unsubscribe", at[:len(at)-4] + "AAAA"} {
		if r := w.call(http.MethodPost, forged, "", "List-Unsubscribe=One-Click", "Content-Type", "application/x-www-form-urlencoded"); r.status != 404 {
			t.Errorf("%s: %d", forged, r.status)
		}
	}
}

// refused is the table: what is tried with which scopes, and exactly what comes back.
func TestRefusals(t *testing.T) {
	w := newWorld(t)
	w.serve()
	all, none := w.client("watch", allScopes...), w.client("nothing", "notifications.something")
	other := w.client("other", allScopes...)
	marks := w.client("marks", "notifications.something", "notifications_write", "notifications_manage", "notification_templates_write", "notifications_templates.read", "critical_notifications_write", "emails_write")
	plain := w.client("plain", "notifications.write", "notifications.manage")
	urgent := w.client("urgent", "critical_notifications.write", "notifications.manage")
	ann := w.person("ann")
	w.want(204, w.call(http.MethodPut, "/notifications", all, registration("tides", "critical.flood")))
	w.want(204, w.call(http.MethodPut, "/notifications", plain, registration("tides")))
	w.want(204, w.call(http.MethodPut, "/notifications", urgent, registration("tides", "critical.flood")))
	sent := w.send("/users/"+ann, all, words("tides"))
	template := func(text, html string) map[string]any { return map[string]any{"name": "x", "text": text, "html": html} }
	user := "/users/" + ann
	for _, c := range []struct {
		name, method, path, token string
		body                      any
		status                    int
		says                      string
	}{
		{"no token", "POST", user, "", words("tides"), 401, "An access token is needed"},
		{"no scope to send", "POST", user, none, words("tides"), 403, "notifications.write or critical_notifications.write"},
		{"no scope to register", "PUT", "/notifications", none, registration("x"), 403, "notifications.manage"},
		{"no scope for templates", "POST", "/templates", plain, template("x", ""), 403, "notification_templates.write"},
		{"another spelling of the scope to send", "POST", user, marks, words("tides"), 403, "notifications.write or critical_notifications.write"},
		{"another spelling of the scope to register", "PUT", "/notifications", marks, registration("x"), 403, "notifications.manage"},
		{"another spelling of the scope for templates", "POST", "/templates", marks, template("x", ""), 403, "notification_templates.write"},
		{"another spelling of the scope to list templates", "GET", "/templates", marks, nil, 403, "notification_templates.read"},
		{"no scope for addresses", "POST", "/emails", plain, words("tides"), 403, "emails.write"},
		{"critical kind registered without the scope", "PUT", "/notifications", plain, registration("critical.x"), 422, "critical_notifications.write"},
		{"normal kind with only the critical scope", "POST", user, urgent, words("tides"), 403, "notifications.write"},
		{"unregistered kind", "POST", user, all, words("unheard"), 404, "Register it with PUT /notifications"},
		{"kind of another client", "POST", user, other, words("tides"), 404, "Register it with PUT /notifications"},
		{"another client's template", "PUT", "/clients/watch/template", other, map[string]string{"template": ""}, 403, "belong to that client"},
		{"the template of another client's kind", "PUT", "/clients/watch/notifications/tides/template", other, map[string]string{"template": ""}, 403, "belong to that client"},
		{"foreign message", "GET", "/messages/" + sent, other, nil, 404, "There is no message"},
		{"foreign recipients", "GET", "/messages/" + sent + "/recipients", other, nil, 404, "There is no message"},
		{"message that is none", "GET", "/messages/x", all, nil, 404, "There is no message"},
		{"unknown version", "GET", "/info", "", nil, 404, "X-NOTIFICATIONS-VERSION: 1"},
		{"CR LF in the subject", "POST", user, all, with(words("tides"), "subject", "a\r\nBcc: x@example.org"), 422, "subject must be one line"},
		{"CR LF in reply_to", "POST", user, all, with(words("tides"), "reply_to", "a@example.org\r\nBcc: x@example.org"), 422, "reply_to must be one e-mail address"},
		{"CR LF in to", "POST", "/emails", all, with(words("tides"), "to", "a@example.org\r\nRCPT TO:<x@example.org>"), 422, "to must be one e-mail address"},
		{"two addresses in to", "POST", "/emails", all, with(words("tides"), "to", "a@example.org, b@example.org"), 422, "to must be one e-mail address"},
		{"no to", "POST", "/emails", all, words("tides"), 422, "to must be one e-mail address"},
		{"nothing to say", "POST", user, all, map[string]any{"kind_id": "tides"}, 422, "text or html is missing"},
		{"no kind", "POST", user, all, map[string]any{"text": "x"}, 422, "kind_id is missing"},
		{"a role of organizations", "POST", "/spaces/x", all, with(words("tides"), "role", "OrgManager"), 422, "role must be SpaceDeveloper"},
		{"unknown role", "POST", "/organizations/x", all, with(words("tides"), "role", "Captain"), 422, "role must be"},
		{"long subject", "POST", user, all, with(words("tides"), "subject", strings.Repeat("x", 1001)), 422, "at most 1000"},
		{"long text", "POST", user, all, with(words("tides"), "text", strings.Repeat("x", 1<<18+1)), 422, "more than 262144 bytes"},
		{"long html", "POST", user, all, with(words("tides"), "html", strings.Repeat("x", 1<<19+1)), 422, "more than 524288 bytes"},
		{"oversized body", "POST", user, all, with(words("tides"), "text", strings.Repeat("x", 3<<20)), 413, "larger than"},
		{"invalid UTF-8", "POST", user, all, "{\"kind_id\":\"tides\",\"text\":\"\xff\"}", 400, "UTF-8"},
		{"not JSON", "POST", user, all, "kind_id=tides", 400, "JSON"},
		{"wrong type", "POST", user, all, map[string]any{"kind_id": 7}, 400, "kind_id must be a string"},
		{"unknown field in a registration", "PUT", "/notifications", all, map[string]any{"source_name": "x", "kinds": 1}, 400, "kinds"},
		{"registration without a name", "PUT", "/notifications", all, map[string]any{}, 422, "source_name is missing"},
		{"kind without a description", "PUT", "/notifications", all, map[string]any{"source_name": "x", "notifications": map[string]any{"a": map[string]any{}}}, 422, "description is missing"},
		{"kind with a space in its name", "PUT", "/notifications", all, registration("a b"), 422, "must have 1 to 255"},
		{"unknown placeholder", "POST", "/templates", all, template("{{.Nothing}}", ""), 422, "Nothing"},
		{"broken template", "POST", "/templates", all, template("{{.Text", ""), 422, "text"},
		{"template with a loop", "POST", "/templates", all, template("{{range .Text}}x{{end}}", ""), 422, "range"},
		{"template that calls itself", "POST", "/templates", all, template(`{{define "a"}}{{template "a"}}{{end}}{{template "a"}}`, ""), 422, "text"},
		{"template bomb by nesting", "POST", "/templates", all, template(strings.Repeat("{{if .Text}}", 1000)+strings.Repeat("{{end}}", 1000), ""), 422, "text"},
		{"template bomb by width", "POST", "/templates", all, template(`{{printf "%1000000000d" 1}}`, ""), 422, "printf"},
		{"template bomb by repeating", "POST", "/templates", all, template("", strings.Repeat("{{.HTML}}", 100000)), 422, "html"},
		{"template in invalid UTF-8", "POST", "/templates", all, "{\"name\":\"x\",\"text\":\"\xff\"}", 400, "UTF-8"},
		{"template of nothing", "POST", "/templates", all, template("", ""), 422, "html"},
		{"assigning an unknown template", "PUT", "/clients/watch/template", all, map[string]string{"template": "none"}, 422, "there is no template"},
		{"assigning an unknown template to a kind", "PUT", "/clients/watch/notifications/tides/template", all, map[string]string{"template": "none"}, 422, "there is no template"},
		{"deleting the default", "DELETE", "/templates/default", all, nil, 409, "default template"},
		{"preferences with a client's token", "GET", "/user_preferences", w.client("nobody", "notification_preferences.read"), nil, 422, "belongs to a client"},
		{"suppressions without the scope", "GET", "/suppressions", all, nil, 403, "notifications.admin"},
	} {
		var header []string
		if c.name == "unknown version" {
			header = []string{"X-NOTIFICATIONS-VERSION", "2"}
		}
		r := w.call(c.method, c.path, c.token, c.body, header...)
		var shape struct {
			Errors []string `json:"errors"`
		}
		if err := json.Unmarshal([]byte(r.body), &shape); err != nil || len(shape.Errors) == 0 {
			t.Errorf("%s: not the shape of errors: %d %s", c.name, r.status, r.body)
			continue
		}
		if r.status != c.status || !strings.Contains(strings.Join(shape.Errors, " "), c.says) || !strings.HasPrefix(r.header.Get("Content-Type"), "application/json") {
			t.Errorf("%s:\ngot  %d %s\nwant %d %s", c.name, r.status, r.body, c.status, c.says)
		}
	}
	// What other clients are refused, an administrator of the service may.
	w.want(204, w.call(http.MethodPut, "/clients/watch/notifications/tides/template", w.client("operator", "notifications.manage", "notifications.admin"), map[string]string{"template": ""}))
	// Nothing of all that was sent, but for the one.
	w.settled(sent, all)
	if n := len(w.sink.Mails()); n != 1 {
		t.Errorf("%d mails were sent", n)
	}
}

func TestOnceIsOnce(t *testing.T) {
	w := newWorld(t)
	w.serve()
	token := w.client("watch", allScopes...)
	ann := w.person("ann")
	w.want(204, w.call(http.MethodPut, "/notifications", token, registration("tides")))
	first := w.call(http.MethodPost, "/users/"+ann, token, words("tides"), "Idempotency-Key", "k1")
	again := w.call(http.MethodPost, "/users/"+ann, token, words("tides"), "Idempotency-Key", "k1")
	if first.status != 200 || again.body != first.body {
		t.Errorf("%s\n%s", first.body, again.body)
	}
	if r := w.call(http.MethodPost, "/users/"+ann, token, with(words("tides"), "text", "other"), "Idempotency-Key", "k1"); r.status != 409 {
		t.Errorf("a changed body: %d %s", r.status, r.body)
	}
	if r := w.call(http.MethodPost, "/users/another", token, words("tides"), "Idempotency-Key", "k1"); r.status != 409 {
		t.Errorf("another recipient: %d %s", r.status, r.body)
	}
	var kept []struct {
		ID string `json:"notification_id"`
	}
	must(t, json.Unmarshal([]byte(first.body), &kept))
	w.settled(kept[0].ID, token)
	w.settled(w.send("/users/"+ann, token, words("tides"), "Idempotency-Key", "k2"), token)
	if n := len(w.mailsTo("ann@example.org")); n != 2 {
		t.Errorf("%d mails", n)
	}
}

func TestTheRateIsLimited(t *testing.T) {
	w := newWorld(t)
	w.env = append(w.env, "PROA_NOTIFY_RATE=1", "PROA_NOTIFY_BURST=3")
	w.serve()
	token := w.client("watch", allScopes...)
	for i := range 3 {
		r := w.call(http.MethodPost, "/emails", token, map[string]any{"to": "ann@example.org", "text": "x"})
		if r.status != 200 || r.header.Get("RateLimit-Limit") != "3" || r.header.Get("RateLimit-Remaining") != fmt.Sprint(2-i) {
			t.Errorf("%d %v", r.status, r.header)
		}
	}
	r := w.call(http.MethodPost, "/emails", token, map[string]any{"to": "ann@example.org", "text": "x"})
	if r.status != 429 || r.header.Get("Retry-After") != "1" {
		t.Errorf("%d %v %s", r.status, r.header, r.body)
	}
	if r := w.call(http.MethodPost, "/emails", w.client("other", allScopes...), map[string]any{"to": "ann@example.org", "text": "x"}); r.status != 200 {
		t.Errorf("another client: %d %s", r.status, r.body)
	}
}

func TestFaultsOfTheMailServer(t *testing.T) {
	w := newWorld(t)
	w.serve()
	token := w.client("watch", allScopes...)
	w.sink.Do(smtptest.At(smtptest.To, smtptest.Refuse("550 5.1.1 no such user")))
	id := w.send("/emails", token, map[string]any{"to": "gone@example.org", "text": "x"})
	if s := w.settled(id, token); s.Status != "failed" || s.Failed != 1 {
		t.Errorf("%+v", s)
	}
	r := w.want(200, w.call(http.MethodGet, "/messages/"+id+"/recipients", token, nil))
	if !strings.Contains(r.body, `"outcome":"permanent"`) || !strings.Contains(r.body, "550 5.1.1") || !strings.Contains(r.body, `"attempts":1`) {
		t.Errorf("recipients: %s", r.body)
	}
	if list := w.want(200, w.call(http.MethodGet, "/messages?failed=true", token, nil)); !strings.Contains(list.body, id) {
		t.Errorf("what failed: %s", list.body)
	}
	w.sink.Do(nil)
	if r := w.want(202, w.call(http.MethodPost, "/messages/"+id+"/retry", token, nil)); r.body != `{"queued":1}` {
		t.Errorf("retry: %s", r.body)
	}
	if s := w.settled(id, token); s.Delivered != 1 || s.Failed != 0 {
		t.Errorf("after the retry: %+v", s)
	}
	log := w.log.String()
	if strings.Contains(log, "gone@example.org") || !strings.Contains(log, "request") {
		t.Error("the log holds a whole address, or nothing")
	}
}

func TestUnknownAudiencesFailWithAReason(t *testing.T) {
	w := newWorld(t)
	w.serve()
	token := w.client("watch", allScopes...)
	w.want(204, w.call(http.MethodPut, "/notifications", token, registration("tides")))
	for path, want := range map[string]string{"/spaces/nowhere": "no space", "/organizations/nowhere": "no organization", "/uaa_scopes/no.such": "no scope"} {
		if s := w.settled(w.send(path, token, words("tides")), token); s.Status != "failed" || !strings.Contains(s.Reason, want) {
			t.Errorf("%s: %+v", path, s)
		}
	}
	if s := w.settled(w.send("/users/nobody", token, words("tides")), token); s.Status != "undeliverable" || s.Skipped["unknown_user"] != 1 {
		t.Errorf("unknown user: %+v", s)
	}
}

func TestRegisteringAgainDeletesNothing(t *testing.T) {
	w := newWorld(t)
	w.serve()
	token := w.client("watch", allScopes...)
	w.want(204, w.call(http.MethodPut, "/notifications", token, registration("tides", "winds")))
	w.want(204, w.call(http.MethodPut, "/notifications", token, registration("tides")))
	if r := w.want(200, w.call(http.MethodGet, "/notifications", token, nil)); !strings.Contains(r.body, `"winds"`) {
		t.Errorf("kinds: %s", r.body)
	}
	w.want(204, w.call(http.MethodPut, "/clients/watch/notifications/tides", token, map[string]any{"description": "Ebb and flow"}))
	w.want(204, w.call(http.MethodDelete, "/clients/watch/notifications/winds", token, nil))
	if r := w.want(200, w.call(http.MethodGet, "/notifications", token, nil)); strings.Contains(r.body, `"winds"`) || !strings.Contains(r.body, "Ebb and flow") {
		t.Errorf("kinds: %s", r.body)
	}
}

func TestAPersonIsForgotten(t *testing.T) {
	w := newWorld(t)
	w.serve()
	token, admin := w.client("watch", allScopes...), w.client("operator", "notifications.admin")
	ann := w.person("ann")
	w.want(204, w.call(http.MethodPut, "/notifications", token, registration("tides")))
	id := w.send("/users/"+ann, token, words("tides"))
	w.settled(id, token)
	w.want(204, w.call(http.MethodDelete, "/users/"+ann, admin, nil))
	if r := w.want(200, w.call(http.MethodGet, "/messages/"+id+"/recipients", token, nil)); strings.Contains(r.body, ann) {
		t.Errorf("recipients: %s", r.body)
	}
	if s := w.settled(w.send("/users/"+ann, token, words("tides")), token); s.Skipped["erased"] != 1 {
		t.Errorf("after the erasure: %+v", s)
	}
}

// When the database is away the answer is 503, never a silent loss: a send is answered 200 only when it is kept.
func TestWithoutADatabaseNothingIsAccepted(t *testing.T) {
	w := newWorld(t)
	w.serve()
	token := w.client("watch", allScopes...)
	closeDatabase(t, w.database)
	r := w.call(http.MethodPost, "/emails", token, map[string]any{"to": "ann@example.org", "text": "x"})
	if r.status != 503 || r.header.Get("Retry-After") == "" {
		t.Errorf("%d %v %s", r.status, r.header, r.body)
	}
}

// closeDatabase takes a database away from everybody.
func closeDatabase(t *testing.T, address string) {
	t.Helper()
	u, err := url.Parse(address)
	must(t, err)
	pool, err := pg.Open(t.Context(), os.Getenv("PROA_TEST_DATABASE_URL"))
	must(t, err)
	defer pool.Close()
	name := strings.TrimPrefix(u.Path, "/")
	_, err = pool.Exec(t.Context(), `alter database `+name+` allow_connections false`)
	must(t, err)
	_, err = pool.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity where datname = $1`, name)
	must(t, err)
}

func decodeHeader(s string) (string, error) { return new(mime.WordDecoder).DecodeHeader(s) }
