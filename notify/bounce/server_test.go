package bounce_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proa-dev/proa/notify/bounce"
)

const otherID = "ffffffffffffffffffffffffffffffff"

// post is a server on loopback, with what it took and what it logged.
type post struct {
	address string
	stop    func() // waits until the part has returned
	mu      sync.Mutex
	taken   []bounce.Report
	log     bytes.Buffer
	refuse  func(bounce.Report) error
}

func (p *post) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *post) logged() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func (p *post) reports() []bounce.Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]bounce.Report(nil), p.taken...)
}

func (p *post) take(_ context.Context, r bounce.Report) error {
	if p.refuse != nil {
		if err := p.refuse(r); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken = append(p.taken, r)
	return nil
}

func serve(t *testing.T, p *post, maxBytes int64) *post {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &bounce.Server{
		Domain: path.Domain, Open: path.Open, Take: p.take, MaxBytes: maxBytes,
		Log: slog.New(slog.NewTextHandler(p, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Part(l).Run(ctx) }()
	p.address = l.Addr().String()
	p.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the part ended with %v", err)
			}
		case <-time.After(20 * time.Second):
			t.Error("the part does not stop")
		}
	})
	t.Cleanup(p.stop)
	return p
}

// line is one connection of a mail server.
type line struct {
	*textproto.Conn
	t *testing.T
}

