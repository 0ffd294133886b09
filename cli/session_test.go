package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestLogin(t *testing.T) {
	w := newWorld(t)
	out := w.ok("login", "-a", w.URL, "-u", "ada", "-p", "lovelace")
	contains(t, out, "Logged in as ada", "research", "dev")
	info, err := os.Stat(filepath.Join(w.home, configFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the configuration is %v, %v: want it to be the owner's alone", info.Mode(), err)
	}
	contains(t, w.ok("target", "--output", "json"), `"user": "ada"`, `"name": "dev"`)
	contains(t, w.ok("oauth-token"), "bearer "+w.good)
	w.ok("logout")
	if w.refresh != "" {
		t.Error("the login was not ended at the server")
	}
	if _, errs, code := w.run("orgs"); code != ExitLogin {
		t.Errorf("after logout: exit %d, %s", code, errs)
	}
}

func TestWhatComesFirst(t *testing.T) {
	w := newWorld(t)
	for _, step := range []struct {
		args []string
		code int
		next string
	}{
		{[]string{"apps"}, ExitLogin, "proa login -a URL"},
		{[]string{"pusj"}, ExitUsage, "Did you mean push?"},
		{[]string{"push", "--memry", "1G"}, ExitUsage, "Did you mean --memory?"},
		{[]string{"app"}, ExitUsage, "proa app APP"},
		{[]string{"app", "a", "b"}, ExitUsage, "one argument too many"},
		{[]string{"login", "-a", w.URL, "-u", "ada"}, ExitUsage, "PROA_PASSWORD"},
		{[]string{"login", "-a", w.URL, "-u", "ada", "-p", "wrong"}, ExitLogin, "The user name or the password is wrong."},
		{[]string{"login", "-a", w.URL, "-u", "ada", "-p", "lovelace", "-o", "nowhere"}, ExitNotFound, "proa orgs"},
		{[]string{"apps"}, ExitTarget, "proa target -o ORG"},
		{[]string{"login", "-a", w.URL + "/elsewhere"}, ExitNotFound, "There is no platform API"},
		{[]string{"login", "-a", "http://127.0.0.1:1"}, ExitUnavailable, "cannot be reached"},
		{[]string{"target", "-s", "nowhere"}, ExitTarget, "proa target -o ORG"},
	} {
		_, errs, code := w.run(step.args...)
		if code != step.code || !strings.Contains(errs, step.next) {
			t.Errorf("proa %s: exit %d, want %d, with %q in:\n%s", strings.Join(step.args, " "), code, step.code, step.next, errs)
		}
	}
}

func TestExpiredTokenIsRefreshedOnce(t *testing.T) {
	w := loggedIn(t)
	cfg, err := loadConfig(w.home)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Access = jwt("ada", time.Now().Add(30*time.Second), 0)
	if err := cfg.save(w.home); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 { // at the same time, as scripts do: a refresh token is good for one use
		all.Go(func() { w.ok("orgs") })
	}
	all.Wait()
	if w.issued != 2 {
		t.Errorf("%d tokens were issued, want 2: one for the login, one for all the rest", w.issued)
	}
	w.refresh, w.good = "", ""
	cfg.Access, cfg.Refresh = "", "gone"
	cfg.Access = jwt("ada", time.Now(), 0)
	if err := cfg.save(w.home); err != nil {
		t.Fatal(err)
	}
	_, errs, code := w.run("orgs")
	if code != ExitLogin {
		t.Errorf("exit %d", code)
	}
	contains(t, errs, "Your login has expired.", "proa login")
}

// A token must not reach another API than the one it was got from.
func TestTokenStaysAtItsAPI(t *testing.T) {
	w := loggedIn(t)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the token was sent to another API")
		}
	}))
	defer other.Close()
	w.env["PROA_API_URL"] = other.URL
	if _, _, code := w.run("orgs"); code != ExitLogin {
		t.Errorf("exit %d, want %d", code, ExitLogin)
	}
	w.run("curl", "/v3/apps")
	w.env["PROA_API_URL"] = w.URL
	contains(t, w.ok("orgs"), "research")
}

