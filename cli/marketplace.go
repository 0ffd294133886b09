package cli

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	v3 "github.com/proa-dev/proa/platform/v3"
)

// offered is an offering as `marketplace` shows it.
type offered struct {
	v3.ServiceOffering
	Broker string           `json:"service_broker_name"`
	Plans  []v3.ServicePlan `json:"service_plans"`
}

var marketplaceCommand = command{
	name: "marketplace", group: "Services", short: "List the services that can be had here, and their plans",
	examples: []string{"proa marketplace", "proa marketplace -e postgres    # its plans, and what they cost", "proa marketplace -b team-broker --output json"},
	needs:    aLogin,
	setup: func(f *flags) action {
		offering, broker := f.text("offering,e", "OFFERING", "show the plans of this offering"), f.text("broker,b", "BROKER", "only what this broker offers")
		bare, all := f.on("no-plans", "leave the plans out"), f.on("show-unavailable", "also what cannot be had now")
		f.output()
		return func(ctx context.Context, s *session, _ []string) error {
			if *bare && *offering != "" {
				return usage("--no-plans and -e contradict each other: -e shows plans.")
			}
			q := s.here(named(*offering, *broker))
			if !*all {
				q.Set("available", "true")
			}
			offers, err := s.offers(ctx, q)
			if err != nil {
				return err
			}
			if *offering != "" && len(offers) == 0 {
				return s.noOffering(ctx, *offering, *broker)
			}
			if *offering != "" && !s.flags.json {
				s.printPlans(offers, *all)
				return nil
			}
			return s.printOffers(offers, !*bare)
		}
	},
}

// named narrows plans to those of an offering and a broker, if they are named.
func named(offering, broker string) url.Values {
	q := url.Values{}
	if offering != "" {
		q.Set("service_offering_names", offering)
	}
	if broker != "" {
		q.Set("service_broker_names", broker)
	}
	return q
}

// plansWith asks for plans with their offerings and brokers.
func (s *session) plansWith(ctx context.Context, q url.Values) ([]v3.ServicePlan, beside, error) {
	q.Set("include", "service_offering")
	q.Set("fields[service_offering.service_broker]", "name,guid")
	q.Set("per_page", "5000")
	return whole[v3.ServicePlan](ctx, s, "/v3/service_plans?"+q.Encode())
}

// here narrows plans to those that can be had in the target, if there is one.
func (s *session) here(q url.Values) url.Values {
	if s.cfg.Space.GUID != "" {
		q.Set("space_guids", s.cfg.Space.GUID)
	}
	return q
}

// offers are offerings with their plans, by name.
func (s *session) offers(ctx context.Context, q url.Values) ([]offered, error) {
	plans, b, err := s.plansWith(ctx, q)
	if err != nil {
		return nil, err
	}
	at, offers := map[string]int{}, []offered{}
	for _, p := range plans {
		o := b.offeringOf(p)
		i, known := at[o.GUID]
		if !known {
			i = len(offers)
			at[o.GUID] = i
			offers = append(offers, offered{ServiceOffering: o, Broker: b.brokerOf(o).Name})
		}
		offers[i].Plans = append(offers[i].Plans, p)
	}
	slices.SortStableFunc(offers, func(a, b offered) int {
		return strings.Compare(a.Name+"\x00"+a.Broker, b.Name+"\x00"+b.Broker)
	})
	return offers, nil
}

func (s *session) printOffers(offers []offered, plans bool) error {
	none := "Nothing is offered here. An operator adds to it with proa create-service-broker and proa enable-service-access."
	headings := []string{"offering", "plans", "description", "broker"}
	if !plans {
		headings = slices.Delete(headings, 1, 2)
	}
	err := list(s, offers, none, headings, func(o offered) []string {
		row := []string{clean(o.Name), join(planNames(o.Plans)), clean(o.Description), clean(o.Broker)}
		if !plans {
			row = slices.Delete(row, 1, 2)
		}
		return row
	})
	if err == nil && len(offers) > 0 && !s.flags.json {
		s.say("\nNext: proa marketplace -e OFFERING    # its plans, and what they cost")
	}
	return err
}

func planNames(plans []v3.ServicePlan) []string {
	names := make([]string, len(plans))
	for i, p := range plans {
		names[i] = p.Name
	}
	return names
}

