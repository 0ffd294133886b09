package api_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/proa-dev/proa/auth/api"
	"github.com/proa-dev/proa/auth/uaa"
)

// The walk of spec 1, "Authentication": an administrator creates a client with client_credentials and the five notification
// scopes, and it gets a token whose scopes are exactly those.
func TestAuthenticationWalk(t *testing.T) {
	scopes := []string{"notifications.write", "notifications.manage", "notification_templates.write", "notification_templates.read", "critical_notifications.write"}
	for name, as := range map[string]func([]string) any{
		"lists":   func(l []string) any { return l },
		"strings": func(l []string) any { return strings.Join(l, ",") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.call(http.MethodPost, "/oauth/clients", w.admin, map[string]any{"client_id": "notifier", "client_secret": "a secret / with + signs",
				"authorized_grant_types": as([]string{"client_credentials"}), "authorities": as(scopes)})
			if r.status != http.StatusCreated || strings.Contains(r.body, "a secret") {
				t.Fatalf("%d %s", r.status, r.body)
			}
			basic := w.token(w.form("/oauth/token", "notifier", "a secret / with + signs", "grant_type", "client_credentials"))
			encoded := w.token(w.form("/oauth/token", "notifier", url.QueryEscape("a secret / with + signs"), "grant_type", "client_credentials"))
			form := w.token(w.form("/oauth/token", "", "", "grant_type", "client_credentials", "client_id", "notifier", "client_secret", "a secret / with + signs"))
			for _, got := range []uaa.Token{basic, encoded, form} {
				c := w.claims(got.Access)
				if !slices.Equal(c.Scopes, scopes) || got.Scope != strings.Join(scopes, " ") {
					t.Errorf("scopes: %v and %q", c.Scopes, got.Scope)
				}
				if c.ClientID != "notifier" || c.Subject != "notifier" || c.UserID != "" || c.UserName != "" || c.ID == "" || c.Issuer != w.url || got.Refresh != "" {
					t.Errorf("claims: %+v", c)
				}
				if want := []string{"notifier", "notifications", "notification_templates", "critical_notifications"}; !slices.Equal(c.Audience, want) {
					t.Errorf("audience: %v", c.Audience)
				}
			}
			fewer := w.token(w.form("/oauth/token", "notifier", "a secret / with + signs", "grant_type", "client_credentials", "scope", "notifications.write"))
			if c := w.claims(fewer.Access); !slices.Equal(c.Scopes, []string{"notifications.write"}) {
				t.Errorf("a narrower token has %v", c.Scopes)
			}
		})
	}
}

func TestClientsAreKept(t *testing.T) {
	w := newWorld(t)
	path := "/oauth/clients/svc"
	in := uaa.Client{ID: "svc", Secret: "one", Name: "A service", Grants: uaa.List{"client_credentials"}, Authorities: uaa.List{"a.read", "a.write"}, AccessFor: 120}
	if r := w.call(http.MethodPost, "/oauth/clients", w.admin, in); r.status != 201 {
		t.Fatal(r)
	}
	if r := w.call(http.MethodPost, "/oauth/clients", w.admin, in); r.status != 409 || !strings.Contains(r.body, `"client_exists"`) {
		t.Error(r)
	}
	first := w.token(w.form("/oauth/token", "svc", "one", "grant_type", "client_credentials"))
	if first.ExpiresIn > 120 || first.ExpiresIn < 110 {
		t.Errorf("access_token_validity is not kept: %d", first.ExpiresIn)
	}
	// An update changes what it names.
	var got uaa.Client
	w.call(http.MethodPut, path, w.admin, map[string]any{"authorities": "a.read"}).json(t, &got)
	if !slices.Equal(got.Authorities, []string{"a.read"}) || got.Name != "A service" || got.AccessFor != 120 {
		t.Errorf("after the update: %+v", got)
	}
	// A second secret works beside the first until the older one is deleted.
	w.ok(w.call(http.MethodPut, path+"/secret", w.admin, uaa.SecretChange{New: "two", Mode: "ADD"}))
	for _, secret := range []string{"one", "two"} {
		w.token(w.form("/oauth/token", "svc", secret, "grant_type", "client_credentials"))
	}
	w.ok(w.call(http.MethodPut, path+"/secret", w.admin, uaa.SecretChange{Mode: "DELETE"}))
	if r := w.form("/oauth/token", "svc", "one", "grant_type", "client_credentials"); r.status != 401 {
		t.Errorf("a deleted secret still works, from the proof kept in memory: %+v", r)
	}
	w.token(w.form("/oauth/token", "svc", "two", "grant_type", "client_credentials"))
	// Replacing the secret ends the tokens that were got with it.
	w.ok(w.call(http.MethodPut, path+"/secret", w.admin, uaa.SecretChange{New: "three"}))
	if r := w.form("/introspect", "backend", "backend secret", "token", first.Access); r.body != `{"active":false}` {
		t.Errorf("a token outlived its secret: %s", r.body)
	}
	var page uaa.Page[uaa.Client]
	w.call(http.MethodGet, "/oauth/clients?filter="+url.QueryEscape(`client_id sw "s"`)+"&sortBy=client_id", w.admin, nil).json(t, &page)
	if len(page.Resources) != 2 || page.Resources[0].ID != "ssh-proxy" || page.Resources[1].ID != "svc" {
		t.Errorf("list: %+v", page)
	}
	w.ok(w.call(http.MethodDelete, path, w.admin, nil))
	if r := w.call(http.MethodGet, path, w.admin, nil); r.status != 404 {
		t.Error(r)
	}
	if r := w.form("/oauth/token", "svc", "three", "grant_type", "client_credentials"); r.status != 401 {
		t.Error(r)
	}
}

