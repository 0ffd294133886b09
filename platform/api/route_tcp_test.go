package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/api"
	"github.com/proa-dev/proa/platform/store"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// withTCP is a world in which some ports are for routes of tcp.
func withTCP(t testing.TB, first, last int) (*world, platform.Domain) {
	t.Helper()
	var d platform.Domain
	w := newWorld(t, func(s *api.Server) {
		var err error
		d, err = s.Store.TCPDomain(t.Context(), "TCP.apps.example.org")
		must(t, err)
		s.Offer.TCP = store.TCP{Domain: d, Ports: platform.Ports{First: first, Last: last}}
	})
	return w, d
}

// port is the body for a route of tcp; 0 for any port.
func port(space v3.Space, d platform.Domain, number int) object {
	body := object{"relationships": object{"space": to(space.GUID), "domain": to(d.GUID)}}
	if number != 0 {
		body["port"] = number
	}
	return body
}

func (w *world) port(t tenant, d platform.Domain, number int) v3.Route {
	w.t.Helper()
	return do[v3.Route](w, 201, http.MethodPost, "/v3/routes", t.token, port(t.space, d, number))
}

func TestTCPRoutes(t *testing.T) {
	w, d := withTCP(t, 20000, 20002)
	one := w.tenant("one")
	if shown := do[v3.Domain](w, 200, http.MethodGet, "/v3/domains/"+d.GUID, one.token, nil); shown.Name != "tcp.apps.example.org" || !slices.Equal(shown.SupportedProtocols, []string{"tcp"}) {
		t.Errorf("the domain is %+v", shown)
	}
	r := w.port(one, d, 20001)
	if r.URL != "tcp.apps.example.org:20001" || r.Protocol != "tcp" || r.Port == nil || *r.Port != 20001 || r.Host != "" || r.Path != "" {
		t.Errorf("created %+v", r)
	}
	free := w.port(one, d, 0)
	if free.Port == nil || *free.Port != 20000 && *free.Port != 20002 {
		t.Errorf("created %+v", free)
	}
	for _, test := range []struct {
		body   object
		detail string
	}{
		{port(one.space, d, 20001), "Route already exists with port '20001' for domain 'tcp.apps.example.org'."},
		{port(one.space, d, 20003), "Port 20003 is not available on domain 'tcp.apps.example.org': it has the ports 20000-20002. Choose one of those, or leave it out and get one that is free."},
		{port(one.space, d, -1), "Port -1 is not available on domain 'tcp.apps.example.org': it has the ports 20000-20002. Choose one of those, or leave it out and get one that is free."},
		{address(one.space, d.GUID, "a", ""), "Hosts are not supported for TCP routes: those of domain 'tcp.apps.example.org' are told apart by their ports. Leave the host out."},
		{address(one.space, d.GUID, "", "/a"), "Paths are not supported for TCP routes: those of domain 'tcp.apps.example.org' are told apart by their ports. Leave the path out."},
		{address(one.space, w.apps.GUID, "tcp", ""), "The host 'tcp' of domain 'apps.example.org' is taken by another space. Choose another host."},
		{object{"name": "x", "port": 1}, "Relationships 'relationships' must include one or more valid relationships: say the space and the domain of the route."},
	} {
		delete(test.body, "name")
		w.unprocessable(w.call(http.MethodPost, "/v3/routes", one.token, test.body), test.detail)
	}
	if got := w.call(http.MethodPost, "/v3/routes", one.token, `{"port": 1e99}`); got.status/100 != 4 {
		t.Errorf("an absurd port: %+v", got)
	}
	for query, want := range map[string]bool{"port=20001": true, "port=" + fmt.Sprint(40002-*free.Port): false, "port=1": false, "": false} {
		if got := do[v3.RouteReservation](w, 200, http.MethodGet, "/v3/domains/"+d.GUID+"/route_reservations?"+query, one.token, nil); got.MatchingRoute != want {
			t.Errorf("%s is taken: %v", query, got.MatchingRoute)
		}
	}
	if list := do[v3.List[v3.Route]](w, 200, http.MethodGet, "/v3/routes?ports=20001&hosts=&paths=&domain_guids="+d.GUID, one.token, nil); len(list.Resources) != 1 || list.Resources[0].GUID != r.GUID {
		t.Errorf("listed %+v", list.Resources)
	}

	// Destinations speak tcp; the same port may speak http on another route.
	app := w.app(one.space, "broker")
	at := "/v3/routes/" + r.GUID + "/destinations"
	made := do[v3.Destinations](w, 200, http.MethodPost, at, one.token, leads(toWeb(app), object{"app": object{"guid": app.GUID}, "port": 1883}))
	if made.Destinations[0].Protocol != "tcp" || made.Destinations[1].Port != 1883 || made.Destinations[1].Protocol != "tcp" {
		t.Errorf("it leads to %+v", made.Destinations)
	}
	web := w.route(one, w.apps.GUID, "broker", "")
	do[v3.Destinations](w, 200, http.MethodPost, "/v3/routes/"+web.GUID+"/destinations", one.token, leads(toWeb(app)))
	w.unprocessable(w.call(http.MethodPatch, at, one.token, leads(object{"app": object{"guid": app.GUID}, "protocol": "http1"})), "Protocol must be tcp for a route of tcp, not 'http1'. Leave it out.")
	w.unprocessable(w.call(http.MethodPatch, at+"/"+made.Destinations[0].GUID, one.token, object{"protocol": "http2"}), "Protocol must be tcp for a route of tcp, not 'http2'. Leave it out.")
	w.unprocessable(w.call(http.MethodPatch, "/v3/routes/"+web.GUID+"/destinations", one.token, leads(object{"app": object{"guid": app.GUID}, "protocol": "tcp"})), "Protocol must be http1 or http2 for a route of http, not 'tcp'.")
	if same := do[v3.Destination](w, 200, http.MethodPatch, at+"/"+made.Destinations[0].GUID, one.token, `{"protocol": null}`); same.Protocol != "tcp" {
		t.Errorf("by default it speaks %+v", same)
	}
	weighed := do[v3.Destinations](w, 200, http.MethodPatch, at, one.token, leads(object{"app": object{"guid": app.GUID}, "weight": 3}, object{"app": object{"guid": app.GUID}, "port": 1883, "weight": 1}))
	if *weighed.Destinations[0].Weight != 3 {
		t.Errorf("it leads to %+v", weighed.Destinations)
	}

	// The domain stays as long as it is set, and is for nothing else.
	w.unprocessable(w.call(http.MethodDelete, "/v3/domains/"+d.GUID, w.admin, nil), "The domain for tcp cannot be deleted: routes of tcp are made under it. Take PROA_TCP_DOMAIN away first.")
	for _, try := range []func() (platform.Domain, error){
		func() (platform.Domain, error) { return w.store.AppsDomain(t.Context(), "tcp.apps.example.org") },
		func() (platform.Domain, error) { return w.store.TCPDomain(t.Context(), "apps.example.org") },
	} {
		if _, err := try(); err == nil || !strings.Contains(err.Error(), "Choose another name") {
			t.Errorf("one domain for both: %v", err)
		}
	}
	w.deleted("/v3/routes/"+r.GUID, one.token)
	w.port(one, d, 20001)
}

