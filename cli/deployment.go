package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/proa-dev/proa/kit/fault"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// deploying says how new instances take the place of those that run. Without a strategy they do not: the app stops in between.
type deploying struct {
	strategy string
	options  v3.DeploymentOptions
}

// deployFlags are the options for that; otherwise is the strategy if none is named.
func deployFlags(f *flags, otherwise string) func() (deploying, error) {
	strategy := f.text("strategy", "STRATEGY", "rolling or canary: the app answers meanwhile; a canary pauses when some instances are new")
	inFlight := f.number("max-in-flight", "NUMBER", "how many instances are replaced at a time, with a strategy (1)")
	steps := f.text("instance-steps", "PERCENTS", "how many instances are new at each pause of a canary, such as 10,50,100")
	return func() (deploying, error) {
		d := deploying{strategy: firstOf(*strategy, otherwise)}
		switch {
		case d.strategy != "" && d.strategy != "rolling" && d.strategy != "canary":
			return d, usage("There is no strategy %q: choose rolling or canary.", d.strategy)
		case *inFlight != nil && d.strategy == "":
			return d, usage("--max-in-flight needs --strategy.")
		case *inFlight != nil && **inFlight < 1:
			return d, usage("--max-in-flight must be at least 1.")
		case *steps != "" && d.strategy != "canary":
			return d, usage("--instance-steps needs --strategy canary.")
		}
		if *inFlight != nil {
			d.options.MaxInFlight = **inFlight
		}
		if *steps != "" {
			var err error
			d.options.Canary, err = canarySteps(*steps)
			return d, err
		}
		return d, nil
	}
}

// of is the request to deploy an app so: as it is, until a droplet or a revision is named.
func (d deploying) of(a v3.App) v3.DeploymentCreate {
	ask := v3.DeploymentCreate{Strategy: d.strategy}
	ask.Relationships.App = v3.One(a.GUID)
	if d.options != (v3.DeploymentOptions{}) {
		ask.Options = &d.options
	}
	return ask
}

func canarySteps(text string) (*v3.CanaryOptions, error) {
	c, last := &v3.CanaryOptions{}, 0
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n <= last || n > 100 {
			return nil, usage("--instance-steps are percentages that grow, such as 10,50,100; not %q.", text)
		}
		c.Steps, last = append(c.Steps, v3.CanaryStep{Weight: n}), n
	}
	return c, nil
}

// deploy begins a deployment and shows how it gets on.
func (s *session) deploy(ctx context.Context, a v3.App, ask v3.DeploymentCreate, w waiting) error {
	var made v3.Deployment
	if err := s.post(ctx, "/v3/deployments", ask, &made); err != nil {
		return err
	}
	return s.seeThrough(ctx, a, made.GUID, w)
}

// seeThrough shows how a deployment gets on, until it is done, pauses or is given up, and then the app.
func (s *session) seeThrough(ctx context.Context, a v3.App, guid string, w waiting) error {
	patience, err := s.timeout("PROA_STARTUP_TIMEOUT", 5*time.Minute)
	if err != nil {
		return err
	}
	s.say("\nWaiting for app %s to deploy...", s.bold(clean(a.Name)))
	path, begun, view := "/v3/deployments/"+url.PathEscape(guid), s.Now(), &live{e: s.Env}
	for {
		var d v3.Deployment
		if err := s.get(ctx, path, &d); err != nil {
			return err
		}
		fresh, err := s.arrived(ctx, d)
		if err != nil {
			return err
		}
		line := "  " + progressOf(d)
		view.show(append([]string{line}, s.instanceLines(fresh)...), line)
		done, err := deployed(a, d)
		if err != nil {
			return err
		}
		if done || w.first && anyRunning(fresh) {
			break
		}
		if s.Now().Sub(begun) > patience {
			if err := s.post(ctx, path+"/actions/cancel", nil, nil); err != nil {
				return err
			}
			return failed("proa logs "+shell(a.Name)+" --recent", "App %s has not been deployed within %s. The deployment is canceled: what ran before goes on.", a.Name, patience)
		}
		if err := s.wait(ctx, s.Poll); err != nil {
			return err
		}
	}
	s.say("")
	if a, err = s.findApp(ctx, a.Name); err != nil {
		return err
	}
	return s.showApp(ctx, a)
}

