package uaa

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/proa-dev/proa/kit/fault"
)

// Conn talks to an authorization server.
type Conn struct {
	URL   string
	HTTP  *http.Client
	Token func(context.Context) (string, error) // the access token for the calls that need one
}

// Fetch asks the token endpoint. A client with an empty secret is public.
func (c *Conn) Fetch(ctx context.Context, clientID, secret string, form url.Values) (Token, error) {
	var t Token
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+"/oauth/token", strings.NewReader(form.Encode()))
	if err != nil {
		return t, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth(url.QueryEscape(clientID), url.QueryEscape(secret))
	err = c.do(req, &t)
	return t, err
}

// ClientCredentials is a Token for a client that acts for itself. It asks again shortly before a token expires.
func (c *Conn) ClientCredentials(clientID, secret string) func(context.Context) (string, error) {
	var mu sync.Mutex
	var held Token
	var until time.Time
	return func(ctx context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if time.Now().Before(until) {
			return held.Access, nil
		}
		t, err := c.Fetch(ctx, clientID, secret, url.Values{"grant_type": {"client_credentials"}})
		if err != nil {
			return "", err
		}
		held, until = t, time.Now().Add(time.Duration(t.ExpiresIn)*time.Second*9/10)
		return held.Access, nil
	}
}

// Static is a Token that is known already.
func Static(token string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return token, nil }
}

// Call sends a request with the token and reads the reply into out, unless out is nil. A refusal becomes a fault.
func (c *Conn) Call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.Token != nil {
		token, err := c.Token(ctx)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "bearer "+token)
	}
	return c.do(req, out)
}

const maxReply = 16 << 20

func (c *Conn) do(req *http.Request, out any) error {
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return fault.Unavailable("The authorization server at %s cannot be reached. Check its address and try again.", c.URL).Because(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return fmt.Errorf("read reply of %s: %w", req.URL.Path, err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return refusal(resp.StatusCode, body)
	}
	if out == nil || len(body) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("read reply of %s: %w", req.URL.Path, err)
	}
	return nil
}

func refusal(status int, body []byte) error {
	var e Error
	if err := json.Unmarshal(body, &e); err != nil || e.Code == "" {
		e = Error{Code: "unexpected", Description: fmt.Sprintf("The authorization server answered with status %d and no reason.", status)}
	}
	return &fault.Error{Kind: fault.OfStatus(status), Code: e.Code, Detail: e.Description}
}

// Users walks through every person that a filter matches ("" for all), page by page, in the order of their ids. A walk holds one
// page in memory, and the last page costs what the first did. Attributes name what is needed of each person; with none, all is sent.
func (c *Conn) Users(ctx context.Context, filter string, perPage int, attributes ...string) iter.Seq2[User, error] {
	return func(yield func(User, error) bool) {
		after := ""
		for {
			condition := `id gt "` + after + `"`
			if filter != "" {
				condition = "(" + filter + ") and " + condition
			}
			query := url.Values{"filter": {condition}, "sortBy": {"id"}, "count": {strconv.Itoa(perPage)}}
			if len(attributes) > 0 {
				query.Set("attributes", strings.Join(attributes, ","))
			}
			var page Page[User]
			if err := c.Call(ctx, http.MethodGet, "/Users?"+query.Encode(), nil, &page); err != nil {
				yield(User{}, err)
				return
			}
			for _, u := range page.Resources {
				if !yield(u, nil) {
					return
				}
				after = u.ID
			}
			if page.TotalResults <= len(page.Resources) || len(page.Resources) == 0 {
				return
			}
		}
	}
}
