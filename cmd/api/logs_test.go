package main_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// heard is what somebody who follows an app has heard so far.
type heard struct {
	mu      sync.Mutex
	lines   []string // SOURCE/INSTANCE and the text
	closing string
	err     error
	open    chan struct{}
	done    chan struct{}
}

// follow listens until the test ends.
func (w *world) follow(a platform.App, lasts time.Duration, query url.Values) *heard {
	w.Helper()
	ctx, stop := context.WithCancel(w.Context())
	h := &heard{open: make(chan struct{}), done: make(chan struct{})}
	var open sync.Once
	query.Set("source_id", a.GUID)
	c := w.client(lasts)
	go func() {
		defer close(h.done)
		closing, err := c.FollowLog(ctx, query, func(batch []v3.LogEnvelope) {
			open.Do(func() { close(h.open) })
			h.mu.Lock()
			defer h.mu.Unlock()
			for _, e := range batch {
				h.lines = append(h.lines, "["+e.Tags["source_type"]+"/"+e.InstanceID+"] "+string(e.Log.Payload))
			}
		})
		h.mu.Lock()
		defer h.mu.Unlock()
		h.closing, h.err = closing, err
	}()
	w.Cleanup(func() { stop(); <-h.done })
	return h
}

func (h *heard) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{}, h.lines...)
}

// wait waits for a line.
func (h *heard) wait(w *world, limit time.Duration, text string) {
	w.Helper()
	w.until(limit, text, func() error {
		lines := h.all()
		for _, l := range lines {
			if strings.Contains(l, text) {
				return nil
			}
		}
		return fmt.Errorf("of %d lines the last are %q", len(lines), lines[max(0, len(lines)-5):])
	})
}

func (h *heard) count(text string) (n int) {
	for _, l := range h.all() {
		if strings.Contains(l, text) {
			n++
		}
	}
	return n
}

func (w *world) recent(a platform.App, query string) []string {
	w.Helper()
	var read v3.LogCacheRead
	must(w, w.client(time.Hour).Call(w.Context(), http.MethodGet, "/api/v1/read/"+a.GUID+"?descending=true&limit=1000"+query, nil, &read))
	var lines []string
	for _, e := range read.Envelopes.Batch {
		lines = append([]string{"[" + e.Tags["source_type"] + "/" + e.InstanceID + "] " + string(e.Log.Payload)}, lines...)
	}
	return lines
}

const flood = 100_000

func TestLogs(t *testing.T) {
	w := newWorld(t)
	a := w.app("shop")
	t.Run("flood", func(t *testing.T) { w.with(t).flood(a) })
	t.Run("instances", func(t *testing.T) { w.with(t).instances(a) })
	t.Run("crash", func(t *testing.T) { w.with(t).crash(a) })
	t.Run("crashes", func(t *testing.T) { w.with(t).crashes(a) })
	t.Run("end", func(t *testing.T) { w.with(t).end(a) })
}

func (w *world) with(t *testing.T) *world {
	own := *w
	own.T = t
	return &own
}

// flood: three processes of a container write as fast as they can. Every line arrives whole, in the order of its process, or is said to be
// missing.
func (w *world) flood(a platform.App) {
	ctx, cancel := context.WithTimeout(w.Context(), 3*time.Minute)
	defer cancel()
	read := floodReader{next: map[string]int{}, begun: make(chan struct{})}
	ended := make(chan error, 1)
	go func() {
		_, err := w.client(time.Hour).FollowLog(ctx, url.Values{"source_id": {a.GUID}}, func(batch []v3.LogEnvelope) {
			if read.take(batch); read.got+read.dropped >= 3*flood || read.wrong != nil {
				cancel()
			}
		})
		ended <- err
	}()
	select {
	case <-read.begun:
	case err := <-ended:
		w.Fatalf("the stream does not begin: %v", err)
	}
	began := time.Now()
	w.runs(a, 1, fmt.Sprint("./writer main ", flood), map[string]string{"config-server": fmt.Sprint("./writer config ", flood), "clock": fmt.Sprint("./writer clock ", flood)})
	err := <-ended
	if read.wrong != nil {
		w.Fatal(read.wrong)
	}
	if read.got+read.dropped != 3*flood {
		w.Fatalf("%d lines have arrived and %d are said to be dropped, of %d: %v", read.got, read.dropped, 3*flood, err)
	}
	w.Logf("%d lines have arrived and %d are said to be dropped, within %.1f s of the start of the app", read.got, read.dropped, time.Since(began).Seconds())
}

