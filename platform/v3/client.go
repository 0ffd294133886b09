package v3

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/proa-dev/proa/kit/fault"
)

// Client talks to the API. Its token goes nowhere but to the scheme and host of URL, wherever a link in a reply may lead.
type Client struct {
	URL   string // without a slash at its end
	HTTP  *http.Client
	Token func(context.Context) (string, error) // the access token; nil before anybody has logged in
	Agent string
	Warn  func(string)  // hears what the API warns of; may be nil
	Poll  time.Duration // between two looks at a job; a second if it is zero
}

// Raw is a body that is sent as it is.
type Raw struct {
	Type string
	Data []byte
}

const (
	maxReply = 64 << 20
	attempts = 3 // at a server that is not to be reached
	patience = 8 // with one that says it cannot take a request just now: together with the pauses, a restart of its database
)

// Call sends a request and reads the reply into out, unless out is nil. In is nil, Raw, or what becomes JSON.
func (c *Client) Call(ctx context.Context, method, path string, in, out any) error {
	_, err := c.call(ctx, method, path, in, out)
	return err
}

// Begin sends a request that may go on as a job, and tells where it is followed: empty when all is done already.
func (c *Client) Begin(ctx context.Context, method, path string, in any) (job string, err error) {
	header, err := c.call(ctx, method, path, in, nil)
	if err != nil {
		return "", err
	}
	return header.Get("Location"), nil
}

func (c *Client) call(ctx context.Context, method, path string, in, out any) (http.Header, error) {
	body, err := encode(in)
	if err != nil {
		return nil, err
	}
	var data io.Reader
	if in != nil {
		data = bytes.NewReader(body.Data)
	}
	req, err := c.Request(ctx, method, path, data)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", body.Type)
	return c.exchange(req, out)
}

func encode(in any) (Raw, error) {
	if raw, ok := in.(Raw); ok {
		return raw, nil
	}
	data, err := json.Marshal(in)
	return Raw{"application/json", data}, err
}

// Upload sends size bytes of a body once and reads the reply into out.
func (c *Client) Upload(ctx context.Context, path, contentType string, body io.Reader, size int64, out any) error {
	req, err := c.Request(ctx, http.MethodPost, path, body)
	if err != nil {
		return err
	}
	req.ContentLength = size
	req.Header.Set("Content-Type", contentType)
	_, err = c.exchange(req, out)
	return err
}

// Request prepares a request for Do. The path may be an absolute URL, such as a link of a reply, as long as it leads to this API.
func (c *Client) Request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	place := path
	if !strings.HasPrefix(place, "http://") && !strings.HasPrefix(place, "https://") {
		place = c.URL + "/" + strings.TrimLeft(path, "/")
	}
	req, err := http.NewRequestWithContext(ctx, method, place, body)
	if err != nil {
		return nil, fault.Invalid("%q is not a path of the API. Write it as /v3/apps.", path).Because(err)
	}
	home, err := url.Parse(c.URL)
	if err != nil || home.Scheme != req.URL.Scheme || home.Host != req.URL.Host {
		return nil, fault.Invalid("A link leads away from the API at %s to %s. Your token was not sent there; tell the operator of the API.", c.URL, req.URL.Host)
	}
	req.Header.Set("Accept", "application/json")
	if c.Agent != "" {
		req.Header.Set("User-Agent", c.Agent)
	}
	if c.Token != nil {
		token, err := c.Token(ctx)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "bearer "+token)
	}
	return req, nil
}