func (w *world) ok(r reply) {
	w.t.Helper()
	if r.status >= 300 {
		w.t.Fatalf("%d %s", r.status, r.body)
	}
}

func TestClientRecordsAreChecked(t *testing.T) {
	w := newWorld(t)
	for want, c := range map[string]map[string]any{
		"client_id must be":                        {"client_id": "a b"},
		"authorized_grant_types is missing":        {"client_id": "x"},
		`"magic" is not a grant`:                   {"client_id": "x", "authorized_grant_types": "magic"},
		"client_secret is missing":                 {"client_id": "x", "authorized_grant_types": "client_credentials"},
		"redirect_uri is missing":                  {"client_id": "x", "authorized_grant_types": "authorization_code"},
		"must not hold a fragment or a wildcard":   {"client_id": "x", "authorized_grant_types": "authorization_code", "redirect_uri": "https://*.example.org/"},
		"has a scheme that cannot receive a code":  {"client_id": "x", "authorized_grant_types": "authorization_code", "redirect_uri": "javascript:alert(1)"},
		"access_token_validity must be between":    {"client_id": "x", "authorized_grant_types": "password", "access_token_validity": 1 << 30},
		"scope: a scope is 1 to 255":               {"client_id": "x", "authorized_grant_types": "password", "scope": []string{"a b"}},
		"client_id must be a string, not a number": {"client_id": 7},
		"A list of names was expected":             {"client_id": "x", "scope": 7},
	} {
		r := w.call(http.MethodPost, "/oauth/clients", w.admin, c)
		if r.status != 400 || !strings.Contains(r.body, jsonText(want)) {
			t.Errorf("%v\ngot  %d %s\nwant %s", c, r.status, r.body, want)
		}
	}
}

func jsonText(s string) string {
	b, _ := json.Marshal(s)
	return strings.Trim(string(b), `"`)
}

