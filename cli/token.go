package cli

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/fault"
)

// margin is how long a token must still be good for to be used: a request takes its time to arrive.
const margin = time.Minute

// claims are what a token says about who holds it. It is not verified here: the servers do that.
type claims struct {
	UserName string `json:"user_name"`
	UserID   string `json:"user_id"`
	ClientID string `json:"client_id"`
	Expires  int64  `json:"exp"`
}

func readClaims(token string) claims {
	var c claims
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c
	}
	if body, err := base64.RawURLEncoding.DecodeString(parts[1]); err == nil {
		_ = json.Unmarshal(body, &c) // a token that cannot be read has no claims, and counts as expired
	}
	return c
}

func (c claims) who() string {
	if c.UserName != "" {
		return c.UserName
	}
	return c.ClientID
}

func (s *session) fresh(token string) bool {
	return s.Now().Add(margin).Before(time.Unix(readClaims(token).Expires, 0))
}

// accessToken gives a token that is good for a while yet, and gets another one when it must.
func (s *session) accessToken(ctx context.Context) (string, error) {
	s.token.Lock()
	defer s.token.Unlock()
	if s.fresh(s.cfg.Access) {
		return s.cfg.Access, nil
	}
	return s.renew(ctx)
}

// renew holds the lock of the file meanwhile: a refresh token is good for one use, and two commands that run at the same time must
// not both show it. The second one finds what the first one got.
func (s *session) renew(ctx context.Context) (string, error) {
	if err := os.MkdirAll(s.Home, 0o700); err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(s.Home, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if now, err := loadConfig(s.Home); err == nil && now.API == s.cfg.API && now.Access != s.cfg.Access && s.fresh(now.Access) {
		s.cfg.Access, s.cfg.Refresh = now.Access, now.Refresh
		return s.cfg.Access, nil
	}
	if s.cfg.Refresh == "" {
		return "", s.expired(nil)
	}
	t, err := s.login.Fetch(ctx, clientID, "", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {s.cfg.Refresh}})
	if fault.Is(err, fault.KindUnauthorized) || fault.Is(err, fault.KindInvalid) {
		return "", s.expired(err)
	}
	if err != nil {
		return "", err
	}
	s.keep(t)
	return s.cfg.Access, s.cfg.save(s.Home)
}

func (s *session) keep(t uaa.Token) {
	s.cfg.Access = t.Access
	if t.Refresh != "" {
		s.cfg.Refresh = t.Refresh
	}
}

func (s *session) expired(cause error) error {
	p := &problem{says: "Your login has expired.", next: "proa login", code: ExitLogin, cause: cause}
	if s.cfg.ClientID != "" {
		p.next = "proa auth " + shell(s.cfg.ClientID) + " --client-credentials"
	}
	return p
}

// revoke ends a login at the server. A server that does not answer keeps nobody from logging out here.
func (s *session) revoke(ctx context.Context) {
	if s.cfg.Refresh == "" || s.cfg.Login == "" {
		return
	}
	form := url.Values{"token": {s.cfg.Refresh}, "token_type_hint": {"refresh_token"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.Login+"/oauth/revoke", strings.NewReader(form.Encode()))
	if err != nil {
		return
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth(clientID, "")
	resp, err := s.http.Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	if err != nil || resp.StatusCode >= http.StatusBadRequest {
		s.warn("The server was not told of it: until the login expires there, a copy of your tokens would still be good.")
	}
}
