package cli

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	v3 "github.com/proa-dev/proa/platform/v3"
)

var createOrgCommand = command{
	name: "create-org", args: "ORG", group: "Organizations and spaces", short: "Create an organization",
	examples: []string{"proa create-org research"},
	needs:    aLogin,
	setup: func(*flags) action {
		return func(ctx context.Context, s *session, args []string) error {
			name := args[0]
			s.say("Creating org %s as %s...", s.bold(clean(name)), s.bold(clean(s.who())))
			err := s.post(ctx, "/v3/organizations", v3.OrganizationChange{Name: &name, Suspended: new(bool)}, nil)
			if err := s.already(err, "Organization '", "' already exists."); err != nil {
				return err
			}
			s.ok()
			s.say("\nNext: proa target -o %s", shell(name))
			return nil
		}
	},
}

var orgsCommand = command{
	name: "orgs", group: "Organizations and spaces", short: "List the organizations you can see",
	examples: []string{"proa orgs", "proa orgs --output json"},
	needs:    aLogin,
	setup: func(f *flags) action {
		f.output()
		return func(ctx context.Context, s *session, _ []string) error {
			orgs, err := v3.All[v3.Organization](ctx, s.api, "/v3/organizations?order_by=name")
			if err != nil {
				return err
			}
			return list(s, orgs, "There are no organizations. Next: proa create-org ORG", []string{"name", "created", "state"}, func(o v3.Organization) []string {
				state := ""
				if o.Suspended {
					state = s.red("suspended")
				}
				return []string{clean(o.Name), s.ago(time.Time(o.CreatedAt)), state}
			})
		}
	},
}

var deleteOrgCommand = command{
	name: "delete-org", args: "ORG", group: "Organizations and spaces", short: "Delete an organization, with its spaces and all that is in them",
	examples: []string{"proa delete-org research", "proa delete-org research -f    # without being asked"},
	needs:    aLogin,
	setup: func(f *flags) action {
		force := f.on("force,f", "do not ask")
		return func(ctx context.Context, s *session, args []string) error {
			org, err := s.findOrg(ctx, args[0])
			if err != nil {
				return err
			}
			question := fmt.Sprintf("Really delete org %s with its spaces, their apps and their services?", clean(org.Name))
			if err := s.confirm(ctx, *force, question); err != nil {
				return err
			}
			s.say("Deleting org %s as %s...", s.bold(clean(org.Name)), s.bold(clean(s.who())))
			if err := s.remove(ctx, "/v3/organizations/"+url.PathEscape(org.GUID)); err != nil {
				return err
			}
			if s.cfg.Org.GUID == org.GUID {
				s.cfg.Org, s.cfg.Space = Place{}, Place{}
				if err := s.cfg.save(s.Home); err != nil {
					return err
				}
			}
			s.ok()
			return nil
		}
	},
}

// already turns the refusal of a thing that is there already into a word about it: who asks for it has it.
func (s *session) already(err error, start, end string) error {
	if err == nil {
		return nil
	}
	text := problemOf(err).says
	if strings.Contains(text, start) && strings.Contains(text, end) {
		s.say("%s", clean(text))
		return nil
	}
	return err
}

// exists is already in words of our own, where those of the API are about its rules.
func (s *session) exists(err error, refusal, says string) error {
	if err == nil || !strings.Contains(problemOf(err).says, refusal) {
		return err
	}
	s.say("%s", clean(says))
	return nil
}
