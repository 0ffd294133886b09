package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/api"
	v3 "github.com/proa-dev/proa/platform/v3"
)

func TestLogCache(t *testing.T) {
	w := newWorld(t)
	_, space, dev := w.place()
	app := w.app(space, "blue")
	if got := w.call(http.MethodGet, "/api/v1/info", "", nil); got.status != 200 || got.body != `{"version":"2.11.4"}` {
		t.Errorf("info: %d %s", got.status, got.body)
	}
	read := "/api/v1/read/" + app.GUID
	if got := do[v3.LogCacheRead](w, 200, http.MethodGet, read, dev, nil).Envelopes.Batch; len(got) != 1 || string(got[0].Log.Payload) != "Created app blue." || got[0].Tags["source_type"] != "API" {
		t.Errorf("of a new app: %+v", got)
	}
	_, err := w.pool.Exec(t.Context(), `delete from log_lines`)
	must(t, err)
	if got := w.call(http.MethodGet, read+"?start_time=-6795364578871345152&limit=1&descending=true", dev, nil); got.body != `{"envelopes":{"batch":[]}}` {
		t.Errorf("nothing yet: %s", got.body)
	}
	start := time.Unix(1_700_000_000, 0)
	var lines []platform.LogLine
	for i := range 150 {
		lines = append(lines, platform.LogLine{App: app.GUID, At: start.Add(time.Duration(i)), Source: platform.SourceStaging, Instance: "0", Stderr: i == 1, Text: fmt.Sprint("line ", i)})
	}
	must(t, w.store.AppendLog(t.Context(), lines))
	for query, want := range map[string]string{
		"?start_time=-6795364578871345152&envelope_types=LOG&limit=3&descending=true": "line 149,line 148,line 147",
		"?start_time=-6795364578871345152&limit=1&descending=true":                    "line 149",
		"?start_time=1700000000000000147&envelope_types=LOG":                          "line 147,line 148,line 149",
		"?start_time=1700000000000000150":                                             "",
		"?start_time=1700000000000000001&end_time=1700000000000000003":                "line 1,line 2",
		"?envelope_types=GAUGE&envelope_types=TIMER":                                  "",
		"?envelope_types=GAUGE&envelope_types=LOG&start_time=1700000000000000149":     "line 149",
	} {
		var got []string
		for _, e := range do[v3.LogCacheRead](w, 200, http.MethodGet, read+query, dev, nil).Envelopes.Batch {
			got = append(got, string(e.Log.Payload))
		}
		if strings.Join(got, ",") != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	if got := do[v3.LogCacheRead](w, 200, http.MethodGet, read, dev, nil).Envelopes.Batch; len(got) != 100 || string(got[0].Log.Payload) != "line 0" {
		t.Errorf("without a limit: %d", len(got))
	}
	var raw struct {
		Envelopes struct{ Batch []json.RawMessage }
	}
	must(t, json.Unmarshal([]byte(w.call(http.MethodGet, read+"?start_time=1700000000000000001&limit=1", dev, nil).body), &raw))
	want := `{"timestamp":"1700000000000000001","source_id":"` + app.GUID + `","instance_id":"0","tags":{"source_type":"STG"},"log":{"payload":"bGluZSAx","type":"ERR"}}`
	if string(raw.Envelopes.Batch[0]) != want {
		t.Errorf("got  %s\nwant %s", raw.Envelopes.Batch[0], want)
	}
	// Lines that come with the time of others, or an older one, come after them.
	must(t, w.store.AppendLog(t.Context(), []platform.LogLine{{App: app.GUID, At: start, Text: "late"}, {App: app.GUID, At: start.Add(time.Hour), Text: "x"}, {App: app.GUID, At: start.Add(time.Hour), Text: "y"}, {App: "gone", Text: "z"}}))
	var late []string
	for _, e := range do[v3.LogCacheRead](w, 200, http.MethodGet, read+"?start_time=1700000000000000150", dev, nil).Envelopes.Batch {
		late = append(late, fmt.Sprint(e.Timestamp-start.UnixNano(), " ", string(e.Log.Payload)))
	}
	if got := strings.Join(late, ", "); got != "150 late, 3600000000000 x, 3600000000001 y" {
		t.Errorf("got %s", got)
	}
	for _, query := range []string{"?start_time=now", "?limit=0", "?limit=1001", "?colour=red", "?instance=x"} {
		if got := w.call(http.MethodGet, read+query, dev, nil); got.status != 400 {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
	w.refused(w.call(http.MethodGet, "/api/v1/read/none", dev, nil), 404, 10010, "CF-ResourceNotFound", "App not found")
}

// TestLogCacheWithoutACluster: that instances cannot be read costs their lines, and is said.
func TestLogCacheWithoutACluster(t *testing.T) {
	w := newWorld(t)
	_, space, dev := w.place()
	app := w.app(space, "blue")
	_, err := w.pool.Exec(t.Context(), `insert into instances (process_guid, index, release_guid, pod, pod_uid, node, address, state, since, ready, restarts, details)
		select $1, n, 'r', 'r-' || n, 'u' || n, '', '', 'RUNNING', now(), true, 0, '' from generate_series(0, 1) n`, app.GUID)
	must(t, err)
	texts := func(query string) (all []string) {
		for _, e := range do[v3.LogCacheRead](w, 200, http.MethodGet, "/api/v1/read/"+app.GUID+query, dev, nil).Envelopes.Batch {
			all = append(all, string(e.Log.Payload))
		}
		slices.Sort(all) // the time of what is said is a whole minute's
		return all
	}
	const unread = "The logs of APP/PROC/WEB/0 and 1 more could not be read just now."
	if got := texts(""); !slices.Equal(got, []string{"Created app blue.", unread}) {
		t.Errorf("got %q", got)
	}
	if got := texts("?instance=1"); !slices.Equal(got, []string{"The log of APP/PROC/WEB/1 could not be read just now."}) {
		t.Errorf("got %q", got)
	}
	for _, query := range []string{"?source_type=STG", "?envelope_types=GAUGE", "?process=worker", fmt.Sprint("?start_time=", time.Now().Add(time.Minute).UnixNano())} {
		if got := texts(query); len(got) != 0 {
			t.Errorf("%s: %q", query, got)
		}
	}
}

// TestLogStream speaks the protocol of the RLP gateway, with lines that only the records have.
func TestLogStream(t *testing.T) {
	w := newWorld(t, func(s *api.Server) {
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = s.FollowLogs(ctx) }()
		t.Cleanup(func() { stop(); <-ended })
	})
	_, space, dev := w.place()
	app := w.app(space, "blue")
	add := func(source, text string) {
		t.Helper()
		must(t, w.store.AppendLog(t.Context(), []platform.LogLine{{App: app.GUID, At: time.Now(), Source: source, Instance: "0", Text: text}}))
	}
	add("API", "before")
	add("STG", "staged") // is not what a reader begins with
	all := w.events(dev, "log&recent=1&source_id="+app.GUID)
	if line := all.next(); line != "event: heartbeat" {
		t.Errorf("first: %q", line)
	}
	all.data() // of the heartbeat
	first := all.data()
	if !strings.HasPrefix(first, `{"batch":[{"timestamp":"`) || !strings.HasSuffix(first, `","source_id":"`+app.GUID+`","instance_id":"0","tags":{"source_type":"API"},"log":{"payload":"YmVmb3Jl","type":"OUT"}}]}`) {
		t.Errorf("first: %s", first)
	}
	narrowed := w.events(dev, "log&process=web&source_id="+app.GUID)
	narrowed.data()
	nothing := w.events(dev, "gauge&shard_id=x&source_id="+app.GUID)
	nothing.data()
	add("STG", "after")
	add("APP/PROC/WEB", "exit")
	if got := all.texts(2); got != "after exit" {
		t.Errorf("got %s", got)
	}
	if got := narrowed.texts(1); got != "exit" {
		t.Errorf("narrowed: %s", got)
	}
	var since v3.LogBatch
	must(t, json.Unmarshal([]byte(first), &since))
	again := w.events(dev, fmt.Sprint("log&start_time=", since.Batch[0].Timestamp, "&source_id=", app.GUID))
	again.data()
	if got := again.texts(4); got != "before staged after exit" {
		t.Errorf("from a time on: %s", got)
	}
	w.deleted("/v3/apps/"+app.GUID, dev)
	for _, e := range []*sse{all, narrowed, nothing, again} {
		if got := e.rest(); got != "event: closing,data: the app was deleted,," {
			t.Errorf("the end: %q", got)
		}
	}
	for query, status := range map[string]int{"log": 400, "log&source_id=a&source_id=b": 400, "log&source_id=none": 404, "log&recent=1001&source_id=none": 400, "log&colour=red&source_id=none": 400, "log&start_time=x&source_id=none": 400} {
		if got := w.call(http.MethodGet, "/v2/read?"+query, dev, nil); got.status != status {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
}

// sse is a stream of events as it is on the wire.
type sse struct {
	t     testing.TB
	lines *bufio.Scanner
}

func (w *world) events(token, query string) *sse {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	w.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/v2/read?"+query, nil)
	must(w.t, err)
	req.Header.Set("Authorization", "bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	must(w.t, err)
	w.t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("Cache-Control") != "no-cache" {
		w.t.Fatalf("%s: %s %v", query, resp.Status, resp.Header)
	}
	return &sse{w.t, bufio.NewScanner(resp.Body)}
}

func (e *sse) next() string {
	e.t.Helper()
	if !e.lines.Scan() {
		e.t.Fatalf("the stream has ended: %v", e.lines.Err())
	}
	return e.lines.Text()
}

func (e *sse) data() string {
	e.t.Helper()
	for {
		if data, is := strings.CutPrefix(e.next(), "data: "); is {
			return data
		}
	}
}

// texts are what the next lines say.
func (e *sse) texts(count int) string {
	e.t.Helper()
	var all []string
	for len(all) < count {
		var b v3.LogBatch
		must(e.t, json.Unmarshal([]byte(e.data()), &b))
		for _, one := range b.Batch {
			all = append(all, string(one.Log.Payload))
		}
	}
	return strings.Join(all, " ")
}

// rest is what follows the end of an event.
func (e *sse) rest() string {
	e.t.Helper()
	var all []string
	for e.lines.Scan() {
		all = append(all, e.lines.Text())
	}
	return strings.TrimPrefix(strings.Join(all, ",")+",", ",")
}
