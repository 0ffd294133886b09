package cli

import (
	"slices"
	"strings"
	"testing"

	v3 "github.com/proa-dev/proa/platform/v3"
)

// changes are the requests that were not only for looking.
func (w *world) changes() []string {
	return slices.DeleteFunc(slices.Clone(w.heard), func(l string) bool { return strings.HasPrefix(l, "GET ") })
}

// refused is run for a command that must not work.
func (w *world) refused(code int, args ...string) string {
	w.t.Helper()
	out, errs, got := w.run(args...)
	if got != code {
		w.t.Fatalf("proa %s: exit %d, want %d\n%s%s", strings.Join(args, " "), got, code, out, errs)
	}
	return errs
}

func TestDomains(t *testing.T) {
	w := loggedIn(t, (&routing{}).serve)
	out := w.ok("domains")
	contains(t, out, "example.com", "shared", "own.example.org", "private", "http")
	contains(t, w.ok("create-private-domain", "research", "new.example.org"), "OK", "proa create-route new.example.org --hostname HOST")
	w.ok("create-shared-domain", "everybody.example.org")
	contains(t, w.ok("domains", "--output", "json"), `"name": "everybody.example.org"`)
	contains(t, w.refused(ExitFailed, "create-shared-domain", "example.com"), "already in use")
	contains(t, w.refused(ExitFailed, "delete-private-domain", "example.com", "-f"), "is shared, not private", "proa delete-shared-domain example.com")
	contains(t, w.refused(ExitUsage, "delete-shared-domain", "example.com"), "and all routes under it?", "--force")
	contains(t, w.refused(ExitNotFound, "delete-shared-domain", "gone.example.com", "-f"), "proa domains")
	w.ok("delete-private-domain", "own.example.org", "-f")
	w.ok("delete-shared-domain", "example.com", "-f")
	if out := w.ok("domains"); strings.Contains(out, "own.") || strings.Contains(out, " example.com") {
		t.Errorf("a domain is still there:\n%s", out)
	}
}

func TestRoutes(t *testing.T) {
	p := &routing{}
	w := loggedIn(t, p.serve)
	_, errs, _ := w.run("routes")
	contains(t, errs, "There are no routes.", "proa create-route")
	contains(t, w.ok("check-route", "example.com", "--hostname", "shop"), "does not exist", "proa create-route example.com --hostname shop")
	contains(t, w.ok("create-route", "example.com", "--hostname", "shop"), "proa map-route APP example.com --hostname shop")
	contains(t, w.ok("create-route", "example.com", "-n", "shop"), "Route already exists", "OK")
	w.ok("create-route", "example.com", "--hostname", "shop", "--path", "api")
	w.ok("create-route", "example.com")
	contains(t, w.ok("check-route", "example.com", "--hostname", "shop", "--path", "/api", "--output", "json"), `"matching_route": true`)
	contains(t, w.ok("route", "example.com", "--hostname", "shop", "--path", "/api"), "shop.example.com/api", "It leads nowhere.", "proa map-route APP example.com --hostname shop --path /api")

	// Without --hostname and --path the route without them is meant, not just any.
	w.ok("delete-route", "example.com", "-f")
	if len(p.routes) != 2 || p.routes[0].Host != "shop" {
		t.Fatalf("left are %v", p.routes)
	}
	contains(t, w.refused(ExitNotFound, "delete-route", "example.com", "-f"), "There is no route example.com")
	contains(t, w.refused(ExitNotFound, "delete-route", "example.com", "-f", "--hostname", "shop,other"), "There is no route shop,other.example.com")

	w.ok("create-route", "example.com", "--hostname", "shop", "--path", "/a,b")
	w.ok("delete-route", "example.com", "--hostname", "shop", "--path", "/a,b", "-f")

	contains(t, w.ok("map-route", "shop", "example.com", "--hostname", "shop"), "OK", "Open: http://shop.example.com\n")
	contains(t, w.refused(ExitUsage, "delete-route", "example.com", "--hostname", "shop"), "has 1 destination. Really delete it?")
	w.ok("delete-orphaned-routes", "-f")
	if len(p.routes) != 1 || p.routes[0].Path != "" {
		t.Errorf("left are %v", p.routes)
	}
}

