package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	v3 "github.com/proa-dev/proa/platform/v3"
)

func terminal(columns int) (*Env, *bytes.Buffer) {
	var out bytes.Buffer
	return &Env{Out: &out, OutTTY: true, Width: func() int { return columns }, Now: time.Now}, &out
}

func TestTableFits(t *testing.T) {
	rows := [][]string{{"shop", "started", "web:2/2", "shop.example.com, www.example.com"}, {"a", "stopped", "", ""}}
	headings := []string{"name", "state", "processes", "routes"}
	for _, columns := range []int{30, 40, 60, 200} {
		e, out := terminal(columns)
		e.Colour = columns%40 == 0
		rows[0][1] = e.ofState("STARTED")
		e.table(out, headings, rows)
		for line := range strings.SplitSeq(out.String(), "\n") {
			if width(line) > columns {
				t.Errorf("on %d columns a line takes %d: %q", columns, width(line), line)
			}
		}
		if joined := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(joined, "shop.ex") || !strings.Contains(joined, "stopped") {
			t.Errorf("on %d columns something is lost:\n%s", columns, out)
		}
	}
	e, out := terminal(5) // far too narrow for anything: it must only not fall over
	e.Colour = true
	e.table(out, headings, [][]string{{"a", e.green("a painted text that stays whole"), "", ""}})
	rows[0][1] = "started"
	e, out = terminal(20)
	e.OutTTY = false
	e.table(out, headings, rows)
	if want := "shop  started  web:2/2    shop.example.com, www.example.com\n"; !strings.Contains(out.String(), want) {
		t.Errorf("without a terminal lines must stay whole:\n%s", out)
	}
}

// A cell may have several lines. What does not fit goes on indented, so that it is not taken for another one.
func TestTableWithLinesInCells(t *testing.T) {
	e, out := terminal(60)
	e.table(out, []string{"route", "destinations"}, [][]string{{"shop.example.com", "shop:8080\na-rather-long-name-of-an-app-number-1:9001 worker http2 pending"}})
	want := "route             destinations\n" +
		"shop.example.com  shop:8080\n" +
		"                  a-rather-long-name-of-an-app-number-1:\n" +
		"                    9001 worker http2 pending\n"
	if out.String() != want {
		t.Errorf("drew\n%s\nwant\n%s", out, want)
	}
	for text, lines := range map[string]string{
		"very-long-host.example.com/some/path": "very-long-host.|example.com/some|/path", "nothing,to,hold": "nothing,to,hold", "aaaaaaaaaaaaaaaaaaaa": "aaaaaaaaaaaaaaaa|aaaa",
	} {
		if got := strings.Join(wrap(text, 16), "|"); got != lines {
			t.Errorf("%s wraps to %s", text, got)
		}
	}
}

func TestColours(t *testing.T) {
	e := &Env{Colour: true}
	if got := e.ofState("RUNNING"); got != "\x1b[32mrunning\x1b[0m" || width(got) != 7 {
		t.Errorf("got %q", got)
	}
	if got := (&Env{}).ofState("RUNNING"); got != "running" {
		t.Errorf("without colours: %q", got)
	}
	nasty := "a\x1b]0;title\x07b\x1b[2Jc\x1b[31md\u009be\r\x00f\tg"
	if got := clean(nasty); got != "abcdef\tg" {
		t.Errorf("clean gives %q", got)
	}
	if got := cleanLog(nasty); got != "abc\x1b[31mdef\tg\x1b[0m" {
		t.Errorf("cleanLog gives %q", got)
	}
}

