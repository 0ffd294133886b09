package launch

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

const tick = time.Second / 100 // the kernel's unit of time towards programs, everywhere that Kubernetes runs

// A kernelProcess is what /proc tells about one process.
type kernelProcess struct {
	pid, parent, group, session int
	foreground                  int // the group in front of its terminal; -1 where it has none

	cpu time.Duration // with that of the children it has waited for
	rss int64         // bytes, shared pages included
}

// scan reads /proc. What ends meanwhile is left out.
func scan() []kernelProcess {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = proc.Close() }()
	var all []kernelProcess
	for {
		names, err := proc.Readdirnames(512)
		for _, name := range names {
			if name[0] < '0' || name[0] > '9' {
				continue
			}
			text, err := os.ReadFile("/proc/" + name + "/stat")
			if p, ok := parseStat(text); err == nil && ok {
				all = append(all, p)
			}
		}
		if err != nil {
			return all
		}
	}
}

// parseStat reads /proc/PID/stat, see proc(5). The name in parentheses is the process's own choice and may hold
// anything, parentheses too; after the last of them come only fields.
func parseStat(text []byte) (kernelProcess, bool) {
	name := bytes.IndexByte(text, '(')
	end := bytes.LastIndexByte(text, ')')
	if name < 0 || end < name {
		return kernelProcess{}, false
	}
	fields := bytes.Fields(text[end+1:]) // the third of proc(5) is number 0
	if len(fields) < 22 {
		return kernelProcess{}, false
	}
	number := func(text []byte) int64 {
		n, _ := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64) // 0 where there is none
		return n
	}
	p := kernelProcess{
		pid:        int(number(text[:name])),
		parent:     int(number(fields[1])),
		group:      int(number(fields[2])),
		session:    int(number(fields[3])),
		foreground: int(number(fields[5])),
		rss:        number(fields[21]) * int64(os.Getpagesize()),
	}
	for _, f := range fields[11:15] { // user, system, and both of dead children
		p.cpu += time.Duration(number(f)) * tick
	}
	return p, true
}

// descendants are the children of a process, their children, and so on.
func descendants(of int, all []kernelProcess) []kernelProcess {
	var found []kernelProcess
	family := map[int]bool{of: true}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if family[p.parent] && !family[p.pid] {
				family[p.pid], grown = true, true
				found = append(found, p)
			}
		}
	}
	return found
}