// arrived are the instances that a deployment has made so far. Their process may be another one by the time one asks.
func (s *session) arrived(ctx context.Context, d v3.Deployment) ([]v3.InstanceStats, error) {
	var all []v3.InstanceStats
	for _, p := range d.NewProcesses {
		stats, err := s.stats(ctx, p.GUID)
		if err != nil && !fault.Is(err, fault.KindNotFound) {
			return nil, err
		}
		all = append(all, stats...)
	}
	return all, nil
}

func anyRunning(all []v3.InstanceStats) bool {
	for _, i := range all {
		if i.State == "RUNNING" {
			return true
		}
	}
	return false
}

// deployed tells whether there is nothing to wait for any more: all is done, or a canary waits for a person.
func deployed(a v3.App, d v3.Deployment) (bool, error) {
	switch {
	case d.Status.Value == "FINALIZED" && d.Status.Reason == "DEPLOYED":
		return true, nil
	case d.Status.Value == "FINALIZED":
		return false, failed("proa app "+shell(a.Name), "The deployment of app %s ended without being done: it is %s.", a.Name, strings.ToLower(d.Status.Reason))
	}
	return d.Strategy == "canary" && d.Status.Reason == "PAUSED", nil
}

// progressOf is how far a deployment is, in one line.
func progressOf(d v3.Deployment) string {
	text := fmt.Sprintf("%s, %s", clean(firstOf(d.Strategy, "rolling")), clean(strings.ToLower(d.Status.Reason)))
	if c := d.Status.Canary; c != nil && c.Steps.Total > 0 {
		text += fmt.Sprintf(", step %d of %d", c.Steps.Current, c.Steps.Total)
	}
	if n := d.Options.MaxInFlight; n > 1 {
		text += fmt.Sprintf(", up to %d at a time", n)
	}
	if d.Status.Details.Error != "" {
		text += ": " + clean(d.Status.Details.Error)
	}
	return text
}

// activeDeployment is the one that goes on, or waits for a person; nil if there is none.
func (s *session) activeDeployment(ctx context.Context, a v3.App) (*v3.Deployment, error) {
	return v3.First[v3.Deployment](ctx, s.api, "/v3/deployments?status_values=ACTIVE&order_by=-created_at&per_page=1&page=1&app_guids="+url.QueryEscape(a.GUID))
}

// printDeployment says what is to be done about a deployment that waits.
func (s *session) printDeployment(a v3.App, d *v3.Deployment) {
	if d != nil && d.Status.Reason == "PAUSED" {
		s.say("\nNext: proa continue-deployment %s    # or: proa cancel-deployment %s", shell(a.Name), shell(a.Name))
	}
}

var continueDeploymentCommand = command{
	name: "continue-deployment", args: "APP", group: "Deployments", short: "Let a canary deployment that paused go on",
	needs: aSpace,
	setup: func(f *flags) action {
		w := waitFlags(f)
		return func(ctx context.Context, s *session, args []string) error {
			return s.steer(ctx, args[0], "continue", "Continuing", func(a v3.App, d v3.Deployment) error { return s.seeThrough(ctx, a, d.GUID, w()) })
		}
	},
}

var cancelDeploymentCommand = command{
	name: "cancel-deployment", args: "APP", group: "Deployments", short: "Give a deployment up, and go back to what ran before",
	needs: aSpace,
	setup: func(*flags) action {
		return func(ctx context.Context, s *session, args []string) error {
			return s.steer(ctx, args[0], "cancel", "Canceling", func(a v3.App, _ v3.Deployment) error {
				s.ok()
				s.say("\nNext: proa app %s    # shows when the instances are as before", shell(a.Name))
				return nil
			})
		}
	},
}

// steer tells the deployment of an app to do something.
func (s *session) steer(ctx context.Context, app, what, doing string, then func(v3.App, v3.Deployment) error) error {
	a, err := s.findApp(ctx, app)
	if err != nil {
		return err
	}
	d, err := s.activeDeployment(ctx, a)
	if err != nil {
		return err
	}
	if d == nil {
		return missing("proa app "+shell(a.Name), "No deployment of app %s is going on.", a.Name)
	}
	s.say("%s the deployment of app %s %s...", doing, s.bold(clean(a.Name)), s.where())
	if err := s.api.Call(ctx, http.MethodPost, "/v3/deployments/"+url.PathEscape(d.GUID)+"/actions/"+what, nil, nil); err != nil {
		return err
	}
	return then(a, *d)
}
