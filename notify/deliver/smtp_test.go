package deliver_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proa-dev/proa/notify/deliver"
	"github.com/proa-dev/proa/notify/deliver/smtptest"
)

// world is a pool with its clock and log, whose goroutines and connections must be gone at the end.
type world struct {
	*deliver.Pool
	now atomic.Int64
	log *lines
}

type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newWorld(t *testing.T, relays ...deliver.Relay) *world {
	t.Helper()
	w := &world{log: &lines{}}
	w.now.Store(time.Now().UnixNano())
	w.Pool = &deliver.Pool{
		Relays: relays, PerRelay: 4, DialTimeout: 2 * time.Second, CommandTimeout: 2 * time.Second,
		Now: func() time.Time { return time.Unix(0, w.now.Load()) }, Log: slog.New(slog.NewTextHandler(w.log, nil)),
	}
	t.Cleanup(w.Close)
	return w
}

func (w *world) pass(d time.Duration) { w.now.Add(int64(d)) }

func (w *world) send(t *testing.T, to string) error {
	t.Helper()
	return w.Send(t.Context(), envelope(to))
}

func (w *world) mustSend(t *testing.T, to string) {
	t.Helper()
	if err := w.send(t, to); err != nil {
		t.Fatalf("send to %s: %v", to, err)
	}
}

func envelope(to string) deliver.Envelope {
	raw := "From: Proa <proa@example.org>\r\nTo: " + to + "\r\nSubject: Hello\r\nMessage-ID: <1@example.org>\r\n" +
		"Date: Mon, 2 Mar 2026 10:00:00 +0000\r\nMIME-Version: 1.0\r\nContent-Type: text/plain\r\n\r\nHello.\r\n.\r\n..two\r\n"
	return deliver.Envelope{From: "bounces+1@example.org", To: to, Raw: []byte(raw)}
}

