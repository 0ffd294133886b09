package ssh

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"time"

	xssh "golang.org/x/crypto/ssh"

	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

// Client is how we are known to the authorization server. Clients ask for codes in this name.
const Client = "ssh-proxy"

// Audience is what the token behind a code must be meant for: what people do here is done with the platform's apps.
var Audience = []string{"cloud_controller"}

// Exchange asks an authorization server what a code is worth. It says where the code came from, so that whoever guesses uses up
// their own budget of mistakes there and not ours, if that server trusts us.
func Exchange(auth *url.URL, secret string) func(context.Context, netip.Addr, string) (string, error) {
	return func(ctx context.Context, from netip.Addr, code string) (string, error) {
		conn := &uaa.Conn{URL: auth.String(), HTTP: &http.Client{Timeout: 10 * time.Second, Transport: onBehalf(from)}}
		t, err := conn.Fetch(ctx, Client, secret, url.Values{"grant_type": {"authorization_code"}, "code": {code}})
		return t.Access, err
	}
}

type onBehalf netip.Addr

func (from onBehalf) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Forwarded-For", netip.Addr(from).String())
	return http.DefaultTransport.RoundTrip(r)
}

// The refusals that are ours alone.
var (
	errCode  = fault.Unauthorized("The code is wrong, used or too old. Get a new one with: proa ssh-code")
	errTries = fault.TooMany("Too many wrong codes came from your address. Wait a minute, then get a new one with: proa ssh-code")
	errUser  = fault.Invalid("Log in as cf:PROCESS-GUID/INDEX, with the output of proa ssh-code as password. proa ssh does both.")
	errLater = fault.Unavailable("Your code cannot be checked now. Get a new one in a moment with: proa ssh-code")
	errHuman = fault.Forbidden("Only people may log in.")
	errGone  = fault.NotFound("This process is not there, or you do not see it. Find it with: proa app NAME --guid --process TYPE")
)

// users are a process and the index of one of its instances, as the cf CLI writes them.
var users = regexp.MustCompile(`^cf:([0-9A-Za-z-]{1,64})/([0-9]{1,6})$`)

const maxCode = 1024

// login decides whether somebody may come in, and to which instance. SSH knows one word of refusal; why is in a banner before it.
func (v *visit) login(ctx context.Context, user, code string) error {
	err := v.check(ctx, user, code)
	if err == nil {
		v.server.Metrics.logins.WithLabelValues("good").Inc()
		v.log.Info("login", "user", v.who.Name, "process", v.process, "index", v.index)
		return nil
	}
	v.server.Metrics.logins.WithLabelValues("refused").Inc()
	v.log.Info("login refused", "user", v.who.Name, "process", v.process, "index", v.index, "error", err)
	return &xssh.BannerError{Err: err, Message: sentence(err) + "\n"}
}

func (v *visit) check(ctx context.Context, user, code string) error {
	s := v.server
	if s.mistakes.Wait(v.from) > 0 {
		return errTries
	}
	m := users.FindStringSubmatch(user)
	if m == nil || code == "" || len(code) > maxCode {
		s.mistakes.Mistake(v.from)
		return errUser
	}
	v.process = m[1]
	v.index, _ = strconv.Atoi(m[2]) // six digits
	raw, err := s.Exchange(ctx, v.from, code)
	if f, known := errors.AsType[*fault.Error](err); known && f.Code == "invalid_grant" {
		s.mistakes.Mistake(v.from)
		return errCode.Because(err)
	}
	if err != nil {
		s.Log.Error("a code cannot be exchanged", "error", err)
		return errLater.Because(err)
	}
	claims, err := s.Verifier.Verify(ctx, raw)
	if err != nil {
		return err
	}
	if claims.UserID == "" {
		return errHuman
	}
	v.who = platform.Who{GUID: claims.UserID, Name: claims.UserName, Origin: claims.Origin, ClientID: claims.ClientID, Scopes: claims.Scopes, RequestID: platform.NewGUID()}
	if err := v.who.Speaks(true); err != nil {
		return err
	}
	if _, _, err := v.enter(ctx, loggingIn, ""); err != nil {
		return err
	}
	return s.gate.admit(v.place, v.who.GUID)
}

// sentence is what may be shown of an error.
func sentence(err error) string {
	if f := pg.Fault(err); f != nil {
		return f.Detail
	}
	if fault.Is(err, fault.KindNotFound) {
		return errGone.Detail // what is found here is a process, and nothing else
	}
	return fault.From(err).Detail
}