func (p *post) dial(t *testing.T) line {
	t.Helper()
	c, err := net.Dial("tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	l := line{textproto.NewConn(c), t}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// greeted is a connection that has said LHLO.
func (p *post) greeted(t *testing.T) line {
	t.Helper()
	l := p.dial(t)
	l.expect(220)
	l.say(250, "LHLO mail.example.org")
	return l
}

func (l line) expect(code int) string {
	l.t.Helper()
	got, text, err := l.ReadResponse(0)
	if err != nil || got != code {
		l.t.Fatalf("got %d %q, %v, want %d", got, text, err, code)
	}
	return text
}

func (l line) say(code int, format string, args ...any) string {
	l.t.Helper()
	if err := l.PrintfLine(format, args...); err != nil {
		l.t.Fatal(err)
	}
	return l.expect(code)
}

// send starts a mail to the deliveries and writes all of it. The answers are still to be read.
func (l line) send(text string, ids ...string) {
	l.t.Helper()
	l.say(250, "MAIL FROM:<>")
	for _, one := range ids {
		l.say(250, "RCPT TO:<%s>", path.For(one))
	}
	l.say(354, "DATA")
	w := l.DotWriter()
	if _, err := io.WriteString(w, text); err != nil {
		l.t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		l.t.Fatal(err)
	}
}

func TestServer(t *testing.T) {
	p := serve(t, &post{}, 0)
	l := p.greeted(t)
	l.send(mail(t, "postfix-unknown"), id)
	l.expect(250)
	l.send(mail(t, "postfix-delayed"), strings.ToUpper(otherID))
	l.expect(250)
	l.say(221, "QUIT")

	got := p.reports()
	if len(got) != 2 || got[0].DeliveryID != id || !got[0].Hard || got[1].DeliveryID != otherID || got[1].Hard {
		t.Errorf("took %+v", got)
	}
	if log := p.logged(); strings.Contains(log, "@") || !strings.Contains(log, id) {
		t.Errorf("the log has an address in it, or no delivery:\n%s", log)
	}
}

func TestServerRefusesStrangers(t *testing.T) {
	p := serve(t, &post{}, 0)
	l := p.greeted(t)
	l.say(250, "MAIL FROM:<eve@example.net>")
	good := path.For(id)
	for _, to := range []string{
		"postmaster@bounces.proa.localhost",
		strings.Replace(good, "bounces.", "", 1),
		good[:40] + "aaaaaaaaaaa@bounces.proa.localhost",
		"b+" + id + "@bounces.proa.localhost",
		`"b+` + id + `@"@bounces.proa.localhost`,
	} {
		l.say(550, "RCPT TO:<%s>", to)
	}
	l.say(502, "DATA")
	if got := p.reports(); len(got) != 0 {
		t.Errorf("took %+v", got)
	}
	if log := p.logged(); strings.Contains(log, "@") {
		t.Errorf("the log has an address in it:\n%s", log)
	}
}

func TestServerAsksAgain(t *testing.T) {
	p := serve(t, &post{refuse: func(r bounce.Report) error {
		if r.DeliveryID == otherID {
			return errors.New("the database is down")
		}
		return nil
	}}, 0)
	l := p.greeted(t)
	l.send(mail(t, "exim"), otherID, id)
	if text := l.expect(451); strings.Contains(text, "database") {
		t.Errorf("it tells the mail server %q", text)
	}
	l.expect(250)
	if got := p.reports(); len(got) != 1 || got[0].DeliveryID != id {
		t.Errorf("took %+v", got)
	}
	if !strings.Contains(p.logged(), "the database is down") {
		t.Error("the cause is not in the log")
	}
}

func TestServerPassesOver(t *testing.T) {
	p := serve(t, &post{}, 0)
	l := p.greeted(t)
	for _, name := range []string{"vacation", "receipt", "postfix-delivered"} {
		l.send(mail(t, name), id)
		l.expect(250)
	}
	l.send("no header at all\r\n\r\nhello\r\n", id)
	l.expect(554)
	if got := p.reports(); len(got) != 0 {
		t.Errorf("took %+v", got)
	}
	if log := p.logged(); strings.Contains(log, "@") {
		t.Errorf("the log has an address in it:\n%s", log)
	}
}

// TestServerLimits also proves that what lies behind a limit is never read as a command.
func TestServerLimits(t *testing.T) {
	p := serve(t, &post{}, 4<<10)
	l := p.greeted(t)
	l.say(552, "MAIL FROM:<> SIZE=5000")
	l.send(mail(t, "exim")+strings.Repeat("NOOP\r\nQUIT\r\n", 1<<14), id)
	l.expect(552)
	l.send(mail(t, "exim"), id)
	l.expect(250)

	l.say(250, "MAIL FROM:<>")
	for i := range 10 {
		l.say(250, "RCPT TO:<%s>", path.For(fmt.Sprintf("%032x", i)))
	}
	l.say(452, "RCPT TO:<%s>", path.For(id))
	l.say(250, "RSET")
	l.say(502, "DATA")

	// A line that is too long ends the connection, perhaps before all of it is written.
	for _, inside := range []bool{false, true} {
		l = p.greeted(t)
		if inside {
			l.say(250, "MAIL FROM:<>")
			l.say(250, "RCPT TO:<%s>", path.For(id))
			l.say(354, "DATA")
		}
		_ = l.PrintfLine("NOOP: %s\r\n\r\n.", strings.Repeat("x", 1<<14))
		for err := error(nil); err == nil; {
			var answer string
			if answer, err = l.ReadLine(); err == nil && answer[0] != '5' {
				t.Errorf("a line that is too long is answered with %q", answer)
			}
			if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
				t.Error("a line that is too long leaves the connection open")
			}
		}
	}
	if got := p.reports(); len(got) != 1 {
		t.Errorf("took %+v", got)
	}
}

func TestServerTakesNoHalfMail(t *testing.T) {
	p := serve(t, &post{}, 0)
	l := p.greeted(t)
	l.say(250, "MAIL FROM:<>")
	l.say(250, "RCPT TO:<%s>", path.For(id))
	l.say(354, "DATA")
	if err := l.PrintfLine("%s", mail(t, "postfix-unknown")); err != nil { // whole, but for the dot
		t.Fatal(err)
	}
	_ = l.Close()
	p.stop()
	if got := p.reports(); len(got) != 0 {
		t.Errorf("took %+v", got)
	}
	if !strings.Contains(p.logged(), "bounce broke off") {
		t.Errorf("logged %s", p.logged())
	}
}

func TestServerTakesChunks(t *testing.T) {
	p := serve(t, &post{}, 4<<10)
	l := p.greeted(t)
	chunk := func(code int, text, last string) {
		t.Helper()
		if _, err := fmt.Fprintf(l.W, "BDAT %d%s\r\n%s", len(text), last, text); err != nil {
			t.Fatal(err)
		}
		if err := l.W.Flush(); err != nil {
			t.Fatal(err)
		}
		l.expect(code)
	}
	begin := func() {
		t.Helper()
		l.say(250, "MAIL FROM:<>")
		l.say(250, "RCPT TO:<%s>", path.For(id))
	}
	text := mail(t, "exchange")
	begin()
	chunk(250, text[:700], "")
	chunk(250, text[700:], " LAST")
	begin()
	chunk(250, text, "")
	chunk(250, strings.Repeat("QUIT\r\n", 1<<12), "")
	chunk(552, "", " LAST")
	l.say(250, "NOOP")
	if got := p.reports(); len(got) != 1 || got[0].Status != "5.1.10" {
		t.Errorf("took %+v", got)
	}
}

func TestServerConnections(t *testing.T) {
	p := serve(t, &post{}, 0)
	var first line
	for i := range 32 {
		l := p.greeted(t)
		if i == 0 {
			first = l
		}
	}
	late := p.dial(t)
	heard := make(chan error, 1)
	go func() {
		_, err := late.ReadLine()
		heard <- err
	}()
	select {
	case <-heard:
		t.Fatal("a thirty-third connection is served")
	case <-time.After(200 * time.Millisecond):
	}
	first.say(221, "QUIT")
	if err := <-heard; err != nil {
		t.Errorf("the thirty-third is not served when one has gone: %v", err)
	}
	t.Cleanup(func() { _ = late.Close() })
}

func TestServerStops(t *testing.T) {
	busy, release := make(chan struct{}), make(chan struct{})
	p := serve(t, &post{refuse: func(bounce.Report) error {
		close(busy)
		<-release
		return nil
	}}, 0)
	l := p.greeted(t)
	l.send(mail(t, "exim"), id)
	<-busy
	stopped := make(chan struct{})
	go func() {
		p.stop()
		close(stopped)
	}()
	for {
		c, err := net.Dial("tcp", p.address)
		if err != nil {
			break
		}
		_ = c.Close()
		time.Sleep(time.Millisecond)
	}
	close(release)
	l.expect(250)
	_ = l.Close()
	<-stopped
	if got := p.reports(); len(got) != 1 {
		t.Errorf("took %+v", got)
	}
}

func TestServerStopsBeforeItStarts(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := &bounce.Server{Domain: path.Domain, Open: path.Open, Log: slog.New(slog.DiscardHandler)}
		if err := server.Part(l).Run(ctx); err != nil {
			t.Fatal(err)
		}
		if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
			_ = c.Close()
			t.Fatal("it still listens")
		}
	}
}
