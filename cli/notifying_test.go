package cli

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// notifying is a notification service on the wire, with the authorization server's side of it. It refuses what the real one refuses,
// in the same words: no token, a scope that is missing, a kind that is not registered, a template that is not there or in use.
type notifying struct {
	w         *world
	scopes    []string // of the client harbour, whose secret is "mast"
	reader    bool     // ada has scim.read
	hidden    bool     // the API does not name the service
	said      []string // method, path and body of each request
	keys      []string // the Idempotency-Key of each send
	down      int      // requests that are answered with 503 first
	kinds     map[string]any
	templates map[string]map[string]any
	used      string   // the template that a kind has
	progress  []string // the states of the message, one for each look
}

const person = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"

func newNotifying() *notifying {
	return &notifying{scopes: []string{"notifications.write", "notifications.manage", "critical_notifications.write", "notification_templates.read", "notification_templates.write", "emails.write"},
		kinds: map[string]any{}, templates: map[string]map[string]any{"default": {"name": "Default template", "subject": "CF Notification: {{.Subject}}", "text": "{{.Text}}", "html": "{{.HTML}}"}},
		progress: []string{`"status":"delivered","audience_complete":true,"total":1,"queued":0,"delivered":1,"failed":0,"skipped":{}`}}
}

func (n *notifying) serve(w *world) map[string]http.HandlerFunc {
	n.w = w
	send := func(scope string) http.HandlerFunc { return n.guard(scope, n.accept) }
	return map[string]http.HandlerFunc{
		"GET /{$}": func(rw http.ResponseWriter, _ *http.Request) {
			link := map[string]string{"href": w.URL}
			links := map[string]any{"login": link, "uaa": link}
			if !n.hidden {
				links["notifications"] = link
			}
			w.say(rw, http.StatusOK, map[string]any{"links": links})
		},
		"POST /oauth/token": n.token,
		"GET /v3/users": func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("usernames") != "ann" {
				w.list(rw)
				return
			}
			w.list(rw, map[string]any{"guid": person, "username": "ann"})
		},
		"GET /Users":         n.users,
		"PUT /notifications": n.guard("notifications.manage", n.register),
		"GET /notifications": n.guard("notifications.manage", func(rw http.ResponseWriter, _ *http.Request) {
			w.say(rw, http.StatusOK, map[string]any{"harbour": map[string]any{"name": "The harbour office", "template": "t-9", "notifications": n.kinds},
				"other": map[string]any{"name": "Somebody else", "template": "default", "notifications": map[string]any{"x": map[string]any{"description": "Theirs", "template": "default", "critical": false}}}})
		}),
		"PUT /clients/{client}/notifications/{kind}/template": n.guard("notifications.manage", n.assign),
		"PUT /clients/{client}/template":                      n.guard("notifications.manage", n.assign),
		"GET /templates":                                      n.guard("notification_templates.read", n.list),
		"POST /templates":                                     n.guard("notification_templates.write", n.create),
		"GET /templates/{id}":                                 n.guard("notification_templates.read", n.withTemplate(n.show)),
		"POST /templates/{id}/preview":                        n.guard("notification_templates.read", n.withTemplate(n.preview)),
		"DELETE /templates/{id}":                              n.guard("notification_templates.write", n.withTemplate(n.remove)),
		"POST /users/{id}":                                    send("notifications.write"), "POST /spaces/{id}": send("notifications.write"), "POST /organizations/{id}": send("notifications.write"),
		"POST /everyone": send("notifications.write"), "POST /uaa_scopes/{id}": send("notifications.write"), "POST /emails": send("emails.write"),
		"GET /messages/{id}":            n.guard("notifications.write", n.message),
		"GET /messages/{id}/recipients": n.guard("notifications.write", n.recipients),
		"GET /user_preferences":         n.preferences, "PATCH /user_preferences": n.preferences,
	}
}

func (n *notifying) token(rw http.ResponseWriter, r *http.Request) {
	if r.FormValue("grant_type") != "client_credentials" {
		n.w.token(rw, r)
		return
	}
	if id, secret, _ := r.BasicAuth(); id != "harbour" || secret != "mast" {
		n.w.say(rw, http.StatusUnauthorized, map[string]string{"error": "invalid_client", "error_description": "Bad client credentials."})
		return
	}
	body := fmt.Sprintf(`{"client_id":"harbour","exp":%d}`, time.Now().Add(time.Hour).Unix())
	n.w.say(rw, http.StatusOK, map[string]any{"access_token": "e30." + base64.RawURLEncoding.EncodeToString([]byte(body)) + ".harbour", "token_type": "bearer", "expires_in": 3600})
}

