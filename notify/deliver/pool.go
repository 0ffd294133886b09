package deliver

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// acquire waits for an idle connection, or for a place to open one, which the caller then must.
func (p *Pool) acquire(ctx context.Context) (*relay, *conn, *Failure) {
	for called := false; ; called = true {
		p.mu.Lock()
		if called || len(p.waiting) == 0 { // who comes later does not overtake
			if r, c, wait := p.pick(); !wait {
				f := p.unreachable(r)
				p.mu.Unlock()
				return r, c, f
			}
		}
		turn := make(chan struct{})
		p.waiting = append(p.waiting, turn)
		p.mu.Unlock()
		select {
		case <-turn:
		case <-ctx.Done():
			p.leave(turn)
			return nil, nil, lineFault(ctx, cancelled, ctx.Err())
		}
	}
}

// pick chooses the first relay that is not cooling down: an idle connection, a place for one more, or to wait for either. A
// relay that cools down but has connections takes no more of them: those it has are used, and waited for if there is no other
// relay. When its time is over, one Send alone tries whether it is back. All answers nil and false: no relay can be reached.
func (p *Pool) pick() (r *relay, c *conn, wait bool) {
	for _, r := range p.relays {
		if n := len(r.idle); n > 0 {
			c, r.idle = r.idle[n-1], r.idle[:n-1]
			return r, c, false
		}
		room := r.live+r.dialing < p.PerRelay
		switch {
		case r.coolFor == 0 && !room:
			return nil, nil, true
		case r.coolFor == 0, room && r.dialing == 0 && !p.Now().Before(r.coolTill):
			r.dialing++
			return r, nil, false
		}
		wait = wait || r.live+r.dialing > 0
	}
	return nil, nil, wait
}

// unreachable is the failure when pick found no relay: that of the one that is tried next.
func (p *Pool) unreachable(picked *relay) *Failure {
	if picked != nil {
		return nil
	}
	if len(p.relays) == 0 {
		return &Failure{kind: absent, Reason: "No mail relay is set.", RetryAfter: coolMax}
	}
	next := slices.MinFunc(p.relays, func(a, b *relay) int { return a.coolTill.Compare(b.coolTill) })
	f := *next.why
	f.RetryAfter = max(next.coolTill.Sub(p.Now()), time.Second)
	return &f
}

// opened records how opening a connection went: it counts, or the relay cools down.
func (p *Pool) opened(ctx context.Context, r *relay, f *Failure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.dialing--
	switch {
	case f == nil:
		r.live++
		if r.coolFor > 0 {
			r.coolFor = 0
			p.Log.LogAttrs(ctx, slog.LevelInfo, "mail relay can be used again", slog.Any("relay", r.Relay))
			p.callAll()
		}
	case f.kind == cancelled:
		p.callAll()
	default:
		p.coolDown(ctx, r, f)
	}
}

// cool leaves a relay alone that ends the sessions it begins.
func (p *Pool) cool(ctx context.Context, r *relay, f *Failure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.coolDown(ctx, r, f)
}

// coolDown says so in the log once, however many connections fail at the same time.
func (p *Pool) coolDown(ctx context.Context, r *relay, f *Failure) {
	r.why = f
	if now := p.Now(); r.coolFor == 0 || !now.Before(r.coolTill) {
		r.coolFor = min(max(2*r.coolFor, coolMin), coolMax)
		r.coolTill = now.Add(r.coolFor)
		level := slog.LevelWarn
		if f.kind == misset {
			level = slog.LevelError
		}
		p.Log.LogAttrs(ctx, level, "mail relay cannot be used",
			slog.Any("relay", r.Relay), slog.String("error", f.Error()), slog.Duration("retry_in", r.coolFor))
	}
	p.callAll()
}

// release gives a connection back after a mail that the relay answered.
func (p *Pool) release(c *conn) {
	switch {
	case c.spoilt:
		p.drop(c)
		return
	case c.mails >= p.MaxPerConn:
		p.active.Go(func() { p.dismiss(c) }) // the mail is delivered: its Send need not wait
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c.resting = p.Now()
	c.relay.idle = append(c.relay.idle, c)
	if p.sweeper == nil {
		p.sweeper = time.AfterFunc(p.IdleFor, p.sweep)
	}
	if len(p.waiting) > 0 {
		p.callFirst()
	}
}

// drop closes a connection that is of no more use.
func (p *Pool) drop(c *conn) {
	_ = c.tcp.Close()
	p.forget(c)
}

// dismiss takes leave of a connection.
func (p *Pool) dismiss(c *conn) {
	c.quit()
	p.forget(c)
}

// forget makes room, when the connection is closed and not before: relays count, too.
func (p *Pool) forget(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.relay.live--
	p.callAll()
}

// reopen closes a connection and keeps its place for a fresh one, unless its relay cools down.
func (p *Pool) reopen(c *conn) *relay {
	_ = c.tcp.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	c.relay.live--
	if c.relay.coolFor > 0 {
		p.callAll()
		return nil
	}
	c.relay.dialing++
	return c.relay
}

func (p *Pool) callFirst() {
	close(p.waiting[0])
	p.waiting = p.waiting[1:]
}

func (p *Pool) callAll() {
	for len(p.waiting) > 0 {
		p.callFirst()
	}
}

// leave ends a wait. Who had been called meanwhile passes the call on.
func (p *Pool) leave(turn chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, turn); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	} else if len(p.waiting) > 0 {
		p.callFirst()
	}
}

// sweep takes leave of connections that have been idle for too long, and comes back when the next one will have been.
func (p *Pool) sweep() {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.active.Add(1)
	defer p.active.Done()
	p.sweeper = nil
	old, next := p.takeIdle(p.Now().Add(-p.IdleFor))
	if next > 0 {
		p.sweeper = time.AfterFunc(next, p.sweep)
	}
	p.mu.Unlock()
	p.dismissAll(old)
}

// takeIdle removes what has been idle since a time or longer, and says how long it takes until that is true of more; 0: never.
func (p *Pool) takeIdle(since time.Time) (old []*conn, next time.Duration) {
	for _, r := range p.relays {
		n := 0
		for n < len(r.idle) && !r.idle[n].resting.After(since) {
			n++
		}
		old = append(old, r.idle[:n]...)
		r.idle = slices.Delete(r.idle, 0, n)
		if len(r.idle) > 0 {
			if wait := max(r.idle[0].resting.Sub(since), time.Millisecond); next == 0 || wait < next {
				next = wait
			}
		}
	}
	return old, next
}

func (p *Pool) dismissAll(conns []*conn) {
	var all sync.WaitGroup
	for _, c := range conns {
		all.Go(func() { p.dismiss(c) })
	}
	all.Wait()
}

// Close waits for the mails under way and closes all connections. A Send that comes later fails, as one to try again.
func (p *Pool) Close() {
	p.once.Do(p.start)
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.active.Wait()
	p.mu.Lock()
	if p.sweeper != nil {
		p.sweeper.Stop()
	}
	var idle []*conn
	for _, r := range p.relays {
		idle = append(idle, r.idle...)
		r.idle = nil
	}
	p.mu.Unlock()
	p.dismissAll(idle)
}
