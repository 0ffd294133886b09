package api

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/kube"
	"github.com/proa-dev/proa/platform/store"
)

const noLog = "unable to retrieve container logs for containerd://1\n"

// logNode is a cluster with one pod, as it is on the wire.
type logNode struct {
	mu       sync.Mutex
	gone     bool
	leaving  bool
	running  bool
	restarts int
	logs     []string // of the newest runs; the last is that of the newest
	asked    int      // how often a log was asked for
}

func (n *logNode) set(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
}

func (n *logNode) asks() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked
}

func (n *logNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch previous := r.URL.Query().Get("previous") == "true"; {
	case n.gone:
		http.Error(w, "not found", http.StatusNotFound)
	case !strings.HasSuffix(r.URL.Path, "/log"):
		state, leaving := `"terminated":{}`, ""
		if n.running {
			state = `"running":{}`
		}
		if n.leaving {
			leaving = `,"deletionTimestamp":"2026-01-02T03:04:05Z"`
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"r-0","uid":"u"%s},"status":{"containerStatuses":[{"name":"app","restartCount":%d,"state":{%s}}]}}`, leaving, n.restarts, state)
	case previous && len(n.logs) < 2:
		http.Error(w, "previous terminated container not found", http.StatusBadRequest)
	case previous:
		n.asked++
		_, _ = io.WriteString(w, n.logs[len(n.logs)-2])
	default:
		n.asked++
		_, _ = io.WriteString(w, n.logs[len(n.logs)-1])
	}
}

func (n *logNode) connect(t *testing.T) *Server {
	t.Helper()
	server := httptest.NewTLSServer(n)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
		"clusters":[{"name":"c","cluster":{"server":%q,"insecure-skip-tls-verify":true}}],"users":[{"name":"u","user":{"token":"let me in"}}]}`, server.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := kube.Connect(file, kube.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	return &Server{Clusters: map[string]*kube.Cluster{"c": c}, Log: slog.New(slog.DiscardHandler)}
}

// listener is a stream from the beginning of time, and what it has brought.
type listener struct {
	*testing.T
	stream *logStream
	number int64
}

var thePod = store.LogPod{Process: "web", Name: "r-0", UID: "u"}

func listen(t *testing.T, n *logNode) *listener {
	t.Helper()
	stream := n.connect(t).newStream(t.Context(), store.LogPlace{App: "a", Cluster: "c", Namespace: "space"}, platform.LogFilter{})
	stream.since, stream.begun = 0, true
	t.Cleanup(stream.close)
	return &listener{t, stream, 0}
}

// news tells the stream of pods and of lines TEXT that were saved at a time.
func (l *listener) news(pods []store.LogPod, saved map[int]string) {
	n := store.LogNews{LogPlace: store.LogPlace{Pods: pods}}
	for _, second := range slices.Sorted(maps.Keys(saved)) {
		l.number++
		n.Lines = append(n.Lines, store.NumberedLine{Number: l.number, LogLine: platform.LogLine{App: "a", At: time.Unix(int64(second), 0), Source: "APP/PROC/WEB", Instance: "0", Text: saved[second], PodUID: "u"}})
	}
	l.stream.hear(n, l.number-int64(len(saved)))
}

func said(second int, text string) string {
	return time.Unix(int64(second), 0).UTC().Format(time.RFC3339Nano) + " " + text + "\n"
}

// wants waits until every line was heard, once; and a little longer for what should not be.
func (l *listener) wants(texts ...string) {
	l.Helper()
	var got []string
	limit := time.Now().Add(9 * time.Second)
	for enough := false; time.Now().Before(limit); time.Sleep(50 * time.Millisecond) {
		l.stream.hear(store.LogNews{}, l.number)
		for _, line := range taken(l.T, l.stream.lines) {
			_, text, _ := strings.Cut(line, " ")
			got = append(got, text)
		}
		if len(got) >= len(texts) && !enough {
			enough, limit = true, time.Now().Add(time.Second)
		}
	}
	slices.Sort(got)
	if slices.Sort(texts); !slices.Equal(got, texts) {
		l.Errorf("heard %q, want %q", got, texts)
	}
}

// asked waits until the logs were asked for so often.
func (l *listener) asked(n *logNode, times int) {
	l.Helper()
	for limit := time.Now().Add(9 * time.Second); n.asks() < times; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			l.Fatalf("the log was asked for %d times, want %d", n.asks(), times)
		}
	}
}

// TestARunThatTheNodeDoesNotHaveIsHeardFromTheRecords: the node answers, but not with the log.
func TestARunThatTheNodeDoesNotHaveIsHeardFromTheRecords(t *testing.T) {
	t.Parallel()
	n := &logNode{running: true, logs: []string{noLog}}
	l := listen(t, n)
	l.news([]store.LogPod{thePod}, nil)
	l.asked(n, 1)
	l.news(nil, map[int]string{10: "one", 11: "two"})
	n.set(func() { n.gone = true })
	l.wants("one", "two")
}

// TestTheRunBeforeIsRead: a pod is found only after its container was started again.
func TestTheRunBeforeIsRead(t *testing.T) {
	t.Parallel()
	n := &logNode{restarts: 1, logs: []string{said(10, "first"), said(20, "second")}}
	l := listen(t, n)
	l.news([]store.LogPod{thePod}, nil)
	l.wants("first", "second")
	l.news(nil, map[int]string{10: "first"})
	l.wants()
}

