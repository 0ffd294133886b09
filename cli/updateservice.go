package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	v3 "github.com/proa-dev/proa/platform/v3"
)

var updateServiceCommand = command{
	name: "update-service", args: "NAME", group: "Services", short: "Change a service instance: its plan, its parameters or its tags",
	examples: []string{"proa update-service db -p standard --wait", `proa update-service db -c '{"extensions": ["hstore"]}'`, `proa update-service db -t ''    # no tags`},
	needs:    aSpace,
	setup: func(f *flags) action {
		plan, tags := f.text("plan,p", "PLAN", "the plan it shall have"), f.maybe("tags,t", "TAGS", "words for apps to find it by, with commas between them, instead of those it has")
		parameters, wait := parametersFlag(f), f.on("wait,w", "wait until it is done")
		return func(ctx context.Context, s *session, args []string) error {
			var change v3.ServiceInstanceChange
			var err error
			if change.Parameters, err = parameters(s); err != nil {
				return err
			}
			if *tags != nil {
				change.Tags = new(tagsOf(**tags))
			}
			if *plan == "" && change.Parameters == nil && change.Tags == nil {
				return usage("There is nothing to change. Give -p, -c or -t.")
			}
			return s.updateService(ctx, args[0], *plan, change, *wait)
		}
	},
}

// offeringFields ask for what is needed to find another plan of the same offering.
var offeringFields = "&" + url.Values{
	"fields[service_plan]":                                 {"name,guid,relationships.service_offering"},
	"fields[service_plan.service_offering]":                {"name,guid,relationships.service_broker"},
	"fields[service_plan.service_offering.service_broker]": {"name,guid"},
}.Encode()

func (s *session) updateService(ctx context.Context, name, plan string, change v3.ServiceInstanceChange, wait bool) error {
	fields := ""
	if plan != "" {
		fields = offeringFields
	}
	i, b, err := s.findServiceWith(ctx, name, fields)
	if err != nil {
		return err
	}
	if err := managed(i, "proa update-user-provided-service"); err != nil {
		return err
	}
	s.say("Updating service instance %s %s...", s.bold(clean(i.Name)), s.where())
	if plan != "" {
		wanted, err := s.otherPlan(ctx, i, b, plan)
		if err != nil {
			return err
		}
		if wanted.GUID != i.Relationships["service_plan"].GUID() {
			change.Relationships = &v3.InstanceRelationships{Plan: new(v3.One(wanted.GUID))}
		} else if change.Parameters == nil && change.Tags == nil {
			s.say("It has plan %s already.", clean(plan))
			s.ok()
			return nil
		}
	}
	return s.changeService(ctx, i, change, following{service: i.Name, wait: wait, words: s.brokerWords(i.Name)})
}

// managed refuses an instance that no broker made, and names the command for those.
func managed(i v3.ServiceInstance, instead string) error {
	if i.Type == v3.UserProvidedInstance {
		return failed(instead+" "+shell(i.Name), "Service instance %s is user-provided: no broker is behind it.", i.Name)
	}
	return nil
}

// otherPlan is a plan of the offering that an instance is of.
func (s *session) otherPlan(ctx context.Context, i v3.ServiceInstance, b beside, name string) (v3.ServicePlan, error) {
	offering := b.offeringOf(b.plans[i.Relationships["service_plan"].GUID()])
	q := url.Values{"service_offering_guids": {offering.GUID}, "names": {escapeName(name)}}
	found, err := v3.First[v3.ServicePlan](ctx, s.api, "/v3/service_plans?"+q.Encode())
	if err != nil {
		return v3.ServicePlan{}, err
	}
	if found == nil {
		return v3.ServicePlan{}, s.noPlan(ctx, offering.Name, name, b.brokerOf(offering).Name)
	}
	if !found.Free && found.GUID != i.Relationships["service_plan"].GUID() {
		s.warnOfCosts(offering.Name, *found)
	}
	return *found, nil
}

func (s *session) changeService(ctx context.Context, i v3.ServiceInstance, change v3.ServiceInstanceChange, how following) error {
	job, err := s.api.Begin(ctx, http.MethodPatch, instancePath(i), change)
	if err != nil {
		return err
	}
	done, err := s.follow(ctx, job, how)
	if err != nil {
		return err
	}
	s.ok()
	if !done {
		s.inProgress("Update", how.service)
	}
	return nil
}

var upgradeServiceCommand = command{
	name: "upgrade-service", args: "NAME", group: "Services", short: "Bring a service instance to the newest version of its plan",
	long:     "It may not answer meanwhile: that is the broker's business.",
	examples: []string{"proa upgrade-service db --wait"},
	needs:    aSpace,
	setup: func(f *flags) action {
		force, wait := f.on("force,f", "do not ask"), f.on("wait,w", "wait until it is done")
		return func(ctx context.Context, s *session, args []string) error {
			i, err := s.findService(ctx, args[0])
			if err != nil {
				return err
			}
			if !as(i.UpgradeAvailable) {
				s.say("There is no upgrade for service instance %s.", s.bold(clean(i.Name)))
				s.ok()
				return nil
			}
			var plan v3.ServicePlan
			if err := s.get(ctx, "/v3/service_plans/"+url.PathEscape(i.Relationships["service_plan"].GUID()), &plan); err != nil {
				return err
			}
			version := as(plan.Maintenance).Version
			says := strings.TrimSpace(clean(as(plan.Maintenance).Description))
			if err := s.confirm(ctx, *force, strings.TrimSpace(fmt.Sprintf("%s Really upgrade service instance %s to version %s?", says, clean(i.Name), clean(version)))); err != nil {
				return err
			}
			s.say("Upgrading service instance %s to version %s %s...", s.bold(clean(i.Name)), s.bold(clean(version)), s.where())
			change := v3.ServiceInstanceChange{MaintenanceInfo: &v3.MaintenanceInfo{Version: version}}
			return s.changeService(ctx, i, change, following{service: i.Name, wait: *wait, words: s.brokerWords(i.Name)})
		}
	},
}

var renameServiceCommand = command{
	name: "rename-service", args: "NAME NEW_NAME", group: "Services", short: "Give a service instance another name",
	long:     "Apps see the new name after their next restart.",
	examples: []string{"proa rename-service db orders-db"},
	needs:    aSpace,
	setup: func(*flags) action {
		return func(ctx context.Context, s *session, args []string) error {
			i, err := s.findService(ctx, args[0])
			if err != nil {
				return err
			}
			s.say("Renaming service instance %s to %s %s...", s.bold(clean(i.Name)), s.bold(clean(args[1])), s.where())
			return s.changeService(ctx, i, v3.ServiceInstanceChange{Name: &args[1]}, following{service: i.Name, wait: true})
		}
	},
}
