package api

import (
	"net/http"
	"testing"
	"time"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/kube"
	"github.com/proa-dev/proa/platform/store"
)

type sinkWriter struct{ bytes int }

func (s *sinkWriter) Header() http.Header         { return http.Header{} }
func (s *sinkWriter) WriteHeader(int)             {}
func (s *sinkWriter) Write(b []byte) (int, error) { s.bytes += len(b); return len(b), nil }

// BenchmarkStream is what a line costs between the cluster and the connection of its reader.
func BenchmarkStream(b *testing.B) {
	l := (&Server{}).newStream(b.Context(), store.LogPlace{App: "3f1f2c0e-5a0c-4f6f-8d54-6b2c8a3f9a10"}, platform.LogFilter{})
	f := &follower{stream: l, of: store.LogPod{Process: "web"}, sources: map[string]*logSource{}, queue: l.lines.queue(l.app)}
	out := &eventWriter{w: &sinkWriter{}, control: http.NewResponseController(&sinkWriter{})}
	text := []byte("line 12345 of a log, with as many words behind it as such lines have")
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		f.take(kube.AppLine{At: int64(n), Text: text})
		if n++; n%1000 == 0 {
			f.publish()
			out.event, out.lines, _ = l.lines.take(out.open(), time.Now().Add(holdBack))
			if _, err := out.w.Write(append(out.event, eventEnd...)); err != nil {
				b.Fatal(err)
			}
		}
	}
}
