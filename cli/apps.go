package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	v3 "github.com/proa-dev/proa/platform/v3"
)

// listed is an app as `apps` shows it.
type listed struct {
	v3.App
	Processes []v3.Process `json:"processes"`
	Routes    []v3.Route   `json:"routes"`
}

var appsCommand = command{
	name: "apps", group: "Apps", short: "List the apps of the space",
	examples: []string{"proa apps", "proa apps --output json | jq -r '.[].name'"},
	needs:    aSpace,
	setup: func(f *flags) action {
		f.output()
		return func(ctx context.Context, s *session, _ []string) error {
			apps, err := s.listApps(ctx)
			if err != nil {
				return err
			}
			none := fmt.Sprintf("There are no apps in space %s. Next: proa push APP", clean(s.cfg.Space.Name))
			return list(s, apps, none, []string{"name", "requested state", "processes", "routes"}, func(a listed) []string {
				return []string{clean(a.Name), s.ofState(a.State), clean(counts(a.Processes)), join(urls(a.Routes))}
			})
		}
	},
}

func (s *session) listApps(ctx context.Context) ([]listed, error) {
	space := url.QueryEscape(s.cfg.Space.GUID)
	apps, err := v3.All[v3.App](ctx, s.api, "/v3/apps?order_by=name&per_page=5000&space_guids="+space)
	if err != nil || len(apps) == 0 {
		return []listed{}, err
	}
	processes := map[string][]v3.Process{}
	for p, err := range v3.Each[v3.Process](ctx, s.api, "/v3/processes?embed=process_instances&space_guids="+space) {
		if err != nil {
			return nil, err
		}
		guid := p.Relationships["app"].GUID()
		processes[guid] = append(processes[guid], p)
	}
	routes := map[string][]v3.Route{}
	for r, err := range v3.Each[v3.Route](ctx, s.api, "/v3/routes?per_page=5000&space_guids="+space) {
		if err != nil {
			return nil, err
		}
		for _, guid := range destined(r) {
			routes[guid] = append(routes[guid], r)
		}
	}
	all := make([]listed, len(apps))
	for i, a := range apps {
		all[i] = listed{App: a, Processes: processes[a.GUID], Routes: append([]v3.Route{}, routes[a.GUID]...)}
	}
	return all, nil
}

// destined are the apps that a route leads to, each once.
func destined(r v3.Route) []string {
	var guids []string
	for _, d := range r.Destinations {
		if !slices.Contains(guids, d.App.GUID) {
			guids = append(guids, d.App.GUID)
		}
	}
	return guids
}

func urls(routes []v3.Route) []string {
	all := make([]string, len(routes))
	for i, r := range routes {
		all[i] = r.URL
	}
	return all
}

// counts is each process with how many of its instances run.
func counts(processes []v3.Process) string {
	var parts []string
	slices.SortStableFunc(processes, webFirst)
	for _, p := range processes {
		up := 0
		for _, i := range p.Seen {
			if i.State == "RUNNING" {
				up++
			}
		}
		if p.Instances > 0 || p.Type == "web" {
			parts = append(parts, fmt.Sprintf("%s:%d/%d", p.Type, up, p.Instances))
		}
	}
	return strings.Join(parts, ", ")
}

var createAppCommand = command{
	name: "create-app", args: "APP", group: "Apps", short: "Create an app that holds nothing yet",
	examples: []string{"proa create-app shop", "proa create-app shop -b proa/java"},
	needs:    aSpace,
	setup: func(f *flags) action {
		kind, packs := f.text("app-type", "TYPE", "buildpack, cnb or docker (buildpack)"), f.list("buildpack,b", "NAME", "buildpack to stage with; may be repeated")
		return func(ctx context.Context, s *session, args []string) error {
			ask := map[string]any{"name": args[0], "relationships": map[string]any{"space": v3.One(s.cfg.Space.GUID)}}
			switch {
			case *kind == "docker":
				ask["lifecycle"] = map[string]any{"type": "docker", "data": map[string]any{}}
			case *kind != "" && *kind != "buildpack" && *kind != "cnb":
				return usage("There is no app type %q: choose buildpack, cnb or docker.", *kind)
			case len(*packs) > 0:
				ask["lifecycle"] = map[string]any{"type": firstOf(*kind, "buildpack"), "data": map[string]any{"buildpacks": buildpacks(*packs)}}
			}
			s.say("Creating app %s %s...", s.bold(clean(args[0])), s.where())
			err := s.api.Call(ctx, http.MethodPost, "/v3/apps", ask, nil)
			if err := s.already(err, "App with the name '", "' already exists."); err != nil {
				return err
			}
			s.ok()
			return nil
		}
	},
}

// buildpacks are those named; "null" or "default" alone leaves the choice to the platform.
func buildpacks(names []string) []string {
	if len(names) == 1 && (names[0] == "null" || names[0] == "default") {
		return nil
	}
	return names
}
