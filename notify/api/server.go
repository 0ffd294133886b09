// Package api is the notification service's door: one table of routes, the JSON of the CF notifications v1 interface, and the page on
// which people unsubscribe.
package api

import (
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/kit/seal"
	"github.com/proa-dev/proa/kit/token"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/notify/store"
)

// Server answers for the notification service.
type Server struct {
	Store    *store.Store
	Verifier *token.Verifier
	Box      *seal.Box // seals the tokens of unsubscribe links
	URL      *url.URL  // where people and clients reach us
	From     string    // what previews show as the sender
	Domain   string
	Log      *slog.Logger
	Metrics  *web.Metrics
	Proxies  []netip.Prefix
	Rate     Rate
	CORS     string // origin of a page that may ask for preferences; empty: none
	Now      func() time.Time

	app     *web.App
	budgets *budgets
	pages   pages
}

// Audience is what a token must be meant for to be shown to us: the services that our scopes belong to.
var Audience = []string{"notifications", "critical_notifications", "notification_templates", "notification_preferences", "emails"}

// The scopes. Admin is ours: upstream let every holder of manage change what belongs to others.
const (
	scopeWrite         = "notifications.write"
	scopeManage        = "notifications.manage"
	scopeCritical      = "critical_notifications.write"
	scopeEmails        = "emails.write"
	scopeTemplateRead  = "notification_templates.read"
	scopeTemplateWrite = "notification_templates.write"
	scopePreferRead    = "notification_preferences.read"
	scopePreferWrite   = "notification_preferences.write"
	scopePreferAdmin   = "notification_preferences.admin"
	scopeAdmin         = "notifications.admin"
)

// MaxBody is the largest request: a message's text and HTML, and the escapes that JSON may put into them.
const MaxBody = 2 << 20

// Handler is the whole server.
func (s *Server) Handler() http.Handler {
	s.app = &web.App{Log: s.Log, Fault: s.fault, Ready: s.Store.Ping, Explain: pg.Fault, Proxies: s.Proxies, Metrics: s.Metrics, MaxBody: MaxBody}
	s.budgets = newBudgets(s.Rate, s.Now)
	s.pages = newPages()
	s.app.Health()
	for _, r := range s.routes() {
		s.app.Handle(r.pattern, s.guard(r))
	}
	return s.app
}

// who is the sender of a request.
type who struct {
	claims token.Claims
	store.Who
}

func (w who) client() string          { return w.claims.ClientID }
func (w who) user() string            { return w.claims.UserID }
func (w who) has(scope string) bool   { return w.claims.Has(scope) }
func (w who) owns(client string) bool { return w.client() == client || w.has(scopeAdmin) }

// route is one line of the table. A route is open, for a reason, or it names the scopes of which the token must hold one.
type route struct {
	pattern string
	scopes  []string
	open    string
	handler func(http.ResponseWriter, *http.Request, who) error
}

// guard is the path on which every request is held against its route before its handler runs: first the version of the interface,
// then the token, then the scope.
func (s *Server) guard(r route) web.Handler {
	return func(w http.ResponseWriter, req *http.Request) error {
		if strings.HasPrefix(req.URL.Path, "/user_preferences") {
			s.cors(w) // on refusals too, or a page could not read them
		}
		if v := req.Header.Get("X-NOTIFICATIONS-VERSION"); v != "" && v != "1" {
			return fault.NotFound("Version %s of this interface is not spoken here. Send X-NOTIFICATIONS-VERSION: 1, or leave it out.", printable(v))
		}
		sender := who{Who: store.Who{RequestID: web.RequestID(req.Context())}}
		if r.open != "" {
			return r.handler(w, req, sender)
		}
		claims, err := s.Verifier.FromRequest(req)
		if err != nil {
			return err
		}
		sender.claims, sender.Name = claims, claims.ClientID
		if claims.UserName != "" {
			sender.Name += "/" + claims.UserName
		}
		if !claims.Has(r.scopes...) {
			return fault.Forbidden("This needs the scope %s, and the token does not have it. Ask an administrator for it.", strings.Join(r.scopes, " or ")).WithCode(token.CodeScope)
		}
		return r.handler(w, req, sender)
	}
}

func printable(s string) string {
	if len(s) > 20 {
		s = s[:20]
	}
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' {
			return -1
		}
		return r
	}, s), "")
}

// refusal is the shape of every error.
type refusal struct {
	Errors []string `json:"errors"`
}

func (s *Server) fault(w http.ResponseWriter, r *http.Request, f *fault.Error) {
	status := f.Status()
	if f.Code == web.CodeMethod {
		status = http.StatusMethodNotAllowed
	}
	switch {
	case status == http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="proa", error="`+f.Code+`"`)
	case f.Code == token.CodeScope:
		w.Header().Set("WWW-Authenticate", `Bearer realm="proa", error="insufficient_scope"`)
	case status == http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "5")
	}
	if strings.Contains(r.Header.Get("Accept"), "text/html") && strings.HasPrefix(r.URL.Path, "/unsubscribe") {
		s.pages.show(w, status, page{Title: "That did not work", Message: f.Detail})
		return
	}
	details := f.Details
	if len(details) == 0 {
		details = []string{f.Detail}
	}
	_ = web.JSON(w, status, refusal{details})
}
