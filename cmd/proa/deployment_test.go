package main_test

import (
	"strings"
	"testing"
)

// No controller is here: a deployment of an app that runs goes on for ever, and one of an app that does not is done at once.
func TestDeploymentsAndRevisions(t *testing.T) {
	w := newWorld(t)
	w.as("ada")
	w.ok("create-org research")
	w.ok("target -o research")
	w.ok("create-space dev")
	w.ok("target -s dev")
	w.started("shop")
	w.ok("revisions shop", "1 ", "Initial revision.", "yes", "deployed")
	w.refused("continue-deployment shop", "No deployment of app shop is going on.")

	w.env["PROA_STARTUP_TIMEOUT"] = "50ms"
	w.refused("restart shop --strategy rolling --max-in-flight 2", "has not been deployed within 50ms", "The deployment is canceled")
	w.ok("app shop", "deployment:", "rolling, canceling, up to 2 at a time")
	w.refused("restart shop --strategy canary --instance-steps 10,50", "has not been deployed")
	w.ok("app shop", "canary, canceling, step 1 of ")
	w.refused("continue-deployment shop", "continue")

	w.ok("stop shop")
	w.ok("set-env shop COLOUR green")
	w.ok("restart shop --strategy rolling", "rolling, deployed")
	w.ok("revisions shop", "New environment variables deployed.")
	w.ok("revision shop --version 1 --output json", `"deployed": false`)
	w.refused("revision shop --version 99", "has no revision 99")
	w.ok("stop shop")
	w.ok("rollback shop --version 1 -f", "rolling, deployed")
	w.ok("revisions shop", "Rolled back to revision 1.")
	if out := w.ok("env shop"); strings.Contains(out, "COLOUR") {
		t.Errorf("after going back:\n%s", out)
	}
}