// users are those at the authorization server, of whom the platform has met only ann. A token of harbour is not even meant for it without a
// scope of its own.
func (n *notifying) users(rw http.ResponseWriter, r *http.Request) {
	harbour := strings.HasSuffix(r.Header.Get("Authorization"), ".harbour")
	switch filter := r.URL.Query().Get("filter"); {
	case harbour && !slices.Contains(n.scopes, "scim.read"):
		n.w.say(rw, http.StatusUnauthorized, map[string]string{"error": "invalid_token", "error_description": "The token is meant for another service. Ask for one with a scope of this service."})
	case !harbour && !n.reader:
		n.w.say(rw, http.StatusForbidden, map[string]string{"error": "insufficient_scope", "error_description": "This needs scim.read."})
	case strings.Contains(filter, `userName eq "cid"`):
		n.w.say(rw, http.StatusOK, map[string]any{"totalResults": 1, "resources": []any{map[string]any{"id": "u-cid"}}})
	case strings.Contains(filter, `userName eq "dan"`):
		n.w.say(rw, http.StatusOK, map[string]any{"totalResults": 2, "resources": []any{map[string]any{"id": "u-dan"}, map[string]any{"id": "u-dan-2"}}})
	default:
		n.w.say(rw, http.StatusOK, map[string]any{"totalResults": 0, "resources": []any{}})
	}
}

func (n *notifying) refuse(rw http.ResponseWriter, status int, sentences ...string) {
	n.w.say(rw, status, map[string]any{"errors": sentences})
}

// guard wants the token of harbour, and the scope.
func (n *notifying) guard(scope string, next http.HandlerFunc) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		if n.down > 0 {
			n.down--
			n.refuse(rw, http.StatusServiceUnavailable, "The service cannot answer now. Try again.")
			return
		}
		switch token := r.Header.Get("Authorization"); {
		case !strings.HasPrefix(token, "bearer ") || !strings.HasSuffix(token, ".harbour"):
			n.refuse(rw, http.StatusUnauthorized, "The token is not one of this service.")
		case !slices.Contains(n.scopes, scope):
			n.refuse(rw, http.StatusForbidden, "This needs the scope "+scope+", and the token does not have it. Ask an administrator for it.")
		default:
			body, err := io.ReadAll(r.Body)
			if err != nil {
				n.w.t.Error(err)
			}
			n.said = append(n.said, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			next(rw, r)
		}
	}
}

// lately is what was said last.
func (n *notifying) lately() string { return n.said[len(n.said)-1] }

func (n *notifying) read(r *http.Request) map[string]any {
	var in map[string]any
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		n.w.t.Errorf("%s: %v", r.URL, err)
	}
	return in
}

func (n *notifying) register(rw http.ResponseWriter, r *http.Request) {
	in := n.read(r)
	for field := range in {
		if field != "source_name" && field != "notifications" {
			n.refuse(rw, http.StatusBadRequest, fmt.Sprintf("The field %q is not known here.", field))
			return
		}
	}
	kinds, _ := in["notifications"].(map[string]any)
	for id, k := range kinds {
		kind, _ := k.(map[string]any)
		if kind["critical"] == true && !slices.Contains(n.scopes, "critical_notifications.write") {
			n.refuse(rw, http.StatusUnprocessableEntity, "This kind is critical, and the token has no critical_notifications.write. Ask an administrator for that scope.")
			return
		}
		kind["template"] = "default"
		n.kinds[id] = kind
	}
	rw.WriteHeader(http.StatusNoContent)
}

func (n *notifying) accept(rw http.ResponseWriter, r *http.Request) {
	n.keys = append(n.keys, r.Header.Get("Idempotency-Key"))
	in := n.read(r)
	kind, _ := in["kind_id"].(string)
	switch {
	case kind != "" && n.kinds[kind] == nil:
		n.refuse(rw, http.StatusNotFound, fmt.Sprintf("The kind %q is not registered for the client %q. Register it with PUT /notifications, then send again.", kind, "harbour"))
	case in["subject"] == "bad":
		n.refuse(rw, http.StatusUnprocessableEntity, "subject must be one line of at most 1000 characters.", "reply_to must be one e-mail address, such as ann@example.org")
	default:
		n.w.say(rw, http.StatusOK, []any{map[string]any{"status": "queued", "recipient": "r", "notification_id": "m-1", "vcap_request_id": "v"}})
	}
}

func (n *notifying) message(rw http.ResponseWriter, r *http.Request) {
	if r.PathValue("id") != "m-1" {
		n.refuse(rw, http.StatusNotFound, fmt.Sprintf("There is no message %q of this client.", r.PathValue("id")))
		return
	}
	now := n.progress[0]
	if len(n.progress) > 1 {
		n.progress = n.progress[1:]
	}
	_, _ = io.WriteString(rw, `{"notification_id":"m-1","kind_id":"tides","audience":"everyone","recipient":"everyone","received_at":"`+time.Now().UTC().Format(time.RFC3339)+`",`+now+`}`)
}

