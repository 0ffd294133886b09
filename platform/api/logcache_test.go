package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/proa-dev/proa/platform"
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
	for _, query := range []string{"?start_time=now", "?limit=0", "?limit=1001", "?colour=red"} {
		if got := w.call(http.MethodGet, read+query, dev, nil); got.status != 400 {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
	w.refused(w.call(http.MethodGet, "/api/v1/read/none", dev, nil), 404, 10010, "CF-ResourceNotFound", "App not found")
}
