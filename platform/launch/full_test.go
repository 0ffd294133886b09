package launch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// cgroupOf makes a cgroup of version 1 with a limit, and takes it away after the test.
func cgroupOf(t *testing.T, controller, file, limit string) string {
	t.Helper()
	dir := filepath.Join("/sys/fs/cgroup", controller, "proa-launch-test-"+itoa(os.Getpid())+"-"+itoa(int(time.Now().UnixNano()%1e9)))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("a %s cgroup of version 1 cannot be made here: %v", controller, err)
	}
	t.Cleanup(func() {
		for range 100 { // the dead leave it a moment later
			if err := os.Remove(dir); err == nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Errorf("%s cannot be removed", dir)
	})
	if err := os.WriteFile(filepath.Join(dir, file), []byte(limit), 0); err != nil {
		t.Skipf("a %s cgroup of version 1 cannot be limited here: %v", controller, err)
	}
	return dir
}

// TestOutOfMemory lets a process take all memory of a real cgroup: directly, and as the child of a shell that then exits
// with 137.
func TestOutOfMemory(t *testing.T) {
	for name, command := range map[string]string{"itself": "exec tail /dev/zero", "a child": "tail /dev/zero; exit $?"} {
		t.Run(name, func(t *testing.T) {
			group := cgroupOf(t, "memory", "memory.limit_in_bytes", "134217728")
			l := start(t, Config{Main: shell("", forever), Sidecars: []Process{shell("hungry", command)}}, inCgroup(group))
			code, r := l.wait()
			if code != 137 || r.Sidecar != "hungry" || !r.OutOfMemory || r.Reason != outOfMemory ||
				r.Description != "APP/PROC/WEB/SIDECAR/HUNGRY: Exited with status 137 (out of memory)" {
				t.Errorf("got exit code %d and %+v", code, r)
			}
		})
	}
	t.Run("status", func(t *testing.T) {
		group := cgroupOf(t, "memory", "memory.limit_in_bytes", "134217728")
		l := start(t, Config{Main: shell("", "echo up; "+forever)}, inCgroup(group))
		l.untilPrinted("up")
		if m := l.status().Memory; m.Limit != 134217728 || m.Usage == 0 || m.Usage > m.Limit {
			t.Errorf("got %+v", m)
		}
		l.signal(syscall.SIGTERM)
		l.wait()
	})
}

// TestFullOfProcesses has a fork bomb fill the container's pids: we get no new thread any more, and do without.
func TestFullOfProcesses(t *testing.T) {
	needRoot(t)
	group := cgroupOf(t, "pids", "pids.max", "60")
	bomb := `echo up; b() { b & b & sleep 5; }; while :; do b; sleep 0.1; done 2>/dev/null`
	l := start(t, Config{Main: shell("", "exec 2>/dev/null; trap '' TERM; "+bomb), Sidecars: []Process{shell("side", "trap '' TERM; "+forever+" 2>/dev/null || "+forever)}, GraceSeconds: 0.5}, pid1, inCgroup(group))
	l.untilPrinted("up")
	l.until("it is full", func() bool {
		text, _ := os.ReadFile(filepath.Join(group, "pids.events"))
		return strings.TrimSpace(string(text)) > "max 0"
	})
	for range 20 {
		l.signal(syscall.SIGUSR2)
		if _, err := l.ask(); err != nil {
			break // the sidecar could not fork and has ended everything
		}
		time.Sleep(20 * time.Millisecond)
	}
	l.signal(syscall.SIGTERM)
	if _, r := l.wait(); r.Cause != CauseStopped && r.Cause != CauseExited || strings.Contains(l.stderr.String(), "goroutine") {
		t.Errorf("got %+v, stderr %.300q", r, l.stderr)
	}
}

// TestNoThreads leaves no room for one more thread, and then blocks every writer by not reading: each needs a thread to
// wait in, and a Go program that cannot get one dies.
func TestNoThreads(t *testing.T) {
	t.Parallel()
	group := cgroupOf(t, "pids", "pids.max", "300")
	marker := filepath.Join(t.TempDir(), "full")
	flood := "while [ ! -e " + marker + " ]; do :; done; while :; do echo flood; done"
	var unread [2]*os.File
	for i := range unread {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = read.Close() }()
		defer func() { _ = write.Close() }()
		unread[i] = write
	}
	l := start(t, Config{Main: shell("", flood), Sidecars: []Process{shell("errors", "exec >&2; "+flood)}, GraceSeconds: 0.5}, inCgroup(group),
		func(cmd *exec.Cmd) { cmd.Stdout, cmd.Stderr = unread[0], unread[1] })
	l.until("it runs", func() bool {
		_, err := l.ask()
		return err == nil
	})
	now, err := os.ReadFile(filepath.Join(group, "pids.current"))
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{filepath.Join(group, "pids.max"): string(now), marker: ""} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		time.Sleep(30 * time.Millisecond)
		l.status()
	}
	l.signal(syscall.SIGTERM)
	if code, r := l.wait(); code != 143 || r.Cause != CauseStopped {
		t.Errorf("got exit code %d and %+v", code, r)
	}
}
