package launch

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestAgain starts a launcher twice in one pod: the second waits, and then runs the app all the same.
func TestAgain(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "started")
	for n, least := range []time.Duration{0, 2 * time.Second} {
		began := time.Now()
		l := start(t, Config{Main: shell("", "echo here; exec sleep 100"), Mark: mark, HoldSeconds: 2})
		l.untilPrinted("here")
		if took := time.Since(began); took < least || took > least+1500*time.Millisecond {
			t.Errorf("start %d took %s", n, took)
		}
		l.signal(syscall.SIGTERM)
		l.wait()
	}
}

// TestAgainIsStopped ends a launcher that waits. It has started nothing.
func TestAgainIsStopped(t *testing.T) {
	t.Parallel()
	asBoth(t, func(t *testing.T, as option) {
		mark := filepath.Join(t.TempDir(), "started")
		if err := os.WriteFile(mark, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		l := start(t, Config{Main: shell("", "echo here; exec sleep 100"), Sidecars: []Process{shell("clock", "echo here; exec sleep 100")}, Mark: mark}, as)
		l.until("answers", func() bool { _, err := l.ask(); return err == nil })
		began := time.Now()
		l.signal(syscall.SIGTERM)
		_, r := l.wait()
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("it took %s to end", took)
		}
		if r.Cause != CauseStopped || strings.Contains(l.stdout.String(), "here") {
			t.Errorf("the record is %+v, and %q was printed", r, l.stdout)
		}
	})
}

// TestAgainWithoutAPlace takes a launcher that cannot leave its mark for the first.
func TestAgainWithoutAPlace(t *testing.T) {
	if again(filepath.Join(t.TempDir(), "nowhere", "started")) || again("") {
		t.Error("it believes to be the second")
	}
}
