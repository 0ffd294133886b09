package ssh

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
)

// A gate counts who is in.
type gate struct {
	limits Limits

	mu            sync.Mutex
	all, channels int
	strangers     []*place           // the oldest first
	from          map[netip.Addr]int // strangers by subscriber
	people        map[string]room    // by their guid
}

// A place is what one connection takes.
type place struct {
	from netip.Addr
	drop func() // ends it while its client is a stranger
	who  string // once that is known
}

// room is what one person takes.
type room struct{ connections, channels int }

// The refusals for want of room.
var (
	errDropped  = fault.Unavailable("Too many log in at once. Try again in a moment with a new code from: proa ssh-code")
	errPerson   = fault.TooMany("You have too many connections. Close one, then get a new code with: proa ssh-code")
	errTheirs   = fault.TooMany("You have too many channels in all your connections. Close one.")
	errChannels = fault.TooMany("There are too many channels. Close one, or open another connection.")
)

// enter lets a connection in if there is room; nil is that there is none. Whoever has been a stranger for longest makes room for
// another: an honest client is one for a moment only.
func (g *gate) enter(from netip.Addr, drop func()) *place {
	p := &place{from: web.Subscriber(from), drop: drop}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all >= g.limits.Connections || g.from[p.from] >= g.limits.PerAddress {
		return nil
	}
	if len(g.strangers) >= g.limits.Strangers {
		oldest := g.strangers[0]
		g.met(oldest)
		oldest.drop()
	}
	if g.from == nil {
		g.from, g.people = map[netip.Addr]int{}, map[string]room{}
	}
	g.all++
	g.strangers = append(g.strangers, p)
	g.from[p.from]++
	return p
}

// met is called with the lock held, and tells whether it was a stranger until now.
func (g *gate) met(p *place) bool {
	at := slices.Index(g.strangers, p)
	if at < 0 {
		return false
	}
	g.strangers = slices.Delete(g.strangers, at, at+1)
	if g.from[p.from]--; g.from[p.from] == 0 {
		delete(g.from, p.from)
	}
	return true
}

// admit is when a stranger has shown a good code.
func (g *gate) admit(p *place, who string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.people[who].connections >= g.limits.PerPerson {
		return errPerson
	}
	if !g.met(p) {
		return errDropped
	}
	p.who = who
	g.take(p, room{connections: 1})
	return nil
}

func (g *gate) leave(p *place) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all--
	if !g.met(p) && p.who != "" {
		g.take(p, room{connections: -1})
	}
}

// open counts one more channel, and shut one less.
func (g *gate) open(p *place) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.channels >= g.limits.Channels:
		return errChannels
	case g.people[p.who].channels >= g.limits.TheirOwn:
		return errTheirs
	}
	g.take(p, room{channels: 1})
	return nil
}

func (g *gate) shut(p *place) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.take(p, room{channels: -1})
}

func (g *gate) take(p *place, more room) {
	g.channels += more.channels
	r := g.people[p.who]
	r.connections, r.channels = r.connections+more.connections, r.channels+more.channels
	if g.people[p.who] = r; r == (room{}) {
		delete(g.people, p.who)
	}
}

func address(conn net.Conn) netip.Addr {
	at, _ := netip.ParseAddrPort(conn.RemoteAddr().String()) // all that is no address counts as one
	return at.Addr().Unmap()
}

// A line is a connection that ends when nothing has moved on it for a while, in either direction.
type line struct {
	net.Conn
	now  func() time.Time
	idle atomic.Int64 // 0: somebody else sets deadlines
}

func (l *line) watch(idle time.Duration) {
	l.idle.Store(int64(idle))
	l.moved()
}

func (l *line) moved() {
	if idle := time.Duration(l.idle.Load()); idle > 0 {
		_ = l.SetDeadline(l.now().Add(idle)) // fails only on what is closed
	}
}

func (l *line) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if n > 0 {
		l.moved()
	}
	return n, err
}

func (l *line) Write(b []byte) (int, error) {
	n, err := l.Conn.Write(b)
	if n > 0 {
		l.moved()
	}
	return n, err
}
