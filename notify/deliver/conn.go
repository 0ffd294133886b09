package deliver

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail/smtp"
)

// conn is one connection to a relay, greeted, encrypted and logged in as the relay's settings say. One mail at a time uses it.
type conn struct {
	relay   *relay
	tcp     net.Conn
	smtp    *smtp.Client
	timeout time.Duration // for each step, at least

	pipelining, eightBit, utf8, size bool // what the relay offers

	mails    int       // begun on this connection
	dirty    bool      // a mail was refused half way: RSET comes before the next
	spoilt   bool      // interrupted, or out of step: not to be used again
	deadline time.Time // of what it waits for
	resting  time.Time // since when it is idle
	out      []byte    // what is written next
}

const (
	quitTimeout = time.Second
	maxBuffer   = 64 << 10 // bytes of out to keep between mails
)

// open connects to a relay and makes the connection ready for mails.
func open(ctx context.Context, r *relay, dialFor, answerFor time.Duration) (*conn, *Failure) {
	dialer := net.Dialer{Timeout: dialFor}
	tcp, err := dialer.DialContext(ctx, "tcp", r.Addr)
	if err != nil {
		return nil, lineFault(ctx, absent, err)
	}
	c := &conn{relay: r, tcp: tcp, timeout: answerFor}
	stop := context.AfterFunc(ctx, c.interrupt)
	f := c.ready(ctx, dialFor)
	if !stop() && f == nil {
		f = lineFault(ctx, absent, ctx.Err())
	}
	if f != nil {
		_ = tcp.Close()
		return nil, f
	}
	return c, nil
}

// interrupt ends whatever the connection waits for.
func (c *conn) interrupt() { _ = c.tcp.SetDeadline(time.Unix(1, 0)) }

// within gives the next step so much time, up to twice as much, or less if the caller gives up. Moving the deadline only when
// there is too little left of it spares most mails a visit to the runtime's timers.
func (c *conn) within(ctx context.Context, d time.Duration) {
	now := time.Now()
	if left := c.deadline.Sub(now); left >= d && left <= 2*d {
		return
	}
	c.deadline = now.Add(2 * d)
	_ = c.tcp.SetDeadline(c.deadline)
	if ctx.Err() != nil { // given up before the deadline was set: interrupt came too early
		c.interrupt()
	}
}

func (c *conn) ready(ctx context.Context, dialFor time.Duration) *Failure {
	wire := c.tcp
	if c.relay.TLS == TLSImplicit {
		c.within(ctx, dialFor)
		encrypted := tls.Client(c.tcp, c.relay.tls)
		if err := encrypted.HandshakeContext(ctx); err != nil {
			return lineFault(ctx, absent, err)
		}
		wire = encrypted
	}
	c.within(ctx, c.timeout)
	client, err := smtp.NewClient(wire, c.relay.host())
	if err != nil {
		return openFault(ctx, absent, err)
	}
	c.smtp = client
	c.within(ctx, c.timeout)
	if err := client.Hello(c.relay.Hello); err != nil {
		return openFault(ctx, absent, err)
	}
	if f := c.encrypt(ctx); f != nil {
		return f
	}
	if f := c.login(ctx); f != nil {
		return f
	}
	c.pipelining, _ = client.Extension("PIPELINING")
	c.eightBit, _ = client.Extension("8BITMIME")
	c.utf8, _ = client.Extension("SMTPUTF8")
	c.size, _ = client.Extension("SIZE")
	return nil
}

// encrypt upgrades the line where STARTTLS is wanted. What fails here never goes on in clear text.
func (c *conn) encrypt(ctx context.Context) *Failure {
	if c.relay.TLS == TLSImplicit || c.relay.TLS == TLSNone {
		return nil
	}
	if offered, _ := c.smtp.Extension("STARTTLS"); !offered {
		if c.relay.TLS == TLSOpportunistic {
			return nil
		}
		return &Failure{kind: misset, Reason: "The mail relay does not offer the encryption (STARTTLS) that is demanded of it."}
	}
	c.within(ctx, c.timeout)
	if err := c.smtp.StartTLS(c.relay.tls); err != nil {
		return openFault(ctx, misset, err)
	}
	return nil
}

func (c *conn) login(ctx context.Context) *Failure {
	r := c.relay
	if r.Auth == "" {
		return nil
	}
	f := &Failure{kind: misset, Reason: "The mail relay did not accept our login."}
	_, encrypted := c.smtp.TLSConnectionState()
	if r.bares() && !encrypted {
		f.Cause = errors.New("a readable password is not sent over an unencrypted line")
		return f
	}
	_, offered := c.smtp.Extension("AUTH")
	if !slices.Contains(strings.Fields(offered), strings.ToUpper(r.Auth)) {
		f.Cause = fmt.Errorf("the relay does not offer AUTH %s", strings.ToUpper(r.Auth))
		return f
	}
	auth := smtp.CRAMMD5Auth(r.User, r.Password)
	switch r.Auth {
	case "plain":
		auth = smtp.PlainAuth("", r.User, r.Password, r.host(), true)
	case "login":
		auth = smtp.LoginAuth(r.User, r.Password, r.host(), true)
	}
	c.within(ctx, c.timeout)
	err := c.smtp.Auth(auth)
	if err == nil {
		return nil
	}
	why := openFault(ctx, misset, err)
	if why.Code == 0 {
		return why
	}
	f.Code, f.Enhanced, f.kind = why.Code, why.Enhanced, why.kind
	f.Cause = errors.New(strings.ReplaceAll(why.Reason, r.Password, "…"))
	return f
}

