package smtptest

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"time"
)

const (
	maxLine    = 1 << 10  // bytes of a command, with room for SMTPUTF8 addresses
	bufferSize = 32 << 10 // bytes: most mails arrive in one read
)

type session struct {
	srv   *Server
	tcp   net.Conn
	r     *bufio.Reader
	w     *bufio.Writer
	point Point
	hello bool
	tls   bool
	user  string
	mail  Mail
	from  bool // MAIL was accepted
	to    bool // RCPT was accepted
	lost  bool // the line was dropped without a reply
}

// verdict is what became of a step.
type verdict int

const (
	accepted verdict = iota
	refused
	ended
)

func serve(srv *Server, tcp net.Conn, n int64) {
	x := &session{srv: srv, tcp: tcp, point: Point{Conn: n, Mail: 1}}
	x.speakOver(tcp)
	if srv.opt.Security == Implicit && !x.encrypt() {
		return
	}
	if x.at(Greeting, "220 smtptest.invalid ESMTP") == ended {
		return
	}
	for {
		line, ok := x.readLine()
		if !ok || x.command(line) == ended {
			_ = x.w.Flush()
			return
		}
	}
}

func (x *session) speakOver(c net.Conn) {
	x.r, x.w = bufio.NewReaderSize(c, bufferSize), bufio.NewWriter(c)
}

func (x *session) encrypt() bool {
	c := tls.Server(x.tcp, x.srv.tls)
	if c.Handshake() != nil { //nolint:noctx // ends when either side closes the line
		return false
	}
	x.speakOver(c)
	x.tls, x.hello = true, false
	return true
}

// at counts the step and says reply, or does what the server was told to do instead.
func (x *session) at(step Step, reply string) verdict {
	x.srv.counts[step].Add(1)
	if acts := x.srv.acts.Load(); acts != nil {
		x.point.Step = step
		if v := x.act((*acts)(x.point)); v != accepted {
			return v
		}
	}
	if reply != "" {
		x.say(reply)
	}
	return accepted
}

func (x *session) act(act Act) verdict {
	if act != (Act{}) {
		_ = x.w.Flush()
	}
	if act.Wait > 0 {
		select {
		case <-x.srv.done:
		case <-time.After(act.Wait):
		}
	}
	if act.Stall {
		_, _ = io.Copy(io.Discard, x.r)
		return ended
	}
	switch {
	case act.Reply == "" && act.Drop:
		x.lost = true
		return ended
	case act.Reply == "":
		return accepted
	}
	x.say(act.Reply)
	if !act.Drop {
		return refused
	}
	x.hangUp()
	return ended
}

// hangUp lets the client read the last reply: closing with input unread would reset the line and lose it.
func (x *session) hangUp() {
	_ = x.w.Flush()
	if half, ok := x.tcp.(*net.TCPConn); ok {
		_ = half.CloseWrite()
		_ = half.SetReadDeadline(time.Now().Add(time.Second))
		_, _ = io.Copy(io.Discard, half)
	}
}

// say queues a reply. Replies to pipelined commands leave in one write, when there is nothing more to read.
func (x *session) say(reply string) {
	_, _ = x.w.WriteString(reply)
	_, _ = x.w.WriteString("\r\n")
}

func (x *session) refuse(reply string) verdict {
	x.say(reply)
	return refused
}

func (x *session) readLine() ([]byte, bool) {
	if x.r.Buffered() == 0 && x.w.Flush() != nil {
		return nil, false
	}
	line, err := x.r.ReadSlice('\n')
	if err != nil {
		return nil, false
	}
	return bytes.TrimRight(line, "\r\n"), true
}

func (x *session) command(line []byte) verdict {
	verb, rest, _ := bytes.Cut(line, []byte(" "))
	switch {
	case len(line) > maxLine:
		return x.refuse("500 5.5.2 Line too long")
	case x.srv.opt.NoPipelining && x.r.Buffered() > 0:
		x.say("554 5.5.0 Improper pipelining")
		return ended
	case is(verb, "MAIL"):
		return x.mailFrom(rest)
	case is(verb, "RCPT"):
		return x.rcptTo(rest)
	case is(verb, "DATA"):
		return x.data()
	case is(verb, "RSET"):
		x.reset()
		return x.at(Reset, "250 2.0.0 Ok")
	case is(verb, "EHLO"), is(verb, "HELO"):
		return x.greet(is(verb, "EHLO"), len(rest) > 0)
	case is(verb, "STARTTLS"):
		return x.startTLS()
	case is(verb, "AUTH"):
		return x.auth(string(rest))
	case is(verb, "NOOP"):
		return x.refuse("250 2.0.0 Ok")
	case is(verb, "QUIT"):
		if v := x.at(Quit, "221 2.0.0 Bye"); v != accepted {
			return v
		}
		x.srv.uncount(x.tcp) // before the client knows: it may come back at once
		return ended
	}
	return x.refuse("500 5.5.2 Unknown command")
}