func TestPeopleAreKept(t *testing.T) {
	w := newWorld(t)
	// As `cf create-user` sends it.
	r := w.call(http.MethodPost, "/Users", w.admin, map[string]any{"userName": "Ann", "password": "ann's password", "origin": "",
		"name": map[string]string{"familyName": "Lee", "givenName": "Ann"}, "emails": []map[string]any{{"value": "ann@example.org", "primary": true}}})
	var ann uaa.User
	r.json(t, &ann)
	if r.status != 201 || ann.ID == "" || ann.Origin != "uaa" || ann.Name.Family != "Lee" || strings.Contains(r.body, "password\":\"") {
		t.Fatalf("%d %s", r.status, r.body)
	}
	if r := w.call(http.MethodPost, "/Users", w.admin, map[string]any{"userName": "ANN", "emails": []map[string]any{{"value": "a@example.org"}}}); r.status != 409 {
		t.Errorf("the same name in other letters: %+v", r)
	}
	var page uaa.Page[uaa.User]
	w.call(http.MethodGet, "/Users?filter="+url.QueryEscape(`userName eq "ann" and origin eq "uaa"`), w.admin, nil).json(t, &page)
	if len(page.Resources) != 1 || page.Resources[0].ID != ann.ID || page.TotalResults != 1 {
		t.Errorf("found %+v", page)
	}
	path := "/Users/" + ann.ID
	// Own record: yes. Others: no.
	own := w.login("ann", "ann's password").Access
	w.ok(w.call(http.MethodGet, path, own, nil))
	if r := w.call(http.MethodGet, "/Users/"+w.claims(w.admin).UserID, own, nil); r.status != 403 {
		t.Error(r)
	}
	// A change that names a stale version is refused; one that does not name a field leaves it.
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, w.url+path, strings.NewReader(`{"emails":[{"value":"lee@example.org"}]}`))
	must(t, err)
	req.Header.Set("Authorization", "bearer "+w.admin)
	req.Header.Set("If-Match", `"7"`)
	if r := w.do(req); r.status != 412 {
		t.Error(r)
	}
	w.call(http.MethodPatch, path, w.admin, map[string]any{"emails": []map[string]string{{"value": "lee@example.org"}}}).json(t, &ann)
	if ann.Emails[0].Value != "lee@example.org" || ann.UserName != "Ann" || ann.Name.Family != "Lee" || !*ann.Active || ann.Meta.Version != 1 {
		t.Errorf("after the patch: %+v", ann)
	}
	for want, body := range map[string]map[string]any{
		"userName is missing":        {"userName": ""},
		"emails is missing":          {"emails": []string{}},
		"cannot be printed":          {"userName": "a\nb"},
		"is longer than 255":         {"userName": strings.Repeat("x", 256)},
		"id cannot be changed":       {"id": "another"},
		"active must be true or fal": {"active": "yes"},
	} {
		if r := w.call(http.MethodPut, path, w.admin, body); r.status != 400 || !strings.Contains(r.body, want) {
			t.Errorf("%v: %d %s", body, r.status, r.body)
		}
	}
	// Passwords: the present one is needed, and the new one is held against the rules.
	change := func(token, old, new string) reply {
		return w.call(http.MethodPut, path+"/password", token, uaa.PasswordChange{Old: old, New: new})
	}
	if r := change(own, "guess", "a new password"); r.status != 401 {
		t.Error(r)
	}
	if r := change(own, "ann's password", "short"); r.status != 422 || !strings.Contains(r.body, `"invalid_password"`) {
		t.Error(r)
	}
	w.ok(change(own, "ann's password", "a new password"))
	w.login("ann", "a new password")
	w.ok(w.call(http.MethodDelete, path, w.admin, nil))
	if r := w.call(http.MethodGet, path, w.admin, nil); r.status != 404 {
		t.Error(r)
	}
}

