package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/proa-dev/proa/kit/pg"
)

// cores is the time that each side kept the cores busy: what limits is whoever has the most.
type cores struct{ server, engine, load, directory, sink, machine, passed time.Duration }

// watch tells how the cores are used while a server works on a database and this process loads it.
type watch struct {
	server    int
	directory int // another server that the server asks, if there is one
	sink      int // another server that the server writes to, if there is one
	engine    int // PostgreSQL's first process
	begin     time.Time
}

// watchServer finds PostgreSQL. Of one on another machine it sees nothing.
func watchServer(ctx context.Context, pid int, database string) (watch, error) {
	w := watch{server: pid, begin: time.Now()}
	pool, err := pg.Open(ctx, database)
	if err != nil {
		return w, err
	}
	defer pool.Close()
	var backend int
	if err := pool.QueryRow(ctx, `select pg_backend_pid()`).Scan(&backend); err != nil {
		return w, fmt.Errorf("find PostgreSQL: %w", err)
	}
	if parent, err := parentOf(backend); err == nil {
		w.engine = parent
	}
	return w, nil
}

func (w watch) now() (c cores, err error) {
	if w.engine > 0 {
		if c.engine, err = familyTime(w.engine); err != nil {
			return c, err
		}
	}
	for pid, spent := range map[int]*time.Duration{w.server: &c.server, w.directory: &c.directory, w.sink: &c.sink, os.Getpid(): &c.load} {
		if pid == 0 {
			continue
		}
		if *spent, err = cpuTime(pid); err != nil {
			return c, err
		}
	}
	c.machine, err = machineTime()
	c.passed = time.Since(w.begin)
	return c, err
}

// during tells what something took, and how often it was done in that time.
func (w watch) during(work func() (int64, error)) (times int64, spent cores, err error) {
	before, err := w.now()
	if err != nil {
		return 0, spent, err
	}
	if times, err = work(); err != nil {
		return 0, spent, err
	}
	after, err := w.now()
	return times, after.minus(before), err
}

func (c cores) minus(b cores) cores {
	return cores{c.server - b.server, c.engine - b.engine, c.load - b.load, c.directory - b.directory, c.sink - b.sink, c.machine - b.machine, c.passed - b.passed}
}

func (c cores) plus(b cores) cores {
	return cores{c.server + b.server, c.engine + b.engine, c.load + b.load, c.directory + b.directory, c.sink + b.sink, c.machine + b.machine, c.passed + b.passed}
}

// share is a part of all cores, from 0 to 1.
func (c cores) share(d time.Duration) float64 {
	return d.Seconds() / (c.passed.Seconds() * float64(runtime.NumCPU()))
}

// others is the share of everyone else on the machine.
func (c cores) others() float64 {
	return max(0, c.share(c.machine-c.server-c.engine-c.load-c.directory-c.sink))
}

// A share of others up to this is the system's own work, such as moving packets.
const quiet = 0.05

// rate is how often something was done in a second. On a machine that is not quiet it is a second of the cores that others
// left: they take unlike parts from one process and from many, and the ratio of two rates would be about them.
func (c cores) rate(times int64) float64 { return float64(times) / c.passed.Seconds() / c.left() }

// left is the share of the cores that others left; all of it on a quiet machine.
func (c cores) left() float64 {
	if others := c.others(); others > quiet && others < 1 {
		return 1 - others
	}
	return 1
}

func (c cores) String() string {
	beside := ""
	if c.directory > 0 {
		beside += fmt.Sprintf(", the directory %.0f %%", 100*c.share(c.directory))
	}
	if c.sink > 0 {
		beside += fmt.Sprintf(", the sink %.0f %%", 100*c.share(c.sink))
	}
	return fmt.Sprintf("of the cores the server had %.0f %%, PostgreSQL %.0f %%%s, this process %.0f %%, others %.0f %%",
		100*c.share(c.server), 100*c.share(c.engine), beside, 100*c.share(c.load), 100*c.others())
}
