package kube

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	maxAsked  = 8               // at once, of one kind
	maxOfOne  = 2               // of those, for one owner
	askLimit  = 5 * time.Second // for one answer, the wait for a turn included; who has left meanwhile finds it the next time
	remember  = time.Minute
	maxMemory = 10_000 // answers
)

// memo keeps answers for a moment. Many who ask the same at the same time wait for one answer, and whoever cannot wait leaves without
// taking it from the others. What went wrong is kept too, so that a neighbour who does not answer is not asked all the time. Whoever does not answer takes turns from its owner and
// not from everybody.
type memo[V any] struct {
	fresh, failed time.Duration // how long an answer holds, and how long a failure does
	turns         chan struct{}
	flight        singleflight.Group

	mu    sync.Mutex
	owned map[string]*share
	kept  map[string]answer[V]
	swept time.Time
}

// A share is what one owner has of the turns, while it is asked something.
type share struct {
	turns chan struct{}
	users int
}

type answer[V any] struct {
	value V
	err   error
	at    time.Time
}

func newMemo[V any](fresh, failed time.Duration) *memo[V] {
	return &memo[V]{fresh: fresh, failed: failed, turns: make(chan struct{}, maxAsked), owned: map[string]*share{}, kept: map[string]answer[V]{}}
}

// get gives the answer to a question about something of an owner. It is fetched with the answer before it at hand, unless that is too old.
func (m *memo[V]) get(ctx context.Context, owner, key string, fetch func(ctx context.Context, before V) (V, error)) (V, error) {
	if a, holds := m.recall(key); holds {
		return a.value, a.err
	}
	coming := m.flight.DoChan(key, func() (any, error) {
		before, holds := m.recall(key)
		if holds { // it arrived between the look above and here
			return before.value, before.err
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askLimit)
		defer cancel()
		leave, err := m.turn(ctx, owner)
		if err != nil { // nobody was asked, so nothing is known
			return before.value, err
		}
		defer leave()
		value, err := fetch(ctx, before.value)
		m.keep(key, answer[V]{value, err, time.Now()})
		return value, err
	})
	var none V
	select {
	case <-ctx.Done():
		return none, ctx.Err()
	case r := <-coming:
		return r.Val.(V), r.Err
	}
}

// turn waits for one of the owner's turns, and then for one of all.
func (m *memo[V]) turn(ctx context.Context, owner string) (leave func(), err error) {
	s := m.share(owner)
	for n, turns := range []chan struct{}{s.turns, m.turns} {
		select {
		case turns <- struct{}{}:
		case <-ctx.Done():
			if n > 0 {
				<-s.turns
			}
			m.unshare(owner)
			return nil, ctx.Err()
		}
	}
	return func() {
		<-m.turns
		<-s.turns
		m.unshare(owner)
	}, nil
}

func (m *memo[V]) share(owner string) *share {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.owned[owner]
	if s == nil {
		s = &share{turns: make(chan struct{}, maxOfOne)}
		m.owned[owner] = s
	}
	s.users++
	return s
}

func (m *memo[V]) unshare(owner string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.owned[owner]; s.users > 1 {
		s.users--
	} else {
		delete(m.owned, owner)
	}
}

// recall gives the last answer, and whether it still holds.
func (m *memo[V]) recall(key string) (a answer[V], holds bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a = m.kept[key]
	age, limit := time.Since(a.at), m.fresh
	if a.err != nil {
		limit = m.failed
	}
	if age > remember {
		return answer[V]{}, false
	}
	return a, age < limit
}

func (m *memo[V]) keep(key string, a answer[V]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a.at.Sub(m.swept) > remember || len(m.kept) >= maxMemory {
		for old, o := range m.kept {
			if a.at.Sub(o.at) > remember {
				delete(m.kept, old)
			}
		}
		m.swept = a.at
	}
	if len(m.kept) >= maxMemory {
		clear(m.kept)
	}
	m.kept[key] = a
}
