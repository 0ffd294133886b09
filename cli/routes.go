package cli

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	v3 "github.com/proa-dev/proa/platform/v3"
)

// listedRoute is a route as `routes` shows it.
type listedRoute struct {
	v3.Route
	Space string   `json:"space_name"`
	Apps  []string `json:"app_names"` // of its destinations, each once
}

var routesCommand = command{
	name: "routes", group: "Routes", short: "List the routes of the space, and where they lead",
	examples: []string{"proa routes", "proa routes --org-level", "proa routes --output json | jq -r '.[].url'"},
	needs:    aSpace,
	setup: func(f *flags) action {
		all := f.on("org-level", "those of all spaces of the organization")
		f.output()
		return func(ctx context.Context, s *session, _ []string) error {
			filter := "space_guids=" + url.QueryEscape(s.cfg.Space.GUID)
			if *all {
				filter = "organization_guids=" + url.QueryEscape(s.cfg.Org.GUID)
			}
			routes, err := v3.All[v3.Route](ctx, s.api, "/v3/routes?per_page=5000&"+filter)
			if err != nil {
				return err
			}
			names, err := s.namesOf(ctx, routes)
			if err != nil {
				return err
			}
			listed := make([]listedRoute, len(routes))
			for i, r := range routes {
				listed[i] = names.listed(r)
			}
			headings, first := []string{"route", "destinations"}, 1
			if *all {
				headings, first = append([]string{"space"}, headings...), 0
			}
			none := "There are no routes. Next: proa create-route DOMAIN --hostname HOST    # proa domains lists the domains"
			err = list(s, listed, none, headings, func(r listedRoute) []string {
				return []string{clean(r.Space), clean(r.URL), names.destinations(r.Route)}[first:]
			})
			if err == nil && !s.flags.json {
				s.printPending(names.apps, routes)
			}
			return err
		}
	},
}

// names are what people call the spaces and apps of routes.
type names struct{ spaces, apps map[string]string }

func (s *session) namesOf(ctx context.Context, routes []v3.Route) (names, error) {
	spaces, apps := map[string]bool{}, map[string]bool{}
	for _, r := range routes {
		spaces[r.Relationships.Space.GUID()] = true
		for _, d := range r.Destinations {
			apps[d.App.GUID] = true
		}
	}
	var n names
	var err error
	if n.spaces, err = s.called(ctx, "/v3/spaces", spaces); err != nil {
		return n, err
	}
	n.apps, err = s.called(ctx, "/v3/apps", apps)
	return n, err
}

// batch is how many ids are asked for at once: an address may only be so long.
const batch = 200

// called are the names of records, by their ids. One that may not be seen is called by its id.
func (s *session) called(ctx context.Context, path string, guids map[string]bool) (map[string]string, error) {
	names := map[string]string{}
	for some := range slices.Chunk(slices.Sorted(maps.Keys(guids)), batch) {
		for one, err := range v3.Each[Place](ctx, s.api, path+"?per_page=5000&guids="+url.QueryEscape(strings.Join(some, ","))) {
			if err != nil {
				return nil, err
			}
			names[one.GUID] = one.Name
		}
	}
	for guid := range guids {
		names[guid] = firstOf(names[guid], guid)
	}
	return names, nil
}

func (n names) listed(r v3.Route) listedRoute {
	l := listedRoute{Route: r, Space: n.spaces[r.Relationships.Space.GUID()], Apps: []string{}}
	for _, d := range r.Destinations {
		if app := n.apps[d.App.GUID]; !slices.Contains(l.Apps, app) {
			l.Apps = append(l.Apps, app)
		}
	}
	return l
}

// destinations are where a route leads, one to a line.
func (n names) destinations(r v3.Route) string {
	lines := make([]string, len(r.Destinations))
	for i, d := range r.Destinations {
		lines[i] = fmt.Sprintf("%s:%d%s", clean(n.apps[d.App.GUID]), portOf(d), notes(d, 0))
	}
	return firstOf(strings.Join(lines, "\n"), "-")
}

var routeCommand = command{
	name: "route", args: "DOMAIN", group: "Routes", short: "Show a route and its destinations",
	examples: []string{"proa route apps.example.com --hostname shop", "proa route apps.example.com --hostname shop --path /api --output json"},
	needs:    aSpace,
	setup: func(f *flags) action {
		at := addressFlags(f)
		f.output()
		return func(ctx context.Context, s *session, args []string) error {
			a := at(args[0])
			r, err := s.findRoute(ctx, a)
			if err != nil {
				return err
			}
			names, err := s.namesOf(ctx, []v3.Route{r})
			if err != nil {
				return err
			}
			if s.flags.json {
				return s.json(names.listed(r))
			}
			place := [][2]string{{"host", clean(firstOf(r.Host, "-"))}, {"path", clean(firstOf(r.Path, "-"))}}
			if r.Port != nil {
				place = [][2]string{{"port", fmt.Sprint(*r.Port)}}
			}
			s.pairs(s.Out, slices.Concat([][2]string{{"route", clean(r.URL)}, {"domain", clean(a.domain)}}, place,
				[][2]string{{"protocol", clean(r.Protocol)}, {"space", clean(names.listed(r).Space)}}))
			if reach := s.reach(r); reach != "" {
				s.say("\n%s", reach)
			}
			s.say("")
			if len(r.Destinations) == 0 {
				s.say("It leads nowhere. Next: proa map-route APP %s", a.words())
				return nil
			}
			s.printDestinations(names, r)
			return nil
		}
	},
}

// link is where a browser opens a route; empty if it does not. The API says how apps are reached, or they are as it is itself.
func (s *session) link(r v3.Route) string {
	if r.Protocol == "tcp" || r.Host == "*" || r.URL == "" {
		return ""
	}
	apps, err := url.Parse(firstOf(s.cfg.Apps, s.cfg.API))
	if err != nil {
		return ""
	}
	host, path, under := strings.Cut(clean(r.URL), "/")
	usual := map[string]string{"http": "80", "https": "443"}[apps.Scheme]
	if port := apps.Port(); port != "" && port != usual && s.cfg.Apps != "" {
		host += ":" + port
	}
	if under {
		path = "/" + path
	}
	return (&url.URL{Scheme: apps.Scheme, Host: host, Path: path}).String()
}

// reach says how a route is reached: where a browser opens it, or where to connect; empty if neither.
func (s *session) reach(r v3.Route) string {
	if link := s.link(r); link != "" {
		return "Open: " + s.bold(link)
	}
	if r.Protocol == "tcp" {
		return "Connect: " + s.bold(clean(r.URL))
	}
	return ""
}

// printLinks says where an app is reached.
func (s *session) printLinks(ctx context.Context, a v3.App) error {
	routes, err := v3.All[v3.Route](ctx, s.api, appPath(a)+"/routes")
	if err != nil {
		return err
	}
	lead := "\n"
	for _, r := range toApp(a, routes) {
		open := slices.ContainsFunc(r.Destinations, func(d v3.Destination) bool { return d.State != v3.DestinationPending })
		if reach := s.reach(r); reach != "" && open {
			s.say("%s%s", lead, reach)
			lead = ""
		}
	}
	return nil
}
