package main_test

import (
	"net/http"
	"net/url"
	"slices"
	"testing"
)

// TestEachScopeAlone tries every call of the specification with a token that has one scope of the owner's, and no other.
func TestEachScopeAlone(t *testing.T) {
	w := newWorld(t)
	w.serve()
	all := w.client("watch", allScopes...)
	ann := w.person("ann")
	w.want(204, w.call(http.MethodPut, "/notifications", all, registration("tides", "critical.flood")))
	calls := []struct {
		name, method, path string
		body               any
		opens              []string // the scopes that suffice
	}{
		{"send", "POST", "/users/" + ann, words("tides"), []string{"notifications.write"}},
		{"send to a space", "POST", "/spaces/space-1", words("tides"), []string{"notifications.write"}},
		{"send to an organization", "POST", "/organizations/org-1", words("tides"), []string{"notifications.write"}},
		{"send to a scope", "POST", "/uaa_scopes/harbour.read", words("tides"), []string{"notifications.write"}},
		{"send to an address", "POST", "/emails", with(words("tides"), "to", "zoe@example.org"), []string{"emails.write"}},
		{"send to everyone", "POST", "/everyone", words("tides"), []string{"notifications.write"}},
		{"send a critical kind", "POST", "/users/" + ann, words("critical.flood"), []string{"critical_notifications.write"}},
		{"send a critical kind to everyone", "POST", "/everyone", words("critical.flood"), []string{"critical_notifications.write"}},
		{"register", "PUT", "/notifications", registration("winds"), []string{"notifications.manage"}},
		{"assign a template", "PUT", "/clients/watch/notifications/tides/template", map[string]string{"template": ""}, []string{"notifications.manage"}},
		{"create a template", "POST", "/templates", map[string]string{"name": "x", "text": "{{.Text}}"}, []string{"notification_templates.write"}},
		{"list templates", "GET", "/templates", nil, []string{"notification_templates.read"}},
	}
	for _, scope := range []string{"notifications.write", "notifications.manage", "notification_templates.write", "notification_templates.read", "critical_notifications.write", "emails.write"} {
		got, err := w.auth.Fetch(t.Context(), "watch", "s", url.Values{"grant_type": {"client_credentials"}, "scope": {scope}})
		must(t, err)
		for _, c := range calls {
			refusal := 403
			if scope == "notifications.write" && slices.Contains(c.opens, "critical_notifications.write") {
				refusal = 422 // to send is allowed; this kind is not
			}
			r := w.call(c.method, c.path, got.Access, c.body)
			if open := slices.Contains(c.opens, scope); open != (r.status < 300) || !open && r.status != refusal {
				t.Errorf("%s with %s alone: got %d %s", c.name, scope, r.status, r.body)
			}
		}
		// A registration as such is fine here; that its kind is critical is not.
		if r := w.call(http.MethodPut, "/notifications", got.Access, registration("critical.gale")); scope == "notifications.manage" && r.status != 422 || r.status < 300 {
			t.Errorf("register a critical kind with %s alone: got %d %s", scope, r.status, r.body)
		}
	}
}
