package platform_test

import (
	"testing"

	"github.com/proa-dev/proa/platform"
)

func TestRevisionChanges(t *testing.T) {
	revision := func(change func(*platform.App, map[string]*string, *platform.Sidecar)) *platform.Revision {
		a := platform.App{Droplet: "d", Env: map[string]string{"A": "a"}}
		commands := map[string]*string{"web": nil, "worker": new("run")}
		c := platform.Sidecar{GUID: platform.NewGUID(), Name: "side", Command: "true", ProcessTypes: []string{"web"}, MemoryMB: new(10)}
		change(&a, commands, &c)
		var processes []platform.Process
		for kind, command := range commands {
			processes = append(processes, platform.Process{Type: kind, Command: command})
		}
		return &platform.Revision{Droplet: a.Droplet, Setup: platform.SetupOf(a, processes, []platform.Sidecar{{Name: "zz"}, c})}
	}
	as := func(*platform.App, map[string]*string, *platform.Sidecar) {}
	for want, change := range map[string]func(*platform.App, map[string]*string, *platform.Sidecar){
		"":                                    as,
		"New droplet deployed.":               func(a *platform.App, _ map[string]*string, _ *platform.Sidecar) { a.Droplet = "e" },
		"New environment variables deployed.": func(a *platform.App, _ map[string]*string, _ *platform.Sidecar) { a.Env["A"] = "b" },
		"Custom start command added for 'web' process.":                       func(_ *platform.App, c map[string]*string, _ *platform.Sidecar) { c["web"] = new("x") },
		"Custom start command updated for 'worker' process.":                  func(_ *platform.App, c map[string]*string, _ *platform.Sidecar) { c["worker"] = new("x") },
		"Custom start command removed for 'worker' process.":                  func(_ *platform.App, c map[string]*string, _ *platform.Sidecar) { c["worker"] = nil },
		"New process type 'clock' added.":                                     func(_ *platform.App, c map[string]*string, _ *platform.Sidecar) { c["clock"] = nil },
		"New sidecars deployed.":                                              func(_ *platform.App, _ map[string]*string, c *platform.Sidecar) { c.MemoryMB = nil },
		"New droplet deployed. New sidecars deployed.":                        func(a *platform.App, _ map[string]*string, c *platform.Sidecar) { a.Droplet, c.Command = "e", "false" },
		"New environment variables deployed. New process type 'clock' added.": func(a *platform.App, c map[string]*string, _ *platform.Sidecar) { a.Env, c["clock"] = nil, nil },
	} {
		if got := revision(change).Changes(revision(as)); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
	if got := revision(as).Changes(nil); got != "Initial revision." {
		t.Errorf("the first says %q", got)
	}
}