func startServer(t *testing.T, opt smtptest.Options) *smtptest.Server {
	t.Helper()
	before := runtime.NumGoroutine()
	s, err := smtptest.Start(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 200 {
			if s.Open() == 0 {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if n := s.Open(); n > 0 {
			t.Errorf("%d connections are still open after the pool was closed", n)
		}
		s.Close()
		for range 200 {
			if runtime.NumGoroutine() <= before {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Errorf("%d goroutines at the end, %d at the start", runtime.NumGoroutine(), before)
	})
	return s
}

func clear(s *smtptest.Server) deliver.Relay {
	return deliver.Relay{Addr: s.Addr, TLS: deliver.TLSNone}
}

func failureOf(t *testing.T, err error) *deliver.Failure {
	t.Helper()
	f, ok := errors.AsType[*deliver.Failure](err)
	if !ok {
		t.Fatalf("got %v, want a Failure", err)
	}
	return f
}

func TestMailArrivesAsComposed(t *testing.T) {
	for _, pipelining := range []bool{true, false} {
		s := startServer(t, smtptest.Options{Keep: true, NoPipelining: !pipelining})
		w := newWorld(t, clear(s))
		for i := range 3 {
			w.mustSend(t, fmt.Sprintf("ann%d@example.org", i))
		}
		mails := s.Mails()
		if len(mails) != 3 || s.Conns() != 1 || s.Count(smtptest.Reset) != 0 {
			t.Fatalf("%d mails over %d connections with %d RSET, want 3 over 1 with none", len(mails), s.Conns(), s.Count(smtptest.Reset))
		}
		for i, m := range mails {
			want := envelope(fmt.Sprintf("ann%d@example.org", i))
			if m.From != want.From || m.To != want.To || !bytes.Equal(m.Raw, want.Raw) {
				t.Errorf("mail %d arrived from %s to %s as %q", i, m.From, m.To, m.Raw)
			}
		}
	}
}

func TestRawBytesOnTheWire(t *testing.T) {
	s := startServer(t, smtptest.Options{Keep: true})
	w := newWorld(t, clear(s))
	for _, c := range []struct{ raw, want string }{
		{"A: b\r\n\r\n.\r\n", "A: b\r\n\r\n.\r\n"},
		{".A: b\r\n\r\n...", ".A: b\r\n\r\n...\r\n"},
		{"A: b\n\nbare\n.\nlines\n", "A: b\r\n\r\nbare\r\n.\r\nlines\r\n"},
		{"A: b\r\rold\r.\r", "A: b\r\n\r\nold\r\n.\r\n"},
		{"A: b\r\n\r\nx\r\n.\rMAIL FROM:<eve@example.org>\r\n", "A: b\r\n\r\nx\r\n.\r\nMAIL FROM:<eve@example.org>\r\n"},
		{"A: b\r\n\r\n" + strings.Repeat("x", 100_000) + "\r\n.y", "A: b\r\n\r\n" + strings.Repeat("x", 100_000) + "\r\n.y\r\n"},
		{"", "\r\n"},
	} {
		before := len(s.Mails())
		if err := w.Send(t.Context(), deliver.Envelope{To: "ann@example.org", Raw: []byte(c.raw)}); err != nil {
			t.Fatal(err)
		}
		mails := s.Mails()
		if got := string(mails[len(mails)-1].Raw); got != c.want || len(mails) != before+1 {
			t.Errorf("%.60q arrived as %.60q in %d mails, want %.60q in one", c.raw, got, len(mails)-before, c.want)
		}
	}
}

// TestFaults does each fault to every mail, and says what becomes of a mail that meets it.
func TestFaults(t *testing.T) {
	reply := smtptest.Refuse
	drop, stall := smtptest.Act{Drop: true}, smtptest.Act{Stall: true}
	type want struct {
		permanent bool
		code      int
		enhanced  string
		conns     int64 // connections that were tried
		down      bool  // the relay is left alone for a while
		accepted  int64
	}
	for name, c := range map[string]struct {
		step smtptest.Step
		act  smtptest.Act
		want want
	}{
		"sender refused":               {smtptest.From, reply("550 5.7.1 Not you"), want{permanent: true, code: 550, enhanced: "5.7.1", conns: 1}},
		"sender refused for now":       {smtptest.From, reply("451 4.3.0 Later"), want{code: 451, enhanced: "4.3.0", conns: 1}},
		"recipient unknown":            {smtptest.To, reply("550 5.1.1 Nobody"), want{permanent: true, code: 550, enhanced: "5.1.1", conns: 1}},
		"recipient unknown, old words": {smtptest.To, reply("550 Nobody"), want{permanent: true, code: 550, conns: 1}},
		"recipient greylisted":         {smtptest.To, reply("450 4.2.0 Greylisted"), want{code: 450, enhanced: "4.2.0", conns: 1}},
		"mailbox full":                 {smtptest.To, reply("552 5.2.2 Full"), want{code: 552, enhanced: "5.2.2", conns: 1}},
		"mailbox full, class 4":        {smtptest.To, reply("550 4.2.2 Full"), want{code: 550, enhanced: "4.2.2", conns: 1}},
		"sending quota used up":        {smtptest.To, reply("550 5.4.5 Daily quota"), want{code: 550, enhanced: "5.4.5", conns: 1}},
		"mail too big":                 {smtptest.From, reply("552 5.3.4 Too big"), want{permanent: true, code: 552, enhanced: "5.3.4", conns: 1}},
		"4xx with a class of 5":        {smtptest.To, reply("451 5.7.1 Hm"), want{code: 451, enhanced: "5.7.1", conns: 1}},
		"data refused":                 {smtptest.Data, reply("554 5.5.1 No"), want{permanent: true, code: 554, enhanced: "5.5.1", conns: 1}},
		"data refused for now":         {smtptest.Data, reply("451 4.3.0 No"), want{code: 451, enhanced: "4.3.0", conns: 1}},
		"content refused":              {smtptest.End, reply("554 5.6.0 Spam"), want{permanent: true, code: 554, enhanced: "5.6.0", conns: 1}},
		"relay full":                   {smtptest.End, reply("452 4.3.1 Disk full"), want{code: 452, enhanced: "4.3.1", conns: 1}},
		"stopping at the verdict":      {smtptest.End, reply("421 4.3.2 Stopping"), want{code: 421, enhanced: "4.3.2", conns: 1}},
		"refused in mid-mail":          {smtptest.Body, smtptest.Act{Reply: "552 5.3.4 Too big", Drop: true}, want{permanent: true, code: 552, enhanced: "5.3.4", conns: 1}},
		"stopping at the sender":       {smtptest.From, reply("421 4.3.2 Stopping"), want{code: 421, enhanced: "4.3.2", conns: 2, down: true}},
		"stopping at the recipient":    {smtptest.To, reply("421 4.7.0 Too many errors"), want{code: 421, enhanced: "4.7.0", conns: 2, down: true}},
		"login demanded":               {smtptest.From, reply("530 5.7.0 Log in first"), want{code: 530, enhanced: "5.7.0", conns: 1, down: true}},
		"greeted with 421":             {smtptest.Greeting, reply("421 4.7.0 Too many"), want{code: 421, enhanced: "4.7.0", conns: 1, down: true}},
		"greeted with 554":             {smtptest.Greeting, reply("554 5.7.1 Blocked"), want{code: 554, enhanced: "5.7.1", conns: 1, down: true}},
		"hello refused":                {smtptest.Hello, reply("550 5.7.1 Who?"), want{code: 550, enhanced: "5.7.1", conns: 1, down: true}},
		"dropped at the greeting":      {smtptest.Greeting, drop, want{conns: 1, down: true}},
		"dropped at hello":             {smtptest.Hello, drop, want{conns: 1, down: true}},
		"dropped at the sender":        {smtptest.From, drop, want{conns: 2}},
		"dropped at the recipient":     {smtptest.To, drop, want{conns: 2}},
		"dropped at data":              {smtptest.Data, drop, want{conns: 2}},
		"dropped in mid-mail":          {smtptest.Body, drop, want{conns: 1}},
		"dropped before the verdict":   {smtptest.End, drop, want{conns: 1, accepted: 1}},
		"silent at the greeting":       {smtptest.Greeting, stall, want{conns: 1, down: true}},
		"silent at hello":              {smtptest.Hello, stall, want{conns: 1, down: true}},
		"silent at the sender":         {smtptest.From, stall, want{conns: 2}},
		"silent at data":               {smtptest.Data, stall, want{conns: 2}},
		"silent in mid-mail":           {smtptest.Body, stall, want{conns: 1}},
		"silent at the verdict":        {smtptest.End, stall, want{conns: 1}},
		"nonsense at the sender":       {smtptest.From, reply("what?"), want{conns: 2}},
		"250 to data":                  {smtptest.Data, reply("250 Fine"), want{conns: 2}},
		"354 at the verdict":           {smtptest.End, reply("354 More"), want{conns: 1}},
	} {
		for _, pipelining := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/pipelining=%v", name, pipelining), func(t *testing.T) {
				s := startServer(t, smtptest.Options{NoPipelining: !pipelining})
				w := newWorld(t, clear(s))
				if c.act.Stall {
					w.CommandTimeout = 50 * time.Millisecond
				}
				s.Do(smtptest.At(c.step, c.act))
				f := failureOf(t, w.send(t, "ann@example.org"))
				got := want{f.Permanent, f.Code, f.Enhanced, s.Conns(), f.RetryAfter > 0, s.Accepted()}
				if got != c.want {
					t.Errorf("got  %+v\nwant %+v\nfrom %v", got, c.want, f)
				}
				if deliver.Permanent(f) != c.want.permanent || f.Reason == "" || strings.ContainsAny(f.Reason, "\r\n") {
					t.Errorf("a failure must judge the same everywhere and have a reason of one line: %+v", f)
				}

				s.Do(nil)
				w.pass(10 * time.Second)
				w.mustSend(t, "bob@example.org")
				if n := s.Accepted() - c.want.accepted; n != 1 {
					t.Errorf("the next mail arrived %d times", n)
				}
			})
		}
	}
}

