package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	v3 "github.com/proa-dev/proa/platform/v3"
)

func logLine(at int, source, instance, text string) v3.LogEnvelope {
	return v3.LogEnvelope{Timestamp: int64(at) * int64(time.Second), SourceID: "a-1", InstanceID: instance, Tags: map[string]string{"source_type": source}, Log: v3.Log{Payload: []byte(text), Type: "OUT"}}
}

// streaming puts a server in front of a world that also streams logs: each connection gets what the next of the scripts says.
func streaming(t *testing.T, scripts ...string) (w *world, asked *[]url.Values) {
	t.Helper()
	w = newWorld(t)
	asked = &[]url.Values{}
	mux := http.NewServeMux()
	front := httptest.NewServer(mux)
	t.Cleanup(front.Close)
	mux.Handle("/", w.Config.Handler)
	mux.HandleFunc("GET /{$}", func(rw http.ResponseWriter, _ *http.Request) {
		link, behind := map[string]string{"href": front.URL}, map[string]string{"href": w.URL}
		w.say(rw, http.StatusOK, map[string]any{"links": map[string]any{"login": behind, "uaa": behind, "log_cache": link, "log_stream": link,
			"cloud_controller_v3": map[string]any{"href": front.URL + "/v3", "meta": map[string]string{"version": v3.Version}}}})
	})
	mux.HandleFunc("GET /v2/read", func(rw http.ResponseWriter, r *http.Request) {
		n := len(*asked)
		*asked = append(*asked, r.URL.Query())
		if n >= len(scripts) {
			w.refuse(rw, http.StatusNotFound, "CF-ResourceNotFound", "App not found")
			return
		}
		rw.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(rw, "event: heartbeat\ndata: 1\n\n", scripts[n])
	})
	w.ok("login", "-a", front.URL, "-u", "ada", "-p", "lovelace", "-o", "research", "-s", "dev")
	w.manifest = "applied"
	return w, asked
}

func event(lines ...v3.LogEnvelope) string {
	text, err := json.Marshal(v3.LogBatch{Batch: lines})
	if err != nil {
		panic(err)
	}
	return "data: " + string(text) + "\n\n"
}

