package cli

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	v3 "github.com/proa-dev/proa/platform/v3"
)

// listedService is an instance as `services` shows it.
type listedService struct {
	v3.ServiceInstance
	Plan     string   `json:"service_plan_name"`
	Offering string   `json:"service_offering_name"`
	Broker   string   `json:"service_broker_name"`
	Apps     []string `json:"app_names"` // that are bound to it, each once
}

var servicesCommand = command{
	name: "services", group: "Services", short: "List the service instances of the space",
	examples: []string{"proa services", "proa services --output json | jq -r '.[].name'"},
	needs:    aSpace,
	setup: func(f *flags) action {
		f.output()
		return func(ctx context.Context, s *session, _ []string) error {
			all, err := s.listServices(ctx)
			if err != nil {
				return err
			}
			none := fmt.Sprintf("There are no service instances in space %s. Next: proa marketplace    # lists what can be had", clean(s.cfg.Space.Name))
			headings := []string{"name", "offering", "plan", "bound apps", "last operation", "broker"}
			upgrades := slices.ContainsFunc(all, func(i listedService) bool { return as(i.UpgradeAvailable) })
			if upgrades {
				headings = append(headings, "upgrade")
			}
			return list(s, all, none, headings, func(i listedService) []string {
				row := []string{clean(i.Name), clean(firstOf(i.Offering, i.Type)), clean(firstOf(i.Plan, "-")), firstOf(join(i.Apps), "-"), s.ofOperation(i.LastOperation), clean(firstOf(i.Broker, "-"))}
				if upgrades {
					row = append(row, map[bool]string{true: "available"}[as(i.UpgradeAvailable)])
				}
				return row
			})
		}
	},
}

func (s *session) listServices(ctx context.Context) ([]listedService, error) {
	q := url.Values{"space_guids": {s.cfg.Space.GUID}, "order_by": {"name"}, "per_page": {"5000"},
		"fields[service_plan]":                                 {"guid,name,relationships.service_offering"},
		"fields[service_plan.service_offering]":                {"guid,name,relationships.service_broker"},
		"fields[service_plan.service_offering.service_broker]": {"guid,name"}}
	instances, b, err := whole[v3.ServiceInstance](ctx, s, "/v3/service_instances?"+q.Encode())
	if err != nil {
		return nil, err
	}
	all, at := make([]listedService, len(instances)), map[string]int{}
	for n, i := range instances {
		plan := b.plans[i.Relationships["service_plan"].GUID()]
		offering := b.offeringOf(plan)
		all[n] = listedService{ServiceInstance: i, Plan: plan.Name, Offering: offering.Name, Broker: b.brokerOf(offering).Name, Apps: []string{}}
		at[i.GUID] = n
	}
	for some := range slices.Chunk(instances, batch) {
		if err := s.addApps(ctx, all, at, some); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// addApps notes which apps of this space are bound to some of the instances.
func (s *session) addApps(ctx context.Context, all []listedService, at map[string]int, some []v3.ServiceInstance) error {
	guids := make([]string, len(some))
	for n, i := range some {
		guids[n] = i.GUID
	}
	bindings, b, err := whole[v3.ServiceBinding](ctx, s, "/v3/service_credential_bindings?type=app&include=app&per_page=5000&service_instance_guids="+url.QueryEscape(strings.Join(guids, ",")))
	if err != nil {
		return err
	}
	for _, one := range bindings {
		n, known := at[one.Relationships["service_instance"].GUID()]
		app := b.apps[one.Relationships["app"].GUID()]
		if known && app.Relationships["space"].GUID() == s.cfg.Space.GUID && !slices.Contains(all[n].Apps, app.Name) {
			all[n].Apps = append(all[n].Apps, app.Name)
		}
	}
	return nil
}
