package cli

import (
	"slices"
	"strings"
	"testing"
)

func TestPushWithStrategy(t *testing.T) {
	d := &deployments{}
	w := loggedIn(t, d.serve)
	w.env["DIR"] = files(t, map[string]string{"manifest.yml": "applications:\n- {name: shop}\n", "index.html": "hello"})
	out := w.ok("push", "--strategy", "rolling", "--max-in-flight", "2", "-i", "4", "-m", "1G")
	contains(t, out, "rolling, deploying", "rolling, deployed", "config server", "Open: http://shop.example.com")
	want := []string{"POST /v3/spaces/s-1/manifest_diff", "POST /v3/spaces/s-1/actions/apply_manifest", "POST /v3/packages", "POST /v3/packages/k-1/upload",
		"POST /v3/builds", "POST /v3/deployments"}
	if got := w.changes(); !slices.Equal(got, want) {
		t.Errorf("changes came in the order %q", got)
	}
	// The sizes change with the instances, not before.
	if strings.Contains(w.manifest, "memory") || strings.Contains(w.manifest, "instances") || !strings.Contains(w.manifest, "default-route") {
		t.Errorf("applied\n%s", w.manifest)
	}
	asked := `{"strategy":"rolling","droplet":{"guid":"d-1"},"options":{"max_in_flight":2,"web_instances":4,"memory_in_mb":1024,"disk_in_mb":null,` +
		`"log_rate_limit_in_bytes_per_second":null},"relationships":{"app":{"data":{"guid":"a-1"}}}}`
	if d.asked != asked {
		t.Errorf("asked for\n%s, want\n%s", d.asked, asked)
	}
}

func TestCanary(t *testing.T) {
	d := &deployments{staged: true}
	w := loggedIn(t, d.serve)
	out := w.ok("restart", "shop", "--strategy", "canary", "--instance-steps", "10, 50")
	contains(t, out, "canary, paused", "Next: proa continue-deployment shop    # or: proa cancel-deployment shop", "deployment:      canary, paused")
	contains(t, d.asked, `"canary":{"steps":[{"instance_weight":10},{"instance_weight":50}]}`)
	if strings.Contains(d.asked, "droplet") {
		t.Errorf("nothing was staged, and yet a droplet is named: %s", d.asked)
	}
	if out := w.ok("continue-deployment", "shop"); !strings.Contains(out, "canary, deployed") || strings.Contains(out, "Next:") {
		t.Errorf("got\n%s", out)
	}
	contains(t, w.refused(ExitNotFound, "continue-deployment", "shop"), "No deployment of app shop is going on.")
	w.ok("restart", "shop", "--strategy", "canary")
	contains(t, w.ok("cancel-deployment", "shop"), "OK", "proa app shop")
	contains(t, w.refused(ExitFailed, "continue-deployment", "shop"), "Cannot continue a deployment")
}

func TestDeploymentThatDoesNotWorkOut(t *testing.T) {
	d := &deployments{staged: true, ends: "SUPERSEDED"}
	w := loggedIn(t, d.serve)
	contains(t, w.refused(ExitFailed, "restart", "shop", "--strategy", "rolling"), "it is superseded", "proa app shop")
	d.stuck, w.env["PROA_STARTUP_TIMEOUT"] = true, "20ms"
	w.heard = nil
	contains(t, w.refused(ExitFailed, "restart", "shop", "--strategy", "rolling"), "has not been deployed within 20ms", "proa logs shop --recent")
	if got := w.changes(); !slices.Equal(got, []string{"POST /v3/deployments", "POST /v3/deployments/y-1/actions/cancel"}) {
		t.Errorf("changes: %q", got)
	}
	w.env["PROA_STARTUP_TIMEOUT"] = ""
	w.ok("restart", "shop", "--strategy", "rolling", "--no-wait") // the first new instance is enough
	before := len(w.heard)
	for says, args := range map[string][]string{
		"choose rolling or canary":     {"restart", "shop", "--strategy", "blue"},
		"needs --strategy.":            {"restage", "shop", "--max-in-flight", "2"},
		"at least 1":                   {"restage", "shop", "--strategy", "rolling", "--max-in-flight", "0"},
		"needs --strategy canary":      {"push", "shop", "--strategy", "rolling", "--instance-steps", "10"},
		"percentages that grow":        {"restart", "shop", "--strategy", "canary", "--instance-steps", "50,10"},
		"--no-start and --strategy ex": {"push", "shop", "--strategy", "rolling", "--no-start"},
	} {
		contains(t, w.refused(ExitUsage, args...), says)
	}
	if len(w.heard) != before {
		t.Errorf("mistakes were noticed too late: %q", w.heard[before:])
	}
}

func TestRestageWithStrategy(t *testing.T) {
	d := &deployments{}
	w := loggedIn(t, d.serve)
	w.ok("restage", "shop", "--strategy", "rolling")
	if got := w.changes(); !slices.Equal(got, []string{"POST /v3/builds", "POST /v3/deployments"}) {
		t.Errorf("changes: %q", got)
	}
	contains(t, d.asked, `"droplet":{"guid":"d-1"}`)
	if strings.Contains(d.asked, "options") {
		t.Errorf("options are sent that nobody gave: %s", d.asked)
	}
}

func TestRevisions(t *testing.T) {
	d := &deployments{}
	w := loggedIn(t, d.serve)
	contains(t, w.ok("revisions", "shop"), "version", "New droplet deployed.", "yes         deployed", "Initial revision.")
	contains(t, w.ok("revisions", "shop", "--output", "json"), `"deployed": true`)
	contains(t, w.ok("revision", "shop", "--version", "2"), "Initial revision.", "COLOUR: green")
	contains(t, w.refused(ExitUsage, "revision", "shop"), "--version", "proa revisions shop")
	contains(t, w.refused(ExitNotFound, "revision", "shop", "--version", "9"), "has no revision 9")
	contains(t, w.refused(ExitFailed, "rollback", "shop", "--version", "1", "-f"), "its droplet is gone")
	contains(t, w.refused(ExitUsage, "rollback", "shop", "--version", "2"), "Really roll app shop back to revision 2?")
	contains(t, w.ok("rollback", "shop", "--version", "2", "-f", "--max-in-flight", "3"), "rolling, deployed")
	contains(t, d.asked, `"revision":{"guid":"v-2"}`, `"strategy":"rolling"`, `"max_in_flight":3`)
}