// Two tenants cannot have one port, whatever the domain, and no tenant can have another's.
func TestPortsBetweenTenants(t *testing.T) {
	w, d := withTCP(t, 20000, 20001)
	one, two := w.tenant("one"), w.tenant("two")
	mine := w.port(one, d, 20000)
	const taken = "Port 20000 is not available on domain 'tcp.apps.example.org': another route has it. Choose another, or leave it out and get one that is free."
	w.unprocessable(w.call(http.MethodPost, "/v3/routes", two.token, port(two.space, d, 20000)), taken)
	w.unprocessable(w.call(http.MethodPost, "/v3/routes", two.token, port(one.space, d, 20001)), "Invalid space. Ensure that the space exists and you have access to it.")
	w.refused(w.call(http.MethodDelete, "/v3/routes/"+mine.GUID, two.token, nil), 404, 10010, "CF-ResourceNotFound", "Route not found")
	job := w.apply(two.space, two.token, "applications: [{name: x, routes: [{route: tcp.apps.example.org:20000}]}]")
	if job.State != "FAILED" || job.Errors[0].Detail != "For application 'x': route 'tcp.apps.example.org:20000': "+taken {
		t.Errorf("by manifest: %+v", job)
	}
	// A domain that was for tcp before still has its ports, and gets no more.
	old, err := w.store.TCPDomain(t.Context(), "old.example.net")
	must(t, err)
	w.unprocessable(w.call(http.MethodPost, "/v3/routes", two.token, port(two.space, old, 20001)),
		"Domain 'old.example.net' is for tcp, and no ports are set aside for it now. Use another domain, or ask an administrator to set PROA_TCP_DOMAIN and PROA_TCP_PORTS.")
	if _, err := w.pool.Exec(t.Context(), `insert into routes (guid, space_guid, domain_guid, host, hostname, path, port) values ('old', $1, $2, '', 'old.example.net', '', 20001)`, one.space.GUID, old.GUID); err != nil {
		t.Fatal(err)
	}
	w.unprocessable(w.call(http.MethodPost, "/v3/routes", two.token, port(two.space, d, 0)),
		"No port of domain 'tcp.apps.example.org' is free: routes have all of 20000-20001. Delete a route that nobody needs, or ask an administrator for more ports.")
	// A space gives back what it had.
	w.deleted("/v3/spaces/"+one.space.GUID, w.admin)
	w.port(two, d, 20000)
}

