package launch

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func itoa(n int) string { return strconv.Itoa(n) }

// TestPlatformStops sends TERM as Kubernetes does: no crash, and the app's own status.
func TestPlatformStops(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(s.String(), func(t *testing.T) {
			asBoth(t, func(t *testing.T, as option) {
				l := start(t, Config{Main: shell("", "trap 'echo bye; exit 5' TERM; echo up; "+forever), Sidecars: []Process{shell("side", forever)}}, as)
				l.untilPrinted("up")
				l.signal(s)
				code, r := l.wait()
				if code != 5 || r.Status != 5 || r.Cause != CauseStopped || r.Description != "APP/PROC/WEB: Stopped by the platform" {
					t.Errorf("got exit code %d and %+v", code, r)
				}
				if !strings.HasSuffix(l.stdout.String(), "bye\n") {
					t.Errorf("got output %q", l.stdout)
				}
			})
		})
	}
}

// TestKill has everyone ignore TERM: a main process, a grandchild and a daemon. A second TERM wins nobody time.
func TestKill(t *testing.T) {
	asBoth(t, func(t *testing.T, as option) {
		marker := filepath.Join(t.TempDir(), "pid")
		stubborn := "trap '' TERM; setsid sleep 2001 & sleep 2002 & echo up; touch " + marker + "; " + forever
		l := start(t, Config{Main: shell("", stubborn), Sidecars: []Process{shell("side", forever)}, GraceSeconds: 0.8}, as)
		l.untilPrinted("up")
		l.until("both sleep", func() bool { return count(l, "sleep\x00200") == 2 })
		daemon, grandchild := l.child("sleep\x002001"), l.child("sleep\x002002")
		began := time.Now()
		l.signal(syscall.SIGTERM)
		l.until("stopping", func() bool { return l.status().Processes[0].State == Stopping })
		l.until("a record, should we be killed before the end", func() bool {
			r, err := l.record()
			return err == nil && r.Cause == CauseStopped
		})
		l.signal(syscall.SIGTERM)
		code, r := l.wait()
		if took := time.Since(began); took < 800*time.Millisecond || took > 6*time.Second {
			t.Errorf("took %v, want the grace period", took)
		}
		if code != 137 || r.Cause != CauseStopped || r.Processes[1].Status != 143 {
			t.Errorf("got exit code %d and %+v", code, r)
		}
		for _, pid := range []int{daemon, grandchild} {
			if syscall.Kill(pid, 0) == nil {
				t.Errorf("%d lives on", pid)
			}
		}
	})
}

func count(l *launched, text string) int {
	n := 0
	for _, p := range descendants(l.cmd.Process.Pid, scan()) {
		line, _ := os.ReadFile("/proc/" + itoa(p.pid) + "/cmdline")
		if strings.Contains(string(line), text) {
			n++
		}
	}
	return n
}

// TestOrphansEndToo lets the main process exit and leave a child behind in its group.
func TestOrphansEndToo(t *testing.T) {
	asBoth(t, func(t *testing.T, as option) {
		l := start(t, Config{Main: shell("", "(trap 'echo orphan ends; exit' TERM; echo up; "+forever+") & sleep 0.5; exit 4")}, as)
		if code, r := l.wait(); code != 4 || r.Status != 4 {
			t.Errorf("got exit code %d and %+v", code, r)
		}
		if !strings.Contains(l.stdout.String(), "orphan ends") {
			t.Errorf("got output %q", l.stdout)
		}
	})
}

// TestForward sends signals that go to the main process and nobody else, and some that go nowhere.
func TestForward(t *testing.T) {
	asBoth(t, func(t *testing.T, as option) {
		var traps string
		for _, s := range []string{"HUP", "QUIT", "USR1", "USR2", "WINCH"} {
			traps += "trap 'echo got " + s + "' " + s + "; "
		}
		side := shell("side", traps+"echo up2; "+forever)
		l := start(t, Config{Main: shell("", traps+"echo up1; "+forever), Sidecars: []Process{side}}, as)
		l.untilPrinted("up1")
		l.untilPrinted("up2")
		for _, s := range []syscall.Signal{syscall.SIGABRT, syscall.SIGSEGV, syscall.SIGPIPE, syscall.SIGTSTP, syscall.SIGALRM, syscall.SIGTRAP, syscall.SIGPROF} {
			l.signal(s) // none of these may end or stop us
		}
		for name, s := range map[string]syscall.Signal{"HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "WINCH": syscall.SIGWINCH} {
			l.signal(s)
			l.untilPrinted("got " + name + "\n")
		}
		for line := range strings.Lines(l.stdout.String()) {
			if name, text := Parse([]byte(line)); name != "" && string(text) != "up2\n" {
				t.Errorf("the sidecar got a signal: %q", line)
			}
		}
	})
}

// TestSignalFlood drowns us in signals; TERM still gets through.
func TestSignalFlood(t *testing.T) {
	l := start(t, Config{Main: shell("", "trap '' USR1; echo up; "+forever)})
	l.untilPrinted("up")
	for range 20000 {
		l.signal(syscall.SIGUSR1)
	}
	l.signal(syscall.SIGTERM)
	if code, r := l.wait(); code != 143 || r.Cause != CauseStopped {
		t.Errorf("got exit code %d and %+v", code, r)
	}
}