func TestLists(t *testing.T) {
	w := loggedIn(t)
	contains(t, w.ok("orgs"), "name", "research")
	contains(t, w.ok("spaces", "--output", "json"), `"name": "dev"`)
	contains(t, w.ok("create-org", "research"), "already exists.", "OK")
	contains(t, w.ok("create-space", "dev"), "Space dev exists already; nothing was created.\nOK", "proa target -o research -s dev")
	_, errs, code := w.run("app", "shop")
	if code != ExitNotFound {
		t.Errorf("exit %d", code)
	}
	contains(t, errs, `There is no app "shop" in space dev.`, "proa apps")
}

// What was deleted is no target any more.
func TestDeleteOrgAndSpace(t *testing.T) {
	left := []string{"/v3/organizations/o-1", "/v3/spaces/s-1"}
	w := loggedIn(t, func(w *world) map[string]http.HandlerFunc {
		forget := func(rw http.ResponseWriter, r *http.Request) {
			if !slices.Contains(left, r.URL.Path) {
				w.refuse(rw, http.StatusNotFound, "CF-ResourceNotFound", "Not found")
				return
			}
			left = slices.DeleteFunc(left, func(p string) bool { return p == r.URL.Path })
			rw.Header().Set("Location", w.URL+"/v3/jobs/j-1")
			rw.WriteHeader(http.StatusAccepted)
		}
		return map[string]http.HandlerFunc{"DELETE /v3/organizations/{guid}": forget, "DELETE /v3/spaces/{guid}": forget}
	})
	contains(t, w.refused(ExitUsage, "delete-space", "dev"), "Really delete space dev of org research with its apps and services?", "--force")
	contains(t, w.refused(ExitUsage, "delete-org", "research"), "Really delete org research with its spaces, their apps and their services?", "--force")
	contains(t, w.refused(ExitNotFound, "delete-space", "prod", "-f"), `There is no space "prod"`)
	contains(t, w.refused(ExitNotFound, "delete-org", "elsewhere", "-f"), `There is no organization "elsewhere".`)
	answer := func(says string) (string, int) {
		_, errs, code := w.runIn(t.Context(), func(e *Env) { e.InTTY, e.In = true, strings.NewReader(says+"\n") }, "delete-space", "dev")
		return errs, code
	}
	if errs, code := answer("n"); code != ExitFailed || !strings.Contains(errs, "Nothing was changed.") {
		t.Errorf("after no: exit %d, %s", code, errs)
	}
	if len(left) != 2 {
		t.Fatalf("left are %v before anybody agreed", left)
	}
	if errs, code := answer("y"); code != 0 {
		t.Errorf("after yes: exit %d, %s", code, errs)
	}
	contains(t, w.refused(ExitTarget, "apps"), "No space is targeted.")
	contains(t, w.ok("delete-org", "research", "-f"), "Deleting org research as ada...", "OK")
	contains(t, w.refused(ExitTarget, "spaces"), "proa target -o ORG")
	if len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

func TestCurl(t *testing.T) {
	w := loggedIn(t)
	contains(t, w.ok("curl", "/v3/organizations", "-i"), "200 OK", `"research"`)
	w.ok("curl", "v3/nothing")
	out, _, code := w.run("curl", "--fail", "/v3/nothing")
	if code != ExitRefused {
		t.Errorf("exit %d", code)
	}
	contains(t, out, "Unknown request")
	w.ok("curl", "/v3/organizations", "-d", "{}")
	if last := w.heard[len(w.heard)-1]; last != "POST /v3/organizations" {
		t.Errorf("with -d it was %s", last)
	}
}

func TestHelpAndCompletion(t *testing.T) {
	w := newWorld(t)
	for _, c := range commands() {
		contains(t, w.ok(append(strings.Fields(c.name), "--help")...), "Usage", "proa "+c.name)
		for _, sh := range []string{"bash", "zsh", "fish"} {
			contains(t, w.ok("completion", sh), strings.Fields(c.name)...)
		}
	}
	contains(t, w.ok("help", "exit-codes"), "130")
	contains(t, w.ok("--version"), "proa test")
}
