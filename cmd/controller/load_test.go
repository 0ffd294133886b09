package main_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proa-dev/proa/platform"
)

// A load sends requests to one address at a constant rate, whatever becomes of them. Half are GET, half POST, which nobody may repeat.
type load struct {
	name string
	way  http.RoundTripper
	url  string

	mu     sync.Mutex
	sent   int
	failed map[string]int // by what went wrong
	served map[string]int // by who answered
}

const loadEvery = 5 * time.Millisecond // 200 in a second

func newLoad(name, url string, keepAlive bool) *load {
	way := gateway()
	way.DisableKeepAlives = !keepAlive
	return &load{name: name, way: way, url: url, failed: map[string]int{}, served: map[string]int{}}
}

// run sends until ctx ends, and waits for the answers.
func (l *load) run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	tick := time.NewTicker(loadEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		all.Go(func() { l.send(n) })
	}
}

func (l *load) send(n int) {
	method, body := http.MethodGet, io.Reader(nil)
	if n%2 == 1 {
		method, body = http.MethodPost, strings.NewReader("body")
	}
	who, problem := l.ask(method, body)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent++
	if problem != "" {
		l.failed[problem]++
		return
	}
	l.served[who]++
}

func (l *load) ask(method string, body io.Reader) (who, problem string) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, l.url+"/slow/20", body) // some are in flight at any time
	if err != nil {
		return "", err.Error()
	}
	response, err := l.way.RoundTrip(request)
	if err != nil {
		return "", err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err.Error()
	}
	if response.StatusCode != http.StatusOK || !strings.HasSuffix(string(text), " on 8080\n") {
		return "", fmt.Sprintf("%s %.40q", response.Status, text)
	}
	return string(text), ""
}

// count tells what has failed so far, and who has answered since the last time.
func (l *load) count() (sent, failed int, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.failed {
		failed += n
	}
	text = fmt.Sprintf("%s: %d sent, failed %v, %d instances answered", l.name, l.sent, l.failed, len(l.served))
	sent = l.sent
	l.sent = 0
	clear(l.failed)
	clear(l.served)
	return sent, failed, text
}

// TestScaleUnderLoad changes the number of instances while requests come, and kills one. Scaling loses none; a killed instance those that
// it had.
func TestScaleUnderLoad(t *testing.T) {
	w := newWorld(t)
	w.start()
	a := w.routed("shop")
	r := w.route("shop", "", to(a, 0))
	url := "http://" + r.URL()
	scale := func(n int) {
		get[platform.Process](w)(w.store.ScaleProcess(t.Context(), admin, w.web(a).GUID, platform.ProcessScale{Instances: new(n)}))
	}
	scale(2)
	w.instances(a, "RUNNING RUNNING")
	w.pods(2)
	w.until(time.Minute, "both answer", func() error {
		who := map[string]bool{}
		for range 8 {
			who[ask(gateway(), url)] = true
		}
		if len(who) != 2 || who["404 404 page not found"] {
			return fmt.Errorf("%v", who)
		}
		return nil
	})

	loads := []*load{newLoad("kept alive", url, true), newLoad("a connection each", url, false)}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, l := range loads {
		all.Go(func() { l.run(ctx) })
	}
	defer all.Wait()
	defer stop()
	since := time.Now()
	check := func(what string, mayFail int) {
		t.Helper()
		all := 0
		for _, l := range loads {
			sent, failed, text := l.count()
			t.Logf("%s: %s", what, text)
			if all += sent; failed > mayFail {
				t.Errorf("%s: more than %d requests failed: %s", what, mayFail, text)
			}
		}
		if rate := float64(all) / time.Since(since).Seconds(); rate < 200 {
			t.Errorf("%s: this machine is too busy to measure: it sent %.0f requests in a second", what, rate)
		}
		since = time.Now()
	}
	time.Sleep(2 * time.Second)
	check("nothing happens", 0)
	for _, n := range []int{4, 1, 3, 2} {
		scale(n)
		w.instances(a, strings.TrimSpace(strings.Repeat("RUNNING ", n)))
		w.pods(n)
		time.Sleep(time.Second)
		check(fmt.Sprintf("scaled to %d", n), 0)
	}
	// 200 in a second for 20 ms are 4 in flight, of which half are at the instance that dies, and as many on the way to it.
	pods := w.there("pods", "app")
	w.try("--namespace="+w.space.Namespace(), "exec", strings.TrimPrefix(slices.Sorted(slices.Values(pods))[0], "pod/"), "--", "sh", "-c", "kill -9 -1")
	time.Sleep(5 * time.Second)
	w.instances(a, "RUNNING RUNNING")
	check("one was killed", 8)
	time.Sleep(time.Second)
	for _, l := range loads {
		if who := slices.Collect(maps.Keys(l.snapshot())); len(who) != 2 {
			t.Errorf("%s: %q answer in the end", l.name, who)
		}
	}
	check("in the end", 0)
}

func (l *load) snapshot() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.served)
}

// pods waits until there are so many, those that are about to leave included.
func (w *world) pods(n int) {
	w.Helper()
	w.until(time.Minute, fmt.Sprintf("%d pods", n), func() error {
		if pods := w.there("pods", "app"); len(pods) != n {
			return fmt.Errorf("they are %v", pods)
		}
		return nil
	})
}
