package api_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	v3 "github.com/proa-dev/proa/platform/v3"
)

// addresses are those of an app, each with what its web process is spoken to there.
func (w *world) addresses(app v3.App) string {
	w.t.Helper()
	var all []string
	for _, r := range do[v3.List[v3.Route]](w, 200, http.MethodGet, "/v3/apps/"+app.GUID+"/routes", w.admin, nil).Resources {
		for _, d := range r.Destinations {
			if d.App.GUID == app.GUID {
				all = append(all, fmt.Sprint(r.URL, " ", d.Port, " ", d.Protocol))
			}
		}
	}
	return strings.Join(all, ", ")
}

func TestManifestRoutes(t *testing.T) {
	w := newWorld(t)
	one := w.tenant("one")
	w.domain(one, "one.example.net")
	step := func(manifest, want string) {
		t.Helper()
		w.applied(one.space, one.token, "applications: [{name: My App, "+manifest+"}]")
		app, _ := w.appCalled(one.space, "My%20App")
		if got := w.addresses(app); got != want {
			t.Errorf("%s: %s, want %s", manifest, got, want)
		}
	}
	step("memory: 64M", "")
	step("default-route: true", "my-app.apps.example.org 8080 http1")
	step("default-route: true, random-route: true", "my-app.apps.example.org 8080 http1") // there is one
	step("no-route: true", "")
	step("no-route: true, default-route: true, routes: [{route: x.apps.example.org}]", "")
	step("routes: [{route: My-App.apps.example.org}, {route: www.one.example.net/shop}], default-route: true", "my-app.apps.example.org 8080 http1, www.one.example.net/shop 8080 http1")
	step("routes: [{route: my-app.apps.example.org, protocol: http2}, {route: www.one.example.net/shop, protocol: http2}]", "my-app.apps.example.org 8080 http2, www.one.example.net/shop 8080 http2")
	job := w.apply(one.space, one.token, "applications: [{name: My App, routes: [{route: my-app.apps.example.org, protocol: http1}]}]")
	if job.State != "FAILED" || job.Errors[0].Detail != "For application 'My App': Port 8080 of process 'web' cannot speak http1 and http2 at once. Use one protocol on all its routes, or another port." {
		t.Errorf("two protocols: %+v", job)
	}
}

