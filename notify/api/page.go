package api

import (
	"bytes"
	"embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"time"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/notify"
	"github.com/proa-dev/proa/notify/store"
)

//go:embed pages
var pageFiles embed.FS

// Description is the whole interface as OpenAPI 3.1.
//
//go:embed openapi.yaml
var Description []byte

// page is what the template knows.
type page struct {
	Title   string
	Message string
	Action  string
	Source  string
	Kind    string
	Off     bool // already unsubscribed from this kind
	AllOff  bool
	Done    bool
	Form    bool
}

type pages struct{ template *template.Template }

func newPages() pages {
	return pages{template.Must(template.ParseFS(pageFiles, "pages/unsubscribe.html"))}
}

func (p pages) show(w http.ResponseWriter, status int, data page) {
	var body bytes.Buffer
	if err := p.template.Execute(&body, data); err != nil {
		http.Error(w, "The page cannot be shown. Try again.", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Robots-Tag", "noindex")
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes())
}

func (s *Server) style(w http.ResponseWriter, r *http.Request, _ who) error {
	w.Header().Set("Cache-Control", "public, max-age=3600")
	http.ServeFileFS(w, r, pageFiles, "pages/style.css")
	return nil
}

func (s *Server) openapi(w http.ResponseWriter, _ *http.Request, _ who) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, err := w.Write(Description)
	return err
}

// linkFor is how long a link in a mail works.
const linkFor = 400 * 24 * time.Hour

// link opens the token of an unsubscribe link: only we can have made it.
func (s *Server) link(r *http.Request) (notify.Unsubscribe, error) {
	refused := fault.NotFound("This link is not one of ours, or it is too old. Open the link in a newer mail.")
	sealed, err := base64.RawURLEncoding.DecodeString(r.URL.Query().Get("token"))
	if err != nil || len(sealed) > 4096 {
		return notify.Unsubscribe{}, refused
	}
	plain, err := s.Box.Open(sealed, []byte(notify.UnsubscribeContext))
	if err != nil {
		return notify.Unsubscribe{}, refused.Because(err)
	}
	var u notify.Unsubscribe
	if err := u.UnmarshalBinary(plain); err != nil || s.Now().Sub(u.Issued) > linkFor {
		return notify.Unsubscribe{}, refused.Because(err)
	}
	return u, nil
}

// unsubscribePage shows what the link is about. Looking changes nothing: mail scanners follow links.
func (s *Server) unsubscribePage(w http.ResponseWriter, r *http.Request, _ who) error {
	u, err := s.link(r)
	if err != nil {
		return err
	}
	return s.showChoice(w, r, u, false)
}

func (s *Server) showChoice(w http.ResponseWriter, r *http.Request, u notify.Unsubscribe, done bool) error {
	look, err := s.Store.Look(r.Context(), u.ClientID, u.KindID)
	if err != nil {
		return err
	}
	now, err := s.Store.Chosen(r.Context(), u.UserID, u.ClientID, u.KindID)
	if err != nil {
		return err
	}
	s.pages.show(w, http.StatusOK, page{Title: "Your notifications", Form: true, Action: "/unsubscribe?token=" + r.URL.Query().Get("token"),
		Source: look.Source, Kind: look.Kind, Off: !now.Email, AllOff: now.All, Done: done})
	return nil
}

// unsubscribe takes the one click of RFC 8058 and the page's own buttons.
func (s *Server) unsubscribe(w http.ResponseWriter, r *http.Request, _ who) error {
	u, err := s.link(r)
	if err != nil {
		return err
	}
	by := store.Who{Name: "unsubscribe link", RequestID: web.RequestID(r.Context())}
	yes, no := true, false
	kind := func(email bool) []notify.Preference {
		return []notify.Preference{{ClientID: u.ClientID, KindID: u.KindID, Email: email}}
	}
	switch choice := r.PostFormValue("choice"); {
	case r.PostFormValue("List-Unsubscribe") == "One-Click", choice == "off":
		err = s.Store.SetPreferences(r.Context(), by, u.UserID, nil, kind(false))
	case choice == "on":
		err = s.Store.SetPreferences(r.Context(), by, u.UserID, &no, kind(true))
	case choice == "all-off":
		err = s.Store.SetPreferences(r.Context(), by, u.UserID, &yes, nil)
	default:
		err = fault.Invalid("Say what to do: send List-Unsubscribe=One-Click as a form.")
	}
	if err != nil {
		return err
	}
	return s.showChoice(w, r, u, true)
}