func is(verb []byte, name string) bool {
	return len(verb) == len(name) && strings.EqualFold(string(verb), name)
}

func (x *session) reset() { x.mail, x.from, x.to = Mail{}, false, false }

func (x *session) greet(extended, named bool) verdict {
	if !named {
		return x.refuse("501 5.5.4 Say who you are")
	}
	reply := "250 smtptest.invalid"
	if extended {
		reply = strings.Join(x.extensions(), "\r\n")
	}
	v := x.at(Hello, reply)
	x.hello = x.hello || v == accepted
	return v
}

func (x *session) extensions() []string {
	opt := &x.srv.opt
	names := []string{"smtptest.invalid"}
	if !opt.NoPipelining {
		names = append(names, "PIPELINING")
	}
	if !opt.No8Bit {
		names = append(names, "8BITMIME", "SMTPUTF8")
	}
	if opt.Security == Upgrade && !x.tls {
		names = append(names, "STARTTLS")
	} else if len(opt.Auth) > 0 {
		names = append(names, "AUTH "+strings.Join(opt.Auth, " "))
	}
	names = append(names, "SIZE 0", "ENHANCEDSTATUSCODES")
	for i := range names {
		mark := "250-"
		if i == len(names)-1 {
			mark = "250 "
		}
		names[i] = mark + names[i]
	}
	return names
}

func (x *session) startTLS() verdict {
	if x.srv.opt.Security != Upgrade || x.tls {
		return x.refuse("502 5.5.1 No TLS here")
	}
	if x.r.Buffered() > 0 { // commands smuggled in before the handshake
		return ended
	}
	v := x.at(StartTLS, "220 2.0.0 Go ahead")
	if v != accepted {
		return v
	}
	if x.w.Flush() != nil || !x.encrypt() {
		return ended
	}
	x.reset()
	return accepted
}

// data reads a mail and accepts it.
func (x *session) data() verdict {
	if !x.to {
		return x.refuse("503 5.5.1 No recipient")
	}
	if v := x.at(Data, "354 Go ahead"); v != accepted {
		return v
	}
	if x.w.Flush() != nil {
		return ended
	}
	clean, v := x.readBody()
	if v != accepted {
		return v
	}
	m := x.mail
	x.reset()
	if !clean {
		return x.refuse("550 5.5.2 A line did not end with CR LF")
	}
	if x.srv.keeps() {
		m.TLS, m.User, m.Conn = x.tls, x.user, x.point.Conn
	}
	v = x.at(End, "250 2.0.0 Queued")
	x.point.Mail++
	if v == accepted || x.lost { // the mail is queued, whether or not the client gets to know
		x.srv.keep(m)
		x.srv.accepted.Add(1)
	}
	return v
}

// readBody reads up to the final dot and says whether every line ended as it must.
func (x *session) readBody() (clean bool, v verdict) {
	clean = true
	keeps, begun := x.srv.keeps(), false
	for start := true; ; {
		part, err := x.r.ReadSlice('\n')
		cut := errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !cut {
			return clean, ended
		}
		if start && string(part) == ".\r\n" {
			return clean, accepted
		}
		if start && part[0] == '.' {
			part = part[1:]
		}
		if !cut && (len(part) < 2 || bytes.IndexByte(part, '\r') != len(part)-2) {
			clean = false
		}
		if keeps {
			x.mail.Raw = append(x.mail.Raw, part...)
		}
		if !begun {
			begun = true
			if v := x.at(Body, ""); v != accepted {
				return clean, ended
			}
		}
		start = !cut
	}
}

func (s *Server) keeps() bool { return s.opt.Keep || s.opt.OnMail != nil }