// printPlans shows the plans of an offering, for each broker that has it.
func (s *session) printPlans(offers []offered, all bool) {
	headings := []string{"plan", "description", "free or paid", "costs"}
	if all {
		headings = append(headings, "available")
	}
	for _, o := range offers {
		about := [][2]string{{"offering", clean(o.Name)}, {"broker", clean(o.Broker)}, {"description", clean(o.Description)}}
		if o.DocumentationURL != "" {
			about = append(about, [2]string{"documentation", clean(o.DocumentationURL)})
		}
		s.pairs(s.Out, about)
		s.say("")
		rows := make([][]string, len(o.Plans))
		for i, p := range o.Plans {
			rows[i] = []string{clean(p.Name), clean(p.Description), map[bool]string{true: "free", false: "paid"}[p.Free], firstOf(costs(p), "-")}
			if all {
				rows[i] = append(rows[i], map[bool]string{true: "yes", false: "no"}[p.Available])
			}
		}
		s.table(s.Out, headings, rows)
		s.say("")
	}
	s.say("Next: proa create-service %s PLAN NAME%s", shell(offers[0].Name), map[bool]string{true: " -b BROKER"}[len(offers) > 1])
}

// costs are what a plan costs, as far as its broker says.
func costs(p v3.ServicePlan) string {
	parts := make([]string, len(p.Costs))
	for i, c := range p.Costs {
		parts[i] = strconv.FormatFloat(c.Amount, 'f', -1, 64) + " " + strings.ToUpper(c.Currency)
		unit := strings.ToLower(c.Unit)
		switch {
		case strings.HasSuffix(unit, "ly"): // monthly
			parts[i] += " " + unit
		case unit != "":
			parts[i] += " per " + c.Unit
		}
	}
	return join(parts)
}

// findPlan is the plan of these names. Where there is none, or several, the refusal says what there is.
func (s *session) findPlan(ctx context.Context, offering, plan, broker string) (v3.ServicePlan, error) {
	q := s.here(named(offering, broker))
	q.Set("names", escapeName(plan))
	found, b, err := s.plansWith(ctx, q)
	switch {
	case err != nil:
		return v3.ServicePlan{}, err
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0:
		return v3.ServicePlan{}, s.noPlan(ctx, offering, plan, broker)
	}
	var brokers []string
	for _, p := range found {
		brokers = append(brokers, b.brokerOf(b.offeringOf(p)).Name)
	}
	slices.Sort(brokers)
	return v3.ServicePlan{}, several(offering, brokers)
}

func several(offering string, brokers []string) *problem {
	p := usage("Several brokers have an offering %q: %s. Say which one you mean.", offering, join(brokers))
	p.next = "repeat the command with -b BROKER"
	return p
}

// noPlan says what is wrong with the name of a plan, or of its offering.
func (s *session) noPlan(ctx context.Context, offering, plan, broker string) error {
	offers, err := s.offers(ctx, s.here(named(offering, broker)))
	if err != nil {
		return err
	}
	if len(offers) == 0 {
		return s.noOffering(ctx, offering, broker)
	}
	var names []string
	for _, o := range offers {
		names = append(names, planNames(o.Plans)...)
	}
	p := missing("proa marketplace -e "+shell(offering), "Offering %q has no plan %q here.%s", offering, plan, meant(plan, names))
	p.says += " It has: " + join(names) + "."
	return p
}

func (s *session) noOffering(ctx context.Context, offering, broker string) error {
	offers, err := s.offers(ctx, s.here(named("", broker)))
	if err != nil {
		return err
	}
	var names []string
	for _, o := range offers {
		names = append(names, o.Name)
	}
	at := ""
	if broker != "" {
		at = fmt.Sprintf(" of broker %q", broker)
	}
	return missing("proa marketplace    # lists what can be had", "There is no offering %q%s that can be had here.%s", offering, at, meant(offering, names))
}

// meant asks whether another name was, if there is one that is much like it.
func meant(name string, names []string) string {
	if near := nearest(name, names); near != "" {
		return " Did you mean " + near + "?"
	}
	return ""
}

// escapeName writes a name for the filter `names`, which is encoded for an address afterwards.
func escapeName(name string) string { return strings.ReplaceAll(name, ",", "%2C") }
