// Package ssh owns the way into an app's container over SSH: who may come in, what they may ask for, and how it reaches the
// instance through Kubernetes. Nothing is run on this side, and nothing secret goes to the other.
package ssh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	xssh "golang.org/x/crypto/ssh"

	"github.com/proa-dev/proa/kit/run"
	"github.com/proa-dev/proa/kit/token"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform/kube"
	"github.com/proa-dev/proa/platform/store"
)

// Server lets developers into the instances of their apps.
type Server struct {
	Store    *store.Store
	Clusters map[string]*kube.Cluster                                                          // by id
	Exchange func(ctx context.Context, from netip.Addr, code string) (token string, err error) // what a one-time code is worth
	Verifier *token.Verifier
	HostKey  xssh.Signer
	Log      *slog.Logger
	Metrics  *Metrics
	Now      func() time.Time
	Limits   Limits

	gate     gate
	mistakes web.Limiter
	visits   sync.WaitGroup // connections
	endings  sync.WaitGroup // of what visits left running

	mu      sync.Mutex
	here    map[*visit]bool
	leaving bool
}

// Limits bound what clients take; zero is the default.
//
// A channel holds at most 2 MiB that its other side has not taken yet: 1000 channels are 2 GiB, if all of them are abused.
type Limits struct {
	Connections int           // 500
	Strangers   int           // 100 connections whose client has not shown a good code yet; the oldest goes when another comes
	PerAddress  int           // 20 of those come from one address
	PerPerson   int           // 20 connections of one person
	Channels    int           // 1000, of all connections
	TheirOwn    int           // 60 of those are of one person
	Sessions    int           // 10 of a connection
	Forwards    int           // 30 of a connection
	Handshake   time.Duration // 20 s from the connection to a good code
	Idle        time.Duration // 15 min without a byte either way
	Recheck     time.Duration // 30 s until a role that was taken is noticed
}

func (l *Limits) fillIn() {
	l.Connections, l.Strangers, l.PerAddress = cmp.Or(l.Connections, 500), cmp.Or(l.Strangers, 100), cmp.Or(l.PerAddress, 20)
	l.Channels, l.Sessions, l.Forwards = cmp.Or(l.Channels, 1000), cmp.Or(l.Sessions, 10), cmp.Or(l.Forwards, 30)
	l.PerPerson, l.TheirOwn = cmp.Or(l.PerPerson, 20), cmp.Or(l.TheirOwn, 60)
	l.Handshake, l.Idle, l.Recheck = cmp.Or(l.Handshake, 20*time.Second), cmp.Or(l.Idle, 15*time.Minute), cmp.Or(l.Recheck, 30*time.Second)
}

const (
	maxTries   = 3                // codes in one connection
	partGrace  = 20 * time.Second // for noticeTime, then endingTime
	noticeTime = time.Second
	endingTime = 15 * time.Second // what launch takes to end a session, and the way to it
	storeTime  = 10 * time.Second
)

// Part serves a listener until its context ends, and then tells everyone.
func (s *Server) Part(l net.Listener) run.Part {
	return run.Part{Name: "ssh", Grace: partGrace, Run: func(ctx context.Context) error { return s.Serve(ctx, l) }}
}

// Serve takes connections until the context ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	s.Limits.fillIn()
	s.gate = gate{limits: s.Limits}
	s.mistakes = web.Limiter{Every: 6 * time.Second, Burst: 10, Now: s.Now} // ten at once, ten in a minute
	s.here = map[*visit]bool{}
	s.Log.Info("listening", "part", "ssh", "address", l.Addr().String())
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for {
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			s.leave()
			return ctx.Err()
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept: %w", err)
		case err != nil: // out of files, perhaps not for ever
			s.Log.Warn("a connection was not accepted", "error", err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		s.visits.Go(func() { s.receive(ctx, conn) })
	}
}

// leave ends every connection, and waits for what has to be ended behind them.
func (s *Server) leave() {
	s.mu.Lock()
	s.leaving = true
	var notices sync.WaitGroup
	for v := range s.here {
		notices.Go(func() { v.end("The ssh server is restarting. Connect again.") })
	}
	s.mu.Unlock()
	notices.Wait()
	s.visits.Wait()
	s.endings.Wait()
}

// receive takes one connection from its first byte to its last.
func (s *Server) receive(ctx context.Context, raw net.Conn) {
	defer func() { _ = raw.Close() }()
	defer s.recover()
	from := address(raw)
	before, drop := context.WithCancel(ctx) // they are in
	defer drop()
	place := s.gate.enter(from, drop)
	if place == nil {
		s.Metrics.logins.WithLabelValues("full").Inc()
		return
	}
	defer s.gate.leave(place)
	if err := raw.SetDeadline(s.Now().Add(s.Limits.Handshake)); err != nil {
		return
	}
	v := &visit{server: s, from: from, place: place, log: s.Log.With("address", from.String())}
	config := &xssh.ServerConfig{MaxAuthTries: maxTries, ServerVersion: "SSH-2.0-Proa", PasswordCallback: func(meta xssh.ConnMetadata, code []byte) (*xssh.Permissions, error) {
		ctx, cancel := context.WithTimeout(before, s.Limits.Handshake)
		defer cancel()
		return nil, v.login(ctx, meta.User(), string(code))
	}}
	config.AddHostKey(s.HostKey)
	line := &line{Conn: raw, now: s.Now}
	hurry := context.AfterFunc(before, func() { _ = raw.Close() }) // who is not in yet is not told
	defer hurry()
	conn, channels, requests, err := xssh.NewServerConn(line, config)
	if err != nil {
		v.log.Debug("no login", "error", err)
		return
	}
	hurry()
	line.watch(s.Limits.Idle)
	v.conn = conn
	s.Metrics.connections.Inc()
	defer s.Metrics.connections.Dec()
	if s.meet(v) {
		defer s.part(v)
		v.serve(context.WithoutCancel(ctx), channels, requests)
	}
}

// meet remembers somebody, unless all are about to be sent away.
func (s *Server) meet(v *visit) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.leaving {
		s.here[v] = true
	}
	return !s.leaving
}

func (s *Server) part(v *visit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.here, v)
}

// recover keeps a fault of ours in one connection from ending all others.
func (s *Server) recover() {
	if v := recover(); v != nil {
		s.Log.Error("panic", "part", "ssh", "panic", fmt.Sprint(v))
	}
}
