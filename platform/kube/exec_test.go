package kube

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/proa-dev/proa/platform"
)

// instance stages and runs an app that does nothing, and answers with the name of its pod.
func (w *world) instance() string {
	w.Helper()
	image, staged, log := w.stage("idle", map[string][]byte{"Procfile": []byte("web: exec sleep 1000\n")}, func(*platform.Staging) {})
	if staged.State != platform.StagingSucceeded {
		w.Fatalf("staging ended with %+v: %v\n%s", staged, staged.Failure, log)
	}
	watch, err := w.Watch(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	r := platform.Release{
		GUID: platform.GUIDOf(w.namespace), AppGUID: "a", AppName: "idle", SpaceGUID: w.space, Namespace: w.namespace, ProcessGUID: "p", ProcessType: "web",
		Image: image, MemoryMB: 64, DiskMB: 64, Health: platform.Probe{Type: platform.ProbeProcess},
	}
	if err := w.Apply(w.Context(), platform.Wanted{Instances: 1, Release: r}); err != nil {
		w.Fatal(err)
	}
	w.states(watch, "RUNNING")
	return SetName(r.GUID) + "-0"
}

func TestExec(t *testing.T) {
	w := here(t)
	pod := w.instance()
	t.Run("streams and status", func(t *testing.T) {
		var out, errs strings.Builder
		status, err := w.Exec(t.Context(), w.namespace, pod, Exec{
			Command: []string{"sh", "-c", "cat; echo trouble >&2; exit 7"}, Stdin: strings.NewReader("words"), Stdout: &out, Stderr: &errs,
		})
		if status != 7 || err != nil || out.String() != "words" || errs.String() != "trouble\n" {
			t.Errorf("got %d, %v, %q and %q", status, err, &out, &errs)
		}
	})
	t.Run("ten megabytes both ways", func(t *testing.T) {
		sent := make([]byte, 10<<20)
		_, _ = rand.Read(sent) // never fails
		var out bytes.Buffer
		status, err := w.Exec(t.Context(), w.namespace, pod, Exec{Command: []string{"cat"}, Stdin: bytes.NewReader(sent), Stdout: &out})
		if status != 0 || err != nil || !bytes.Equal(out.Bytes(), sent) {
			t.Errorf("got %d, %v and %d bytes", status, err, out.Len())
		}
	})
	t.Run("a reader pauses", func(t *testing.T) {
		t.Parallel()
		const size = 50 << 20 // more than all buffers on the way hold
		out := &pausing{pause: 65 * time.Second}
		status, err := w.Exec(t.Context(), w.namespace, pod, Exec{Command: []string{"head", "-c", strconv.Itoa(size), "/dev/zero"}, Stdout: out})
		if status != 0 || err != nil || out.bytes != size {
			t.Errorf("got %d, %v and %d bytes", status, err, out.bytes)
		}
	})
	t.Run("a terminal changes its size", func(t *testing.T) {
		sizes := make(chan Window, 2)
		sizes <- Window{Columns: 91, Rows: 17}
		out, printed := io.Pipe()
		go func() {
			for lines := bufio.NewScanner(out); lines.Scan(); {
				if lines.Text() == "first" {
					sizes <- Window{Columns: 92, Rows: 18}
				}
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		wait := `until [ "$(stty size)" = "17 91" ]; do sleep 0.05; done; echo first; until [ "$(stty size)" = "18 92" ]; do sleep 0.05; done; exit 3`
		if status, err := w.Exec(ctx, w.namespace, pod, Exec{Command: []string{"sh", "-c", wait}, Stdout: printed, TTY: true, Resize: sizes}); status != 3 || err != nil {
			t.Errorf("got %d, %v", status, err)
		}
	})
	for name, in := range map[string]io.Reader{"": nil, ", with input that nobody takes": zeros{}} {
		t.Run("the context ends it"+name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			since := time.Now()
			if _, err := w.Exec(ctx, w.namespace, pod, Exec{Command: []string{"sleep", "10"}, Stdin: in}); !errors.Is(err, context.DeadlineExceeded) || time.Since(since) > 5*time.Second {
				t.Errorf("got %v after %s", err, time.Since(since))
			}
		})
	}
	for name, e := range map[string]struct{ pod, program string }{"no such pod": {"nobody-0", "true"}, "no such program": {pod, "/no/such/program"}} {
		t.Run(name, func(t *testing.T) {
			if status, err := w.Exec(t.Context(), w.namespace, e.pod, Exec{Command: []string{e.program}, Stdout: io.Discard}); err == nil && status == 0 {
				t.Errorf("got %d, %v", status, err)
			} else {
				t.Logf("got %d, %v", status, err)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

// pausing is somebody who reads, goes for a coffee, and reads on.
type pausing struct {
	bytes int
	pause time.Duration
}

func (p *pausing) Write(b []byte) (int, error) {
	if p.bytes == 0 {
		time.Sleep(p.pause)
	}
	p.bytes += len(b)
	return len(b), nil
}
