package cli

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/proa-dev/proa/kit/fault"
	v3 "github.com/proa-dev/proa/platform/v3"
)

var apiCommand = command{
	name: "api", args: "[URL]", group: "Session", short: "Set or show the address of the API",
	examples: []string{"proa api https://api.example.com", "proa api    # shows it"},
	setup: func(f *flags) action {
		insecure := f.on("skip-ssl-validation", "do not verify certificates (for trying things out)")
		return func(ctx context.Context, s *session, args []string) error {
			if len(args) == 1 {
				if err := s.connect(ctx, args[0], *insecure); err != nil {
					return err
				}
				if err := s.cfg.save(s.Home); err != nil {
					return err
				}
			}
			if err := s.have(anAPI); err != nil {
				return err
			}
			s.pairs(s.Out, [][2]string{{"API", s.cfg.API}, {"version", s.cfg.Version}})
			return nil
		}
	},
}

func cleanURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" {
		return "", usage("%q is not the address of an API. Write it as https://api.example.com.", text)
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// connect asks an API where its neighbours are, and forgets the login at another one.
func (s *session) connect(ctx context.Context, address string, insecure bool) error {
	address, err := apiURL(address)
	if err != nil {
		return err
	}
	cfg := s.cfg.at(address)
	cfg.Insecure = insecure
	s.use(cfg)
	var root v3.Root
	open := *s.api
	open.Token = nil
	err = open.Call(ctx, http.MethodGet, "/", nil, &root)
	if fault.Is(err, fault.KindNotFound) {
		return missing("proa api URL", "There is no platform API at %s.", address)
	}
	if err != nil {
		return err
	}
	href := func(name string) string {
		if link := root.Links[name]; link != nil {
			return strings.TrimRight(link.Href, "/")
		}
		return ""
	}
	cfg.Login, cfg.UAA, cfg.LogCache, cfg.Apps = href("login"), href("uaa"), href("log_cache"), href("apps")
	if cfg.Login == "" || cfg.UAA == "" {
		return failed("proa api URL", "%s answers, but not as a platform API: it does not say where to log in.", address)
	}
	if link := root.Links["cloud_controller_v3"]; link != nil {
		cfg.Version, _ = link.Meta["version"].(string)
	}
	for _, place := range []string{address, cfg.Login, cfg.UAA} {
		if open := exposed(place); open {
			s.warn(place + " is not encrypted: passwords and tokens can be read on the way.")
			break
		}
	}
	if insecure {
		s.warn("Certificates are not verified: you may be talking to somebody else.")
	}
	s.use(cfg)
	return nil
}

// exposed tells whether others could listen.
func exposed(place string) bool {
	u, err := url.Parse(place)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && !strings.HasSuffix(u.Hostname(), ".localhost") && (ip == nil || !ip.IsLoopback())
}

type loginOptions struct {
	api, user, password, org, space, passcode *string
	insecure, sso                             *bool
}

var loginCommand = command{
	name: "login", group: "Session", short: "Log in, and choose where to work",
	long: "What is not given as an option is asked for. A password on the command line can be seen by others on this machine and stays in the\n" +
		"shell's history: leave it out to be asked, or set PROA_USERNAME and PROA_PASSWORD.",
	examples: []string{"proa login -a https://api.example.com", "proa login -u ada -o research -s dev"},
	setup: func(f *flags) action {
		o := loginOptions{
			api: f.text("api,a", "URL", "address of the API"), user: f.text("username,u", "NAME", "who you are"),
			password: f.text("password,p", "PASSWORD", "your password"),
			org:      f.text("org,o", "ORG", "organization to target"), space: f.text("space,s", "SPACE", "space to target"),
			sso: f.on("sso", "log in with a one-time passcode"), passcode: f.text("sso-passcode", "CODE", "the one-time passcode"),
			insecure: f.on("skip-ssl-validation", "do not verify certificates (for trying things out)"),
		}
		return o.run
	},
}

