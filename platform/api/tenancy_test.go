package api_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/proa-dev/proa/kit/token"
	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

const unprocessable = "CF-UnprocessableEntity"

func TestRoot(t *testing.T) {
	w := newWorld(t)
	want := `{"links":{"app_ssh":null,"cloud_controller_v2":null,"cloud_controller_v3":{"href":"URL/v3","meta":{"version":"3.211.0"}},"credhub":null,` +
		`"log_cache":{"href":"URL"},"log_stream":{"href":"URL"},"logging":null,"login":{"href":"http://auth.test"},"network_policy_v0":null,"network_policy_v1":null,` +
		`"routing":null,"self":{"href":"URL"},"uaa":{"href":"http://auth.test"}}}`
	if got := w.call(http.MethodGet, "/", "", nil); got.status != 200 || got.body != strings.ReplaceAll(want, "URL", w.url) {
		t.Errorf("got %d %s", got.status, got.body)
	}
	w.refused(w.call(http.MethodGet, "/v3/nothing", w.admin, nil), 404, 10000, "CF-NotFound", "Unknown request")
	w.refused(w.call(http.MethodPut, "/v3/organizations", w.admin, nil), 404, 10000, "CF-NotFound", "Unknown request")
}

func TestTokens(t *testing.T) {
	w := newWorld(t)
	w.refused(w.call(http.MethodGet, "/v3/organizations", "", nil), 401, 10002, "CF-NotAuthenticated", token.ErrMissing.Detail)
	w.refused(w.call(http.MethodGet, "/v3/organizations", "x.y.z", nil), 401, 1000, "CF-InvalidAuthToken", "The token is not a JWT that can be read. Get a new one and try again.")
	const lacks = "Your token lacks the necessary scopes to access this resource."
	reader := w.signed(token.Claims{UserID: "r", UserName: "r", Origin: "uaa", ClientID: "cf", Scopes: []string{platform.ScopeRead}})
	w.refused(w.call(http.MethodPost, "/v3/organizations", reader, object{"name": "x"}), 403, 10007, "CF-InsufficientScope", lacks)
	stranger := w.signed(token.Claims{UserID: "r", UserName: "r", Origin: "uaa", ClientID: "cf", Scopes: []string{"openid"}})
	w.refused(w.call(http.MethodGet, "/v3/organizations", stranger, nil), 403, 10007, "CF-InsufficientScope", lacks)
	// A client that acts for itself is known by its id, and may hold roles.
	robot := w.signed(token.Claims{ClientID: "robot", Scopes: []string{platform.ScopeRead}})
	org := w.org("o")
	w.refused(w.call(http.MethodGet, "/v3/organizations/"+org.GUID, robot, nil), 404, 10010, "CF-ResourceNotFound", "Organization not found")
	do[v3.Role](w, 201, http.MethodPost, "/v3/roles", w.admin, object{"type": "organization_user", "relationships": object{"organization": to(org.GUID), "user": to("robot")}})
	do[v3.Organization](w, 200, http.MethodGet, "/v3/organizations/"+org.GUID, robot, nil)
	if u := do[v3.User](w, 200, http.MethodGet, "/v3/users/robot", robot, nil); u.Username != nil || u.Origin != nil || u.PresentationName != "robot" {
		t.Errorf("the client is shown as %+v", u)
	}
}