func TestProgress(t *testing.T) {
	e, out := terminal(80)
	p := e.progress("Uploading", 4<<20)
	for range 4 {
		_, _ = p.Write(make([]byte, 1<<20))
	}
	p.end()
	contains(t, out.String(), "\rUploading [", "  0% 0B of 4M", "100% 4M of 4M\x1b[K\n")
	for columns, want := range map[int]string{200: "Uploading [" + strings.Repeat("=", 40) + "] 100% 4M of 4M", 30: "Uploading 100%", 8: "100%"} {
		if got := p.line(columns); got != want {
			t.Errorf("on %d columns: %q, want %q", columns, got, want)
		}
	}
	e.OutTTY = false
	out.Reset()
	p = e.progress("Uploading", 4<<20)
	_, _ = p.Write(make([]byte, 4<<20))
	p.end()
	if out.String() != "Uploading 4M...\n" {
		t.Errorf("without a terminal: %q", out)
	}
}

func TestLiveView(t *testing.T) {
	e, out := terminal(20)
	l := &live{e: e}
	l.show([]string{"web #0 starting", "web #1 starting"}, "")
	l.show([]string{"web #0 crashed because of something long"}, "")
	want := "\r\x1b[Kweb #0 starting\n\r\x1b[Kweb #1 starting\n\x1b[2A\r\x1b[Kweb #0 crashed bec…\n\r\x1b[K\n"
	if out.String() != want {
		t.Errorf("drew %q, want %q", out, want)
	}
	e.OutTTY = false
	out.Reset()
	for _, line := range []string{"0 of 2", "0 of 2", "2 of 2"} {
		l.show(nil, line)
	}
	if out.String() != "0 of 2\n2 of 2\n" {
		t.Errorf("without a terminal: %q", out)
	}
	if got := clip("\x1b[32mrunning\x1b[0m for a long time", 10); width(got) > 10 || !strings.HasSuffix(got, "\x1b[0m") {
		t.Errorf("clipped to %q", got)
	}
}

func TestSettled(t *testing.T) {
	states := map[rune]string{'R': "RUNNING", 'r': "RUNNING", 'S': "STARTING", 'C': "CRASHED", 'D': "DOWN"} // r: only just
	next := v3.Time(time.Now().Add(time.Minute))
	for _, c := range []struct {
		states  string
		crashes int // below zero: a Cloud Foundry, which does not say
		waits   bool
		first   bool
		done    bool
		crashed bool
	}{
		{states: "", done: true}, {states: "R", done: true}, {states: "RS"}, {states: "RS", first: true, done: true}, {states: "SS", first: true}, {states: "D"},
		{states: "C", crashes: -1, crashed: true}, {states: "CC", crashes: -1, crashed: true}, {states: "CS", crashes: -1}, {states: "RC", crashes: -1, done: true},
		{states: "CC", crashes: 1}, {states: "CC", crashes: 2, crashed: true}, {states: "CC", crashes: 1, waits: true, crashed: true}, {states: "CS", crashes: 1, waits: true},
		{states: "SS", crashes: 1}, {states: "SS", crashes: 2, crashed: true}, {states: "RS", crashes: 2, done: true}, {states: "RC", crashes: 1}, {states: "RC", crashes: 4, waits: true, done: true}, {states: "RC", crashes: 1, first: true, done: true},
		{states: "r", done: true}, {states: "r", crashes: 1}, {states: "rC", crashes: 1}, {states: "R", crashes: 1, done: true}, {states: "r", crashes: -1, done: true},
	} {
		var all []v3.InstanceStats
		for _, s := range c.states {
			i := v3.InstanceStats{Type: "web", State: states[s]}
			if c.crashes >= 0 {
				i.Crashes = &c.crashes
			}
			if s == 'R' {
				i.Uptime = 10
			}
			if c.waits && s == 'C' {
				i.NextTry = &next
			}
			all = append(all, i)
		}
		if done, crashed := settled(all, c.first); done != c.done || (crashed != nil) != c.crashed {
			t.Errorf("%+v: %v, %+v", c, done, crashed)
		}
	}
}

