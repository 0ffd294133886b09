package launch

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
)

const (
	processors = 1        // as fast as two at passing output on, and smaller
	heapLimit  = 16 << 20 // a wish to the collector, not a wall
	threads    = 12       // processors, writers that block, the collector, the poller, and some to spare

	prSetChildSubreaper = 36
)

// settle makes us small, and ready for a container that is full.
func settle() {
	runtime.GOMAXPROCS(min(processors, runtime.GOMAXPROCS(0)))
	debug.SetGCPercent(50)
	debug.SetMemoryLimit(heapLimit)
	spawnThreads()
	if os.Getpid() != 1 {
		// Orphans then fall to us as they fall to pid 1. An error means an old kernel, in development.
		_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0)
	}
}

// spawnThreads makes the threads that we may ever need, while we can: an app may fill the container's pids, and a Go
// program that cannot get a thread dies. Idle threads are kept.
func spawnThreads() {
	var all, done sync.WaitGroup
	all.Add(threads)
	for range threads {
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			all.Done()
			all.Wait()
		})
	}
	done.Wait()
}
