package main_test

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/fault"
	v1 "github.com/proa-dev/proa/notify/v1"
)

// The client that others import says and understands what the real service does, word by word of the description.
func TestClient(t *testing.T) {
	w := newWorld(t)
	w.serve()
	ann := w.person("ann")
	c := &v1.Client{URL: w.url, HTTP: w.http, Token: uaa.Static(w.client("harbour", allScopes...)), Agent: "test"}
	ask := func(method, path string, in, out any) {
		t.Helper()
		must(t, c.Call(t.Context(), method, path, in, out))
	}
	ask(http.MethodPut, v1.Kinds, v1.Registration{SourceName: "The harbour office", Notifications: map[string]v1.Kind{"tides": {Description: "Water"}, "storm": {Description: "Storms", Critical: true}}}, nil)
	var made v1.Created
	ask(http.MethodPost, v1.Templates, v1.Template{Name: "Harbour", Subject: "[h] {{.Subject}}", Text: "{{.Text}}", HTML: "{{.HTML}}"}, &made)
	ask(http.MethodPut, v1.AssignPath("harbour", "tides"), v1.Assignment{Template: made.ID}, nil)
	ask(http.MethodPut, v1.AssignPath("harbour", ""), v1.Assignment{Template: v1.DefaultTemplate}, nil)
	var sources map[string]v1.Source
	ask(http.MethodGet, v1.Kinds, nil, &sources)
	if got := sources["harbour"]; got.Name != "The harbour office" || got.Template != v1.DefaultTemplate || got.Notifications["tides"].Template != made.ID || !got.Notifications["storm"].Critical {
		t.Errorf("registered: %+v", got)
	}
	var named map[string]v1.Named
	ask(http.MethodGet, v1.Templates, nil, &named)
	var whole v1.Template
	ask(http.MethodGet, v1.TemplatePath(made.ID), nil, &whole)
	var preview v1.Content
	ask(http.MethodPost, v1.PreviewPath(made.ID), v1.Content{Subject: "Ebb", Text: "At 20:30."}, &preview)
	if !slices.Equal(slices.Collect(maps.Keys(named)), []string{made.ID}) || named[made.ID].Name != "Harbour" || whole.Subject != "[h] {{.Subject}}" || preview.Subject != "[h] Ebb" {
		t.Errorf("templates: %+v %+v %+v", named, whole, preview)
	}

	w.platform.roles["s"], w.platform.names["s"], w.platform.orgs["s"], w.platform.names["o"] = []string{ann}, "dev", "o", "research"
	w.platform.roles["o"+"organization_manager"] = []string{ann}
	for to, m := range map[v1.Audience]v1.Message{v1.ToUser(ann): {}, v1.ToSpace("s"): {}, v1.ToOrganization("o"): {Role: "OrgManager"}, v1.ToEveryone: {}, v1.ToScope("uaa.user"): {}, v1.ToEmail: {To: "pilot@example.org"}} {
		m.KindID, m.Subject, m.Text, m.ReplyTo = "tides", "To "+string(to), "High water.", "office@example.org"
		first, err := c.Send(t.Context(), to, m, "key "+string(to))
		must(t, err)
		again, err := c.Send(t.Context(), to, m, "key "+string(to))
		must(t, err)
		if first.ID == "" || first.ID != again.ID || first.Status != v1.Queued {
			t.Errorf("%s: %+v, and then %+v: one key is one message", to, first, again)
		}
		s := w.followed(c, first.ID)
		if s.Status != v1.Delivered || !s.Complete || s.Delivered == 0 || s.Kind != "tides" || s.ID != first.ID || time.Since(s.Received) > time.Minute {
			t.Errorf("%s: %+v", to, s)
		}
		var people v1.Recipients
		ask(http.MethodGet, v1.RecipientsPath(first.ID, url.Values{"count": {"1"}, "status": {"delivered"}}), nil, &people)
		if len(people.Recipients) != 1 || people.Recipients[0].Status != v1.Delivered || people.Recipients[0].Attempts != 1 || (people.Next == "") != (s.Delivered == 1) {
			t.Errorf("%s: %+v", to, people)
		}
	}
	if n := len(w.mailsTo("ann@example.org")); n != 5 {
		t.Errorf("ann got %d mails, want one of each audience that she is in", n)
	}

	_, err := c.Send(t.Context(), v1.ToEveryone, v1.Message{KindID: "ebb", Text: "x"}, "")
	if f := fault.From(err); f.Kind != fault.KindNotFound || f.Detail != `The kind "ebb" is not registered for the client "harbour". Register it with PUT /notifications, then send again.` {
		t.Errorf("an unregistered kind: %v", err)
	}
	_, err = c.Send(t.Context(), v1.ToEmail, v1.Message{To: "nobody", Subject: "a\nb", Text: "x"}, "")
	if f := fault.From(err); f.Kind != fault.KindUnprocessable || len(f.Details) != 2 {
		t.Errorf("two mistakes: %+v", f)
	}
	err = c.Call(t.Context(), http.MethodDelete, v1.TemplatePath(made.ID), nil, nil)
	if !fault.Is(err, fault.KindConflict) {
		t.Errorf("a template in use: %v", err)
	}
	ask(http.MethodDelete, v1.KindPath("harbour", "storm"), nil, nil)

	own := &v1.Client{URL: w.url, HTTP: w.http, Token: uaa.Static(w.login("ann"))}
	off := false
	must(t, own.Call(t.Context(), http.MethodPatch, v1.MyPreferences, v1.Preferences{GlobalUnsubscribe: &off, Clients: map[string]map[string]v1.Preference{"harbour": {"tides": {Email: false}}}}, nil))
	var p v1.Preferences
	must(t, own.Call(t.Context(), http.MethodGet, v1.MyPreferences, nil, &p))
	if got := p.Clients["harbour"]["tides"]; p.GlobalUnsubscribe == nil || *p.GlobalUnsubscribe || got.Email || got.Kind != "Water" || got.Source != "The harbour office" {
		t.Errorf("preferences: %+v", p)
	}
}

// followed waits until nobody's mail is on the way any more.
func (w *world) followed(c *v1.Client, id string) v1.Status {
	w.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		var s v1.Status
		must(w.t, c.Call(w.t.Context(), http.MethodGet, v1.MessagePath(id), nil, &s))
		if s.Status != v1.Queued {
			return s
		}
	}
	w.t.Fatalf("the message is still queued after 30 s\n%s", w.log)
	return v1.Status{}
}
