package cli

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	v3 "github.com/proa-dev/proa/platform/v3"
)

var bindServiceCommand = command{
	name: "bind-service", args: "APP NAME", group: "Services", short: "Give an app credentials for a service instance",
	long: "The app finds them in VCAP_SERVICES, after it was restaged or restarted. With --strategy multiple an app that is bound already gets new " +
		"credentials beside those it has, so that they can be changed without a gap.",
	examples: []string{"proa bind-service shop db", "proa bind-service shop db --binding-name orders", "proa bind-service shop db --strategy multiple    # new credentials"},
	needs:    aSpace,
	setup: func(f *flags) action {
		name, strategy := f.maybe("binding-name", "NAME", "what the app knows it as, instead of the name of the instance"), f.text("strategy", "STRATEGY", "single, or multiple for another binding beside the one there is (single)")
		parameters, wait := parametersFlag(f), f.on("wait,w", "wait until the broker is done")
		return func(ctx context.Context, s *session, args []string) error {
			if *strategy != "" && *strategy != "single" && *strategy != "multiple" {
				return usage("--strategy is single or multiple, not %q.", *strategy)
			}
			ask := v3.ServiceBindingCreate{Type: "app", Name: *name, Strategy: *strategy}
			var err error
			if ask.Parameters, err = parameters(s); err != nil {
				return err
			}
			i, a, err := s.findBoth(ctx, args[1], args[0])
			if err != nil {
				return err
			}
			ask.Relationships = v3.BindingRelationships{Instance: v3.One(i.GUID), App: new(v3.One(a.GUID))}
			s.say("Binding service instance %s to app %s %s...", s.bold(clean(i.Name)), s.bold(clean(a.Name)), s.where())
			return s.bind(ctx, i, a, ask, *wait)
		}
	},
}

func (s *session) findBoth(ctx context.Context, service, app string) (v3.ServiceInstance, v3.App, error) {
	i, err := s.findService(ctx, service)
	if err != nil {
		return i, v3.App{}, err
	}
	a, err := s.findApp(ctx, app)
	return i, a, err
}

func (s *session) bind(ctx context.Context, i v3.ServiceInstance, a v3.App, ask v3.ServiceBindingCreate, wait bool) error {
	job, err := s.api.Begin(ctx, http.MethodPost, "/v3/service_credential_bindings", ask)
	bound := err != nil
	if err := s.already(err, "The app is already bound to the service instance", ""); err != nil {
		return err
	}
	done, err := s.follow(ctx, job, following{service: i.Name, wait: wait})
	if err != nil {
		return err
	}
	s.ok()
	switch {
	case bound:
		s.say("\nFor new credentials beside those it has: proa bind-service %s %s --strategy multiple", shell(a.Name), shell(i.Name))
	case !done:
		s.inProgress("Binding", i.Name)
		s.say("When it is done, the app gets the credentials with: proa restage %s    # or restart", shell(a.Name))
	default:
		s.say("\nThe app gets the credentials with its next release.\nNext: proa restage %s    # or restart", shell(a.Name))
	}
	return nil
}