// Of many who ask at once for ports, each gets one of its own until there is none.
func TestLastPort(t *testing.T) {
	w, d := withTCP(t, 20000, 20002)
	one, two := w.tenant("one"), w.tenant("two")
	for round := range 2 {
		wanted := 0
		if round == 1 {
			wanted = 20001
		}
		done := make(chan reply)
		for i := range 10 {
			who := []tenant{one, two}[i%2]
			go func() { done <- w.call(http.MethodPost, "/v3/routes", who.token, port(who.space, d, wanted)) }()
		}
		made := 0
		for range 10 {
			switch got := <-done; {
			case got.status == http.StatusCreated:
				made++
			case got.status != http.StatusUnprocessableEntity:
				t.Errorf("refused with %+v", got)
			}
		}
		if want := []int{3, 1}[round]; made != want {
			t.Errorf("%d have got a port, want %d", made, want)
		}
		for _, r := range do[v3.List[v3.Route]](w, 200, http.MethodGet, "/v3/routes", w.admin, nil).Resources {
			w.deleted("/v3/routes/"+r.GUID, w.admin)
		}
	}
}

// A port is served as soon as it leads to what runs, and by the release that has it.
func TestTCPRouteIsPendingUntilRestart(t *testing.T) {
	w, d := withTCP(t, 20000, 20009)
	one := w.tenant("one")
	w.startable(one.space, "app", platform.Droplet{Lifecycle: platform.Lifecycle{Type: platform.LifecycleBuildpack}})
	w.applied(one.space, one.token, "applications: [{name: app, routes: [{route: TCP.apps.example.org:20005}]}]")
	app, _ := w.appCalled(one.space, "app")
	if got := w.addresses(app); got != "tcp.apps.example.org:20005 8080 tcp" {
		t.Errorf("mapped %s", got)
	}
	text := w.call(http.MethodGet, "/v3/apps/"+app.GUID+"/manifest", one.token, nil).body
	if !strings.Contains(text, "- route: tcp.apps.example.org:20005\n        protocol: tcp\n") {
		t.Errorf("rendered\n%s", text)
	}
	w.applied(one.space, one.token, text)
	if got := w.call(http.MethodPost, "/v3/spaces/"+one.space.GUID+"/manifest_diff", one.token, text).body; got != `{"diff":[]}` {
		t.Errorf("its own manifest: %s", got)
	}
	for manifest, detail := range map[string]string{
		"tcp.apps.example.org":                         "The route 'tcp.apps.example.org' has no port, and 'tcp.apps.example.org' is for tcp. Say which, such as tcp.apps.example.org:20000.",
		"tcp.apps.example.org:99":                      "route 'tcp.apps.example.org:99': Port 99 is not available on domain 'tcp.apps.example.org': it has the ports 20000-20009. Choose one of those, or leave it out and get one that is free.",
		"a.tcp.apps.example.org:20001":                 "route 'a.tcp.apps.example.org:20001': Hosts are not supported for TCP routes: those of domain 'tcp.apps.example.org' are told apart by their ports. Leave the host out.",
		"tcp.apps.example.org:70000":                   "The route 'tcp.apps.example.org:70000' is not valid: what follows the colon is no port, such as 20000.",
		"tcp.apps.example.org:20001, protocol: http1":  "route 'tcp.apps.example.org:20001': Protocol must be tcp for a route of tcp, not 'http1'. Leave it out.",
		"nowhere.example.com:20001":                    "The route 'nowhere.example.com:20001' did not match any existing domains. Use a host of one that `domains` lists, or have the domain created.",
		"broker.apps.example.org:20001, protocol: tcp": "route 'broker.apps.example.org:20001': Routes of domain 'apps.example.org' have no port: it speaks http only. Leave the port out.",
	} {
		job := w.apply(one.space, one.token, "applications: [{name: app, routes: [{route: "+manifest+"}]}]")
		if job.State != "FAILED" || job.Errors[0].Detail != "For application 'app': "+detail {
			t.Errorf("%s: %+v", manifest, job)
		}
	}

	serve := func() string {
		t.Helper()
		found, err := w.store.WantedRoutes(t.Context(), "default")
		must(t, err)
		var all []string
		for _, r := range found {
			for _, b := range r.Backends {
				all = append(all, fmt.Sprint(r.Hostname, ":", r.Port, " ", r.Protocol, " ", b.Port, " ", b.Protocol))
			}
		}
		slices.Sort(all)
		return strings.Join(all, ", ")
	}
	do[v3.App](w, 200, http.MethodPost, "/v3/apps/"+app.GUID+"/actions/start", one.token, nil)
	const usual = "tcp.apps.example.org:20005 tcp 8080 tcp"
	if got := serve(); got != usual {
		t.Errorf("served: %s", got)
	}
	r := w.port(one, d, 20000)
	do[v3.Destinations](w, 200, http.MethodPatch, "/v3/routes/"+r.GUID+"/destinations", one.token, leads(object{"app": object{"guid": app.GUID}, "port": 1883}))
	if state := do[v3.Route](w, 200, http.MethodGet, "/v3/routes/"+r.GUID, one.token, nil).Destinations[0].State; state != "pending" || serve() != usual {
		t.Errorf("%s, served: %s", state, serve())
	}
	do[v3.App](w, 200, http.MethodPost, "/v3/apps/"+app.GUID+"/actions/restart", one.token, nil)
	if got := serve(); got != "tcp.apps.example.org:20000 tcp 1883 tcp, "+usual {
		t.Errorf("after the restart: %s", got)
	}
	env := do[v3.AppEnv](w, 200, http.MethodGet, "/v3/apps/"+app.GUID+"/env", one.token, nil)
	if uris := fmt.Sprint(env.Application["VCAP_APPLICATION"].(map[string]any)["uris"]); uris != "[tcp.apps.example.org:20005 tcp.apps.example.org:20000]" {
		t.Errorf("the app is told %s", uris)
	}
	// A wildcard above them catches nothing: there are no requests to catch.
	do[v3.App](w, 200, http.MethodPost, "/v3/apps/"+app.GUID+"/actions/stop", one.token, nil)
	two := w.tenant("two")
	do[v3.Route](w, 201, http.MethodPost, "/v3/routes", w.admin, address(two.space, w.apps.GUID, "*", ""))
	if found, err := w.store.WantedRoutes(t.Context(), "default"); err != nil || len(found) != 0 {
		t.Errorf("with a wildcard above it: %+v %v", found, err)
	}
}
