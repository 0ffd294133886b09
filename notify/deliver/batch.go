package deliver

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/riverqueue/river"
	"golang.org/x/sync/errgroup"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/notify"
	"github.com/proa-dev/proa/notify/store"
)

// batch is one job's mails on their way.
type batch struct {
	s        *Service
	m        store.Sending
	look     store.Look
	template *notify.Parsed
	document *notify.Document
	until    time.Time
}

// run sends over as many connections as the lane has, and writes the results as they come.
func (b *batch) run(ctx context.Context, waiting []store.Delivery, people []notify.Person) error {
	pool := b.s.Pools[b.m.Class]
	results := make(chan store.Result, recordEach)
	todo := make(chan int)
	var senders errgroup.Group
	halt := &halted{done: make(chan struct{})}
	for range min(pool.PerRelay, len(waiting)) {
		senders.Go(func() error {
			for i := range todo {
				result, err := b.one(ctx, pool, waiting[i], people[i])
				if err != nil {
					halt.stop(err)
					continue
				}
				results <- result
			}
			return nil
		})
	}
	go func() {
		defer close(todo)
		for i := range waiting {
			if b.s.Now().After(b.until) {
				halt.stop(river.JobSnooze(0)) // the rest on the next turn
				return
			}
			select {
			case todo <- i:
			case <-halt.done:
				return
			case <-ctx.Done():
				halt.stop(ctx.Err())
				return
			}
		}
	}()
	go func() {
		_ = senders.Wait()
		close(results)
	}()
	if err := b.record(context.WithoutCancel(ctx), results); err != nil {
		return err
	}
	return halt.why
}

// record writes results in groups: often enough that little is repeated after a crash, rarely enough to keep pace.
func (b *batch) record(ctx context.Context, results <-chan store.Result) error {
	var first error
	for open := true; open; {
		var group []store.Result
		r, ok := <-results
		if !ok {
			break
		}
		group = append(group, r)
		timer := time.NewTimer(recordAfter)
	gather:
		for len(group) < recordEach {
			select {
			case r, ok := <-results:
				if !ok {
					open = false
					break gather
				}
				group = append(group, r)
			case <-timer.C:
				break gather
			}
		}
		timer.Stop()
		if err := b.write(ctx, group); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// write tries for a while: when the database is away for a moment, what was sent should still be known to be sent.
func (b *batch) write(ctx context.Context, group []store.Result) error {
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	for {
		err := b.s.Store.Record(ctx, b.m, group)
		if err == nil {
			for _, r := range group {
				b.s.Metrics.delivered(b.m.Class, r.State)
			}
			return nil
		}
		b.s.Log.Warn("results could not be written; trying again", "message", b.m.ID, "results", len(group), "error", err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(jitter(time.Second)):
		}
	}
}

// one sends one mail. An error stops the batch: the mail is not to blame, and stays as it is.
func (b *batch) one(ctx context.Context, pool *Pool, d store.Delivery, p notify.Person) (store.Result, error) {
	result := store.Result{Delivery: d}
	if reason := notify.Decide(b.m.Critical, p); reason != "" {
		result.State, result.Reason = notify.Undeliverable, string(reason)
		return result, nil
	}
	letter, err := b.letter(d, p)
	if err != nil {
		return result, err
	}
	mail, err := notify.Compose(letter)
	if err != nil {
		result.State, result.Reason = notify.Failed, fault.From(err).Detail
		return result, nil
	}
	begin := b.s.Now()
	err = pool.Send(ctx, Envelope{From: mail.ReturnPath, To: mail.To, Raw: mail.Raw})
	b.s.Metrics.sent(b.m.Class, b.s.Now().Sub(begin), err)
	if err == nil {
		result.State = notify.Delivered
		return result, nil
	}
	failure, ok := errors.AsType[*Failure](err)
	switch {
	case !ok:
		return result, err
	case failure.RetryAfter > 0:
		return result, river.JobSnooze(jitter(failure.RetryAfter))
	case ctx.Err() != nil && failure.kind == cancelled:
		return result, ctx.Err()
	}
	return b.failed(result, failure), nil
}

func (b *batch) failed(result store.Result, f *Failure) store.Result {
	result.Reason = f.Reason
	if f.Code != 0 {
		result.Code = fmt.Sprintf("%d %s", f.Code, f.Enhanced)
	}
	wait, again := Backoff(result.Delivery.Attempts + 1)
	if f.Permanent || !again {
		result.State = notify.Failed
		return result
	}
	result.State, result.Next = notify.Queued, b.s.Now().Add(jitter(wait))
	return result
}

func (b *batch) letter(d store.Delivery, p notify.Person) (notify.Letter, error) {
	l := notify.Letter{
		Message: b.m.Message, Template: b.template, Document: b.document, Person: p, DeliveryID: d.ID, From: b.s.From, Domain: b.s.Domain, Now: b.s.Now(), Received: b.m.Received,
		Values: notify.Values{
			From: b.s.From, To: d.Address, ReplyTo: b.m.ReplyTo, Subject: b.m.Subject, Text: b.m.Text, HTML: b.m.HTML, KindDescription: b.look.Kind, SourceDescription: b.look.Source,
			ClientID: b.m.ClientID, MessageID: b.m.ID, UserGUID: d.UserID, Space: b.m.Names.Space, Organization: b.m.Names.Organization, OrganizationGUID: b.m.Names.OrganizationGUID,
			Domain: b.s.Domain, RequestReceived: b.m.Received,
		},
	}
	switch b.m.Audience.Kind {
	case notify.ToSpace:
		l.Values.SpaceGUID = b.m.Audience.ID
	case notify.ToScope:
		l.Values.Scope = b.m.Audience.ID
	}
	l.Values.Endorsement = notify.Endorsement(b.m.Message, b.m.Names.Space, b.m.Names.Organization)
	if b.s.Path != nil {
		l.ReturnPath = b.s.Path.For(d.ID)
	}
	if !b.m.Critical && d.UserID != "" && b.m.KindID != "" {
		plain, err := notify.Unsubscribe{UserID: d.UserID, ClientID: b.m.ClientID, KindID: b.m.KindID, Issued: b.m.Received}.MarshalBinary()
		if err != nil {
			return l, err
		}
		token, err := b.s.Box.Seal(plain, []byte(notify.UnsubscribeContext))
		if err != nil {
			return l, fmt.Errorf("seal unsubscribe link: %w", err)
		}
		l.Values.UnsubscribeID = base64.RawURLEncoding.EncodeToString(token)
		l.UnsubscribeURL = b.s.URL.String() + "/unsubscribe?token=" + l.Values.UnsubscribeID
		l.Values.UnsubscribeURL = l.UnsubscribeURL
	}
	return l, nil
}

// halted stops a batch once, and remembers the first reason.
type halted struct {
	once sync.Once
	done chan struct{}
	why  error
}

func (h *halted) stop(why error) {
	h.once.Do(func() {
		h.why = why
		close(h.done)
	})
}