func TestManifestRoutesStay(t *testing.T) {
	w := newWorld(t)
	one, two := w.tenant("one"), w.tenant("two")
	w.domain(one, "one.example.net")
	w.domain(one, "eu.one.example.net")
	w.applied(one.space, one.token, "applications: [{name: app, routes: [{route: www.one.example.net/shop}, {route: eu.one.example.net}, {route: a.eu.one.example.net}]}]")
	app, _ := w.appCalled(one.space, "app")
	if got := w.addresses(app); got != "www.one.example.net/shop 8080 http1, eu.one.example.net 8080 http1, a.eu.one.example.net 8080 http1" {
		t.Errorf("mapped %s", got)
	}
	// What is not named stays, and so does the port of a route that leads to web already.
	r := do[v3.List[v3.Route]](w, 200, http.MethodGet, "/v3/routes?paths=/shop", one.token, nil).Resources[0]
	do[v3.Destinations](w, 200, http.MethodPatch, "/v3/routes/"+r.GUID+"/destinations", one.token, leads(object{"app": object{"guid": app.GUID}, "port": 9000}))
	w.applied(one.space, one.token, "applications: [{name: app, routes: [{route: www.one.example.net/shop, protocol: http2}]}]")
	if got := w.addresses(app); got != "www.one.example.net/shop 9000 http2, eu.one.example.net 8080 http1, a.eu.one.example.net 8080 http1" {
		t.Errorf("mapped %s", got)
	}
	// The manifest of the app says so, and is what the app is.
	text := w.call(http.MethodGet, "/v3/apps/"+app.GUID+"/manifest", one.token, nil).body
	if !strings.Contains(text, "routes:\n      - route: www.one.example.net/shop\n        protocol: http2\n      - route: eu.one.example.net\n        protocol: http1\n") {
		t.Errorf("rendered\n%s", text)
	}
	w.applied(one.space, one.token, text)
	diff := func(manifest string) string {
		t.Helper()
		return w.call(http.MethodPost, "/v3/spaces/"+one.space.GUID+"/manifest_diff", one.token, manifest).body
	}
	if got := diff(text); got != `{"diff":[]}` {
		t.Errorf("its own manifest: %s", got)
	}
	if got := diff("applications: [{name: app, routes: [{route: eu.one.example.net}, {route: new.apps.example.org}], default-route: true}]"); got != `{"diff":[{"op":"add","path":"/applications/0/routes/1","value":{"route":"new.apps.example.org"}}]}` {
		t.Errorf("another: %s", got)
	}
	w.applied(one.space, one.token, "applications: [{name: bare, no-route: true}]")
	bare, _ := w.appCalled(one.space, "bare")
	if text := w.call(http.MethodGet, "/v3/apps/"+bare.GUID+"/manifest", one.token, nil).body; !strings.Contains(text, "no-route: true") {
		t.Errorf("rendered\n%s", text)
	}

	// Somebody else's host, and what is no route.
	w.applied(two.space, two.token, "applications: [{name: shop, default-route: true}]")
	for manifest, detail := range map[string]string{
		"name: shop, default-route: true":                                     "The host 'shop' of domain 'apps.example.org' is taken by another space. Choose another host. Name a route in the manifest, or push with --random-route.",
		"name: api, default-route: true":                                      "The host 'api' of domain 'apps.example.org' is reserved for the platform itself. Choose another host. Name a route in the manifest, or push with --random-route.",
		"name: x, routes: [{route: a.apps.example.org:1234}]":                 "route 'a.apps.example.org:1234': Routes of domain 'apps.example.org' have no port: it speaks http only. Leave the port out.",
		"name: x, routes: [{route: a.apps.example.org, protocol: tcp}]":       "route 'a.apps.example.org': Protocol must be http1 or http2 for a route of http, not 'tcp'.",
		"name: x, routes: [{route: a.apps.example.org/b/}]":                   "The route 'a.apps.example.org/b/' is not valid: Path cannot end with a slash: /b gets what is below it too.",
		"name: x, routes: [{route: a.b.apps.example.org}]":                    "The route 'a.b.apps.example.org' did not match any existing domains. Use a host of one that `domains` lists, or have the domain created.",
		"name: x, routes: [{route: a.apps.example.org, options: {lb: hash}}]": "route 'a.apps.example.org': Routes have no option 'lb' here: requests go to the instances of a route in turn. Leave the options out.",
	} {
		job := w.apply(one.space, one.token, "applications: [{"+manifest+"}]")
		name := regexp.MustCompile(`name: (\w+)`).FindStringSubmatch(manifest)[1]
		if job.State != "FAILED" || job.Errors[0].Detail != "For application '"+name+"': "+detail {
			t.Errorf("%s: %+v", manifest, job)
		}
	}
	// A random host is another each time.
	w.applied(one.space, one.token, "applications: [{name: shop, random-route: true}, {name: Shop, random-route: true}]")
	host := regexp.MustCompile(`^shop-[a-z]+-[a-z]+\.apps\.example\.org 8080 http1$`)
	shop, _ := w.appCalled(one.space, "shop")
	twin, _ := w.appCalled(one.space, "Shop")
	if a, b := w.addresses(shop), w.addresses(twin); !host.MatchString(a) || !host.MatchString(b) || a == b {
		t.Errorf("got %s and %s", a, b)
	}
}

// Two pushes of one new app at once: one app, one route.
func TestManifestRouteAtOnce(t *testing.T) {
	w := newWorld(t)
	one := w.tenant("one")
	done := make(chan reply)
	for range 8 {
		go func() {
			done <- w.call(http.MethodPost, "/v3/spaces/"+one.space.GUID+"/actions/apply_manifest", one.token, "applications: [{name: app, default-route: true}]")
		}()
	}
	for range 8 {
		got := <-done
		if job := do[v3.Job](w, 200, http.MethodGet, got.header.Get("Location"), one.token, nil); job.State != "COMPLETE" {
			t.Errorf("the job: %+v", job)
		}
	}
	app, _ := w.appCalled(one.space, "app")
	if got := w.addresses(app); got != "app.apps.example.org 8080 http1" {
		t.Errorf("mapped %s", got)
	}
}