func TestOrganizations(t *testing.T) {
	w := newWorld(t)
	org := do[v3.Organization](w, 201, http.MethodPost, "/v3/organizations", w.admin, object{"name": "sea", "suspended": false, "metadata": object{"labels": object{"deep": "very"}}})
	if org.Name != "sea" || org.Suspended || org.Metadata.Labels["deep"] != "very" || org.Relationships["quota"].GUID() != platform.DefaultQuota.GUID {
		t.Errorf("created %+v", org)
	}
	path := "/v3/organizations/" + org.GUID
	w.refused(w.call(http.MethodPost, "/v3/organizations", w.admin, object{"name": "sea"}), 422, 10008, unprocessable, "Organization 'sea' already exists.")
	w.refused(w.call(http.MethodPost, "/v3/organizations", w.admin, object{"name": ""}), 422, 10008, unprocessable, "Name can't be blank")
	w.refused(w.call(http.MethodPost, "/v3/organizations", w.admin, object{"name": "x", "colour": "blue"}), 422, 10008, unprocessable, "Unknown field(s): 'colour'")
	w.refused(w.call(http.MethodPost, "/v3/organizations", w.admin, object{"name": 7}), 422, 10008, unprocessable, "name must be a string, not a number.")
	w.refused(w.call(http.MethodPost, "/v3/organizations", w.admin, "{"), 400, 1001, "CF-MessageParseError", "Request invalid due to parse error: invalid request body")
	w.refused(w.call(http.MethodPost, "/v3/organizations", w.token("ann"), object{"name": "x"}), 403, 10003, "CF-NotAuthorized", "You are not authorized to perform the requested action")
	w.refused(w.call(http.MethodGet, "/v3/organizations/nope", w.admin, nil), 404, 10010, "CF-ResourceNotFound", "Organization not found")

	changed := do[v3.Organization](w, 200, http.MethodPatch, path, w.admin, object{"name": "ocean", "metadata": object{"labels": object{"deep": nil, "salt": "yes"}, "annotations": object{"note": "big, and blue"}}})
	if changed.Name != "ocean" || len(changed.Metadata.Labels) != 1 || changed.Metadata.Labels["salt"] != "yes" || changed.Metadata.Annotations["note"] != "big, and blue" {
		t.Errorf("changed to %+v", changed)
	}
	w.refused(w.call(http.MethodPatch, path, w.admin, object{"metadata": object{"labels": object{"cloudfoundry.org/x": "y"}}}), 422, 10008, unprocessable,
		"Metadata label key error: prefix 'cloudfoundry.org' is reserved")

	// Only administrators suspend, and in a suspended organization only they change anything.
	w.give("boss", platform.OrgManager, org, v3.Space{})
	boss := w.token("boss")
	w.refused(w.call(http.MethodPatch, path, boss, object{"suspended": true}), 403, 10003, "CF-NotAuthorized", "You are not authorized to perform the requested action")
	do[v3.Organization](w, 200, http.MethodPatch, path, w.admin, object{"suspended": true})
	w.refused(w.call(http.MethodPatch, path, boss, object{"name": "pond"}), 403, 10017, "CF-OrgSuspended", "The organization is suspended")
	do[v3.Organization](w, 200, http.MethodGet, path, boss, nil)

	// With the flag, everybody makes organizations and manages them.
	do[v3.FeatureFlag](w, 200, http.MethodPatch, "/v3/feature_flags/user_org_creation", w.admin, object{"enabled": true})
	own := do[v3.Organization](w, 201, http.MethodPost, "/v3/organizations", w.token("ann"), object{"name": "lake"})
	do[v3.Organization](w, 200, http.MethodPatch, "/v3/organizations/"+own.GUID, w.token("ann"), object{"name": "pool"})

	w.deleted(path, w.admin)
	w.refused(w.call(http.MethodGet, path, w.admin, nil), 404, 10010, "CF-ResourceNotFound", "Organization not found")
}

