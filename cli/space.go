package cli

import (
	"context"
	"net/url"
	"time"

	v3 "github.com/proa-dev/proa/platform/v3"
)

var createSpaceCommand = command{
	name: "create-space", args: "SPACE", group: "Organizations and spaces", short: "Create a space, and become its manager and developer",
	examples: []string{"proa create-space dev", "proa create-space dev -o research"},
	needs:    aLogin,
	setup: func(f *flags) action {
		orgName := f.text("org,o", "ORG", "organization it belongs to, instead of the target")
		return func(ctx context.Context, s *session, args []string) error {
			org, err := s.orgNamed(ctx, *orgName)
			if err != nil {
				return err
			}
			s.say("Creating space %s in org %s as %s...", s.bold(clean(args[0])), s.bold(clean(org.Name)), s.bold(clean(s.who())))
			ask := v3.SpaceCreate{Name: args[0]}
			ask.Relationships.Organization = v3.One(org.GUID)
			var made v3.Space
			err = s.post(ctx, "/v3/spaces", ask, &made)
			if err := s.already(err, "Name must be unique per organization", ""); err != nil {
				return err
			}
			if err == nil {
				if err := s.moveIn(ctx, org.GUID, made.GUID); err != nil {
					return err
				}
			}
			s.ok()
			s.say("\nNext: proa target -o %s -s %s", shell(org.Name), shell(args[0]))
			return nil
		}
	},
}

// orgNamed is the organization of that name, or the targeted one.
func (s *session) orgNamed(ctx context.Context, name string) (Place, error) {
	if name != "" {
		return s.findOrg(ctx, name)
	}
	return s.cfg.Org, s.have(anOrg)
}

// moveIn gives the person who made a space the roles that are needed to work there. A client has none: it may do what its scopes say.
func (s *session) moveIn(ctx context.Context, org, space string) error {
	me := readClaims(s.cfg.Access)
	if me.UserID == "" {
		return nil
	}
	var user v3.UserRef
	user.Data.GUID = me.UserID
	for _, r := range []roleGrant{{"organization_user", user, org, ""}, {"space_manager", user, "", space}, {"space_developer", user, "", space}} {
		err := s.grant(ctx, r)
		if err != nil && (r.org == "" || !tolerable(err)) {
			return err
		}
	}
	return nil
}

var spacesCommand = command{
	name: "spaces", group: "Organizations and spaces", short: "List the spaces of an organization",
	examples: []string{"proa spaces", "proa spaces -o research --output json"},
	needs:    aLogin,
	setup: func(f *flags) action {
		orgName := f.text("org,o", "ORG", "organization, instead of the target")
		f.output()
		return func(ctx context.Context, s *session, _ []string) error {
			org, err := s.orgNamed(ctx, *orgName)
			if err != nil {
				return err
			}
			spaces, err := v3.All[v3.Space](ctx, s.api, "/v3/spaces?order_by=name&organization_guids="+url.QueryEscape(org.GUID))
			if err != nil {
				return err
			}
			return list(s, spaces, "There are no spaces in this organization. Next: proa create-space SPACE", []string{"name", "created"}, func(p v3.Space) []string {
				return []string{clean(p.Name), s.ago(time.Time(p.CreatedAt))}
			})
		}
	},
}