// send hands over one letter. The kind of the failure says what the connection is good for afterwards.
func (c *conn) send(ctx context.Context, l *letter) *Failure {
	if l.utf8 && !c.utf8 {
		return &Failure{Permanent: true, Reason: "The mail relay takes no addresses with letters beyond ASCII (SMTPUTF8)."}
	}
	c.mails++
	stop := context.AfterFunc(ctx, c.interrupt)
	f := c.envelope(ctx, l)
	if f == nil {
		f = c.body(ctx, l)
	}
	c.spoilt = !stop() || c.spoilt
	return f
}

// envelope says MAIL, RCPT and DATA, in one write where the relay takes that (RFC 2920). Until it returns nil, the relay has no
// byte of the mail.
func (c *conn) envelope(ctx context.Context, l *letter) *Failure {
	ends := c.commands(l)
	var no *Failure
	start := 0
	for i, end := range ends {
		if !c.pipelining || i == 0 {
			if c.pipelining {
				end = ends[len(ends)-1]
			}
			c.within(ctx, c.timeout)
			if err := c.write(c.out[start:end]); err != nil {
				return lineFault(ctx, broken, err)
			}
			start = end
		}
		code, text, err := c.reply()
		if err != nil {
			if no != nil && no.kind == goodbye {
				return no
			}
			return lineFault(ctx, broken, err)
		}
		isData := i == len(ends)-1
		switch {
		case isData && code == 354 && no != nil: // refused, and yet the relay listens: give it nothing
			return c.nothing(ctx, no)
		case isData && code == 354, !isData && code/100 == 2, no != nil:
		case code < 400 || c.dirty && i == 0:
			return lineFault(ctx, broken, fmt.Errorf("unexpected reply %d", code))
		default:
			no = refusal(code, text, l)
		}
		if no != nil && (!c.pipelining || no.kind == goodbye) {
			break
		}
	}
	c.dirty = no != nil
	return no
}

// commands puts the commands for a letter into out and returns where each ends.
func (c *conn) commands(l *letter) []int {
	out, ends := c.out[:0], make([]int, 0, 4)
	if c.dirty {
		out = append(out, "RSET\r\n"...)
		ends = append(ends, len(out))
	}
	out = append(append(append(out, "MAIL FROM:<"...), l.from...), '>')
	if c.size {
		out = strconv.AppendInt(append(out, " SIZE="...), int64(len(l.raw)), 10)
	}
	if c.eightBit && l.eightBit {
		out = append(out, " BODY=8BITMIME"...)
	}
	if l.utf8 {
		out = append(out, " SMTPUTF8"...)
	}
	out = append(out, '\r', '\n')
	ends = append(ends, len(out))
	out = append(append(append(out, "RCPT TO:<"...), l.to...), ">\r\n"...)
	ends = append(ends, len(out))
	out = append(out, "DATA\r\n"...)
	c.out = out
	return append(ends, len(out))
}

// nothing ends a DATA that was let through although there is no recipient, and leaves the refusal as it is.
func (c *conn) nothing(ctx context.Context, no *Failure) *Failure {
	err := c.write([]byte(".\r\n"))
	if err == nil {
		_, _, err = c.reply()
	}
	c.dirty = true
	c.spoilt = err != nil || ctx.Err() != nil
	return no
}

// body writes the mail and waits for the verdict. Once it has begun, nobody knows what the relay has until the relay says so.
func (c *conn) body(ctx context.Context, l *letter) *Failure {
	c.out = l.appendData(c.out[:0])
	c.within(ctx, c.timeout)
	wrote := c.write(c.out)
	if cap(c.out) > maxBuffer {
		c.out = nil
	}
	if wrote != nil && ctx.Err() == nil {
		c.within(ctx, quitTimeout) // it may have said why before it hung up
	}
	code, text, err := c.reply()
	switch {
	case wrote != nil && (err != nil || code < 400):
		return lineFault(ctx, unsure, wrote)
	case err != nil:
		return lineFault(ctx, unsure, err)
	case code/100 == 2:
		return nil
	case code < 400:
		return lineFault(ctx, unsure, fmt.Errorf("unexpected reply %d", code))
	}
	no := refusal(code, text, l)
	if wrote != nil || no.kind == goodbye {
		no.kind = unsure
	}
	return no
}

const maxReply = 64 << 10 // bytes

var errReply = errors.New("the relay sent something that is not a reply")

// reply reads one reply. The words are only kept of one that is a no.
func (c *conn) reply() (code int, words string, err error) {
	for read := 0; ; {
		line, err := c.smtp.Text.R.ReadSlice('\n')
		if err != nil {
			return 0, "", err
		}
		read += len(line)
		line = bytes.TrimSuffix(line[:len(line)-1], []byte("\r"))
		code, err := strconv.Atoi(string(line[:min(3, len(line))]))
		if err != nil || code < 200 || code > 599 || len(line) > 3 && line[3] != ' ' && line[3] != '-' || read > maxReply {
			return 0, "", errReply
		}
		if code >= 400 {
			words += "\n" + string(line[min(4, len(line)):])
		}
		if len(line) == 3 || line[3] == ' ' {
			return code, strings.TrimPrefix(words, "\n"), nil
		}
	}
}

func (c *conn) write(b []byte) error {
	if _, err := c.smtp.Text.W.Write(b); err != nil {
		return err
	}
	return c.smtp.Text.W.Flush()
}

// quit takes leave as is proper, without waiting long for an answer.
func (c *conn) quit() {
	_ = c.tcp.SetDeadline(time.Now().Add(quitTimeout))
	_ = c.smtp.Quit()
	_ = c.tcp.Close()
}
