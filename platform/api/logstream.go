package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/kube"
	"github.com/proa-dev/proa/platform/store"
)

// The stream of an app's lines is the protocol of Cloud Foundry's RLP gateway: events of a server (text/event-stream) whose data is a
// batch of envelopes, with heartbeats in between, and one named closing at the end. Whoever hears that asks again.

const (
	heartbeat = 15 * time.Second
	recheck   = 4             // heartbeats between two looks whether the reader may still read
	writeTime = time.Minute   // for an event on its way to the reader
	maxFollow = 256           // pods in one stream at once
	maxKnown  = 4 * maxFollow // with those that have gone

	forgetPods   = 10 * time.Minute // after they have gone; by then what they said last is in the records
	maxUndecided = 2000             // lines
	decideTime   = 10 * time.Second // for a line of a pod whose log may still bring it
)

var (
	errTokenExpired = errors.New("the token has expired")
	errAppGone      = errors.New("the app was deleted")
	errNotAllowed   = errors.New("you may not read this log any more")
	errTooLong      = errors.New("the stream has been open for a day")
)

// logQuery are the parameters of a stream: those of the gateway, and our own.
func logQuery() []string {
	return []string{"log", "source_id", "shard_id", "deterministic_name", "counter", "counter.name", "gauge", "gauge.name", "timer", "event",
		"process", "instance", "sidecar", "recent", "start_time"}
}

func streamRoom() web.Room { return web.Room{Time: 24 * time.Hour} }

// A logStream is what one reader hears.
type logStream struct {
	server *Server
	reader string // the GUID of who reads
	place  store.LogPlace
	filter platform.LogFilter
	silent bool // the reader asks for something else than log, and there is nothing else
	lines  *logLines
	ctx    context.Context // of its request: its parts are started from elsewhere, and end with it
	stop   context.CancelCauseFunc
	group  sync.WaitGroup

	mu        sync.Mutex
	app       string
	number    int64 // of the last line of the records that was heard of
	since     int64 // saved lines before this are not asked for
	records   *logQueue
	chunk     logChunk
	followers map[string]*follower // by UID of their pods, also those that are gone
	undecided []undecidedLine
	begun     bool // the pods that there were are followed
	tooMany   bool
}

// An undecidedLine was saved from a pod whose log may still bring it.
type undecidedLine struct {
	platform.LogLine
	until time.Time
}

// streamLog answers with lines as they come.
func (s *Server) streamLog(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	q := r.URL.Query()
	filter, err := logFilter(q)
	if err != nil {
		return err
	}
	if len(q["source_id"]) != 1 {
		return badQuery("source_id must be the guid of one app")
	}
	recent, err := optional(q, "recent", maxLines)
	if err != nil {
		return err
	}
	start, err := nanoseconds(q, "start_time", 0)
	if err != nil {
		return err
	}
	place, err := s.Store.LogPlace(r.Context(), who, q.Get("source_id"))
	if err != nil {
		return err
	}
	stream := s.newStream(r.Context(), place, filter)
	stream.reader, stream.silent = who.GUID, !q.Has("log")
	if start != 0 {
		stream.since = start
		if stream.number, err = s.Store.LogNumber(r.Context(), place.App, start); err != nil {
			return err
		}
	}
	defer stream.close()
	if err := s.streams.join(stream); err != nil {
		return err
	}
	defer s.streams.leave(stream)
	out := &eventWriter{w: w, control: http.NewResponseController(w)}
	if err := out.begin(); err != nil {
		return err
	}
	first, err := stream.begin(who, recent, start)
	if err == nil {
		err = stream.pass(out, who, first)
	}
	return out.end(cmp.Or(stream.cause(), err))
}

func (s *Server) newStream(ctx context.Context, place store.LogPlace, filter platform.LogFilter) *logStream {
	stream := &logStream{server: s, place: place, app: place.App, number: place.Last, filter: filter, lines: newLogLines(), since: time.Now().UnixNano(), followers: map[string]*follower{}}
	stream.ctx, stream.stop = context.WithCancelCause(ctx)
	stream.records = stream.lines.queue(place.App)
	return stream
}

// cause is why a stream has ended; nothing before it has.
func (l *logStream) cause() error { return context.Cause(l.ctx) }

func (l *logStream) close() {
	l.stop(context.Canceled)
	l.group.Wait()
}

