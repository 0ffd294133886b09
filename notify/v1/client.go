package v1

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/proa-dev/proa/kit/fault"
)

// Client talks to a notification service.
type Client struct {
	URL   string // without a slash at its end
	HTTP  *http.Client
	Token func(context.Context) (string, error)
	Agent string
	Pause time.Duration // before a request is repeated for the first time; half a second if it is zero
}

const (
	maxReply = 16 << 20
	attempts = 4
	longest  = 30 * time.Second // that a server is obeyed which says when to come again
)

// Call sends a request and reads the reply into out, unless out is nil. A refusal is a fault in the service's own words.
func (c *Client) Call(ctx context.Context, method, path string, in, out any) error {
	return c.call(ctx, request{method: method, path: path, in: in}, out)
}

// Send gives a message to the service. The same key within 24 hours sends it once, however often it is tried; without a key it is
// tried once.
func (c *Client) Send(ctx context.Context, to Audience, m Message, key string) (Accepted, error) {
	var reply []Accepted
	err := c.call(ctx, request{method: http.MethodPost, path: string(to), key: key, in: m}, &reply)
	switch {
	case err != nil:
		return Accepted{}, err
	case len(reply) != 1:
		return Accepted{}, c.strange(fmt.Errorf("%d messages were accepted", len(reply)))
	}
	return reply[0], nil
}

type request struct {
	method, path, key string
	in                any
}

// again tells whether a request does no harm when it arrives twice.
func (r request) again() bool { return r.method != http.MethodPost || r.key != "" }

func (c *Client) call(ctx context.Context, r request, out any) error {
	var body []byte
	if r.in != nil {
		var err error
		if body, err = json.Marshal(r.in); err != nil {
			return err
		}
	}
	pause := c.Pause
	if pause == 0 {
		pause = time.Second / 2
	}
	for n := 1; ; n++ {
		after, err := c.exchange(ctx, r, body, out)
		passing := fault.Is(err, fault.KindUnavailable) || fault.Is(err, fault.KindTooMany)
		if err == nil || !passing || !r.again() || n == attempts {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(max(pause, after)):
		}
		pause *= 2
	}
}

// exchange is one request and its reply; after is how long the service wants to be left alone.
func (c *Client) exchange(ctx context.Context, r request, body []byte, out any) (after time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, r.method, c.URL+r.path, bytes.NewReader(body))
	if err != nil {
		return 0, fault.Invalid("%q is not a path of the notification service.", r.path).Because(err)
	}
	if err := c.dress(req, r.key); err != nil {
		return 0, err
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return 0, fault.Unavailable("The notification service at %s cannot be reached. Check its address and try again.", c.URL).Because(err)
	}
	defer func() { _ = resp.Body.Close() }()
	reply, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	switch {
	case err != nil:
		return 0, fault.Unavailable("The notification service at %s broke off its reply. Try again.", c.URL).Because(err)
	case resp.StatusCode >= http.StatusBadRequest:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return min(time.Duration(seconds)*time.Second, longest), refusal(resp, reply)
	case resp.StatusCode >= http.StatusMultipleChoices:
		return 0, c.strange(fmt.Errorf("status %d", resp.StatusCode))
	case out == nil || resp.StatusCode == http.StatusNoContent:
		return 0, nil
	}
	if err := json.Unmarshal(reply, out); err != nil {
		return 0, c.strange(err)
	}
	return 0, nil
}

func (c *Client) dress(req *http.Request, key string) error {
	token, err := c.Token(req.Context())
	if err != nil {
		return err
	}
	for name, value := range map[string]string{"Authorization": "bearer " + token, "Accept": "application/json", "Content-Type": "application/json",
		"X-NOTIFICATIONS-VERSION": "1", "User-Agent": c.Agent, "Idempotency-Key": key} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	return nil
}

// strange is a reply that no notification service would give. It is no passing trouble.
func (c *Client) strange(cause error) error {
	return fault.Invalid("What answers at %s is not a notification service. Check the address.", c.URL).Because(cause)
}

func refusal(resp *http.Response, body []byte) error {
	f := &fault.Error{Kind: fault.OfStatus(resp.StatusCode)}
	var e Errors
	if err := json.Unmarshal(body, &e); err != nil || len(e.Errors) == 0 {
		f.Detail = fmt.Sprintf("The notification service answered with status %d and no reason.", resp.StatusCode)
	} else {
		f.Detail = strings.Join(e.Errors, "\n")
	}
	if len(e.Errors) > 1 {
		f.Details = e.Errors
	}
	if id := resp.Header.Get("X-Request-Id"); id != "" && resp.StatusCode >= http.StatusInternalServerError {
		f.Detail += " (request id " + id + ")"
	}
	return f
}
