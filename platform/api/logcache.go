package api

import (
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/store"
	v3 "github.com/proa-dev/proa/platform/v3"
)

func (s *Server) getLogCache(w http.ResponseWriter, _ *http.Request, _ platform.Who) error {
	return web.JSON(w, http.StatusOK, v3.LogCacheInfo{Version: "2.11.4"})
}

const (
	defaultLines = 100
	maxLines     = 1000
)

// readLog reads a part of an app's stream. There is only log in it: whoever asks for something else gets nothing.
func (s *Server) readLog(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	q := r.URL.Query()
	from, err := nanoseconds(q, "start_time", math.MinInt64)
	if err != nil {
		return err
	}
	to, err := nanoseconds(q, "end_time", math.MaxInt64)
	if err != nil {
		return err
	}
	limit := defaultLines
	if q.Has("limit") {
		if limit, err = number("limit", q.Get("limit"), 1, maxLines); err != nil {
			return err
		}
	}
	if types := q["envelope_types"]; len(types) > 0 && !slices.ContainsFunc(types, isLog) {
		to = from // nothing is in between, and the app must be there all the same
	}
	filter, err := logFilter(q)
	if err != nil {
		return err
	}
	place, err := s.Store.LogPlace(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	if err := s.streams.openWindow(who.GUID); err != nil {
		return err
	}
	defer s.streams.closeWindow(who.GUID)
	window := store.LogWindow{From: from, To: to, Limit: limit, Descending: q.Get("descending") == "true", Filter: filter}
	read, err := s.readWindow(r.Context(), who, place, window)
	if err != nil {
		return err
	}
	lines := read.lines
	batch := v3.LogBatch{Batch: make([]v3.LogEnvelope, len(lines))}
	for i, l := range lines {
		batch.Batch[i] = envelope(l)
	}
	return web.JSON(w, http.StatusOK, v3.LogCacheRead{Envelopes: batch})
}

func isLog(types string) bool {
	return slices.ContainsFunc(strings.Split(types, ","), func(t string) bool { return t == "LOG" || t == "ANY" })
}

// nanoseconds may be far below zero: clients send the time zero of their language.
func nanoseconds(q url.Values, name string, otherwise int64) (int64, error) {
	if !q.Has(name) {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(q.Get(name), 10, 64)
	if err != nil {
		return 0, badQuery("%s must be nanoseconds since 1970", name)
	}
	return n, nil
}

func envelope(l platform.LogLine) v3.LogEnvelope {
	e := v3.LogEnvelope{Timestamp: l.At.UnixNano(), SourceID: l.App, InstanceID: l.Instance, Tags: map[string]string{"source_type": l.Source}, Log: v3.Log{Payload: []byte(l.Text), Type: "OUT"}}
	if l.Stderr {
		e.Log.Type = "ERR"
	}
	return e
}
