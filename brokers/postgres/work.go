package postgres

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/run"
)

// Part works on operations until it is stopped. An operation that is under way then is given back, and goes on where it was, here or in another process.
func (b *Broker) Part() run.Part {
	b.wake = make(chan struct{}, 1)
	return run.Part{Name: "operations", Grace: 20 * time.Second, Run: func(ctx context.Context) error {
		var all sync.WaitGroup
		for range cmp.Or(b.Workers, 4) {
			all.Go(func() { b.work(ctx) })
		}
		all.Go(func() { b.sweep(ctx) })
		all.Wait()
		return nil
	}}
}

// nudge tells a worker that something was queued. It is a hint: workers look by themselves every second.
func (b *Broker) nudge() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *Broker) work(ctx context.Context) {
	for ctx.Err() == nil {
		i, found, err := b.State.claim(ctx, cmp.Or(b.Lease, 5*time.Second))
		if err != nil && ctx.Err() == nil {
			b.Log.WarnContext(ctx, "the queue cannot be read", "error", err)
		}
		if found {
			b.nudge() // more may have been queued than one can do
			b.attempt(ctx, i)
			continue
		}
		select {
		case <-ctx.Done():
		case <-b.wake:
		case <-time.After(time.Second):
		}
	}
}

// attempt tries an operation once, and says when to try again if it did not come to an end.
func (b *Broker) attempt(ctx context.Context, i instance) {
	err := b.perform(ctx, i)
	if err == nil {
		return
	}
	log := b.Log.With("instance", i.ID, "operation", string(i.Op), "tries", i.Tries)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	var f *fault.Error
	var stuck error
	switch {
	case errors.As(err, &f):
		log.WarnContext(ctx, "operation failed", "error", err)
		stuck = b.State.finish(end, i, f.Detail)
	case i.Age > cmp.Or(b.Patience, time.Hour):
		log.ErrorContext(ctx, "operation given up", "error", err)
		stuck = b.State.finish(end, i, "The database server could not do this in time. Try again, and tell the operator of the service if it stays.")
	case ctx.Err() != nil:
		stuck = b.State.release(end, i, 0)
	case errors.Is(err, errBusy):
		stuck = b.State.release(end, i, time.Second)
	default:
		log.WarnContext(ctx, "operation is tried again", "error", err)
		stuck = b.State.release(end, i, min(time.Second<<min(i.Tries-1, 5), 30*time.Second))
	}
	if stuck != nil {
		log.WarnContext(ctx, "operation is left until its lease ends", "error", stuck)
	}
}

// perform takes the steps of an operation. Each looks first whether it was taken before, so the whole may be begun again wherever it was left.
func (b *Broker) perform(ctx context.Context, claimed instance) error {
	begin := time.Now()
	return b.Server.locked(ctx, claimed.ID, time.Second, func(conn *pgx.Conn) error {
		i, err := b.State.instance(ctx, claimed.ID)
		if errors.Is(err, errNoInstance) || err == nil && (i.OpID != claimed.OpID || !i.busy()) {
			return nil // somebody else came to the end of it
		}
		if err != nil {
			return err
		}
		steps := map[kind]func(context.Context, *pgx.Conn, instance) error{create: b.make, update: b.alter, remove: b.unmake}[i.Op]
		if err := steps(ctx, conn, i); err != nil {
			return err
		}
		if err := b.step(string(i.Op)+": done", func() error { return b.State.finish(ctx, i, "") }); err != nil {
			return err
		}
		b.Log.InfoContext(ctx, "operation done", "instance", i.ID, "operation", string(i.Op), "plan", i.ToPlan, "took", i.Age+time.Since(begin), "tries", i.Tries)
		return nil
	})
}

// step takes one, unless a test stops here.
func (b *Broker) step(name string, take func() error) error {
	if b.Step != nil {
		if err := b.Step(name); err != nil {
			return err
		}
	}
	return take()
}

func (b *Broker) make(ctx context.Context, conn *pgx.Conn, i instance) error {
	plan, err := b.known(i.ToPlan)
	if err != nil {
		return err
	}
	name, owner := databaseName(i.ID), ownerName(i.ID)
	if err := b.step("create: owner", func() error { return b.makeOwner(ctx, conn, i.ID) }); err != nil {
		return err
	}
	if err := b.step("create: database", func() error { return makeDatabase(ctx, conn, name) }); err != nil {
		return err
	}
	if err := b.step("create: rights", func() error { return allow(ctx, conn, name, owner, plan) }); err != nil {
		return err
	}
	return b.step("create: content", func() error { return b.Server.furnish(ctx, conn, i, plan) })
}

func (b *Broker) alter(ctx context.Context, conn *pgx.Conn, i instance) error {
	plan, err := b.known(i.ToPlan)
	if err != nil {
		return err
	}
	if len(i.ToExtensions) > len(i.Extensions) { // none is ever taken away
		if err := b.step("update: extensions", func() error { return b.Server.furnish(ctx, conn, i, plan) }); err != nil {
			return err
		}
	}
	return b.step("update: limits", func() error { return limit(ctx, conn, databaseName(i.ID), plan) })
}

func (b *Broker) unmake(ctx context.Context, conn *pgx.Conn, i instance) error {
	if err := b.step("delete: database", func() error { return dropDatabase(ctx, conn, databaseName(i.ID)) }); err != nil {
		return err
	}
	logins, err := b.State.logins(ctx, i.ID)
	if err != nil {
		return err
	}
	owner := ownerName(i.ID)
	for _, login := range logins {
		if err := b.step("delete: login", func() error { return retire(ctx, conn, login, owner) }); err != nil {
			return err
		}
	}
	for _, role := range append(logins, owner) {
		if err := b.step("delete: role", func() error { return b.dropOrDiscard(ctx, conn, i.ID, role) }); err != nil {
			return err
		}
	}
	return nil
}

// makeOwner makes the owner role, or takes up that of an instance with the same id, which could not be dropped.
func (b *Broker) makeOwner(ctx context.Context, conn *pgx.Conn, instance string) error {
	if err := b.State.forget(ctx, ownerName(instance)); err != nil {
		return err
	}
	return makeOwner(ctx, conn, ownerName(instance))
}

// known is a plan that was offered once. The operator may have taken it away meanwhile.
func (b *Broker) known(id string) (Plan, error) {
	plan, ok := b.plan(id)
	if !ok {
		return plan, fault.Unprocessable("The plan of this instance is offered no more. Ask the operator of the service to bring it back.")
	}
	return plan, nil
}