func TestSpaces(t *testing.T) {
	w := newWorld(t)
	org := w.org("o")
	space := w.space(org, "dev")
	if space.Relationships["organization"].GUID() != org.GUID {
		t.Errorf("created %+v", space)
	}
	in := func(guid string) object {
		return object{"name": "dev", "relationships": object{"organization": to(guid)}}
	}
	w.refused(w.call(http.MethodPost, "/v3/spaces", w.admin, in(org.GUID)), 422, 10008, unprocessable, "Name must be unique per organization")
	w.refused(w.call(http.MethodPost, "/v3/spaces", w.admin, in("nope")), 422, 10008, unprocessable, "Invalid organization. Ensure that the organization exists and you have access to it.")
	w.space(w.org("p"), "dev") // the same name elsewhere

	list := do[v3.List[v3.Space]](w, 200, http.MethodGet, "/v3/spaces?names=dev&organization_guids="+org.GUID+"&per_page=1&page=1&include=organization", w.admin, nil)
	if len(list.Resources) != 1 || list.Resources[0].GUID != space.GUID || len(list.Included.Organizations) != 1 || list.Included.Organizations[0].GUID != org.GUID {
		t.Errorf("listed %+v", list)
	}
	path := "/v3/spaces/" + space.GUID
	if f := do[v3.Feature](w, 200, http.MethodPatch, path+"/features/ssh", w.admin, object{"enabled": false}); f.Enabled || f.Name != "ssh" {
		t.Errorf("set %+v", f)
	}
	if f := do[v3.Feature](w, 200, http.MethodGet, path+"/features/ssh", w.admin, nil); f.Enabled {
		t.Errorf("got %+v", f)
	}
	w.refused(w.call(http.MethodGet, path+"/features/telnet", w.admin, nil), 404, 10010, "CF-ResourceNotFound", "Feature not found")
	if got := w.call(http.MethodGet, path+"/relationships/isolation_segment", w.admin, nil); got.body != `{"data":null}` {
		t.Errorf("got %s", got.body)
	}
	w.deleted(path, w.admin)
	w.refused(w.call(http.MethodGet, path, w.admin, nil), 404, 10010, "CF-ResourceNotFound", "Space not found")
}

