package launch

import (
	"os"
	"slices"
	"syscall"
	"time"
)

// Signals that mean something to an app go to the main process, and to it alone.
var forwarded = []syscall.Signal{syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH}

// Signals that we answer ourselves.
var ours = []syscall.Signal{syscall.SIGCHLD, syscall.SIGTERM, syscall.SIGINT}

// caught are all other signals that can be: by default some end a Go program, even as pid 1, and anybody in the container can
// send them. URG is the scheduler's own. PIPE must be caught too, or a log reader that goes away would end us.
func caught() []os.Signal {
	var all []os.Signal
	for s := syscall.Signal(1); s <= syscall.SIGSYS; s++ {
		if s != syscall.SIGKILL && s != syscall.SIGSTOP && s != syscall.SIGURG && !slices.Contains(ours, s) {
			all = append(all, s)
		}
	}
	return all
}

func (c *crew) forward(s syscall.Signal) {
	if main := c.members[0]; main.alive() && slices.Contains(forwarded, s) {
		_ = syscall.Kill(main.pid, s)
	}
}

// stop asks everyone to end, once: a second TERM changes nothing, as the grace period is a promise to the app. The record
// is written now, in case that we do not come to the end, and again then.
func (c *crew) stop() {
	if c.stopping {
		return
	}
	c.stopping = true
	c.mu.Lock()
	for _, m := range c.members {
		if m.state == Running {
			m.state = Stopping
		}
	}
	c.mu.Unlock()
	c.leave()
	c.everyone(syscall.SIGTERM)
	c.alarm = time.After(c.cfg.grace())
}

// kill ends who is left, again and again: what a dying process leaves behind falls to us, and dies in the next round.
func (c *crew) kill() {
	if c.giveUp.IsZero() {
		c.giveUp = time.Now().Add(killTime)
	}
	c.everyone(syscall.SIGKILL)
	c.alarm = time.After(killEvery)
}

// everyone sends a signal to all processes of the container, daemons that left their group and shells from outside
// included. As pid 1 that is one call, which not even a fork bomb escapes. Otherwise, in development, it is our
// descendants: groups first, as a group gets a signal at once.
func (c *crew) everyone(s syscall.Signal) {
	if os.Getpid() == 1 {
		_ = syscall.Kill(-1, s)
		return
	}
	var groups []int
	for _, m := range c.members {
		if m.alive() {
			groups = append(groups, m.pid)
			_ = syscall.Kill(-m.pid, s)
		}
	}
	for _, p := range descendants(os.Getpid(), scan()) {
		if !slices.Contains(groups, p.group) {
			_ = syscall.Kill(p.pid, s)
		}
	}
}
