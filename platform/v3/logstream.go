package v3

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/proa-dev/proa/kit/fault"
)

const (
	streamSilence = 45 * time.Second // three heartbeats
	maxEvent      = 16 << 20
)

// FollowLog reads a stream of envelopes until it ends, and hands on each batch, and nothing at each heartbeat, the first of which says that
// the stream is there. It tells why the API ended it, if that said so; then it is
// good to ask again. Nothing, not even a heartbeat, for a while is an end too.
func (c *Client) FollowLog(ctx context.Context, query url.Values, batch func([]LogEnvelope)) (closing string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := c.Request(ctx, http.MethodGet, "/v2/read?log&"+query.Encode(), nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxReply)) // a refusal without words is one too
		return "", Refusal(resp, body)
	}
	silence := time.AfterFunc(streamSilence, cancel)
	defer silence.Stop()
	var decoder batchDecoder
	events := &events{from: bufio.NewReaderSize(resp.Body, 64<<10)}
	for {
		name, data, err := events.next()
		if err != nil {
			return "", fault.Unavailable("The API at %s broke off the log. Try again.", c.URL).Because(err)
		}
		silence.Reset(streamSilence)
		switch name {
		case "closing":
			return string(data), nil
		case "heartbeat":
			batch(nil)
		case "":
			lines, err := decoder.decode(data)
			if err != nil {
				return "", fault.Unavailable("The log is not what the API should send. Check that %s is a platform API.", c.URL).Because(err)
			}
			batch(lines)
		}
	}
}

// events are those that a server sends (text/event-stream).
type events struct {
	from *bufio.Reader
	line []byte
	data []byte
}

// next reads an event. The data is good until the one after it.
func (e *events) next() (name string, data []byte, err error) {
	e.data = e.data[:0]
	for seen := false; ; {
		line, err := e.read()
		if err != nil {
			return "", nil, err
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(line) == 0 && seen:
			return name, e.data, nil
		case string(field) == "event":
			name, seen = string(value), true
		case string(field) == "data":
			if seen = true; len(e.data) > 0 {
				e.data = append(e.data, '\n')
			}
			e.data = append(e.data, value...)
		}
	}
}

func (e *events) read() ([]byte, error) {
	e.line = e.line[:0]
	for {
		part, err := e.from.ReadSlice('\n')
		e.line = append(e.line, part...)
		switch {
		case err == nil:
			return bytes.TrimRight(e.line, "\r\n"), nil
		case err != bufio.ErrBufferFull: //nolint:errorlint // the reader's own, and never wrapped
			return nil, err
		case len(e.line) > maxEvent:
			return nil, io.ErrShortBuffer
		}
	}
}