var unbindServiceCommand = command{
	name: "unbind-service", args: "APP NAME", group: "Services", short: "Take an app's credentials for a service instance away",
	long: "The credentials end at once; the app sees that they are gone after its next restart. Of several bindings all are taken away, unless --guid or --outdated says " +
		"which.",
	examples: []string{"proa unbind-service shop db", "proa unbind-service shop db --outdated    # the end of a rotation"},
	needs:    aSpace,
	setup: func(f *flags) action {
		guid, outdated := f.text("guid", "GUID", "only this binding; proa service shows them"), f.on("outdated", "all but the newest that works")
		wait := f.on("wait,w", "wait until the broker is done")
		return func(ctx context.Context, s *session, args []string) error {
			if *guid != "" && *outdated {
				return usage("Choose one of --guid and --outdated.")
			}
			i, a, err := s.findBoth(ctx, args[1], args[0])
			if err != nil {
				return err
			}
			bindings, err := v3.All[v3.ServiceBinding](ctx, s.api, bindingsPath(i, "app")+"&app_guids="+url.QueryEscape(a.GUID))
			if err != nil {
				return err
			}
			doomed := bindings
			switch {
			case *guid != "":
				if doomed = slices.DeleteFunc(slices.Clone(bindings), func(b v3.ServiceBinding) bool { return b.GUID != *guid }); len(doomed) == 0 {
					return missing("proa service "+shell(i.Name)+"    # shows its bindings", "App %s has no binding %q to service instance %s.", a.Name, *guid, i.Name)
				}
			case *outdated:
				doomed = outdatedOf(bindings)
			}
			s.say("Unbinding service instance %s from app %s %s...", s.bold(clean(i.Name)), s.bold(clean(a.Name)), s.where())
			done, err := s.unbind(ctx, i, doomed, *wait)
			if err != nil {
				return err
			}
			if len(doomed) == 0 {
				s.say("%s", map[bool]string{true: "None of its bindings is outdated.", false: "It is not bound."}[*outdated])
			}
			s.ok()
			switch {
			case !done:
				s.inProgress("Unbinding", i.Name)
			case len(doomed) > 0 && len(doomed) == len(bindings) && a.State == "STARTED":
				s.sayLeftover(i, a.Name)
			}
			return nil
		}
	},
}

// sayLeftover tells what apps still have of an instance that is theirs no more. Whether they have it depends on when they were started.
func (s *session) sayLeftover(i v3.ServiceInstance, apps ...string) {
	who, hold := "If app "+join(apps)+" was started since it was bound, it", "holds"
	if len(apps) > 1 {
		who, hold = "Those of the apps "+join(apps)+" that were started since they were bound", "hold"
	}
	what := "credentials that work no more"
	if i.Type == v3.UserProvidedInstance {
		what = "its credentials until the next restart"
	}
	s.say("\n%s %s %s.\nNext: %s", who, hold, what, restarts(apps))
}

// restarts is the line that restarts apps.
func restarts(apps []string) string {
	each := make([]string, len(apps))
	for n, name := range apps {
		each[n] = "proa restart " + shell(name)
	}
	return strings.Join(each, " && ")
}

// outdatedOf are the bindings of an app to an instance that its next release does not have: all but the newest that was made, and those that are
// still being made.
func outdatedOf(all []v3.ServiceBinding) []v3.ServiceBinding {
	newest := ""
	var made time.Time
	for _, b := range all {
		op, at := b.LastOperation, time.Time(b.CreatedAt)
		works := op.Type == "create" && op.State == "succeeded" || op.Type == "delete" && op.State == "failed"
		if works && !at.Before(made) {
			newest, made = b.GUID, at
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(b v3.ServiceBinding) bool {
		return newest == "" || b.GUID == newest || b.LastOperation.Type == "create" && pending(b.LastOperation)
	})
}

// unbind deletes bindings, and tells whether all are gone.
func (s *session) unbind(ctx context.Context, i v3.ServiceInstance, bindings []v3.ServiceBinding, wait bool) (bool, error) {
	all := true
	for _, b := range bindings {
		done, err := s.unbindOne(ctx, i, b, wait)
		if err != nil {
			return false, err
		}
		all = all && done
	}
	return all, nil
}

// unbindOne deletes a binding, and tells whether it is gone.
func (s *session) unbindOne(ctx context.Context, i v3.ServiceInstance, b v3.ServiceBinding, wait bool) (bool, error) {
	job, err := s.api.Begin(ctx, http.MethodDelete, "/v3/service_credential_bindings/"+url.PathEscape(b.GUID), nil)
	if err != nil {
		return false, err
	}
	return s.follow(ctx, job, following{service: i.Name, wait: wait})
}