func (o loginOptions) run(ctx context.Context, s *session, _ []string) error {
	address := *o.api
	if address == "" {
		address = s.cfg.API
	}
	if address == "" && s.InTTY {
		var err error
		if address, err = s.ask(ctx, "API address"); err != nil {
			return err
		}
	}
	if address == "" {
		return s.have(anAPI)
	}
	if err := s.connect(ctx, address, *o.insecure || s.cfg.Insecure && *o.api == ""); err != nil {
		return err
	}
	s.say("API: %s", s.cfg.API)
	if err := o.authenticate(ctx, s); err != nil {
		return err
	}
	s.cfg.Org, s.cfg.Space = Place{}, Place{}
	if err := s.cfg.save(s.Home); err != nil { // who is logged in stays so, also if the target is mistyped
		return err
	}
	s.use(s.cfg)
	s.say("%s Logged in as %s.", s.green("OK"), s.bold(clean(s.who())))
	if err := s.target(ctx, *o.org, *o.space, true); err != nil {
		return err
	}
	return s.showTarget()
}

const maxLogins = 3

// authenticate asks for what the authorization server wants to know. Somebody who typed a wrong password may try again.
func (o loginOptions) authenticate(ctx context.Context, s *session) error {
	var page struct {
		Prompts map[string][]string `json:"prompts"`
	}
	if err := s.login.Call(ctx, http.MethodGet, "/login", nil, &page); err != nil {
		return err
	}
	for n := 1; ; n++ {
		form, typed, err := o.form(ctx, s, page.Prompts)
		if err != nil {
			return err
		}
		form.Set("grant_type", "password")
		t, err := s.login.Fetch(ctx, clientID, "", form)
		switch {
		case err == nil:
			s.cfg.Access, s.cfg.Refresh, s.cfg.ClientID = t.Access, t.Refresh, ""
			return nil
		case !fault.Is(err, fault.KindUnauthorized) && !fault.Is(err, fault.KindInvalid) || !typed || n == maxLogins:
			return rejected(err)
		}
		fmt.Fprintf(s.Err, "%s %s Try again.\n\n", s.red("Error:"), clean(fault.From(err).Detail))
	}
}

func rejected(err error) error {
	f := fault.From(err)
	if f.Kind != fault.KindUnauthorized && f.Kind != fault.KindInvalid {
		return err
	}
	return &problem{says: f.Detail, next: "proa login    # with the right name and password", code: ExitLogin, cause: err}
}

// form fills in each prompt from an option, the environment or the person; typed tells whether the person was asked for a secret.
func (o loginOptions) form(ctx context.Context, s *session, prompts map[string][]string) (form url.Values, typed bool, err error) {
	form = url.Values{}
	given := map[string]string{"username": firstOf(*o.user, s.Getenv("PROA_USERNAME")), "password": firstOf(*o.password, s.Getenv("PROA_PASSWORD"))}
	var names []string
	if *o.sso || *o.passcode != "" {
		names, given = []string{"passcode"}, map[string]string{"passcode": *o.passcode}
	} else {
		names = inOrder(prompts)
	}
	for _, name := range names {
		value := given[name]
		if value == "" && !s.InTTY {
			return nil, false, &problem{says: fmt.Sprintf("Nobody can be asked for the %s here.", name), next: "proa login -u NAME    # with PROA_PASSWORD set", code: ExitUsage}
		}
		switch hidden := kindOf(prompts[name]) == "password"; {
		case value != "":
		case hidden:
			typed = true
			value, err = s.askHidden(ctx, labelOf(prompts[name], name))
		default:
			value, err = s.ask(ctx, labelOf(prompts[name], name))
		}
		if err != nil {
			return nil, typed, err
		}
		form.Set(name, value)
	}
	return form, typed, nil
}

// inOrder is the order in which people expect to be asked: their name first, secrets last.
func inOrder(prompts map[string][]string) []string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(prompts)), func(n string) bool { return n == "passcode" })
	if len(names) == 0 {
		return []string{"username", "password"}
	}
	rank := func(n string) int {
		r := slices.Index([]string{"username", "", "password"}, n)
		if r >= 0 {
			return r
		}
		if kindOf(prompts[n]) == "password" {
			return 3
		}
		return 1
	}
	slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
	return names
}

func kindOf(prompt []string) string {
	if len(prompt) > 0 {
		return prompt[0]
	}
	return ""
}

func labelOf(prompt []string, name string) string {
	if len(prompt) > 1 {
		return clean(prompt[1])
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
