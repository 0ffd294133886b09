package cli

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	v3 "github.com/proa-dev/proa/platform/v3"
)

// access is which plans are meant, and for whom.
type access struct{ broker, plan, org *string }

func accessFlags(f *flags) access {
	return access{
		broker: f.text("broker,b", "BROKER", "the broker, if several have such an offering"), plan: f.text("plan,p", "PLAN", "only this plan"),
		org: f.text("org,o", "ORG", "only for this organization"),
	}
}

var enableServiceAccessCommand = command{
	name: "enable-service-access", args: "OFFERING", group: "Service brokers", short: "Let everybody, or an organization, have the plans of an offering",
	examples: []string{"proa enable-service-access postgres", "proa enable-service-access postgres -p standard -o research"},
	needs:    aLogin,
	setup: func(f *flags) action {
		a := accessFlags(f)
		return func(ctx context.Context, s *session, args []string) error {
			return s.changeAccess(ctx, true, args[0], a)
		}
	},
}

var disableServiceAccessCommand = command{
	name: "disable-service-access", args: "OFFERING", group: "Service brokers", short: "Keep the plans of an offering from everybody, or from an organization",
	long:     "Instances that there are stay as they are.",
	examples: []string{"proa disable-service-access postgres", "proa disable-service-access postgres -p standard -o research"},
	needs:    aLogin,
	setup: func(f *flags) action {
		a := accessFlags(f)
		return func(ctx context.Context, s *session, args []string) error {
			return s.changeAccess(ctx, false, args[0], a)
		}
	},
}

// changeAccess finds the plans and the organization, and changes each plan for it; for all if there is none.
func (s *session) changeAccess(ctx context.Context, on bool, offering string, a access) error {
	to, doing, change := "all plans", "Disabling", s.disable
	if *a.plan != "" {
		to = "plan " + s.bold(clean(*a.plan))
	}
	if on {
		doing, change = "Enabling", s.enable
	}
	s.say("%s access to %s of offering %s%s as %s...", doing, to, s.bold(clean(offering)), after(" for org ", s.bold(clean(*a.org))), s.bold(clean(s.who())))
	o, err := s.findOffering(ctx, offering, *a.broker)
	if err != nil {
		return err
	}
	var org Place
	if *a.org != "" {
		if org, err = s.findOrg(ctx, *a.org); err != nil {
			return err
		}
	}
	plans, err := s.plansOf(ctx, o, *a.plan)
	if err != nil {
		return err
	}
	for _, p := range plans { // all are looked at before any is changed
		switch {
		case p.VisibilityType == "space":
			return failed("proa service-brokers", "Offering %s is of a broker for one space: nobody else can have it.", offering)
		case !on && org.GUID != "" && p.VisibilityType == "public":
			return failed("proa disable-service-access "+shell(offering)+"    # for all; then enable it for those who shall have it",
				"Everybody can have plan %s, so it cannot be kept from one organization.", p.Name)
		}
	}
	for _, p := range plans {
		if err := change(ctx, p, org); err != nil {
			return err
		}
	}
	s.ok()
	return nil
}

// findOffering is the only offering of that name that the person can see, whoever can have it.
func (s *session) findOffering(ctx context.Context, name, broker string) (v3.ServiceOffering, error) {
	q := url.Values{"names": {escapeName(name)}, "fields[service_broker]": {"name,guid"}}
	if broker != "" {
		q.Set("service_broker_names", broker)
	}
	found, b, err := whole[v3.ServiceOffering](ctx, s, "/v3/service_offerings?"+q.Encode())
	switch {
	case err != nil:
		return v3.ServiceOffering{}, err
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		var brokers []string
		for _, o := range found {
			brokers = append(brokers, b.brokerOf(o).Name)
		}
		slices.Sort(brokers)
		return v3.ServiceOffering{}, several(name, brokers)
	}
	all, err := v3.All[Place](ctx, s.api, "/v3/service_offerings?per_page=5000")
	if err != nil {
		return v3.ServiceOffering{}, err
	}
	names := make([]string, len(all))
	for i, o := range all {
		names[i] = o.Name
	}
	return v3.ServiceOffering{}, missing("proa service-access    # lists all of them", "There is no offering %q%s that you can see.%s", name, after(" of broker ", broker), meant(name, names))
}

