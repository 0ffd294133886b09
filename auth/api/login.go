package api

import (
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/auth/grant"
	"github.com/proa-dev/proa/auth/store"
	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/token"
)

const sessionFor = 12 * time.Hour

// cookie names and flags depend on https: a __Host- cookie cannot be set by a neighbour on the same domain.
func (s *Server) cookie(name, value string, age time.Duration) *http.Cookie {
	c := &http.Cookie{ //nolint:gosec // Secure is false only where developers run it, on plain http
		Name: s.cookieName(name), Value: value, Path: "/", HttpOnly: true, Secure: s.pages.secure, SameSite: http.SameSiteLaxMode, MaxAge: int(age.Seconds()),
	}
	if age <= 0 {
		c.MaxAge = -1
	}
	return c
}

func (s *Server) cookieName(name string) string {
	if s.pages.secure {
		return "__Host-" + name
	}
	return name
}

// csrf gives the form's token, which the browser also keeps as a cookie: a stranger's page can send neither.
func (s *Server) csrf(w http.ResponseWriter, r *http.Request) string {
	if c, err := r.Cookie(s.cookieName("proa_form")); err == nil && len(c.Value) == len(auth.Random()) {
		return c.Value
	}
	value := auth.Random()
	http.SetCookie(w, s.cookie("proa_form", value, sessionFor))
	return value
}

// sameSite refuses a form that another site sent.
func (s *Server) sameSite(r *http.Request) error {
	refused := fault.Forbidden("The form is too old or came from another page. Go back, reload the page and try again.").WithCode("invalid_form")
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return refused.Because(err)
	}
	c, err := r.Cookie(s.cookieName("proa_form"))
	if err != nil || subtle.ConstantTimeCompare([]byte(c.Value), []byte(r.PostFormValue("csrf"))) != 1 {
		return refused
	}
	return nil
}

// session finds who is logged in in this browser. store.ErrNone when nobody is.
func (s *Server) session(r *http.Request) (auth.User, time.Time, error) {
	c, err := r.Cookie(s.cookieName("proa_session"))
	if err != nil {
		return auth.User{}, time.Time{}, store.ErrNone
	}
	found, err := s.Store.SessionOf(r.Context(), auth.Digest(c.Value), s.Now())
	if err != nil {
		return auth.User{}, time.Time{}, err
	}
	u, err := s.Store.User(r.Context(), found.UserID)
	return u, found.AuthAt, err
}

// loginPage shows the form; programs that ask for JSON learn which fields to ask their users for.
func (s *Server) loginPage(w http.ResponseWriter, r *http.Request, who auth.Who) error {
	if !wantsPage(r) {
		return s.info(w, r, who)
	}
	s.showLogin(w, r, http.StatusOK, page{Continue: local(r.URL.Query().Get("continue"))})
	return nil
}

func (s *Server) showLogin(w http.ResponseWriter, r *http.Request, status int, p page) {
	p.Title, p.CSRF = "Log in", s.csrf(w, r)
	if after, err := url.Parse(p.Continue); err == nil && after.Path == "/oauth/authorize" {
		// The application's name, and the address to which the browser goes on from here.
		if ask, err := s.Engine.Ask(&http.Request{Method: http.MethodGet, URL: after, Header: http.Header{}}); err == nil {
			p.App, p.redirect = appName(ask.Client), ask.Redirect
		}
	}
	s.pages.show(w, status, "login", p)
}

func appName(c auth.Client) string {
	if c.Name != "" {
		return c.Name
	}
	return c.ID
}

// local keeps a place to go on to only if it is one of ours.
func local(place string) string {
	u, err := url.Parse(place)
	if err != nil || u.IsAbs() || u.Host != "" || !slices.Contains([]string{"/", "/passcode", "/oauth/authorize"}, u.Path) {
		return "/"
	}
	return u.RequestURI()
}

func (s *Server) login(w http.ResponseWriter, r *http.Request, _ auth.Who) error {
	if err := s.sameSite(r); err != nil {
		return err
	}
	again := page{Continue: local(r.PostFormValue("continue")), UserName: r.PostFormValue("username")}
	u, err := s.Engine.Login(r.Context(), again.UserName, r.PostFormValue("password"), auth.Internal)
	if fault.Is(err, fault.KindUnauthorized) {
		s.mistakes.Mistake(s.app.Addr(r))
		again.Message = fault.From(err).Detail
		s.showLogin(w, r, http.StatusUnauthorized, again)
		return nil
	}
	if err != nil {
		return err
	}
	secret := auth.Random()
	if err := s.Store.AddSession(r.Context(), auth.Digest(secret), u.ID, s.Now(), s.Now().Add(sessionFor)); err != nil {
		return err
	}
	http.SetCookie(w, s.cookie("proa_session", secret, sessionFor))
	http.Redirect(w, r, again.Continue, http.StatusSeeOther)
	return nil
}

func (s *Server) logout(w http.ResponseWriter, r *http.Request, _ auth.Who) error {
	if err := s.sameSite(r); err != nil {
		return err
	}
	if c, err := r.Cookie(s.cookieName("proa_session")); err == nil {
		if err := s.Store.DropSession(r.Context(), auth.Digest(c.Value)); err != nil {
			return err
		}
	}
	http.SetCookie(w, s.cookie("proa_session", "", 0))
	http.Redirect(w, r, "/login", http.StatusSeeOther)
	return nil
}

