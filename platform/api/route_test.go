package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// tenant is an organization with a space and somebody who manages the one and develops in the other.
type tenant struct {
	org   v3.Organization
	space v3.Space
	token string
}

func (w *world) tenant(name string) tenant {
	w.t.Helper()
	t := tenant{org: w.org(name), token: w.token(name)}
	t.space = w.space(t.org, "space")
	w.give(name, platform.OrgManager, t.org, t.space)
	w.give(name, platform.SpaceDeveloper, t.org, t.space)
	return t
}

// address is the body for a route.
func address(space v3.Space, domain, host, path string) object {
	return object{"host": host, "path": path, "relationships": object{"space": to(space.GUID), "domain": to(domain)}}
}

func (w *world) route(t tenant, domain, host, path string) v3.Route {
	w.t.Helper()
	return do[v3.Route](w, 201, http.MethodPost, "/v3/routes", t.token, address(t.space, domain, host, path))
}

func (w *world) domain(t tenant, name string) v3.Domain {
	w.t.Helper()
	return do[v3.Domain](w, 201, http.MethodPost, "/v3/domains", t.token, object{"name": name, "relationships": object{"organization": to(t.org.GUID)}})
}

func leads(to ...object) object { return object{"destinations": append([]object{}, to...)} }

func toWeb(app v3.App) object { return object{"app": object{"guid": app.GUID}} }

