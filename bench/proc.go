package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// What Linux tells about a process and the machine.

const tick = time.Second / 100 // the unit of /proc, the same on every Linux

// What stands where in /proc/PID/stat, after the name.
const (
	parentField = 1
	cpuField    = 11 // of the process in user space and in the kernel, and then of the children it has waited for
)

func statOf(pid int) ([]string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name before it may hold spaces
	fields := strings.Fields(rest)
	if len(fields) < cpuField+4 {
		return nil, fmt.Errorf("/proc/%d/stat is too short: %q", pid, stat)
	}
	return fields, nil
}

// cpuTime is how long a process has kept a core busy since it started.
func cpuTime(pid int) (time.Duration, error) {
	fields, err := statOf(pid)
	if err != nil {
		return 0, err
	}
	return ticks(fields[cpuField : cpuField+2])
}

func parentOf(pid int) (int, error) {
	fields, err := statOf(pid)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(fields[parentField])
}

// familyTime is how long a process and its children, those who have ended included, have kept a core busy.
func familyTime(pid int) (time.Duration, error) {
	own, err := statOf(pid)
	if err != nil {
		return 0, err
	}
	sum, err := ticks(own[cpuField : cpuField+4])
	if err != nil {
		return 0, err
	}
	all, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, entry := range all {
		child, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if parent, err := parentOf(child); err != nil || parent != pid {
			continue // ended meanwhile, or not ours
		}
		if spent, err := cpuTime(child); err == nil {
			sum += spent
		}
	}
	return sum, nil
}

// machineTime is how long all cores together were busy since the machine started.
func machineTime() (time.Duration, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(stat), "\n")
	fields := strings.Fields(first) // cpu user nice system idle iowait irq softirq steal
	if len(fields) < 9 {
		return 0, fmt.Errorf("/proc/stat is too short: %q", first)
	}
	return ticks(append(fields[1:4], fields[6:9]...))
}

func ticks(fields []string) (sum time.Duration, err error) {
	for _, f := range fields {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}

// peakMemory is the most memory, in megabytes, that a process has held in RAM.
func peakMemory(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	value, _, _ := strings.Cut(rest, "kB")
	kib, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	return kib * 1024 / 1e6, err
}

// forgetPeak lets the peak of this process begin again from what it holds now.
func forgetPeak() error { return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }
