package api_test

import (
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/proa-dev/proa/auth/uaa"
)

var (
	formAction = regexp.MustCompile(`<form method="post" action="([^"]*)"`)
	hidden     = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)"`)
	passcodeAt = regexp.MustCompile(`<output class="passcode"[^>]*>([^<]+)</output>`)
)

func (w *world) browse(b *http.Client, req *http.Request) reply {
	w.t.Helper()
	req.Header.Set("Accept", "text/html")
	resp, err := b.Do(req)
	must(w.t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	must(w.t, err)
	return reply{resp.StatusCode, resp.Header, string(body)}
}

func (w *world) open(b *http.Client, path string) reply {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.url+path, nil)
	must(w.t, err)
	return w.browse(b, req)
}

// submit sends the first form of a page, with its hidden fields and what a person adds.
func (w *world) submit(b *http.Client, page string, pairs ...string) reply {
	w.t.Helper()
	action := formAction.FindStringSubmatch(page)
	if action == nil {
		w.t.Fatalf("no form in %s", page)
	}
	form := page[strings.Index(page, action[0]):]
	form = form[:strings.Index(form, "</form>")]
	values := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(form, -1) {
		values.Set(m[1], html.UnescapeString(m[2]))
	}
	for i := 0; i < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return w.post(b, html.UnescapeString(action[1]), values, nil)
}

func (w *world) post(b *http.Client, path string, values url.Values, header http.Header) reply {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url+path, strings.NewReader(values.Encode()))
	must(w.t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for name, v := range header {
		req.Header[name] = v
	}
	return w.browse(b, req)
}

// logInAt opens a page that needs a login, logs in and ends where the page leads.
func (w *world) logInAt(b *http.Client, path string) reply {
	w.t.Helper()
	return w.submit(b, w.open(b, path).body, "username", "admin", "password", adminPassword)
}

func TestCodeWithConsentAndPKCE(t *testing.T) {
	w := newWorld(t)
	r := w.exchange("app", "", w.appCode(), "redirect_uri", "https://app.example.org/callback", "code_verifier", verifier)
	got := w.token(r)
	c := w.claims(got.Access)
	if c.UserName != "admin" || c.Origin != "uaa" || c.Email != "admin@example.org" || c.UserID == "" || c.ClientID != "app" {
		t.Errorf("claims: %+v", c)
	}
	if got.Scope != "openid cloud_controller.read" || got.Type != "bearer" || got.Refresh == "" {
		t.Errorf("reply: %+v", got)
	}
	if id := w.claims(got.ID); id.UserID != c.UserID || !strings.Contains(decode(t, got.ID), `"nonce":"a nonce"`) || id.Audience[0] != "app" {
		t.Errorf("id token: %s", decode(t, got.ID))
	}
	if info := w.call(http.MethodGet, "/userinfo", got.Access, nil); info.status != 200 || !strings.Contains(info.body, `"user_name":"admin"`) {
		t.Errorf("userinfo: %+v", info)
	}
}

func TestDenyingSendsBackAnError(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	page := w.logInAt(b, "/oauth/authorize?client_id=backend&response_type=code&state=a+state&redirect_uri="+url.QueryEscape("https://backend.example.org/callback"))
	if !strings.Contains(page.body, "backend") || !strings.Contains(page.body, "Know who you are") {
		t.Fatalf("consent page: %s", page.body)
	}
	r := w.submit(b, page.body, "answer", "deny")
	place, err := url.Parse(r.header.Get("Location"))
	must(t, err)
	if q := place.Query(); place.Host != "backend.example.org" || q.Get("error") != "access_denied" || q.Get("state") != "a state" || q.Has("code") {
		t.Errorf("sent to %s", place)
	}
}

func TestConsentIsRememberedForAConfidentialClient(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	ask := "/oauth/authorize?client_id=backend&response_type=code&redirect_uri=" + url.QueryEscape("https://backend.example.org/callback")
	w.codeIn(w.submit(b, w.logInAt(b, ask).body, "answer", "allow"))
	w.codeIn(w.open(b, ask)) // no page in between
	if r := w.open(b, ask+"&prompt=consent"); r.status != 200 || !strings.Contains(r.body, "asks to") {
		t.Errorf("prompt=consent must ask again: %d %s", r.status, r.header.Get("Location"))
	}
	if r := w.open(b, ask+"&prompt=login"); !strings.Contains(r.body, `name="password"`) {
		t.Error("prompt=login must show the form")
	}
	w.later(2 * time.Minute)
	if r := w.open(b, ask+"&max_age=60"); !strings.Contains(r.body, `name="password"`) {
		t.Error("a session older than max_age must log in again")
	}
	if r := w.open(w.browser(), ask+"&prompt=none"); !strings.Contains(r.header.Get("Location"), "error=login_required") {
		t.Errorf("prompt=none without a session: %d %s", r.status, r.header.Get("Location"))
	}
}

