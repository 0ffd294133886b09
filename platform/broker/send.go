package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/proa-dev/proa/platform"
)

const (
	apiVersion = "2.17"
	maxBody    = 2 << 20
	maxRetry   = time.Hour // what we wait at most because a broker says so
)

// exchange is a request and how to read what is answered when all is well.
type exchange struct {
	method string
	path   []string // after /v2
	query  url.Values
	body   any // nil: none
	read   func(*platform.Answer, []byte) error
}

// ask makes an exchange. Whatever goes wrong is in the answer.
func (b *Broker) ask(ctx context.Context, c Call, x exchange) platform.Answer {
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	req, err := b.request(ctx, c, x)
	if err != nil {
		return platform.Answer{Unsent: true, Cause: err.Error()}
	}
	client := *b.HTTP
	client.Jar = nil
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the account is for the broker alone
	resp, err := client.Do(req)
	if err != nil {
		// Without a connection not a byte can have left. With one we do not know.
		return platform.Answer{Unsent: !connected.Load(), Cause: cause(err)}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		// Half an answer is none: even a status may not be what the broker wanted to say.
		return platform.Answer{Cause: fmt.Sprintf("the answer with status %d broke off: %s", resp.StatusCode, cause(err))}
	}
	return understand(resp, body, x.read)
}

func (b *Broker) request(ctx context.Context, c Call, x exchange) (*http.Request, error) {
	place := strings.TrimSuffix(b.URL, "/") + "/v2"
	for _, step := range x.path {
		if step == "" || step == "." || step == ".." {
			return nil, fmt.Errorf("%q cannot be the id of an instance or a binding", step)
		}
		place += "/" + url.PathEscape(step)
	}
	var body io.Reader
	if x.body != nil {
		data, err := json.Marshal(x.body)
		if err != nil {
			return nil, errors.New("what is to be sent is not JSON") // the error may quote a parameter
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, x.method, place, body)
	if err != nil {
		return nil, errors.New(cause(err))
	}
	req.URL.RawQuery = x.query.Encode()
	// Of a kept connection that the broker has closed meanwhile we could not tell whether it took the request.
	req.Close = true
	req.SetBasicAuth(b.Account.Username, b.Account.Password)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "proa")
	req.Header.Set("X-Broker-API-Version", apiVersion)
	req.Header.Set("X-Broker-API-Request-Identity", platform.NewGUID())
	if req.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.Who.GUID != "" {
		req.Header.Set("X-Broker-API-Originating-Identity", identity(c.Who))
	}
	return req, nil
}

// cause is what went wrong without the URL, whose query may be long.
func cause(err error) string {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err.Error()
	}
	return err.Error()
}

// retryAfter reads seconds or a date. What makes no sense was not said.
func retryAfter(value string, now time.Time) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil {
		wait = time.Duration(min(seconds, uint64(maxRetry/time.Second))) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), maxRetry)
}
