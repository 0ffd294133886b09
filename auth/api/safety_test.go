package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/auth/uaa"
)

// Guesses made at the same moment are not more than the lock allows, but for those whose turn had come.
func TestTheLockHoldsAgainstManyAtOnce(t *testing.T) {
	w := newWorld(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	judged := 0
	for range 40 {
		all.Go(func() {
			_, err := w.engine.Login(t.Context(), "admin", "guess", "")
			mu.Lock()
			defer mu.Unlock()
			if err != nil && strings.Contains(err.Error(), "is wrong") {
				judged++
			}
		})
	}
	all.Wait()
	if most := auth.MaxFailures + 8; judged > most || judged == 0 {
		t.Errorf("%d guesses were judged, at most %d may be", judged, most)
	}
	if _, err := w.engine.Login(t.Context(), "admin", adminPassword, ""); err == nil {
		t.Error("the name is not locked")
	}
	w.later(auth.LockFor + time.Second)
	if _, err := w.engine.Login(t.Context(), "admin", adminPassword, ""); err != nil {
		t.Errorf("the lock does not end: %v", err)
	}
}

// A name that nobody has takes as long as a wrong password.
func TestTimeTellsNothing(t *testing.T) {
	w := newWorld(t)
	took := func(name string) time.Duration {
		best := time.Hour
		for i := range 3 {
			begin := time.Now()
			_, _ = w.engine.Login(t.Context(), name, fmt.Sprint("guess", i), "")
			best = min(best, time.Since(begin))
		}
		return best
	}
	known, unknown := took("admin"), took("nobody")
	if unknown < known/2 || unknown > known*2 {
		t.Errorf("a wrong password takes %s, a name that nobody has %s", known, unknown)
	}
}

func TestAWrongPasswordOnThePageCostsAMistake(t *testing.T) {
	w := newWorld(t)
	w.freeze()
	b := w.browser()
	page := w.open(b, "/login").body
	for i := range 20 {
		if r := w.submit(b, page, "username", fmt.Sprint("name", i), "password", "guess"); r.status != 401 {
			t.Fatalf("guess %d: %d", i, r.status)
		}
	}
	if r := w.submit(b, page, "username", "admin", "password", adminPassword); r.status != 429 || r.header.Get("Retry-After") == "" {
		t.Errorf("after twenty mistakes: %d", r.status)
	}
}

func TestEveryFormNeedsItsToken(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	ask := "/oauth/authorize?client_id=backend&response_type=code&redirect_uri=" + url.QueryEscape("https://backend.example.org/callback")
	w.logInAt(b, ask)
	for _, path := range []string{ask, "/logout"} {
		if r := w.post(b, path, url.Values{"answer": {"allow"}}, nil); r.status != 403 {
			t.Errorf("%s without the form's token: %d", path, r.status)
		}
	}
	if r := w.open(b, "/"); !strings.Contains(r.body, "You are logged in") {
		t.Error("a form without its token has logged out")
	}
}

// Changing a password, or ending everything of a person's, ends what is not used yet too.
func TestCodesAndPasscodesEndWithThePassword(t *testing.T) {
	w := newWorld(t)
	id := w.claims(w.admin).UserID
	code := w.sshCode(w.admin)
	passcode, err := w.engine.NewPasscode(t.Context(), id)
	must(t, err)
	w.ok(w.call(http.MethodDelete, "/oauth/token/revoke/user/"+id, w.admin, nil))
	if r := w.exchange("ssh-proxy", "ssh secret", code); r.status != 400 {
		t.Errorf("the code lived on: %d %s", r.status, r.body)
	}
	if r := w.form("/oauth/token", "cf", "", "grant_type", "password", "passcode", passcode); r.status != 401 {
		t.Errorf("the passcode lived on: %d %s", r.status, r.body)
	}
}

// Of two who use a refresh token at once one has stolen it: the login ends for both.
func TestARaceForARefreshTokenEndsTheLogin(t *testing.T) {
	w := newWorld(t)
	for range 5 {
		first := w.login("admin", adminPassword)
		replies := make([]reply, 2)
		var both sync.WaitGroup
		for i := range replies {
			both.Go(func() { replies[i] = w.refresh(first.Refresh) })
		}
		both.Wait()
		won := 0
		for _, r := range replies {
			if r.status != http.StatusOK {
				continue
			}
			won++
			if got := w.refresh(w.token(r).Refresh); got.status != 401 {
				t.Errorf("the winner's login lives on: %d %s", got.status, got.body)
			}
		}
		if won > 1 {
			t.Error("both won")
		}
	}
}

func TestAdministrativeActsAreKept(t *testing.T) {
	w := newWorld(t)
	ann := w.person("ann", "ann's password")
	got := w.login("ann", "ann's password")
	w.ok(w.call(http.MethodPost, "/oauth/clients", w.admin, uaa.Client{ID: "svc", Secret: "s", Grants: uaa.List{"client_credentials"}}))
	w.ok(w.call(http.MethodPut, "/oauth/clients/svc/secret", w.admin, uaa.SecretChange{New: "t"}))
	w.ok(w.call(http.MethodPost, "/Groups/"+w.group("scim.read")+"/members", w.admin, uaa.Member{Value: ann}))
	w.ok(w.call(http.MethodDelete, "/oauth/token/revoke/"+got.JTI, w.admin, nil))
	w.ok(w.call(http.MethodDelete, "/oauth/clients/svc", w.admin, nil))
	trail := w.call(http.MethodGet, "/audit_events?count=500", w.admin, nil).body
	for _, action := range []string{"user.create", "client.create", "client.secret", "group.member.add", "token.revoke", "client.delete"} {
		if !strings.Contains(trail, `"`+action+`"`) {
			t.Errorf("%s is not in the trail", action)
		}
	}
}

func TestSweepLeavesWhatIsAlive(t *testing.T) {
	w := newWorld(t)
	got := w.login("admin", adminPassword)
	w.revoke(w.admin)
	must(t, w.store.Sweep(t.Context(), w.now()))
	if r := w.call(http.MethodGet, "/Users", w.admin, nil); r.status != 401 {
		t.Errorf("a revocation was swept away: %d", r.status)
	}
	w.token(w.refresh(got.Refresh))
}

func TestProofsOfSecretsDoNotLast(t *testing.T) {
	w := newWorld(t)
	once := func() time.Duration {
		begin := time.Now()
		w.token(w.form("/oauth/token", "backend", "backend secret", "grant_type", "client_credentials"))
		return time.Since(begin)
	}
	full := once()
	quick := min(once(), once(), once())
	w.later(11 * time.Minute)
	if again := once(); quick > full || again < 2*quick {
		t.Errorf("at full strength %s, from the proof %s, after eleven minutes %s", full, quick, again)
	}
}

func TestRotationRetiresAndRemovalKeepsASigner(t *testing.T) {
	w := newWorld(t)
	who := auth.Who{Name: "test"}
	first := w.keys.Signing()
	next := func(in time.Duration) string {
		key, err := w.keys.NewKey(w.now().Add(in))
		must(t, err)
		must(t, w.store.RotateKey(t.Context(), who, key))
		must(t, w.keys.Load(t.Context()))
		return key.ID
	}
	pending := next(2 * time.Minute)
	if w.keys.Signing() != first {
		t.Error("a key signs before its time")
	}
	now := next(0)
	if w.keys.Signing() != now {
		t.Error("a key does not sign from its time on")
	}
	w.later(3 * time.Minute)
	must(t, w.keys.Load(t.Context()))
	if w.keys.Signing() != now {
		t.Errorf("%s was pending and has taken over from the newer one", pending)
	}
	if err := w.store.RemoveKey(t.Context(), who, now, w.now()); err == nil {
		t.Error("the newest key was removed, and no other will sign for long")
	}
	must(t, w.store.RemoveKey(t.Context(), who, first, w.now()))
	must(t, w.keys.Load(t.Context()))
	if r := w.call(http.MethodGet, "/Users", w.admin, nil); r.status != 401 {
		t.Errorf("what a removed key signed is believed: %d", r.status)
	}
	last := next(0)
	w.later(auth.MaxAccess + 2*time.Hour)
	keys, err := w.store.Keys(t.Context(), w.now())
	must(t, err)
	if len(keys) != 1 || keys[0].ID != last {
		t.Errorf("old keys are not retired: %d are published", len(keys))
	}
}

// A key that our keyset does not open still verifies what others signed with it.
func TestAForeignKeysetCostsNoVerification(t *testing.T) {
	w := newWorld(t)
	key, err := w.keys.NewKey(w.now())
	must(t, err)
	key.Sealed = append([]byte{}, key.Sealed...)
	key.Sealed[len(key.Sealed)-1] ^= 1
	must(t, w.store.RotateKey(t.Context(), auth.Who{Name: "test"}, key))
	if err := w.keys.Load(t.Context()); err == nil || !strings.Contains(err.Error(), key.ID) {
		t.Errorf("nobody is told: %v", err)
	}
	if public, err := w.keys.Key(t.Context(), key.ID); err != nil || public == nil {
		t.Errorf("%v", err)
	}
	w.login("admin", adminPassword) // signs with the older one, which it has
}

func TestStrangeAddressesAreRefused(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/Users/%00", "/Users/%ff", "/Groups/%ff/members", "/oauth/clients/%00", "/audit_events?target=%00"} {
		if r := w.call(http.MethodGet, path, w.admin, nil); r.status < 400 || r.status >= 500 {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	for _, query := range []string{"filter=%zz", `filter=userName+eq+"a;b"`} {
		if r := w.call(http.MethodGet, "/Users?"+query, w.admin, nil); r.status != 400 {
			t.Errorf("%s lists everyone: %d", query, r.status)
		}
	}
	for _, name := range []string{"\x00", "\xff"} {
		if r := w.form("/oauth/token", "cf", "", "grant_type", "password", "username", name, "password", "x"); r.status < 400 || r.status >= 500 {
			t.Errorf("%q: %d %s", name, r.status, r.body)
		}
	}
	ask := "/oauth/authorize?client_id=app&response_type=code&redirect_uri=" + url.QueryEscape("https://app.example.org/callback")
	if r := w.call(http.MethodGet, ask+"&response_mode=form_post", "", nil); r.status != 400 {
		t.Errorf("form_post: %d", r.status)
	}
	b := w.browser()
	if r := w.logInAt(b, ask+"&max_age=0&code_challenge="+challenge+"&code_challenge_method=S256"); !strings.Contains(r.body, "asks to") {
		t.Errorf("max_age=0 is an endless login: %d", r.status)
	}
}

// A narrow token does not become a wide one by way of a code.
func TestACodeIsNotWiderThanItsToken(t *testing.T) {
	w := newWorld(t)
	narrow := w.token(w.form("/oauth/token", "cf", "", "grant_type", "password", "username", "admin", "password", adminPassword, "scope", "uaa.user"))
	got := w.token(w.exchange("ssh-proxy", "ssh secret", w.sshCode(narrow.Access)))
	if got.Scope != "uaa.user" {
		t.Errorf("the code gave %q", got.Scope)
	}
}
