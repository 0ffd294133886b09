package deliver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proa-dev/proa/notify/deliver"
	"github.com/proa-dev/proa/notify/deliver/smtptest"
)

func TestPoolReusesConnections(t *testing.T) {
	s := startServer(t, smtptest.Options{})
	w := newWorld(t, clear(s))
	w.MaxPerConn = 50
	var all sync.WaitGroup
	for g := range 20 {
		all.Go(func() {
			for i := range 40 {
				if err := w.send(t, fmt.Sprintf("u%d.%d@example.org", g, i)); err != nil {
					t.Error(err)
				}
				if n := s.Open(); n > 4 {
					t.Errorf("%d connections are open, want 4 at most", n)
				}
			}
		})
	}
	all.Wait()
	w.Close()
	if s.Accepted() != 800 || s.Conns() < 16 || s.Conns() > 20 || s.Count(smtptest.Quit) != s.Conns() {
		t.Errorf("%d mails over %d connections with %d QUIT, want 800 over 16 or little more, each with one", s.Accepted(), s.Conns(), s.Count(smtptest.Quit))
	}
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	s := startServer(t, smtptest.Options{})
	w := newWorld(t, clear(s))
	w.Now, w.IdleFor = time.Now, 50*time.Millisecond
	w.mustSend(t, "ann@example.org")
	eventually(t, "the idle connection is closed", func() bool { return s.Open() == 0 && s.Count(smtptest.Quit) == 1 })
	w.mustSend(t, "ann@example.org")
	if s.Conns() != 2 {
		t.Errorf("%d connections, want 2", s.Conns())
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 300 {
		if is() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("waited in vain: %s", what)
}

// TestStaleConnection reuses connections that the relay has given up meanwhile: no mail fails or doubles.
func TestStaleConnection(t *testing.T) {
	for name, spoil := range map[string]func(*smtptest.Server){
		"line closed": func(s *smtptest.Server) { s.Hang(); time.Sleep(20 * time.Millisecond) },
		"421 waiting": func(s *smtptest.Server) {
			s.Do(func(p smtptest.Point) smtptest.Act {
				if p.Step == smtptest.From && p.Conn == 1 {
					return smtptest.Refuse("421 4.4.2 Idle too long")
				}
				return smtptest.Act{}
			})
		},
		"silent": func(s *smtptest.Server) {
			s.Do(func(p smtptest.Point) smtptest.Act {
				return smtptest.Act{Stall: p.Step == smtptest.From && p.Conn == 1}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, smtptest.Options{})
			w := newWorld(t, clear(s))
			w.CommandTimeout = 200 * time.Millisecond
			w.mustSend(t, "ann@example.org")
			spoil(s)
			w.mustSend(t, "bob@example.org")
			if s.Accepted() != 2 || s.Conns() != 2 {
				t.Errorf("%d mails over %d connections, want 2 over 2", s.Accepted(), s.Conns())
			}
		})
	}
}

// TestLostVerdict loses the reply after the relay has taken the mail. Only the caller may decide to send again; the twin is
// the same mail.
func TestLostVerdict(t *testing.T) {
	s := startServer(t, smtptest.Options{Keep: true})
	w := newWorld(t, clear(s))
	s.Do(smtptest.At(smtptest.End, smtptest.Act{Drop: true}))
	if f := failureOf(t, w.send(t, "ann@example.org")); f.Permanent || f.Code != 0 || f.RetryAfter != 0 {
		t.Errorf("got %+v, want a transient one without a code", f)
	}
	s.Do(nil)
	w.mustSend(t, "ann@example.org")
	mails := s.Mails()
	if len(mails) != 2 || !bytes.Equal(mails[0].Raw, mails[1].Raw) || !bytes.Contains(mails[1].Raw, []byte("Message-ID: <1@example.org>")) {
		t.Errorf("%d mails arrived, want twins with one Message-ID", len(mails))
	}
}

func TestFailoverAndReturn(t *testing.T) {
	first, second := startServer(t, smtptest.Options{}), startServer(t, smtptest.Options{})
	w := newWorld(t, clear(first), clear(second))
	count := func(step string, one, two int64) {
		t.Helper()
		if first.Accepted() != one || second.Accepted() != two {
			t.Fatalf("%s: the relays have %d and %d mails, want %d and %d", step, first.Accepted(), second.Accepted(), one, two)
		}
	}
	w.mustSend(t, "ann@example.org")
	count("both up", 1, 0)

	first.Do(smtptest.At(smtptest.Greeting, smtptest.Refuse("421 4.3.2 Down")))
	first.Hang()
	for range 5 {
		w.mustSend(t, "ann@example.org")
	}
	count("first down", 1, 5)
	// Tried once and left alone for 10, 20, 40, 60 and again 60 seconds.
	conns := first.Conns()
	if conns != 2 {
		t.Errorf("the first relay was tried %d times, want once", conns-1)
	}
	for _, wait := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute} {
		w.pass(wait - time.Millisecond)
		w.mustSend(t, "ann@example.org")
		if first.Conns() != conns {
			t.Errorf("the first relay was tried before its %v were over", wait)
		}
		w.pass(time.Millisecond)
		w.mustSend(t, "ann@example.org")
		if conns++; first.Conns() != conns {
			t.Errorf("the first relay was not tried after %v", wait)
		}
	}
	first.Do(nil)
	w.pass(time.Minute)
	w.mustSend(t, "ann@example.org")
	count("first back", 2, 15)

	first.Do(smtptest.At(smtptest.To, smtptest.Refuse("450 4.2.0 Later")))
	if err := w.send(t, "ann@example.org"); err == nil || deliver.Permanent(err) {
		t.Errorf("got %v", err)
	}
	count("a refused mail stays with its relay", 2, 15)
	if n := strings.Count(w.log.String(), "cannot be used"); n != 6 {
		t.Errorf("%d log lines about the relay, want one for each time it was tried:\n%s", n, w.log)
	}
}

// TestFailoverInMidSession meets relays that greet and then end the session.
func TestFailoverInMidSession(t *testing.T) {
	first, second := startServer(t, smtptest.Options{}), startServer(t, smtptest.Options{})
	w := newWorld(t, clear(first), clear(second))
	first.Do(smtptest.At(smtptest.From, smtptest.Refuse("421 4.3.2 Stopping")))
	for range 3 {
		w.mustSend(t, "ann@example.org")
	}
	if first.Conns() != 2 || second.Accepted() != 3 {
		t.Errorf("%d tries with the first, %d mails at the second, want 2 and 3", first.Conns(), second.Accepted())
	}
}

// TestRelayWithFewerConnections has a relay that takes two connections only: mails share them, none fails.
func TestRelayWithFewerConnections(t *testing.T) {
	s := startServer(t, smtptest.Options{})
	s.Do(func(p smtptest.Point) smtptest.Act {
		switch {
		case p.Step == smtptest.Greeting && p.Conn > 2:
			return smtptest.Refuse("421 4.7.0 Too many connections")
		case p.Step == smtptest.End:
			return smtptest.Act{Wait: 5 * time.Millisecond}
		}
		return smtptest.Act{}
	})
	w := newWorld(t, clear(s))
	w.mustSend(t, "ann@example.org")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 10 {
				if err := w.send(t, "ann@example.org"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if s.Accepted() != 81 {
		t.Errorf("%d mails, want 81", s.Accepted())
	}
}

func TestRelayRestarts(t *testing.T) {
	s := startServer(t, smtptest.Options{})
	w := newWorld(t, clear(s))
	w.Now = time.Now
	w.mustSend(t, "ann@example.org")
	s.Hang()
	var sent atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				for w.send(t, "ann@example.org") != nil {
					time.Sleep(time.Millisecond)
				}
				sent.Add(1)
			}
		})
	}
	for range 5 {
		time.Sleep(5 * time.Millisecond)
		s.Hang()
	}
	all.Wait()
	if extra := s.Accepted() - 1 - sent.Load(); extra < 0 || extra > 5*4 {
		t.Errorf("%d mails more than were sent, want none lost and at most those in flight doubled", extra)
	}
}