func TestRoles(t *testing.T) {
	w := newWorld(t)
	org := w.org("o")
	space := w.space(org, "s")
	ask := func(kind string, place, user object) reply {
		rel := object{"user": object{"data": user}}
		for k, v := range place {
			rel[k] = v
		}
		return w.call(http.MethodPost, "/v3/roles", w.admin, object{"type": kind, "relationships": rel})
	}
	inOrg, inSpace := object{"organization": to(org.GUID)}, object{"space": to(space.GUID)}
	ann := object{"username": "ann", "origin": "uaa"}
	w.refused(ask("space_developer", inSpace, ann), 422, 10008, unprocessable, "Users cannot be assigned roles in a space if they do not have a role in that space's organization.")
	if got := ask("organization_user", inOrg, ann); got.status != 201 {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	w.refused(ask("organization_user", inOrg, ann), 422, 10008, unprocessable, "User 'ann' already has 'organization_user' role in organization 'o'.")
	if got := ask("space_developer", inSpace, object{"username": "ann"}); got.status != 201 {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	w.refused(ask("space_developer", inSpace, object{"guid": "guid-of-ann"}), 422, 10008, unprocessable, "User 'ann' already has 'space_developer' role in space 's'.")
	w.refused(ask("organization_user", inOrg, object{"username": "eve"}), 422, 10008, unprocessable, "No user exists with the username 'eve'.")
	w.refused(ask("organization_user", inOrg, object{"username": "eve", "origin": "uaa"}), 422, 10008, unprocessable, "No user exists with the username 'eve' and origin 'uaa'.")
	w.refused(ask("organization_user", inOrg, object{"username": "bob"}), 422, 10008, unprocessable, "User with username 'bob' exists in the following origins: uaa, ldap. Specify an origin to disambiguate.")
	w.refused(ask("organization_user", inOrg, object{"guid": "nope"}), 422, 10008, unprocessable, "Invalid user. Ensure that the user exists and you have access to it.")
	w.refused(ask("organization_user", object{"organization": to("nope")}, ann), 422, 10008, unprocessable, "Invalid organization. Ensure that the organization exists and you have access to it.")
	w.refused(ask("captain", inOrg, ann), 422, 10008, unprocessable, "Type must be one of the allowed types organization_user, organization_auditor, organization_manager, "+
		"organization_billing_manager, space_auditor, space_developer, space_manager, space_supporter")
	w.refused(ask("space_developer", inOrg, ann), 422, 10008, unprocessable, "Role with type 'space_developer' cannot be associated with an organization.")

	list := do[v3.List[v3.Role]](w, 200, http.MethodGet, "/v3/roles?space_guids="+space.GUID+"&include=user,space", w.admin, nil)
	if len(list.Resources) != 1 || list.Resources[0].Type != "space_developer" || len(list.Included.Users) != 1 || *list.Included.Users[0].Username != "ann" || len(list.Included.Spaces) != 1 {
		t.Errorf("listed %+v", list)
	}
	orgRoles := do[v3.List[v3.Role]](w, 200, http.MethodGet, "/v3/roles?organization_guids="+org.GUID+"&types=organization_user", w.admin, nil)
	if len(orgRoles.Resources) != 1 {
		t.Fatalf("listed %+v", orgRoles)
	}
	w.refused(w.call(http.MethodDelete, "/v3/roles/"+orgRoles.Resources[0].GUID, w.admin, nil), 422, 10008, unprocessable,
		"Cannot delete organization_user role while user has roles in spaces in that organization.")
	w.deleted("/v3/roles/"+list.Resources[0].GUID, w.admin)
	w.deleted("/v3/roles/"+orgRoles.Resources[0].GUID, w.admin)
	w.refused(w.call(http.MethodGet, "/v3/roles?include=cat", w.admin, nil), 400, 10005, "CF-BadQueryParameter",
		"The query parameter is invalid: Invalid included resource: 'cat'. Valid included resources are: 'user', 'space', 'organization'")
}

func TestUsers(t *testing.T) {
	w := newWorld(t)
	u := do[v3.User](w, 201, http.MethodPost, "/v3/users", w.admin, object{"guid": "guid-of-ann"})
	if *u.Username != "ann" || *u.Origin != "uaa" || u.PresentationName != "ann" {
		t.Errorf("created %+v", u)
	}
	w.refused(w.call(http.MethodPost, "/v3/users", w.admin, object{"guid": "guid-of-ann"}), 422, 10008, unprocessable, "User with guid 'guid-of-ann' already exists.")
	w.refused(w.call(http.MethodGet, "/v3/users/guid-of-ann", w.token("bea"), nil), 404, 10010, "CF-ResourceNotFound", "User not found")
	if list := do[v3.List[v3.User]](w, 200, http.MethodGet, "/v3/users", w.token("bea"), nil); len(list.Resources) != 1 || list.Resources[0].GUID != "bea-guid" {
		t.Errorf("somebody without roles sees %+v", list.Resources)
	}
	if list := do[v3.List[v3.User]](w, 200, http.MethodGet, "/v3/users?usernames=ann", w.admin, nil); len(list.Resources) != 1 {
		t.Errorf("listed %+v", list)
	}
	w.deleted("/v3/users/guid-of-ann", w.admin)
}

func TestDomainsStacksAndBuildpacks(t *testing.T) {
	w := newWorld(t)
	ann := w.token("ann")
	domains := do[v3.List[v3.Domain]](w, 200, http.MethodGet, "/v3/domains?names=apps.example.org&per_page=1&page=1", ann, nil)
	if len(domains.Resources) != 1 || domains.Resources[0].RouterGroup != nil || !slices.Equal(domains.Resources[0].SupportedProtocols, []string{"http"}) {
		t.Fatalf("listed %+v", domains)
	}
	do[v3.Domain](w, 200, http.MethodGet, "/v3/domains/"+domains.Resources[0].GUID, ann, nil)
	org := w.org("o")
	if d := do[v3.Domain](w, 200, http.MethodGet, "/v3/organizations/"+org.GUID+"/domains/default", w.admin, nil); d.GUID != domains.Resources[0].GUID {
		t.Errorf("the default domain is %+v", d)
	}
	if list := do[v3.List[v3.Domain]](w, 200, http.MethodGet, "/v3/organizations/"+org.GUID+"/domains", w.admin, nil); len(list.Resources) != 1 {
		t.Errorf("listed %+v", list)
	}
	if list := do[v3.List[v3.Stack]](w, 200, http.MethodGet, "/v3/stacks?names=proa", ann, nil); len(list.Resources) != 1 || list.Resources[0].CreatedAt == (v3.Time{}) {
		t.Errorf("listed %+v", list)
	}
	if list := do[v3.List[v3.Buildpack]](w, 200, http.MethodGet, "/v3/buildpacks", ann, nil); len(list.Resources) != 2 || list.Resources[1].Position != 2 {
		t.Errorf("listed %+v", list)
	}
}

func TestFlags(t *testing.T) {
	w := newWorld(t)
	if f := do[v3.FeatureFlag](w, 200, http.MethodGet, "/v3/feature_flags/service_instance_sharing", w.token("ann"), nil); f.Enabled {
		t.Errorf("got %+v", f)
	}
	w.refused(w.call(http.MethodGet, "/v3/feature_flags/x", w.admin, nil), 404, 10010, "CF-ResourceNotFound", "Feature flag not found")
	do[v3.FeatureFlag](w, 200, http.MethodPatch, "/v3/feature_flags/diego_docker", w.admin, object{"enabled": true, "custom_error_message": "ask Ann"})
	if f := do[v3.FeatureFlag](w, 200, http.MethodGet, "/v3/feature_flags/diego_docker", w.admin, nil); !f.Enabled || *f.Message != "ask Ann" {
		t.Errorf("got %+v", f)
	}
	if list := do[v3.List[v3.FeatureFlag]](w, 200, http.MethodGet, "/v3/feature_flags", w.admin, nil); len(list.Resources) != len(platform.Flags()) {
		t.Errorf("%d flags", len(list.Resources))
	}
}

func TestAuditEvents(t *testing.T) {
	w := newWorld(t)
	org := w.org("o")
	space := w.space(org, "s")
	w.give("dev", platform.SpaceDeveloper, org, space)
	list := do[v3.List[v3.Event]](w, 200, http.MethodGet, "/v3/audit_events?organization_guids="+org.GUID+"&order_by=-created_at", w.admin, nil)
	var types []string
	for _, e := range list.Resources {
		types = append(types, e.Type)
	}
	if want := []string{"audit.user.space_developer_add", "audit.user.organization_user_add", "audit.space.create", "audit.organization.create"}; !slices.Equal(types, want) {
		t.Fatalf("got %q, want %q", types, want)
	}
	if e := list.Resources[2]; e.Actor != (v3.Actor{GUID: "admin-guid", Type: "user", Name: "admin"}) || e.Target != (v3.Actor{GUID: space.GUID, Type: "space", Name: "s"}) ||
		e.Space.GUID != space.GUID || e.Organization.GUID != org.GUID {
		t.Errorf("got %+v", e)
	}
	seen := do[v3.List[v3.Event]](w, 200, http.MethodGet, "/v3/audit_events?target_guids="+space.GUID, w.token("dev"), nil)
	if len(seen.Resources) != 1 || seen.Resources[0].Type != "audit.space.create" {
		t.Errorf("a developer sees %+v", seen.Resources)
	}
	if all := do[v3.List[v3.Event]](w, 200, http.MethodGet, "/v3/audit_events", w.token("dev"), nil); all.Pagination.TotalResults != 2 { // the space, and the role in it
		t.Errorf("a developer sees %d events", all.Pagination.TotalResults)
	}
}

func TestLists(t *testing.T) {
	w := newWorld(t)
	for i := range 7 {
		do[v3.Organization](w, 201, http.MethodPost, "/v3/organizations", w.admin, object{"name": fmt.Sprint("o", i), "metadata": object{"labels": object{"n": fmt.Sprint(i), "odd": fmt.Sprint(i % 2)}}})
	}
	w.org("a,b")
	names := func(path string) (names []string, page v3.Pagination) {
		t.Helper()
		list := do[v3.List[v3.Organization]](w, 200, http.MethodGet, path, w.admin, nil)
		for _, o := range list.Resources {
			names = append(names, o.Name)
		}
		return names, list.Pagination
	}
	walk := func(path string) []string {
		t.Helper()
		var all []string
		for path != "" {
			some, page := names(path)
			all, path = append(all, some...), ""
			if page.Next != nil {
				path = page.Next.Href
			}
		}
		return all
	}
	for path, want := range map[string]string{
		"/v3/organizations?per_page=3":                                               "o0 o1 o2 o3 o4 o5 o6 a,b",
		"/v3/organizations?per_page=2&order_by=-name":                                "o6 o5 o4 o3 o2 o1 o0 a,b",
		"/v3/organizations?per_page=1&order_by=-updated_at":                          "a,b o6 o5 o4 o3 o2 o1 o0",
		"/v3/organizations?names=o1,a%252Cb":                                         "o1 a,b",
		"/v3/organizations?names=":                                                   "",
		"/v3/organizations?label_selector=odd%3D1":                                   "o1 o3 o5",
		"/v3/organizations?label_selector=" + url.QueryEscape("odd==1,n!=3"):         "o1 o5",
		"/v3/organizations?label_selector=" + url.QueryEscape("n in (1, 2),odd"):     "o1 o2",
		"/v3/organizations?label_selector=" + url.QueryEscape("n notin (1,2),odd=1"): "o3 o5",
		"/v3/organizations?label_selector=!odd":                                      "a,b",
		"/v3/organizations?created_ats%5Bgt%5D=2001-01-01T00:00:00Z&names=o1":        "o1",
		"/v3/organizations?created_ats%5Blt%5D=2001-01-01T00:00:00Z":                 "",
		"/v3/organizations?order_by=name&per_page=3&page=3":                          "o5 o6",
		"/v3/organizations?per_page=5000&page=2":                                     "",
	} {
		if got := strings.Join(walk(path), " "); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	_, page := names("/v3/organizations?per_page=3&page=2&order_by=name")
	if page.TotalResults != 8 || page.TotalPages != 3 || page.First.Href != w.url+"/v3/organizations?order_by=name&page=1&per_page=3" ||
		page.Last.Href != w.url+"/v3/organizations?order_by=name&page=3&per_page=3" || page.Previous.Href != page.First.Href ||
		!strings.HasPrefix(page.Next.Href, w.url+"/v3/organizations?cursor=") || !strings.Contains(page.Next.Href, "page=3") {
		t.Errorf("got %+v", page)
	}
	for query, detail := range map[string]string{
		"colour=blue":     "Unknown query parameter(s): 'colour'. Valid parameters are: 'created_ats', 'guids', 'label_selector', 'names', 'order_by', 'page', 'per_page', 'updated_ats'",
		"names%5Bgt%5D=1": "Unknown query parameter(s): 'names[gt]'. Valid parameters are: 'created_ats', 'guids', 'label_selector', 'names', 'order_by', 'page', 'per_page', 'updated_ats'",
		"per_page=5001":   "Per page must be between 1 and 5000",
		"page=0":          "Page must be between 1 and 2147483648",
		"order_by=colour": "Order by can only be: name, created_at, updated_at",
		"cursor=x":        "cursor is not one of ours. Follow pagination.next.href as it is",
		"cursor=" + base64.RawURLEncoding.EncodeToString([]byte(`{"v":"x","g":"y"}`)): "cursor belongs to another order. Follow pagination.next.href as it is",
		"label_selector=a(b": "Invalid label_selector value",
		"created_ats=now":    "Created ats has an invalid timestamp format. Timestamps should be formatted as 'YYYY-MM-DDThh:mm:ssZ'",
	} {
		w.refused(w.call(http.MethodGet, "/v3/organizations?"+query, w.admin, nil), 400, 10005, "CF-BadQueryParameter", "The query parameter is invalid: "+detail)
	}
}
