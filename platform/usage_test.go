package platform

import (
	"math"
	"testing"
	"time"
)

// Whatever an instance says about its processes, only what its release has is shown, and only what can be true.
func TestBelieve(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	h := HomeOf("c", Release{Namespace: "n", MemoryMB: 100, Sidecars: []ReleaseSidecar{{Name: "clock", MemoryMB: 10}, {Name: "proxy"}}})
	half := 0.5
	said := []ProcessUsage{
		{Sidecar: "proxy", State: "running", PID: -1, Memory: -7, Since: now.Add(time.Hour), CPU: new(math.Inf(1))},
		{Sidecar: "evil\x1b[2J", State: "running"},
		{State: "running", PID: 12, Memory: 5, Since: now.Add(-time.Minute), CPU: &half, Reserved: 1 << 60},
		{State: "running", PID: 13},
		{Sidecar: "clock", State: "on fire"},
	}
	got := h.Believe(said, now)
	if len(got) != 2 {
		t.Fatalf("believed %+v", got)
	}
	if m := got[0]; m.Sidecar != "" || m.PID != 12 || m.Reserved != 90<<20 || m.Memory != 5 || !m.Since.Equal(now.Add(-time.Minute)) || *m.CPU != half {
		t.Errorf("the main process: %+v", m)
	}
	if p := got[1]; p.Sidecar != "proxy" || p.PID != 0 || p.Reserved != 0 || p.Memory != 0 || !p.Since.IsZero() || p.CPU != nil {
		t.Errorf("the proxy: %+v", p)
	}
	if got := h.Believe([]ProcessUsage{{State: "running", CPU: new(math.NaN())}}, now); got[0].CPU != nil {
		t.Errorf("no number was believed: %+v", got)
	}
}

func TestMilliCPU(t *testing.T) {
	for mb, want := range map[int]int{1: 5, 64: 6, 1024: 100, 4096: 400} {
		if got := MilliCPU(mb); got != want {
			t.Errorf("%d MB: %d, want %d", mb, got, want)
		}
	}
}
