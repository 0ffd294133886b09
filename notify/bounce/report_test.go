package bounce_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/proa-dev/proa/notify/bounce"
)

// mail reads a mail of testdata in the form it travels in: with CR LF.
func mail(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".eml"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\n", "\r\n")
}

func TestParse(t *testing.T) {
	for name, want := range map[string]bounce.Report{
		"postfix-unknown":   {Hard: true, Action: "failed", Status: "5.1.1", Recipient: "alice@example.org", Diagnostic: "550 5.1.1 <alice@example.org>: Recipient address rejected: User unknown"},
		"postfix-headers":   {Hard: true, Action: "failed", Status: "5.1.1", Recipient: "alice@example.org", Diagnostic: "550 5.1.1 <alice@example.org>: Recipient address rejected: User unknown"},
		"postfix-utf8":      {Hard: true, Action: "failed", Status: "5.1.1", Recipient: "zoë@example.org", Diagnostic: "550 5.1.1 <zoë@example.org>: Recipient address rejected: User unknown"},
		"postfix-delivered": {Action: "delivered", Status: "2.0.0", Recipient: "alice@example.org", Diagnostic: "delivery via virtual: delivered to maildir"},
		"postfix-delayed":   {Action: "delayed", Status: "4.2.1", Recipient: "alice@example.org", Diagnostic: "450 4.2.1 <alice@example.org>: Recipient address rejected: The mailbox is busy, try again later"},
		"postfix-expired":   {Action: "failed", Status: "4.2.1", Recipient: "alice@example.org", Diagnostic: "450 4.2.1 <alice@example.org>: Recipient address rejected: The mailbox is busy, try again later"},
		"exim":              {Hard: true, Action: "failed", Status: "5.1.1", Recipient: "alice@example.org", Diagnostic: "550 5.1.1 <alice@example.org>: no mailbox here by that name"},
		"exim-timeout":      {Action: "failed", Status: "4.3.0", Recipient: "alice@example.org", Diagnostic: "451 4.3.0 Temporary lookup failure"},
		"exim-plain":        {Recipient: "alice@example.org", Diagnostic: "Mail delivery failed: returning message to sender"},
		"qmail":             {Diagnostic: "failure notice"},
		"exchange":          {Hard: true, Action: "failed", Status: "5.1.10", Recipient: "alice@example.org", Diagnostic: "550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient alice@example.org not found by SMTP address lookup"},
		"several-lines":     {Hard: true, Action: "failed", Status: "5.1.1", Recipient: "alice@example.org", Diagnostic: "550-5.1.1 The email account that you tried to reach does not exist. 550-5.1.1 Please try double-checking the recipient's email address for typos 550 5.1.1 or unnecessary spaces. - gsmtp"},
		"forwarded":         {Action: "failed", Status: "4.2.2", Recipient: "alice@example.org", Diagnostic: "452 4.2.2 The mailbox is full"},
		"wrapped":           {Hard: true, Action: "failed", Status: "5.2.1", Recipient: "alice@example.org", Diagnostic: "550 5.2.1 The mailbox is disabled"},
		"quoted":            {Diagnostic: "Look what came back to me"},
	} {
		t.Run(name, func(t *testing.T) {
			want.DeliveryID = id
			text := mail(t, name)
			for ending, reader := range map[string]io.Reader{
				"CR LF":         strings.NewReader(text),
				"LF":            strings.NewReader(strings.ReplaceAll(text, "\r\n", "\n")),
				"byte by byte":  iotest.OneByteReader(strings.NewReader(text)),
				"a longer tail": strings.NewReader(text + strings.Repeat("x", 2<<20)),
			} {
				got, err := bounce.Parse(id, reader)
				if err != nil || got != want {
					t.Errorf("%s: got %+v, %v\nwant %+v", ending, got, err, want)
				}
			}
		})
	}
}

