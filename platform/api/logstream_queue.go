package api

import (
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/proa-dev/proa/platform"
)

const (
	streamBytes  = 4 << 20                // of lines that wait for one reader
	urgentBytes  = 512 << 10              // with more than this, nobody is waited for but those who write too
	chunkBytes   = 32 << 10               // of lines that are kept together
	chunkTime    = 50 * time.Millisecond  // and that have come together
	holdBack     = 300 * time.Millisecond // for lines of others with an older time
	holdOne      = 20 * time.Millisecond  // where there are no others, so that lines leave together
	readPatience = 3 * time.Second        // with a reader who does not keep up, before lines are dropped
	lineOverhead = 24                     // bytes that a line takes beside its text
	eventBytes   = 256 << 10              // of one event, about
	maxSources   = 256                    // that are remembered: who forges more is served more slowly
)

// logLines are the lines that wait for the reader of one stream. Every container has a queue, and so have the records. Whoever adds lines
// is not held up by a reader who is slow: beyond a limit the oldest go, and the reader is told how many in their place.
type logLines struct {
	mu       sync.Mutex
	queues   []*logQueue
	open     int // queues that have not ended
	bytes    int
	patience time.Duration
	wake     chan struct{} // gets a value when there is something to look at for who takes lines
	room     chan struct{} // and for who adds them
}

