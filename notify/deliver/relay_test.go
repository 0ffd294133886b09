package deliver_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/proa-dev/proa/notify/deliver"
	"github.com/proa-dev/proa/notify/deliver/smtptest"
)

func TestParseRelay(t *testing.T) {
	for text, want := range map[string]deliver.Relay{
		"smtps://mail.example.org":                           {Addr: "mail.example.org:465", TLS: deliver.TLSImplicit},
		"smtps://u:p%40@mail.example.org:2465/":              {Addr: "mail.example.org:2465", TLS: deliver.TLSImplicit, Auth: "plain", User: "u", Password: "p@"},
		"smtp://mail.example.org":                            {Addr: "mail.example.org:587", TLS: deliver.TLSStart},
		"smtp://mail.example.org:25?tls=none":                {Addr: "mail.example.org:25", TLS: deliver.TLSNone},
		"smtp://mail.example.org:25?tls=opportunistic":       {Addr: "mail.example.org:25", TLS: deliver.TLSOpportunistic},
		"smtp://u:p@mail.example.org?auth=login":             {Addr: "mail.example.org:587", TLS: deliver.TLSStart, Auth: "login", User: "u", Password: "p"},
		"smtp://u:p@mail.example.org?tls=none&auth=cram-md5": {Addr: "mail.example.org:587", TLS: deliver.TLSNone, Auth: "cram-md5", User: "u", Password: "p"},
		"smtp://u:p@127.0.0.1:2525?tls=none":                 {Addr: "127.0.0.1:2525", TLS: deliver.TLSNone, Auth: "plain", User: "u", Password: "p"},
		"smtp://u:p@[::1]:2525?tls=opportunistic&auth=login": {Addr: "[::1]:2525", TLS: deliver.TLSOpportunistic, Auth: "login", User: "u", Password: "p"},
		"smtp://u%40example.org:p@localhost:2525?tls=none":   {Addr: "localhost:2525", TLS: deliver.TLSNone, Auth: "plain", User: "u@example.org", Password: "p"},
	} {
		if got, err := deliver.ParseRelay(text); err != nil || got != want {
			t.Errorf("%s: got %#v and %v, want %#v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "mail.example.org:25", "http://u:hunter2@mail.example.org", "smtp://", "smtp://u:hunter2@:25",
		"smtp://u:hunter2@mail.example.org:port", "smtp://u:hunter2%zz@mail.example.org", "smtp://u:hunter2 @mail.example.org",
		"smtp://u:hunter2@mail.example.org/inbox", "smtp://u:hunter2@mail.example.org#x",
		"smtp://u:hunter2@mail.example.org?tls=maybe", "smtp://u:hunter2@mail.example.org?tls=implicit",
		"smtps://u:hunter2@mail.example.org?tls=none", "smtps://u:hunter2@mail.example.org?tls=starttls",
		"smtp://u:hunter2@mail.example.org?auth=ntlm", "smtp://u:hunter2@mail.example.org?pass=hunter2",
		"smtp://u:hunter2@mail.example.org?tls=none&tls=starttls", "smtp://u:hunter2@mail.example.org?tls=%zz",
		"smtp://mail.example.org?auth=plain", "smtp://u@mail.example.org", "smtp://:hunter2@mail.example.org?auth=plain",
		"smtp://u:hunter2@mail.example.org?tls=none", "smtp://u:hunter2@mail.example.org?tls=opportunistic",
		"smtp://u:hunter2@mail.example.org?tls=none&auth=login", "smtp://u:hunter2@127.example.org?tls=none",
		"smtp://u:hunter2%0d%0aRSET@mail.example.org",
	} {
		_, err := deliver.ParseRelay(text)
		if err == nil {
			t.Errorf("%s was accepted", text)
			continue
		}
		if s := err.Error(); strings.Contains(s, "hunter2") || !strings.HasSuffix(s, ".") {
			t.Errorf("%s: %q must be a sentence without the password", text, s)
		}
	}
}

func TestRelayHidesPassword(t *testing.T) {
	r := deliver.Relay{Addr: "mail.example.org:25", User: "u", Password: "hunter2"}
	w := newWorld(t)
	log := slog.New(slog.NewJSONHandler(w.log, nil))
	log.Info("relay", slog.Any("relay", r))
	if s := fmt.Sprintf("%v %+v %s", r, r, r) + w.log.String(); strings.Contains(s, "hunter2") {
		t.Errorf("the password shows in %s", s)
	}
}

func TestAuth(t *testing.T) {
	mechanisms := []string{"PLAIN", "LOGIN", "CRAM-MD5"}
	for _, name := range mechanisms {
		for _, security := range []smtptest.Security{smtptest.Clear, smtptest.Upgrade, smtptest.Implicit} {
			s := startServer(t, smtptest.Options{Keep: true, Security: security, Auth: mechanisms, User: "proa", Password: "hunter2"})
			r := relayTo(s, map[smtptest.Security]deliver.TLSMode{
				smtptest.Clear: deliver.TLSNone, smtptest.Upgrade: deliver.TLSStart, smtptest.Implicit: deliver.TLSImplicit,
			}[security])
			r.Auth, r.User, r.Password = strings.ToLower(name), "proa", "hunter2"
			w := newWorld(t, r)
			w.mustSend(t, "ann@example.org")
			w.mustSend(t, "bob@example.org")
			if m := s.Mails()[1]; m.User != "proa" || m.TLS != (security != smtptest.Clear) || s.Count(smtptest.Login) != 1 {
				t.Errorf("%s: mail of user %q, encrypted %v, %d logins", name, m.User, m.TLS, s.Count(smtptest.Login))
			}
		}
	}
}

// TestAuthRefused: a wrong password is the operator's fault. No mail is lost for it, the next relay is used, and the log says
// so once in each cool-down.
func TestAuthRefused(t *testing.T) {
	s := startServer(t, smtptest.Options{Auth: []string{"PLAIN", "LOGIN"}, User: "proa", Password: "right"})
	next := startServer(t, smtptest.Options{})
	for _, c := range []struct{ auth, says string }{{"plain", "Wrong user"}, {"login", "Wrong user"}, {"cram-md5", "does not offer AUTH CRAM-MD5"}} {
		r := deliver.Relay{Addr: s.Addr, TLS: deliver.TLSNone, Auth: c.auth, User: "proa", Password: "hunter2"}
		alone, w := newWorld(t, r), newWorld(t, r, clear(next))
		f := failureOf(t, alone.send(t, "ann@example.org"))
		if f.Permanent || f.RetryAfter == 0 || !strings.Contains(f.Error(), c.says) || strings.Contains(f.Error(), "hunter2") {
			t.Errorf("%s: got %+v", c.auth, f)
		}
		for range 3 {
			w.mustSend(t, "ann@example.org")
		}
		w.pass(10 * time.Second)
		w.mustSend(t, "ann@example.org")
		if log := w.log.String(); strings.Count(log, "level=ERROR") != 2 || strings.Contains(log, "hunter2") {
			t.Errorf("%s: want one error in each of two cool-downs:\n%s", c.auth, log)
		}
	}
	if next.Accepted() != 12 {
		t.Errorf("%d mails at the next relay, want 12", next.Accepted())
	}

	s.Do(smtptest.At(smtptest.Login, smtptest.Refuse("454 4.7.0 hunter2 cannot be checked now")))
	w := newWorld(t, deliver.Relay{Addr: s.Addr, TLS: deliver.TLSNone, Auth: "plain", User: "proa", Password: "hunter2"})
	if f := failureOf(t, w.send(t, "ann@example.org")); f.Code != 454 || strings.Contains(f.Error()+w.log.String(), "hunter2") || strings.Contains(w.log.String(), "ERROR") {
		t.Errorf("got %v and the log\n%s", f, w.log)
	}
}

// TestPasswordNotBared holds a relay that was not read by ParseRelay to the same rule.
func TestPasswordNotBared(t *testing.T) {
	s := startServer(t, smtptest.Options{Auth: []string{"PLAIN"}, User: "proa", Password: "hunter2"})
	_, port, _ := strings.Cut(s.Addr, ":")
	w := newWorld(t, deliver.Relay{Addr: "localhost.:" + port, TLS: deliver.TLSNone, Auth: "plain", User: "proa", Password: "hunter2"})
	f := failureOf(t, w.send(t, "ann@example.org"))
	if f.Permanent || s.Count(smtptest.Login) != 0 || (s.Conns() > 0 && !strings.Contains(f.Error(), "unencrypted")) {
		t.Errorf("got %v after %d logins", f, s.Count(smtptest.Login))
	}
}

func relayTo(s *smtptest.Server, mode deliver.TLSMode) deliver.Relay {
	return deliver.Relay{Addr: s.Addr, TLS: mode, RootCAs: s.RootCAs}
}

func TestTLS(t *testing.T) {
	ca, err := smtptest.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	certificate := func(name string) *tls.Certificate {
		c, err := ca.Certificate(name)
		if err != nil {
			t.Fatal(err)
		}
		return &c
	}
	const none, opportunistic, start, implicit = deliver.TLSNone, deliver.TLSOpportunistic, deliver.TLSStart, deliver.TLSImplicit
	for name, c := range map[string]struct {
		server     smtptest.Options
		mode       deliver.TLSMode
		distrust   bool
		serverName string
		ok, tls    bool
		operator   bool // it is for an operator to see to
	}{
		"none":                           {mode: none, ok: true},
		"none, though STARTTLS is there": {server: smtptest.Options{Security: smtptest.Upgrade}, mode: none, ok: true},
		"opportunistic without":          {mode: opportunistic, ok: true},
		"opportunistic with":             {server: smtptest.Options{Security: smtptest.Upgrade}, mode: opportunistic, ok: true, tls: true},
		"opportunistic, unknown CA":      {server: smtptest.Options{Security: smtptest.Upgrade}, mode: opportunistic, distrust: true, operator: true},
		"starttls":                       {server: smtptest.Options{Security: smtptest.Upgrade}, mode: start, ok: true, tls: true},
		"starttls is what is meant":      {server: smtptest.Options{Security: smtptest.Upgrade}, ok: true, tls: true},
		"starttls stripped":              {mode: start, operator: true},
		"starttls, unknown CA":           {server: smtptest.Options{Security: smtptest.Upgrade}, mode: start, distrust: true, operator: true},
		"starttls, wrong name":           {server: smtptest.Options{Security: smtptest.Upgrade, Certificate: certificate("evil.example.org")}, mode: start, operator: true},
		"starttls, name as told":         {server: smtptest.Options{Security: smtptest.Upgrade, Certificate: certificate("mail.example.org")}, mode: start, serverName: "mail.example.org", ok: true, tls: true},
		"implicit":                       {server: smtptest.Options{Security: smtptest.Implicit}, mode: implicit, ok: true, tls: true},
		"implicit, unknown CA":           {server: smtptest.Options{Security: smtptest.Implicit}, mode: implicit, distrust: true, operator: true},
		"implicit, wrong name":           {server: smtptest.Options{Security: smtptest.Implicit, Certificate: certificate("evil.example.org")}, mode: implicit, operator: true},
		"implicit at a server in clear":  {mode: implicit},
		"starttls at an implicit server": {server: smtptest.Options{Security: smtptest.Implicit}, mode: start},
	} {
		t.Run(name, func(t *testing.T) {
			c.server.Keep = true
			s := startServer(t, c.server)
			r := relayTo(s, c.mode)
			r.ServerName = c.serverName
			if c.server.Certificate != nil || c.distrust {
				r.RootCAs = ca.Pool
			}
			w := newWorld(t, r)
			w.CommandTimeout, w.DialTimeout = 200*time.Millisecond, 200*time.Millisecond
			if c.ok {
				w.mustSend(t, "ann@example.org")
				w.mustSend(t, "bob@example.org")
				if m := s.Mails()[1]; m.TLS != c.tls || s.Conns() != 1 {
					t.Errorf("encrypted: %v, over %d connections", m.TLS, s.Conns())
				}
				return
			}
			f := failureOf(t, w.send(t, "ann@example.org"))
			if f.Permanent || f.RetryAfter == 0 || s.Accepted() != 0 || s.Count(smtptest.From) != 0 {
				t.Errorf("got %+v, and %d MAIL came through, want a transient failure and none", f, s.Count(smtptest.From))
			}
			if strings.Contains(w.log.String(), "level=ERROR") != c.operator {
				t.Errorf("an operator has to act: %v, but the log says\n%s", c.operator, w.log)
			}
		})
	}
}

// TestTLSFaults breaks STARTTLS half way: nothing goes on in clear text.
func TestTLSFaults(t *testing.T) {
	for _, act := range []smtptest.Act{
		smtptest.Refuse("454 4.7.0 Not now"), smtptest.Refuse("502 5.5.1 No"), {Drop: true}, {Stall: true}, {Reply: "220 Go ahead"},
	} {
		for _, mode := range []deliver.TLSMode{deliver.TLSStart, deliver.TLSOpportunistic} {
			s := startServer(t, smtptest.Options{Security: smtptest.Upgrade})
			s.Do(smtptest.At(smtptest.StartTLS, act))
			w := newWorld(t, relayTo(s, mode))
			w.CommandTimeout = 100 * time.Millisecond
			f := failureOf(t, w.send(t, "ann@example.org"))
			if f.Permanent || f.RetryAfter == 0 || s.Count(smtptest.From) != 0 {
				t.Errorf("%+v: got %+v and %d MAIL", act, f, s.Count(smtptest.From))
			}
		}
	}
}

// TestAnotherServer sends to a server that is not ours, which has its own mind about the protocol.
func TestAnotherServer(t *testing.T) {
	ca, err := smtptest.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	cert, err := ca.Certificate("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 3)
	s := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &inbox{got: got}, nil }))
	s.Domain, s.EnableSMTPUTF8, s.TLSConfig = "example.org", true, &tls.Config{Certificates: []tls.Certificate{cert}}
	go func() { _ = s.Serve(l) }()
	defer func() { _ = s.Close() }()
	w := newWorld(t, deliver.Relay{Addr: l.Addr().String(), RootCAs: ca.Pool, Auth: "plain", User: "proa", Password: "hunter2"})
	for _, to := range []string{"ann@example.org", "änn@example.org"} {
		w.mustSend(t, to)
		if have, want := <-got, "bounces+1@example.org "+to+" "+string(envelope(to).Raw); have != want {
			t.Errorf("got %q, want %q", have, want)
		}
	}
	if err := w.send(t, "nobody@example.org"); !deliver.Permanent(err) {
		t.Errorf("got %v", err)
	}
	w.mustSend(t, "bob@example.org")
}

// inbox is a session with the other server.
type inbox struct {
	got      chan string
	from, to string
	user     bool
}

func (i *inbox) AuthMechanisms() []string { return []string{sasl.Plain} }

func (i *inbox) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if i.user = user == "proa" && password == "hunter2"; !i.user {
			return smtp.ErrAuthFailed
		}
		return nil
	}), nil
}

func (i *inbox) Mail(from string, _ *smtp.MailOptions) error {
	if !i.user {
		return smtp.ErrAuthRequired
	}
	i.from = from
	return nil
}

func (i *inbox) Rcpt(to string, _ *smtp.RcptOptions) error {
	if strings.HasPrefix(to, "nobody") {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "Nobody"}
	}
	i.to = to
	return nil
}

func (i *inbox) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	i.got <- i.from + " " + i.to + " " + string(raw)
	return err
}

func (i *inbox) Reset() {}

func (i *inbox) Logout() error { return nil }
