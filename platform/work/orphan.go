package work

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/broker"
	"github.com/proa-dev/proa/platform/store"
)

// sweepUntil looks for orphans and for lost operations until its context ends. Those of the one do not wait for the other.
func (s *Service) sweepUntil(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { s.every(ctx, "orphans", s.sweep) })
	both.Go(func() { s.every(ctx, "lost operations", s.requeue) })
	both.Wait()
}

// every takes turns with some time between them, unless there is more to do at once.
func (s *Service) every(ctx context.Context, what string, turn func(context.Context) (more bool, err error)) {
	for every := or(s.Limits.Sweep, 10*time.Second); ; {
		more, err := turn(ctx)
		if err != nil && ctx.Err() == nil {
			s.Log.ErrorContext(ctx, "what is left to do with service brokers cannot be looked for", "what", what, "error", err)
		}
		wait := jitter(every)
		if more {
			wait = 0
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// requeue takes a turn with operations that their workers left.
func (s *Service) requeue(ctx context.Context) (more bool, err error) {
	lost, err := s.Store.Requeue(ctx, s.margin())
	if lost > 0 {
		s.Log.WarnContext(ctx, "operations on services were left by their workers, and are taken on again", "operations", lost)
	}
	return false, err
}

// A turn takes so many orphans on at once, and so many of one broker.
const (
	swept     = 20
	sweptEach = 5
)

// sweep takes a turn with orphans. There may be more of those that it took some of.
func (s *Service) sweep(ctx context.Context) (more bool, err error) {
	orphans, err := s.Store.ClaimOrphans(ctx, swept, sweptEach, s.turn())
	if err != nil {
		return false, err
	}
	var all sync.WaitGroup
	for _, o := range orphans {
		all.Go(func() {
			if err := s.mitigate(ctx, o); err != nil && ctx.Err() == nil {
				s.Log.ErrorContext(ctx, "what became of an orphan at a service broker cannot be written", "instance", o.InstanceID, "binding", o.BindingID, "error", err)
			}
		})
	}
	all.Wait()
	waiting, abandoned, err := s.Store.CountOrphans(ctx)
	if err == nil {
		s.Metrics.orphaned(waiting, abandoned)
	}
	return len(orphans) > 0 && err == nil, err
}

// mitigate asks a broker to delete an orphan, or how far it is with that.
func (s *Service) mitigate(ctx context.Context, o store.Orphan) error {
	q := platform.Question{Kind: o.Kind(), Stage: platform.StageAsk, Polls: o.Tries, FirstWait: s.poll()}
	if o.Token != "" {
		q.Stage = platform.StagePoll
	}
	a := s.askOrphan(ctx, o)
	if a.Status == 0 && ctx.Err() != nil {
		return ctx.Err()
	}
	v := platform.Judge(q, a)
	why := strings.TrimSpace(v.Words + " " + a.Cause)
	switch {
	case v.Next == platform.NextDone:
		s.Log.InfoContext(ctx, "a service broker has deleted an orphan", "instance", o.InstanceID, "binding", o.BindingID, "tries", o.Tries)
		return s.Store.EndOrphan(ctx, o)
	case s.Now().Sub(o.CreatedAt) > or(s.Limits.Keep, week):
		s.Log.ErrorContext(ctx, "a service broker does not delete an orphan, and is not asked again: look at it with the broker's operator",
			"broker", o.BrokerGUID, "instance", o.InstanceID, "binding", o.BindingID, "since", o.CreatedAt, "why", why)
		return s.Store.AbandonOrphan(ctx, o, why)
	case v.Next == platform.NextPoll && q.Stage == platform.StageAsk:
		return s.Store.ParkOrphan(ctx, o, token(a.Token), v.Wait, "")
	case v.Next == platform.NextPoll:
		return s.Store.ParkOrphan(ctx, o, o.Token, v.Wait, why)
	}
	s.Log.WarnContext(ctx, "a service broker did not delete an orphan; trying again", "instance", o.InstanceID, "binding", o.BindingID, "tries", o.Tries, "why", why)
	return s.Store.ParkOrphan(ctx, o, "", max(a.RetryAfter, jitter(s.backoff(o.Tries))), why)
}

// backoff is from the time between two looks on twice as long each time, to an hour.
func (s *Service) backoff(tries int) time.Duration {
	return min(or(s.Limits.Sweep, 10*time.Second)<<min(max(tries-1, 0), 12), time.Hour)
}

// unnamed stands for a deletion that takes longer and that the broker did not give a name.
const unnamed = "\x01"

func token(said string) string {
	if said == "" {
		return unnamed
	}
	return said
}

// askOrphan asks the broker. That we cannot log in to it is no answer either.
func (s *Service) askOrphan(ctx context.Context, o store.Orphan) platform.Answer {
	if err := s.Store.OpenOrphan(&o); err != nil {
		return platform.Answer{Unsent: true, Cause: err.Error()}
	}
	b := &broker.Broker{URL: o.URL, Account: o.Account, HTTP: s.HTTP}
	c := broker.Call{InstanceID: o.InstanceID, BindingID: o.BindingID, ServiceID: o.ServiceID, PlanID: o.PlanID}
	if o.Token != unnamed {
		c.Token = o.Token
	}
	request := b.Deprovision
	switch {
	case o.Token != "" && o.BindingID != "":
		request = b.BindingOperation
	case o.Token != "":
		request = b.InstanceOperation
	case o.BindingID != "":
		request = b.Unbind
	}
	return censored(request(ctx, c), o.Account)
}