func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	w := newWorld(t, deliver.Relay{Addr: l.Addr().String(), TLS: deliver.TLSNone})
	f := failureOf(t, w.send(t, "ann@example.org"))
	if f.Permanent || f.RetryAfter != 10*time.Second || f.Cause == nil || strings.Contains(f.Reason, "127.0.0.1") {
		t.Errorf("got %+v, want one to try again in 10 s that does not tell people our addresses", f)
	}
	f = failureOf(t, newWorld(t).send(t, "ann@example.org"))
	if f.Permanent || f.RetryAfter == 0 {
		t.Errorf("without a relay: %+v", f)
	}
}

func TestReasonHidesAddresses(t *testing.T) {
	s := startServer(t, smtptest.Options{})
	w := newWorld(t, clear(s))
	for said, want := range map[string]string{
		"550 5.1.1 <Ann@example.org>: Recipient address rejected": "<…>: Recipient address rejected",
		"550 5.1.1 ann@example.org... User unknown":               "…... User unknown",
		"550 <ann>... no such user":                               "…... no such user",
		"550 5.1.1 forward to eve@example.com failed":             "forward to …@example.com failed",
		"550 5.1.1 \"eve e\"@example.com or eve@[10.0.0.1] no":    "…@example.com or …@[10.0.0.1] no",
		"550-5.1.1 two\r\n550 5.1.1 lines":                        "two lines",
		"550 5.1.1 bell\a, tab\tand \xff":                         "bell , tab and ?",
		"550 5.1.1 " + strings.Repeat("é", 600):                   strings.Repeat("é", 499) + "…",
	} {
		s.Do(smtptest.At(smtptest.To, smtptest.Refuse(said)))
		if f := failureOf(t, w.send(t, "ann@example.org")); f.Reason != want {
			t.Errorf("%.60q became %.90q, want %.90q", said, f.Reason, want)
		}
	}
}

