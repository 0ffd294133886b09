package main

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/proa-dev/proa/auth"
)

// The server signs each token with RSA-2048, and nothing can make that cheaper. So the bare engine is the signature: the ratio
// says how much of the machine goes into signatures when server, PostgreSQL and this load share it.
var clientCredentials = figure{
	name:  grantName,
	about: "tokens per second that a client gets for itself, beside bare RSA-2048 signatures per second on all cores",
	run:   measureTokens,
}

const (
	grantName   = "auth.client_credentials"
	tokenRounds = 5
	tokenConns  = 8 // for each core
	tokenWarmUp = 2 * time.Second
)

// The five scopes of a client of the notification service.
var tokenScopes = []string{"notifications.write", "notifications.manage", "notification_templates.write", "notification_templates.read", "critical_notifications.write"}

func measureTokens(ctx context.Context, b *bench) ([]line, error) {
	var l line
	err := b.withAuth(ctx, func(ctx context.Context, s *authServer) error {
		load, err := s.tokenLoad(ctx)
		if err != nil {
			return err
		}
		l, err = compareTokens(ctx, b, s, load)
		return err
	})
	return []line{l}, err
}

// tokenLoad prepares the request, and sees that a token holds just what it should.
func (s *authServer) tokenLoad(ctx context.Context) (load, error) {
	const id = "bench"
	secret, err := s.newClient(ctx, id, tokenScopes...)
	if err != nil {
		return load{}, err
	}
	token, err := s.conn().Fetch(ctx, id, secret, url.Values{"grant_type": {auth.GrantClientCredentials}})
	if want := strings.Join(tokenScopes, " "); err == nil && token.Scope != want {
		err = fmt.Errorf("the token has the scopes %q instead of %q", token.Scope, want)
	}
	body := "grant_type=client_credentials"
	request := fmt.Sprintf("POST /oauth/token HTTP/1.1\r\nHost: %s\r\nAuthorization: Basic %s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s",
		s.addr, base64.StdEncoding.EncodeToString([]byte(id+":"+secret)), len(body), body)
	return load{addr: s.addr, request: []byte(request), holds: []byte(`"access_token":"`), conns: tokenConns * runtime.NumCPU()}, err
}

// compareTokens takes rounds of ours and of the bare engine in turn, so that both meet the same neighbours on this machine.
func compareTokens(ctx context.Context, b *bench, s *authServer, load load) (line, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return line{}, err
	}
	say("%s: warming up, then %d rounds of %s each for tokens and for bare signatures", grantName, tokenRounds, b.round)
	if _, err := load.run(ctx, tokenWarmUp); err != nil {
		return line{}, err
	}
	w, err := watchServer(ctx, s.pid, s.database)
	if err != nil {
		return line{}, err
	}
	var ours, bare series
	for range tokenRounds {
		if err := ours.add(w, func() (int64, error) { return load.run(ctx, b.round) }); err != nil {
			return line{}, err
		}
		if err := bare.add(w, func() (int64, error) { return sign(ctx, key, b.round) }); err != nil {
			return line{}, err
		}
		say("%s tokens/s, %s signatures/s", number(ours.rates[len(ours.rates)-1]), number(bare.rates[len(bare.rates)-1]))
	}
	notes := []string{
		ours.spent.String(),
		fmt.Sprintf("a token took %.2f ms of the server, %.2f ms of PostgreSQL and %.2f ms of this process; a bare signature took %.2f ms",
			ours.each(ours.spent.server), ours.each(ours.spent.engine), ours.each(ours.spent.load), bare.each(bare.spent.load)),
	}
	if max(ours.spent.others(), bare.spent.others()) > quiet {
		notes = append(notes, "what others had is left out of both rates; for a sure figure measure on a quiet machine")
	}
	return line{name: grantName, ours: quantity{median(ours.rates), "tokens/s"}, bare: quantity{median(bare.rates), "signatures/s"},
		aim: aim{of: "ratio", is: ">=", bound: 0.5}, notes: notes}, nil
}

// series is the rounds of one thing.
type series struct {
	rates []float64
	times int64
	spent cores
}

func (s *series) add(w watch, work func() (int64, error)) error {
	times, spent, err := w.during(work)
	s.rates, s.times, s.spent = append(s.rates, spent.rate(times)), s.times+times, s.spent.plus(spent)
	return err
}

// each is the part of one, in milliseconds.
func (s *series) each(spent time.Duration) float64 { return 1000 * spent.Seconds() / float64(s.times) }

// sign signs texts of a token's size on all cores, and counts them.
func sign(ctx context.Context, key *rsa.PrivateKey, during time.Duration) (int64, error) {
	var signed atomic.Int64
	text := make([]byte, 700)
	end := time.Now().Add(during)
	group, ctx := errgroup.WithContext(ctx)
	for range runtime.NumCPU() {
		group.Go(func() error {
			for time.Now().Before(end) && ctx.Err() == nil {
				digest := sha256.Sum256(text)
				if _, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:]); err != nil {
					return err
				}
				signed.Add(1)
			}
			return ctx.Err()
		})
	}
	err := group.Wait()
	return signed.Load(), err
}