// Do sends a prepared request, again if it can be and the API could not take it, and hands its warnings on.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	once := req.Method == http.MethodPost || req.Body != nil && req.GetBody == nil
	for n := 1; ; n++ {
		resp, err := c.HTTP.Do(req)
		if once || err != nil && n >= attempts || n >= patience || req.Context().Err() != nil || err == nil && !passing(resp.StatusCode) {
			if err != nil {
				return nil, fault.Unavailable("The API at %s cannot be reached. Check the address and your network, then try again.", c.URL).Because(err)
			}
			c.warn(resp.Header)
			return resp, nil
		}
		if err == nil {
			_ = resp.Body.Close()
		}
		if err := pause(req.Context(), c.every()*time.Duration(n)/2); err != nil {
			return nil, err
		}
		if req.GetBody != nil {
			if req.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// passing tells whether a refusal may be gone in a moment.
func passing(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
}

func (c *Client) exchange(req *http.Request, out any) (http.Header, error) {
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return nil, fault.Unavailable("The API at %s broke off its reply. Try again.", c.URL).Because(err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return nil, Refusal(resp, body)
	}
	if out == nil || resp.StatusCode == http.StatusNoContent {
		return resp.Header, nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return nil, fault.Unavailable("The reply to %s %s is not what the API should send. Check that %s is a platform API.", req.Method, req.URL.Path, c.URL).Because(err)
	}
	return resp.Header, nil
}

// Refusal is the fault that a reply tells of, in the API's own words.
func Refusal(resp *http.Response, body []byte) error {
	f := &fault.Error{Kind: fault.OfStatus(resp.StatusCode)}
	var e Errors
	if err := json.Unmarshal(body, &e); err != nil || len(e.Errors) == 0 {
		f.Detail = fmt.Sprintf("The API answered with status %d and no reason.", resp.StatusCode)
	} else {
		f.Code, f.Detail = e.Errors[0].Title, e.Errors[0].Detail
	}
	if len(e.Errors) > 1 {
		for _, one := range e.Errors {
			f.Details = append(f.Details, one.Detail)
		}
		f.Detail = strings.Join(f.Details, "\n")
	}
	if id := resp.Header.Get("X-Vcap-Request-Id"); id != "" && resp.StatusCode >= http.StatusInternalServerError {
		f.Detail += " (request id " + id + ")"
	}
	return f
}

func (c *Client) warn(h http.Header) {
	for _, line := range h.Values("X-Cf-Warnings") {
		for part := range strings.SplitSeq(line, ",") {
			if text, err := url.QueryUnescape(strings.TrimSpace(part)); err == nil && text != "" && c.Warn != nil {
				c.Warn(text)
			}
		}
	}
}

// Each walks through a list, page by page.
func Each[T any](ctx context.Context, c *Client, path string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for path != "" {
			var page List[T]
			if err := c.Call(ctx, http.MethodGet, path, nil, &page); err != nil {
				yield(*new(T), err)
				return
			}
			for _, one := range page.Resources {
				if !yield(one, nil) {
					return
				}
			}
			path = ""
			if page.Pagination.Next != nil {
				path = page.Pagination.Next.Href
			}
		}
	}
}

// All is the whole of a list.
func All[T any](ctx context.Context, c *Client, path string) ([]T, error) {
	all := []T{}
	for one, err := range Each[T](ctx, c, path) {
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// First is the first of a list, or nil when there is none.
func First[T any](ctx context.Context, c *Client, path string) (*T, error) {
	for one, err := range Each[T](ctx, c, path) {
		return &one, err
	}
	return nil, nil
}

// Finish follows a job to its end. A job that failed is a fault in the job's own words.
func (c *Client) Finish(ctx context.Context, job string) error {
	return c.Follow(ctx, job, func(Job) bool { return false })
}

// Follow is Finish for who may leave before the end: when a job that has not ended is enough for them.
func (c *Client) Follow(ctx context.Context, job string, enough func(Job) bool) error {
	for job != "" {
		var j Job
		if err := c.Call(ctx, http.MethodGet, job, nil, &j); err != nil {
			return err
		}
		switch {
		case j.State == "COMPLETE" || j.State == "FAILED":
			return c.ended(j)
		case enough(j):
			return nil
		}
		if err := pause(ctx, c.every()); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) ended(j Job) error {
	for _, w := range j.Warnings {
		if c.Warn != nil {
			c.Warn(w.Detail)
		}
	}
	if j.State != "FAILED" {
		return nil
	}
	f := fault.Unprocessable("The job %s failed and gave no reason. Ask the operator of the API.", j.GUID)
	if len(j.Errors) > 0 {
		f.Code, f.Detail = j.Errors[0].Title, j.Errors[0].Detail
	}
	return f
}

func (c *Client) every() time.Duration {
	if c.Poll > 0 {
		return c.Poll
	}
	return time.Second
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
