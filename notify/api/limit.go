package api

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/proa-dev/proa/kit/fault"
)

// Rate is how many sends a client may make: PerSecond for long, Burst at once. It counts per process.
type Rate struct {
	PerSecond int
	Burst     int
}

// budgets holds what is left to each client. Clients are known to the authorization server, so there are not many.
type budgets struct {
	rate Rate
	now  func() time.Time
	mu   sync.Mutex
	left map[string]*rate.Limiter
}

func newBudgets(r Rate, now func() time.Time) *budgets {
	return &budgets{rate: r, now: now, left: map[string]*rate.Limiter{}}
}

// take uses one send of a client's budget, and tells in the headers what is left of it.
func (b *budgets) take(w http.ResponseWriter, client string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.left[client]
	if l == nil {
		l = rate.NewLimiter(rate.Limit(b.rate.PerSecond), b.rate.Burst)
		b.left[client] = l
	}
	now := b.now()
	ok := l.AllowN(now, 1)
	tokens := l.TokensAt(now)
	reset := 1
	if missing := float64(b.rate.Burst) - tokens; missing > 0 {
		reset = int(missing/float64(b.rate.PerSecond)) + 1
	}
	w.Header().Set("RateLimit-Limit", strconv.Itoa(b.rate.Burst))
	w.Header().Set("RateLimit-Remaining", strconv.Itoa(max(0, int(tokens))))
	w.Header().Set("RateLimit-Reset", strconv.Itoa(reset))
	if ok {
		return nil
	}
	wait := max(1, int((1-tokens)/float64(b.rate.PerSecond)+0.999))
	w.Header().Set("Retry-After", strconv.Itoa(wait))
	return fault.TooMany("This client sends more than %d messages a second. Wait as long as the Retry-After header says, then go on.", b.rate.PerSecond)
}
