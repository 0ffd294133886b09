package api

import (
	"bytes"
	"cmp"
	"embed"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"github.com/proa-dev/proa/auth"
)

//go:embed pages
var pageFiles embed.FS

// page is what the templates know.
type page struct {
	Title    string
	Message  string // what went wrong, or what is so
	Name     string // of the person who is logged in
	CSRF     string
	Action   string // where the form goes
	Continue string // where to go after logging in
	UserName string // as typed
	App      string // the application that asks
	Host     string // where the browser goes next
	Scopes   []scopeText
	Passcode string

	redirect *url.URL // where the browser may be sent after the form
}

type scopeText struct{ Name, Text string }

type pages struct {
	templates map[string]*template.Template
	secure    bool
}

func newPages(base *url.URL) pages {
	p := pages{templates: map[string]*template.Template{}, secure: base.Scheme == "https"}
	for _, name := range []string{"login", "consent", "passcode", "error", "home"} {
		p.templates[name] = template.Must(template.ParseFS(pageFiles, "pages/layout.html", "pages/"+name+".html"))
	}
	return p
}

// show renders a page. A form may lead to us and, by redirect, to the one address that is registered for the application.
func (p pages) show(w http.ResponseWriter, status int, name string, data page) {
	var body bytes.Buffer
	if err := p.templates[name].ExecuteTemplate(&body, "layout", data); err != nil {
		http.Error(w, "The page cannot be shown. Try again.", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"+formTarget(data.redirect))
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Permissions-Policy", "interest-cohort=()")
	if p.secure {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes())
}

// formTarget is the source expression of a redirect address: its origin, or its scheme when an app has one of its own.
func formTarget(u *url.URL) string {
	switch {
	case u == nil:
		return ""
	case u.Host != "" && !strings.ContainsAny(u.Host, "'; ,"):
		return " " + u.Scheme + "://" + u.Host
	case u.Host == "":
		return " " + u.Scheme + ":"
	}
	return ""
}

func (s *Server) style(w http.ResponseWriter, r *http.Request, _ auth.Who) error {
	w.Header().Set("Cache-Control", "public, max-age=3600")
	http.ServeFileFS(w, r, pageFiles, "pages/style.css")
	return nil
}

// scopeTexts says in words what an application asks for: the description of the group that is the scope, or its name.
func scopeTexts(scopes []string, groups []auth.Group) []scopeText {
	words := map[string]string{}
	for _, g := range groups {
		words[g.Name] = g.Description
	}
	list := make([]scopeText, len(scopes))
	for i, name := range scopes {
		list[i] = scopeText{Name: name, Text: cmp.Or(words[name], name)}
	}
	return list
}
