package cli

import (
	"context"
	"net/url"

	"github.com/proa-dev/proa/kit/fault"
)

var authCommand = command{
	name: "auth", args: "[NAME] [PASSWORD]", group: "Session", short: "Log in without being asked, as a person or a client",
	long: "Name and password may be left out when PROA_USERNAME and PROA_PASSWORD are set. With --client-credentials they are those of a\n" +
		"client. A client's login ends when its token expires; run the command again then.",
	examples: []string{"PROA_USERNAME=ada PROA_PASSWORD=… proa auth", "PROA_PASSWORD=… proa auth ci --client-credentials"},
	needs:    anAPI,
	setup: func(f *flags) action {
		asClient := f.on("client-credentials", "log in as a client that acts for itself")
		return func(ctx context.Context, s *session, args []string) error {
			args = append(args, "", "")
			name, secret := firstOf(args[0], s.Getenv("PROA_USERNAME")), firstOf(args[1], s.Getenv("PROA_PASSWORD"))
			if name == "" {
				return usage("A name is missing. Give it as an argument, or set PROA_USERNAME.")
			}
			if secret == "" && s.InTTY {
				var err error
				if secret, err = s.askHidden(ctx, "Password"); err != nil {
					return err
				}
			}
			if secret == "" {
				return usage("A password is missing. Set PROA_PASSWORD, or give it as the second argument.")
			}
			if err := s.connect(ctx, s.cfg.API, s.cfg.Insecure); err != nil {
				return err
			}
			if err := s.authenticate(ctx, name, secret, *asClient); err != nil {
				return err
			}
			if err := s.cfg.save(s.Home); err != nil {
				return err
			}
			s.say("%s Logged in as %s.", s.green("OK"), s.bold(clean(s.who())))
			if s.cfg.Space.GUID == "" {
				s.say("Next: proa target -o ORG -s SPACE")
			}
			return nil
		}
	},
}

func (s *session) authenticate(ctx context.Context, name, secret string, asClient bool) error {
	id, password := clientID, ""
	form := url.Values{"grant_type": {"password"}, "username": {name}, "password": {secret}}
	if asClient {
		id, password, form = name, secret, url.Values{"grant_type": {"client_credentials"}}
	}
	before := readClaims(s.cfg.Access)
	t, err := s.login.Fetch(ctx, id, password, form)
	if fault.Is(err, fault.KindUnauthorized) || fault.Is(err, fault.KindInvalid) {
		return &problem{says: fault.From(err).Detail, next: "proa auth    # with the right name and password", code: ExitLogin, cause: err}
	}
	if err != nil {
		return err
	}
	s.cfg.Access, s.cfg.Refresh, s.cfg.ClientID = t.Access, t.Refresh, ""
	if asClient {
		s.cfg.ClientID = name
	}
	if before.who() != readClaims(t.Access).who() { // somebody else may not even see where this one worked
		s.cfg.Org, s.cfg.Space = Place{}, Place{}
	}
	return nil
}

var logoutCommand = command{
	name: "logout", group: "Session", short: "Log out, and forget the target",
	setup: func(*flags) action {
		return func(ctx context.Context, s *session, _ []string) error {
			s.revoke(ctx)
			cfg := s.cfg
			cfg.Access, cfg.Refresh, cfg.ClientID, cfg.Org, cfg.Space = "", "", "", Place{}, Place{}
			if err := cfg.save(s.Home); err != nil {
				return err
			}
			s.ok()
			return nil
		}
	},
}

var tokenCommand = command{
	name: "oauth-token", group: "Session", short: "Print an access token that is good for a while",
	examples: []string{`curl -H "Authorization: $(proa oauth-token)" "$NOTIFY_URL/notifications"`},
	needs:    aLogin,
	setup: func(*flags) action {
		return func(ctx context.Context, s *session, _ []string) error {
			token, err := s.accessToken(ctx)
			if err != nil {
				return err
			}
			s.say("bearer %s", token)
			return nil
		}
	},
}
