package run_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proa-dev/proa/kit/run"
)

// diary notes what happened, in order. It is also the writer of the log under test.
type diary struct {
	mu    sync.Mutex
	notes []string
	text  bytes.Buffer
}

func (d *diary) note(s string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notes = append(d.notes, s)
}

func (d *diary) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(p)
}

func (d *diary) log() *slog.Logger { return slog.New(slog.NewTextHandler(d, nil)) }

func (d *diary) logged() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

// patient runs until it is stopped and then needs a while.
func (d *diary) patient(name string) run.Part {
	return run.Part{Name: name, Run: func(ctx context.Context) error {
		<-ctx.Done()
		d.note(name + " stopping")
		time.Sleep(time.Second)
		d.note(name + " stopped")
		return ctx.Err()
	}}
}

func failing(name string, err error) run.Part {
	return run.Part{Name: name, Run: func(context.Context) error { return err }}
}

var reverse = []string{"c stopping", "c stopped", "b stopping", "b stopped", "a stopping", "a stopped"}

func TestContextEndStopsInReverse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var d diary
		if err := run.Until(ctx, d.log(), d.patient("a"), d.patient("b"), d.patient("c")); err != nil {
			t.Errorf("got %v", err)
		}
		if !slices.Equal(d.notes, reverse) {
			t.Errorf("got %q", d.notes)
		}
		if strings.Contains(d.logged(), "level=ERROR") {
			t.Error(d.logged())
		}
	})
}

func TestFirstFailureIsTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		broken := errors.New("broken")
		parts := []run.Part{d.patient("a"), d.patient("b"), failing("mail", broken), d.patient("c")}
		err := run.Until(t.Context(), d.log(), parts...)
		if !errors.Is(err, broken) || err.Error() != "mail: broken" {
			t.Errorf("got %v", err)
		}
		if !slices.Equal(d.notes, reverse) {
			t.Errorf("got %q", d.notes)
		}
	})
}

func TestPartThatEndsWellStopsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		if err := run.Until(t.Context(), d.log(), d.patient("a"), failing("once", nil)); err != nil {
			t.Errorf("got %v", err)
		}
		if !slices.Equal(d.notes, []string{"a stopping", "a stopped"}) {
			t.Errorf("got %q", d.notes)
		}
	})
}

func TestStuckPartIsPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		release := make(chan struct{})
		stuck := func(name string, grace time.Duration) run.Part {
			return run.Part{Name: name, Grace: grace, Run: func(context.Context) error {
				<-release
				return nil
			}}
		}
		start := time.Now()
		err := run.Until(t.Context(), d.log(), d.patient("a"), stuck("quick", 3*time.Second), stuck("default", 0),
			failing("x", errors.New("y")))
		if err == nil || err.Error() != "x: y" {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took != 14*time.Second { // 10 by default, 3, and the second of a
			t.Errorf("took %s", took)
		}
		if !slices.Equal(d.notes, []string{"a stopping", "a stopped"}) {
			t.Errorf("got %q", d.notes)
		}
		for _, want := range []string{"part=quick grace=3s", "part=default grace=10s"} {
			if !strings.Contains(d.logged(), want) {
				t.Errorf("%q is not in %s", want, d.logged())
			}
		}
		close(release)
	})
}

func TestPanicStopsTheGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		bad := run.Part{Name: "bad", Run: func(context.Context) error { panic("at sea") }}
		err := run.Until(t.Context(), d.log(), d.patient("a"), bad)
		if err == nil || err.Error() != "bad: panic: at sea" {
			t.Errorf("got %v", err)
		}
		if len(d.notes) != 2 {
			t.Errorf("a was not stopped: %q", d.notes)
		}
		for _, want := range []string{"part=bad", "at sea", "run_test.go"} {
			if !strings.Contains(d.logged(), want) {
				t.Errorf("%q is not in %s", want, d.logged())
			}
		}
	})
}

func TestGoexitIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		gone := run.Part{Name: "gone", Run: func(context.Context) error { runtime.Goexit(); return nil }}
		if err := run.Until(t.Context(), d.log(), gone); err == nil {
			t.Error("no error")
		}
	})
}

func TestErrorWhileStoppingIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var d diary
		sour := run.Part{Name: "sour", Run: func(ctx context.Context) error {
			<-ctx.Done()
			return errors.New("could not flush")
		}}
		if err := run.Until(ctx, d.log(), sour); err != nil {
			t.Errorf("got %v", err)
		}
		if !strings.Contains(d.logged(), "could not flush") {
			t.Error(d.logged())
		}
	})
}

// TestSignals runs this test binary again as the process that gets the signals.
func TestSignals(t *testing.T) {
	if os.Getenv("RUN_TEST_CHILD") != "" {
		child()
	}
	for name, want := range map[string]struct {
		signals []os.Signal
		status  int
		output  string
	}{
		"one SIGTERM stops in order": {[]os.Signal{syscall.SIGTERM}, 0, "ready signal: terminated stopped "},
		"one SIGINT stops in order":  {[]os.Signal{os.Interrupt}, 0, "ready signal: interrupt stopped "},
		"the second exits at once":   {[]os.Signal{syscall.SIGTERM, os.Interrupt}, 130, "ready signal: terminated "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^TestSignals$")
			cmd.Env = append(os.Environ(), "RUN_TEST_CHILD=1")
			if len(want.signals) > 1 {
				cmd.Env = append(cmd.Env, "RUN_TEST_SLOW=1")
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			word := make([]byte, 256)
			for _, s := range want.signals { // each after the child has said something new
				n, _ := out.Read(word)
				got.Write(word[:n])
				if err := cmd.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
			}
			for n, err := out.Read(word); err == nil; n, err = out.Read(word) {
				got.Write(word[:n])
			}
			_ = cmd.Wait()
			if cmd.ProcessState.ExitCode() != want.status || got.String() != want.output {
				t.Errorf("status %d, output %q", cmd.ProcessState.ExitCode(), got.String())
			}
		})
	}
}

func child() {
	ctx, cancel := run.Signals(context.Background())
	defer cancel()
	say := func(s string) { _, _ = os.Stdout.WriteString(s + " ") }
	say("ready")
	<-ctx.Done()
	say(context.Cause(ctx).Error())
	if os.Getenv("RUN_TEST_SLOW") != "" {
		time.Sleep(time.Minute)
	}
	say("stopped")
	os.Exit(0)
}

func TestSignalsCancel(t *testing.T) {
	ctx, cancel := run.Signals(t.Context())
	cancel()
	cancel()
	if ctx.Err() == nil {
		t.Error("the context did not end")
	}
}
