package api

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/kube"
	"github.com/proa-dev/proa/platform/store"
)

// A follower reads the log of one pod as fast as it comes, for one stream.
type follower struct {
	stream  *logStream
	cluster *kube.Cluster
	pod     kube.AppPod
	of      store.LogPod

	next     int   // the oldest run that was not read to its end, by how often the container had been started again before it
	reading  int   // the run that is being read
	since    int64 // nothing before this is asked for; zero is from the first line
	fromNow  bool  // nothing that is there already is asked for
	seeking  bool  // for the position, after a break
	passed   int   // lines at the position
	queue    *logQueue
	chunk    logChunk
	sources  map[string]*logSource // by sidecar; none if its lines are not asked for
	failures int

	mu        sync.Mutex
	position  logPosition // of the last line that was read
	spans     []logSpan   // that were read without a gap, the newest last
	goneSince time.Time   // zero while the pod may be there
}

// A logSpan is from the time of a line to that of a later one.
type logSpan struct{ first, last int64 }

// maxSpans are remembered: more runs of a pod than are saved from it before it is taken away.
const maxSpans = 32

func newFollower(position logPosition, since int64, fromNow bool) *follower {
	f := &follower{next: position.run, position: position, since: since, fromNow: fromNow}
	if position.first > 0 {
		f.spans = []logSpan{{position.first, position.at}}
	}
	return f
}

// knows tells whether the line of a time was read, and if not, whether it may still be.
func (f *follower) knows(at int64) (has, may bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.spans {
		if s.first <= at && at <= s.last {
			return true, false
		}
	}
	return false, f.goneSince.IsZero() && at > f.position.at
}

// gone is since when the pod is gone.
func (f *follower) gone() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.goneSince
}

// past notes a line that was read, and whether some may be missing before it.
func (f *follower) past(at int64, gap bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if gap || f.reading != f.position.run || len(f.spans) == 0 {
		f.spans = append(f.spans, logSpan{first: at})
		f.spans = f.spans[max(0, len(f.spans)-maxSpans):]
	}
	f.position.run = f.reading
	f.position.past(at)
	f.spans[len(f.spans)-1].last = at
}

const (
	retryFirst = 250 * time.Millisecond
	retryLast  = 5 * time.Second
	failsToSay = 4 // in a row; then the reader is told once
)

// run reads until the pod is gone, or nobody listens any more. A connection that ends in the middle is made again from the last line on.
func (f *follower) run(ctx context.Context) {
	defer f.leave()
	wait := retryFirst
	for ctx.Err() == nil {
		state, err := f.cluster.AppRun(ctx, f.pod)
		if errors.Is(err, kube.ErrPodGone) {
			return
		}
		if err == nil && state.Begun && state.Restarts >= f.next {
			err = leftLog(ctx, f.cluster, f.pod, f.read(ctx, state))
			if errors.Is(err, kube.ErrPodGone) {
				return
			}
			if err == nil {
				wait = retryFirst
			}
		}
		f.note(err)
		if state.Leaving && state.Restarts < f.next {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, retryLast)
	}
}

// leave keeps of a pod that is gone only what was read of it.
func (f *follower) leave() {
	f.chunk, f.sources = logChunk{}, nil
	f.stream.lines.end(f.queue)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.goneSince = time.Now()
}

// note tells the reader once of a log that cannot be read.
func (f *follower) note(err error) {
	if err == nil || f.stream.ctx.Err() != nil {
		f.failures = 0
		return
	}
	if f.failures++; f.failures == failsToSay {
		f.say(time.Now().UnixNano(), unread([]string{podName(f.of)}))
		f.stream.server.Log.Warn("log not read", "app", f.stream.place.App, "pod", f.pod.Name, "error", err)
	}
}

// read reads a run to its end. If the run before was not, what that one said last comes first. A node that does not have it any more is
// asked twice; what was saved of it is in the records.
func (f *follower) read(ctx context.Context, state kube.AppRun) error {
	l := kube.AppLog{Follow: true}
	if f.fromNow {
		f.fromNow, f.next, f.since = false, state.Restarts, time.Now().UnixNano()
		l.Tail = new(0)
	} else {
		if state.Restarts > f.next {
			err := f.readRun(ctx, state.Restarts-1, kube.AppLog{Since: f.from(), Previous: true}, f.publish)
			if err != nil && (f.failures == 0 || !errors.Is(err, kube.ErrNoLog)) {
				return err
			}
			f.next = state.Restarts
		}
		l.Since = f.from()
	}
	err := f.readRun(ctx, state.Restarts, l, f.idle)
	if err == nil && state.Ended { // the end of a log that was opened earlier may be that of its connection
		f.next = state.Restarts + 1
	}
	return err
}

func (f *follower) readRun(ctx context.Context, run int, l kube.AppLog, idle func()) error {
	f.reading, f.seeking, f.passed = run, f.position.at > 0, 0
	err := f.cluster.ReadAppLog(ctx, f.pod, l, f.take, idle)
	f.publish()
	return err
}

func (f *follower) from() time.Time {
	if at := max(f.position.at, f.since); at > 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

func (f *follower) take(l kube.AppLine) bool {
	gap := false
	if f.seeking {
		if l.At == f.position.at && f.passed < f.position.lines {
			f.passed++
			return true
		}
		if gap = f.passed == 0 && f.reading == f.position.run; gap { // the line is not there any more: the node has begun another file
			f.say(l.At, fmt.Sprintf("Lines of %s may be missing here: its node has put an older part of the log away.", podName(f.of)))
		}
		f.seeking = false
	}
	f.past(l.At, gap)
	source, known := f.sources[l.Sidecar]
	if !known {
		source = f.source(l.Sidecar)
	}
	if source != nil {
		if f.chunk.add(l.At, source, l.Text); len(f.chunk.text) >= chunkBytes/2 {
			f.publish()
		}
	}
	return f.stream.ctx.Err() == nil
}

func (f *follower) source(sidecar string) *logSource {
	if len(f.sources) > maxSources {
		clear(f.sources)
	}
	path, instance := platform.AppSource(f.of.Process, sidecar), strconv.Itoa(f.of.Index)
	var source *logSource
	if f.stream.filter.Fits(path, instance, "") {
		source = newLogSource(f.stream.place.App, path, instance, false)
	}
	f.sources[sidecar] = source
	return source
}

func (f *follower) idle() {
	f.failures = 0
	f.publish()
}

func (f *follower) publish() { f.stream.lines.add(f.queue, &f.chunk, f.stream.ctx.Done()) }

// say adds a line of the platform's own in this place.
func (f *follower) say(at int64, text string) {
	f.chunk.add(at, &f.queue.source, []byte(text))
	f.publish()
}