func TestContext(t *testing.T) {
	for _, step := range []smtptest.Step{smtptest.Greeting, smtptest.Hello, smtptest.From, smtptest.Body, smtptest.End} {
		s := startServer(t, smtptest.Options{})
		w := newWorld(t, clear(s))
		w.CommandTimeout = time.Minute
		s.Do(smtptest.At(step, smtptest.Act{Stall: true}))
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the process stops")
		time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
		f := failureOf(t, w.Send(ctx, envelope("ann@example.org")))
		if f.Permanent || !errors.Is(f, why) || f.RetryAfter != 0 {
			t.Errorf("step %d: got %+v", step, f)
		}
		s.Do(nil)
		w.mustSend(t, "ann@example.org") // and the relay does not cool down
	}
}

func TestWaitingForAConnection(t *testing.T) {
	s := startServer(t, smtptest.Options{})
	w := newWorld(t, clear(s))
	w.PerRelay = 1
	s.Do(smtptest.At(smtptest.End, smtptest.Act{Wait: 300 * time.Millisecond}))
	var all sync.WaitGroup
	all.Go(func() { w.mustSend(t, "ann@example.org") })
	eventually(t, "the first mail is under way", func() bool { return s.Count(smtptest.Body) == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if f := failureOf(t, w.Send(ctx, envelope("bob@example.org"))); f.Permanent || !errors.Is(f, context.DeadlineExceeded) {
		t.Errorf("got %+v", f)
	}
	all.Wait()
	if s.Accepted() != 1 || s.Conns() != 1 {
		t.Errorf("%d mails, %d connections", s.Accepted(), s.Conns())
	}
}

func TestCloseWaits(t *testing.T) {
	s := startServer(t, smtptest.Options{})
	w := newWorld(t, clear(s))
	w.PerRelay = 2
	s.Do(smtptest.At(smtptest.End, smtptest.Act{Wait: 50 * time.Millisecond}))
	var all sync.WaitGroup
	for range 6 { // two are under way, four wait for them
		all.Go(func() { w.mustSend(t, "ann@example.org") })
	}
	eventually(t, "mails are under way", func() bool { return s.Count(smtptest.Body) == 2 })
	time.Sleep(10 * time.Millisecond)
	w.Close()
	if s.Accepted() != 6 || s.Count(smtptest.Quit) != 2 {
		t.Errorf("Close came back with %d mails of 6 sent and %d of 2 leaves taken", s.Accepted(), s.Count(smtptest.Quit))
	}
	all.Wait()
	if f := failureOf(t, w.send(t, "ann@example.org")); f.Permanent {
		t.Errorf("after Close: %+v", f)
	}
	w.Close()
}
