// Package web owns what every HTTP server of the house shares: a handler may return an error, bodies and times are limited,
// each request has an id and one log line, a panic costs one request and not the process, health and readiness answer, and
// metrics stand on a port of their own.
package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/proa-dev/proa/kit/fault"
)

// Handler is an http.HandlerFunc that may fail. The error is rendered and logged once, by App.
type Handler func(http.ResponseWriter, *http.Request) error

// App routes requests to handlers. Fill the fields, call Handle for each route, then serve it.
type App struct {
	Log      *slog.Logger
	Fault    func(http.ResponseWriter, *http.Request, *fault.Error) // renders a fault in the protocol's own shape
	Ready    func(context.Context) error                            // nil error: this process may get requests
	Explain  func(error) *fault.Error                               // finds the fault in an error of an engine, or nil; may be nil
	Deadline time.Duration                                          // for one request; a minute when zero
	MaxBody  int64                                                  // bytes of a request body; 1 MiB when zero
	Proxies  []netip.Prefix                                         // whose X-Forwarded-For is believed
	Metrics  *Metrics                                               // may be nil

	mux   http.ServeMux
	rooms map[string]Room
}

const defaultMaxBody = 1 << 20

// Room is what the requests of one route may take instead of what all others may. Zero is as for the others.
type Room struct {
	Body int64         // bytes of a request body
	Time time.Duration // for one request, the sending of its body included
}

// Handle adds a route; the pattern is the standard mux's, with its method.
func (a *App) Handle(pattern string, h Handler) {
	a.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { a.run(h, w, r) })
}

// HandleIn is Handle for a route that needs room, such as one that takes uploads.
func (a *App) HandleIn(room Room, pattern string, h Handler) {
	if a.rooms == nil {
		a.rooms = map[string]Room{}
	}
	a.rooms[pattern] = room
	a.Handle(pattern, h)
}

// Health adds GET /healthz, which answers while the process lives, and GET /readyz, which asks Ready.
func (a *App) Health() {
	a.Handle("GET /healthz", func(w http.ResponseWriter, _ *http.Request) error {
		return JSON(w, http.StatusOK, map[string]string{"status": "alive"})
	})
	a.Handle("GET /readyz", func(w http.ResponseWriter, r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		if a.Ready != nil {
			if err := a.Ready(ctx); err != nil {
				return fault.Unavailable("Not ready yet. Try again in a moment.").Because(err)
			}
		}
		return JSON(w, http.StatusOK, map[string]string{"status": "ready"})
	})
}

// ServeHTTP is the one path every request takes.
func (a *App) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	id := requestID(r)
	h, pattern := a.mux.Handler(r)
	room := a.rooms[pattern]
	ctx, cancel := context.WithTimeout(WithRequestID(r.Context(), id), cmp.Or(room.Time, a.Deadline, time.Minute))
	defer cancel()
	if room.Time > 0 { // the server's own times for the connection are for ordinary requests
		control, end := http.NewResponseController(rw), begin.Add(room.Time)
		_ = control.SetReadDeadline(end) // what has no connection has no deadline to move
		_ = control.SetWriteDeadline(end.Add(time.Minute))
	}
	r = r.WithContext(ctx)
	w := &response{ResponseWriter: rw}
	w.Header().Set("X-Request-Id", id)
	w.Header().Set("X-Vcap-Request-Id", id)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	r.Body = http.MaxBytesReader(rw, r.Body, cmp.Or(room.Body, a.MaxBody, defaultMaxBody)) // the server's own writer: beyond the limit it closes the connection

	if _, err := url.ParseQuery(r.URL.RawQuery); err != nil {
		a.run(func(http.ResponseWriter, *http.Request) error {
			return fault.Invalid("The part of the address behind the question mark cannot be read. Encode its values.").Because(err)
		}, w, r)
	} else if pattern == "" {
		a.run(noRoute(h), w, r)
	} else {
		r.Pattern = pattern
		a.mux.ServeHTTP(w, r)
	}
	a.record(w, r, time.Since(begin))
}

// run calls the handler behind the panic guard and renders what it returns.
func (a *App) run(h Handler, rw http.ResponseWriter, r *http.Request) {
	err := guard(h, rw, r)
	if err == nil {
		return
	}
	w, _ := rw.(*response)
	f := fault.From(err)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		f = fault.TooLarge("The request body is larger than %d bytes. Send less.", tooLarge.Limit).Because(err)
	}
	if ended := r.Context().Err(); ended != nil && f.Kind == fault.KindInternal && errors.Is(err, ended) {
		f = fault.Unavailable("The request was ended before it was done. Try again.").Because(err)
	}
	if f.Kind == fault.KindInternal && a.Explain != nil {
		if known := a.Explain(err); known != nil {
			f = known
		}
	}
	if w != nil {
		w.err = f
		if w.status != 0 {
			return // the reply has begun: the log line carries the error
		}
	}
	a.Fault(rw, r, f)
}

func guard(h Handler, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler { //nolint:errorlint // the sentinel is compared as net/http does
				panic(p)
			}
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return h(w, r)
}

// noRoute turns the mux's own plain-text 404 and 405 into faults.
func noRoute(h http.Handler) Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		probe := &response{ResponseWriter: discard{http.Header{}}}
		h.ServeHTTP(probe, r)
		switch {
		case probe.status == http.StatusMethodNotAllowed:
			allow := probe.Header().Get("Allow")
			w.Header().Set("Allow", allow)
			return &fault.Error{Kind: fault.KindNotFound, Code: CodeMethod,
				Detail: fmt.Sprintf("%s is not possible here. Use %s.", r.Method, strings.ReplaceAll(allow, ",", " or"))}
		case probe.status >= 300 && probe.status < 400: // the mux cleans a path by redirect
			http.Redirect(w, r, probe.Header().Get("Location"), probe.status)
			return nil
		}
		return &fault.Error{Kind: fault.KindNotFound, Code: CodeRoute, Detail: "There is nothing at this address. Check the path."}
	}
}

// The codes of the two faults that are the router's own, so that a protocol can name them.
const (
	CodeRoute  = "no_route"
	CodeMethod = "method_not_allowed"
)

func (a *App) record(w *response, r *http.Request, took time.Duration) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	a.Metrics.observe(r, w.status, took)
	level := slog.LevelInfo
	path := r.URL.Path
	if strings.Contains(path, "@") {
		path = r.Pattern // an address is nobody's business here
	}
	attrs := []slog.Attr{
		slog.String("method", r.Method), slog.String("route", r.Pattern), slog.String("path", path), // never the query: codes travel there
		slog.Int("status", w.status), slog.Int64("bytes", w.bytes), slog.Duration("took", took),
		slog.String("request_id", RequestID(r.Context())), slog.String("from", a.Addr(r).String()),
	}
	if w.err != nil {
		attrs = append(attrs, slog.String("fault", w.err.Error()))
		if w.err.Kind == fault.KindInternal {
			level = slog.LevelError
		}
	}
	a.Log.LogAttrs(r.Context(), level, "request", attrs...)
}