func TestPasscodeWorksOnce(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	page := w.logInAt(b, "/passcode")
	m := passcodeAt.FindStringSubmatch(page.body)
	if m == nil {
		t.Fatalf("no passcode in %s", page.body)
	}
	got := w.token(w.form("/oauth/token", "cf", "", "grant_type", "password", "passcode", m[1]))
	if c := w.claims(got.Access); c.UserName != "admin" {
		t.Errorf("claims: %+v", c)
	}
	if r := w.form("/oauth/token", "cf", "", "grant_type", "password", "passcode", m[1]); r.status != 401 {
		t.Errorf("the second use answered %d %s", r.status, r.body)
	}
	again := passcodeAt.FindStringSubmatch(w.open(b, "/passcode").body)
	w.later(11 * time.Minute)
	if r := w.form("/oauth/token", "cf", "", "grant_type", "password", "passcode", again[1]); r.status != 401 {
		t.Errorf("an old passcode answered %d %s", r.status, r.body)
	}
}

func TestPagesAreGuarded(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	login := w.open(b, "/login")
	csp := login.header.Get("Content-Security-Policy")
	if !strings.HasPrefix(csp, "default-src 'none'; ") || !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") {
		t.Errorf("policy: %s", csp)
	}
	for name, value := range map[string]string{"X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"} {
		if login.header.Get(name) != value {
			t.Errorf("%s: %q", name, login.header.Get(name))
		}
	}
	for _, c := range login.header["Set-Cookie"] {
		if !strings.Contains(c, "HttpOnly") || !strings.Contains(c, "SameSite=Lax") {
			t.Errorf("cookie: %s", c)
		}
	}
	good := url.Values{"username": {"admin"}, "password": {adminPassword}}
	if r := w.post(b, "/login", good, nil); r.status != 403 {
		t.Errorf("a login without the form's token answered %d", r.status)
	}
	good.Set("csrf", hidden.FindStringSubmatch(login.body)[2])
	if r := w.post(b, "/login", good, http.Header{"Origin": {"https://evil.example.org"}}); r.status != 403 {
		t.Errorf("a login from another site answered %d", r.status)
	}
	if r := w.post(b, "/login", good, http.Header{"Sec-Fetch-Site": {"cross-site"}}); r.status != 403 {
		t.Errorf("a login from another site answered %d", r.status)
	}
	if r := w.post(b, "/login", good, nil); r.status != 200 || !strings.Contains(r.body, "You are logged in") {
		t.Errorf("a good login answered %d", r.status)
	}
}

func TestLoginPageKeepsToItself(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	for _, evil := range []string{"https://evil.example.org/", "//evil.example.org/", `/\evil.example.org`, "/Users", "javascript:alert(1)"} {
		r := w.open(b, "/login?continue="+url.QueryEscape(evil))
		if !strings.Contains(r.body, `name="continue" value="/"`) {
			t.Errorf("%s is kept: %s", evil, r.body)
		}
	}
	script := `"><script>alert(1)</script>`
	r := w.submit(b, w.open(b, "/login").body, "username", script, "password", "x")
	if r.status != 401 || strings.Contains(r.body, "<script>") || !strings.Contains(r.body, "is wrong. Check both") {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestLogoutEndsTheSession(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	home := w.logInAt(b, "/")
	if !strings.Contains(home.body, "You are logged in") {
		t.Fatal(home.body)
	}
	w.submit(b, home.body)
	if r := w.open(b, "/passcode"); !strings.Contains(r.body, `name="password"`) {
		t.Error("the session outlived the logout")
	}
}

func TestSessionEndsWithThePassword(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	w.logInAt(b, "/")
	id := w.claims(w.admin).UserID
	w.call(http.MethodPut, "/Users/"+id+"/password", w.admin, uaa.PasswordChange{New: "a new password"})
	if r := w.open(b, "/"); !strings.Contains(r.body, `name="password"`) {
		t.Error("the session outlived the password")
	}
}
