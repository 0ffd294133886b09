// Package work does what a request leaves to do with service brokers: it asks them, follows what takes longer to its end, and has them
// delete what they must not keep. It also hands what developers are to be told to the notification service. Any number of processes share the work; whatever dies in between, another goes on from the rows.
package work

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/proa-dev/proa/kit/run"
	v1 "github.com/proa-dev/proa/notify/v1"
	"github.com/proa-dev/proa/platform/store"
)

// Service works on operations, on orphans, and on notices to developers.
type Service struct {
	Store   *store.Store
	HTTP    *http.Client // for brokers; its timeout is what one request may take
	Notify  *v1.Client   // nil: there is no notification service
	Limits  Limits
	Log     *slog.Logger
	Metrics *Metrics
	Now     func() time.Time
}

// Limits are how long things may take. Those that are left out are as for everybody.
type Limits struct {
	Poll    time.Duration // before the first poll, where the broker does not say; a second
	Polling time.Duration // what a broker may take for an operation, unless its plan says less; a week
	Margin  time.Duration // what a worker gets beyond the timeout of a request before it counts as dead; half a minute
	Sweep   time.Duration // between two looks for orphans and for lost operations; ten seconds
	Keep    time.Duration // how long a broker is asked to delete an orphan; a week
}

const (
	week = 7 * 24 * time.Hour
	// A worker goes on with the next step of an operation for this long, and then makes room. It must stay well below the margin.
	workFor = 5 * time.Second
	// What fetching parameters may take: nobody fails without them.
	fetchFor = 10 * time.Second
	// What the queue may take to write how the last jobs ended.
	leave = 10 * time.Second
	// Each worker mostly waits for a broker. A slow one should not keep the others waiting.
	workers = 50
)

// timeout is what one request may take.
func (s *Service) timeout() time.Duration { return or(s.HTTP.Timeout, time.Minute) }

func (s *Service) margin() time.Duration { return or(s.Limits.Margin, 30*time.Second) }

// turn is what a worker may take. Then River ends it, and others count it as dead.
func (s *Service) turn() time.Duration { return s.timeout() + s.margin() }

func (s *Service) poll() time.Duration { return or(s.Limits.Poll, time.Second) }

func (s *Service) polling() time.Duration { return or(s.Limits.Polling, week) }

func or(set, otherwise time.Duration) time.Duration {
	if set > 0 {
		return set
	}
	return otherwise
}

// Part works until its context ends, and then finishes what is under way.
func (s *Service) Part() run.Part {
	return run.Part{Name: "services", Grace: s.turn() + 2*leave, Run: func(ctx context.Context) error {
		tell := &teller{s: s}
		client, err := river.NewClient(riverpgxv5.New(s.Store.Pool()), s.queue(tell))
		if err != nil {
			return fmt.Errorf("open the queue: %w", err)
		}
		if err := client.Start(context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("start the queue: %w", err)
		}
		var known sync.WaitGroup
		known.Go(func() { tell.introduce(ctx) })
		defer known.Wait()
		s.sweepUntil(ctx)
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.turn()+leave)
		defer cancel()
		if err := client.Stop(stop); err != nil {
			return fmt.Errorf("finish the jobs under way: %w", err)
		}
		return nil
	}}
}

func (s *Service) queue(tell *teller) *river.Config {
	all := river.NewWorkers()
	river.AddWorker(all, &operator{s: s})
	river.AddWorker(all, tell)
	return &river.Config{
		Queues:  map[string]river.QueueConfig{store.OperateQueue: {MaxWorkers: workers}, store.TellQueue: {MaxWorkers: tellers}},
		Workers: all, Logger: s.Log, JobTimeout: s.turn(), RescueStuckJobsAfter: s.turn() + s.margin(),
		FetchCooldown: 50 * time.Millisecond, FetchPollInterval: max(s.poll()/2, 50*time.Millisecond), RetryPolicy: retries{},
		CompletedJobRetentionPeriod: time.Hour,
	}
}

// retries spaces the tries of a job whose worker died.
type retries struct{}

func (retries) NextRetry(job *rivertype.JobRow) time.Time {
	return time.Now().Add(jitter(min(time.Second<<min(len(job.Errors), 6), time.Minute)))
}

// jitter spreads a wait by a quarter to either side, so that what failed together does not come back together.
func jitter(d time.Duration) time.Duration {
	return d - d/4 + rand.N(d/2+1) //nolint:gosec // chance, not a secret
}

// operator works on operations.
type operator struct {
	river.WorkerDefaults[store.Operate]
	s *Service
}

// Work takes an operation as far as it goes. What is to wait is put off, and so is what failed for reasons of our own: an operation ends
// when its broker has said so, or when its time is over.
func (w *operator) Work(ctx context.Context, job *river.Job[store.Operate]) error {
	wait, err := w.s.operate(ctx, job.Args.GUID)
	switch {
	case errors.Is(err, store.ErrEnded):
		return nil
	case err == nil:
		return river.JobSnooze(wait)
	case ctx.Err() != nil:
		return river.JobSnooze(0) // we are to stop, or took too long
	case errors.Is(err, store.ErrOvertaken):
		return river.JobSnooze(time.Second) // look again: whoever overtook us may not live to end it
	}
	w.s.Log.ErrorContext(ctx, "an operation on a service cannot be worked", "operation", job.Args.GUID, "error", err)
	over, giveUp := w.s.Store.GiveUp(ctx, job.Args.GUID, w.s.polling(), "It could not be worked for reasons on our side. Tell your operator, who finds them in the log, and try again.")
	if over || errors.Is(giveUp, store.ErrEnded) {
		return nil
	}
	return river.JobSnooze(jitter(min(max(w.s.Now().Sub(job.CreatedAt)/4, time.Second), time.Minute)))
}

// operate takes steps until the operation has ended (store.ErrEnded) or has to wait.
func (s *Service) operate(ctx context.Context, guid string) (wait time.Duration, err error) {
	for until := s.Now().Add(workFor); ; {
		wait, err := s.step(ctx, guid)
		if err != nil || wait > 0 || !s.Now().Before(until) {
			return wait, err
		}
	}
}
