package cli

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/proa-dev/proa/kit/fault"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// logs reads the stream of an app.
type logs struct {
	client *v3.Client
	app    string
	only   logsOnly
}

// logsOnly narrows what is read. An API that does not know how to answers with more, so what it does not fit is passed over here too.
type logsOnly struct{ process, instance, sidecar, source string }

func (o logsOnly) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"process": o.process, "instance": o.instance, "sidecar": o.sidecar, "source_type": o.source} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q
}

func (o logsOnly) fits(e v3.LogEnvelope) bool {
	source := e.Tags["source_type"]
	if o.source != "" && o.source != source {
		return false
	}
	if o.process == "" && o.instance == "" && o.sidecar == "" {
		return true
	}
	if text := string(e.Log.Payload); source == "API" && strings.HasPrefix(text, "App instance exited") { // which belongs to what the instance wrote
		of := `"exitdescription":"APP/PROC/` + strings.ToUpper(o.process)
		return (o.instance == "" || o.instance == e.InstanceID) && (o.process == "" || strings.Contains(text, of+":") || strings.Contains(text, of+"/"))
	}
	path, inApp := strings.CutPrefix(source, "APP/PROC/")
	process, sidecar, _ := strings.Cut(path, "/SIDECAR/")
	said := source == "API" && e.InstanceID == "" // about the lines that follow
	return said || inApp && (o.process == "" || strings.EqualFold(o.process, process)) && (o.sidecar == "" || strings.EqualFold(o.sidecar, sidecar)) &&
		(o.instance == "" || o.instance == e.InstanceID)
}

// fitting leaves only what is asked for.
func (o logsOnly) fitting(batch []v3.LogEnvelope) []v3.LogEnvelope {
	return slices.DeleteFunc(batch, func(e v3.LogEnvelope) bool { return !o.fits(e) })
}

const (
	logPage = 1000
	// overlap is how far back a follower looks again: lines of several instances arrive out of order. It depends on no clock of ours.
	overlap = int64(2 * time.Second)
)

func (s *session) logsOf(app string) (*logs, error) {
	u, err := url.Parse(s.cfg.LogCache)
	if err != nil || u.Host == "" {
		return nil, failed("", "This API does not say where logs are read.")
	}
	c := *s.api
	c.URL = u.Scheme + "://" + u.Host
	return &logs{client: &c, app: app}, nil
}

func (l *logs) read(ctx context.Context, query url.Values) ([]v3.LogEnvelope, error) {
	var reply v3.LogCacheRead
	maps.Copy(query, l.only.query())
	err := l.client.Call(ctx, http.MethodGet, "/api/v1/read/"+url.PathEscape(l.app)+"?"+query.Encode(), nil, &reply)
	return reply.Envelopes.Batch, err
}

// recent is the newest lines, oldest first.
func (l *logs) recent(ctx context.Context, limit int) ([]v3.LogEnvelope, error) {
	for {
		batch, err := l.read(ctx, url.Values{"start_time": {minTime}, "envelope_types": {"LOG"}, "limit": {strconv.Itoa(limit)}, "descending": {"true"}})
		if fault.Is(err, fault.KindTooMany) && limit > 1 {
			limit /= 2
			continue
		}
		slices.Reverse(batch)
		return l.only.fitting(batch), err
	}
}

const longAgo = int64(math.MinInt64 / 2)

var minTime = strconv.FormatInt(longAgo, 10)

// now is the time just after the newest line there is, by the clock that wrote it.
func (l *logs) now(ctx context.Context) (int64, error) {
	batch, err := l.read(ctx, url.Values{"start_time": {minTime}, "limit": {"1"}, "descending": {"true"}})
	if err != nil || len(batch) == 0 {
		return longAgo, err
	}
	return batch[0].Timestamp + 1, nil
}

const maxLogErrors = 5

// follow shows lines from a time on, until the context ends, or done is closed and everything was read. Every line is shown once.
func (l *logs) follow(ctx context.Context, from int64, every time.Duration, done <-chan struct{}, show func(v3.LogEnvelope)) error {
	f := follower{floor: from, start: from, seen: map[string]int64{}}
	failures, last := 0, false
	for {
		batch, err := l.read(ctx, url.Values{"start_time": {strconv.FormatInt(f.start, 10)}, "envelope_types": {"LOG"}, "limit": {strconv.Itoa(logPage)}})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			if failures++; failures == maxLogErrors || fault.Is(err, fault.KindUnauthorized) || fault.Is(err, fault.KindNotFound) {
				return err
			}
		default:
			failures = 0
			f.take(batch, func(e v3.LogEnvelope) {
				if l.only.fits(e) {
					show(e)
				}
			})
		}
		if len(batch) >= logPage {
			continue
		}
		if last {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-done:
			last = true
		case <-time.After(every):
		}
	}
}

// follower remembers which lines of the overlap were shown.
type follower struct {
	floor, start int64
	seen         map[string]int64
}

func (f *follower) take(batch []v3.LogEnvelope, show func(v3.LogEnvelope)) {
	for _, e := range batch {
		if e.Timestamp < f.start { // a server that does not heed the start of what was asked for
			continue
		}
		key := fmt.Sprint(e.Timestamp, e.InstanceID, e.Tags["source_type"], string(e.Log.Payload))
		if _, shown := f.seen[key]; !shown {
			f.seen[key] = e.Timestamp
			show(e)
		}
	}
	if len(batch) == 0 {
		return
	}
	newest := batch[len(batch)-1].Timestamp
	f.start = max(f.floor, newest-overlap)
	if len(batch) >= logPage { // what is left is newer than all of this
		f.start = newest
	}
	for key, at := range f.seen {
		if at < f.start {
			delete(f.seen, key)
		}
	}
}
