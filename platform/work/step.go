package work

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/broker"
	"github.com/proa-dev/proa/platform/store"
)

// step asks the broker once, and writes what that means.
func (s *Service) step(ctx context.Context, guid string) (wait time.Duration, err error) {
	t, err := s.Store.Claim(ctx, guid, s.turn())
	switch {
	case err != nil:
		return 0, err
	case t.NotDue > 0:
		return t.NotDue, nil
	case t.Missing:
		return 0, s.write(ctx, t, "gone", func(ctx context.Context) error { return s.Store.Vanish(ctx, t) })
	case t.Idle:
		return 0, s.write(ctx, t, "done", func(ctx context.Context) error { return s.Store.Succeed(ctx, t, store.Result{}) })
	case t.Refused != "":
		return 0, s.fail(ctx, t, platform.Verdict{Next: platform.NextFail, Words: t.Refused})
	}
	a, catalog := s.ask(ctx, t)
	if a.Status == 0 && ctx.Err() != nil {
		return 0, ctx.Err() // we broke off, not the broker: whoever goes on asks again
	}
	return s.conclude(ctx, t, censored(a, t.Account), catalog)
}

// conclude writes what an answer means.
func (s *Service) conclude(ctx context.Context, t store.Errand, a platform.Answer, catalog platform.Catalog) (wait time.Duration, err error) {
	deadline := s.deadline(t)
	v := platform.Judge(platform.Question{
		Kind: t.Asks(), Stage: t.Stage, Again: t.Again, Late: !s.Now().Before(deadline), Polls: t.Polls, Retrievable: t.BindingsRetrievable, FirstWait: s.poll(),
	}, a)
	s.Log.DebugContext(ctx, "asked a service broker", "operation", t.GUID, "kind", t.Kind, "stage", t.Stage, "broker", t.Broker.Name, "status", a.Status, "next", v.Next, "cause", a.Cause)
	switch v.Next {
	case platform.NextDone:
		return 0, s.succeed(ctx, t, v, s.complete(ctx, t, a), catalog)
	case platform.NextFail:
		s.Log.WarnContext(ctx, "an operation on a service failed", "operation", t.GUID, "kind", t.Kind, "subject", t.Subject, "broker", t.Broker.Name, "status", a.Status,
			"code", a.Code, "cause", a.Cause, "orphan", v.Orphan) // not in its words, which may repeat a parameter that is a secret
		return 0, s.fail(ctx, t, v)
	}
	p := s.pause(t, v, a, deadline)
	return p.Wait, s.write(ctx, t, "", func(ctx context.Context) error { return s.Store.Park(ctx, t, p) })
}

// deadline is when the operation has to have ended. The time begins when the broker says that it takes longer.
func (s *Service) deadline(t store.Errand) time.Time {
	if !t.Deadline.IsZero() {
		return t.Deadline
	}
	if t.Stage == platform.StageAsk {
		return t.CreatedAt.Add(s.polling())
	}
	return s.Now().Add(s.polling())
}

// pause is where the operation waits, and not beyond its deadline.
func (s *Service) pause(t store.Errand, v platform.Verdict, a platform.Answer, deadline time.Time) store.Pause {
	p := store.Pause{Stage: platform.Stage(v.Next), Token: t.Token, Polls: t.Polls + 1, Wait: v.Wait, Deadline: t.Deadline, Words: v.Words, DashboardURL: a.DashboardURL}
	switch {
	case t.Stage == platform.StageAsk && p.Stage == platform.StagePoll:
		takes := s.polling()
		if t.MaxPolling > 0 {
			takes = min(takes, t.MaxPolling)
		}
		p.Token, p.Polls, p.Deadline = a.Token, 0, s.Now().Add(takes)
		deadline = p.Deadline
	case t.Stage != p.Stage:
		p.Polls = 0
	}
	p.Wait = max(min(p.Wait, deadline.Sub(s.Now())), 0)
	return p
}

// complete adds what the broker tells about what it has made. Where it does not, there is nothing to tell.
func (s *Service) complete(ctx context.Context, t store.Errand, a platform.Answer) platform.Answer {
	ctx, cancel := context.WithTimeout(ctx, min(fetchFor, s.timeout()))
	defer cancel()
	var more platform.Answer
	switch kind := t.Kind; {
	case kind == platform.BindingCreate && t.Stage == platform.StageAsk && t.BindingsRetrievable:
		more = s.broker(t).Binding(ctx, call(t))
	case (kind == platform.InstanceCreate || kind == platform.InstanceUpdate) && t.InstancesRetrievable:
		c := call(t)
		c.PlanID = t.NewPlanID
		more = s.broker(t).Instance(ctx, c)
	default:
		return a
	}
	more = censored(more, t.Account)
	if more.Status != 200 || more.Malformed {
		s.Log.WarnContext(ctx, "a service broker does not tell the parameters of what it has made", "kind", t.Kind, "subject", t.Subject, "broker", t.Broker.Name, "status", more.Status, "cause", more.Cause)
		return a
	}
	a.Parameters = more.Parameters
	if a.DashboardURL == "" {
		a.DashboardURL = more.DashboardURL
	}
	return a
}

