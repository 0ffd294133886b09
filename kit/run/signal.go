package run

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// interrupted is the exit status of a process that was told twice to stop: 128 + SIGINT.
const interrupted = 130

// Signals gives a context that ends at the first SIGINT or SIGTERM; context.Cause tells which. The
// second one exits the process at once, for whoever does not want to wait for an orderly stop.
// The returned function ends the context and gives signals their usual meaning back.
func Signals(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	heard := make(chan os.Signal, 2)
	signal.Notify(heard, syscall.SIGINT, syscall.SIGTERM)
	over := make(chan struct{})
	go func() {
		for n := 1; ; n++ {
			select {
			case s := <-heard:
				if n > 1 {
					os.Exit(interrupted)
				}
				cancel(fmt.Errorf("signal: %s", s))
			case <-over:
				return
			}
		}
	}()
	return ctx, sync.OnceFunc(func() {
		signal.Stop(heard)
		close(over)
		cancel(context.Canceled)
	})
}