func (n *notifying) recipients(rw http.ResponseWriter, r *http.Request) {
	q, now := r.URL.Query(), time.Now().UTC()
	failed := map[string]any{"delivery_id": "d-1", "user_guid": "u-1", "status": "failed", "attempts": 2, "changed_at": now, "reason": "mailbox unavailable",
		"unsuccessful_attempts": []any{map[string]any{"at": now, "outcome": "permanent", "code": "550 5.1.1", "reason": "mailbox unavailable"}}}
	skipped := map[string]any{"delivery_id": "d-2", "user_guid": "u-2", "status": "undeliverable", "attempts": 0, "changed_at": now, "reason": "unsubscribed_all"}
	switch {
	case q.Get("status") == "failed":
		n.w.say(rw, http.StatusOK, map[string]any{"recipients": []any{failed}})
	case q.Get("after") == "d-1":
		n.w.say(rw, http.StatusOK, map[string]any{"recipients": []any{skipped}})
	default:
		n.w.say(rw, http.StatusOK, map[string]any{"recipients": []any{failed}, "next": "d-1"})
	}
}

func (n *notifying) withTemplate(next http.HandlerFunc) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		if n.templates[r.PathValue("id")] == nil {
			n.refuse(rw, http.StatusNotFound, fmt.Sprintf("There is no template %q. List them with GET /templates.", r.PathValue("id")))
			return
		}
		next(rw, r)
	}
}

func (n *notifying) create(rw http.ResponseWriter, r *http.Request) {
	in := n.read(r)
	if text, _ := in["text"].(string); strings.Contains(text, "{{range") {
		n.refuse(rw, http.StatusUnprocessableEntity, "text: range cannot be used in a template.")
		return
	}
	n.templates["t-1"] = in
	n.w.say(rw, http.StatusCreated, map[string]string{"template-id": "t-1"})
}

func (n *notifying) list(rw http.ResponseWriter, _ *http.Request) {
	named := map[string]any{}
	for id, t := range n.templates {
		if id != "default" {
			named[id] = map[string]any{"name": t["name"]}
		}
	}
	n.w.say(rw, http.StatusOK, named)
}

func (n *notifying) show(rw http.ResponseWriter, r *http.Request) {
	n.w.say(rw, http.StatusOK, n.templates[r.PathValue("id")])
}

func (n *notifying) preview(rw http.ResponseWriter, r *http.Request) {
	in, t := n.read(r), n.templates[r.PathValue("id")]
	fill := func(part string) string {
		text, _ := t[part].(string)
		for field, placeholder := range map[string]string{"subject": "{{.Subject}}", "text": "{{.Text}}", "html": "{{.HTML}}"} {
			value, _ := in[field].(string)
			text = strings.ReplaceAll(text, placeholder, value)
		}
		return text
	}
	n.w.say(rw, http.StatusOK, map[string]string{"subject": fill("subject"), "text": fill("text"), "html": fill("html")})
}

func (n *notifying) remove(rw http.ResponseWriter, r *http.Request) {
	if id := r.PathValue("id"); id == n.used {
		n.refuse(rw, http.StatusConflict, "The template is in use. See GET /templates/"+id+"/associations, and assign another one there first.")
		return
	}
	delete(n.templates, r.PathValue("id"))
	rw.WriteHeader(http.StatusNoContent)
}

func (n *notifying) assign(rw http.ResponseWriter, r *http.Request) {
	id, _ := n.read(r)["template"].(string)
	switch {
	case n.templates[id] == nil:
		n.refuse(rw, http.StatusUnprocessableEntity, fmt.Sprintf("template: there is no template %q. List them with GET /templates.", id))
	case r.PathValue("client") != "harbour":
		n.refuse(rw, http.StatusForbidden, "The kinds belong to that client.")
	default:
		n.used = id
		rw.WriteHeader(http.StatusNoContent)
	}
}

// preferences are those of ada, who is logged in: no client's token is good here.
func (n *notifying) preferences(rw http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "bearer "+n.w.good {
		n.refuse(rw, http.StatusUnauthorized, "The token is not one of this service.")
		return
	}
	if r.Method == http.MethodPatch {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			n.w.t.Error(err)
		}
		if n.said = append(n.said, "PATCH "+string(body)); strings.Contains(string(body), "storm") {
			n.refuse(rw, http.StatusUnprocessableEntity, "clients.harbour.storm: the kind is critical, so nobody can unsubscribe from it.")
			return
		}
		rw.WriteHeader(http.StatusNoContent)
		return
	}
	n.w.say(rw, http.StatusOK, map[string]any{"global_unsubscribe": false, "clients": map[string]any{"harbour": map[string]any{
		"tides": map[string]any{"email": true, "kind_description": "High and low water", "source_description": "The harbour office"}}}})
}
