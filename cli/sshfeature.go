package cli

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	v3 "github.com/proa-dev/proa/platform/v3"
)

func appSSH(name, short string, on bool) command {
	return command{
		name: name, args: "APP", group: "Shell", short: short, needs: aSpace,
		setup: func(*flags) action {
			return func(ctx context.Context, s *session, args []string) error {
				a, err := s.findApp(ctx, args[0])
				if err != nil {
					return err
				}
				s.say("%s for app %s %s...", map[bool]string{true: "Allowing ssh", false: "Refusing ssh"}[on], s.bold(clean(a.Name)), s.where())
				if err := s.api.Call(ctx, http.MethodPatch, "/v3/apps/"+url.PathEscape(a.GUID)+"/features/ssh", v3.FeatureChange{Enabled: &on}, nil); err != nil {
					return err
				}
				s.ok()
				if !on {
					return nil
				}
				can, err := s.sshEnabled(ctx, a)
				if err != nil {
					return err
				}
				if p := s.sshRefused(a, can); p != nil {
					s.say("\nThe app allows it, but: %s\nNext: %s", clean(p.says), p.next)
				}
				return nil
			}
		},
	}
}

var (
	enableSSHCommand  = appSSH("enable-ssh", "Let those who develop in the space open a shell in an app", true)
	disableSSHCommand = appSSH("disable-ssh", "Let nobody open a shell in an app", false)
)

var sshEnabledCommand = command{
	name: "ssh-enabled", args: "APP", group: "Shell", short: "Tell whether a shell can be opened in an app, and why not",
	needs: aSpace,
	setup: func(f *flags) action {
		f.output()
		return func(ctx context.Context, s *session, args []string) error {
			a, err := s.findApp(ctx, args[0])
			if err != nil {
				return err
			}
			can, err := s.sshEnabled(ctx, a)
			if err != nil {
				return err
			}
			if s.flags.json {
				return s.json(can)
			}
			if p := s.sshRefused(a, can); p != nil {
				s.say("%s\nNext: %s", clean(p.says), p.next)
				return nil
			}
			s.say("ssh is enabled for app %s.", s.bold(clean(a.Name)))
			return nil
		}
	},
}

func (s *session) sshEnabled(ctx context.Context, a v3.App) (v3.SSHEnabled, error) {
	var can v3.SSHEnabled
	err := s.get(ctx, "/v3/apps/"+url.PathEscape(a.GUID)+"/ssh_enabled", &can)
	return can, err
}

// sshRefused says why there is no shell, and what helps; nil when there is.
func (s *session) sshRefused(a v3.App, can v3.SSHEnabled) *problem {
	reason := strings.ToLower(can.Reason)
	switch {
	case can.Enabled:
		return nil
	case strings.Contains(reason, "space"):
		return failed("proa allow-space-ssh "+shell(s.cfg.Space.Name), "ssh is disabled in space %s.", s.cfg.Space.Name)
	case strings.Contains(reason, "global"):
		return failed("ask the operator of "+s.cfg.API, "ssh is disabled for all apps of this installation.")
	case strings.Contains(reason, "app"):
		return failed("proa enable-ssh "+shell(a.Name), "ssh is disabled for app %s.", a.Name)
	}
	return failed("proa enable-ssh "+shell(a.Name), "ssh is disabled for app %s: %s.", a.Name, firstOf(strings.TrimRight(can.Reason, "."), "no reason is given"))
}

func spaceSSH(name, short string, on *bool) command {
	return command{
		name: name, args: "SPACE", group: "Shell", short: short, needs: anOrg,
		setup: func(*flags) action {
			return func(ctx context.Context, s *session, args []string) error {
				space, err := s.findSpace(ctx, s.cfg.Org.GUID, args[0])
				if err != nil {
					return err
				}
				path := "/v3/spaces/" + url.PathEscape(space.GUID) + "/features/ssh"
				if on != nil {
					s.say("%s in space %s as %s...", map[bool]string{true: "Allowing ssh", false: "Refusing ssh"}[*on], s.bold(clean(space.Name)), s.bold(clean(s.who())))
					if err := s.api.Call(ctx, http.MethodPatch, path, v3.FeatureChange{Enabled: on}, nil); err != nil {
						return err
					}
					s.ok()
					return nil
				}
				var is v3.Feature
				if err := s.get(ctx, path, &is); err != nil {
					return err
				}
				if is.Enabled {
					s.say("ssh is allowed in space %s.", s.bold(clean(space.Name)))
				} else {
					s.say("ssh is not allowed in space %s.\nNext: proa allow-space-ssh %s", s.bold(clean(space.Name)), shell(space.Name))
				}
				return nil
			}
		},
	}
}

var (
	allowSpaceSSHCommand    = spaceSSH("allow-space-ssh", "Let apps of a space allow shells", new(true))
	disallowSpaceSSHCommand = spaceSSH("disallow-space-ssh", "Let no app of a space have a shell", new(false))
	spaceSSHAllowedCommand  = spaceSSH("space-ssh-allowed", "Tell whether apps of a space may have shells", nil)
)