func TestMapRoute(t *testing.T) {
	p := &routing{}
	w := loggedIn(t, p.serve)
	on := []string{"example.com", "--hostname", "shop"}
	run := func(command, app string, more ...string) string {
		t.Helper()
		return w.ok(slices.Concat([]string{command, app}, on, more)...)
	}
	run("map-route", "shop") // makes the route
	want := []string{"GET /v3/domains", "GET /v3/apps", "GET /v3/routes", "POST /v3/routes", "POST /v3/routes/r-101/destinations"}
	if !slices.Equal(w.heard, want) {
		t.Errorf("requests came in the order %q", w.heard)
	}
	contains(t, run("map-route", "shop"), "leads to app shop already.", "OK")
	if got := w.changes(); len(got) != 2 {
		t.Errorf("a mapping that is there was made again: %q", got)
	}
	contains(t, run("map-route", "shop", "--app-port", "9191"), "pending: restart the app to open port 9191\nNext: proa restart shop\n")
	contains(t, w.ok("routes"), "route             destinations", "shop.example.com  shop:8080", "                  shop:9191 pending", "proa restart shop")
	contains(t, w.ok("route", "example.com", "--hostname", "shop"), "9191  http1     -       pending", "8080  http1     -       mapped")
	contains(t, w.ok("routes", "--org-level", "--output", "json"), `"app_names": [`, `"state": "pending"`, `"space_name": "dev"`)
	contains(t, w.ok("app", "shop"), "shop.example.com port 9191 pending", "proa restart shop")
	contains(t, w.ok("apps", "--output", "json"), `"url": "shop.example.com"`)

	contains(t, run("unmap-route", "shop", "--app-port", "9191"), "OK")
	run("map-route", "next", "--process", "worker", "--app-protocol", "http2")
	contains(t, w.ok("routes"), "next:8080 worker http2")
	run("map-route", "next", "--process", "worker", "--app-protocol", "http1")
	if out := w.ok("routes"); strings.Contains(out, "http2") {
		t.Errorf("the protocol stayed:\n%s", out)
	}
	run("unmap-route", "next")
	_, errs, code := w.run("unmap-route", "next", "example.com", "--hostname", "shop")
	if code != ExitOK || !strings.Contains(errs, "does not lead to app next") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if d := p.routes[0].Destinations; len(d) != 1 || d[0].App.GUID != "a-1" {
		t.Errorf("left are %v", d)
	}
	for _, c := range [][]string{{"--app-port", "80"}, {"--destination-weight", "101"}, {"--app-protocol", "spdy"}} {
		before := len(w.heard)
		w.refused(ExitUsage, slices.Concat([]string{"map-route", "shop", "example.com", "--hostname", "fresh"}, c)...)
		if len(w.heard) != before {
			t.Errorf("%q was noticed too late: %q", c, w.heard[before:])
		}
	}
	contains(t, w.refused(ExitNotFound, "map-route", "gone", "example.com"), "There is no app")
	contains(t, w.refused(ExitNotFound, "unmap-route", "shop", "example.com", "--hostname", "gone"), "There is no route gone.example.com")
}

