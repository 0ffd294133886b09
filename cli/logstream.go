package cli

import (
	"context"
	"hash/maphash"
	"net/url"
	"strconv"
	"time"

	"github.com/proa-dev/proa/kit/fault"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// streamsLogs tells whether the API streams logs itself. Of another platform the link leads to another server, which is none of ours.
func (s *session) streamsLogs(ctx context.Context) (bool, error) {
	var root v3.Root
	if err := s.get(ctx, "/", &root); err != nil {
		return false, err
	}
	link := root.Links["log_stream"]
	if link == nil {
		return false, nil
	}
	here, err := url.Parse(s.cfg.API)
	if err != nil {
		return false, err
	}
	there, err := url.Parse(link.Href)
	return err == nil && there.Scheme == here.Scheme && there.Host == here.Host, nil
}

const (
	firstPause = 250 * time.Millisecond
	lastPause  = 5 * time.Second
	maxTries   = 10 // in a row
)

// stream shows lines as they come, until the context ends. A connection that breaks is made again, and goes on where it was.
func (l *logs) stream(ctx context.Context, s *session) error {
	var seen memory
	query := l.only.query()
	query.Set("source_id", l.app)
	query.Set("recent", strconv.Itoa(firstLines))
	pause, tries := firstPause, 0
	for {
		closing, err := l.client.FollowLog(ctx, query, func(batch []v3.LogEnvelope) {
			pause, tries = firstPause, 0
			if batch = l.only.fitting(seen.fresh(batch)); len(batch) > 0 {
				s.printLogs(batch)
			}
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if tries++; fault.Is(err, fault.KindUnauthorized) || fault.Is(err, fault.KindForbidden) || fault.Is(err, fault.KindNotFound) || err != nil && tries >= maxTries {
			return err
		}
		if err == nil && closing != "" {
			pause = firstPause // it was ended in order, such as when the token had expired
		}
		if err := s.wait(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, lastPause)
		seen.breaks(query)
	}
}

// memory knows which lines were shown last, so that what comes again after a break is not shown twice.
type memory struct {
	seed   maphash.Seed
	newest int64
	shown  []shownLine // of the last moments
	again  map[uint64]int
	until  int64 // lines that are newer cannot have been shown
}

type shownLine struct {
	at  int64
	sum uint64
}

const maxMemory = 1_000_000 // lines

// breaks says what to ask for after a break: from a little before the last line on, because lines of several instances come out of order;
// and when there was none, all that there are now have come since.
func (m *memory) breaks(query url.Values) {
	if m.newest == 0 {
		query.Set("recent", strconv.Itoa(logPage))
		return
	}
	query.Del("recent")
	query.Set("start_time", strconv.FormatInt(m.newest-overlap, 10))
	m.forget()
	m.again, m.until = map[uint64]int{}, m.newest
	for _, line := range m.shown {
		m.again[line.sum]++
	}
}

// fresh leaves the lines that were not shown yet.
func (m *memory) fresh(batch []v3.LogEnvelope) []v3.LogEnvelope {
	kept := batch[:0]
	for _, e := range batch {
		line := shownLine{e.Timestamp, m.sum(e)}
		if m.again[line.sum] > 0 {
			m.again[line.sum]--
			continue
		}
		m.newest = max(m.newest, e.Timestamp)
		m.shown = append(m.shown, line)
		kept = append(kept, e)
	}
	if m.newest > m.until+overlap {
		m.again = nil
	}
	if len(m.shown) > 1000 && m.shown[len(m.shown)/2].at < m.newest-overlap || len(m.shown) > maxMemory {
		m.forget()
	}
	return kept
}

func (m *memory) forget() {
	kept := m.shown[:0]
	for _, line := range m.shown {
		if line.at >= m.newest-overlap {
			kept = append(kept, line)
		}
	}
	m.shown = kept[max(0, len(kept)-maxMemory/2):]
}

func (m *memory) sum(e v3.LogEnvelope) uint64 {
	if m.seed == (maphash.Seed{}) {
		m.seed = maphash.MakeSeed()
	}
	var h maphash.Hash
	h.SetSeed(m.seed)
	maphash.WriteComparable(&h, e.Timestamp)
	_, _ = h.WriteString(e.InstanceID + "\x00" + e.Tags["source_type"] + "\x00")
	_, _ = h.Write(e.Log.Payload)
	return h.Sum64()
}