func toLogin(w http.ResponseWriter, r *http.Request) error {
	place := *r.URL
	q := place.Query()
	q.Del("prompt") // else the form would be shown for ever
	q.Del("max_age")
	place.RawQuery = q.Encode()
	http.Redirect(w, r, "/login?continue="+url.QueryEscape(place.RequestURI()), http.StatusSeeOther)
	return nil
}

func (s *Server) home(w http.ResponseWriter, r *http.Request, _ auth.Who) error {
	u, _, err := s.session(r)
	if errors.Is(err, store.ErrNone) {
		return toLogin(w, r)
	}
	if err != nil {
		return err
	}
	s.pages.show(w, http.StatusOK, "home", page{Title: "You are logged in", Name: displayName(u), CSRF: s.csrf(w, r)})
	return nil
}

// passcode shows a one-time passcode to the person who is logged in.
func (s *Server) passcode(w http.ResponseWriter, r *http.Request, _ auth.Who) error {
	u, _, err := s.session(r)
	if errors.Is(err, store.ErrNone) {
		return toLogin(w, r)
	}
	if err != nil {
		return err
	}
	code, err := s.Engine.NewPasscode(r.Context(), u.ID)
	if err != nil {
		return err
	}
	s.pages.show(w, http.StatusOK, "passcode", page{Title: "Your one-time passcode", Name: displayName(u), Passcode: code, CSRF: s.csrf(w, r)})
	return nil
}

// authorize gives an application a code: for a person in a browser, who logs in and consents, or for the bearer of a token.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request, _ auth.Who) error {
	ask, err := s.Engine.Ask(r)
	if err != nil {
		return err
	}
	if r.Header.Get("Authorization") != "" {
		return s.authorizeBearer(w, r, ask)
	}
	if ask.Wrong() {
		s.Engine.Refuse(r.Context(), w, ask, nil)
		return nil
	}
	u, authAt, err := s.session(r)
	switch {
	case errors.Is(err, store.ErrNone) && ask.Prompt("none"):
		s.Engine.Refuse(r.Context(), w, ask, token.ErrMissing)
		return nil
	case errors.Is(err, store.ErrNone), err == nil && (ask.Prompt("login") || s.tooOld(r, authAt)):
		return toLogin(w, r)
	case err != nil:
		return err
	}
	scopes := ask.Scopes(u)
	allowed, err := s.Store.Approved(r.Context(), u.ID, ask.Client.ID)
	if err != nil {
		return err
	}
	if ask.Client.Approves(scopes) || (len(auth.Added(allowed, scopes)) == 0 && !ask.Client.Public() && !ask.Prompt("consent")) {
		return s.Engine.Grant(r.Context(), w, ask, grant.Consent{User: u, AuthAt: authAt, Scopes: scopes})
	}
	if ask.Prompt("none") {
		s.Engine.Refuse(r.Context(), w, ask, fault.Forbidden("Consent is needed."))
		return nil
	}
	s.pages.show(w, http.StatusOK, "consent", page{Title: "Allow access?", Name: displayName(u), App: appName(ask.Client), Scopes: scopeTexts(scopes, u.Groups), Host: ask.Redirect.Host,
		CSRF: s.csrf(w, r), Action: "/oauth/authorize?" + r.URL.RawQuery, redirect: ask.Redirect})
	return nil
}

// tooOld tells whether the client wants a fresher login than the session's.
func (s *Server) tooOld(r *http.Request, authAt time.Time) bool {
	seconds, err := strconv.Atoi(r.URL.Query().Get("max_age"))
	return err == nil && s.Now().Sub(authAt) > time.Duration(seconds)*time.Second
}

// authorizeBearer is how the cf CLI gets the code for ssh: it shows the person's token, and the client needs no consent.
func (s *Server) authorizeBearer(w http.ResponseWriter, r *http.Request, ask *grant.Ask) error {
	claims, err := s.verifier.FromRequest(r)
	if err != nil {
		return err
	}
	if claims.UserID == "" || !claims.Has("uaa.user") {
		return fault.Forbidden("A code is only given to a person whose token has the scope uaa.user. Log in as a person.").WithCode(token.CodeScope)
	}
	u, err := s.Store.User(r.Context(), claims.UserID)
	if err != nil {
		return err
	}
	scopes := auth.Both(ask.Scopes(u), claims.Scopes) // a narrow token does not become a wide one
	if !ask.Client.Approves(scopes) {
		return fault.Forbidden("The application %s needs your consent. Open this address in a browser.", ask.Client.ID).WithCode(token.CodeScope)
	}
	return s.Engine.Grant(r.Context(), w, ask, grant.Consent{User: u, AuthAt: claims.Issued.Time(), Scopes: scopes})
}

// consent takes the person's answer.
func (s *Server) consent(w http.ResponseWriter, r *http.Request, _ auth.Who) error {
	if err := s.sameSite(r); err != nil {
		return err
	}
	ask, err := s.Engine.Ask(r)
	if err != nil {
		return err
	}
	u, authAt, err := s.session(r)
	if errors.Is(err, store.ErrNone) {
		return toLogin(w, r)
	}
	if err != nil {
		return err
	}
	if r.PostFormValue("answer") != "allow" {
		s.Engine.Refuse(r.Context(), w, ask, fault.Forbidden("The person did not allow it."))
		return nil
	}
	scopes := ask.Scopes(u)
	if err := s.Store.Approve(r.Context(), u.ID, ask.Client.ID, scopes); err != nil {
		return err
	}
	return s.Engine.Grant(r.Context(), w, ask, grant.Consent{User: u, AuthAt: authAt, Scopes: scopes})
}