// TestARunBetweenIsHeardFromTheRecords: it was over before the pod was looked at again.
func TestARunBetweenIsHeardFromTheRecords(t *testing.T) {
	t.Parallel()
	n := &logNode{logs: []string{said(10, "first")}}
	l := listen(t, n)
	l.news([]store.LogPod{thePod}, nil)
	l.wants("first")
	n.set(func() { n.restarts, n.logs = 3, []string{said(30, "third"), said(40, "fourth")} })
	l.news(nil, map[int]string{10: "first", 20: "second", 30: "third"})
	l.wants("second", "third", "fourth")
}

// TestAPodThatNobodyFollowedIsHeardFromTheRecords: it came and went between two looks.
func TestAPodThatNobodyFollowedIsHeardFromTheRecords(t *testing.T) {
	t.Parallel()
	l := listen(t, &logNode{gone: true})
	l.news(nil, map[int]string{10: "first"})
	l.wants("first")
}

// TestTheNextRunDoesNotHoldTheLastLine: that a line of the run before is not there means nothing.
func TestTheNextRunDoesNotHoldTheLastLine(t *testing.T) {
	t.Parallel()
	n := &logNode{running: true, logs: []string{said(10, "first")}}
	l := listen(t, n)
	l.news([]store.LogPod{thePod}, nil)
	l.wants("first")
	n.set(func() {
		n.asked, n.restarts, n.logs = 0, 1, []string{said(10, "first") + said(11, "last words"), noLog}
	})
	l.asked(n, 2)
	n.set(func() { n.logs[1] = said(20, "second") })
	l.wants("last words", "second")
	n.set(func() { n.logs[1] = said(30, "third") })
	l.wants("Lines of APP/PROC/WEB/0 may be missing here: its node has put an older part of the log away.", "third")
}

// TestAPodThatLeavesWithoutItsLog: it is only kept in the books, and what it said last is in the records.
func TestAPodThatLeavesWithoutItsLog(t *testing.T) {
	t.Parallel()
	n := &logNode{leaving: true, logs: []string{noLog}}
	s := n.connect(t)
	place := store.LogPlace{App: "a", Cluster: "c", Namespace: "space", Pods: []store.LogPod{thePod}}
	window := store.LogWindow{From: math.MinInt64, To: math.MaxInt64, Limit: 10, Descending: true}
	if _, silent := s.readPods(t.Context(), s.streams.turns("me"), place, window); len(silent) > 0 {
		t.Errorf("could not be read: %q", silent)
	}
	n.set(func() { n.leaving = false })
	if _, silent := s.readPods(t.Context(), s.streams.turns("me"), place, window); len(silent) != 1 {
		t.Error("one that stays was not missed")
	}
}

// TestLinesOfTheRecordsThatAreOlderThanTheStream: their number tells that they are new, unless they were saved from a pod.
func TestLinesOfTheRecordsThatAreOlderThanTheStream(t *testing.T) {
	t.Parallel()
	l := listen(t, &logNode{gone: true})
	l.stream.since = time.Now().UnixNano()
	l.stream.hear(store.LogNews{Lines: []store.NumberedLine{{Number: 1, LogLine: platform.LogLine{App: "a", At: time.Unix(10, 0), Source: "STG", Text: "staged"}}}}, 0)
	l.number = 1
	l.news(nil, map[int]string{11: "of long ago"})
	l.wants("staged")
}

func TestPodsThatHaveGoneTakeNoRoom(t *testing.T) {
	t.Parallel()
	l := listen(t, &logNode{gone: true})
	for round := range maxKnown/maxFollow + 1 {
		var pods []store.LogPod
		for i := range maxFollow {
			pods = append(pods, store.LogPod{Process: "web", Index: i, Name: fmt.Sprint("r-", i), UID: fmt.Sprint(round, "-", i)})
		}
		l.news(pods, nil)
		for limit := time.Now().Add(20 * time.Second); l.stream.following() > 0 && time.Now().Before(limit); {
			time.Sleep(10 * time.Millisecond)
		}
		if all := round == maxKnown/maxFollow; l.stream.tooMany != all || len(l.stream.followers) > maxKnown {
			t.Fatalf("round %d: %d are known, and too many is said: %v", round, len(l.stream.followers), l.stream.tooMany)
		}
	}
}

func TestOnePersonLeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	var h logHub
	h.begin()
	join := func(guid string) (*logStream, error) {
		ctx, stop := context.WithCancelCause(t.Context())
		s := &logStream{app: "a", reader: guid, ctx: ctx, stop: stop}
		return s, h.join(s)
	}
	var all []*logStream
	for range ownStreams {
		s, err := join("me")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	if _, err := join("me"); !fault.Is(err, fault.KindTooMany) {
		t.Errorf("one more: %v", err)
	}
	if _, err := join("you"); err != nil {
		t.Errorf("somebody else: %v", err)
	}
	for range ownWindows {
		if err := h.openWindow("me"); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.openWindow("me"); !fault.Is(err, fault.KindTooMany) {
		t.Errorf("one more window: %v", err)
	}
	for _, s := range all {
		h.leave(s)
	}
	for range ownWindows {
		h.closeWindow("me")
	}
	if len(h.readers) != 1 || h.count != 1 {
		t.Errorf("%d people have %d streams", len(h.readers), h.count)
	}
}
