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

// cpuTime is how long a process has kept a core busy since it started.
func cpuTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name before it may hold spaces
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat is too short: %q", pid, stat)
	}
	return ticks(fields[11:13]) // utime and stime, the 14th and 15th of the whole line
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
