// Package smtptest owns an SMTP server for tests and measurements: on loopback, cheap enough to be the sink of a million
// mails, strict about the protocol, and able to refuse, stall or drop the line at any step.
package smtptest

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Step is a point of a session at which a server can be told what to do.
type Step int

// The steps, in the order of a session. Body is in the middle of a mail, End is after its last byte and before the reply.
const (
	Greeting Step = iota
	Hello
	StartTLS
	Login // AUTH, its answers read: before the verdict
	From
	To
	Data
	Body
	End
	Reset
	Quit
	steps
)

// Point is where a session is. Conn and Mail count from 1: the connections of the server, the mails of the connection.
type Point struct {
	Step Step
	Conn int64
	Mail int
}

// Act is what to do at a point. The zero Act is to behave.
type Act struct {
	Wait  time.Duration // first, do nothing for so long
	Stall bool          // do nothing until the client or the server goes away
	Reply string        // a line, such as "550 5.1.1 Nobody here", instead of the reply that belongs here
	Drop  bool          // close the line, after the Reply if there is one; at End without a Reply, the mail is accepted and the client not told
}

// Refuse is a reply instead of the one that belongs at a point. A 421 ends the session, as the protocol has it.
func Refuse(reply string) Act { return Act{Reply: reply, Drop: len(reply) > 3 && reply[:3] == "421"} }

// At does act at every point of one step.
func At(step Step, act Act) func(Point) Act {
	return func(p Point) Act {
		if p.Step == step {
			return act
		}
		return Act{}
	}
}

// Security is how a server speaks TLS.
type Security int

// The ways to speak TLS.
const (
	Clear Security = iota
	Upgrade
	Implicit
)

// Mail is one accepted mail, as it came.
type Mail struct {
	From, To   string
	Parameters string // of MAIL FROM
	Raw        []byte // dots unstuffed; nil unless mails are kept or given to OnMail
	TLS        bool
	User       string
	Conn       int64
}

// Options say what a server is like. The zero Options are an open, pipelining server without TLS that counts and discards.
type Options struct {
	Addr         string // "127.0.0.1:0" unless said
	NoPipelining bool   // neither announced nor tolerated
	No8Bit       bool   // neither 8BITMIME nor SMTPUTF8
	Security     Security
	Certificate  *tls.Certificate // by the server's own CA for 127.0.0.1 and localhost, unless said
	Auth         []string         // PLAIN, LOGIN, CRAM-MD5; needed before MAIL when there is one
	User         string
	Password     string
	Keep         bool       // keep mails for Mails
	OnMail       func(Mail) // called for each mail before it is accepted, from several goroutines
}

// Server is a running server.
type Server struct {
	Addr    string
	RootCAs *x509.CertPool // what a client has to trust; nil for a server without TLS

	opt      Options
	tls      *tls.Config
	listener net.Listener
	acts     atomic.Pointer[func(Point) Act]
	conns    atomic.Int64
	accepted atomic.Int64
	counts   [steps]atomic.Int64
	done     chan struct{}
	sessions sync.WaitGroup

	mu   sync.Mutex
	open map[net.Conn]bool
	kept []Mail
}

// Start starts a server.
func Start(opt Options) (*Server, error) {
	s := &Server{opt: opt, done: make(chan struct{}), open: map[net.Conn]bool{}}
	if opt.Security != Clear {
		if err := s.prepareTLS(); err != nil {
			return nil, err
		}
	}
	if opt.Addr == "" {
		opt.Addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", opt.Addr) //nolint:noctx // listening ends with Close
	if err != nil {
		return nil, fmt.Errorf("start SMTP server: %w", err)
	}
	s.listener, s.Addr = l, l.Addr().String()
	s.sessions.Go(s.accept)
	return s, nil
}

func (s *Server) prepareTLS() error {
	cert := s.opt.Certificate
	if cert == nil {
		ca, err := NewCA()
		if err != nil {
			return err
		}
		own, err := ca.Certificate("127.0.0.1", "localhost")
		if err != nil {
			return err
		}
		cert, s.RootCAs = &own, ca.Pool
	}
	s.tls = &tls.Config{Certificates: []tls.Certificate{*cert}, MinVersion: tls.VersionTLS12}
	return nil
}

// Do says what to do at each point from now on, in open sessions too; nil is to behave. It is called from several goroutines.
func (s *Server) Do(acts func(Point) Act) {
	if acts == nil {
		s.acts.Store(nil)
		return
	}
	s.acts.Store(&acts)
}

// Accepted is how many mails were accepted.
func (s *Server) Accepted() int64 { return s.accepted.Load() }

// Conns is how many connections there were.
func (s *Server) Conns() int64 { return s.conns.Load() }

// Count is how often a step was reached.
func (s *Server) Count(step Step) int64 { return s.counts[step].Load() }

// Open is how many connections there are now.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// Mails are the kept mails, in the order of their acceptance.
func (s *Server) Mails() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Mail(nil), s.kept...)
}

// Hang drops all open lines, as a server that dies does, and goes on listening.
func (s *Server) Hang() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		_ = c.Close()
	}
}

// Close stops listening, drops all lines and waits until every session has ended. To come back, Start with the same Addr.
func (s *Server) Close() {
	close(s.done)
	_ = s.listener.Close()
	s.Hang()
	s.sessions.Wait()
}

func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		n := s.conns.Add(1)
		s.mu.Lock()
		s.open[c] = true
		s.mu.Unlock()
		s.sessions.Go(func() {
			defer s.uncount(c)
			serve(s, c, n)
			_ = c.Close()
		})
		select {
		case <-s.done: // accepted after Close hung up the others
			_ = c.Close()
		default:
		}
	}
}

func (s *Server) uncount(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

func (s *Server) keep(m Mail) {
	if s.opt.OnMail != nil {
		s.opt.OnMail(m)
	}
	if s.opt.Keep {
		s.mu.Lock()
		s.kept = append(s.kept, m)
		s.mu.Unlock()
	}
}