func TestGroupsAreScopes(t *testing.T) {
	w := newWorld(t)
	id := w.person("ann", "ann's password")
	has := func(scope string) bool {
		return slices.Contains(w.claims(w.login("ann", "ann's password").Access).Scopes, scope)
	}
	readers := w.group("scim.read")
	if has("scim.read") || !has("openid") {
		t.Fatal("a new person holds everyone's scopes and no other")
	}
	w.ok(w.call(http.MethodPost, "/Groups/"+readers+"/members", w.admin, uaa.Member{Value: id, Type: "USER"}))
	w.ok(w.call(http.MethodPost, "/Groups/"+readers+"/members", w.admin, uaa.Member{Value: id}))
	before := w.login("ann", "ann's password")
	if !has("scim.read") {
		t.Error("a member does not hold the scope")
	}
	var g uaa.Group
	w.call(http.MethodGet, "/Groups/"+readers, w.admin, nil).json(t, &g)
	if len(*g.Members) != 2 || g.Name != "scim.read" {
		t.Errorf("group: %+v", g)
	}
	w.ok(w.call(http.MethodDelete, "/Groups/"+readers+"/members/"+id, w.admin, nil))
	if after := w.token(w.refresh(before.Refresh)); slices.Contains(w.claims(after.Access).Scopes, "scim.read") {
		t.Error("a refresh brings back a scope that was taken away")
	}
	if r := w.call(http.MethodDelete, "/Groups/"+readers+"/members/"+id, w.admin, nil); r.status != 404 {
		t.Error(r)
	}
	// Made, renamed, filled, deleted.
	r := w.call(http.MethodPost, "/Groups", w.admin, map[string]any{"displayName": "billing.read", "members": []uaa.Member{{Value: id}}})
	r.json(t, &g)
	if r.status != 201 || len(*g.Members) != 1 {
		t.Fatal(r)
	}
	if r := w.call(http.MethodPost, "/Groups", w.admin, map[string]any{"displayName": "billing.read"}); r.status != 409 {
		t.Error(r)
	}
	w.call(http.MethodPut, "/Groups/"+g.ID, w.admin, map[string]any{"description": "Bills", "members": []uaa.Member{}}).json(t, &g)
	if g.Name != "billing.read" || g.Description != "Bills" || len(*g.Members) != 0 {
		t.Errorf("after the update: %+v", g)
	}
	if r := w.call(http.MethodPost, "/Groups/"+g.ID+"/members", w.admin, uaa.Member{Value: "nobody"}); r.status != 400 {
		t.Error(r)
	}
	if r := w.call(http.MethodPost, "/Groups/"+g.ID+"/members", w.admin, uaa.Member{Value: readers, Type: "GROUP"}); r.status != 400 {
		t.Error(r)
	}
	w.ok(w.call(http.MethodDelete, "/Groups/"+g.ID, w.admin, nil))
}

