package work_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// gate is a transport that stops one kind of request once, before it is sent or after its answer has come, until it is let go.
type gate struct {
	call    string // provision, bind, poll, fetch; empty: none
	after   bool
	reached func()
	letGo   <-chan struct{}
	once    sync.Once
}

// RoundTrip sends a request, and stops where it is to.
func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	if !g.after {
		g.stop(r)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if g.after {
		g.stop(r)
	}
	return resp, err
}

func (g *gate) stop(r *http.Request) {
	bound, polled := strings.Contains(r.URL.Path, "/service_bindings/"), strings.HasSuffix(r.URL.Path, "/last_operation")
	is := ""
	switch {
	case polled:
		is = "poll"
	case r.Method == http.MethodPut && bound:
		is = "bind"
	case r.Method == http.MethodPut:
		is = "provision"
	case r.Method == http.MethodGet && bound:
		is = "fetch"
	}
	if is != "" && is == g.call {
		g.once.Do(func() {
			g.reached()
			select {
			case <-g.letGo:
			case <-r.Context().Done():
			}
		})
	}
}

// line is a way to PostgreSQL that can be cut: connections end, and new ones are refused.
type line struct {
	to string
	l  net.Listener

	mu   sync.Mutex
	cut  bool
	open map[net.Conn]bool
}

// newLine makes one, and says how to reach the database of the URL over it.
func newLine(t testing.TB, database string) (*line, string) {
	t.Helper()
	at := get[*url.URL](t)(url.Parse(database))
	l := &line{to: at.Host, l: get[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0")), open: map[net.Conn]bool{}}
	t.Cleanup(func() {
		_ = l.l.Close()
		l.set(true)
	})
	go l.serve()
	at.Host = l.l.Addr().String()
	return l, at.String()
}

func (l *line) serve() {
	for {
		from, err := l.l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			go l.join(from)
		}
	}
}

func (l *line) join(from net.Conn) {
	defer func() { _ = from.Close() }()
	to, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", l.to)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	l.mu.Lock()
	if l.cut {
		l.mu.Unlock()
		return
	}
	l.open[from], l.open[to] = true, true
	l.mu.Unlock()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_ = from.Close()
			_ = to.Close()
		})
	}
	both.Wait()
	l.mu.Lock()
	delete(l.open, from)
	delete(l.open, to)
	l.mu.Unlock()
}

// set cuts the line, or mends it.
func (l *line) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	for c := range l.open {
		if cut {
			_ = c.Close()
		}
	}
}
