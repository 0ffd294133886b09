// Package launch owns the processes of an app container: it is pid 1 and runs the main process and its sidecars as one.
// When one of them ends, for whatever reason, it ends the others, leaves a record of who was first and ends too.
//
// One loop owns every child and all decisions; other goroutines pass output on and answer who asks for the status.
// Everything that the app's processes can reach is bounded: they may be hostile, and share our user.
//
// The controller writes a Config, reads a Record and a Status back, and takes the marks off log lines with Parse.
package launch

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

const (
	// After KILL, how often to look for what is left, and when to give up on what not even KILL ends.
	killEvery = 100 * time.Millisecond
	killTime  = 5 * time.Second

	// How many dead children to collect before looking at signals again: orphans may come faster than we collect.
	reapAtOnce = 1024
)

// A crew is the main process and its sidecars. Only the loop changes it; mu lets the status be read meanwhile.
type crew struct {
	cfg     Config
	index   int
	memory  cgroup
	oomKill int // of the memory cgroup when we began

	out, err *sink
	streams  []*stream
	passing  sync.WaitGroup

	mu      sync.Mutex
	members []*member // the main process is the first

	first    *member // whose end ended all; none yet, or the platform's wish
	stopping bool
	alone    bool // no child is left
	giveUp   time.Time
	children chan os.Signal
	alarm    <-chan time.Time // for the next KILL
}

// Run launches everything, stays until everything has ended and gives the exit code: that of the process that was first
// to end, or of the main process where the platform asked.
func Run(cfg Config) int {
	settle()
	c := newCrew(cfg)
	// A signal that finds its channel full is lost: those that must not be have a channel of their own.
	stop, others := make(chan os.Signal, 1), make(chan os.Signal, 64)
	signal.Notify(c.children, syscall.SIGCHLD)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	signal.Notify(others, caught()...)
	c.serve()
	if cfg.hold(stop) {
		c.stop()
	} else {
		c.startAll()
	}
	for c.reap(); !c.ended(); {
		select {
		case <-c.children:
			c.reap()
		case <-stop:
			c.reap() // what had ended before the platform asked ended by itself
			c.stop()
		case s := <-others:
			c.forward(s.(syscall.Signal))
		case <-c.alarm:
			c.kill()
		}
	}
	c.leave()
	drain(c.streams, &c.passing)
	return c.code()
}

func newCrew(cfg Config) *crew {
	c := &crew{cfg: cfg, index: cfg.index(), memory: findCgroup(), children: make(chan os.Signal, 1)}
	c.oomKill = c.memory.oomKills()
	c.out, c.err = sinks()
	for _, p := range append([]Process{cfg.Main}, cfg.Sidecars...) {
		c.members = append(c.members, &member{Process: p, state: Pending})
	}
	return c
}

// startAll runs before anything is waited for, so that no pid can come back before it is known. It stops at the first
// that cannot be started: that is an exit like any other.
func (c *crew) startAll() {
	for _, m := range c.members {
		if err := c.start(m); err != nil {
			c.mu.Lock()
			m.failed(err)
			c.mu.Unlock()
			c.reap()
			c.lost(m)
			return
		}
	}
}

// reap collects the dead: members, and orphans that fell to us. The order in which the kernel names them decides who
// was first.
func (c *crew) reap() {
	for range reapAtOnce {
		var status syscall.WaitStatus
		var usage syscall.Rusage
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, &usage)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			c.alone = true
			return
		case pid == 0:
			return
		}
		c.buried(pid, status, usage)
	}
	select {
	case c.children <- syscall.SIGCHLD: // there may be more
	default:
	}
}

func (c *crew) buried(pid int, status syscall.WaitStatus, usage syscall.Rusage) {
	for _, m := range c.members {
		if m.pid == pid && m.state != Exited {
			c.mu.Lock()
			m.exited(status, usage)
			if m.killed() && c.memory.oomKills() > c.oomKill {
				m.reason = outOfMemory
			}
			c.mu.Unlock()
			c.lost(m)
			return
		}
	}
}

// lost makes the first that ended the reason why all end.
func (c *crew) lost(m *member) {
	if !c.stopping {
		c.first = m
		c.stop()
	}
}

// blame is whose exit is ours.
func (c *crew) blame() *member {
	if c.first != nil {
		return c.first
	}
	return c.members[0]
}

func (c *crew) code() int {
	if m := c.blame(); m.state == Exited {
		return m.status
	}
	return 128 + int(syscall.SIGKILL) // which it withstands, but not for long: the container ends with us
}

// ended is when no child is left, or only what KILL does not end.
func (c *crew) ended() bool {
	return c.stopping && (c.alone || !c.giveUp.IsZero() && time.Now().After(c.giveUp))
}
