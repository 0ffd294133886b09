package store_test

import (
	"testing"

	"github.com/proa-dev/proa/platform"
)

// TestFindShell: also an instance that does not become well can be looked at, once there is one.
func TestFindShell(t *testing.T) {
	s, pool := withApps(t)
	for _, statement := range []string{`update processes set release_guid = 'r'`, `update apps set state = 'STARTED'`, `update spaces set allow_ssh = true`} {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	for _, c := range []struct {
		state platform.InstanceState
		pod   string
		in    bool
	}{
		{platform.InstanceRunning, "r-0", true}, {platform.InstanceStarting, "r-0", true}, {platform.InstanceStarting, "", false},
		{platform.InstanceCrashed, "r-0", false}, {platform.InstanceDown, "r-0", false},
	} {
		seen := []platform.Seen{{Process: "p", Release: "r", Count: 1, Instances: []platform.Instance{{Index: 0, Pod: c.pod, PodUID: "u0", State: c.state}}}}
		if err := s.RecordSeen(t.Context(), "default", seen); err != nil {
			t.Fatal(err)
		}
		if shell, err := s.FindShell(t.Context(), admin, "p", 0); (err == nil) != c.in || c.in && shell.Pod != c.pod {
			t.Errorf("%+v: %+v, %v", c, shell, err)
		}
	}
}
