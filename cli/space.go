package cli

import (
	"context"
	"fmt"
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
			if err := s.exists(err, "Name must be unique per organization", "Space "+args[0]+" exists already; nothing was created."); err != nil {
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

var deleteSpaceCommand = command{
	name: "delete-space", args: "SPACE", group: "Organizations and spaces", short: "Delete a space, with its apps, routes and services",
	examples: []string{"proa delete-space dev", "proa delete-space dev -o research -f    # without being asked"},
	needs:    aLogin,
	setup: func(f *flags) action {
		orgName, force := f.text("org,o", "ORG", "organization it belongs to, instead of the target"), f.on("force,f", "do not ask")
		return func(ctx context.Context, s *session, args []string) error {
			org, err := s.orgNamed(ctx, *orgName)
			if err != nil {
				return err
			}
			space, err := s.findSpace(ctx, org.GUID, args[0])
			if err != nil {
				return err
			}
			question := fmt.Sprintf("Really delete space %s of org %s with its apps and services?", clean(space.Name), clean(org.Name))
			if err := s.confirm(ctx, *force, question); err != nil {
				return err
			}
			s.say("Deleting space %s in org %s as %s...", s.bold(clean(space.Name)), s.bold(clean(org.Name)), s.bold(clean(s.who())))
			if err := s.remove(ctx, "/v3/spaces/"+url.PathEscape(space.GUID)); err != nil {
				return err
			}
			if s.cfg.Space.GUID == space.GUID {
				s.cfg.Space = Place{}
				if err := s.cfg.save(s.Home); err != nil {
					return err
				}
			}
			s.ok()
			return nil
		}
	},
}
