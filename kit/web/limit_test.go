package web_test

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/proa-dev/proa/kit/web"
)

var (
	caller = netip.MustParseAddr("203.0.113.7")
	other  = netip.MustParseAddr("203.0.113.8")
)

// newLimiter has a budget of 3 and forgives one each 10 seconds. Its clock stands until it is moved.
func newLimiter() (*web.Limiter, func(time.Duration)) {
	now := time.Unix(1_750_000_000, 0)
	return &web.Limiter{Every: 10 * time.Second, Burst: 3, Now: func() time.Time { return now }},
		func(d time.Duration) { now = now.Add(d) }
}

func mistakes(l *web.Limiter, addr netip.Addr, n int) {
	for range n {
		l.Mistake(addr)
	}
}

func wantWait(t *testing.T, l *web.Limiter, addr netip.Addr, want time.Duration) {
	t.Helper()
	if got := l.Wait(addr); (got - want).Abs() > time.Millisecond { // tokens are counted in floating point
		t.Errorf("%s must wait %s, want %s", addr, got, want)
	}
}

func TestLimiterBudgetAndRefill(t *testing.T) {
	l, pass := newLimiter()
	wantWait(t, l, caller, 0)
	mistakes(l, caller, 2)
	for range 100 {
		wantWait(t, l, caller, 0) // asking costs nothing
	}
	mistakes(l, caller, 1)
	wantWait(t, l, caller, 10*time.Second)
	wantWait(t, l, other, 0)
	pass(4 * time.Second)
	wantWait(t, l, caller, 6*time.Second)
	pass(6 * time.Second)
	wantWait(t, l, caller, 0)
	mistakes(l, caller, 1)
	wantWait(t, l, caller, 10*time.Second)
	pass(time.Hour) // forgives all three and not more
	mistakes(l, caller, 2)
	wantWait(t, l, caller, 0)
	mistakes(l, caller, 1)
	wantWait(t, l, caller, 10*time.Second)
}

// Guesses that were all let in before the first of them failed are a debt, with an end.
func TestLimiterOverdraft(t *testing.T) {
	l, pass := newLimiter()
	mistakes(l, caller, 4)
	wantWait(t, l, caller, 20*time.Second)
	mistakes(l, caller, 1000)
	wantWait(t, l, caller, 40*time.Second)
	pass(40 * time.Second)
	wantWait(t, l, caller, 0)
}

func TestLimiterAddresses(t *testing.T) {
	for _, c := range []struct {
		name, a, b string
		same       bool
	}{
		{"IPv4", "203.0.113.7", "203.0.113.8", false},
		{"IPv6 of one /64", "2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true},
		{"IPv6 of the next /64", "2001:db8:1:2::1", "2001:db8:1:3::1", false},
		{"IPv4 and the same in IPv6", "203.0.113.7", "::ffff:203.0.113.7", true},
		{"two IPv4 in IPv6", "::ffff:203.0.113.7", "::ffff:203.0.113.8", false},
		{"zones", "fe80::1%eth0", "fe80::1%eth1", true},
	} {
		l, _ := newLimiter()
		mistakes(l, netip.MustParseAddr(c.a), 3)
		if got := l.Wait(netip.MustParseAddr(c.b)) > 0; got != c.same {
			t.Errorf("%s: share a budget: %t, want %t", c.name, got, c.same)
		}
	}
}

func nth(n int) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], 0x0a000000+uint32(n))
	return netip.AddrFrom4(b)
}

func TestLimiterMemoryIsBounded(t *testing.T) {
	t.Parallel()
	l, pass := newLimiter()
	for n := range web.MaxBudgets - 1 {
		l.Mistake(nth(n))
	}
	pass(10 * time.Second) // all of them are forgiven
	mistakes(l, caller, 3)
	if got := l.Remembered(); got != web.MaxBudgets {
		t.Fatalf("%d addresses are remembered, want %d", got, web.MaxBudgets)
	}
	l.Mistake(other)
	if got := l.Remembered(); got != 2 {
		t.Errorf("%d addresses are remembered, want the 2 with less than a whole budget", got)
	}
	wantWait(t, l, caller, 10*time.Second)

	for n := range web.MaxBudgets + 10 { // nobody is forgiven now
		l.Mistake(nth(n))
		if n%1000 == 0 && l.Remembered() > web.MaxBudgets {
			t.Fatalf("%d addresses are remembered", l.Remembered())
		}
	}
	if got := l.Remembered(); got > web.MaxBudgets {
		t.Errorf("%d addresses are remembered", got)
	}
}

func TestLimiterTakesManyAtOnce(t *testing.T) {
	l, _ := newLimiter()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for n := range 100 {
				l.Wait(nth(n))
				l.Mistake(nth(n))
			}
		})
	}
	group.Wait()
	wantWait(t, l, nth(99), 40*time.Second)
}
