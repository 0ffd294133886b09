package cli

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	v3 "github.com/proa-dev/proa/platform/v3"
)

// act asks something of an app: start, stop or restart.
func (s *session) act(ctx context.Context, a v3.App, what string) error {
	return s.post(ctx, "/v3/apps/"+url.PathEscape(a.GUID)+"/actions/"+what, nil, &v3.App{})
}

// useDroplet makes a droplet the one that the next start runs.
func (s *session) useDroplet(ctx context.Context, a v3.App, droplet string) error {
	return s.api.Call(ctx, http.MethodPatch, "/v3/apps/"+url.PathEscape(a.GUID)+"/relationships/current_droplet", v3.One(droplet), &v3.ToOne{})
}

// stageNewest stages the newest package if nothing has been staged of it yet, and gives its droplet then.
func (s *session) stageNewest(ctx context.Context, a v3.App) (*v3.Ref, error) {
	newest, err := v3.First[v3.Package](ctx, s.api, "/v3/packages?order_by=-created_at&per_page=1&page=1&app_guids="+url.QueryEscape(a.GUID))
	if err != nil || newest == nil || newest.State != "READY" {
		return nil, err
	}
	staged, err := v3.First[v3.Droplet](ctx, s.api, "/v3/packages/"+url.PathEscape(newest.GUID)+"/droplets?states=STAGED&per_page=1&page=1")
	if err != nil || staged != nil {
		return nil, err
	}
	guid, err := s.stage(ctx, a, newest.GUID)
	if err != nil {
		return nil, err
	}
	return &v3.Ref{GUID: guid}, nil
}

// prepare stages what was uploaded last if that has not been done, for the next start.
func (s *session) prepare(ctx context.Context, a v3.App) error {
	droplet, err := s.stageNewest(ctx, a)
	if err != nil || droplet == nil {
		return err
	}
	return s.useDroplet(ctx, a, droplet.GUID)
}

// begin starts an app and shows how it comes up.
func (s *session) begin(ctx context.Context, a v3.App, what string, w waiting) error {
	err := s.act(ctx, a, what)
	if err != nil && strings.Contains(err.Error(), "Assign a droplet") {
		return failed("proa push "+shell(a.Name), "There is nothing to start yet: app %s has never been staged.", a.Name)
	}
	if err != nil {
		return err
	}
	return s.comeUp(ctx, a, w)
}

var startCommand = command{
	name: "start", args: "APP", group: "Apps", short: "Start an app",
	needs: aSpace,
	setup: func(f *flags) action {
		w := waitFlags(f)
		return func(ctx context.Context, s *session, args []string) error {
			a, err := s.findApp(ctx, args[0])
			if err != nil {
				return err
			}
			if a.State == "STARTED" {
				s.say("App %s is started already.", s.bold(clean(a.Name)))
				s.ok()
				return nil
			}
			s.say("Starting app %s %s...", s.bold(clean(a.Name)), s.where())
			if err := s.prepare(ctx, a); err != nil {
				return err
			}
			return s.begin(ctx, a, "start", w())
		}
	},
}

var stopCommand = command{
	name: "stop", args: "APP", group: "Apps", short: "Stop an app",
	needs: aSpace,
	setup: func(*flags) action {
		return func(ctx context.Context, s *session, args []string) error {
			a, err := s.findApp(ctx, args[0])
			if err != nil {
				return err
			}
			if a.State == "STOPPED" {
				s.say("App %s is stopped already.", s.bold(clean(a.Name)))
			} else {
				s.say("Stopping app %s %s...", s.bold(clean(a.Name)), s.where())
				if err := s.act(ctx, a, "stop"); err != nil {
					return err
				}
			}
			s.ok()
			return nil
		}
	},
}

var restartCommand = command{
	name: "restart", args: "APP", group: "Apps", short: "Stop an app and start it again, with its present settings",
	long:     "The app does not answer meanwhile, unless there is a strategy. What was uploaded and not staged yet is staged first.",
	examples: []string{"proa restart shop", "proa restart shop --strategy rolling --max-in-flight 2"},
	needs:    aSpace,
	setup: func(f *flags) action {
		how, w := deployFlags(f, ""), waitFlags(f)
		return func(ctx context.Context, s *session, args []string) error {
			d, err := how()
			if err != nil {
				return err
			}
			a, err := s.findApp(ctx, args[0])
			if err != nil {
				return err
			}
			s.say("Restarting app %s %s...", s.bold(clean(a.Name)), s.where())
			if d.strategy != "" {
				ask := d.of(a)
				if ask.Droplet, err = s.stageNewest(ctx, a); err != nil {
					return err
				}
				return s.deploy(ctx, a, ask, w())
			}
			if err := s.prepare(ctx, a); err != nil {
				return err
			}
			if a.State == "STARTED" {
				if err := s.act(ctx, a, "stop"); err != nil {
					return err
				}
			}
			return s.begin(ctx, a, "start", w())
		}
	},
}

var restageCommand = command{
	name: "restage", args: "APP", group: "Apps", short: "Stage the newest upload of an app again, and restart it",
	long:     "Do this after binding a service, or to get newer buildpacks. The app answers while it is staged, and not while it restarts, unless there is a strategy.",
	examples: []string{"proa restage shop", "proa restage shop --strategy rolling"},
	needs:    aSpace,
	setup: func(f *flags) action {
		how, w := deployFlags(f, ""), waitFlags(f)
		return func(ctx context.Context, s *session, args []string) error {
			d, err := how()
			if err != nil {
				return err
			}
			a, err := s.findApp(ctx, args[0])
			if err != nil {
				return err
			}
			s.say("Restaging app %s %s...", s.bold(clean(a.Name)), s.where())
			newest, err := v3.First[v3.Package](ctx, s.api, "/v3/packages?states=READY&order_by=-created_at&per_page=1&page=1&app_guids="+url.QueryEscape(a.GUID))
			if err != nil {
				return err
			}
			if newest == nil {
				return failed("proa push "+shell(a.Name), "Nothing has been uploaded for app %s yet.", a.Name)
			}
			guid, err := s.stage(ctx, a, newest.GUID)
			if err != nil {
				return err
			}
			if d.strategy != "" {
				ask := d.of(a)
				ask.Droplet = &v3.Ref{GUID: guid}
				return s.deploy(ctx, a, ask, w())
			}
			if a.State == "STARTED" {
				if err := s.act(ctx, a, "stop"); err != nil {
					return err
				}
			}
			if err := s.useDroplet(ctx, a, guid); err != nil {
				return err
			}
			return s.begin(ctx, a, "start", w())
		}
	},
}
