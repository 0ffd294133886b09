package v1_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/proa-dev/proa/kit/fault"
	v1 "github.com/proa-dev/proa/notify/v1"
)

// serve answers each request with the next of the replies, and the last one for ever.
func serve(t *testing.T, replies ...http.HandlerFunc) (*v1.Client, *[]string) {
	var heard []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		heard = append(heard, r.Method+" "+r.URL.EscapedPath()+" "+r.Header.Get("Authorization")+" "+r.Header.Get("Idempotency-Key")+" "+string(body))
		replies[min(len(heard), len(replies))-1](w, r)
	}))
	t.Cleanup(server.Close)
	return &v1.Client{URL: server.URL, HTTP: server.Client(), Pause: time.Millisecond, Token: func(context.Context) (string, error) { return "t", nil }}, &heard
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

const taken = `[{"status":"queued","recipient":"everyone","notification_id":"m","vcap_request_id":"v"}]`

// What does no harm twice is tried again while the service cannot take it: a send only under a key.
func TestAgain(t *testing.T) {
	busy := says(http.StatusServiceUnavailable, `{"errors":["Not now."]}`)
	c, heard := serve(t, busy, says(http.StatusTooManyRequests, `{"errors":["Slowly."]}`), says(http.StatusOK, taken))
	got, err := c.Send(t.Context(), v1.ToSpace("a/b"), v1.Message{KindID: "k", Text: "x"}, "once")
	if err != nil || got.ID != "m" || len(*heard) != 3 {
		t.Fatalf("%+v, %v after %q", got, err, *heard)
	}
	for _, line := range *heard {
		if want := `POST /spaces/a%2Fb bearer t once {"kind_id":"k","text":"x"}`; line != want {
			t.Errorf("heard %s, want %s", line, want)
		}
	}
	c, heard = serve(t, busy)
	if _, err := c.Send(t.Context(), v1.ToEveryone, v1.Message{}, ""); !fault.Is(err, fault.KindUnavailable) || len(*heard) != 1 {
		t.Errorf("without a key: %v after %d tries", err, len(*heard))
	}
	c, heard = serve(t, busy)
	if err := c.Call(t.Context(), http.MethodGet, v1.Kinds, nil, nil); !fault.Is(err, fault.KindUnavailable) || len(*heard) != 4 {
		t.Errorf("a service that stays away: %v after %d tries", err, len(*heard))
	}
	c, _ = serve(t, busy)
	c.Pause = time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.Call(ctx, http.MethodGet, v1.Kinds, nil, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("who is told to stop: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		reply http.HandlerFunc
		kind  fault.Kind
		says  string
	}{
		{says(422, `{"errors":["One.","Two."]}`), fault.KindUnprocessable, "One.\nTwo."},
		{says(403, `{"errors":["Needs a scope."]}`), fault.KindForbidden, "Needs a scope."},
		{says(404, `not found`), fault.KindNotFound, "status 404 and no reason"},
		{says(200, `<html>`), fault.KindInvalid, "is not a notification service"},
		{says(200, `[]`), fault.KindInvalid, "is not a notification service"},
		{says(304, ``), fault.KindInvalid, "is not a notification service"},
		{func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Request-Id", "r-1")
			says(500, `{"errors":["Broken."]}`)(w, nil)
		}, fault.KindInternal, "Broken. (request id r-1)"},
	} {
		client, heard := serve(t, c.reply)
		_, err := client.Send(t.Context(), v1.ToEveryone, v1.Message{}, "key")
		if f := fault.From(err); f.Kind != c.kind || !strings.Contains(f.Detail, c.says) || len(*heard) != 1 {
			t.Errorf("got %v after %d tries, want %q", err, len(*heard), c.says)
		}
	}
	client, heard := serve(t, says(200, taken))
	client.Token = func(context.Context) (string, error) { return "", errors.New("no token") }
	if _, err := client.Send(t.Context(), v1.ToEveryone, v1.Message{}, "key"); err == nil || len(*heard) != 0 {
		t.Errorf("without a token: %v, heard %q", err, *heard)
	}
	client = &v1.Client{URL: "http://127.0.0.1:1", HTTP: http.DefaultClient, Pause: time.Millisecond, Token: func(context.Context) (string, error) { return "t", nil }}
	if err := client.Call(t.Context(), http.MethodGet, v1.Kinds, nil, nil); !fault.Is(err, fault.KindUnavailable) {
		t.Errorf("nobody there: %v", err)
	}
}
