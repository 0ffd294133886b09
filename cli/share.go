package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	v3 "github.com/proa-dev/proa/platform/v3"
)

// sharedSpace is a space that an instance of another one can be used in.
type sharedSpace struct {
	GUID string `json:"space_guid"`
	Name string `json:"space_name"`
	Org  string `json:"organization_name"`
	Apps int    `json:"bound_app_count"`
}

func (p sharedSpace) String() string {
	return fmt.Sprintf("org %s / space %s", firstOf(p.Org, "?"), firstOf(p.Name, p.GUID))
}

func (b beside) sharedSpace(guid string) sharedSpace {
	p := b.spaces[guid]
	return sharedSpace{GUID: guid, Name: p.Name, Org: b.orgs[p.Relationships["organization"].GUID()].Name}
}

// sharedWith are the spaces that an instance is shared with, and how many apps of each use it.
func (s *session) sharedWith(ctx context.Context, i v3.ServiceInstance) ([]sharedSpace, error) {
	path := instancePath(i) + "/relationships/shared_spaces"
	q := url.Values{"fields[space]": {"guid,name,relationships.organization"}, "fields[space.organization]": {"guid,name"}}
	var shared v3.SharedSpaces
	if err := s.get(ctx, path+"?"+q.Encode(), &shared); err != nil || len(shared.Data) == 0 {
		return []sharedSpace{}, err
	}
	b := newBeside()
	b.add(shared.Included)
	var usage v3.SharedUsage
	if err := s.get(ctx, path+"/usage_summary", &usage); err != nil {
		return nil, err
	}
	apps := map[string]int{}
	for _, u := range usage.UsageSummary {
		apps[u.Space.GUID] = u.BoundAppCount
	}
	spaces := make([]sharedSpace, len(shared.Data))
	for n, r := range shared.Data {
		spaces[n] = b.sharedSpace(r.GUID)
		spaces[n].Apps = apps[r.GUID]
	}
	return spaces, nil
}

func (s *session) printShared(spaces []sharedSpace) {
	if len(spaces) == 0 {
		return
	}
	rows := make([][]string, len(spaces))
	for i, p := range spaces {
		rows[i] = []string{clean(p.Org), clean(p.Name), fmt.Sprint(p.Apps)}
	}
	s.say("")
	s.table(s.Out, []string{"shared with org", "space", "bound apps"}, rows)
}

// shareTarget are the options that name the other space.
func shareTarget(f *flags) func(context.Context, *session) (org, space Place, err error) {
	spaceName, orgName := f.text("space,s", "SPACE", "the other space"), f.text("org,o", "ORG", "its organization, instead of the target")
	return func(ctx context.Context, s *session) (org, space Place, err error) {
		if *spaceName == "" {
			return org, space, usage("Which space? Say it with -s SPACE, and -o ORG if it is in another organization.")
		}
		if org, err = s.orgNamed(ctx, *orgName); err != nil {
			return org, space, err
		}
		space, err = s.findSpace(ctx, org.GUID, *spaceName)
		return org, space, err
	}
}

var shareServiceCommand = command{
	name: "share-service", args: "NAME", group: "Services", short: "Let apps of another space be bound to a service instance",
	examples: []string{"proa share-service db -s staging", "proa share-service db -s dev -o research"},
	needs:    aSpace,
	setup: func(f *flags) action {
		at := shareTarget(f)
		return func(ctx context.Context, s *session, args []string) error {
			org, space, err := at(ctx, s)
			if err != nil {
				return err
			}
			i, err := s.findService(ctx, args[0])
			if err != nil {
				return err
			}
			s.say("Sharing service instance %s with org %s / space %s as %s...", s.bold(clean(i.Name)), s.bold(clean(org.Name)), s.bold(clean(space.Name)), s.bold(clean(s.who())))
			ask := v3.ToMany{Data: []v3.Ref{{GUID: space.GUID}}}
			if err := s.post(ctx, instancePath(i)+"/relationships/shared_spaces", ask, &v3.SharedSpaces{}); err != nil {
				return err
			}
			s.ok()
			return nil
		}
	},
}

var unshareServiceCommand = command{
	name: "unshare-service", args: "NAME", group: "Services", short: "Take a service instance back from another space",
	examples: []string{"proa unshare-service db -s staging -f"},
	needs:    aSpace,
	setup: func(f *flags) action {
		at, force := shareTarget(f), f.on("force,f", "do not ask")
		return func(ctx context.Context, s *session, args []string) error {
			org, space, err := at(ctx, s)
			if err != nil {
				return err
			}
			i, err := s.findService(ctx, args[0])
			if err != nil {
				return err
			}
			question := fmt.Sprintf("Apps of org %s / space %s lose their bindings. Really take service instance %s back?", clean(org.Name), clean(space.Name), clean(i.Name))
			if err := s.confirm(ctx, *force, question); err != nil {
				return err
			}
			s.say("Unsharing service instance %s from org %s / space %s as %s...", s.bold(clean(i.Name)), s.bold(clean(org.Name)), s.bold(clean(space.Name)), s.bold(clean(s.who())))
			path := instancePath(i) + "/relationships/shared_spaces/" + url.PathEscape(space.GUID)
			if err := s.api.Call(ctx, http.MethodDelete, path, nil, nil); err != nil {
				return err
			}
			s.ok()
			return nil
		}
	},
}
