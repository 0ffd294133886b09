package cli

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	v3 "github.com/proa-dev/proa/platform/v3"
)

// deployedRevision is a revision, and whether it runs.
type deployedRevision struct {
	v3.Revision
	Deployed bool `json:"deployed"`
}

var revisionsCommand = command{
	name: "revisions", args: "APP", group: "Deployments", short: "List what an app has been, newest first",
	long:     "Each start with another droplet, environment or command makes a revision. A revision can be gone back to as long as its droplet is kept.",
	examples: []string{"proa revisions shop", "proa revisions shop --output json"},
	needs:    aSpace,
	setup: func(f *flags) action {
		f.output()
		return func(ctx context.Context, s *session, args []string) error {
			a, err := s.findApp(ctx, args[0])
			if err != nil {
				return err
			}
			var feature v3.Feature
			if err := s.get(ctx, appPath(a)+"/features/revisions", &feature); err != nil {
				return err
			}
			if !feature.Enabled {
				s.warn("Revisions are switched off for this app: no new ones are made.")
			}
			all, err := s.revisions(ctx, a, "order_by=-created_at")
			if err != nil {
				return err
			}
			none := "There are no revisions of this app yet. Next: proa push " + shell(a.Name)
			return list(s, all, none, []string{"version", "created", "description", "deployable", "state"}, func(r deployedRevision) []string {
				return []string{strconv.Itoa(r.Version), s.ago(time.Time(r.CreatedAt)), clean(r.Description), yes(r.Deployable), s.running(r)}
			})
		}
	},
}

func appPath(a v3.App) string { return "/v3/apps/" + url.PathEscape(a.GUID) }

func yes(b bool) string { return map[bool]string{true: "yes", false: "no"}[b] }

func (s *session) running(r deployedRevision) string {
	if r.Deployed {
		return s.green("deployed")
	}
	return ""
}

// revisions are those that a query finds, and whether they run.
func (s *session) revisions(ctx context.Context, a v3.App, query string) ([]deployedRevision, error) {
	found, err := v3.All[v3.Revision](ctx, s.api, appPath(a)+"/revisions?"+query)
	if err != nil {
		return nil, err
	}
	up, err := v3.All[v3.Revision](ctx, s.api, appPath(a)+"/revisions/deployed")
	if err != nil {
		return nil, err
	}
	all := make([]deployedRevision, len(found))
	for i, r := range found {
		all[i] = deployedRevision{r, slices.ContainsFunc(up, func(d v3.Revision) bool { return d.GUID == r.GUID })}
	}
	return all, nil
}

func (s *session) findRevision(ctx context.Context, a v3.App, version *int) (deployedRevision, error) {
	if version == nil {
		return deployedRevision{}, &problem{says: "Which revision? Name it with --version.", next: "proa revisions " + shell(a.Name), code: ExitUsage}
	}
	found, err := s.revisions(ctx, a, fmt.Sprintf("per_page=2&page=1&versions=%d", *version))
	if err != nil {
		return deployedRevision{}, err
	}
	if len(found) == 0 {
		return deployedRevision{}, missing("proa revisions "+shell(a.Name), "App %s has no revision %d.", a.Name, *version)
	}
	return found[0], nil
}

var revisionCommand = command{
	name: "revision", args: "APP", group: "Deployments", short: "Show what an app was in a revision",
	examples: []string{"proa revision shop --version 3"},
	needs:    aSpace,
	setup: func(f *flags) action {
		version := f.number("version", "NUMBER", "which revision")
		f.output()
		return func(ctx context.Context, s *session, args []string) error {
			a, err := s.findApp(ctx, args[0])
			if err != nil {
				return err
			}
			r, err := s.findRevision(ctx, a, *version)
			if err != nil {
				return err
			}
			return s.showRevision(ctx, r)
		}
	},
}

func (s *session) showRevision(ctx context.Context, r deployedRevision) error {
	var env v3.Variables
	if link := r.Links["environment_variables"]; link != nil {
		if err := s.get(ctx, link.Href, &env); err != nil {
			return err
		}
	}
	if s.flags.json {
		return s.json(struct {
			deployedRevision
			Env map[string]*string `json:"environment_variables"`
		}{r, env.Var})
	}
	rows := [][2]string{{"version", strconv.Itoa(r.Version)}, {"description", clean(r.Description)}, {"created", s.ago(time.Time(r.CreatedAt))},
		{"deployed", yes(r.Deployed)}, {"deployable", yes(r.Deployable)}, {"revision", clean(r.GUID)}, {"droplet", clean(r.Droplet.GUID)}}
	for _, c := range r.Sidecars {
		rows = append(rows, [2]string{"sidecar", clean(c.Name)})
	}
	s.pairs(s.Out, rows)
	vars := map[string]any{}
	for name, value := range env.Var {
		vars[name] = as(value)
	}
	s.say("")
	s.printVars("Environment variables", vars)
	return nil
}

var rollbackCommand = command{
	name: "rollback", args: "APP", group: "Deployments", short: "Go back to an earlier revision of an app, while it answers",
	long:     "The revision's droplet, environment and commands become the app's again, as a new revision.",
	examples: []string{"proa rollback shop --version 3", "proa rollback shop --version 3 --strategy canary -f"},
	needs:    aSpace,
	setup: func(f *flags) action {
		version, force := f.number("version", "NUMBER", "which revision"), f.on("force,f", "do not ask")
		how, w := deployFlags(f, "rolling"), waitFlags(f)
		return func(ctx context.Context, s *session, args []string) error {
			d, err := how()
			if err != nil {
				return err
			}
			a, err := s.findApp(ctx, args[0])
			if err != nil {
				return err
			}
			r, err := s.findRevision(ctx, a, *version)
			if err != nil {
				return err
			}
			if !r.Deployable {
				return failed("proa revisions "+shell(a.Name), "Revision %d of app %s cannot be deployed any more: its droplet is gone.", r.Version, a.Name)
			}
			if err := s.confirm(ctx, *force, fmt.Sprintf("Really roll app %s back to revision %d?", clean(a.Name), r.Version)); err != nil {
				return err
			}
			s.say("Rolling app %s back to revision %d %s...", s.bold(clean(a.Name)), r.Version, s.where())
			ask := d.of(a)
			ask.Revision = &v3.Ref{GUID: r.GUID}
			return s.deploy(ctx, a, ask, w())
		}
	},
}
