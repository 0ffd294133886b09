package controller

import (
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/proa-dev/proa/kit/fault"
)

// What failed waits 1 s, 2 s, 4 s and so on until it is tried again, and in the end a minute each time; a fifth more or less, so that
// what failed together is not tried together.
const (
	firstDelay = time.Second
	lastDelay  = time.Minute
)

var errStuck = errors.New("the controller leads, and has not been able to look at its cluster for two minutes")

// A delay is what is known of something that fails.
type delay struct {
	since time.Time
	until time.Time
	tries int
	err   error
}

// delays are of things by name. A delay is forgotten when the thing succeeds, or is no longer asked for.
type delays struct {
	mu  sync.Mutex
	all map[string]*delay
}

// waits tells the last error of a thing that is not due yet.
func (d *delays) waits(name string, now time.Time) (delay, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.all[name]; w != nil && now.Before(w.until) {
		return *w, true
	}
	return delay{}, false
}

// note takes what became of a thing, and tells since when it fails.
func (d *delays) note(name string, now time.Time, err error) delay {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		delete(d.all, name)
		return delay{}
	}
	if d.all == nil {
		d.all = map[string]*delay{}
	}
	w := d.all[name]
	if w == nil {
		w = &delay{since: now}
		d.all[name] = w
	}
	wait := min(firstDelay<<min(w.tries, 10), lastDelay)
	w.until, w.err, w.tries = now.Add(wait*4/5+rand.N(wait*2/5)), err, w.tries+1 //nolint:gosec // it spreads work, it keeps no secret
	return *w
}

// fails tells whether a thing failed when it was last tried.
func (d *delays) fails(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all[name] != nil
}

// keep forgets what is not asked for any more.
func (d *delays) keep(asked map[string]bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range d.all {
		if !asked[name] {
			delete(d.all, name)
		}
	}
}

// next is when the first thing is due.
func (d *delays) next() (first time.Time, any bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.all {
		if !any || w.until.Before(first) {
			first, any = w.until, true
		}
	}
	return first, any
}

// explain is what a user is told of a step that failed. What is not a fault stays in our log.
func explain(err error) string {
	if f := fault.From(err); f.Kind != fault.KindInternal {
		return f.Detail
	}
	return "The platform could not start this instance, and tries again. If it stays so, tell your operator."
}
