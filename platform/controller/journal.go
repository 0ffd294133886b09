package controller

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/store"
)

const (
	flushAt  = 100      // lines
	maxText  = 16 << 10 // bytes of a line
	maxLines = 20_000   // of one try: what a buildpack prints is its own, and stays in the database
)

// A journal writes the log of one try of a build. Whoever follows a try after another has died hears it from its first line again: as
// many as are written already are passed over.
type journal struct {
	store    *store.Store
	app, try string
	begun    time.Time // when base was asked for, by our clock
	base     time.Time // the database's clock at that moment

	mu      sync.Mutex // of what follows, and held while writing: batches keep their order
	last    time.Time
	written int // lines of this try, those that wait included
	heard   int
	phase   string
	wait    []platform.LogLine
}

func newJournal(s *store.Store, app string, try int, state store.StagingLog, now time.Time) *journal {
	j := &journal{store: s, app: app, try: strconv.Itoa(try), begun: now, base: state.Now, last: state.Last}
	if try < len(state.Lines) {
		j.written = state.Lines[try]
	}
	return j
}

// rewind is for hearing the try from its first line.
func (j *journal) rewind() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.heard, j.phase = 0, ""
}

// say adds a line, unless it was heard and written before.
func (j *journal) say(ctx context.Context, text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.add(ctx, text)
}

// line takes what a staging prints. A phase that has something to say is announced.
func (j *journal) line(ctx context.Context, phase, text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if phase != j.phase {
		j.phase = phase
		j.add(ctx, "-----> "+phase)
	}
	j.add(ctx, text)
}

func (j *journal) add(ctx context.Context, text string) {
	if j.heard++; j.heard <= j.written || j.heard > maxLines+1 {
		return
	}
	if j.heard > maxLines {
		text = "Staging has printed more than the log takes; the rest of it is left out."
	}
	j.written++
	at := j.base.Add(time.Since(j.begun))
	if !at.After(j.last) {
		at = j.last.Add(time.Nanosecond)
	}
	j.last = at
	j.wait = append(j.wait, platform.LogLine{App: j.app, At: at, Source: platform.SourceStaging, Instance: j.try, Text: clean(text)})
	if len(j.wait) >= flushAt {
		_ = j.flushHeld(ctx) // and if not now, then with the next
	}
}

// clean makes a line of whatever a buildpack printed.
func clean(text string) string {
	cut := ""
	if len(text) > maxText {
		text, cut = text[:maxText], " … (cut)"
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD") + cut
}

func (j *journal) flush(ctx context.Context) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.flushHeld(ctx)
}

func (j *journal) flushHeld(ctx context.Context) error {
	if len(j.wait) == 0 {
		return nil
	}
	err := j.store.AppendLog(ctx, j.wait)
	if err == nil {
		j.wait = nil
	}
	return err
}

// keepFlushing writes what waits five times a second, until the returned function is called, which writes the rest.
func (j *journal) keepFlushing(ctx context.Context) func() error {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(flushEvery)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ctx.Done():
				return
			case <-tick.C:
				_ = j.flush(ctx)
			}
		}
	}()
	return func() error {
		close(stop)
		<-stopped
		return j.flush(ctx)
	}
}