// plansOf are the plans of an offering, or the one of that name.
func (s *session) plansOf(ctx context.Context, o v3.ServiceOffering, name string) ([]v3.ServicePlan, error) {
	all, err := v3.All[v3.ServicePlan](ctx, s.api, "/v3/service_plans?per_page=5000&service_offering_guids="+url.QueryEscape(o.GUID))
	if err != nil || name == "" {
		return all, err
	}
	if i := slices.IndexFunc(all, func(p v3.ServicePlan) bool { return p.Name == name }); i >= 0 {
		return all[i : i+1], nil
	}
	names := planNames(all)
	return nil, missing("proa service-access -e "+shell(o.Name), "Offering %q has no plan %q.%s It has: %s.", o.Name, name, meant(name, names), join(names))
}

func visibilityPath(p v3.ServicePlan) string {
	return "/v3/service_plans/" + url.PathEscape(p.GUID) + "/visibility"
}

// enable lets an organization have a plan, or everybody. Who can have it already is not asked for again.
func (s *session) enable(ctx context.Context, p v3.ServicePlan, org Place) error {
	if p.VisibilityType == "public" {
		s.say("Everybody can have plan %s already.", clean(p.Name))
		return nil
	}
	ask := v3.PlanVisibility{Type: "public"}
	if org.GUID != "" {
		ask = v3.PlanVisibility{Type: "organization", Organizations: []v3.Named{{GUID: org.GUID}}}
	}
	return s.post(ctx, visibilityPath(p), ask, &v3.PlanVisibility{})
}

func (s *session) disable(ctx context.Context, p v3.ServicePlan, org Place) error {
	switch {
	case p.VisibilityType == "admin":
		s.say("Nobody can have plan %s already.", clean(p.Name))
		return nil
	case org.GUID == "":
		return s.api.Call(ctx, http.MethodPatch, visibilityPath(p), v3.PlanVisibility{Type: "admin"}, nil)
	}
	return s.api.Call(ctx, http.MethodDelete, visibilityPath(p)+"/"+url.PathEscape(org.GUID), nil, nil)
}

// accessible is a plan as `service-access` shows it.
type accessible struct {
	v3.ServicePlan
	Offering string   `json:"service_offering_name"`
	Broker   string   `json:"service_broker_name"`
	Orgs     []string `json:"organization_names"` // that can have it, if not everybody can
	Space    string   `json:"space_name,omitempty"`
}

var serviceAccessCommand = command{
	name: "service-access", group: "Service brokers", short: "List all plans, and who can have them",
	examples: []string{"proa service-access", "proa service-access -e postgres", "proa service-access -o research    # what this organization can have"},
	needs:    aLogin,
	setup: func(f *flags) action {
		offering, broker := f.text("offering,e", "OFFERING", "only this offering"), f.text("broker,b", "BROKER", "only what this broker offers")
		orgName := f.text("org,o", "ORG", "only what this organization can have")
		f.output()
		return func(ctx context.Context, s *session, _ []string) error {
			q := named(*offering, *broker)
			if *orgName != "" {
				org, err := s.findOrg(ctx, *orgName)
				if err != nil {
					return err
				}
				q.Set("organization_guids", org.GUID)
			}
			plans, err := s.accessible(ctx, q)
			if err != nil {
				return err
			}
			headings := []string{"broker", "offering", "plan", "access", "for"}
			return list(s, plans, "There are no such plans. Next: proa service-brokers", headings, func(p accessible) []string {
				shown, whom := map[string]string{"public": "all", "admin": "none"}[p.VisibilityType], join(p.Orgs)
				if p.Space != "" {
					whom = "space " + clean(p.Space)
				}
				return []string{clean(p.Broker), clean(p.Offering), clean(p.Name), firstOf(shown, "limited"), whom}
			})
		}
	},
}

// accessible asks for plans, and for each that not everybody can have, who can.
func (s *session) accessible(ctx context.Context, q url.Values) ([]accessible, error) {
	plans, b, err := s.plansWith(ctx, q)
	if err != nil {
		return nil, err
	}
	all := make([]accessible, len(plans))
	for i, p := range plans {
		o := b.offeringOf(p)
		all[i] = accessible{ServicePlan: p, Offering: o.Name, Broker: b.brokerOf(o).Name, Orgs: []string{}}
		if p.VisibilityType != "organization" && p.VisibilityType != "space" {
			continue
		}
		var v v3.PlanVisibility
		if err := s.get(ctx, visibilityPath(p), &v); err != nil {
			return nil, err
		}
		for _, org := range v.Organizations {
			all[i].Orgs = append(all[i].Orgs, firstOf(org.Name, org.GUID))
		}
		all[i].Space = as(v.Space).Name
	}
	slices.SortStableFunc(all, func(a, b accessible) int {
		return strings.Compare(a.Broker+"\x00"+a.Offering, b.Broker+"\x00"+b.Offering)
	})
	return all, nil
}
