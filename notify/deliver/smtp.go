package deliver

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Pool hands mails to relays over connections that it keeps and reuses. Mails go to the first relay; while that one cannot be
// reached they go to the next. Any number of goroutines may Send. The fields are set before the first Send and not changed.
type Pool struct {
	Relays         []Relay       // in order of preference
	PerRelay       int           // connections to each; 8 unless said
	MaxPerConn     int           // mails over one connection; 100 unless said
	IdleFor        time.Duration // how long an unused connection is kept; 30 s unless said
	DialTimeout    time.Duration // for the connection and the TLS handshake; 10 s unless said
	CommandTimeout time.Duration // for each reply, or up to twice as long; 1 min unless said
	Now            func() time.Time
	DKIM           *Signer // nil: mails are not signed
	Log            *slog.Logger

	once   sync.Once
	active sync.WaitGroup

	mu      sync.Mutex
	relays  []*relay
	waiting []chan struct{} // Sends that need a connection, the first to come first
	sweeper *time.Timer     // closes what has been idle for long; nil while nothing is idle
	closed  bool
}

// relay is a relay as the pool knows it now.
type relay struct {
	Relay
	tls      *tls.Config
	idle     []*conn       // the one used last is last
	live     int           // connections, idle ones included
	dialing  int           // connections being opened
	coolFor  time.Duration // 0: reachable, as far as is known
	coolTill time.Time     // when it is tried again
	why      *Failure      // what it cools down from
}

// How long a relay that could not be reached is left alone: so long at first, and twice as long each time, up to a limit.
const (
	coolMin = 10 * time.Second
	coolMax = time.Minute
)

// Send hands over one mail and returns when a relay has confirmed it, or a *Failure. A mail is given to a relay twice only if
// the line broke before the first had a byte of it.
func (p *Pool) Send(ctx context.Context, mail Envelope) error {
	p.once.Do(p.start)
	if !p.enter() {
		return &Failure{Reason: "The notification service is stopping.", RetryAfter: time.Second, kind: cancelled}
	}
	defer p.active.Done()
	l, f := newLetter(mail, p.DKIM)
	if f == nil {
		f = p.send(ctx, l)
	}
	if f != nil {
		return f
	}
	return nil
}

func (p *Pool) start() {
	p.PerRelay = cmp.Or(p.PerRelay, 8)
	p.MaxPerConn = cmp.Or(p.MaxPerConn, 100)
	p.IdleFor = cmp.Or(p.IdleFor, 30*time.Second)
	p.DialTimeout = cmp.Or(p.DialTimeout, 10*time.Second)
	p.CommandTimeout = cmp.Or(p.CommandTimeout, time.Minute)
	p.Log = cmp.Or(p.Log, slog.Default())
	if p.Now == nil {
		p.Now = time.Now
	}
	name, err := os.Hostname()
	if err != nil {
		name = "localhost"
	}
	for _, r := range p.Relays {
		r.Hello = cmp.Or(r.Hello, name)
		p.relays = append(p.relays, &relay{Relay: r, tls: &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: r.RootCAs, ServerName: cmp.Or(r.ServerName, r.host()),
			ClientSessionCache: tls.NewLRUClientSessionCache(p.PerRelay),
		}})
	}
}

// enter counts a mail as under way, unless the pool is closed.
func (p *Pool) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.active.Add(1)
	return true
}

// send finds a connection and hands the letter over. It tries again at once when the relay has no byte of the mail: on a fresh
// connection to the same relay, and then on the next relay if this one ends its sessions.
func (p *Pool) send(ctx context.Context, l *letter) *Failure {
	var again *relay // has a place for a fresh connection, kept for this letter
	for tries := 1; ; tries++ {
		c, f := p.connection(ctx, again)
		if f != nil {
			return f
		}
		if f = c.send(ctx, l); f == nil || f.kind == judged {
			p.release(c)
			return f
		}
		again = nil
		switch {
		case (f.kind == goodbye || f.kind == broken) && tries == 1:
			again = p.reopen(c)
		case (f.kind == goodbye || f.kind == misset) && tries <= len(p.relays)+1:
			p.cool(ctx, c.relay, f)
			p.drop(c)
		default:
			p.drop(c)
			return f
		}
	}
}

// connection returns one that is ready: an idle one, or a fresh one to the first relay that can be reached.
func (p *Pool) connection(ctx context.Context, r *relay) (*conn, *Failure) {
	for {
		if r == nil {
			var c *conn
			var f *Failure
			if r, c, f = p.acquire(ctx); c != nil || f != nil {
				return c, f
			}
		}
		c, f := open(ctx, r, p.DialTimeout, p.CommandTimeout)
		p.opened(ctx, r, f)
		if f == nil || f.kind == cancelled {
			return c, f
		}
		r = nil
	}
}