// begin starts to follow the pods that are there, and gives the lines to begin with: the newest so many, without those of staging,
// which is over and was long, unless it is asked for. What follows begins right behind them, or with the first line from a time on, if one is named.
func (l *logStream) begin(who platform.Who, recent int, start int64) ([]platform.LogLine, error) {
	var read windowRead
	if recent > 0 && start == 0 && !l.silent {
		window := store.LogWindow{From: math.MinInt64, To: math.MaxInt64, Limit: recent, Descending: true, Filter: l.filter, Upto: l.place.Last}
		if window.Filter.Source == "" {
			window.Filter.Except = platform.SourceStaging
		}
		var err error
		if read, err = l.server.readWindow(l.ctx, who, l.place, window); err != nil {
			return nil, err
		}
		slices.Reverse(read.lines)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun = true
	for _, p := range l.place.Pods {
		position, known := read.positions[p.UID]
		l.follow(p, newFollower(position, start, start == 0 && !known))
	}
	return read.lines, nil
}

// follow adds a pod, once.
func (l *logStream) follow(p store.LogPod, f *follower) {
	if _, known := l.followers[p.UID]; known || p.UID == "" || l.silent || !l.filter.Pod(p.Process, p.Index) || l.ctx.Err() != nil {
		return
	}
	cluster, known := l.server.Clusters[l.place.Cluster]
	if !known || len(l.followers) >= maxKnown || l.following() >= maxFollow {
		if !l.tooMany {
			l.tooMany = true
			l.say("Not all instances are followed here. Narrow it to a process or an instance.")
		}
		return
	}
	f.stream, f.cluster, f.of, f.pod = l, cluster, p, kube.AppPod{Namespace: l.place.Namespace, Name: p.Name, UID: p.UID}
	f.sources, f.queue = map[string]*logSource{}, l.lines.queue(l.app)
	l.followers[p.UID] = f
	l.group.Go(func() { f.run(l.ctx) })
}

// following counts the pods that are there.
func (l *logStream) following() (n int) {
	for _, f := range l.followers {
		if f.gone().IsZero() {
			n++
		}
	}
	return n
}

// hear takes news about the app: lines of the records behind the number asked for, and the pods that there are now.
func (l *logStream) hear(n store.LogNews, asked int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return
	}
	if l.begun { // before that, those that are there are not new
		l.hearPods(n.Pods)
	}
	lines := l.undecided
	l.undecided = nil
	for _, line := range n.Lines {
		if asked <= l.number && line.Number > l.number { // who has joined later with an older number is told the next time
			l.number = line.Number
			lines = append(lines, undecidedLine{line.LogLine, time.Now().Add(decideTime)})
		}
	}
	for _, line := range lines {
		l.record(line)
	}
	l.lines.add(l.records, &l.chunk, nil)
}

// hearPods follows the pods that are new, and forgets those that went long ago.
func (l *logStream) hearPods(pods []store.LogPod) {
	there := map[string]bool{}
	for _, p := range pods {
		there[p.UID] = true
		l.follow(p, newFollower(logPosition{}, 0, false))
	}
	for uid, f := range l.followers {
		if gone := f.gone(); !there[uid] && !gone.IsZero() && time.Since(gone) > forgetPods {
			delete(l.followers, uid)
		}
	}
}

// record adds a line of the records, unless it was saved from a pod and has been read there. As long as that may still happen, the line
// waits.
func (l *logStream) record(line undecidedLine) {
	at, saved := line.At.UnixNano(), line.PodUID != ""
	if l.silent || saved && at < l.since || !l.filter.Fits(line.Source, line.Instance, line.Text) {
		return
	}
	if saved {
		has, may := false, !l.begun
		if f := l.followers[line.PodUID]; f != nil {
			has, may = f.knows(at)
		}
		if has {
			return
		}
		if may && time.Now().Before(line.until) && len(l.undecided) < maxUndecided {
			l.undecided = append(l.undecided, line)
			return
		}
	}
	l.chunk.add(at, newLogSource(l.app, line.Source, line.Instance, line.Stderr), []byte(line.Text))
}

// say adds a line of the platform's own.
func (l *logStream) say(text string) {
	l.chunk.add(time.Now().UnixNano(), &l.records.source, []byte(text))
	l.lines.add(l.records, &l.chunk, nil)
}

