package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/launch"
)

const (
	maxSaid      = 256 << 10
	leastBetween = 500 * time.Millisecond // samples that are closer say little: the kernel counts in hundredths of a second
)

// inside is what pid 1 of an instance said about its processes, and what follows from it and what it said before.
type inside struct {
	status    launch.Status
	processes []platform.ProcessUsage
}

func (c *Cluster) inside(ctx context.Context, namespace, pod string, before inside) (inside, error) {
	var out limited
	status, err := c.Exec(ctx, namespace, pod, Exec{Command: []string{ourLauncher, "status"}, Stdout: &out})
	if err == nil && status != 0 {
		err = fmt.Errorf("status of %s: exit %d", pod, status)
	}
	if err != nil {
		return inside{}, err
	}
	var now inside
	if err := json.Unmarshal(out.bytes(), &now.status); err != nil {
		return inside{}, fmt.Errorf("status of %s: %w", pod, err)
	}
	for _, p := range now.status.Processes {
		now.processes = append(now.processes, used(p, now.status.Time, before.status))
	}
	return now, nil
}

// used is what a process uses: on the average since it was last asked, or else since it began.
func used(p launch.ProcessStatus, at time.Time, before launch.Status) platform.ProcessUsage {
	u := platform.ProcessUsage{Sidecar: p.Sidecar, PID: p.PID, State: string(p.State), Memory: p.RSS}
	if p.Started == nil {
		return u
	}
	u.Since = *p.Started
	since, spent := u.Since, p.CPU
	for _, b := range before.Processes {
		if b.Sidecar == p.Sidecar && b.PID == p.PID && b.CPU <= p.CPU {
			since, spent = before.Time, p.CPU-b.CPU
		}
	}
	if between := at.Sub(since); between >= leastBetween {
		u.CPU = new(float64(spent) / float64(between))
	}
	return u
}

// limited keeps what is written to it up to a size. Exec may write once more after it has returned.
type limited struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

var errTooMuch = errors.New("more was said than is read")

func (l *limited) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.buf.Len()+len(b) > maxSaid {
		return 0, errTooMuch
	}
	return l.buf.Write(b)
}

func (l *limited) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.buf.Bytes())
}