func TestRoutes(t *testing.T) {
	w := newWorld(t)
	one := w.tenant("one")
	app, other := w.app(one.space, "blue"), w.app(one.space, "green")
	r := do[v3.Route](w, 201, http.MethodPost, "/v3/routes", one.token, object{"host": "Blue", "path": "/shop", "metadata": object{"labels": object{"tier": "front"}}, "relationships": object{"space": to(one.space.GUID), "domain": to(w.apps.GUID)}})
	if r.URL != "blue.apps.example.org/shop" || r.Host != "blue" || r.Protocol != "http" || r.Port != nil || r.Destinations == nil || r.Options == nil || r.Relationships.Domain.GUID() != w.apps.GUID || r.Metadata.Labels["tier"] != "front" {
		t.Errorf("created %+v", r)
	}
	self := "/v3/routes/" + r.GUID
	w.unprocessable(w.call(http.MethodPost, "/v3/routes", one.token, address(one.space, w.apps.GUID, "blue", "/shop")), "Route already exists with host 'blue' and path '/shop' for domain 'apps.example.org'.")
	bare := w.route(one, w.apps.GUID, "blue", "")
	w.unprocessable(w.call(http.MethodPost, "/v3/routes", one.token, address(one.space, w.apps.GUID, "blue", "")), "Route already exists with host 'blue' for domain 'apps.example.org'.")
	for _, test := range []struct{ host, path, detail string }{
		{"a.b", "", "Host must be '*', or at most 63 lower-case letters, digits and hyphens, and begin and end with a letter or digit."},
		{"a_b", "", "Host must be '*', or at most 63 lower-case letters, digits and hyphens, and begin and end with a letter or digit."},
		{strings.Repeat("a", 64), "", "Host must be '*', or at most 63 lower-case letters, digits and hyphens, and begin and end with a letter or digit."},
		{"", "", "Missing host. Routes in shared domains must have a host defined."},
		{"a", "x", "Path must begin with a slash, such as /x."},
		{"a", "/", "Path cannot be a single slash: leave it out, and the route gets every path."},
		{"a", "/x/", "Path cannot end with a slash: /x gets what is below it too."},
		{"a", "/x?y", "Path must be segments of letters, digits and -._~!$&'()*+,;=:@ with a slash before each. It cannot hold ? or %."},
		{"a", "/x%2fy", "Path must be segments of letters, digits and -._~!$&'()*+,;=:@ with a slash before each. It cannot hold ? or %."},
		{"a", "/x/../y", "Path cannot have the segments . and ..: browsers take them out."},
		{"a", "/" + strings.Repeat("x", 128), "Path is too long (maximum is 128 characters)"},
	} {
		w.unprocessable(w.call(http.MethodPost, "/v3/routes", one.token, address(one.space, w.apps.GUID, test.host, test.path)), test.detail)
	}
	w.unprocessable(w.call(http.MethodPost, "/v3/routes", one.token, object{"port": 1234, "relationships": object{"space": to(one.space.GUID), "domain": to(w.apps.GUID)}}),
		"Routes of domain 'apps.example.org' have no port: it speaks http only. Leave the port out.")
	w.unprocessable(w.call(http.MethodPost, "/v3/routes", one.token, object{"host": "a", "options": object{"loadbalancing": "hash"}, "relationships": object{"space": to(one.space.GUID), "domain": to(w.apps.GUID)}}),
		"Routes have no option 'loadbalancing' here: requests go to the instances of a route in turn. Leave the options out.")
	w.unprocessable(w.call(http.MethodPost, "/v3/routes", one.token, object{"host": "a"}), "Relationships 'relationships' must include one or more valid relationships: say the space and the domain of the route.")

	if changed := do[v3.Route](w, 200, http.MethodPatch, self, one.token, object{"metadata": object{"labels": object{"tier": nil, "a": "b"}}}); len(changed.Metadata.Labels) != 1 || changed.URL != r.URL {
		t.Errorf("changed to %+v", changed)
	}
	do[v3.Route](w, 200, http.MethodPatch, self, one.token, `{"options": {"loadbalancing": null}}`)
	do[v3.Destinations](w, 200, http.MethodPost, self+"/destinations", one.token, leads(toWeb(app)))
	do[v3.Destinations](w, 200, http.MethodPost, "/v3/routes/"+bare.GUID+"/destinations", one.token, leads(toWeb(app), toWeb(other)))

	urls := func(query string) string {
		t.Helper()
		list := do[v3.List[v3.Route]](w, 200, http.MethodGet, query, one.token, nil)
		var all []string
		for _, r := range list.Resources {
			all = append(all, fmt.Sprint(r.URL, len(r.Destinations)))
		}
		return strings.Join(all, " ")
	}
	both := "blue.apps.example.org/shop1 blue.apps.example.org2"
	for query, want := range map[string]string{
		"":                                   both,
		"hosts=blue":                         both,
		"hosts=BLUE&paths=":                  "blue.apps.example.org2",
		"hosts=":                             "",
		"paths=/shop":                        "blue.apps.example.org/shop1",
		"ports=1":                            "",
		"domain_guids=" + w.apps.GUID:        both,
		"space_guids=" + one.space.GUID:      both,
		"organization_guids=" + one.org.GUID: both,
		"app_guids=" + other.GUID:            "blue.apps.example.org2",
		"app_guids=" + app.GUID + "&paths=":  "blue.apps.example.org2",
		"service_instance_guids=x":           "",
		"label_selector=a%3Db":               "blue.apps.example.org/shop1",
		"guids=" + bare.GUID:                 "blue.apps.example.org2",
		"order_by=-created_at&per_page=1":    "blue.apps.example.org2",
	} {
		if got := urls("/v3/routes?" + query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	if got := urls("/v3/apps/" + other.GUID + "/routes"); got != "blue.apps.example.org2" {
		t.Errorf("of an app: %s", got)
	}
	list := do[v3.List[v3.Route]](w, 200, http.MethodGet, "/v3/routes?include=domain,space,space.organization", one.token, nil)
	if list.Included.Domains[0].Name != "apps.example.org" || list.Included.Spaces[0].GUID != one.space.GUID || list.Included.Organizations[0].GUID != one.org.GUID {
		t.Errorf("beside: %+v", list.Included)
	}
	w.refused(w.call(http.MethodGet, "/v3/routes?include=app", one.token, nil), 400, 10005, "CF-BadQueryParameter", "The query parameter is invalid: Invalid included resource: 'app'. Valid included resources are: 'domain', 'space', 'space.organization'")

	for query, want := range map[string]bool{"host=blue&path=/shop": true, "host=Blue": true, "host=blue&path=/other": false, "host=red": false, "host=api": true, "": false} {
		if got := do[v3.RouteReservation](w, 200, http.MethodGet, "/v3/domains/"+w.apps.GUID+"/route_reservations?"+query, one.token, nil); got.MatchingRoute != want {
			t.Errorf("%s is taken: %v", query, got.MatchingRoute)
		}
	}

	// Routes go with their space, not with their apps; those that lead nowhere can be swept away.
	w.deleted("/v3/apps/"+app.GUID, one.token)
	if got := urls("/v3/routes"); got != "blue.apps.example.org/shop0 blue.apps.example.org1" {
		t.Errorf("after its app went: %s", got)
	}
	w.unprocessable(w.call(http.MethodDelete, "/v3/spaces/"+one.space.GUID+"/routes", one.token, nil), "Only routes that lead nowhere can be deleted together. Add the parameter unmapped=true.")
	w.deleted("/v3/spaces/"+one.space.GUID+"/routes?unmapped=true", one.token)
	if got := urls("/v3/routes"); got != "blue.apps.example.org1" {
		t.Errorf("after the sweep: %s", got)
	}
	w.deleted("/v3/routes/"+bare.GUID, one.token)
	again := w.route(one, w.apps.GUID, "blue", "")
	w.deleted("/v3/spaces/"+one.space.GUID, one.token)
	w.refused(w.call(http.MethodGet, "/v3/routes/"+again.GUID, w.admin, nil), 404, 10010, "CF-ResourceNotFound", "Route not found")
}

// What one tenant tries on another is refused, each with its reason.
func TestRoutesBetweenTenants(t *testing.T) {
	w := newWorld(t)
	one, two := w.tenant("one"), w.tenant("two")
	app := w.app(one.space, "app")
	w.route(one, w.apps.GUID, "shop", "/cart")
	private := w.domain(one, "one.example.net")
	mine := w.route(one, private.GUID, "www", "")
	do[v3.Destinations](w, 200, http.MethodPost, "/v3/routes/"+mine.GUID+"/destinations", one.token, leads(toWeb(app)))
	d := do[v3.Route](w, 200, http.MethodGet, "/v3/routes/"+mine.GUID, one.token, nil).Destinations[0]
	theirs := w.route(two, w.apps.GUID, "theirs", "")
	nested := do[v3.Domain](w, 201, http.MethodPost, "/v3/domains", w.admin, object{"name": "eu.apps.example.org"})

	domain := func(name string) object {
		return object{"name": name, "relationships": object{"organization": to(two.org.GUID)}}
	}
	const taken = "The host 'shop' of domain 'apps.example.org' is taken by another space. Choose another host."
	const wildcard = "A wildcard of the shared domain 'apps.example.org' is for administrators only, because it gets what others have not taken yet. Choose a host, or use a domain of your organization."
	for _, try := range []struct {
		name   string
		method string
		path   string
		body   object
		status int
		detail string
	}{
		{"the same host and path", "POST", "/v3/routes", address(two.space, w.apps.GUID, "shop", "/cart"), 422, taken},
		{"another path of the host", "POST", "/v3/routes", address(two.space, w.apps.GUID, "shop", "/cart/steal"), 422, taken},
		{"the whole host", "POST", "/v3/routes", address(two.space, w.apps.GUID, "SHOP", ""), 422, taken},
		{"everything else", "POST", "/v3/routes", address(two.space, w.apps.GUID, "*", ""), 422, wildcard},
		{"everything else under a path", "POST", "/v3/routes", address(two.space, w.apps.GUID, "*", "/login"), 422, "A wildcard gets every path that no other route has: leave the path out."},
		{"the domain itself", "POST", "/v3/routes", address(two.space, w.apps.GUID, "", ""), 422, "Missing host. Routes in shared domains must have a host defined."},
		{"the platform's host", "POST", "/v3/routes", address(two.space, w.apps.GUID, "api", ""), 422, "The host 'api' of domain 'apps.example.org' is reserved for the platform itself. Choose another host."},
		{"a path of it", "POST", "/v3/routes", address(two.space, w.apps.GUID, "Login", "/oauth"), 422, "The host 'login' of domain 'apps.example.org' is reserved for the platform itself. Choose another host."},
		{"the name of a shared domain", "POST", "/v3/routes", address(two.space, w.apps.GUID, "eu", ""), 422, "The host 'eu' of domain 'apps.example.org' is taken by another space. Choose another host."},
		{"a domain itself that is shared", "POST", "/v3/routes", address(two.space, nested.GUID, "", ""), 422, "Missing host. Routes in shared domains must have a host defined."},
		{"another's domain", "POST", "/v3/routes", address(two.space, private.GUID, "other", ""), 422, "Invalid domain. Ensure that the domain exists and you have access to it."},
		{"another's space", "POST", "/v3/routes", address(one.space, w.apps.GUID, "new", ""), 422, "Invalid space. Ensure that the space exists and you have access to it."},

		{"the name of another's domain", "POST", "/v3/domains", domain("one.example.net"), 422, `The domain name "one.example.net" is already in use`},
		{"a domain under it", "POST", "/v3/domains", domain("www.one.example.net"), 422, "The domain 'www.one.example.net' cannot be created: it is under a domain of another organization. Choose another name."},
		{"a domain far under it", "POST", "/v3/domains", domain("a.b.one.example.net"), 422, "The domain 'a.b.one.example.net' cannot be created: it is under a domain of another organization. Choose another name."},
		{"a domain above it", "POST", "/v3/domains", domain("example.net"), 422, "The domain 'example.net' cannot be created: a domain under it belongs to others. Choose another name."},
		{"the shared domain", "POST", "/v3/domains", domain("Apps.example.org"), 422, "The domain 'apps.example.org' cannot be created: hosts of the platform itself are there. Choose another name."},
		{"a domain under the shared one", "POST", "/v3/domains", domain("shop.apps.example.org"), 422, "The domain 'shop.apps.example.org' cannot be created: it is under 'apps.example.org', which all organizations share. Use a host of that domain instead."},
		{"a domain above the shared one", "POST", "/v3/domains", domain("example.org"), 422, "The domain 'example.org' cannot be created: hosts of the platform itself are there. Choose another name."},
		{"the platform's host as a domain", "POST", "/v3/domains", domain("uaa.example.com"), 422, "The domain 'uaa.example.com' cannot be created: hosts of the platform itself are there. Choose another name."},
		{"a domain above it", "POST", "/v3/domains", domain("example.com"), 422, "The domain 'example.com' cannot be created: hosts of the platform itself are there. Choose another name."},
		{"a domain under it", "POST", "/v3/domains", domain("x.uaa.example.com"), 422, "The domain 'x.uaa.example.com' cannot be created: hosts of the platform itself are there. Choose another name."},
		{"a public suffix", "POST", "/v3/domains", domain("co.uk"), 422, "The domain 'co.uk' is a public suffix, under which anybody can have a name. Use a domain that is yours."},
		{"a shared domain", "POST", "/v3/domains", object{"name": "two.example.com"}, 403, "You are not authorized to perform the requested action"},
		{"a domain of another organization", "POST", "/v3/domains", object{"name": "two.example.com", "relationships": object{"organization": to(one.org.GUID)}}, 422, "Invalid organization. Ensure that the organization exists and you have access to it."},
		{"deleting another's domain", "DELETE", "/v3/domains/" + private.GUID, nil, 404, "Domain not found"},
		{"deleting the shared one", "DELETE", "/v3/domains/" + w.apps.GUID, nil, 403, "You are not authorized to perform the requested action"},

		{"another's app as a destination", "PATCH", "/v3/routes/" + theirs.GUID + "/destinations", leads(toWeb(app)), 422, `App(s) with guid(s) "` + app.GUID + `" do not exist or you do not have access.`},
		{"another's app added", "POST", "/v3/routes/" + theirs.GUID + "/destinations", leads(toWeb(app)), 422, `App(s) with guid(s) "` + app.GUID + `" do not exist or you do not have access.`},
		{"reading another's route", "GET", "/v3/routes/" + mine.GUID, nil, 404, "Route not found"},
		{"changing another's route", "PATCH", "/v3/routes/" + mine.GUID, object{"metadata": object{"labels": object{"a": "b"}}}, 404, "Route not found"},
		{"deleting another's route", "DELETE", "/v3/routes/" + mine.GUID, nil, 404, "Route not found"},
		{"where another's route leads", "GET", "/v3/routes/" + mine.GUID + "/destinations", nil, 404, "Route not found"},
		{"taking over another's route", "PATCH", "/v3/routes/" + mine.GUID + "/destinations", leads(), 404, "Route not found"},
		{"unmapping another's route", "DELETE", "/v3/routes/" + mine.GUID + "/destinations/" + d.GUID, nil, 404, "Route not found"},
		{"another's destination through one's own route", "DELETE", "/v3/routes/" + theirs.GUID + "/destinations/" + d.GUID, nil, 422, "Unable to unmap route from destination. Ensure the route has a destination with this guid."},
		{"sweeping another's space", "DELETE", "/v3/spaces/" + one.space.GUID + "/routes?unmapped=true", nil, 404, "Space not found"},
		{"whether another's domain has a route", "GET", "/v3/domains/" + private.GUID + "/route_reservations?host=www", nil, 404, "Domain not found"},
	} {
		var body any
		if try.body != nil {
			body = try.body
		}
		got := w.call(try.method, try.path, two.token, body)
		code, title := 10008, "CF-UnprocessableEntity"
		switch try.status {
		case 404:
			code, title = 10010, "CF-ResourceNotFound"
		case 403:
			code, title = 10003, "CF-NotAuthorized"
		}
		before := t.Failed()
		w.refused(got, try.status, code, title, try.detail)
		if t.Failed() && !before {
			t.Errorf("that was: %s", try.name)
		}
	}
	if list := do[v3.List[v3.Route]](w, 200, http.MethodGet, "/v3/routes?app_guids="+app.GUID, two.token, nil); len(list.Resources) != 0 {
		t.Errorf("the neighbour sees %+v", list.Resources)
	}
	for query, want := range map[string]bool{"host=shop&path=/cart": true, "host=shop": true, "host=shop&path=/new": true, "host=theirs&path=/new": false, "host=eu": true, "host=free": false} {
		if got := do[v3.RouteReservation](w, 200, http.MethodGet, "/v3/domains/"+w.apps.GUID+"/route_reservations?"+query, two.token, nil); got.MatchingRoute != want {
			t.Errorf("%s is taken: %v", query, got.MatchingRoute)
		}
	}
	// A manifest is no way around.
	for manifest, detail := range map[string]string{
		"routes: [{route: shop.apps.example.org/mine}]": "For application 'x': route 'shop.apps.example.org/mine': " + taken,
		"routes: [{route: api.apps.example.org}]":       "For application 'x': route 'api.apps.example.org': The host 'api' of domain 'apps.example.org' is reserved for the platform itself. Choose another host.",
		"routes: [{route: \"*.apps.example.org\"}]":     "For application 'x': route '*.apps.example.org': " + wildcard,
		"routes: [{route: www.one.example.net}]":        "For application 'x': The route 'www.one.example.net' did not match any existing domains. Use a host of one that `domains` lists, or have the domain created.",
	} {
		if job := w.apply(two.space, two.token, "applications: [{name: x, "+manifest+"}]"); job.State != "FAILED" || job.Errors[0].Detail != detail {
			t.Errorf("%s: %+v", manifest, job)
		}
	}

	// Somebody in both still cannot lead one's route to the other's app, and an administrator takes what is left.
	w.give("two", platform.SpaceDeveloper, one.org, one.space)
	w.unprocessable(w.call(http.MethodPost, "/v3/routes/"+theirs.GUID+"/destinations", two.token, leads(toWeb(app))), "Routes cannot be mapped to destinations in different spaces. Create a route in the space of the app.")
	w.unprocessable(w.call(http.MethodPost, "/v3/routes", two.token, address(two.space, private.GUID, "x", "")), "Invalid domain. Domain 'one.example.net' is not available in the organization of this space. `domains` lists those that are.")
	any := do[v3.Route](w, 201, http.MethodPost, "/v3/routes", w.admin, address(one.space, w.apps.GUID, "*", ""))
	if any.URL != "*.apps.example.org" {
		t.Errorf("got %+v", any)
	}
	w.route(two, w.apps.GUID, "fresh", "") // an exact host wins over the wildcard

	// In an organization's own domain its spaces share hosts, and have wildcards and the domain itself.
	second := w.space(one.org, "second")
	w.give("one", platform.SpaceDeveloper, one.org, second)
	do[v3.Route](w, 201, http.MethodPost, "/v3/routes", one.token, address(second, private.GUID, "www", "/second"))
	do[v3.Route](w, 201, http.MethodPost, "/v3/routes", one.token, address(second, private.GUID, "*", ""))
	do[v3.Route](w, 201, http.MethodPost, "/v3/routes", one.token, address(second, private.GUID, "", ""))
	w.unprocessable(w.call(http.MethodPost, "/v3/routes", one.token, address(second, private.GUID, "www", "")), "The route 'www.one.example.net' is taken by another space of the organization. Choose another host or path, or delete it there.")
	inner := w.domain(one, "www.one.example.net")
	w.unprocessable(w.call(http.MethodPost, "/v3/routes", one.token, address(one.space, inner.GUID, "", "")), "Route already exists for domain 'www.one.example.net'.")
}

// What does not run, or leads nowhere, is served without backends where another space would get its requests.
func TestNobodyCatchesRequestsOfAnother(t *testing.T) {
	w := newWorld(t)
	one, two := w.tenant("one"), w.tenant("two")
	second := tenant{org: one.org, token: one.token, space: w.space(one.org, "second")}
	w.give("one", platform.SpaceDeveloper, one.org, second.space)
	private := w.domain(one, "one.example.net")
	inner := w.domain(one, "in.one.example.net")
	app := w.startable(two.space, "app", platform.Droplet{Lifecycle: platform.Lifecycle{Type: platform.LifecycleBuildpack}})
	shop := w.route(two, w.apps.GUID, "shop", "")
	do[v3.Destinations](w, 200, http.MethodPost, "/v3/routes/"+shop.GUID+"/destinations", two.token, leads(toWeb(app)))
	w.route(two, w.apps.GUID, "unmapped", "")
	w.route(second, private.GUID, "www", "/a/b")
	w.route(second, private.GUID, "www", "/other")
	w.route(second, private.GUID, "", "/below")
	w.route(second, inner.GUID, "*", "")
	w.route(second, inner.GUID, "deep", "")
	closed := func() (all []string) {
		t.Helper()
		found, err := w.store.WantedRoutes(t.Context(), "default")
		must(t, err)
		for _, r := range found {
			all = append(all, fmt.Sprint(r.Hostname, r.Path, " ", len(r.Backends)))
		}
		slices.Sort(all)
		return all
	}
	is := func(when string, want ...string) {
		t.Helper()
		if got := closed(); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	is("nothing could catch")
	do[v3.Route](w, 201, http.MethodPost, "/v3/routes", w.admin, address(one.space, w.apps.GUID, "*", ""))
	is("a wildcard", "shop.apps.example.org 0", "unmapped.apps.example.org 0")
	do[v3.App](w, 200, http.MethodPost, "/v3/apps/"+app.GUID+"/actions/start", two.token, nil)
	is("it runs", "shop.apps.example.org 1", "unmapped.apps.example.org 0")
	do[v3.Process](w, 202, http.MethodPost, "/v3/apps/"+app.GUID+"/processes/web/actions/scale", two.token, object{"instances": 0})
	is("without instances", "shop.apps.example.org 0", "unmapped.apps.example.org 0")
	w.deleted("/v3/spaces/"+two.space.GUID, w.admin)
	is("its space went")
	path := w.route(one, private.GUID, "www", "/a")
	is("a shorter path", "www.one.example.net/a/b 0")
	w.deleted("/v3/routes/"+path.GUID, one.token)
	w.route(second, private.GUID, "www", "")
	is("a shorter path of the same space")
	w.route(one, private.GUID, "*", "")
	is("a wildcard far above", "*.in.one.example.net 0", "deep.in.one.example.net 0", "www.one.example.net 0", "www.one.example.net/a/b 0", "www.one.example.net/other 0")
}

// Two spaces that ask at once for different paths of one host: it belongs to one of them.
func TestHostAtOnce(t *testing.T) {
	w := newWorld(t)
	tenants := []tenant{w.tenant("one"), w.tenant("two")}
	done := make(chan reply)
	for i := range 16 {
		of := tenants[i%2]
		go func() {
			done <- w.call(http.MethodPost, "/v3/routes", of.token, address(of.space, w.apps.GUID, "hot", fmt.Sprintf("/p%d", i)))
		}()
	}
	made := 0
	for range 16 {
		if got := <-done; got.status == 201 {
			made++
		} else if got.status != 422 || !strings.Contains(got.body, "is taken by another space") {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	var spaces int
	must(t, w.pool.QueryRow(t.Context(), `select count(distinct space_guid) from routes`).Scan(&spaces))
	if made != 8 || spaces != 1 {
		t.Errorf("%d routes were made, in %d spaces", made, spaces)
	}
}

func TestDestinations(t *testing.T) {
	w := newWorld(t)
	one := w.tenant("one")
	app, other := w.app(one.space, "app"), w.app(one.space, "other")
	path := "/v3/routes/" + w.route(one, w.apps.GUID, "app", "").GUID + "/destinations"
	shown := func(got v3.Destinations) string {
		var all []string
		for _, d := range got.Destinations {
			name := map[string]string{app.GUID: "app", other.GUID: "other"}[d.App.GUID]
			weight := ""
			if d.Weight != nil {
				weight = fmt.Sprint("*", *d.Weight)
			}
			all = append(all, fmt.Sprintf("%s/%s:%d%s %s", name, d.App.Process.Type, d.Port, weight, d.Protocol))
		}
		return strings.Join(all, ", ")
	}
	is := func(got v3.Destinations, want string) {
		t.Helper()
		if shown(got) != want {
			t.Errorf("got %s, want %s", shown(got), want)
		}
	}
	at := func(a v3.App, kind string, more object) object {
		d := object{"app": object{"guid": a.GUID, "process": object{"type": kind}}}
		for k, v := range more {
			d[k] = v
		}
		return d
	}
	first := do[v3.Destinations](w, 200, http.MethodPost, path, one.token, leads(toWeb(app)))
	is(first, "app/web:8080 http1")
	is(do[v3.Destinations](w, 200, http.MethodPost, path, one.token, leads(at(app, "web", object{"port": 8080, "protocol": "http1"}))), "app/web:8080 http1")
	is(do[v3.Destinations](w, 200, http.MethodPost, path, one.token, leads(at(other, "worker", object{"port": 9000, "protocol": "http2"}))), "app/web:8080 http1, other/worker:9000 http2")
	replaced := do[v3.Destinations](w, 200, http.MethodPatch, path, one.token, leads(at(app, "web", object{"weight": 1}), at(app, "web", object{"port": 9000, "weight": 100})))
	is(replaced, "app/web:8080*1 http1, app/web:9000*100 http1")
	if replaced.Destinations[0].GUID != first.Destinations[0].GUID {
		t.Error("a destination that stayed is another record")
	}
	is(do[v3.Destinations](w, 200, http.MethodGet, path+"?app_guids="+other.GUID, one.token, nil), "")
	is(do[v3.Destinations](w, 200, http.MethodGet, path+"?guids="+replaced.Destinations[1].GUID, one.token, nil), "app/web:9000*100 http1")
	for _, test := range []struct {
		method string
		wanted []object
		detail string
	}{
		{"POST", []object{toWeb(other)}, "Destinations with a weight and without one cannot stand together. Give every destination of the route a weight, or none."},
		{"PATCH", []object{at(app, "web", object{"weight": 5}), toWeb(other)}, "Destinations with a weight and without one cannot stand together. Give every destination of the route a weight, or none."},
		{"PATCH", []object{at(app, "web", object{"weight": 101})}, "Weight must be between 1 and 100"},
		{"PATCH", []object{at(app, "web", object{"weight": 0})}, "The port and the weight of a destination cannot be 0. Leave them out for the default."},
		{"PATCH", []object{at(app, "web", object{"port": 80})}, "Port 80 is not one that a process can have: it must be between 1024 and 65535."},
		{"PATCH", []object{at(app, "web", object{"port": 65536})}, "Port 65536 is not one that a process can have: it must be between 1024 and 65535."},
		{"PATCH", []object{at(app, "web", object{"protocol": "tcp"})}, "Protocol must be http1 or http2 for a route of http, not 'tcp'."},
		{"PATCH", []object{{"app": object{}}}, "Destinations must have an app: say its guid in app.guid."},
		{"PATCH", []object{at(app, "no type", nil)}, "Process type 'no type' must be 1 to 63 of the characters a-z A-Z 0-9 . _ and -."},
		{"PATCH", []object{toWeb(app), at(app, "web", object{"port": 8080})}, "Destinations cannot contain duplicate entries: process 'web' of app '" + app.GUID + "' is there twice with port 8080."},
		{"PATCH", []object{{"app": object{"guid": "nope"}}}, `App(s) with guid(s) "nope" do not exist or you do not have access.`},
		{"PATCH", slices.Repeat([]object{toWeb(app)}, 17), "A route has at most 16 destinations. Spread the requests over more instances instead."},
		{"PATCH", []object{at(app, "web", object{"colour": "red"})}, "Unknown field(s): 'colour'"},
		{"POST", []object{at(app, "web", object{"weight": 1, "protocol": "http2"})}, "The route leads to port 8080 of process 'web' with protocol http1 already. Change that destination, or remove it first."},
	} {
		w.unprocessable(w.call(test.method, path, one.token, leads(test.wanted...)), test.detail)
	}
	is(do[v3.Destinations](w, 200, http.MethodGet, path, one.token, nil), "app/web:8080*1 http1, app/web:9000*100 http1")

	for _, method := range []string{"PATCH", "POST"} { // what is forgotten unmaps nothing
		w.unprocessable(w.call(method, path, one.token, object{}), "Destinations must be said: where the route leads, or [] for nowhere.")
	}
	is(do[v3.Destinations](w, 200, http.MethodGet, path, one.token, nil), "app/web:8080*1 http1, app/web:9000*100 http1")

	// A port speaks one protocol, whatever route leads to it, and a process has not too many.
	second := "/v3/routes/" + w.route(one, w.apps.GUID, "second", "").GUID + "/destinations"
	const both = "Port 9000 of process 'web' cannot speak http1 and http2 at once. Use one protocol on all its routes, or another port."
	w.unprocessable(w.call(http.MethodPost, second, one.token, leads(at(app, "web", object{"port": 9000, "protocol": "http2"}))), both)
	do[v3.Destinations](w, 200, http.MethodPost, second, one.token, leads(at(app, "web", object{"port": 9000})))
	w.unprocessable(w.call(http.MethodPatch, path+"/"+replaced.Destinations[1].GUID, one.token, object{"protocol": "http2"}), both)
	if d := do[v3.Destination](w, 200, http.MethodPatch, path+"/"+replaced.Destinations[0].GUID, one.token, object{"protocol": "http2"}); d.Protocol != "http2" || *d.Weight != 1 {
		t.Errorf("changed to %+v", d)
	}
	var many []object
	for port := range 9 {
		many = append(many, at(app, "web", object{"port": 2000 + port}))
	}
	w.unprocessable(w.call(http.MethodPatch, second, one.token, leads(many...)), "Process 'web' would be reached at more than 10 ports. Remove a destination first.")
	do[v3.Destinations](w, 200, http.MethodPatch, second, one.token, leads(many[:8]...))
	do[v3.Destinations](w, 204, http.MethodDelete, path+"/"+replaced.Destinations[1].GUID, one.token, nil)
	w.unprocessable(w.call(http.MethodDelete, path+"/"+replaced.Destinations[1].GUID, one.token, nil), "Unable to unmap route from destination. Ensure the route has a destination with this guid.")
	is(do[v3.Destinations](w, 200, http.MethodPatch, path, one.token, leads()), "")

	var trail []string
	for _, e := range do[v3.List[v3.Event]](w, 200, http.MethodGet, "/v3/audit_events?target_guids="+other.GUID, w.admin, nil).Resources {
		trail = append(trail, e.Type)
	}
	if !slices.Equal(trail, []string{"audit.app.create", "audit.app.map-route", "audit.app.unmap-route"}) {
		t.Errorf("the trail: %v", trail)
	}
}

// The call of the specification: a custom port is pending until the app is restarted.
func TestPortIsPendingUntilRestart(t *testing.T) {
	w := newWorld(t)
	one := w.tenant("one")
	app := w.startable(one.space, "app", platform.Droplet{Lifecycle: platform.Lifecycle{Type: platform.LifecycleBuildpack}})
	self := "/v3/apps/" + app.GUID
	r := w.route(one, w.apps.GUID, "debug", "/dump")
	path := "/v3/routes/" + r.GUID + "/destinations"
	plain := "/v3/routes/" + w.route(one, w.apps.GUID, "app", "").GUID + "/destinations"
	state := func(path string) string {
		t.Helper()
		return do[v3.Destinations](w, 200, http.MethodGet, path, one.token, nil).Destinations[0].State
	}
	wanted := func() (all []string) {
		t.Helper()
		found, err := w.store.WantedRoutes(t.Context(), "default")
		must(t, err)
		for _, r := range found {
			all = append(all, fmt.Sprint(r.Namespace == "space-"+one.space.GUID, " ", r.Hostname, r.Path, " ", r.Protocol, " ", r.Backends))
		}
		slices.Sort(all)
		return all
	}
	ports := func() string {
		t.Helper()
		found, err := w.store.Wanted(t.Context(), "default")
		must(t, err)
		return fmt.Sprint(found[0].Release.Ports, " ", found[0].Release.Environment()["PORT"])
	}
	do[v3.Destinations](w, 200, http.MethodPost, plain, one.token, leads(toWeb(app)))
	do[v3.App](w, 200, http.MethodPost, self+"/actions/start", one.token, nil)
	served := fmt.Sprintf("true app.apps.example.org http [{%s 8080 0 http1}]", app.GUID)
	if got := wanted(); !slices.Equal(got, []string{served}) {
		t.Errorf("served: %v", got)
	}

	got := do[v3.Destinations](w, 200, http.MethodPatch, path, one.token, object{"destinations": []object{{"app": object{"guid": app.GUID, "process": object{"type": "web"}}, "port": 9090, "protocol": "http1"}}})
	if d := got.Destinations[0]; d.State != "pending" || d.Port != 9090 || d.App.Process.Type != "web" || d.Protocol != "http1" {
		t.Errorf("got %+v", d)
	}
	if listed := do[v3.List[v3.Route]](w, 200, http.MethodGet, "/v3/routes?hosts=debug", one.token, nil); listed.Resources[0].Destinations[0].State != "pending" || state(plain) != "mapped" {
		t.Errorf("listed %+v", listed)
	}
	if got := wanted(); !slices.Equal(got, []string{served}) || ports() != "[8080] 8080" {
		t.Errorf("a port that nothing has is served: %v, %s", got, ports())
	}

	do[v3.App](w, 200, http.MethodPost, self+"/actions/restart", one.token, nil)
	dump := fmt.Sprintf("true debug.apps.example.org/dump http [{%s 9090 0 http1}]", app.GUID)
	if got := wanted(); state(path) != "mapped" || !slices.Equal(got, []string{served, dump}) || ports() != "[8080 9090] 8080" {
		t.Errorf("after the restart: %s %v, %s", state(path), got, ports())
	}
	env := do[v3.AppEnv](w, 200, http.MethodGet, self+"/env", one.token, nil)
	if uris := fmt.Sprint(env.Application["VCAP_APPLICATION"].(map[string]any)["uris"]); uris != "[debug.apps.example.org/dump app.apps.example.org]" {
		t.Errorf("the app is told %s", uris)
	}

	// A port that is taken away is there until the next release; a stopped app waits for nothing; without instances there is nothing to serve.
	do[v3.Destinations](w, 200, http.MethodPatch, path, one.token, object{"destinations": []object{{"app": object{"guid": app.GUID}, "port": 7070}}})
	do[v3.App](w, 200, http.MethodPost, self+"/actions/stop", one.token, nil)
	if got := wanted(); state(path) != "mapped" || len(got) != 0 {
		t.Errorf("stopped: %s %v", state(path), got)
	}
	do[v3.App](w, 200, http.MethodPost, self+"/actions/start", one.token, nil)
	if got := wanted(); len(got) != 2 || ports() != "[8080 7070] 8080" {
		t.Errorf("started again: %v, %s", got, ports())
	}
	do[v3.Process](w, 202, http.MethodPost, self+"/processes/web/actions/scale", one.token, object{"instances": 0})
	if got := wanted(); len(got) != 0 {
		t.Errorf("without instances: %v", got)
	}
}

func TestDomains(t *testing.T) {
	w := newWorld(t)
	one := w.tenant("one")
	d := w.domain(one, "One.Example.Net")
	if d.Name != "one.example.net" || d.Relationships.Organization.GUID() != one.org.GUID || !slices.Equal(d.SupportedProtocols, []string{"http"}) {
		t.Errorf("created %+v", d)
	}
	shared := do[v3.Domain](w, 201, http.MethodPost, "/v3/domains", w.admin, object{"name": "more.example.dev"})
	if shared.Relationships.Organization.Data != nil {
		t.Errorf("created %+v", shared)
	}
	for body, detail := range map[string]string{
		`{"name": ""}`:                                "Name can't be blank",
		`{"name": "org"}`:                             "Name 'org' is not a domain: it must be two or more labels of letters, digits and hyphens with dots between them, such as example.org.",
		`{"name": "10.0.0.1"}`:                        "Name '10.0.0.1' is not a domain: it must be two or more labels of letters, digits and hyphens with dots between them, such as example.org.",
		`{"name": "a..org"}`:                          "Name 'a..org' is not a domain: it must be two or more labels of letters, digits and hyphens with dots between them, such as example.org.",
		`{"name": "*.example.dev"}`:                   "Name '*.example.dev' is not a domain: it must be two or more labels of letters, digits and hyphens with dots between them, such as example.org.",
		`{"name": "x.example.dev", "internal": true}`: "There are no internal domains: every route is reached through the gateway. Leave internal out.",
		`{"name": "x.example.dev", "router_group": {"guid": "x"}}`: "There are no router groups: the domain for tcp is the operator's, and every other speaks http. Leave router_group out.",
		`{"name": "x.one.example.net"}`:                            "The domain 'x.one.example.net' cannot be created: it is under a domain of another organization. Choose another name.",
		`{"name": "example.net"}`:                                  "The domain 'example.net' cannot be created: a domain under it belongs to others. Choose another name.",
		`{"name": "api.apps.example.org"}`:                         "The domain 'api.apps.example.org' cannot be created: hosts of the platform itself are there. Choose another name.",
	} {
		w.unprocessable(w.call(http.MethodPost, "/v3/domains", w.admin, body), detail)
	}
	w.route(one, w.apps.GUID, "mine", "")
	w.unprocessable(w.call(http.MethodPost, "/v3/domains", w.admin, object{"name": "mine.apps.example.org"}), "The domain 'mine.apps.example.org' cannot be created: a route has this name. Choose another, or have the route deleted first.")
	if changed := do[v3.Domain](w, 200, http.MethodPatch, "/v3/domains/"+d.GUID, one.token, object{"metadata": object{"labels": object{"a": "b"}}}); changed.Metadata.Labels["a"] != "b" {
		t.Errorf("changed to %+v", changed)
	}
	if list := do[v3.List[v3.Domain]](w, 200, http.MethodGet, "/v3/organizations/"+one.org.GUID+"/domains", one.token, nil); len(list.Resources) != 3 {
		t.Errorf("listed %+v", list.Resources)
	}
	for name, detail := range map[string]string{
		"example.net":     "The domain 'example.net' cannot be created: a domain under it belongs to others. Choose another name.",
		"One.example.net": `The domain name "one.example.net" is already in use`,
	} {
		if _, err := w.store.AppsDomain(t.Context(), name); err == nil || err.Error() != detail {
			t.Errorf("as the apps domain: %v, want %s", err, detail)
		}
	}
	r := w.route(one, d.GUID, "www", "")
	w.deleted("/v3/domains/"+d.GUID, one.token)
	w.refused(w.call(http.MethodGet, "/v3/routes/"+r.GUID, one.token, nil), 404, 10010, "CF-ResourceNotFound", "Route not found")
	w.unprocessable(w.call(http.MethodDelete, "/v3/domains/"+w.apps.GUID, w.admin, nil), "The apps domain cannot be deleted: apps get their routes under it. Set PROA_APPS_DOMAIN to another one first.")

	// The flags hold for those who are not administrators.
	for _, flag := range []string{"route_creation", "private_domain_creation"} {
		do[v3.FeatureFlag](w, 200, http.MethodPatch, "/v3/feature_flags/"+flag, w.admin, object{"enabled": false})
	}
	w.refused(w.call(http.MethodPost, "/v3/routes", one.token, address(one.space, w.apps.GUID, "late", "")), 403, 330002, "CF-FeatureDisabled", "Feature Disabled: route_creation. Ask an administrator to enable it.")
	w.refused(w.call(http.MethodPost, "/v3/domains", one.token, object{"name": "d.example.net", "relationships": object{"organization": to(one.org.GUID)}}), 403, 330002, "CF-FeatureDisabled", "Feature Disabled: private_domain_creation. Ask an administrator to enable it.")
	do[v3.Route](w, 201, http.MethodPost, "/v3/routes", w.admin, address(one.space, w.apps.GUID, "late", ""))
}
