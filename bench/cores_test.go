package main

import (
	"math"
	"os"
	"runtime"
	"testing"
	"time"
)

func TestProc(t *testing.T) {
	for begin := time.Now(); time.Since(begin) < 50*time.Millisecond; { // be busy for some ticks
	}
	spent, err := cpuTime(os.Getpid())
	if err != nil || spent < 2*tick || spent > time.Hour {
		t.Errorf("cpu time %s, %v", spent, err)
	}
	if machine, err := machineTime(); err != nil || machine < spent {
		t.Errorf("the machine was busy for %s, %v", machine, err)
	}
	if peak, err := peakMemory(os.Getpid()); err != nil || peak < 1 || peak > 10_000 {
		t.Errorf("peak %v MB, %v", peak, err)
	}
	if _, err := peakMemory(-1); err == nil {
		t.Error("a process that does not exist has a peak")
	}
}

// TestRate takes others out of a rate, but not the little that a quiet machine does by itself.
func TestRate(t *testing.T) {
	all := time.Duration(runtime.NumCPU()) * time.Second
	for _, c := range []struct {
		machine time.Duration
		want    float64
	}{{all / 4, 100}, {all/4 + all/25, 100}, {all/4 + all/2, 200}} {
		spent := cores{server: all / 4, machine: c.machine, passed: time.Second}
		if got := spent.rate(100); math.Abs(got-c.want) > 0.01 {
			t.Errorf("the machine was busy for %s of %s: rate %v, want %v", c.machine, all, got, c.want)
		}
	}
}