func TestRefusedMailLeavesConnectionUsable(t *testing.T) {
	for _, pipelining := range []bool{true, false} {
		s := startServer(t, smtptest.Options{NoPipelining: !pipelining})
		w := newWorld(t, clear(s))
		for i := range 3 {
			s.Do(smtptest.At(smtptest.To, smtptest.Refuse("550 5.1.1 Nobody")))
			if err := w.send(t, "ann@example.org"); !deliver.Permanent(err) {
				t.Fatalf("got %v", err)
			}
			s.Do(nil)
			w.mustSend(t, "bob@example.org")
			w.mustSend(t, "cleo@example.org")
			if s.Conns() != 1 || s.Count(smtptest.Reset) != int64(i+1) {
				t.Fatalf("round %d: %d connections and %d RSET, want 1 and one for each refusal", i, s.Conns(), s.Count(smtptest.Reset))
			}
		}
	}
}

func TestAddresses(t *testing.T) {
	s := startServer(t, smtptest.Options{Keep: true})
	old := startServer(t, smtptest.Options{Keep: true, No8Bit: true})
	w, wOld := newWorld(t, clear(s)), newWorld(t, clear(old))
	for _, c := range []struct{ to, wire, parameter, oldWire string }{
		{"ann@example.org", "ann@example.org", "", "ann@example.org"},
		{"ann@exämple.org", "ann@xn--exmple-cua.org", "", "ann@xn--exmple-cua.org"},
		{"änn@exämple.org", "änn@xn--exmple-cua.org", "SMTPUTF8", ""},
		{"ann>\r\nRCPT TO:<eve@example.org", "", "", ""},
		{"ann@example.org> SIZE=1", "", "", ""},
		{"ann @example.org", "", "", ""},
		{"<ann@example.org>", "", "", ""},
		{"ann", "", "", ""},
		{"@example.org", "", "", ""},
		{"ann@", "", "", ""},
		{"", "", "", ""},
		{"ann\xff@example.org", "", "", ""},
		{strings.Repeat("a", 400) + "@example.org", "", "", ""},
	} {
		mail := envelope("ann@example.org")
		mail.To = c.to
		check := func(w *world, s *smtptest.Server, wire, parameter string) {
			t.Helper()
			before := len(s.Mails())
			err := w.Send(t.Context(), mail)
			if wire == "" {
				if !deliver.Permanent(err) || len(s.Mails()) != before {
					t.Errorf("%.50q: got %v, want a permanent failure", c.to, err)
				}
				return
			}
			if err != nil {
				t.Errorf("%q: %v", c.to, err)
				return
			}
			got := s.Mails()[before]
			if got.To != wire || strings.Contains(got.Parameters, "SMTPUTF8") != (parameter != "") {
				t.Errorf("%q was called %q with %q, want %q with %q", c.to, got.To, got.Parameters, wire, parameter)
			}
		}
		check(w, s, c.wire, c.parameter)
		check(wOld, old, c.oldWire, "")
	}
	for from, ok := range map[string]bool{"": true, "b@example.org": true, "b@example.org>\r\nRSET": false, "b": false} {
		mail := envelope("ann@example.org")
		mail.From = from
		if err := w.Send(t.Context(), mail); (err == nil) != ok {
			t.Errorf("from %q: %v", from, err)
		}
	}
}