// A route of tcp is a port: without one a new route is meant, or nothing.
func TestTCPRoutes(t *testing.T) {
	p := &routing{}
	w := loggedIn(t, p.serve)
	contains(t, w.ok("domains"), "tcp.example.com  shared        tcp")
	contains(t, w.ok("create-route", "tcp.example.com", "--port", "20001"), "tcp.example.com:20001", "Next: proa map-route APP tcp.example.com --port 20001")
	contains(t, w.ok("create-route", "tcp.example.com", "--port", "20001"), "Route already exists", "OK")
	contains(t, w.ok("create-route", "tcp.example.com"), "The route is tcp.example.com:20000.", "Next: proa map-route APP tcp.example.com --port 20000")
	contains(t, w.refused(ExitFailed, "create-route", "tcp.example.com", "--port", "99"), "Port 99 is not available")
	contains(t, w.refused(ExitFailed, "create-route", "tcp.example.com", "--hostname", "shop"), "Hosts are not supported for TCP routes")
	contains(t, w.ok("check-route", "tcp.example.com", "--port", "20001"), "The route tcp.example.com:20001 exists.")
	contains(t, w.ok("check-route", "tcp.example.com", "--port", "20002"), "does not exist", "proa create-route tcp.example.com --port 20002")
	contains(t, w.ok("map-route", "shop", "tcp.example.com", "--port", "20001"), "OK", "Connect: tcp.example.com:20001\n")
	if n := len(p.routes); n != 2 {
		t.Errorf("there are %d routes", n)
	}
	contains(t, w.ok("map-route", "shop", "tcp.example.com", "--app-port", "1883"), "The route is tcp.example.com:20002.", "pending: restart the app to open port 1883")
	contains(t, w.ok("routes"), "tcp.example.com:20001  shop:8080", "tcp.example.com:20002  shop:1883 pending")
	contains(t, w.ok("route", "tcp.example.com", "--port", "20001"), "port:     20001", "protocol: tcp", "8080  tcp       -       mapped", "Connect: tcp.example.com:20001")
	contains(t, w.ok("app", "shop"), "tcp.example.com:20001", "tcp.example.com:20002 port 1883 pending")
	for _, c := range [][]string{{"route", "tcp.example.com"}, {"delete-route", "tcp.example.com", "-f"}, {"unmap-route", "shop", "tcp.example.com"}, {"check-route", "tcp.example.com"}} {
		contains(t, w.refused(ExitUsage, c...), "say which one with --port")
	}
	contains(t, w.refused(ExitNotFound, "route", "tcp.example.com", "--port", "20009"), "There is no route tcp.example.com:20009")
	w.ok("unmap-route", "shop", "tcp.example.com", "--port", "20001")
	w.ok("delete-route", "tcp.example.com", "--port", "20001", "-f")
	if n := len(p.routes); n != 2 || *p.routes[0].Port != 20000 || *p.routes[1].Port != 20002 {
		t.Errorf("left are %d routes", n)
	}
}

// A weight is a percentage, and the others share the rest: a platform that wants 100 together gets it.
func TestWeights(t *testing.T) {
	p := &routing{}
	w := loggedIn(t, p.serve)
	weigh := func(app string, more ...string) []string {
		return slices.Concat([]string{"map-route", app, "example.com", "--hostname", "shop"}, more)
	}
	w.ok(weigh("shop", "--app-protocol", "http2", "--destination-weight", "70")...)
	contains(t, w.ok("routes"), "shop:8080 http2 weight 100") // alone
	w.ok(weigh("next", "--destination-weight", "10")...)
	shows := func(want ...string) {
		t.Helper()
		contains(t, w.ok("routes"), want...)
	}
	shows("next:8080 weight 10", "shop:8080 http2 weight 90")
	contains(t, w.refused(ExitUsage, weigh("a,b")...), "--destination-weight")
	w.ok(weigh("a,b", "--destination-weight", "25", "--app-port", "9000")...)
	shows("a,b:9000 weight 25", "next:8080 weight 8", "shop:8080 http2 weight 67")
	w.ok(weigh("shop", "--destination-weight", "98")...)
	shows("shop:8080 http2 weight 98", "a,b:9000 weight 1", "next:8080 weight 1")
	contains(t, w.ok("app", "shop"), "shop.example.com http2 weight 98 of 100")
	contains(t, w.refused(ExitUsage, weigh("shop", "--destination-weight", "99")...), "nothing is left for the other destinations")
}