// floodReader checks lines as they come.
type floodReader struct {
	begun        chan struct{}
	open         bool
	next         map[string]int
	got, dropped int
	wrong        error
}

var floodSources = map[string]string{"main": "APP/PROC/WEB", "config": "APP/PROC/WEB/SIDECAR/CONFIG-SERVER", "clock": "APP/PROC/WEB/SIDECAR/CLOCK"}

func (r *floodReader) take(batch []v3.LogEnvelope) {
	if !r.open {
		r.open = true
		close(r.begun)
	}
	for _, e := range batch {
		source, text := e.Tags["source_type"], string(e.Log.Payload)
		var n int
		if _, err := fmt.Sscanf(text, "%d lines were dropped here, because they were not read fast enough.", &n); err == nil && source == "API" {
			r.dropped += n
		}
		if !strings.HasPrefix(source, "APP/") {
			continue
		}
		name, rest, _ := strings.Cut(text, " 0 ")
		number, _, _ := strings.Cut(rest, " ")
		n, err := strconv.Atoi(number)
		switch {
		case err != nil || floodSources[name] != source || e.InstanceID != "0" || text != fmt.Sprintf("%s 0 %d of %d %s", name, n, flood, strings.Repeat("x", n%100)):
			r.wrong = fmt.Errorf("a line of %s is not as it was written: %.300q", source, text)
		case n < r.next[name] || n > r.next[name] && r.dropped == 0:
			r.wrong = fmt.Errorf("line %d of %s comes where %d was to come", n, name, r.next[name])
		}
		r.next[name] = n + 1
		r.got++
	}
}

// waitOpen waits until the stream is there: what is done then is heard.
func (h *heard) waitOpen(w *world) {
	w.Helper()
	select {
	case <-h.open:
	case <-h.done:
		w.Fatalf("the stream has ended: %q %v", h.closing, h.err)
	case <-time.After(10 * time.Second):
		w.Fatal("the stream does not begin")
	}
}

// instances: new ones join a stream by themselves, and the lines can be narrowed.
func (w *world) instances(a platform.App) {
	w.runs(a, 1, "./writer main 3", map[string]string{"clock": "./writer clock 2"})
	w.running(a, 1)
	h := w.follow(a, time.Hour, url.Values{"recent": {"4"}})
	h.wait(w, 10*time.Second, "main 0 2 of 3")
	only := w.follow(a, time.Hour, url.Values{"instance": {"1"}, "sidecar": {"clock"}})
	web := get[platform.Process](w)(w.store.ProcessOf(w.Context(), admin, a.GUID, platform.WebProcess))
	get[platform.Process](w)(w.store.ScaleProcess(w.Context(), admin, web.GUID, platform.ProcessScale{Instances: new(2)}))
	h.wait(w, time.Minute, "[APP/PROC/WEB/1] main 1 2 of 3")
	h.wait(w, 10*time.Second, "[APP/PROC/WEB/SIDECAR/CLOCK/1] clock 1 1 of 2")
	h.wait(w, 10*time.Second, "[API/0] Scaled process web of app shop to 2 instances")
	only.wait(w, 10*time.Second, "clock 1 1 of 2")
	if got := only.all(); len(got) != 2 {
		w.Errorf("narrowed: %q", got)
	}
	for _, l := range h.all() {
		if n := h.count(l); n != 1 {
			w.Errorf("%q was heard %d times", l, n)
		}
	}
	if got := strings.Join(w.recent(a, "&instance=0&process=web"), "\n"); !strings.HasSuffix(got, "[APP/PROC/WEB/0] main 0 2 of 3") && !strings.Contains(got, "clock 0 1 of 2") || strings.Contains(got, "main 1") {
		w.Errorf("recent: %s", got)
	}
	if got := w.recent(a, "&sidecar=clock&instance=1"); len(got) != 2 {
		w.Errorf("recent, narrowed: %q", got)
	}
}

