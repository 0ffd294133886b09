package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/kube"
	"github.com/proa-dev/proa/platform/store"
)

const (
	ownReads   = 8               // of pods at once, for one person
	allReads   = 32              // at once, for all of them: each may hold a whole reply
	readTime   = 5 * time.Second // for all pods together
	replyBytes = 4 << 20         // of text in one reply; what is beyond it comes with the next
)

// A logPosition is how far a log was read: to the last line of a time, which may be that of several.
type logPosition struct {
	run   int   // of the container: how often it had been started again in its place
	first int64 // time of the first line; zero before one was read
	at    int64
	lines int
}

// past notes a line.
func (p *logPosition) past(at int64) {
	if p.first == 0 {
		p.first = at
	}
	if at != p.at {
		p.at, p.lines = at, 0
	}
	p.lines++
}

// A windowRead is what was read of an app in a window.
type windowRead struct {
	lines     []platform.LogLine
	positions map[string]logPosition // of the pods that could be read, by UID
}

// readWindow reads lines of an app from its pods and the records, in the order asked for. Whoever goes on from the last line, or before
// it, misses nothing: where there is more than fits, lines are left out at the end, and all of one time together.
func (s *Server) readWindow(ctx context.Context, who platform.Who, place store.LogPlace, w store.LogWindow) (windowRead, error) {
	read, silent := s.readPods(ctx, s.streams.turns(who.GUID), place, w)
	w.Without = map[string]int64{}
	for uid, position := range read.positions {
		if position.first > 0 {
			w.Without[uid] = position.first
		}
	}
	want := w
	want.Limit++ // to see whether the last one has companions
	recorded, err := s.Store.Log(ctx, who, place.App, want)
	if err != nil {
		return read, err
	}
	read.lines = cut(mergeLines(read.lines, append(recorded, silence(place.App, silent, w)...), w.Descending), w.Limit)
	return read, nil
}

// silence is one line about pods that could not be read. Its time is the same for a minute, so that whoever asks again and again for
// what is new hears it once.
func silence(app string, silent []string, w store.LogWindow) []platform.LogLine {
	at := time.Now().Truncate(time.Minute)
	if len(silent) == 0 || at.UnixNano() < w.From || at.UnixNano() >= w.To {
		return nil
	}
	return []platform.LogLine{{App: app, At: at, Source: platform.SourceAPI, Text: unread(silent)}}
}

func unread(silent []string) string {
	slices.Sort(silent)
	text := fmt.Sprintf("The log of %s could not be read just now.", silent[0])
	if len(silent) > 1 {
		text = fmt.Sprintf("The logs of %s and %d more could not be read just now.", silent[0], len(silent)-1)
	}
	return text
}

func podName(p store.LogPod) string {
	return fmt.Sprintf("%s/%d", platform.AppSource(p.Process, ""), p.Index)
}

// readPods reads the pods side by side, and names those that did not answer.
func (s *Server) readPods(ctx context.Context, turns chan struct{}, place store.LogPlace, w store.LogWindow) (read windowRead, silent []string) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	read.positions = map[string]logPosition{}
	var mu sync.Mutex
	var group sync.WaitGroup
	for _, p := range place.Pods {
		if !w.Filter.Pod(p.Process, p.Index) || w.From >= w.To {
			continue
		}
		select {
		case turns <- struct{}{}:
		case <-ctx.Done():
			mu.Lock()
			silent = append(silent, podName(p))
			mu.Unlock()
			continue
		}
		group.Go(func() {
			defer func() { <-turns }()
			uid, lines, position, err := s.readPod(ctx, place, p, w)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, kube.ErrPodGone): // and what it said last is in the records
				return
			case err != nil:
				silent = append(silent, podName(p))
				s.Log.Warn("log not read", "app", place.App, "pod", p.Name, "error", err)
			default:
				read.positions[uid] = position
			}
			read.lines = trim(mergeLines(read.lines, lines, w.Descending), w.Limit+1)
		})
	}
	group.Wait()
	return read, silent
}

