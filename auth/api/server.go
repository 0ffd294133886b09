// Package api is the authorization server's door: one table of routes, the JSON of UAA, and the few pages that people see.
package api

import (
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/auth/grant"
	"github.com/proa-dev/proa/auth/store"
	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/kit/token"
	"github.com/proa-dev/proa/kit/web"
)

// Server answers for the authorization server.
type Server struct {
	Store       *store.Store
	Engine      *grant.Engine
	URL         *url.URL // where people and clients reach us; also the issuer
	Log         *slog.Logger
	Metrics     *web.Metrics
	Proxies     []netip.Prefix
	MinPassword int
	Now         func() time.Time

	app      *web.App
	verifier *token.Verifier
	mistakes *web.Limiter
	pages    pages
}

// What a token must be meant for to be shown to us: the services that our own scopes belong to.
var audience = []string{"uaa", "scim", "clients", "tokens", "password", "openid"}

// The budget of wrong secrets, passwords and codes of one address: 20 at once, and one more each 3 seconds.
const (
	mistakeEvery = 3 * time.Second
	mistakeBurst = 20
)

// Handler is the whole server.
func (s *Server) Handler() http.Handler {
	s.app = &web.App{Log: s.Log, Fault: s.fault, Ready: s.Store.Ping, Explain: pg.Fault, Proxies: s.Proxies, Metrics: s.Metrics}
	s.verifier = s.Engine.Verifier(audience...)
	s.mistakes = &web.Limiter{Every: mistakeEvery, Burst: mistakeBurst, Now: s.Now}
	s.pages = newPages(s.URL)
	s.app.Health()
	for _, r := range s.routes() {
		s.app.Handle(r.pattern, s.guard(r))
	}
	return s.app
}

// route is one line of the table. A route is open, for a reason, or it names the scopes of which the token must hold one;
// uaa.admin always does.
type route struct {
	pattern string
	scopes  []string
	open    string
	handler func(http.ResponseWriter, *http.Request, auth.Who) error
}

// guard is the path on which every request is held against its route before its handler runs.
func (s *Server) guard(r route) web.Handler {
	return func(w http.ResponseWriter, req *http.Request) error {
		who := auth.Who{Address: s.app.Addr(req).String(), RequestID: web.RequestID(req.Context())}
		if r.open != "" {
			return r.handler(w, req, who)
		}
		claims, err := s.verifier.FromRequest(req)
		if err != nil {
			return err
		}
		who.ClientID, who.UserID, who.Name, who.Scopes = claims.ClientID, claims.UserID, claims.UserName, claims.Scopes
		if who.Name == "" {
			who.Name = claims.ClientID
		}
		if !claims.Has(append(r.scopes, auth.Admin)...) {
			return fault.Forbidden("This needs one of the scopes %s, and the token has none of them. Ask an administrator for it.",
				strings.Join(append(r.scopes, auth.Admin), ", ")).WithCode(token.CodeScope)
		}
		return r.handler(w, req, who)
	}
}

// limited holds a route against the budget of mistakes of the sender's address, and counts one more when the handler refuses
// who the sender claims to be.
func (s *Server) limited(h func(http.ResponseWriter, *http.Request, auth.Who) error) func(http.ResponseWriter, *http.Request, auth.Who) error {
	return func(w http.ResponseWriter, r *http.Request, who auth.Who) error {
		addr := s.app.Addr(r)
		if wait := s.mistakes.Wait(addr); wait > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())+1))
			return fault.TooMany("Too many failed attempts came from this address. Wait as long as the Retry-After header says, then try again.").WithCode("too_many_attempts")
		}
		err := h(w, r, who)
		if fault.Is(err, fault.KindUnauthorized) || fault.From(err).Code == "invalid_grant" {
			s.mistakes.Mistake(addr)
		}
		return err
	}
}

// codes are UAA's names for the kinds of fault, where the fault does not bring one.
var codes = map[fault.Kind]string{
	fault.KindInternal: "server_error", fault.KindInvalid: "invalid_request", fault.KindUnauthorized: "unauthorized", fault.KindForbidden: "access_denied",
	fault.KindNotFound: "not_found", fault.KindConflict: "conflict", fault.KindStale: "stale", fault.KindTooLarge: "too_large",
	fault.KindUnprocessable: "unprocessable", fault.KindTooMany: "too_many_attempts", fault.KindUnavailable: "temporarily_unavailable",
}

// fault renders a refusal: as a page for a person in a browser, as JSON for everyone else.
func (s *Server) fault(w http.ResponseWriter, r *http.Request, f *fault.Error) {
	code := f.Code
	if code == "" {
		code = codes[f.Kind]
	}
	status := f.Status()
	if code == web.CodeMethod {
		status = http.StatusMethodNotAllowed
	}
	if status == http.StatusUnauthorized && r.URL.Path != "/login" {
		challenge := `Bearer realm="proa"`
		switch code {
		case "invalid_client":
			challenge = `Basic realm="proa"`
		case token.CodeInvalid:
			challenge += `, error="` + code + `"`
		}
		w.Header().Set("WWW-Authenticate", challenge)
	}
	if f.Kind == fault.KindForbidden && code == token.CodeScope {
		w.Header().Set("WWW-Authenticate", `Bearer realm="proa", error="insufficient_scope"`)
	}
	if wantsPage(r) {
		s.pages.show(w, status, "error", page{Title: "That did not work", Message: f.Detail})
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	_ = web.JSON(w, status, uaa.Error{Code: code, Description: f.Detail})
}

func wantsPage(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }
