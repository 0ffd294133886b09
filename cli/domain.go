package cli

import (
	"context"
	"fmt"
	"net/url"

	v3 "github.com/proa-dev/proa/platform/v3"
)

var domainsCommand = command{
	name: "domains", group: "Routes", short: "List the domains that routes of the organization can stand under",
	examples: []string{"proa domains", "proa domains --output json"},
	needs:    anOrg,
	setup: func(f *flags) action {
		f.output()
		return func(ctx context.Context, s *session, _ []string) error {
			domains, err := v3.All[v3.Domain](ctx, s.api, "/v3/organizations/"+url.PathEscape(s.cfg.Org.GUID)+"/domains")
			if err != nil {
				return err
			}
			none := fmt.Sprintf("There are no domains. Next: proa create-private-domain %s DOMAIN", shell(s.cfg.Org.Name))
			return list(s, domains, none, []string{"name", "availability", "protocols"}, func(d v3.Domain) []string {
				return []string{clean(d.Name), availability(d), join(d.SupportedProtocols)}
			})
		}
	},
}

func availability(d v3.Domain) string {
	switch {
	case d.Relationships.Organization.GUID() != "":
		return "private"
	case d.Internal:
		return "shared, internal"
	}
	return "shared"
}

var createSharedDomainCommand = command{
	name: "create-shared-domain", args: "DOMAIN", group: "Routes", short: "Create a domain that all organizations can use (for administrators)",
	examples: []string{"proa create-shared-domain apps.example.com"},
	needs:    aLogin,
	setup: func(*flags) action {
		return func(ctx context.Context, s *session, args []string) error {
			s.say("Creating shared domain %s as %s...", s.bold(clean(args[0])), s.bold(clean(s.who())))
			return s.createDomain(ctx, v3.DomainCreate{Name: args[0], Internal: new(bool)})
		}
	},
}

var createPrivateDomainCommand = command{
	name: "create-private-domain", args: "ORG DOMAIN", group: "Routes", short: "Create a domain that only an organization can use",
	long:     "Names under the domain must lead to the platform's gateway: that is set where the domain is registered.",
	examples: []string{"proa create-private-domain research shop.example.com"},
	needs:    aLogin,
	setup: func(*flags) action {
		return func(ctx context.Context, s *session, args []string) error {
			org, err := s.findOrg(ctx, args[0])
			if err != nil {
				return err
			}
			s.say("Creating private domain %s for org %s as %s...", s.bold(clean(args[1])), s.bold(clean(org.Name)), s.bold(clean(s.who())))
			ask := v3.DomainCreate{Name: args[1]}
			ask.Relationships.Organization = v3.One(org.GUID)
			return s.createDomain(ctx, ask)
		}
	},
}

func (s *session) createDomain(ctx context.Context, ask v3.DomainCreate) error {
	var made v3.Domain
	if err := s.post(ctx, "/v3/domains", ask, &made); err != nil {
		return err
	}
	s.ok()
	s.say("\nNext: proa create-route %s --hostname HOST", shell(made.Name))
	return nil
}

var deletePrivateDomainCommand = command{
	name: "delete-private-domain", args: "DOMAIN", group: "Routes", short: "Delete a domain of an organization, with all routes under it",
	needs: aLogin,
	setup: func(f *flags) action { return deleteDomain(f, "private") },
}

var deleteSharedDomainCommand = command{
	name: "delete-shared-domain", args: "DOMAIN", group: "Routes", short: "Delete a domain that all organizations use, with all routes under it",
	needs: aLogin,
	setup: func(f *flags) action { return deleteDomain(f, "shared") },
}

// deleteDomain deletes a domain of the kind that was meant: a word too much or too little would take everybody's routes away.
func deleteDomain(f *flags, kind string) action {
	force := f.on("force,f", "do not ask")
	return func(ctx context.Context, s *session, args []string) error {
		d, err := s.findDomain(ctx, args[0])
		if err != nil {
			return err
		}
		is := "shared"
		if d.Relationships.Organization.GUID() != "" {
			is = "private"
		}
		if is != kind {
			return failed("proa delete-"+is+"-domain "+shell(d.Name), "The domain %s is %s, not %s.", d.Name, is, kind)
		}
		if err := s.confirm(ctx, *force, fmt.Sprintf("Really delete the %s domain %s and all routes under it?", kind, clean(d.Name))); err != nil {
			return err
		}
		s.say("Deleting %s domain %s as %s...", kind, s.bold(clean(d.Name)), s.bold(clean(s.who())))
		if err := s.remove(ctx, "/v3/domains/"+url.PathEscape(d.GUID)); err != nil {
			return err
		}
		s.ok()
		return nil
	}
}

func (s *session) findDomain(ctx context.Context, name string) (v3.Domain, error) {
	d, err := v3.First[v3.Domain](ctx, s.api, "/v3/domains?per_page=1&page=1&names="+queryName(name))
	if err != nil {
		return v3.Domain{}, err
	}
	if d == nil {
		return v3.Domain{}, missing("proa domains    # lists those you can use", "There is no domain %q.", name)
	}
	return *d, nil
}