// pass hands lines on to the reader until one of the two ends.
func (l *logStream) pass(out *eventWriter, who platform.Who, first []platform.LogLine) error {
	for _, line := range first {
		out.line(line)
	}
	if err := out.send(); err != nil {
		return err
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for beats := 1; ; {
		var again time.Duration
		out.event, out.lines, again = l.lines.take(out.open(), time.Now())
		if err := out.send(); err != nil {
			return err
		}
		timer.Reset(again)
		select {
		case <-l.ctx.Done():
			return l.rest(out)
		case <-l.lines.wake:
		case <-timer.C:
		case <-beat.C:
			if err := out.beat(); err != nil {
				return err
			}
			if beats++; beats%recheck == 0 {
				if _, err := l.server.Store.LogPlace(l.ctx, who, l.app); fault.Is(err, fault.KindNotFound) || fault.Is(err, fault.KindForbidden) {
					l.stop(errNotAllowed)
				}
			}
		}
	}
}

// rest hands on what waits, as far as it has come, when a stream ends that the reader has not ended.
func (l *logStream) rest(out *eventWriter) error {
	for errors.Is(l.cause(), errAppGone) || errors.Is(l.cause(), errTokenExpired) {
		out.event, out.lines, _ = l.lines.take(out.open(), time.Now().Add(holdBack))
		if out.lines == 0 {
			return nil
		}
		if err := out.send(); err != nil {
			return err
		}
	}
	return nil
}

// An eventWriter writes events to a reader.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	event   []byte
	lines   int
}

const (
	eventStart = `data: {"batch":[`
	eventEnd   = "]}\n\n"
)

func (o *eventWriter) begin() error {
	h := o.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // what stands between us and the reader shall not collect
	return o.beat()
}

// open is the start of an event in memory of the last one, unless that was a large one.
func (o *eventWriter) open() []byte {
	if cap(o.event) > chunkBytes && o.lines == 0 {
		o.event = nil
	}
	return append(o.event[:0], eventStart...)
}

func (o *eventWriter) line(l platform.LogLine) {
	if o.lines == 0 {
		o.event = o.open()
	} else {
		o.event = append(o.event, ',')
	}
	o.event = appendEnvelope(o.event, l.At.UnixNano(), newLogSource(l.App, l.Source, l.Instance, l.Stderr), []byte(l.Text))
	o.lines++
}

func (o *eventWriter) send() error {
	if o.lines == 0 {
		return nil
	}
	o.event = append(o.event, eventEnd...)
	return o.write(o.event)
}

func (o *eventWriter) beat() error {
	return o.write(fmt.Appendf(nil, "event: heartbeat\ndata: %d\n\n", time.Now().Unix()))
}

// end tells the reader why. One who has gone hears nothing.
func (o *eventWriter) end(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = errTooLong
	}
	for _, said := range []error{errTokenExpired, errAppGone, errNotAllowed, errTooLong, errStopping} {
		if errors.Is(err, said) {
			return o.write(fmt.Appendf(nil, "event: closing\ndata: %s\n\n", said))
		}
	}
	_ = o.write([]byte("event: closing\ndata: the log could not be read\n\n"))
	return err
}

func (o *eventWriter) write(event []byte) error {
	_ = o.control.SetWriteDeadline(time.Now().Add(writeTime)) // what has no connection has no deadline to move
	if _, err := o.w.Write(event); err != nil {
		return context.Canceled // the reader has gone
	}
	if err := o.control.Flush(); err != nil {
		return context.Canceled
	}
	return nil
}

// logFilter reads our own parameters.
func logFilter(q url.Values) (platform.LogFilter, error) {
	f := platform.LogFilter{Process: q.Get("process"), Sidecar: q.Get("sidecar"), Instance: q.Get("instance"), Source: q.Get("source_type")}
	if f.Instance != "" {
		n, err := number("instance", f.Instance, 0, math.MaxInt32)
		if err != nil {
			return f, err
		}
		f.Instance = strconv.Itoa(n)
	}
	return f, nil
}

func optional(q url.Values, name string, most int) (int, error) {
	if !q.Has(name) {
		return 0, nil
	}
	return number(name, q.Get(name), 0, most)
}

func quote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		return `""` // a string always has a form
	}
	return string(quoted)
}
