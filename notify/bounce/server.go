// Package bounce owns the way back of a mail: the signed return path that each delivery gets, the LMTP listener to which the
// operator's mail server hands what comes to those paths, and the reading of it.
package bounce

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/emersion/go-smtp"
	"golang.org/x/net/netutil"

	"github.com/proa-dev/proa/kit/run"
)

// What one listener allows. Its only client is a mail server of the operator's, which keeps what is put off and tries again.
const (
	maxConnections  = 32
	maxRecipients   = 10
	maxLine         = 8 << 10 // RFC 5321 says 1000, and not everyone reads it
	defaultMaxBytes = 10 << 20
	readTime        = 2 * time.Minute // for one command, or for the whole of one mail
	writeTime       = 30 * time.Second
	takeTime        = 10 * time.Second
	stopTime        = 15 * time.Second // longer than takeTime, so that what was read is also taken
)

// Server takes delivery status notifications over LMTP.
type Server struct {
	Domain string // the part of return paths behind the @
	// Open checks a local part and gives the delivery it is about. What it does not accept is refused, before any data.
	Open func(localpart string) (deliveryID string, ok bool)
	// Take keeps a report. It may see one twice. After an error the mail server is asked to come again.
	Take     func(ctx context.Context, r Report) error
	Log      *slog.Logger
	MaxBytes int64 // of one mail; 10 MiB when zero
}

// Part listens until its context ends, and then lets mails under way finish.
func (s *Server) Part(l net.Listener) run.Part {
	return run.Part{Name: "bounces", Grace: stopTime + 5*time.Second, Run: func(ctx context.Context) error {
		server := s.server(context.WithoutCancel(ctx))
		s.Log.Info("listening", "part", "bounces", "address", l.Addr().String())
		failed := make(chan error, 1)
		go func() { failed <- server.Serve(netutil.LimitListener(l, maxConnections)) }()
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
		}
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		defer cancel()
		if server.Shutdown(stop) != nil {
			_ = server.Close() // whoever is left holds a line and says nothing
		}
		_ = l.Close() // Shutdown does not know a listener that it came too early for
		return nil
	}}
}

func (s *Server) server(ctx context.Context) *smtp.Server {
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) {
		return &session{Server: s, ctx: ctx}, nil
	}))
	server.LMTP = true
	server.Domain = s.Domain
	server.MaxRecipients = maxRecipients
	server.MaxLineLength = maxLine
	server.ReadTimeout = readTime
	server.WriteTimeout = writeTime
	server.EnableSMTPUTF8 = true // a report about such an address may be sent no other way
	server.ErrorLog = slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn)
	return server
}

func (s *Server) maxBytes() int64 {
	if s.MaxBytes <= 0 {
		return defaultMaxBytes
	}
	return s.MaxBytes
}
