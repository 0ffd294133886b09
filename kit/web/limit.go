package web

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limiter holds a budget of mistakes for each address. A good request costs nothing, so an office behind one address and a
// busy service are not slowed; guessing is.
//
// The budget is per process: behind N processes an address has N budgets.
type Limiter struct {
	Every time.Duration // one mistake is forgiven each Every
	Burst int           // mistakes that may come at once
	Now   func() time.Time

	mu      sync.Mutex
	budgets map[netip.Addr]*rate.Limiter
}

// The most addresses remembered. When full, those with a whole budget are forgotten, then everything: under a flood from
// more addresses than this, the account lockout is what still holds.
const maxBudgets = 100_000

// Wait is zero while the address may try, else the time until it may.
func (l *Limiter) Wait(addr netip.Addr) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.budgets[Subscriber(addr)]
	if b == nil {
		return 0
	}
	if tokens := b.TokensAt(l.Now()); tokens < 1 {
		return time.Duration((1 - tokens) * float64(l.Every))
	}
	return 0
}

// Mistake takes one from the address's budget. Requests under way at once may overdraw it, by another Burst at most, and the
// debt is worked off before the address may try again: so guessing many times at once gains little.
func (l *Limiter) Mistake(addr netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.budgets[Subscriber(addr)]
	if b == nil {
		if l.budgets == nil || len(l.budgets) >= maxBudgets {
			l.sweep()
		}
		b = rate.NewLimiter(rate.Every(l.Every), l.Burst)
		l.budgets[Subscriber(addr)] = b
	}
	if now := l.Now(); b.TokensAt(now) > -float64(l.Burst) {
		b.ReserveN(now, 1)
	}
}

func (l *Limiter) sweep() {
	now := l.Now()
	for addr, b := range l.budgets {
		if b.TokensAt(now) >= float64(l.Burst) {
			delete(l.budgets, addr)
		}
	}
	if l.budgets == nil || len(l.budgets) >= maxBudgets {
		l.budgets = map[netip.Addr]*rate.Limiter{}
	}
}

// Subscriber puts an IPv6 address into its /64, which is what one subscriber has.
func Subscriber(addr netip.Addr) netip.Addr {
	addr = addr.Unmap()
	if addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return addr
}