func newLogLines() *logLines {
	return &logLines{patience: readPatience, wake: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// A logQueue keeps its lines in the order in which they came.
type logQueue struct {
	chunks  []*logChunk
	dropped int       // lines, before the first
	source  logSource // of what is said about them
	at      int64     // of the last that was dropped
	ended   bool      // nothing is added any more
}

type logChunk struct {
	come  time.Time
	text  []byte
	lines []logMark
	taken int // lines
}

type logMark struct {
	at     int64
	source *logSource
	end    int // of its text
}

// A logSource is what is the same for many lines: all of an envelope but its time and its text.
type logSource struct{ before, after string }

func newLogSource(app, source, instance string, stderr bool) *logSource {
	kind := "OUT"
	if stderr {
		kind = "ERR"
	}
	return &logSource{
		before: fmt.Sprintf(`","source_id":%s,"instance_id":%s,"tags":{"source_type":%s},"log":{"payload":"`, quote(app), quote(instance), quote(source)),
		after:  `","type":"` + kind + `"}}`,
	}
}

func (c *logChunk) size() int { return cap(c.text) + lineOverhead*cap(c.lines) }

func (c *logChunk) start() int {
	if c.taken == 0 {
		return 0
	}
	return c.lines[c.taken-1].end
}

func (c *logChunk) add(at int64, source *logSource, text []byte) {
	c.text = append(c.text, text...)
	c.lines = append(c.lines, logMark{at, source, len(c.text)})
}

// queue makes room for another writer.
func (b *logLines) queue(app string) *logQueue {
	q := &logQueue{source: *newLogSource(app, platform.SourceAPI, "", false)}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queues = append(b.queues, q)
	b.open++
	return q
}

func (b *logLines) end(q *logQueue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q.ended = true
	b.open--
}

// hold is how long lines wait for others. The records are asked now and then anyway, so beside them one container has nobody to wait for.
func (b *logLines) hold() time.Duration {
	if b.open > 2 {
		return holdBack
	}
	return holdOne
}

// add hands over the lines of a chunk, which is empty then. It waits a little for a reader who is behind, until the channel is closed, or
// not at all without one.
func (b *logLines) add(q *logQueue, c *logChunk, wait <-chan struct{}) {
	if len(c.lines) == 0 {
		return
	}
	defer c.empty()
	b.mu.Lock()
	defer b.mu.Unlock()
	for wait != nil && b.patience > 0 && b.bytes+c.size() > streamBytes {
		b.mu.Unlock()
		began := time.Now()
		timer := time.NewTimer(chunkTime)
		select {
		case <-b.room:
		case <-timer.C:
		case <-wait:
			wait = nil
		}
		timer.Stop()
		b.mu.Lock()
		b.patience -= time.Since(began)
	}
	for b.bytes+c.size() > streamBytes && b.drop() {
	}
	empty := b.bytes == 0
	b.bytes += q.put(c, time.Now())
	if empty || b.bytes > urgentBytes {
		hint(b.wake)
	}
}

// put adds to the last chunk if that has come just now, and tells by how much the queue has grown.
func (q *logQueue) put(c *logChunk, now time.Time) int {
	if len(q.chunks) > 0 {
		last := q.chunks[len(q.chunks)-1]
		if now.Sub(last.come) < chunkTime && len(last.text)+len(c.text) <= chunkBytes {
			size, end := last.size(), len(last.text)
			last.text = append(last.text, c.text...)
			for _, l := range c.lines {
				l.end += end
				last.lines = append(last.lines, l)
			}
			return last.size() - size
		}
	}
	own := &logChunk{come: now, text: slices.Clone(c.text), lines: slices.Clone(c.lines)}
	q.chunks = append(q.chunks, own)
	return own.size()
}

// empty keeps the memory of a small chunk for the next lines.
func (c *logChunk) empty() {
	if cap(c.text) > 2*chunkBytes {
		c.text, c.lines = nil, nil
	}
	c.text, c.lines = c.text[:0], c.lines[:0]
}

func hint(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// drop gives up the chunk that begins with the oldest line.
func (b *logLines) drop() bool {
	var from *logQueue
	for _, q := range b.queues {
		if len(q.chunks) > 0 && (from == nil || q.chunks[0].head() < from.chunks[0].head()) {
			from = q
		}
	}
	if from == nil {
		return false
	}
	c := from.chunks[0]
	from.dropped += len(c.lines) - c.taken
	from.at = c.lines[len(c.lines)-1].at
	b.forget(from)
	return true
}

func (c *logChunk) head() int64 { return c.lines[c.taken].at }

func (c *logChunk) last() int64 { return c.lines[len(c.lines)-1].at }

func (b *logLines) forget(q *logQueue) {
	b.bytes -= q.chunks[0].size()
	q.chunks[0] = nil
	if q.chunks = q.chunks[1:]; len(q.chunks) == 0 {
		q.chunks = nil
	}
}

// head is the time of the next thing that a queue has to say, or the end of all time.
func (q *logQueue) head() int64 {
	switch {
	case q.dropped > 0:
		return q.at
	case len(q.chunks) > 0:
		return q.chunks[0].head()
	}
	return math.MaxInt64
}

// due tells up to which time lines may leave now: that of the newest which has waited long enough. When too much waits, it is that which
// all who write have reached, and in the end everything. And it tells when to ask again.
func (b *logLines) due(now time.Time) (until int64, again time.Duration) {
	until, again = math.MinInt64, time.Hour
	common := int64(math.MaxInt64)
	for _, q := range b.queues {
		if q.dropped > 0 && len(q.chunks) == 0 {
			until = max(until, q.at)
		}
		for _, c := range q.chunks {
			wait := b.hold() - now.Sub(c.come)
			if wait > 0 {
				again = min(again, wait)
				break
			}
			until = max(until, c.last())
		}
		if len(q.chunks) > 0 {
			common = min(common, q.chunks[len(q.chunks)-1].last())
		}
	}
	if b.bytes > urgentBytes {
		until = max(until, common)
	}
	if b.bytes > streamBytes/2 {
		until = math.MaxInt64 - 1
	}
	return until, again
}

// take appends lines to an event that may leave now, oldest first, and tells how many and when to ask again.
func (b *logLines) take(event []byte, now time.Time) (_ []byte, lines int, again time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	until, again := b.due(now)
	for len(event) < eventBytes {
		q, next := b.first()
		if q == nil || q.head() > until {
			break
		}
		var n int
		event, n = b.run(event, q, min(next, until), lines > 0)
		lines += n
	}
	b.queues = deleteEnded(b.queues)
	if b.bytes < streamBytes/2 {
		b.patience = readPatience
	}
	hint(b.room)
	if len(event) >= eventBytes {
		again = 0
	}
	return event, lines, again
}

// first is the queue with the oldest line, and the time of the oldest in the others.
func (b *logLines) first() (q *logQueue, next int64) {
	oldest := int64(math.MaxInt64)
	next = math.MaxInt64
	for _, one := range b.queues {
		switch head := one.head(); {
		case head < oldest:
			q, next, oldest = one, oldest, head
		case head < next:
			next = head
		}
	}
	return q, next
}

// run appends lines of one queue up to a time.
func (b *logLines) run(event []byte, q *logQueue, until int64, follows bool) (_ []byte, lines int) {
	put := func(at int64, source *logSource, text []byte) {
		if follows || lines > 0 {
			event = append(event, ',')
		}
		event = appendEnvelope(event, at, source, text)
		lines++
	}
	if q.dropped > 0 {
		put(q.at, &q.source, fmt.Appendf(nil, "%d lines were dropped here, because they were not read fast enough.", q.dropped))
		q.dropped = 0
	}
	for len(q.chunks) > 0 {
		c := q.chunks[0]
		start := c.start()
		for c.taken < len(c.lines) {
			l := c.lines[c.taken]
			if l.at > until || len(event) >= eventBytes {
				return event, lines
			}
			put(l.at, l.source, c.text[start:l.end])
			start = l.end
			c.taken++
		}
		b.forget(q)
	}
	return event, lines
}

func deleteEnded(queues []*logQueue) []*logQueue {
	kept := queues[:0]
	for _, q := range queues {
		if !q.ended || q.dropped > 0 || len(q.chunks) > 0 {
			kept = append(kept, q)
		}
	}
	clear(queues[len(kept):])
	return kept
}

func appendEnvelope(event []byte, at int64, source *logSource, text []byte) []byte {
	event = append(event, `{"timestamp":"`...)
	event = strconv.AppendInt(event, at, 10)
	event = append(event, source.before...)
	event = base64.StdEncoding.AppendEncode(event, text)
	return append(event, source.after...)
}
