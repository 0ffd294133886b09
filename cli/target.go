package cli

import (
	"context"
	"net/url"
	"strings"

	v3 "github.com/proa-dev/proa/platform/v3"
)

var targetCommand = command{
	name: "target", group: "Session", short: "Show or choose the organization and space to work in",
	examples: []string{"proa target", "proa target -o research -s dev", "proa target -s staging    # in the same organization"},
	needs:    aLogin,
	setup: func(f *flags) action {
		org, space := f.text("org,o", "ORG", "organization"), f.text("space,s", "SPACE", "space")
		f.output()
		return func(ctx context.Context, s *session, _ []string) error {
			if *org == "" && *space != "" && s.cfg.Org.GUID == "" {
				return s.have(anOrg)
			}
			if *org != "" || *space != "" {
				if err := s.target(ctx, *org, *space, false); err != nil {
					return err
				}
			}
			return s.showTarget()
		}
	},
}

func (s *session) showTarget() error {
	if s.flags.json {
		return s.json(map[string]any{"api": s.cfg.API, "user": s.who(), "org": s.cfg.Org, "space": s.cfg.Space})
	}
	s.pairs(s.Out, [][2]string{{"API", s.cfg.API}, {"user", clean(s.who())}, {"org", clean(firstOf(s.cfg.Org.Name, "-"))}, {"space", clean(firstOf(s.cfg.Space.Name, "-"))}})
	switch {
	case s.cfg.Org.GUID == "":
		s.say("\nNext: proa target -o ORG -s SPACE    # proa orgs lists yours")
	case s.cfg.Space.GUID == "":
		s.say("\nNext: proa target -s SPACE    # proa spaces lists yours")
	}
	return nil
}

// target chooses an organization and a space, by name; the only one there is if none is named; or the one that a person picks.
func (s *session) target(ctx context.Context, org, space string, pick bool) error {
	var err error
	if org != "" || s.cfg.Org.GUID == "" {
		s.cfg.Space = Place{}
		if s.cfg.Org, err = s.place(ctx, "org", org, "", pick); err != nil {
			return err
		}
	}
	if s.cfg.Org.GUID != "" {
		if s.cfg.Space, err = s.place(ctx, "space", space, s.cfg.Org.GUID, pick); err != nil {
			return err
		}
	}
	return s.cfg.save(s.Home)
}

func (s *session) place(ctx context.Context, noun, name, org string, pick bool) (Place, error) {
	if name != "" && org == "" {
		return s.findOrg(ctx, name)
	}
	if name != "" {
		return s.findSpace(ctx, org, name)
	}
	path := "/v3/organizations?order_by=name"
	if org != "" {
		path = "/v3/spaces?order_by=name&organization_guids=" + url.QueryEscape(org)
	}
	all, err := v3.All[Place](ctx, s.api, path)
	switch {
	case err != nil || len(all) == 0:
		return Place{}, err
	case len(all) == 1:
		return all[0], nil
	case pick && s.InTTY:
		return s.choose(ctx, map[string]string{"org": "an organization", "space": "a space"}[noun], all)
	}
	return Place{}, nil
}

func (s *session) findOrg(ctx context.Context, name string) (Place, error) {
	found, err := v3.First[Place](ctx, s.api, "/v3/organizations?per_page=1&page=1&names="+queryName(name))
	if err != nil {
		return Place{}, err
	}
	if found == nil {
		return Place{}, missing("proa orgs    # lists those you can see", "There is no organization %q.", name)
	}
	return *found, nil
}

func (s *session) findSpace(ctx context.Context, org, name string) (Place, error) {
	found, err := v3.First[Place](ctx, s.api, "/v3/spaces?per_page=1&page=1&organization_guids="+url.QueryEscape(org)+"&names="+queryName(name))
	if err != nil {
		return Place{}, err
	}
	if found == nil {
		return Place{}, missing("proa spaces    # lists those you can see", "There is no space %q in this organization.", name)
	}
	return *found, nil
}

// queryName writes a name for the filter `names`, in which a comma separates two names.
func queryName(name string) string {
	return url.QueryEscape(strings.ReplaceAll(name, ",", "%2C"))
}
