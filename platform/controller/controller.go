// Package controller owns the agreement between the records and a cluster: what should run, runs there, and what runs there is
// recorded. Of the processes that could act for a cluster one does; the others stand by.
//
// A pass gathers what is wanted and what is there, decides (platform.Roll, platform.Plan, platform.PlanRoutes, planSpaces: pure, with reasons), acts,
// and records. It remembers nothing that it could not find out again, so it may be killed at any moment. What fails is tried again
// later, and holds up nothing else.
package controller

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/proa-dev/proa/kit/run"
	"github.com/proa-dev/proa/platform/bits"
	"github.com/proa-dev/proa/platform/kube"
	"github.com/proa-dev/proa/platform/store"
)

// Controller acts for one cluster.
type Controller struct {
	ID       string // of the cluster, in the records
	Store    *store.Store
	Cluster  *kube.Cluster
	Registry *bits.Registry
	Builder  string        // image that apps are staged with
	RunImage string        // image that staged apps run on, without our launcher
	Programs bits.Programs // what every app container has of us
	Timeout  time.Duration // of a staging; 15 min when zero
	Log      *slog.Logger
	Metrics  *Metrics
	Now      func() time.Time

	tools  tools
	passed atomic.Pointer[time.Time] // the last pass of this process that could look at everything; nil while another leads
}

const (
	fullEvery   = 10 * time.Second       // how often everything is looked at, hints or not
	settle      = 50 * time.Millisecond  // changes seldom come alone
	again       = time.Second            // before trying to lead again
	stuckAfter  = 2 * time.Minute        // without a pass
	parallel    = 8                      // calls to the cluster at once
	routesFor   = time.Second            // for steps of one kind about routes, in one pass: releases wait meanwhile
	crashesFor  = 2 * time.Second        // for steps about crashes, in one pass: none is begun later
	crashTime   = 3 * time.Second        // to ask for what belongs to a crash, twice at the most: launch leaves us ten seconds
	healAtOnce  = 20                     // spaces whose namespace is made what it should be, in one full pass
	healEvery   = time.Hour              // for each space
	sweepEvery  = 10 * time.Minute       // for what an interrupted step left
	stagingTime = 15 * time.Minute       // of a staging's pod
	waitingTime = 5 * time.Minute        // that a build may wait on top of that
	flushEvery  = 200 * time.Millisecond // of a staging's log
)

// Part is the controller as a part of a process.
func (c *Controller) Part() run.Part { return run.Part{Name: "controller", Run: c.Run} }

// Run acts while this process leads, and stands by while another does, until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := c.Store.Lead(ctx, c.ID, c.lead); ctx.Err() == nil {
			c.Log.Warn("not leading", "cluster", c.ID, "error", err)
			pause(ctx, again)
		}
	}
	return nil
}

// Ready says no while the records cannot be read, or while this process leads and cannot look at the cluster.
func (c *Controller) Ready(ctx context.Context) error {
	if at := c.passed.Load(); at != nil && c.Now().Sub(*at) > stuckAfter {
		return errStuck
	}
	return c.Store.Ping(ctx)
}

// lead makes passes until ctx ends: after each hint, and every ten seconds.
func (c *Controller) lead(ctx context.Context, hints <-chan struct{}) error {
	c.Log.Info("leading", "cluster", c.ID)
	c.Metrics.leading(true)
	c.passed.Store(new(c.Now()))
	defer func() {
		c.Metrics.leading(false)
		c.passed.Store(nil)
	}()
	watch, err := c.Cluster.Watch(ctx)
	if err != nil {
		return err
	}
	t := &term{Controller: c, watch: watch, ensured: map[string]time.Time{}, running: map[string]context.CancelFunc{}, ended: make(chan string, 16)}
	defer t.stop()
	for {
		began := c.Now()
		if err := t.pass(ctx); err != nil && ctx.Err() == nil {
			c.Log.Error("pass failed", "error", err)
			c.Metrics.failed("pass")
			pause(ctx, again)
		}
		took := c.Now().Sub(began)
		c.Metrics.passed(took)
		pause(ctx, max(settle, took)) // so that no storm of changes takes more than half of a processor
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-hints:
			t.hinted = true
		case <-watch.Changed():
		case build := <-t.ended:
			for t.forget(build); len(t.ended) > 0; {
				t.forget(<-t.ended)
			}
		case <-time.After(t.rest()):
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// A term is what one lead knows. It is used by one goroutine, apart from delays.
type term struct {
	*Controller
	watch    *kube.Watch
	delays   delays
	there    []kube.Place         // namespaces, at the last full pass
	ensured  map[string]time.Time // namespaces that were made what they should be, and when
	recorded string               // of what was seen, when it was last written
	full     time.Time            // when everything was last looked at
	swept    time.Time
	hinted   bool                          // records changed since routes were last acted on
	unserved bool                          // something about routes is left to do
	hurry    bool                          // at once
	noTCP    bool                          // it was said that routes of tcp are not served
	blocked  map[string]time.Time          // pods whose containers cannot be made, and since when
	due      time.Time                     // when an instance that has crashed is to be looked at next; zero if none is
	turn     string                        // the namespace where the last step about a crash was taken
	running  map[string]context.CancelFunc // stagings, by build
	ended    chan string                   // builds whose staging is no longer looked after
	stagings sync.WaitGroup
}

// stop waits for the stagings: nothing acts after the lead has ended.
func (t *term) stop() {
	for _, cancel := range t.running {
		cancel()
	}
	done := make(chan struct{})
	go func() {
		t.stagings.Wait()
		close(done)
	}()
	for {
		select {
		case <-t.ended:
		case <-done:
			return
		}
	}
}

// rest is how long to wait for a hint: until the next full pass, until something that failed is due, or an instance that has crashed.
func (t *term) rest() time.Duration {
	rest := t.full.Add(fullEvery).Sub(t.Now())
	if due, any := t.delays.next(); any {
		rest = min(rest, due.Sub(t.Now()))
	}
	if !t.due.IsZero() {
		rest = min(rest, t.due.Sub(t.Now()))
	}
	if t.hurry {
		return 0
	}
	return max(rest, 0)
}
