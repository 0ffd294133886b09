// Package run owns the life of a process: it starts the parts of it, waits for the first of them
// to end or for a signal, and stops them in the reverse order of their start.
package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"
)

// DefaultGrace is what a part gets to stop when it does not say.
const DefaultGrace = 10 * time.Second

// Part is one thing a process does for as long as it lives: a server, a pool of workers, a loop.
type Part struct {
	Name string
	// Run works until ctx ends and then returns; what it returned is nil or ctx's error when all
	// went well. It may return earlier, and this stops the other parts too.
	Run func(ctx context.Context) error
	// Grace is how long Run may take to return after its ctx ended.
	Grace time.Duration
}

// running is a part that was started. err is set before done is closed.
type running struct {
	Part
	stop context.CancelFunc
	done chan struct{}
	err  error
}

// Until starts the parts in order and waits for ctx to end or for the first part to return. Then it
// stops all, the last started first, each only after the one before has returned or has used up
// its Grace. So a server that is started after the pool it needs is gone before the pool is closed.
//
// The error is that of the part which returned first. It is nil when that part returned nil, and
// when ctx ended: errors of parts that were told to stop are logged, not returned.
func Until(ctx context.Context, log *slog.Logger, parts ...Part) error {
	ended := make(chan *running, len(parts))
	started := make([]*running, len(parts))
	for i, p := range parts {
		started[i] = start(ctx, log, p, ended)
	}

	var first *running
	select {
	case <-ctx.Done():
		log.Info("stopping", "cause", context.Cause(ctx))
	case first = <-ended:
		log.Info("stopping", "cause", "a part ended", "part", first.Name)
	}

	for i := len(started) - 1; i >= 0; i-- {
		if started[i] != first {
			started[i].end(log)
		}
	}
	if first == nil || first.err == nil || ctx.Err() != nil && errors.Is(first.err, ctx.Err()) {
		return nil
	}
	return fmt.Errorf("%s: %w", first.Name, first.err)
}

// start runs one part. Its context keeps the values of ctx but not its end, because each part is
// stopped in its turn.
func start(ctx context.Context, log *slog.Logger, p Part, ended chan<- *running) *running {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	r := &running{Part: p, stop: stop, done: make(chan struct{}), err: errors.New("left without returning")}
	go func() {
		defer func() {
			stop()
			close(r.done)
			ended <- r
		}()
		r.err = guard(ctx, log, p)
	}()
	return r
}

// guard runs the part and turns a panic into an error.
func guard(ctx context.Context, log *slog.Logger, p Part) (err error) {
	defer func() {
		if v := recover(); v != nil {
			log.Error("panic", "part", p.Name, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return p.Run(ctx)
}

// end stops the part and waits for it, but not longer than its grace.
func (r *running) end(log *slog.Logger) {
	grace := r.Grace
	if grace <= 0 {
		grace = DefaultGrace
	}
	r.stop()
	select {
	case <-r.done:
		if r.err != nil && !errors.Is(r.err, context.Canceled) {
			log.Error("part failed while stopping", "part", r.Name, "error", r.err)
		}
	case <-time.After(grace):
		log.Error("part is stuck and was passed over", "part", r.Name, "grace", grace)
	}
}