func TestEightBit(t *testing.T) {
	s := startServer(t, smtptest.Options{Keep: true})
	w := newWorld(t, clear(s))
	for raw, want := range map[string]string{
		"Subject: hello\r\n\r\nhello\r\n": "SIZE=25",
		"Subject: hello\r\n\r\nhellö\r\n": "SIZE=26 BODY=8BITMIME",
		"Subject: hellö\r\n\r\nhello\r\n": "SIZE=26 BODY=8BITMIME SMTPUTF8",
	} {
		if err := w.Send(t.Context(), deliver.Envelope{From: "a@example.org", To: "b@example.org", Raw: []byte(raw)}); err != nil {
			t.Fatal(err)
		}
		mails := s.Mails()
		if got := mails[len(mails)-1].Parameters; got != want {
			t.Errorf("%q was announced with %q, want %q", raw, got, want)
		}
	}
}

// scripted is a relay that answers each chunk it reads by calling answer, and keeps the chunks.
func scripted(t *testing.T, answer func(chunk string) string) (addr string, chunks func() []string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var seen []string
	var all sync.WaitGroup
	all.Go(func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		fmt.Fprint(c, "220 hello\r\n")
		b := make([]byte, 64<<10)
		for {
			n, err := c.Read(b)
			if err != nil {
				return
			}
			mu.Lock()
			seen = append(seen, string(b[:n]))
			mu.Unlock()
			fmt.Fprint(c, answer(string(b[:n])))
		}
	})
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	return l.Addr().String(), func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), seen...)
	}
}

// TestPipelining watches the writes: the envelope is one, the mail another, and RSET joins the next envelope. A relay that
// asks for the mail although it has refused the recipient is given none.
func TestPipelining(t *testing.T) {
	refuse := true
	addr, chunks := scripted(t, func(chunk string) string {
		switch {
		case strings.HasPrefix(chunk, "EHLO"):
			return "250-hello\r\n250 PIPELINING\r\n"
		case strings.HasPrefix(chunk, "MAIL") && refuse:
			refuse = false
			return "250 ok\r\n550 5.1.1 nobody\r\n354 go\r\n"
		case chunk == ".\r\n":
			return "554 5.5.1 no recipients\r\n"
		case strings.HasPrefix(chunk, "RSET"):
			return "250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n"
		case strings.HasPrefix(chunk, "QUIT"):
			return "221 bye\r\n"
		}
		return "250 ok\r\n"
	})
	w := newWorld(t, deliver.Relay{Addr: addr, TLS: deliver.TLSNone, Hello: "me"})
	if f := failureOf(t, w.send(t, "ann@example.org")); f.Code != 550 {
		t.Errorf("got %v, want the refusal of the recipient", f)
	}
	if err := w.Send(t.Context(), deliver.Envelope{From: "b@example.org", To: "ann@example.org", Raw: []byte("A: b\r\n")}); err != nil {
		t.Fatal(err)
	}
	w.Close()
	want := []string{
		"EHLO me\r\n",
		"MAIL FROM:<bounces+1@example.org>\r\nRCPT TO:<ann@example.org>\r\nDATA\r\n",
		".\r\n",
		"RSET\r\nMAIL FROM:<b@example.org>\r\nRCPT TO:<ann@example.org>\r\nDATA\r\n",
		"A: b\r\n.\r\n",
		"QUIT\r\n",
	}
	if got := chunks(); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