func TestParsePassesOver(t *testing.T) {
	for _, name := range []string{"vacation", "receipt"} {
		if got, err := bounce.Parse(id, strings.NewReader(mail(t, name))); !errors.Is(err, bounce.ErrNotReport) || got != (bounce.Report{}) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
	for name, head := range map[string]string{
		"a comment":    "Auto-Submitted: Auto-Replied (vacation)",
		"an old habit": "Precedence: auto_reply",
		"another":      "X-Autoreply: yes",
		"a complaint":  `Content-Type: multipart/report; report-type=feedback-report; boundary="x"`,
	} {
		if _, err := bounce.Parse(id, strings.NewReader(head+"\r\n\r\nHello\r\n")); !errors.Is(err, bounce.ErrNotReport) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// report wraps fields in a delivery status notification.
func report(fields string) string {
	return "Subject: Sorry\r\nContent-Type: multipart/report; report-type=delivery-status; boundary=x\r\n\r\n" +
		"--x\r\nContent-Type: message/delivery-status\r\n\r\n" + fields + "\r\n--x--\r\n"
}

func TestStatus(t *testing.T) {
	for name, c := range map[string]struct {
		fields string
		want   bounce.Report
	}{
		"in the other order of blocks":  {"Status: 5.1.1\r\nAction: failed\r\nFinal-Recipient: rfc822;a@b\r\n\r\nReporting-MTA: dns; x", bounce.Report{Hard: true, Action: "failed", Status: "5.1.1", Recipient: "a@b"}},
		"in one block":                  {"Reporting-MTA: dns; x\r\nAction: failed\r\nStatus: 5.1.1", bounce.Report{Hard: true, Action: "failed", Status: "5.1.1"}},
		"no action":                     {"Final-Recipient: rfc822;a@b\r\nStatus: 5.1.1", bounce.Report{Status: "5.1.1", Recipient: "a@b"}},
		"an unheard action":             {"Action: exploded\r\nStatus: 5.1.1", bounce.Report{Status: "5.1.1"}},
		"no status":                     {"Action: failed", bounce.Report{Action: "failed"}},
		"no status but a reply":         {"Action: failed\r\nDiagnostic-Code: smtp; 554 go away", bounce.Report{Hard: true, Action: "failed", Status: "5.0.0", Diagnostic: "554 go away"}},
		"a number is not a reply":       {"Action: failed\r\nDiagnostic-Code: x-unix; 5540 bananas", bounce.Report{Action: "failed", Diagnostic: "5540 bananas"}},
		"a status of another world":     {"Action: failed\r\nStatus: 9.1.1", bounce.Report{Action: "failed"}},
		"a status of many digits":       {"Action: failed\r\nStatus: 5.1.1111111", bounce.Report{Action: "failed"}},
		"delayed for good":              {"Action: delayed\r\nStatus: 5.1.1", bounce.Report{Action: "delayed", Status: "5.1.1"}},
		"the first of two fields":       {"Action: delayed\r\nAction: failed\r\n \tmore\r\nStatus: 4.0.0", bounce.Report{Action: "delayed", Status: "4.0.0"}},
		"lines that are no fields":      {"??\r\n and more\r\nAction: failed\r\n%%\r\nStatus: 5.1.1", bounce.Report{Hard: true, Action: "failed", Status: "5.1.1"}},
		"a blank line of blanks":        {"Reporting-MTA: dns; x\r\n \t \r\nAction: failed\r\nStatus: 5.1.1", bounce.Report{Hard: true, Action: "failed", Status: "5.1.1"}},
		"delivered here, failed there":  {"Action: delivered\r\nStatus: 2.0.0\r\n\r\nAction: failed\r\nStatus: 5.1.1", bounce.Report{Hard: true, Action: "failed", Status: "5.1.1"}},
		"control and bidi characters":   {"Action: failed\r\nStatus: 5.1.1\r\nDiagnostic-Code: smtp; 550 a\x00b\x1b[31m\u202ec\u2028d\xff", bounce.Report{Hard: true, Action: "failed", Status: "5.1.1", Diagnostic: "550 a b [31m c d�"}},
		"a recipient that is none":      {"Action: failed\r\nFinal-Recipient: rfc822; no one at all", bounce.Report{Action: "failed"}},
		"a recipient that is too long":  {"Action: failed\r\nFinal-Recipient: rfc822; a@" + strings.Repeat("b", 400), bounce.Report{Action: "failed"}},
		"an original of another system": {"Action: failed\r\nOriginal-Recipient: x400; none\r\nFinal-Recipient: rfc822; a@b", bounce.Report{Action: "failed", Recipient: "a@b"}},
		"empty":                         {"", bounce.Report{Diagnostic: "Sorry"}},
		"only about the mail":           {"Reporting-MTA: dns; x", bounce.Report{Diagnostic: "Sorry"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := bounce.Parse("", strings.NewReader(report(c.fields))); err != nil || got != c.want {
				t.Errorf("got %+v, %v\nwant %+v", got, err, c.want)
			}
		})
	}
}

// TestHostile holds mails that want more than their share of memory or time.
func TestHostile(t *testing.T) {
	const enough = 1 << 20
	deep := "Content-Type: multipart/mixed; boundary=a\r\n\r\n"
	for range 1000 {
		deep += "--a\r\nContent-Type: multipart/mixed; boundary=a\r\n\r\n"
	}
	hidden := strings.Repeat("--x\r\n\r\n\r\n", 30)
	for name, c := range map[string]struct {
		mail string
		want bounce.Report
	}{
		"a long diagnostic":        {report("Action: failed\r\nStatus: 5.1.1\r\nDiagnostic-Code: smtp; " + strings.Repeat("ü", enough)), bounce.Report{Hard: true, Action: "failed", Status: "5.1.1", Diagnostic: strings.Repeat("ü", 500)}},
		"many continued lines":     {report("Action: failed\r\nStatus: 5.1.1\r\nX: y" + strings.Repeat("\r\n z", enough/4)), bounce.Report{Hard: true, Action: "failed", Status: "5.1.1"}},
		"many blocks":              {report(strings.Repeat("Action: delayed\r\n\r\n", enough/20)), bounce.Report{Action: "delayed"}},
		"multiparts in multiparts": {deep, bounce.Report{}},
		"too many parts":           {strings.Replace(report("Action: failed\r\nStatus: 5.1.1"), "--x\r\n", hidden+"--x\r\n", 1), bounce.Report{Diagnostic: "Sorry"}},
		"nothing":                  {"", bounce.Report{}},
		"an empty boundary":        {"Content-Type: multipart/report; boundary=\"\"\r\n\r\n--\r\n\r\n----\r\n", bounce.Report{}},
		"a long boundary":          {"Content-Type: multipart/report; boundary=" + strings.Repeat("x", 8192) + "\r\n\r\n--" + strings.Repeat("x", 8192) + "\r\n\r\n", bounce.Report{}},
		"a type that is no type":   {"Content-Type: ;;;=\"\r\n\r\nhello", bounce.Report{}},
		"an unknown encoding":      {strings.Replace(report("Action: failed\r\nStatus: 5.1.1"), "\r\n\r\n--x\r\n", "\r\n\r\n--x\r\nContent-Transfer-Encoding: x-uuencode\r\n", 1), bounce.Report{Hard: true, Action: "failed", Status: "5.1.1"}},
		"an unknown charset":       {"Subject: =?klingon?q?Qapla'?=\r\nContent-Type: text/plain; charset=klingon\r\n\r\nhello", bounce.Report{Diagnostic: "=?klingon?q?Qapla'?="}},
		"broken base64":            {strings.Replace(report("Action: failed\r\nStatus: 5.1.1"), "\r\n\r\nAction", "\r\nContent-Transfer-Encoding: base64\r\n\r\nAction", 1), bounce.Report{Diagnostic: "Sorry"}},
	} {
		t.Run(name, func(t *testing.T) {
			since := time.Now()
			if got, err := bounce.Parse("", strings.NewReader(c.mail)); err != nil || got != c.want {
				t.Errorf("got %+v, %v\nwant %+v", got, err, c.want)
			}
			if took := time.Since(since); took > 5*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
	for name, text := range map[string]string{
		"no header":            "hello\r\n\r\nthere",
		"an endless header":    strings.Repeat("A: b\r\n", enough),
		"a header of one line": "A: " + strings.Repeat("b", enough),
	} {
		if got, err := bounce.Parse("", strings.NewReader(text)); err == nil || got != (bounce.Report{}) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	names, err := filepath.Glob("testdata/*.eml")
	if err != nil || len(names) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, name := range names {
		f.Add(mail(f, strings.TrimSuffix(filepath.Base(name), ".eml")))
	}
	f.Add(report("Action: failed\r\n"))
	f.Fuzz(func(t *testing.T, text string) {
		r, err := bounce.Parse(id, strings.NewReader(text))
		if err != nil {
			if r != (bounce.Report{}) {
				t.Errorf("an error and a report: %+v", r)
			}
			return
		}
		if r.DeliveryID != id {
			t.Errorf("it is about %q", r.DeliveryID)
		}
		if r.Hard && (r.Action != "failed" || !strings.HasPrefix(r.Status, "5.")) {
			t.Errorf("hard: %+v", r)
		}
		if len(r.Status) > 9 || len(r.Action) > 9 || len(r.Recipient) > 320 || utf8.RuneCountInString(r.Diagnostic) > 500 {
			t.Errorf("too long: %+v", r)
		}
		for _, s := range []string{r.Status, r.Action, r.Diagnostic, r.Recipient} {
			if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) || strings.ContainsAny(s, "\u2028\u2029\u202e") {
				t.Errorf("not clean: %q", s)
			}
		}
	})
}
