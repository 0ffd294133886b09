package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDomainsAndRoutes(t *testing.T) {
	w := newWorld(t)
	w.as("ada")
	w.ok("create-org research")
	w.ok("target -o research")
	w.ok("create-space dev")
	w.ok("create-space other")
	w.ok("target -s dev")
	w.ok("domains", appsDomain, "shared")
	w.ok("create-private-domain research shop.example.com", "proa create-route shop.example.com --hostname HOST")
	w.ok("create-shared-domain more.example.net")
	w.ok("domains", "shop.example.com", "private", "more.example.net")
	w.refused("create-shared-domain shop.example.com", "already in use")
	w.refused("create-route "+appsDomain+" --hostname api", "reserved")

	w.started("shop")
	w.ok("create-app next")
	at := appsDomain + " --hostname shop"
	w.ok("check-route "+at, "does not exist")
	w.ok("create-route " + at)
	w.ok("create-route "+at, "Route already exists", "OK")
	w.ok("check-route "+at, "shop."+appsDomain+" exists")
	w.ok("map-route shop "+at, "Open: https://shop."+appsDomain+":8443\n")
	w.ok("map-route shop "+at, "leads to app shop already")
	w.ok("map-route shop "+at+" --path /metrics --app-port 9191", "pending: restart the app to open port 9191", "Next: proa restart shop")
	w.ok("routes", "shop."+appsDomain, "shop:8080", "shop:9191 pending", "Next: proa restart shop")
	w.ok("app shop", "shop."+appsDomain+"/metrics port 9191 pending")
	w.ok("apps", "shop."+appsDomain+", shop."+appsDomain+"/metrics")
	w.ok("route "+at+" --path /metrics", "9191", "pending")

	// A restart makes a release with the port.
	guid := strings.TrimSpace(w.ok("app shop --guid"))
	w.ok("curl -X POST --fail /v3/apps/" + guid + "/actions/restart")
	if out := w.ok("routes"); strings.Contains(out, "pending") {
		t.Errorf("after a restart:\n%s", out)
	}

	w.ok("map-route next "+at+" --destination-weight 10", "Next: proa start next")
	w.ok("routes", "shop:8080 weight 90", "next:8080 weight 10")
	w.refused("map-route next "+at+" --app-port 9000", "--destination-weight")
	w.refused("delete shop -r -f", "serves another app too, so nothing was deleted")
	w.ok("unmap-route next " + at)
	w.ok("unmap-route next "+at, "does not lead to app next")
	w.ok("map-route next shop.example.com --app-protocol http2", "OK")
	w.ok("map-route next shop.example.com --app-protocol http1", "OK")
	w.ok("route shop.example.com", "http1")
	w.ok("target -s other")
	w.refused("create-route "+at+" --path /mine", "taken by another space")
	w.ok("routes --org-level", "space", "dev", "shop.example.com")
	w.ok("target -s dev")

	w.ok("create-route " + appsDomain + " --hostname lonely")
	w.ok("delete-orphaned-routes -f")
	w.ok("check-route "+appsDomain+" --hostname lonely", "does not exist")
	w.ok("delete shop -r -f")
	w.ok("check-route "+at, "does not exist")
	w.ok("delete-route shop.example.com -f")
	w.refused("delete-route shop.example.com -f", "There is no route shop.example.com")
	w.refused("delete-shared-domain shop.example.com -f", "is private, not shared")
	w.ok("delete-private-domain shop.example.com -f")
	w.as("bob")
	w.refused("delete-shared-domain more.example.net -f", "not authorized", "ask for a role")
	w.refused("create-shared-domain mine.example.net", "not authorized")
	w.as("ada")
	w.ok("delete-shared-domain more.example.net -f")
}

func TestRoutesOfAManifest(t *testing.T) {
	w := newWorld(t)
	w.as("ada")
	w.ok("create-org research")
	w.ok("target -o research")
	w.ok("create-space dev")
	w.ok("target -s dev")
	file := filepath.Join(t.TempDir(), "manifest.yml")
	apply := func(text string) {
		t.Helper()
		must(t, os.WriteFile(file, []byte("applications:\n"+text), 0o600))
		w.ok("apply-manifest -f " + file)
	}
	apply("- {name: shop, default-route: true}\n- {name: api, routes: [{route: shop." + appsDomain + "/api, protocol: http2}]}\n- {name: odd, random-route: true}\n- {name: none, no-route: true}\n")
	w.ok("routes", "shop."+appsDomain, "shop:8080", "shop."+appsDomain+"/api", "api:8080 http2", "odd-", "odd:8080")
	if out := w.ok("app none"); !strings.Contains(out, "routes:          -") {
		t.Errorf("got\n%s", out)
	}
	apply("- {name: shop, no-route: true}\n")
	if out := w.ok("app shop"); !strings.Contains(out, "routes:          -") {
		t.Errorf("got\n%s", out)
	}
}