func TestInstances(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(ago time.Duration) *v3.Time { return new(v3.Time(now.Add(-ago))) }
	exit := &v3.LastExit{Description: "APP/PROC/WEB/SIDECAR/CLOCK: Exited with status 1", At: *at(12 * time.Second)}
	all := []v3.InstanceStats{
		{Type: "web", Index: 0, State: "RUNNING", Uptime: 190, MemoryQuota: 128 << 20, DiskQuota: 64 << 20, Crashes: new(0),
			Usage: v3.AppUsage{CPU: new(0.989), Memory: new(int64(33894400)), Disk: new(int64(20013056))},
			Processes: []v3.ProcessStats{{Type: "main", Name: "web", PID: 14, State: "running", Since: at(190 * time.Second), CPU: new(0.001), Memory: 1 << 20, Reserved: 64 << 20},
				{Type: "sidecar", Name: "the\x1b[2J glutton", PID: 15, State: "running", Since: at(190 * time.Second), CPU: new(0.988), Memory: 33 << 20}}},
		{Type: "web", Index: 1, State: "CRASHED", Uptime: 12, MemoryQuota: 128 << 20, DiskQuota: 64 << 20, Crashes: new(4), LastExit: exit, NextTry: at(-23 * time.Second), Details: new("as it is in Cloud Foundry")},
		{Type: "web", Index: 2, State: "RUNNING", Uptime: 5, MemoryQuota: 128 << 20, DiskQuota: 64 << 20, Crashes: new(1), LastExit: exit},
		{Type: "web", Index: 10, State: "DOWN", MemoryQuota: 128 << 20, DiskQuota: 64 << 20, Crashes: new(0), Details: new("0/2 nodes are available: 2 Insufficient memory. Ask the operator for a larger cluster, or scale down.")},
	}
	const want = `               state    for  cpu    memory         disk
#0             running  3m   98.9%  32.3M of 128M  19.1M of 64M
  web          pid 14   3m   0.1%   1M of 64M
  the glutton  pid 15   3m   98.8%  33M
#1             crashed  12s  -      - of 128M      - of 64M
#2             running  5s   -      - of 128M      - of 64M
#10            down     -    -      - of 128M      - of 64M
#1  crashed 4 times, restarts in 23s
    last exit 12s ago: APP/PROC/WEB/SIDECAR/CLOCK: Exited with status 1
#2  crashed once
    last exit 12s ago: APP/PROC/WEB/SIDECAR/CLOCK: Exited with status 1
#10  0/2 nodes are available: 2 Insufficient memory. Ask the operator for a
     larger cluster, or scale down.
`
	for _, columns := range []int{40, 80, 200} {
		e, out := terminal(columns)
		e.Now, e.Colour = func() time.Time { return now }, columns == 200
		(&session{Env: e}).printInstances(all)
		for line := range strings.SplitSeq(out.String(), "\n") {
			if width(line) > columns {
				t.Errorf("on %d columns a line takes %d: %q", columns, width(line), line)
			}
		}
		if columns == 80 && out.String() != want {
			t.Errorf("got\n%swant\n%s", out, want)
		}
		if columns == 200 {
			contains(t, out.String(), "\x1b[32mrunning\x1b[0m", "\x1b[31mcrashed\x1b[0m", "available: 2 Insufficient memory. Ask the operator for a larger cluster, or scale down.\n")
		}
	}
}

