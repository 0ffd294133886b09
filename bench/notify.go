package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/notify/deliver/smtptest"
)

// notifyServer is a notification service on a database of its own.
type notifyServer struct {
	pid      int
	database string
	client   *uaa.Conn // a client that may send
}

// What the service has for one lane when operators say nothing: the bare client gets as many.
const smtpConns = 8

// withNotify builds and starts it, with an empty database.
func (b *bench) withNotify(ctx context.Context, s *authServer, to *sink, use func(context.Context, *notifyServer) error) error {
	path, err := b.build(ctx, "cmd/notify")
	if err != nil {
		return err
	}
	keyset, err := newKeyset(ctx, s.path)
	if err != nil {
		return err
	}
	addr, err := freeAddr(ctx)
	if err != nil {
		return err
	}
	url := "http://" + addr
	return b.withDatabase(ctx, func(database string) error {
		p := program{path: path, ready: url + "/readyz", env: []string{
			"PATH=" + os.Getenv("PATH"),
			"PROA_NOTIFY_DATABASE_URL=" + database,
			"PROA_NOTIFY_KEYSET=" + keyset,
			"PROA_NOTIFY_URL=" + url,
			"PROA_NOTIFY_LISTEN=" + addr,
			"PROA_NOTIFY_METRICS_LISTEN=127.0.0.1:0",
			"PROA_AUTH_URL=" + s.url,
			"PROA_NOTIFY_CLIENT_SECRET=" + s.notifySecret, "PROA_API_CLIENT_SECRET=" + s.notifySecret,
			"PROA_NOTIFY_RELAYS=smtp://" + to.addr + "?tls=none",
			fmt.Sprintf("PROA_NOTIFY_CONNECTIONS=%d", smtpConns),
			"PROA_NOTIFY_FROM=Proa <notifications@example.org>",
			"PROA_NOTIFY_DOMAIN=example.org",
		}}
		return b.withProcess(ctx, p, func(ctx context.Context, pid int) error {
			return use(ctx, &notifyServer{pid: pid, database: database, client: &uaa.Conn{URL: url, HTTP: http.DefaultClient}})
		})
	})
}

// sink is the mail server that mails go to, a process of its own.
type sink struct {
	pid  int
	addr string
	url  string
}

// came is what the sink says of the mails since it was last emptied.
type came struct {
	Mails, People int64
	Last          time.Time
	First         *smtptest.Mail
}

func (b *bench) withSink(ctx context.Context, use func(context.Context, *sink) error) error {
	path, err := b.build(ctx, "bench/sink")
	if err != nil {
		return err
	}
	addr, err := freeAddr(ctx)
	if err != nil {
		return err
	}
	control, err := freeAddr(ctx)
	if err != nil {
		return err
	}
	s := &sink{addr: addr, url: "http://" + control}
	p := program{path: path, ready: s.url, env: []string{"SINK_SMTP=" + addr, "SINK_HTTP=" + control}}
	return b.withProcess(ctx, p, func(ctx context.Context, pid int) error {
		s.pid = pid
		return use(ctx, s)
	})
}

func (s *sink) ask(ctx context.Context, method, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		err = fmt.Errorf("the sink answered %s", resp.Status)
	}
	return resp, err
}

func (s *sink) came(ctx context.Context) (c came, err error) {
	resp, err := s.ask(ctx, http.MethodGet, "/")
	if err != nil {
		return c, err
	}
	defer func() { _ = resp.Body.Close() }()
	err = json.NewDecoder(resp.Body).Decode(&c)
	return c, err
}

// empty forgets what came. From then on each mail is accepted after the wait.
func (s *sink) empty(ctx context.Context, wait time.Duration) error {
	path := "/"
	if wait > 0 {
		path += "?wait=" + wait.String()
	}
	resp, err := s.ask(ctx, http.MethodDelete, path)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// A send of which nothing arrives for so long has come to a stop.
const stopped = time.Minute

// await returns when so many mails have come.
func (s *sink) await(ctx context.Context, mails int64) (came, error) {
	last, since := int64(0), time.Now()
	for begin := time.Now(); ; {
		c, err := s.came(ctx)
		if err != nil || c.Mails >= mails {
			return c, err
		}
		if c.Mails > last {
			if last/100_000 != c.Mails/100_000 {
				say("%s mails after %.0f s", number(float64(c.Mails)), time.Since(begin).Seconds())
			}
			last, since = c.Mails, time.Now()
		}
		if time.Since(since) > stopped {
			return c, fmt.Errorf("nothing came for %s after %d of %d mails", stopped, c.Mails, mails)
		}
		select {
		case <-ctx.Done():
			return c, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}
