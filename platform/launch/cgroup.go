package launch

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A cgroup is where the kernel counts the container's memory; the empty one is where it cannot be read.
type cgroup struct {
	dir, usage, limit, events string
}

// findCgroup finds our memory cgroup of version 2 or 1. In a container its files stand at the mount point; outside of
// one, below it.
func findCgroup() cgroup {
	mounts, _ := os.ReadFile("/proc/self/mountinfo") // unreadable is unknown
	groups, _ := os.ReadFile("/proc/self/cgroup")
	return cgroupIn(string(mounts), string(groups))
}

func cgroupIn(mounts, groups string) cgroup {
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line) // see proc(5): after a dash come the kind, the source and the options
		dash := slices.Index(fields, "-")
		if dash < 5 || len(fields) < dash+4 {
			continue
		}
		root, point := fields[3], fields[4]
		var g cgroup
		var path string
		switch kind, options := fields[dash+1], strings.Split(fields[dash+3], ","); {
		case kind == "cgroup2":
			g = cgroup{usage: "memory.current", limit: "memory.max", events: "memory.events"}
			path = cgroupPath(groups, "")
		case kind == "cgroup" && slices.Contains(options, "memory"):
			g = cgroup{usage: "memory.usage_in_bytes", limit: "memory.limit_in_bytes", events: "memory.oom_control"}
			path = cgroupPath(groups, "memory")
		default:
			continue
		}
		for _, dir := range []string{filepath.Join(point, strings.TrimPrefix(path, root)), point} {
			if _, err := os.Stat(filepath.Join(dir, g.usage)); err == nil {
				g.dir = dir
				return g
			}
		}
	}
	return cgroup{}
}

// cgroupPath finds the path of a controller in /proc/self/cgroup; version 2 has no name.
func cgroupPath(groups, controller string) string {
	for line := range strings.Lines(groups) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) == 3 && slices.Contains(strings.Split(parts[1], ","), controller) {
			return parts[2]
		}
	}
	return "/"
}

// oomKills counts the processes that the kernel has killed for want of memory.
func (g cgroup) oomKills() int {
	for line := range strings.Lines(g.read(g.events)) {
		if count, found := strings.CutPrefix(line, "oom_kill "); found {
			n, _ := strconv.Atoi(strings.TrimSpace(count)) // 0 where there is none
			return n
		}
	}
	return 0
}

// memory is what the container uses and may use; 0 is unknown, or no limit.
func (g cgroup) memory() Memory {
	number := func(file string) int64 {
		n, err := strconv.ParseInt(strings.TrimSpace(g.read(file)), 10, 64)
		if err != nil || n > 1<<60 { // version 2 says max, version 1 a number that no machine has
			return 0
		}
		return n
	}
	return Memory{Usage: number(g.usage), Limit: number(g.limit)}
}

func (g cgroup) read(file string) string {
	if g.dir == "" {
		return ""
	}
	text, _ := os.ReadFile(filepath.Join(g.dir, file)) // unreadable is unknown
	return string(text)
}
