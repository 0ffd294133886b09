package deliver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"regexp"
	"strings"
	"time"
	"unicode"
)

// Failure is why a mail was not delivered: the error of Send.
type Failure struct {
	Permanent  bool          // trying again is of no use
	Code       int           // of the relay's reply; 0 when there was none
	Enhanced   string        // such as 5.1.1; empty when the relay gave none
	Reason     string        // one line for people: the relay's words, or ours when there were none
	RetryAfter time.Duration // set when no relay can be reached: how long until one is tried again. The mail is not to blame.
	Cause      error         // for the log; nil when the relay said it all

	kind kind
}

// kind decides what becomes of the connection and whether the mail is tried again at once.
type kind int

const (
	judged    kind = iota // the relay said no to this mail: its answer stands
	absent                // the relay cannot be reached or does not want us now
	misset                // the relay cannot be used until an operator acts: certificate, TLS, password
	goodbye               // the relay ended the session before it had a byte of the mail
	broken                // the line broke before the relay had a byte of the mail
	unsure                // the line broke afterwards: the relay may have the mail
	cancelled             // the caller gave up
)

func (f *Failure) Error() string {
	var b strings.Builder
	if f.Code != 0 {
		fmt.Fprintf(&b, "%d ", f.Code)
	}
	if f.Enhanced != "" {
		b.WriteString(f.Enhanced + " ")
	}
	b.WriteString(f.Reason)
	if f.Cause != nil {
		fmt.Fprintf(&b, " (%v)", f.Cause)
	}
	return b.String()
}

func (f *Failure) Unwrap() error { return f.Cause }

// Permanent says whether err, from Send, means that trying again is of no use.
func Permanent(err error) bool {
	f, ok := errors.AsType[*Failure](err)
	return ok && f.Permanent
}

// refusal is a relay's no, in its own words.
func refusal(code int, text string, l *letter) *Failure {
	f := &Failure{Code: code}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		enhanced, words := cutEnhanced(line)
		if i == 0 {
			f.Enhanced = enhanced
		}
		lines[i] = words
	}
	f.Reason = oneLine(strings.Join(lines, " "), l)
	f.Permanent = permanent(code, f.Enhanced)
	switch code {
	case 421:
		f.kind = goodbye
	case 530, 534, 535, 538: // log in first, or better: nobody's mail would be taken
		f.kind = misset
	}
	return f
}

// permanent judges a reply. The code decides, except that the enhanced code (RFC 3463) may say that a 5xx is about today only:
// a class of 4, a full mailbox (5.2.2), a full relay (5.3.1), a used up quota (5.4.5).
func permanent(code int, enhanced string) bool {
	switch code {
	case 530, 534, 535, 538:
		return false
	}
	switch enhanced {
	case "5.2.2", "5.3.1", "5.4.5":
		return false
	}
	return code >= 500 && !strings.HasPrefix(enhanced, "4.")
}

var enhancedCode = regexp.MustCompile(`^([245]\.\d{1,3}\.\d{1,3})(?:\s+|$)`)

func cutEnhanced(line string) (enhanced, words string) {
	m := enhancedCode.FindStringSubmatch(line)
	if m == nil {
		return "", line
	}
	return m[1], line[len(m[0]):]
}

const maxReason = 500 // characters

var anyAddress = regexp.MustCompile(`(?:"[^"]*"|[^\s<>()\[\],;:"']+)@(\[[^\]\s]*\]|[^\s<>()\[\],;:"']+)`)

// oneLine makes a relay's words fit to be kept and shown: printable, short, and without anyone's address. Addresses go first,
// so that none is cut in two and missed.
func oneLine(text string, l *letter) string {
	text = strings.ToValidUTF8(text, "?")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, text)
	if l != nil {
		text = l.names().ReplaceAllString(text, "…")
	}
	text = anyAddress.ReplaceAllString(text, "…@$1")
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > maxReason {
		text = string(r[:maxReason-1]) + "…"
	}
	return text
}

// lineFault is a failure below SMTP: the network, TLS or a reply that is none.
func lineFault(ctx context.Context, k kind, err error) *Failure {
	f := &Failure{kind: k, Cause: err, Reason: "The connection to the mail relay broke."}
	if k == unsure {
		f.Reason = "The connection to the mail relay broke before the mail was confirmed."
	}
	var timeout net.Error
	_, badCertificate := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case ctx.Err() != nil:
		f.kind, f.Cause, f.Reason = cancelled, context.Cause(ctx), "The attempt was given up before the mail relay confirmed the mail."
	case badCertificate:
		f.kind, f.Reason = misset, "The certificate of the mail relay was not accepted."
	case errors.As(err, &timeout) && timeout.Timeout():
		f.Reason = "The mail relay did not answer in time."
	case k == absent:
		f.Reason = "The mail relay cannot be reached."
	}
	return f
}

// openFault is a failure while a connection is opened: the relay's no, or a fault of the line.
func openFault(ctx context.Context, k kind, err error) *Failure {
	said, ok := errors.AsType[*textproto.Error](err)
	if !ok {
		return lineFault(ctx, absent, err)
	}
	f := refusal(said.Code, said.Msg, nil)
	f.kind, f.Permanent = k, false // it was not about the mail
	if said.Code < 500 {
		f.kind = absent
	}
	return f
}
