package cli

import (
	"context"
	"net/http"

	v3 "github.com/proa-dev/proa/platform/v3"
)

var createServiceCommand = command{
	name: "create-service", args: "OFFERING PLAN NAME", group: "Services", short: "Create a service instance, such as a database",
	long: "A broker makes it, which may take its time: the command comes back when the broker has begun, or with --wait when it is done.",
	examples: []string{"proa create-service postgres free db", "proa create-service postgres standard db --wait",
		`proa create-service postgres free db -c '{"extensions": ["hstore"]}' -t sql,orders`},
	needs: aSpace,
	setup: func(f *flags) action {
		broker, tags := f.text("broker,b", "BROKER", "the broker, if several have such an offering"), f.text("tags,t", "TAGS", "words for apps to find it by, with commas between them")
		parameters, wait := parametersFlag(f), f.on("wait,w", "wait until it is there")
		return func(ctx context.Context, s *session, args []string) error {
			ask := v3.ServiceInstanceCreate{Type: v3.ManagedInstance, Name: args[2], Tags: tagsOf(*tags)}
			var err error
			if ask.Parameters, err = parameters(s); err != nil {
				return err
			}
			s.say("Creating service instance %s %s...", s.bold(clean(ask.Name)), s.where())
			plan, err := s.findPlan(ctx, args[0], args[1], *broker)
			if err != nil {
				return err
			}
			if !plan.Free {
				s.warnOfCosts(args[0], plan)
			}
			ask.Relationships = v3.InstanceRelationships{Space: v3.One(s.cfg.Space.GUID), Plan: new(v3.One(plan.GUID))}
			return s.createService(ctx, ask, *wait)
		}
	},
}

// warnOfCosts tells what is about to begin. It stops nobody.
func (s *session) warnOfCosts(offering string, p v3.ServicePlan) {
	if due := costs(p); due != "" {
		s.warn("Plan " + p.Name + " of offering " + offering + " is not free: " + due + ".")
		return
	}
	s.warn("Plan " + p.Name + " of offering " + offering + " is not free. Ask its operator what it costs.")
}

func (s *session) createService(ctx context.Context, ask v3.ServiceInstanceCreate, wait bool) error {
	job, err := s.api.Begin(ctx, http.MethodPost, "/v3/service_instances", ask)
	taken := err != nil
	if err := s.exists(err, "The service instance name is taken", "Service instance "+ask.Name+" exists already; nothing was created."); err != nil {
		return err
	}
	done, err := s.follow(ctx, job, following{service: ask.Name, wait: wait, words: s.brokerWords(ask.Name), mend: "proa delete-service " + shell(ask.Name)})
	if err != nil {
		return err
	}
	s.ok()
	switch {
	case taken:
		s.say("\nNext: proa service %s    # shows what there is", shell(ask.Name))
	case !done:
		s.inProgress("Creation", ask.Name)
	default:
		s.say("\nService instance %s is ready. Next: proa bind-service APP %s", clean(ask.Name), shell(ask.Name))
	}
	return nil
}