func (s *Service) succeed(ctx context.Context, t store.Errand, v platform.Verdict, a platform.Answer, catalog platform.Catalog) error {
	r := store.Result{Words: v.Words, DashboardURL: a.DashboardURL, Details: a.Details, Parameters: a.Parameters, Catalog: catalog}
	err := s.write(ctx, t, "done", func(ctx context.Context) error { return s.Store.Succeed(ctx, t, r) })
	if no, ok := errors.AsType[*fault.Error](err); ok { // such as a catalog that cannot be used
		return s.fail(ctx, t, platform.Verdict{Next: platform.NextFail, Orphan: t.Kind.Creates(), Words: no.Detail})
	}
	return err
}

func (s *Service) fail(ctx context.Context, t store.Errand, v platform.Verdict) error {
	return s.write(ctx, t, "failed", func(ctx context.Context) error { return s.Store.Fail(ctx, t, v) })
}

// write tries for a while: when the database is away for a moment, what a broker said should still be known.
func (s *Service) write(ctx context.Context, t store.Errand, result string, write func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.margin()/2)
	defer cancel()
	for {
		err := write(ctx)
		_, refused := errors.AsType[*fault.Error](err)
		switch {
		case err == nil && result != "":
			s.Metrics.ended(t.Asks(), result)
			return nil
		case err == nil || refused || errors.Is(err, store.ErrOvertaken):
			return err
		}
		s.Log.WarnContext(ctx, "what a service broker said could not be written; trying again", "operation", t.GUID, "error", err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(jitter(time.Second)):
		}
	}
}

// ask asks what the stage says.
func (s *Service) ask(ctx context.Context, t store.Errand) (platform.Answer, platform.Catalog) {
	b, c, kind := s.broker(t), call(t), t.Asks()
	if kind.OfBroker() {
		catalog, a := b.Catalog(ctx)
		return a, catalog
	}
	var request func(context.Context, broker.Call) platform.Answer
	switch {
	case t.Stage == platform.StageFetch:
		request = b.Binding
	case t.Stage == platform.StagePoll && kind.OfBinding():
		request = b.BindingOperation
	case t.Stage == platform.StagePoll:
		request = b.InstanceOperation
	default:
		request = map[platform.OperationKind]func(context.Context, broker.Call) platform.Answer{
			platform.InstanceCreate: b.Provision, platform.InstanceUpdate: b.Update, platform.InstanceDelete: b.Deprovision,
			platform.BindingCreate: b.Bind, platform.BindingDelete: b.Unbind,
		}[kind]
	}
	return request(ctx, c), nil
}

func (s *Service) broker(t store.Errand) *broker.Broker {
	return &broker.Broker{URL: t.Broker.URL, Account: t.Account, HTTP: s.HTTP}
}

// call is what a broker is told.
func call(t store.Errand) broker.Call {
	i := t.Instance
	c := broker.Call{
		InstanceID: i.GUID, ServiceID: t.ServiceID, PlanID: t.PlanID, Token: t.Token, Parameters: t.Request.Parameters, Maintenance: t.Maintenance, Who: t.Request.Who,
		OrgGUID: i.OrgGUID, SpaceGUID: i.SpaceGUID, Context: map[string]any{"organization_name": t.OrgName, "space_name": t.SpaceName},
	}
	switch {
	case t.Binding != "":
		c.BindingID = t.Binding
	case t.Kind.OfBinding():
		c.BindingID, c.AppGUID, c.OrgGUID, c.SpaceGUID = t.Bound.GUID, t.Bound.AppGUID, t.Bound.OrgGUID, t.Bound.SpaceGUID
	default:
		c.Context["instance_name"] = i.Name
	}
	if t.Kind == platform.InstanceUpdate && t.Stage == platform.StageAsk {
		c.PlanID = t.NewPlanID
		c.Previous = &broker.Previous{ServiceID: t.ServiceID, PlanID: t.PlanID, OrgGUID: i.OrgGUID, SpaceGUID: i.SpaceGUID, Maintenance: i.Maintenance}
		if t.Request.Name != nil {
			c.Context["instance_name"] = *t.Request.Name
		}
	}
	return c
}

// censored is an answer without our password, should the broker repeat it, and no longer than the log likes it.
func censored(a platform.Answer, account platform.BrokerAccount) platform.Answer {
	if len(account.Password) < 4 { // such a one would take ordinary words apart, and protects nothing
		return a.Clipped()
	}
	for _, words := range []*string{&a.Description, &a.Cause, &a.Code} {
		*words = strings.ReplaceAll(*words, account.Password, "…")
	}
	return a.Clipped()
}