func TestReweigh(t *testing.T) {
	for others := range 20 {
		for weight := 1; weight <= 100-others; weight++ {
			var r v3.Route
			for i := range others {
				w := 1 + i*i
				r.Destinations = append(r.Destinations, v3.Destination{App: v3.DestinationApp{GUID: "other"}, Port: 1024 + i, Weight: &w})
			}
			port, none, at := (*int)(nil), "", &weight
			all, err := reweigh(r, v3.App{}, mapping{kind: &none, protocol: &none, port: &port, weight: &at})
			if err != nil {
				t.Fatal(err)
			}
			sum := 0
			for _, d := range all {
				if *d.Weight < 1 {
					t.Fatalf("%d others beside %d: one gets nothing", others, weight)
				}
				sum += *d.Weight
			}
			if sum != 100 || len(all) != others+1 || others > 0 && *all[0].Weight != weight {
				t.Fatalf("%d others beside %d: %d together", others, weight, sum)
			}
		}
	}
}

func TestDeleteAppWithRoutes(t *testing.T) {
	p := &routing{}
	w := loggedIn(t, p.serve)
	w.ok("map-route", "shop", "example.com", "--hostname", "shop")
	w.ok("map-route", "shop", "example.com", "--hostname", "both")
	w.ok("map-route", "next", "example.com", "--hostname", "both")
	contains(t, w.refused(ExitFailed, "delete", "shop", "-r", "-f"), "The route both.example.com serves another app too, so nothing was deleted.", "proa delete shop")
	if len(p.apps) != 3 || len(p.routes) != 2 {
		t.Fatalf("left are %v and %v", p.apps, p.routes)
	}
	w.ok("unmap-route", "next", "example.com", "--hostname", "both")
	w.ok("delete", "shop", "-r", "-f")
	if len(p.apps) != 2 || len(p.routes) != 0 {
		t.Errorf("left are %v and %v", p.apps, p.routes)
	}
}

// At a Cloud Foundry nothing says that a destination is pending, and https is spoken where the API does.
func TestRoutesElsewhere(t *testing.T) {
	p := &routing{elsewhere: true}
	w := loggedIn(t, p.serve)
	contains(t, w.ok("map-route", "shop", "example.com", "--hostname", "shop", "--app-port", "9191"), "Open: http://shop.example.com")
	out := w.ok("route", "example.com", "--hostname", "shop")
	contains(t, out, "9191", "mapped")
	for api, want := range map[string]string{"https://api.example.com": "https://shop.example.com/a", "http://127.0.0.1:8080": "http://shop.example.com/a"} {
		s := &session{cfg: Config{API: api}}
		if got := s.link(v3.Route{URL: "shop.example.com/a", Protocol: "http"}); got != want {
			t.Errorf("opens at %s, want %s", got, want)
		}
	}
	s := &session{cfg: Config{API: "https://api.example.com", Apps: "http://apps.localhost:8880"}}
	if got := s.link(v3.Route{URL: "shop.example.com"}); got != "http://shop.example.com:8880" {
		t.Errorf("opens at %s", got)
	}
	s.cfg.Apps = "https://apps.example.com:443"
	if got := s.link(v3.Route{URL: "shop.example.com"}); got != "https://shop.example.com" {
		t.Errorf("opens at %s", got)
	}
	for _, r := range []v3.Route{{URL: "*.example.com", Host: "*"}, {URL: "tcp.example.com:1024", Protocol: "tcp"}} {
		if got := s.link(r); got != "" {
			t.Errorf("%s opens at %s", r.URL, got)
		}
	}
	s.Env = &Env{}
	for want, r := range map[string]v3.Route{"Connect: tcp.example.com:1024": {URL: "tcp.example.com:1024", Protocol: "tcp"}, "Open: https://shop.example.com": {URL: "shop.example.com", Protocol: "http"}, "": {URL: "*.example.com", Host: "*"}} {
		if got := s.reach(r); got != want {
			t.Errorf("%s: %q", r.URL, got)
		}
	}
}
