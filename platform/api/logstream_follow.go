package api

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
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

	position logPosition // of the last line that was read
	since    int64       // nothing before this is asked for; zero is from the first line
	fromNow  bool        // nothing that is there already is asked for
	opened   atomic.Bool // the log was read from at least once
	restarts int         // of the run that was read last
	ended    bool        // and it was read to its end
	seeking  bool        // for the position, after a break
	passed   int         // lines at the position
	queue    *logQueue
	chunk    logChunk
	sources  map[string]*logSource // by sidecar; none if its lines are not asked for
	failures int

	goneSince atomic.Int64 // nanoseconds since 1970; zero while the pod may be there
}

const (
	retryFirst = 250 * time.Millisecond
	retryLast  = 5 * time.Second
	failsToSay = 4 // in a row; then the reader is told once
)

// run reads until the pod is gone, or nobody listens any more. A connection that ends in the middle is made again from the last line on.
func (f *follower) run(ctx context.Context) {
	defer func() {
		f.goneSince.Store(time.Now().UnixNano())
		f.stream.lines.end(f.queue)
	}()
	wait := retryFirst
	for ctx.Err() == nil {
		state, err := f.cluster.AppRun(ctx, f.pod)
		if errors.Is(err, kube.ErrPodGone) {
			return
		}
		if err == nil && state.Begun && (!f.ended || state.Restarts != f.restarts) {
			err = f.read(ctx, state)
			if err == nil {
				wait = retryFirst
			}
		}
		f.note(err)
		if state.Leaving && f.ended {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, retryLast)
	}
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

// read reads a run to its end. If the container was started again since the last time, what the run before said last comes first.
func (f *follower) read(ctx context.Context, state kube.AppRun) error {
	again := f.opened.Load() && state.Restarts > f.restarts
	if again && !f.ended {
		f.seeking, f.passed = true, 0
		if err := f.cluster.ReadAppLog(ctx, f.pod, kube.AppLog{Since: f.from(), Previous: true}, f.take, f.publish); err != nil {
			return err
		}
		f.publish()
	}
	l := kube.AppLog{Since: f.from(), Follow: true}
	f.seeking, f.passed = f.position.at > 0 && !again, 0
	if f.fromNow && !f.opened.Load() {
		l.Tail, f.since = new(0), time.Now().UnixNano()
	}
	f.restarts, f.ended = state.Restarts, false
	err := f.cluster.ReadAppLog(ctx, f.pod, l, f.take, f.idle)
	f.publish()
	if err == nil {
		f.opened.Store(true)
		// The end of a log is the end of its run, unless the connection was ended while it goes on.
		now, runErr := f.cluster.AppRun(ctx, f.pod)
		f.ended = runErr == nil && (now.Ended || now.Restarts != f.restarts)
		if !f.ended && !errors.Is(runErr, kube.ErrPodGone) {
			err = runErr
		}
	}
	return err
}

func (f *follower) from() time.Time {
	if at := max(f.position.at, f.since); at > 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

func (f *follower) take(l kube.AppLine) bool {
	if f.seeking {
		if l.At == f.position.at && f.passed < f.position.lines {
			f.passed++
			return true
		}
		if f.passed == 0 { // the line is not there any more: the node has begun another file
			f.say(l.At, fmt.Sprintf("Lines of %s may be missing here: its node has put an older part of the log away.", podName(f.of)))
		}
		f.seeking = false
	}
	f.position.past(l.At)
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
	if f.stream.filter.Fits(path, instance) {
		source = newLogSource(f.stream.place.App, path, instance, false)
	}
	f.sources[sidecar] = source
	return source
}

func (f *follower) idle() {
	f.opened.Store(true)
	f.failures = 0
	f.publish()
}

func (f *follower) publish() { f.stream.lines.add(f.queue, &f.chunk, f.stream.ctx.Done()) }

// say adds a line of the platform's own in this place.
func (f *follower) say(at int64, text string) {
	f.chunk.add(at, &f.queue.source, []byte(text))
	f.publish()
}
