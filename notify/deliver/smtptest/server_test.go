package smtptest_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/proa-dev/proa/notify/deliver/smtptest"
)

func start(t *testing.T, opt smtptest.Options) *smtptest.Server {
	t.Helper()
	s, err := smtptest.Start(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// TestAnotherClient lets a client that is not ours talk to the server.
func TestAnotherClient(t *testing.T) {
	s := start(t, smtptest.Options{Keep: true, Security: smtptest.Upgrade, Auth: []string{"PLAIN"}, User: "proa", Password: "hunter2"})
	c, err := smtp.DialStartTLS(s.Addr, &tls.Config{RootCAs: s.RootCAs, ServerName: "localhost"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.Auth(sasl.NewPlainClient("", "proa", "hunter2")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.SendMail("a@example.org", []string{"b@example.org"}, strings.NewReader("Subject: x\r\n\r\n.dot\r\n")); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Quit(); err != nil {
		t.Fatal(err)
	}
	mails := s.Mails()
	if len(mails) != 2 || mails[1].From != "a@example.org" || mails[1].To != "b@example.org" ||
		string(mails[1].Raw) != "Subject: x\r\n\r\n.dot\r\n" || !mails[1].TLS || mails[1].User != "proa" {
		t.Errorf("got %+v", mails)
	}
}

// TestRefuses has the server refuse what real ones refuse. Each line is a session: what is said, and the code of each answer.
func TestRefuses(t *testing.T) {
	for _, c := range []struct {
		opt   smtptest.Options
		said  string
		codes string
	}{
		{smtptest.Options{}, "MAIL FROM:<a@b>", "503"},
		{smtptest.Options{}, "EHLO x|RCPT TO:<a@b>", "250 503"},
		{smtptest.Options{}, "EHLO x|MAIL FROM:<a@b>|DATA", "250 250 503"},
		{smtptest.Options{}, "EHLO x|MAIL FROM:<a@b>|MAIL FROM:<a@b>", "250 250 503"},
		{smtptest.Options{}, "EHLO x|MAIL FROM:a@b", "250 501"},
		{smtptest.Options{}, "EHLO x|MAIL FROM:<a@b> NOTIFY=NEVER", "250 555"},
		{smtptest.Options{}, "EHLO x|MAIL FROM:<ä@b>", "250 553"},
		{smtptest.Options{No8Bit: true}, "EHLO x|MAIL FROM:<ä@b> SMTPUTF8", "250 555"},
		{smtptest.Options{}, "EHLO x|MAIL FROM:<>|RCPT TO:<>", "250 250 501"},
		{smtptest.Options{}, "EHLO x|MAIL FROM:<>|RCPT TO:<a@b>|RCPT TO:<c@d>", "250 250 250 452"},
		{smtptest.Options{}, "EHLO x|MAIL FROM:<>|RCPT TO:<a@b>|DATA|bare\nline\r\n.", "250 250 250 354 550"},
		{smtptest.Options{}, "EHLO x|STARTTLS", "250 502"},
		{smtptest.Options{}, "EHLO", "501"},
		{smtptest.Options{}, "VRFY a", "500"},
		{smtptest.Options{}, strings.Repeat("x", 2000), "500"},
		{smtptest.Options{NoPipelining: true}, "EHLO x|MAIL FROM:<>\r\nRCPT TO:<a@b>", "250 554"},
		{smtptest.Options{Auth: []string{"PLAIN"}, User: "u", Password: "p"}, "EHLO x|MAIL FROM:<>", "250 530"},
		{smtptest.Options{Auth: []string{"PLAIN"}, User: "u", Password: "p"}, "EHLO x|AUTH LOGIN", "250 504"},
		{smtptest.Options{Auth: []string{"PLAIN"}, User: "u", Password: "p"}, "EHLO x|AUTH PLAIN AHUAcQ==", "250 535"},
		{smtptest.Options{Auth: []string{"PLAIN"}, User: "u", Password: "p"}, "EHLO x|AUTH PLAIN ?", "250 501"},
		{smtptest.Options{Security: smtptest.Upgrade, Auth: []string{"PLAIN"}, User: "u", Password: "p"}, "EHLO x|AUTH PLAIN AHUAcA==", "250 538"},
	} {
		if got := talk(t, start(t, c.opt), strings.Split(c.said, "|")); got != c.codes {
			t.Errorf("%.80q was answered with %s, want %s", c.said, got, c.codes)
		}
	}
}

func talk(t *testing.T, s *smtptest.Server, said []string) string {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	r := bufio.NewReader(c)
	var codes []string
	for i := range len(said) + 1 {
		if i > 0 {
			fmt.Fprintf(c, "%s\r\n", said[i-1])
		}
		for {
			line, err := r.ReadString('\n')
			if err != nil || len(line) < 4 {
				t.Fatalf("%q: %q, %v", said, line, err)
			}
			if line[3] == ' ' {
				codes = append(codes, line[:3])
				break
			}
		}
	}
	return strings.Join(codes[1:], " ")
}
