package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	v3 "github.com/proa-dev/proa/platform/v3"
)

var envCommand = command{
	name: "env", args: "APP", group: "Apps", short: "Show the environment variables of an app",
	needs: aSpace,
	setup: func(f *flags) action {
		f.output()
		return func(ctx context.Context, s *session, args []string) error {
			a, err := s.findApp(ctx, args[0])
			if err != nil {
				return err
			}
			var env v3.AppEnv
			if err := s.get(ctx, "/v3/apps/"+url.PathEscape(a.GUID)+"/env", &env); err != nil {
				return err
			}
			if s.flags.json {
				return s.json(env)
			}
			for _, part := range []struct {
				title string
				vars  map[string]any
			}{
				{"Set by you", anyOf(env.Variables)}, {"Services", env.System}, {"About the app", env.Application},
				{"For all running apps", anyOf(env.Running)}, {"For all staging apps", anyOf(env.Staging)},
			} {
				if len(part.vars) > 0 || part.title == "Set by you" {
					s.printVars(part.title, part.vars)
				}
			}
			return nil
		}
	},
}

func anyOf(vars map[string]string) map[string]any {
	all := make(map[string]any, len(vars))
	for name, value := range vars {
		all[name] = value
	}
	return all
}

func (s *session) printVars(title string, vars map[string]any) {
	s.say("%s", s.bold(title))
	if len(vars) == 0 {
		s.say("  (nothing)")
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		text, plain := vars[name].(string)
		if !plain {
			var pretty strings.Builder
			enc := json.NewEncoder(&pretty)
			enc.SetEscapeHTML(false) // credentials are copied from here
			enc.SetIndent("  ", "  ")
			if err := enc.Encode(vars[name]); err == nil {
				s.say("  %s: %s", clean(name), strings.TrimSuffix(pretty.String(), "\n"))
			}
			continue
		}
		s.say("  %s: %s", clean(name), clean(text))
	}
}

// setVar sets a variable, or takes it away.
func (s *session) setVar(ctx context.Context, a v3.App, name string, value *string) error {
	change := v3.Variables{Var: map[string]*string{name: value}}
	if err := s.api.Call(ctx, http.MethodPatch, "/v3/apps/"+url.PathEscape(a.GUID)+"/environment_variables", change, nil); err != nil {
		return err
	}
	s.ok()
	if a.State == "STARTED" {
		s.say("\nNext: proa restart %s    # so that the app sees it; proa restage if it is needed to build the app", shell(a.Name))
	}
	return nil
}

var setEnvCommand = command{
	name: "set-env", args: "APP NAME VALUE", group: "Apps", short: "Set an environment variable of an app",
	examples: []string{"proa set-env shop JAVA_OPTS -Xmx256m"},
	needs:    aSpace, verbatim: 2,
	setup: func(*flags) action {
		return func(ctx context.Context, s *session, args []string) error {
			a, err := s.findApp(ctx, args[0])
			if err != nil {
				return err
			}
			s.say("Setting %s of app %s %s...", s.bold(clean(args[1])), s.bold(clean(a.Name)), s.where())
			return s.setVar(ctx, a, args[1], &args[2])
		}
	},
}

var unsetEnvCommand = command{
	name: "unset-env", args: "APP NAME", group: "Apps", short: "Take an environment variable of an app away",
	needs: aSpace,
	setup: func(*flags) action {
		return func(ctx context.Context, s *session, args []string) error {
			a, err := s.findApp(ctx, args[0])
			if err != nil {
				return err
			}
			var env v3.AppEnv
			if err := s.get(ctx, "/v3/apps/"+url.PathEscape(a.GUID)+"/env", &env); err != nil {
				return err
			}
			s.say("Unsetting %s of app %s %s...", s.bold(clean(args[1])), s.bold(clean(a.Name)), s.where())
			if _, set := env.Variables[args[1]]; !set {
				fmt.Fprintf(s.Err, "%s is not set.\n", clean(args[1]))
				s.ok()
				return nil
			}
			return s.setVar(ctx, a, args[1], nil)
		}
	},
}
