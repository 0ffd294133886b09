package ssh

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// A gate counts who is in.
type gate struct {
	limits Limits

	mu                       sync.Mutex
	all, strangers, channels int
	from                     map[netip.Addr]int // strangers by address
}

// enter lets a connection in if there is room.
func (g *gate) enter(from netip.Addr) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all >= g.limits.Connections || g.strangers >= g.limits.Strangers || g.from[from] >= g.limits.PerAddress {
		return false
	}
	if g.from == nil {
		g.from = map[netip.Addr]int{}
	}
	g.all++
	g.strangers++
	g.from[from]++
	return true
}

// known is when a stranger has shown a good code.
func (g *gate) known(from netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.strangers--
	if g.from[from]--; g.from[from] == 0 {
		delete(g.from, from)
	}
}

func (g *gate) leave(from netip.Addr, stranger bool) {
	if stranger {
		g.known(from)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all--
}

// channel counts one more channel, or one less; false is that there is no room.
func (g *gate) channel(by int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.channels+by > g.limits.Channels {
		return false
	}
	g.channels += by
	return true
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
