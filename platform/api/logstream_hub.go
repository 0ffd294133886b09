package api

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/platform/store"
)

const (
	lookEvery  = 500 * time.Millisecond
	maxStreams = 1000 // of this process; each may hold streamBytes, and as much again on its way from the cluster
	ownStreams = 50   // of them, of one person
	ownWindows = 8    // that one person reads at once
)

// logHub is what the streams of this process share: one look at the records for all of them.
type logHub struct {
	mu      sync.Mutex
	apps    map[string]*followedApp
	readers map[string]*logReader // by the GUID of who reads, as long as they do
	count   int
	open    bool // somebody looks
	slots   chan struct{}
}

// A logReader is what one person has open.
type logReader struct {
	streams, windows int
	turns            chan struct{} // to read pods
}

type followedApp struct {
	after   int64 // number of the last line that all who follow have heard of
	streams map[*logStream]struct{}
}

var errStopping = errors.New("the API stops")

// reads are the turns of those who read pods.
func (h *logHub) reads() chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.slots == nil {
		h.slots = make(chan struct{}, allReads)
	}
	return h.slots
}

// reader finds what somebody has open.
func (h *logHub) reader(guid string) *logReader {
	if h.readers == nil {
		h.readers = map[string]*logReader{}
	}
	if h.readers[guid] == nil {
		h.readers[guid] = &logReader{turns: make(chan struct{}, ownReads)}
	}
	return h.readers[guid]
}

// forget drops somebody who has nothing open.
func (h *logHub) forget(guid string) {
	if r := h.readers[guid]; r.streams == 0 && r.windows == 0 {
		delete(h.readers, guid)
	}
}

// turns are those of somebody who has something open.
func (h *logHub) turns(guid string) chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reader(guid).turns
}

// openWindow lets somebody read a window.
func (h *logHub) openWindow(guid string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.reader(guid)
	if r.windows >= ownWindows {
		return fault.TooMany("You read %d logs at once already. Try again when one of them is there.", r.windows)
	}
	r.windows++
	return nil
}

func (h *logHub) closeWindow(guid string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readers[guid].windows--
	h.forget(guid)
}

// FollowLogs looks after the streams until the context ends. Then they end too, so that a server which waits for its requests does not
// wait for them: start it after the server, and it is stopped before it.
func (s *Server) FollowLogs(ctx context.Context) error {
	s.streams.begin()
	defer s.streams.close()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := s.streams.look(ctx, s.Store); err != nil && ctx.Err() == nil {
			s.Log.Error("logs not looked after", "error", err)
		}
	}
}

func (h *logHub) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open, h.apps = true, map[string]*followedApp{}
}

func (h *logHub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = false
	for _, app := range h.apps {
		for stream := range app.streams {
			stream.stop(errStopping)
		}
	}
}

// join adds a stream, which has heard of the lines up to its number. Lines behind it are told again to those who know them already, and
// they pass them over.
func (h *logHub) join(s *logStream) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.open:
		return fault.Unavailable("Logs cannot be followed just now. Try again in a moment.").Because(errStopping)
	case h.count >= maxStreams:
		return fault.TooMany("Too many logs are followed at once. Try again in a moment.")
	}
	reader := h.reader(s.reader)
	if reader.streams >= ownStreams {
		return fault.TooMany("You follow %d logs at once already. End one of them, and try again.", reader.streams)
	}
	reader.streams++
	app := h.apps[s.app]
	if app == nil {
		app = &followedApp{after: s.number, streams: map[*logStream]struct{}{}}
		h.apps[s.app] = app
	}
	app.after = min(app.after, s.number)
	app.streams[s] = struct{}{}
	h.count++
	return nil
}

func (h *logHub) leave(s *logStream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	app := h.apps[s.app]
	if app == nil {
		return
	}
	delete(app.streams, s)
	h.readers[s.reader].streams--
	h.forget(s.reader)
	if h.count--; len(app.streams) == 0 {
		delete(h.apps, s.app)
	}
}

// look asks for news about all apps that somebody follows, and tells those.
func (h *logHub) look(ctx context.Context, from *store.Store) error {
	h.mu.Lock()
	after := map[string]int64{}
	for guid, app := range h.apps {
		after[guid] = app.after
	}
	h.mu.Unlock()
	if len(after) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	news, err := from.LogNews(ctx, after)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for guid, asked := range after {
		app := h.apps[guid]
		if app == nil {
			continue
		}
		n, there := news[guid]
		for stream := range app.streams {
			if !there {
				stream.stop(errAppGone)
			} else {
				stream.hear(n, asked)
			}
		}
		if len(n.Lines) > 0 && app.after == asked { // nobody has joined meanwhile with an older number
			app.after = n.Lines[len(n.Lines)-1].Number
		}
	}
	return nil
}