// crash: what a container has said before it died is heard once, and can be read afterwards.
func (w *world) crash(a platform.App) {
	h := w.follow(a, time.Hour, url.Values{})
	h.waitOpen(w)
	w.runs(a, 1, "./writer main 3", map[string]string{"clock": "./writer clock 2 2s"})
	h.wait(w, time.Minute, "App instance exited with guid")
	w.until(time.Minute, "the second run", func() error {
		if n := h.count("main 0 2 of 3"); n < 2 {
			return fmt.Errorf("%d runs were heard: %q", n, h.all())
		}
		return nil
	})
	for _, l := range w.recent(a, "") {
		w.Log(l)
	}
	recent := strings.Join(w.recent(a, ""), "\n")
	if n := strings.Count(recent, "main 0 2 of 3"); n < 2 {
		w.Errorf("recent has %d runs:\n%s", n, recent)
	}
	exited := strings.Count(recent, "App instance exited with guid")
	for _, line := range []string{"main 0 0 of 3", "clock 0 1 of 2"} {
		if n := strings.Count(recent, line); n > exited+1 {
			w.Errorf("%q is there %d times after %d exits", line, n, exited)
		}
	}
	get[platform.App](w)(w.store.StopApp(w.Context(), admin, a.GUID))
}

// crashes: what several instances say that die at once is heard, each line once, however short their lives are.
func (w *world) crashes(a platform.App) {
	const instances, exits = 8, 24
	h := w.follow(a, time.Hour, url.Values{})
	h.waitOpen(w)
	w.runs(a, instances, "./writer short 0 0s", nil)
	w.until(2*time.Minute, "exits", func() error {
		if n := h.count("App instance exited with guid"); n < exits {
			return fmt.Errorf("%d were heard of", n)
		}
		return nil
	})
	for _, l := range append(w.recent(a, ""), h.all()...) { // by now they wait for their next try, or run
		if strings.Contains(l, "could not be read") || strings.Contains(l, "may be missing") {
			w.Errorf("said falsely: %s", l)
		}
	}
	get[platform.App](w)(w.store.StopApp(w.Context(), admin, a.GUID))
	w.until(30*time.Second, "all that can be read", func() error {
		for _, l := range w.recent(a, "&process=web") {
			if n := h.count(l); strings.Contains(l, "] short ") && n != 1 {
				return fmt.Errorf("%q was heard %d times", l, n)
			}
		}
		return nil
	})
	died, exited := h.count("] short "), h.count("App instance exited with guid")
	for _, l := range h.all() {
		if n := h.count(l); strings.Contains(l, "] short ") && n != 1 {
			w.Errorf("%q was heard %d times", l, n)
		}
	}
	if died < exited {
		w.Errorf("%d exits, and last words of %d:\n%s", exited, died, strings.Join(h.all(), "\n"))
	}
	w.Logf("%d exits were heard of, and the last words of %d runs", exited, died)
}

// end: a stream says why it ends.
func (w *world) end(a platform.App) {
	short := w.follow(a, 3*time.Second, url.Values{})
	short.ends(w, 10*time.Second, "the token has expired")
	gone := w.follow(a, time.Hour, url.Values{})
	other := w.follow(a, time.Hour, url.Values{})
	gone.waitOpen(w)
	other.waitOpen(w)
	get[platform.Job](w)(w.store.DeleteApp(w.Context(), admin, a.GUID))
	gone.ends(w, 10*time.Second, "the app was deleted")
	other.ends(w, 10*time.Second, "the app was deleted")
	b := get[platform.App](w)(w.store.CreateApp(w.Context(), admin, platform.App{SpaceGUID: w.space.GUID, Name: "other", Metadata: noted, Lifecycle: platform.Lifecycle{Type: platform.LifecycleBuildpack}}))
	last := w.follow(b, time.Hour, url.Values{})
	last.waitOpen(w)
	began := time.Now()
	must(w, w.api.cmd.Process.Signal(syscall.SIGTERM))
	last.ends(w, 5*time.Second, "the API stops")
	_ = w.api.cmd.Wait()
	if took := time.Since(began); took > 5*time.Second || !w.api.cmd.ProcessState.Success() {
		w.Errorf("the API took %s to stop: %s", took, w.api.cmd.ProcessState)
	}
}

func (h *heard) ends(w *world, limit time.Duration, why string) {
	w.Helper()
	select {
	case <-h.done:
	case <-time.After(limit):
		w.Fatalf("the stream does not end: %s", why)
	}
	if h.err != nil || h.closing != why {
		w.Errorf("it ended with %q %v, want %q", h.closing, errors.Unwrap(h.err), why)
	}
}
