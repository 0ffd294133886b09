package launch

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

const forever = "while :; do sleep 0.05; done"

// TestFirstExit ends one process in every way, and asks whose name and status the record and our exit code have.
func TestFirstExit(t *testing.T) {
	for _, test := range []struct {
		name        string
		main        string
		sidecar     string
		wantSidecar string
		wantStatus  int
		wantSignal  syscall.Signal
		want        string
	}{
		{"main exits 0", "exit 0", forever, "", 0, 0, "APP/PROC/WEB: Exited with status 0"},
		{"main exits 3", "exit 3", forever, "", 3, 0, "APP/PROC/WEB: Exited with status 3"},
		{"sidecar exits 0", forever, "exit 0", "config server", 0, 0, "APP/PROC/WEB/SIDECAR/CONFIG SERVER: Exited with status 0"},
		{"sidecar exits 1", forever, "exit 1", "config server", 1, 0, "APP/PROC/WEB/SIDECAR/CONFIG SERVER: Exited with status 1"},
		{"sidecar is killed", forever, "kill -9 $$", "config server", 137, syscall.SIGKILL, "APP/PROC/WEB/SIDECAR/CONFIG SERVER: Exited with status 137"},
		{"main is aborted", "kill -ABRT $$", forever, "", 134, syscall.SIGABRT, "APP/PROC/WEB: Exited with status 134"},
		{"shell finds no command", "/no/such/program", forever, "", 127, 0, "APP/PROC/WEB: Exited with status 127"},
	} {
		t.Run(test.name, func(t *testing.T) {
			asBoth(t, func(t *testing.T, as option) {
				l := start(t, Config{Main: shell("", test.main), Sidecars: []Process{shell("config server", test.sidecar)}}, as)
				code, r := l.wait()
				if code != test.wantStatus || r.Status != code || r.Signal != int(test.wantSignal) || r.Sidecar != test.wantSidecar || r.Description != test.want {
					t.Errorf("got exit code %d and %+v, want status %d, signal %d of %q and %q", code, r, test.wantStatus, test.wantSignal, test.wantSidecar, test.want)
				}
				if r.Cause != CauseExited || r.Process != "web" || r.Index != 7 || r.OutOfMemory || time.Since(r.Time) > time.Minute {
					t.Errorf("got %+v", r)
				}
				for _, p := range r.Processes {
					if p.State != Exited || p.Sidecar != r.Sidecar && p.Status != 143 {
						t.Errorf("%q ended as %s with %d, want exited with 143", p.Sidecar, p.State, p.Status)
					}
				}
			})
		})
	}
}

// TestCannotStart has programs that are not there: an exit of that process, with a sentence.
func TestCannotStart(t *testing.T) {
	missing := Process{Name: "agent", Args: []string{"/no/such/agent", "-v"}}
	l := start(t, Config{Main: shell("", forever), Sidecars: []Process{missing, shell("never", forever)}})
	code, r := l.wait()
	if code != 127 || r.Status != 127 || r.Cause != CauseUnstartable || r.Sidecar != "agent" || !strings.Contains(r.Reason, "could not be started") || !strings.Contains(r.Reason, "/no/such/agent") {
		t.Errorf("got exit code %d and %+v", code, r)
	}
	if r.Description != "APP/PROC/WEB/SIDECAR/AGENT: Exited with status 127" || r.Processes[2].State != Pending {
		t.Errorf("got %+v", r)
	}

	l = start(t, Config{Main: Process{Args: []string{"/etc"}}})
	if code, r := l.wait(); code != 126 || r.Cause != CauseUnstartable || r.Sidecar != "" {
		t.Errorf("a directory as a program: got exit code %d and %+v", code, r)
	}
}

// TestOneOfMany ends many at the same instant: one of them is named, by record and exit code alike.
func TestOneOfMany(t *testing.T) {
	asBoth(t, func(t *testing.T, as option) {
		l := start(t, Config{Main: shell("", "exec sleep 1001"), Sidecars: []Process{shell("a", "exec sleep 1002"), shell("b", "exec sleep 1003")}}, as)
		l.until("all run", func() bool { return count(l, "sleep\x00100") == 3 })
		l.signal(syscall.SIGSTOP) // they all are dead before it looks
		pids := []int{l.child("sleep\x001001"), l.child("sleep\x001002"), l.child("sleep\x001003")}
		for i, s := range []syscall.Signal{syscall.SIGKILL, syscall.SIGUSR1, syscall.SIGUSR2} {
			if err := syscall.Kill(pids[i], s); err != nil {
				t.Fatal(err)
			}
		}
		l.until("all are dead", func() bool { return zombies(l.cmd.Process.Pid) == 3 })
		l.signal(syscall.SIGCONT)
		code, r := l.wait()
		want := map[string]int{"": 137, "a": 128 + int(syscall.SIGUSR1), "b": 128 + int(syscall.SIGUSR2)}
		if code != want[r.Sidecar] || r.Status != code || r.Cause != CauseExited {
			t.Errorf("got exit code %d and %+v", code, r)
		}
		for _, p := range r.Processes {
			if p.Status != want[p.Sidecar] {
				t.Errorf("%q ended with %d, want %d", p.Sidecar, p.Status, want[p.Sidecar])
			}
		}
	})
}

// TestZombies makes orphans faster than one can look, and leaves none of the dead.
func TestZombies(t *testing.T) {
	asBoth(t, func(t *testing.T, as option) {
		storm := "i=0; while [ $i -lt 500 ]; do (sleep 0 &); i=$((i+1)); done; echo over; " + forever
		l := start(t, Config{Main: shell("", storm)}, as)
		l.untilPrinted("over")
		l.until("no zombie is left", func() bool { return zombies(l.cmd.Process.Pid) == 0 })
		if s := l.status(); s.Processes[0].State != Running {
			t.Errorf("got %+v", s)
		}
	})
}

func zombies(parent int) int {
	n := 0
	for _, p := range scan() {
		text, _ := os.ReadFile("/proc/" + itoa(p.pid) + "/stat")
		if p.parent == parent && strings.Contains(string(text), ") Z ") {
			n++
		}
	}
	return n
}

// TestCNBLauncher has a stand-in for the launcher of the buildpacks that says how it was called.
func TestCNBLauncher(t *testing.T) {
	stand := t.TempDir() + "/launcher"
	if err := os.WriteFile(stand, []byte("#!/bin/sh\nprintf '<%s>' \"$@\"; echo; sleep 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	l := start(t, Config{
		Launcher: stand,
		Main:     Process{Command: "exec app --port $PORT", Env: map[string]string{"PORT": "8080"}},
		Sidecars: []Process{{Name: "direct", Args: []string{"agent", "-a b"}}},
	})
	l.wait()
	for _, want := range []string{"<exec app --port $PORT>\n", Mark("direct") + "<--><agent><-a b>\n"} {
		if !strings.Contains(l.stdout.String(), want) {
			t.Errorf("got %q, want %q in it", l.stdout, want)
		}
	}
}