// readPod reads the log of a pod, and that of the run before if it was started again in its place.
func (s *Server) readPod(ctx context.Context, place store.LogPlace, p store.LogPod, w store.LogWindow) (uid string, _ []platform.LogLine, _ logPosition, _ error) {
	select {
	case s.streams.reads() <- struct{}{}:
		defer func() { <-s.streams.reads() }()
	case <-ctx.Done():
		return "", nil, logPosition{}, ctx.Err()
	}
	cluster, known := s.Clusters[place.Cluster]
	if !known {
		return "", nil, logPosition{}, fmt.Errorf("cluster %q is not known here", place.Cluster)
	}
	pod := kube.AppPod{Namespace: place.Namespace, Name: p.Name, UID: p.UID}
	run, err := cluster.AppRun(ctx, pod)
	if err != nil || !run.Begun {
		return run.UID, nil, logPosition{}, err
	}
	k := &keeper{window: w, pod: p, app: place.App, sources: map[string]string{}}
	l := kube.AppLog{}
	if w.From > 0 {
		l.Since = time.Unix(0, w.From)
	}
	if w.Descending && w.To > time.Now().Add(time.Minute).UnixNano() {
		l.Tail = new(w.Limit + 1)
	}
	k.position.run = run.Restarts
	if run.Restarts > 0 {
		before := l
		before.Previous = true
		if err := cluster.ReadAppLog(ctx, pod, before, k.take, idle); err != nil && !errors.Is(err, kube.ErrNoLog) { // what it said last is in the records
			return run.UID, nil, k.position, err
		}
	}
	if !k.full {
		err = leftLog(ctx, cluster, pod, cluster.ReadAppLog(ctx, pod, l, k.take, idle))
	}
	if w.Descending {
		slices.Reverse(k.lines)
	}
	return run.UID, k.lines, k.position, err
}

// leftLog says of a log that is not there that its pod is gone, where the pod is only kept in the books by then.
func leftLog(ctx context.Context, cluster *kube.Cluster, pod kube.AppPod, err error) error {
	if !errors.Is(err, kube.ErrNoLog) {
		return err
	}
	if run, runErr := cluster.AppRun(ctx, pod); errors.Is(runErr, kube.ErrPodGone) || runErr == nil && run.Leaving {
		return kube.ErrPodGone
	}
	return err
}

func idle() {}

// A keeper keeps the lines of a pod that a window has room for: the oldest, or the newest.
type keeper struct {
	window   store.LogWindow
	app      string
	pod      store.LogPod
	sources  map[string]string
	position logPosition
	lines    []platform.LogLine
	bytes    int
	full     bool
}

func (k *keeper) take(l kube.AppLine) bool {
	if l.At >= k.window.To {
		return false
	}
	k.position.past(l.At)
	source, known := k.sources[l.Sidecar]
	if !known {
		if len(k.sources) > maxSources {
			clear(k.sources)
		}
		source = platform.AppSource(k.pod.Process, l.Sidecar)
		k.sources[l.Sidecar] = source
	}
	instance := strconv.Itoa(k.pod.Index)
	if !k.window.Filter.Fits(source, instance, "") {
		return true
	}
	k.lines = append(k.lines, platform.LogLine{App: k.app, At: time.Unix(0, l.At), Source: source, Instance: instance, Text: string(l.Text)})
	k.bytes += len(l.Text)
	if k.window.Descending {
		k.forget()
		return true
	}
	k.full = len(k.lines) > k.window.Limit || k.bytes > replyBytes
	return !k.full
}

// forget drops the oldest lines, now and then, once there are twice as many as are needed.
func (k *keeper) forget() {
	if len(k.lines) <= 2*(k.window.Limit+1) && k.bytes <= 2*replyBytes {
		return
	}
	drop := max(0, len(k.lines)-k.window.Limit-1)
	for i, l := range k.lines {
		if i >= drop && k.bytes <= replyBytes {
			break
		}
		k.bytes -= len(l.Text)
		drop = max(drop, i+1)
	}
	k.lines = slices.Delete(k.lines, 0, drop)
}

// mergeLines makes one list of two. Where times are the same, the first goes first.
func mergeLines(a, b []platform.LogLine, descending bool) []platform.LogLine {
	if len(b) == 0 {
		return a
	}
	all := append(slices.Clip(a), b...)
	slices.SortStableFunc(all, func(x, y platform.LogLine) int {
		if descending {
			return cmp.Compare(y.At.UnixNano(), x.At.UnixNano())
		}
		return cmp.Compare(x.At.UnixNano(), y.At.UnixNano())
	})
	return all
}

// trim leaves as many lines as there is room for.
func trim(lines []platform.LogLine, limit int) []platform.LogLine {
	bytes := 0
	for i, l := range lines {
		if bytes += len(l.Text); i >= limit || i > 0 && bytes > replyBytes {
			clear(lines[i:])
			return lines[:i]
		}
	}
	return lines
}

// cut is trim, and takes no line from others of the same time: whoever goes on behind that time would not see those.
func cut(lines []platform.LogLine, limit int) []platform.LogLine {
	kept := trim(slices.Clone(lines), limit)
	if len(kept) == len(lines) {
		return kept
	}
	for n := len(kept); n > 0; n-- {
		if !kept[n-1].At.Equal(lines[len(kept)].At) {
			return kept[:n]
		}
	}
	return kept // all of one time: better some than none for ever
}
