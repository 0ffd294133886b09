package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/fault"
)

var sshCodeCommand = command{
	name: "ssh-code", group: "Shell", short: "Print a code that other ssh programs can log in with, once",
	long: "It is the password for the user cf:PROCESS/INDEX, where PROCESS is the id of a process and INDEX the number of an instance. " +
		"It works once, and for five minutes. Where the server is, and the fingerprint of its key, is in the API's links.",
	examples: []string{"proa curl / | jq .links.app_ssh", "proa ssh-code", `ssh -p 2222 -l "cf:$(proa app shop --guid --process web)/0" ssh.example.org`},
	needs:    aLogin,
	setup: func(*flags) action {
		return func(ctx context.Context, s *session, _ []string) error {
			code, err := s.sshCode(ctx)
			if err != nil {
				return err
			}
			s.say("%s", code)
			return nil
		}
	},
}

// sshClient is the client at the authorization server for which codes are made, here and in every Cloud Foundry.
const sshClient = "ssh-proxy"

const maxRefusal = 64 << 10

// sshCode gets a code for one login. It stands in the place where a browser would be sent to, and nobody goes there.
func (s *session) sshCode(ctx context.Context) (string, error) {
	token, err := s.accessToken(ctx)
	if err != nil {
		return "", err
	}
	query := url.Values{"client_id": {sshClient}, "response_type": {"code"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.cfg.UAA+"/oauth/authorize?"+query.Encode(), nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "bearer "+token)
	req.Header.Set("Accept", "application/json")
	stays := *s.http
	stays.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := stays.Do(req)
	if err != nil {
		return "", fault.Unavailable("The authorization server at %s cannot be reached. Check its address and try again.", s.cfg.UAA).Because(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= http.StatusBadRequest {
		return "", noCode(resp)
	}
	to, err := resp.Location()
	if err != nil {
		return "", noCodeBecause("It answered without one.", nil)
	}
	if code := to.Query().Get("code"); code != "" {
		return code, nil
	}
	return "", noCodeBecause(firstOf(to.Query().Get("error_description"), to.Query().Get("error"), "It answered without one."), nil)
}

func noCode(resp *http.Response) error {
	var e uaa.Error
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	if err != nil || json.Unmarshal(body, &e) != nil || e.Description == "" {
		e.Description = fmt.Sprintf("It answered with status %d and no reason.", resp.StatusCode)
	}
	cause := &fault.Error{Kind: fault.OfStatus(resp.StatusCode), Code: e.Code, Detail: e.Description}
	if resp.StatusCode == http.StatusUnauthorized {
		return &problem{says: "The authorization server does not accept your login: " + e.Description, next: "proa login", code: ExitLogin, cause: cause}
	}
	return noCodeBecause(e.Description, cause)
}

func noCodeBecause(reason string, cause error) error {
	p := failed("proa login    # as a person; if you are, ask the operator whether there is a client "+sshClient, "The authorization server gave no code for ssh. %s", reason)
	p.cause = cause
	return p
}
