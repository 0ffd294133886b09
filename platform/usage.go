package platform

import (
	"slices"
	"time"
)

// Usage is what an instance uses. What nobody could measure is nil, or left out.
type Usage struct {
	Time      time.Time // when it was measured
	CPU       *float64  // processors
	Memory    *int64    // bytes
	Disk      *int64    // bytes, with what it has written to its log
	Processes []ProcessUsage
}

// ProcessUsage is what one process of an instance uses, with what it has started.
type ProcessUsage struct {
	Sidecar  string // none: the main process
	PID      int
	State    string
	Since    time.Time // zero: unknown
	CPU      *float64  // processors
	Memory   int64     // bytes; pages that processes share count for each
	Reserved int64     // bytes set aside for it; 0: it shares with others
}

// Home is where the instances of a process run, and what its release says of the processes in them.
type Home struct {
	Cluster   string
	Namespace string
	MainMB    int // memory that the sidecars leave to the main process
	Sidecars  []ReleaseSidecar
}

// HomeOf is the home of a release.
func HomeOf(cluster string, r Release) Home {
	return Home{Cluster: cluster, Namespace: r.Namespace, MainMB: r.MainMemoryMB(), Sidecars: r.Sidecars}
}

var processStates = []string{"pending", "running", "stopping", "exited"}

const (
	maxPID  = 1 << 22 // the kernel's
	maxCPUs = 1 << 13 // as many as it can be built for
)

// Believe takes from what an instance says about its processes what can be true: those of its release, in its order, each once. The app
// shares a user with who says it, so anything could be said.
func (h Home) Believe(said []ProcessUsage, now time.Time) []ProcessUsage {
	expected := []ProcessUsage{{Reserved: int64(h.MainMB) << 20}}
	for _, c := range h.Sidecars {
		expected = append(expected, ProcessUsage{Sidecar: c.Name, Reserved: int64(c.MemoryMB) << 20})
	}
	var all []ProcessUsage
	for _, is := range expected {
		i := slices.IndexFunc(said, func(p ProcessUsage) bool { return p.Sidecar == is.Sidecar })
		if i < 0 || !slices.Contains(processStates, said[i].State) {
			continue
		}
		p := said[i]
		is.State, is.PID, is.Memory = p.State, min(max(p.PID, 0), maxPID), max(p.Memory, 0)
		if p.Since.Year() >= 1970 && !p.Since.After(now.Add(time.Minute)) { // clocks differ
			is.Since = p.Since
		}
		if p.CPU != nil && *p.CPU >= 0 && *p.CPU <= maxCPUs {
			is.CPU = p.CPU
		}
		all = append(all, is)
	}
	return all
}

// leastMilliCPU is what the smallest process is entitled to.
const leastMilliCPU = 5

// MilliCPU is what a process is entitled to when all want more, in thousandths of a processor: Cloud Foundry's share in proportion to
// memory, a tenth of a processor for each GB.
func MilliCPU(memoryMB int) int { return max(memoryMB*100/1024, leastMilliCPU) }
