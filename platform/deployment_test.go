package platform_test

import (
	"strings"
	"testing"

	"github.com/proa-dev/proa/platform"
)

func TestDeploymentBegins(t *testing.T) {
	for name, c := range map[string]struct {
		asked platform.Deployment
		says  string
	}{
		"nothing said":    {platform.Deployment{}, ""},
		"canary":          {platform.Deployment{Strategy: platform.Canary, Steps: []int{1, 50, 100}}, ""},
		"unknown":         {platform.Deployment{Strategy: "bluegreen"}, "Strategy 'bluegreen' is not a supported deployment strategy"},
		"none in flight":  {platform.Deployment{MaxInFlight: -1}, "Max in flight must be an integer greater than 0"},
		"many in flight":  {platform.Deployment{MaxInFlight: 1 << 30}, "at most 10000"},
		"steps, rolling":  {platform.Deployment{Steps: []int{10}}, "canary"},
		"steps back":      {platform.Deployment{Strategy: platform.Canary, Steps: []int{50, 10}}, "greater than the one before"},
		"a step of none":  {platform.Deployment{Strategy: platform.Canary, Steps: []int{0, 10}}, "from 1 to 100"},
		"a step too far":  {platform.Deployment{Strategy: platform.Canary, Steps: []int{10, 101}}, "from 1 to 100"},
		"too many steps":  {platform.Deployment{Strategy: platform.Canary, Steps: make([]int, 101)}, "at most 100 steps"},
		"a scale of none": {platform.Deployment{Scale: platform.ProcessScale{MemoryMB: new(0)}}, "Memory in mb must be greater than 0"},
	} {
		t.Run(name, func(t *testing.T) {
			d := c.asked
			err := d.Begin()
			switch {
			case c.says == "" && (err != nil || d.Value != platform.DeploymentActive || d.Reason != platform.Deploying || d.MaxInFlight < 1):
				t.Errorf("it is %+v, %v", d, err)
			case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
				t.Errorf("it says %v, want something about %q", err, c.says)
			}
		})
	}
}

func TestCanarySteps(t *testing.T) {
	d := platform.Deployment{Strategy: platform.Canary, Steps: []int{1, 50}}
	must(t, d.Begin())
	for _, want := range []struct {
		target int
		canary bool
	}{{1, true}, {4, true}, {7, false}} {
		if target, canary := d.Target(7); target != want.target || canary != want.canary {
			t.Fatalf("step %d is about %d of 7, %v", d.Step, target, canary)
		}
		if err := d.Continue(); err == nil {
			t.Error("it went on without a pause")
		}
		d.Reach()
		if want.canary {
			if d.Value != platform.DeploymentActive || d.Reason != platform.Paused {
				t.Fatalf("it is %s %s", d.Value, d.Reason)
			}
			must(t, d.Continue())
		}
	}
	if d.Value != platform.DeploymentFinalized || d.Reason != platform.Deployed {
		t.Errorf("it is %s %s", d.Value, d.Reason)
	}
	if err := d.Cancel(); err == nil || err.Error() != "Cannot cancel a DEPLOYED deployment" {
		t.Errorf("it says %v", err)
	}
	if err := d.Continue(); err == nil || err.Error() != "Cannot continue a deployment with status: FINALIZED and reason: DEPLOYED" {
		t.Errorf("it says %v", err)
	}
}

func TestDeploymentIsCanceled(t *testing.T) {
	d := platform.Deployment{Strategy: platform.Canary}
	must(t, d.Begin())
	for range 2 {
		must(t, d.Cancel())
	}
	if target, canary := d.Target(3); target != 3 || canary {
		t.Errorf("on the way back it is about %d of 3, %v", target, canary)
	}
	d.Reach()
	if d.Value != platform.DeploymentFinalized || d.Reason != platform.Canceled {
		t.Errorf("it is %s %s", d.Value, d.Reason)
	}
	d.Reach()
	if d.Reason != platform.Canceled {
		t.Error("it ended twice")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
