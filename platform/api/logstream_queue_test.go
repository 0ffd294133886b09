package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// write adds lines TIME TEXT, each as it comes.
func write(b *logLines, q *logQueue, source *logSource, wait <-chan struct{}, lines ...string) {
	for _, line := range lines {
		var at int64
		var text string
		if _, err := fmt.Sscan(line, &at, &text); err != nil {
			panic(err)
		}
		var c logChunk
		c.add(at, source, []byte(text))
		b.add(q, &c, wait)
	}
}

// taken is what leaves now, TIME TEXT.
func taken(t *testing.T, b *logLines) (lines []string) {
	t.Helper()
	for {
		event, n, _ := b.take([]byte(`{"batch":[`), time.Now())
		var batch v3.LogBatch
		if err := json.Unmarshal(append(event, "]}"...), &batch); err != nil || len(batch.Batch) != n {
			t.Fatalf("%d lines in %.300s: %v", n, event, err)
		}
		if n == 0 {
			return lines
		}
		for _, e := range batch.Batch {
			lines = append(lines, fmt.Sprint(e.Timestamp, " ", string(e.Log.Payload)))
		}
	}
}

func TestLinesLeaveInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newLogLines()
		one, other := b.queue("app"), b.queue("app")
		b.queue("app") // the records
		source := newLogSource("app", "APP/PROC/WEB", "0", false)
		write(b, one, source, nil, "10 a", "30 b")
		if got := taken(t, b); got != nil {
			t.Errorf("what has just come is held back: %q", got)
		}
		time.Sleep(holdBack / 2)
		write(b, other, source, nil, "20 c", "40 d") // late, but not too late
		time.Sleep(holdBack / 2)
		if got := strings.Join(taken(t, b), ","); got != "10 a,20 c,30 b" {
			t.Errorf("got %s", got)
		}
		write(b, one, source, nil, "35 e", "33 f") // out of order within a queue: as it is
		time.Sleep(holdBack)
		if got := strings.Join(taken(t, b), ","); got != "35 e,33 f,40 d" {
			t.Errorf("got %s", got)
		}
		b.end(one)
		if taken(t, b); len(b.queues) != 2 || b.bytes != 0 {
			t.Errorf("%d queues with %d bytes are left", len(b.queues), b.bytes)
		}
		write(b, other, source, nil, "50 g") // alone now
		time.Sleep(holdOne)
		if got := strings.Join(taken(t, b), ","); got != "50 g" {
			t.Errorf("got %s", got)
		}
	})
}

// TestAFloodIsNotHeldBack: as long as somebody reads, nothing waits for long and nothing is lost, and memory has a bound.
func TestAFloodIsNotHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newLogLines()
		q, source := b.queue("app"), newLogSource("app", "APP/PROC/WEB", "0", false)
		ended := make(chan struct{})
		const lines = 200_000
		go func() {
			defer close(ended)
			var c logChunk
			for n := range lines {
				c.add(int64(n), source, []byte("a line of a flood that goes on and on"))
				if n%100 == 0 {
					b.add(q, &c, t.Context().Done())
				}
			}
			b.add(q, &c, t.Context().Done())
		}()
		var got []string
		for done := false; !done; {
			select {
			case <-b.wake:
			case <-ended:
				time.Sleep(holdBack)
				done = true
			}
			b.mu.Lock()
			bytes := b.bytes
			b.mu.Unlock()
			if bytes > streamBytes {
				t.Fatalf("%d bytes wait", bytes)
			}
			got = append(got, taken(t, b)...)
		}
		if len(got) != lines || got[lines-1] != fmt.Sprint(lines-1, " a line of a flood that goes on and on") {
			t.Errorf("%d lines, the last is %q", len(got), got[len(got)-1])
		}
	})
}

// TestDroppedLinesAreSaid: nobody reads, and the one who writes is not held up for longer than is right.
func TestDroppedLinesAreSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newLogLines()
		q, records, source := b.queue("app"), b.queue("app"), newLogSource("app", "APP/PROC/WEB", "0", false)
		const lines = 300_000
		write(b, records, source, nil, fmt.Sprint(lines-10, " record"))
		began := time.Now()
		var c logChunk
		for n := range lines {
			if c.add(int64(n), source, []byte("a line that nobody reads")); n%50 == 49 {
				b.add(q, &c, t.Context().Done())
			}
		}
		if took := time.Since(began); took < readPatience || took > 2*readPatience {
			t.Errorf("the writer was held up for %s", took)
		}
		time.Sleep(holdBack)
		got := taken(t, b)
		var dropped, next int
		if _, err := fmt.Sscanf(got[0], "%d %d lines were dropped here, because they were not read fast enough.", &next, &dropped); err != nil || next != dropped-1 {
			t.Fatalf("first: %q", got[0])
		}
		if len(got)-2+dropped != lines || !strings.HasPrefix(got[1], fmt.Sprint(dropped, " ")) || strings.Count(strings.Join(got, "\n"), "dropped") != 1 || strings.Count(strings.Join(got, "\n"), "record") != 1 {
			t.Errorf("%d lines and %d dropped; after them comes %q", len(got)-2, dropped, got[1])
		}
		began = time.Now()
		for n := range 200_000 { // a reader who reads again is waited for again
			if c.add(int64(lines+n), source, []byte("a line that nobody reads")); n%50 == 49 {
				b.add(q, &c, t.Context().Done())
			}
		}
		if took := time.Since(began); took < readPatience {
			t.Errorf("the writer was held up for %s", took)
		}
	})
}

func TestEnvelopesAreThoseOfTheLogCache(t *testing.T) {
	for _, l := range []platform.LogLine{
		{App: "a-1", At: time.Unix(1_700_000_000, 5), Source: "APP/PROC/WEB/SIDECAR/<\"&É\u2028>", Instance: "0", Text: "hello \x00\xff\x1b[31m"},
		{App: "a-1", At: time.Unix(0, 0), Source: "STG", Stderr: true},
	} {
		want, err := json.Marshal(envelope(l))
		if err != nil {
			t.Fatal(err)
		}
		got := appendEnvelope(nil, l.At.UnixNano(), newLogSource(l.App, l.Source, l.Instance, l.Stderr), []byte(l.Text))
		if string(got) != string(want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