// TestLogsGoOn: a stream that breaks is taken up where it was, and every line is shown once.
func TestLogsGoOn(t *testing.T) {
	web, clock := "APP/PROC/WEB", "APP/PROC/WEB/SIDECAR/CLOCK"
	first := event(logLine(100, web, "0", "one"), logLine(101, clock, "0", "two"), logLine(101, clock, "0", "two"))
	w, asked := streaming(t, "", first+"data: {\"batch\":[", // broken off in the middle
		event(logLine(101, clock, "0", "two"), logLine(101, clock, "0", "two"), logLine(101, clock, "0", "two"))+event(logLine(102, web, "1", "three"))+"event: closing\ndata: the token has expired\n\n",
		event(logLine(102, web, "1", "three"), logLine(103, "API", "0", "four")))
	out, errs, code := w.run("logs", "shop")
	var said []string
	for line := range strings.Lines(out) {
		_, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		said = append(said, text)
	}
	want := "[APP/PROC/WEB/0] OUT one|[APP/PROC/WEB/SIDECAR/CLOCK/0] OUT two|[APP/PROC/WEB/SIDECAR/CLOCK/0] OUT two|[APP/PROC/WEB/SIDECAR/CLOCK/0] OUT two|[APP/PROC/WEB/1] OUT three|[API/0] OUT four"
	if got := strings.Join(said, "|"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if code != ExitNotFound {
		t.Errorf("exit %d: %s", code, errs)
	}
	contains(t, errs, "Following the logs of shop.")
	for i, want := range []string{"log=&recent=10&source_id=a-1", "log=&recent=1000&source_id=a-1", "log=&source_id=a-1&start_time=99000000000", "log=&source_id=a-1&start_time=100000000000", "log=&source_id=a-1&start_time=101000000000"} {
		if i >= len(*asked) || (*asked)[i].Encode() != want {
			t.Errorf("connection %d: %v, want %s", i, *asked, want)
		}
	}
}

func TestLogsNarrowed(t *testing.T) {
	clock := "APP/PROC/WEB/SIDECAR/CONFIG SERVER"
	exit := func(of string) string {
		return `App instance exited with guid a-1 payload: {"instance":"i","exitdescription":"` + of + `: Exited with status 1"}`
	}
	lines := event(logLine(100, "APP/PROC/WEB", "0", "main"), logLine(101, clock, "0", "clock zero"), logLine(102, clock, "1", "clock one"),
		logLine(103, "STG", "0", "staging"), logLine(104, "API", "", "2 lines were dropped here"), logLine(105, "API", "1", exit("APP/PROC/WEB")), logLine(106, "API", "1", exit(clock)),
		logLine(107, "API", "0", exit("APP/PROC/WEB")), logLine(108, "API", "1", exit("APP/PROC/WEB2")), logLine(109, "API", "1", "Stopped app shop."))
	w, asked := streaming(t, lines)
	out, _, _ := w.run("logs", "shop", "--process", "web", "--instance", "1", "--sidecar", "Config Server")
	contains(t, out, "clock one", "dropped here", `[API/1] OUT App instance exited`, `WEB: Exited`, `CONFIG SERVER: Exited`)
	if strings.Count(out, "\n") != 4 {
		t.Errorf("got\n%s", out)
	}
	if got := (*asked)[0]; got.Get("process") != "web" || got.Get("instance") != "1" || got.Get("sidecar") != "Config Server" {
		t.Errorf("asked %v", got)
	}
	out = w.ok("logs", "shop", "--recent", "--sidecar", "config server")
	if out != "" {
		t.Errorf("recent:\n%s", out)
	}
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{ExitUsage, `Error: The option --instance cannot be "x": want a whole number, such as 2.`, []string{"--instance", "x"}},
		{ExitNotFound, "There is no instance 7 of web: it has 2 instances.", []string{"--process", "web", "--instance", "7"}},
		{ExitNotFound, "There is no instance 2 of shop: it has 2 instances.", []string{"--recent", "--instance", "2"}},
		{ExitNotFound, "App shop has no process worker. It has: web.", []string{"--process", "worker"}},
		{ExitNotFound, "App shop has no sidecar clock. It has: config server.", []string{"--sidecar", "clock"}},
	} {
		_, errs, code := w.run(append([]string{"logs", "shop"}, c.args...)...)
		if code != c.code {
			t.Errorf("%v: exit %d", c.args, code)
		}
		contains(t, errs, c.says)
	}
}

// TestLogsElsewhere: where the link leads to another server, the log cache is asked again and again.
func TestLogsElsewhere(t *testing.T) {
	w := loggedIn(t)
	w.manifest = "applied"
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, errs, _ := w.runIn(ctx, func(*Env) {}, "logs", "shop")
	contains(t, errs, "Following the logs of shop.")
	for _, line := range w.heard {
		if strings.Contains(line, "/v2/read") {
			t.Errorf("asked %s", line)
		}
	}
}

func TestLogsOnANarrowTerminal(t *testing.T) {
	w, _ := streaming(t, event(logLine(100, "APP/PROC/WEB", "0", "main")))
	out, _, _ := w.runIn(t.Context(), func(e *Env) { e.OutTTY = true }, "logs", "shop")
	at := time.Unix(100, 0).Local().Format("15:04:05.00")
	if out != at+" [APP/PROC/WEB/0] OUT main\n" {
		t.Errorf("got %q", out)
	}
}

// TestMemoryHasABound: a flood is remembered for a moment only.
func TestMemoryHasABound(t *testing.T) {
	var m memory
	for n := range 200_000 {
		at := int64(n) * int64(100*time.Microsecond)
		if got := m.fresh([]v3.LogEnvelope{{Timestamp: at - rand.Int64N(1000), Log: v3.Log{Payload: []byte("x")}}}); len(got) != 1 {
			t.Fatalf("line %d is taken for another", n)
		}
	}
	if len(m.shown) > 60_000 { // two seconds are 20,000
		t.Errorf("%d lines are remembered", len(m.shown))
	}
}