// What the wait for an app says when it fails.
func TestWhyCrashed(t *testing.T) {
	exit := &v3.LastExit{Description: "APP/PROC/WEB: Exited with status 1"}
	for want, i := range map[string]v3.InstanceStats{
		"": {State: "CRASHED"}, " Instance 2: Gone.": {Index: 2, State: "CRASHED", Details: new("Gone.")},
		" Instance 0: APP/PROC/WEB: Exited with status 1.": {State: "CRASHED", LastExit: exit, Details: new("Exited. Restarts in 3s.")},
	} {
		if got := whyCrashed(i); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestFlagsStandAnywhere(t *testing.T) {
	for _, c := range []struct {
		line     string
		verbatim int
		want     []string
		tags     []string
	}{
		{"app -t x path", 0, []string{"app", "path"}, []string{"x"}},
		{"-t x app --tag=y path -n", 0, []string{"app", "path"}, []string{"x", "y"}},
		{"app -- -t x", 0, []string{"app", "-t", "x"}, nil},
		{"app NAME -Xmx1g", 2, []string{"app", "NAME", "-Xmx1g"}, nil},
		{"-t x app NAME -t y", 2, []string{"app", "NAME", "-t", "y"}, []string{"x"}},
	} {
		f := newFlags("test")
		tags := f.list("tag,t", "TAG", "")
		f.on("n", "")
		got, err := f.parse(strings.Fields(c.line), c.verbatim)
		if err != nil || !slices.Equal(got, c.want) || !slices.Equal(*tags, c.tags) {
			t.Errorf("%q gives %q and %q, %v", c.line, got, *tags, err)
		}
	}
}

// Lines that arrive late are shown, and none twice.
func TestFollowerShowsEachLineOnce(t *testing.T) {
	line := func(at int64, text string) v3.LogEnvelope {
		return v3.LogEnvelope{Timestamp: at * int64(time.Second), Log: v3.Log{Payload: []byte(text)}}
	}
	f := follower{seen: map[string]int64{}}
	var shown []string
	show := func(e v3.LogEnvelope) { shown = append(shown, string(e.Log.Payload)) }
	f.take([]v3.LogEnvelope{line(10, "a"), line(11, "b")}, show)
	f.take([]v3.LogEnvelope{line(10, "a"), line(10, "late"), line(11, "b")}, show)
	f.take([]v3.LogEnvelope{line(20, "c")}, show)
	f.take(nil, show)
	if got := strings.Join(shown, " "); got != "a b late c" {
		t.Errorf("showed %s", got)
	}
	if len(f.seen) != 1 || f.start != 18*int64(time.Second) {
		t.Errorf("remembers %v, reads from %d", f.seen, f.start)
	}
}

func TestNothingListened(t *testing.T) {
	why := func(text string) string {
		return whyCrashed(v3.InstanceStats{State: "CRASHED", LastExit: &v3.LastExit{Description: text}})
	}
	contains(t, why("APP/PROC/WEB: Not well within 30 s: dial tcp 10.0.0.1:8080: connect: connection refused"), " Instance 0: APP/PROC/WEB: Not well", "Nothing listened on $PORT in time.", "-u process", "-t")
	if got := why("APP/PROC/WEB: Exited with status 1"); got != " Instance 0: APP/PROC/WEB: Exited with status 1." {
		t.Errorf("got %q", got)
	}
}

// Of a crash there are two events, which say the same.
func TestEventsOfACrash(t *testing.T) {
	data := func(at float64) map[string]any {
		return map[string]any{"instance": "i", "index": 0.0, "crash_timestamp": at, "reason": "CRASHED", "exit_description": "APP/PROC/WEB/SIDECAR/CLOCK: Exited with status 1"}
	}
	got := crashesOnce([]v3.Event{{Type: "app.crash", Data: data(2)}, {Type: "audit.app.process.crash", Data: data(2)}, {Type: "app.crash", Data: data(1)}, {Type: "audit.app.start"}})
	if len(got) != 3 || got[0].Type != "audit.app.process.crash" || got[1].Type != "app.crash" {
		t.Errorf("got %+v", got)
	}
	if text := describe(got[0].Data); text != "#0 WEB/SIDECAR/CLOCK: Exited with status 1" {
		t.Errorf("got %q", text)
	}
}

func TestWebComesFirst(t *testing.T) {
	all := []v3.Process{{Type: "clock"}, {Type: "web"}, {Type: "a"}}
	slices.SortStableFunc(all, webFirst)
	if all[0].Type != "web" || all[1].Type != "clock" || all[2].Type != "a" {
		t.Errorf("got %+v", all)
	}
}
