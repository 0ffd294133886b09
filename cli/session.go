package cli

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/proa-dev/proa/auth/uaa"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// session is one run of a command: the world, what is remembered, and the servers it talks to.
type session struct {
	*Env
	flags *flags
	cfg   Config
	api   *v3.Client
	auth  *uaa.Conn // users and clients
	login *uaa.Conn // tokens; asks without one
	http  *http.Client
	lines *bufio.Reader

	token sync.Mutex
}

// clientID is the client that people log in with. A program on somebody's machine can keep no secret, so it has none.
const clientID = "cf"

func newSession(e *Env, f *flags) (*session, error) {
	cfg, err := loadConfig(e.Home)
	if err != nil {
		return nil, err
	}
	if named := e.Getenv("PROA_API_URL"); named != "" {
		address, err := apiURL(named)
		if err != nil {
			return nil, err
		}
		cfg = cfg.at(address)
	}
	s := &session{Env: e, flags: f}
	s.use(cfg)
	return s, nil
}

// use points the session at the servers of a configuration.
func (s *session) use(cfg Config) {
	s.cfg = cfg
	transport := s.Transport
	if t, ok := transport.(*http.Transport); ok && cfg.Insecure {
		t = t.Clone()
		t.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // asked for with --skip-ssl-validation
		transport = t
	}
	s.http = &http.Client{Transport: transport}
	s.api = &v3.Client{URL: cfg.API, HTTP: s.http, Agent: s.agent(), Warn: s.warn, Poll: s.Poll}
	s.auth = &uaa.Conn{URL: cfg.UAA, HTTP: s.http, Token: s.accessToken}
	s.login = &uaa.Conn{URL: cfg.Login, HTTP: s.http}
	if cfg.Access != "" {
		s.api.Token = s.accessToken
	}
}

func (s *session) agent() string {
	return fmt.Sprintf("proa/%s (%s; %s %s)", s.Version, runtime.Version(), runtime.GOARCH, runtime.GOOS)
}

func (s *session) warn(text string) {
	fmt.Fprintf(s.Err, "%s %s\n", s.yellow("Warning:"), clean(text))
}

func (s *session) say(format string, args ...any) { fmt.Fprintf(s.Out, format+"\n", args...) }

func (s *session) ok() { fmt.Fprintln(s.Out, s.green("OK")) }

// have refuses a command that comes too early, with the one that comes before it.
func (s *session) have(n need) error {
	switch {
	case n >= anAPI && s.cfg.API == "":
		return &problem{says: "No API is set yet.", next: "proa login -a URL    # or: proa api URL", code: ExitLogin}
	case n >= aLogin && s.cfg.Access == "":
		return &problem{says: fmt.Sprintf("You are not logged in at %s.", s.cfg.API), next: "proa login", code: ExitLogin}
	case n >= anOrg && s.cfg.Org.GUID == "":
		return &problem{says: "No organization is targeted.", next: "proa target -o ORG    # proa orgs lists yours", code: ExitTarget}
	case n >= aSpace && s.cfg.Space.GUID == "":
		return &problem{says: "No space is targeted.", next: "proa target -o ORG -s SPACE    # proa spaces lists yours", code: ExitTarget}
	}
	return nil
}

// get reads from the API.
func (s *session) get(ctx context.Context, path string, out any) error {
	return s.api.Call(ctx, http.MethodGet, path, nil, out)
}

func (s *session) post(ctx context.Context, path string, in, out any) error {
	return s.api.Call(ctx, http.MethodPost, path, in, out)
}

// where names the target and who acts there, for the first line of a command.
func (s *session) where() string {
	return fmt.Sprintf("in org %s / space %s as %s", s.bold(clean(s.cfg.Org.Name)), s.bold(clean(s.cfg.Space.Name)), s.bold(clean(s.who())))
}

// who is the person or client that is logged in.
func (s *session) who() string { return readClaims(s.cfg.Access).who() }

// ago is a time as people say it.
func (s *session) ago(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return age(s.Now().Sub(t)) + " ago"
}

func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

func plural(n int, noun string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s", noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// apiURL is the address of an API as people write it. Without a scheme it is https.
func apiURL(text string) (string, error) {
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	return cleanURL(text)
}
