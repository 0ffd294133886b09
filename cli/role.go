package cli

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/proa-dev/proa/kit/fault"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// The roles, as they are written on the command line.
var (
	orgRoles = map[string]string{
		"OrgManager": "organization_manager", "OrgAuditor": "organization_auditor", "BillingManager": "organization_billing_manager", "OrgUser": "organization_user",
	}
	spaceRoles = map[string]string{
		"SpaceDeveloper": "space_developer", "SpaceManager": "space_manager", "SpaceAuditor": "space_auditor", "SpaceSupporter": "space_supporter",
	}
)

// roleGrant is a role for somebody, in an organization or a space.
type roleGrant struct {
	role       string
	user       v3.UserRef
	org, space string
}

func (s *session) grant(ctx context.Context, g roleGrant) error {
	ask := v3.RoleCreate{Type: g.role}
	ask.Relationships.User = g.user
	ask.Relationships.Organization, ask.Relationships.Space = v3.One(g.org), v3.One(g.space)
	err := s.post(ctx, "/v3/roles", ask, nil)
	if err != nil && strings.Contains(err.Error(), "already has") {
		return nil
	}
	return err
}

// tolerable tells whether the role that comes along by itself was refused for a reason that the role asked for will name better, if
// it is one at all.
func tolerable(err error) bool { return fault.Is(err, fault.KindForbidden) }

func roleOf(name string, roles map[string]string) (string, error) {
	for label, role := range roles {
		if strings.EqualFold(name, label) || name == role {
			return role, nil
		}
	}
	return "", usage("There is no role %q. The roles are %s.", name, strings.Join(slices.Sorted(maps.Keys(roles)), ", "))
}

type roleOptions struct {
	client *bool
	origin *string
}

func roleFlags(f *flags) roleOptions {
	return roleOptions{client: f.on("client", "USER is the id of a client"), origin: f.text("origin", "ORIGIN", "where the user logs in")}
}

func (o roleOptions) user(name string) v3.UserRef {
	var u v3.UserRef
	if *o.client {
		u.Data.GUID = name
		return u
	}
	u.Data.Username, u.Data.Origin = name, *o.origin
	return u
}

var setOrgRoleCommand = command{
	name: "set-org-role", args: "USER ORG ROLE", group: "Users and clients", short: "Give somebody a role in an organization",
	long:     "The roles are OrgManager, OrgAuditor, BillingManager and OrgUser.",
	examples: []string{"proa set-org-role ada research OrgManager"},
	needs:    aLogin,
	setup: func(f *flags) action {
		o := roleFlags(f)
		return func(ctx context.Context, s *session, args []string) error {
			role, err := roleOf(args[2], orgRoles)
			if err != nil {
				return err
			}
			s.say("Giving %s the role %s in org %s as %s...", s.bold(clean(args[0])), s.bold(args[2]), s.bold(clean(args[1])), s.bold(clean(s.who())))
			org, err := s.findOrg(ctx, args[1])
			if err != nil {
				return err
			}
			if err := s.grant(ctx, roleGrant{role: role, user: o.user(args[0]), org: org.GUID}); err != nil {
				return err
			}
			s.ok()
			return nil
		}
	},
}

var setSpaceRoleCommand = command{
	name: "set-space-role", args: "USER ORG SPACE ROLE", group: "Users and clients", short: "Give somebody a role in a space",
	long:     "The roles are SpaceDeveloper, SpaceManager, SpaceAuditor and SpaceSupporter.",
	examples: []string{"proa set-space-role ada research dev SpaceDeveloper"},
	needs:    aLogin,
	setup: func(f *flags) action {
		o := roleFlags(f)
		return func(ctx context.Context, s *session, args []string) error {
			role, err := roleOf(args[3], spaceRoles)
			if err != nil {
				return err
			}
			s.say("Giving %s the role %s in org %s / space %s as %s...", s.bold(clean(args[0])), s.bold(args[3]), s.bold(clean(args[1])),
				s.bold(clean(args[2])), s.bold(clean(s.who())))
			org, err := s.findOrg(ctx, args[1])
			if err != nil {
				return err
			}
			space, err := s.findSpace(ctx, org.GUID, args[2])
			if err != nil {
				return err
			}
			user := o.user(args[0])
			if err := s.grant(ctx, roleGrant{role: "organization_user", user: user, org: org.GUID}); err != nil && !tolerable(err) {
				return err
			}
			if err := s.grant(ctx, roleGrant{role: role, user: user, space: space.GUID}); err != nil {
				return err
			}
			s.ok()
			return nil
		}
	},
}