// Nobody hands out, or takes over, a power that they do not hold.
func TestPowersAreNotHandedOn(t *testing.T) {
	w := newWorld(t)
	w.ok(w.call(http.MethodPost, "/oauth/clients", w.admin, uaa.Client{ID: "helper", Secret: "s", Grants: uaa.List{"client_credentials"},
		Authorities: uaa.List{"clients.write", "clients.read", "scim.write", "scim.read", "password.write", "clients.secret"}}))
	helper := w.token(w.form("/oauth/token", "helper", "s", "grant_type", "client_credentials")).Access
	admin, ann := w.claims(w.admin).UserID, w.person("ann", "ann's password")
	for name, r := range map[string]reply{
		"a client with a greater authority": w.call(http.MethodPost, "/oauth/clients", helper, uaa.Client{ID: "evil", Secret: "s", Grants: uaa.List{"client_credentials"}, Authorities: uaa.List{"uaa.admin"}}),
		"a greater authority for itself":    w.call(http.MethodPut, "/oauth/clients/helper", helper, map[string]any{"authorities": "uaa.admin,clients.write"}),
		"a client that can be given more":   w.call(http.MethodPut, "/oauth/clients/cf", helper, map[string]any{"redirect_uri": "https://evil.example.org/", "autoapprove": true}),
		"the end of one that can be":        w.call(http.MethodDelete, "/oauth/clients/cf", helper, nil),
		"a greater client's redirect":       w.call(http.MethodPut, "/oauth/clients/backend", helper, map[string]any{"redirect_uri": "https://evil.example.org/"}),
		"a greater client's end":            w.call(http.MethodDelete, "/oauth/clients/backend", helper, nil),
		"a client's secret by another":      w.call(http.MethodPut, "/oauth/clients/ssh-proxy/secret", helper, uaa.SecretChange{New: "mine"}),
		"membership in uaa.admin":           w.call(http.MethodPost, "/Groups/"+w.group("uaa.admin")+"/members", helper, uaa.Member{Value: ann}),
		"everyone an administrator":         w.call(http.MethodPut, "/Groups/"+w.group("uaa.admin"), helper, map[string]any{"everyone": true}),
		"the administrator's password":      w.call(http.MethodPut, "/Users/"+admin+"/password", helper, uaa.PasswordChange{New: "now it is mine"}),
		"the administrator's end":           w.call(http.MethodDelete, "/Users/"+admin, helper, nil),
		"a group renamed to uaa.admin":      w.call(http.MethodPut, "/Groups/"+w.group("cloud_controller.read"), helper, map[string]any{"displayName": "clients.admin"}),
	} {
		if r.status != 403 {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	w.ok(w.call(http.MethodPut, "/Users/"+ann+"/password", helper, uaa.PasswordChange{New: "forgotten, so reset"}))
}

func TestListsAreFilteredSortedAndWalked(t *testing.T) {
	w := newWorld(t)
	for i := range 25 {
		w.person(fmt.Sprintf("user-%02d", i), "")
	}
	list := func(query string) uaa.Page[uaa.User] {
		t.Helper()
		var p uaa.Page[uaa.User]
		r := w.call(http.MethodGet, "/Users?"+query, w.admin, nil)
		if r.status != 200 {
			t.Fatalf("%s: %d %s", query, r.status, r.body)
		}
		r.json(t, &p)
		return p
	}
	names := func(p uaa.Page[uaa.User]) (list []string) {
		for _, u := range p.Resources {
			list = append(list, u.UserName)
		}
		return list
	}
	filter := func(f string) string { return "filter=" + url.QueryEscape(f) }
	for f, want := range map[string]int{
		`userName eq "USER-03"`: 1, `userName sw "user-1"`: 10, `userName co "ER-2"`: 5, `userName gt "user-20"`: 4, `userName lt "user-02"`: 3,
		`userName sw "user-0" and userName gt "user-05"`: 4, `userName eq "user-01" or userName eq "user-02"`: 2,
		`(userName eq "user-01" or userName eq "admin") and email co "example"`: 2, `active eq true`: 26, `active eq false`: 0,
		`meta.created gt "2020-01-01T00:00:00Z"`: 26, `userName sw "user_"`: 0, `userName co "%"`: 0,
		`groups.display eq "uaa.admin"`: 1, `groups.display eq "openid"`: 26, `userName eq "x\" or 1=1 --"`: 0,
	} {
		if got := list(filter(f) + "&count=100"); len(got.Resources) != want || got.TotalResults != want {
			t.Errorf("%s: %d of %d, want %d", f, len(got.Resources), got.TotalResults, want)
		}
	}
	page := list("sortBy=userName&sortOrder=descending&startIndex=3&count=4")
	if want := []string{"user-22", "user-21", "user-20", "user-19"}; !reflect.DeepEqual(names(page), want) || page.TotalResults != 26 || page.StartIndex != 3 || page.ItemsPerPage != 4 {
		t.Errorf("sorted page: %v %+v", names(page), page)
	}
	if page := list("count=0"); page.TotalResults != 26 || len(page.Resources) != 0 {
		t.Errorf("count=0: %+v", page)
	}
	if page := list("startIndex=100"); page.TotalResults != 26 || len(page.Resources) != 0 {
		t.Errorf("beyond the end: %+v", page)
	}
	conn := &uaa.Conn{URL: w.url, HTTP: http.DefaultClient, Token: uaa.Static(w.admin)}
	seen := map[string]bool{}
	last := ""
	for u, err := range conn.Users(t.Context(), "", 7) {
		must(t, err)
		if seen[u.ID] || u.ID <= last {
			t.Fatalf("the walk went back at %s", u.ID)
		}
		seen[u.ID], last = true, u.ID
	}
	if len(seen) != 26 {
		t.Errorf("the walk saw %d people", len(seen))
	}
	if page := list("attributes=id,emails&count=1"); page.Resources[0].ID == "" || len(page.Resources[0].Emails) != 1 || page.Resources[0].UserName != "" || page.Resources[0].Groups != nil {
		t.Errorf("attributes=id,emails: %+v", page.Resources[0])
	}
	walked := 0
	for u, err := range conn.Users(t.Context(), `groups.display eq "scim.write" or userName sw "user-2"`, 2) {
		must(t, err)
		walked++
		_ = u
	}
	if walked != 6 {
		t.Errorf("the filtered walk saw %d people", walked)
	}
	for bad, want := range map[string]string{
		"filter=nothing": "", "sortBy=password": "sortBy", "count=many": "count must be", filter(`password eq "x"`): "password", filter(`active gt true`): "",
		filter(`meta.created gt "yesterday"`): "2026-01-31", filter(`active eq "x"`): "eq true or eq false",
	} {
		if r := w.call(http.MethodGet, "/Users?"+bad, w.admin, nil); r.status != 400 || !strings.Contains(r.body, want) {
			t.Errorf("%s: %d %s", bad, r.status, r.body)
		}
	}
}

func TestAuditTrailNamesActorAndTarget(t *testing.T) {
	w := newWorld(t)
	id := w.person("ann", "ann's password")
	w.ok(w.call(http.MethodPut, "/Users/"+id+"/password", w.admin, uaa.PasswordChange{New: "another password"}))
	var trail struct {
		Resources []struct {
			Action string
			Target string
			Actor  struct{ Name string }
			Detail map[string]any
		}
	}
	r := w.call(http.MethodGet, "/audit_events?target="+id, w.admin, nil)
	r.json(t, &trail)
	if len(trail.Resources) != 2 || trail.Resources[0].Action != "user.password" || trail.Resources[1].Action != "user.create" || trail.Resources[0].Actor.Name != "admin" {
		t.Errorf("%s", r.body)
	}
	if r := w.call(http.MethodGet, "/audit_events", w.login("ann", "another password").Access, nil); r.status != 403 {
		t.Error(r)
	}
}

func TestNoSecretIsLogged(t *testing.T) {
	w := newWorld(t)
	id := w.person("ann", "ann's own password")
	got := w.login("ann", "ann's own password")
	next := w.token(w.refresh(got.Refresh))
	w.refresh(got.Refresh)
	code := w.sshCode(w.admin)
	w.exchange("ssh-proxy", "ssh secret", code)
	w.exchange("ssh-proxy", "ssh secret", code)
	w.form("/oauth/token", "backend", "a wrong secret", "grant_type", "client_credentials")
	w.form("/oauth/token", "cf", "", "grant_type", "password", "username", "ann", "password", "a wrong password")
	w.call(http.MethodPut, "/Users/"+id+"/password", w.admin, uaa.PasswordChange{New: "a brand new password"})
	w.call(http.MethodPost, "/oauth/clients", w.admin, uaa.Client{ID: "x", Secret: "a client secret", Grants: uaa.List{"client_credentials"}})
	appCode := w.appCode()
	log := w.log.String()
	if strings.Count(log, "\n") < 15 {
		t.Fatalf("the log is too short to prove anything: %s", log)
	}
	for _, secret := range []string{"ann's own password", got.Access, got.Refresh, next.Access, next.Refresh, code, appCode, "ssh secret", "a wrong secret", "a wrong password",
		"a brand new password", "a client secret", w.admin, adminPassword, strings.Split(w.admin, ".")[2]} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
	events := w.call(http.MethodGet, "/audit_events?count=500", w.admin, nil).body
	if strings.Contains(events, "a client secret") || strings.Contains(events, "a brand new password") || strings.Contains(events, "argon2") {
		t.Error("the audit trail holds a secret")
	}
}

func TestRevocation(t *testing.T) {
	w := newWorld(t)
	active := func(raw string) bool {
		return strings.HasPrefix(w.form("/introspect", "backend", "backend secret", "token", raw).body, `{"active":true`)
	}
	// As `cf logout`: the refresh token's jti ends the whole login.
	got := w.login("admin", adminPassword)
	if !w.claims(got.Access).Revocable {
		t.Error("cf logout revokes only tokens that say revocable")
	}
	w.ok(w.call(http.MethodDelete, "/oauth/token/revoke/"+w.claims(got.Refresh).ID, got.Access, nil))
	if active(got.Access) || w.refresh(got.Refresh).status != 401 {
		t.Error("the login outlived its end")
	}
	if !active(w.admin) {
		t.Error("another login of the same person must live on")
	}
	// RFC 7009, by the client that holds it; a strange token is no fault.
	got = w.login("admin", adminPassword)
	w.ok(w.form("/oauth/revoke", "cf", "", "token", got.Refresh))
	if active(got.Access) {
		t.Error("revoking the refresh token must end the login")
	}
	w.ok(w.form("/oauth/revoke", "cf", "", "token", "made-up"))
	own := w.token(w.form("/oauth/token", "backend", "backend secret", "grant_type", "client_credentials"))
	w.ok(w.form("/oauth/revoke", "backend", "backend secret", "token", own.Access))
	if active(own.Access) {
		t.Error("a client's own token outlived its end")
	}
	// Nobody ends another's login.
	w.person("ann", "ann's password")
	ann := w.login("ann", "ann's password")
	if r := w.call(http.MethodDelete, "/oauth/token/revoke/"+w.claims(w.admin).ID, ann.Access, nil); r.status != 404 || !active(w.admin) {
		t.Error(r)
	}
	if r := w.form("/oauth/revoke", "backend", "backend secret", "token", ann.Refresh); r.status != 400 || !active(ann.Access) {
		t.Errorf("another client's token: %+v", r)
	}
	// An administrator ends all of a person's.
	w.ok(w.call(http.MethodDelete, "/oauth/token/revoke/user/"+w.claims(ann.Access).UserID, w.admin, nil))
	if active(ann.Access) || w.refresh(ann.Refresh).status != 401 {
		t.Error("a person's tokens outlived their end")
	}
	w.login("ann", "ann's password")
}

func TestTokenReplyIsWhatTheCommandLineReads(t *testing.T) {
	w := newWorld(t)
	first := w.login("admin", adminPassword)
	next := w.token(w.refresh(first.Refresh))
	if next.Type != "bearer" || next.Refresh == "" || next.Refresh == first.Refresh {
		t.Errorf("%+v", next)
	}
	for _, raw := range []string{first.Refresh, next.Refresh} {
		if len(strings.Split(raw, ".")) != 3 || w.claims(raw).ID == "" {
			t.Errorf("a refresh token must look like a JWT with a jti: %s", raw)
		}
	}
	var info struct {
		App     struct{ Version string }
		Prompts map[string][]string
	}
	w.call(http.MethodGet, "/login", "", nil).json(t, &info)
	if info.App.Version == "" || len(info.Prompts["username"]) != 2 || len(info.Prompts["password"]) != 2 || len(info.Prompts["passcode"]) != 2 {
		t.Errorf("%+v", info)
	}
}

// Each grant issues once: fosite asks every one of them, and only the one that was asked for may answer.
func TestAGrantIssuesOnce(t *testing.T) {
	w := newWorld(t)
	w.ok(w.call(http.MethodPost, "/oauth/clients", w.admin, uaa.Client{ID: "both", Secret: "s", Grants: uaa.List{"client_credentials", "refresh_token"}, Authorities: uaa.List{"a.b"}}))
	if got := w.token(w.form("/oauth/token", "both", "s", "grant_type", "client_credentials")); got.Refresh != "" || w.claims(got.Access).ID != got.JTI {
		t.Errorf("a client's own token: %+v", got)
	}
	got := w.token(w.exchange("app", "", w.appCode(), "redirect_uri", "https://app.example.org/callback", "code_verifier", verifier))
	sum := sha256.Sum256([]byte(got.Access))
	if want := `"at_hash":"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`; !strings.Contains(decode(t, got.ID), want) {
		t.Errorf("the id token is about another access token: %s", decode(t, got.ID))
	}
	if w.claims(got.Access).ID != got.JTI {
		t.Error("the reply's jti is another token's")
	}
}

// A route names the scopes that open it, or says why it is open. The list comes from the table itself, so a new route is held
// against this too.
func TestEveryRouteIsGuarded(t *testing.T) {
	w := newWorld(t)
	w.person("ann", "ann's password")
	nothing := w.token(w.form("/oauth/token", "cf", "", "grant_type", "password", "username", "ann", "password", "ann's password", "scope", "openid")).Access
	guarded := 0
	for _, r := range api.Routes() {
		if r.Open {
			continue
		}
		guarded++
		method, path, _ := strings.Cut(r.Pattern, " ")
		path = strings.NewReplacer("{id}", "x", "{user}", "y").Replace(path)
		if got := w.call(method, path, "", nil); got.status != 401 || !strings.Contains(got.header.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("%s without a token: %d", r.Pattern, got.status)
		}
		if path == "/userinfo" {
			continue // openid opens it
		}
		if got := w.call(method, path, nothing, nil); got.status != 403 || !strings.Contains(got.body, "insufficient_scope") {
			t.Errorf("%s with a good token that has not its scope: %d %s", r.Pattern, got.status, got.body)
		}
	}
	if guarded < 25 {
		t.Errorf("only %d routes are guarded", guarded)
	}
}
