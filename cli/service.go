package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	v3 "github.com/proa-dev/proa/platform/v3"
)

// servicePath is where an instance of the space is asked for by its name.
func (s *session) servicePath(name string) string {
	q := url.Values{"names": {escapeName(name)}, "space_guids": {s.cfg.Space.GUID}, "per_page": {"1"}, "page": {"1"}}
	return "/v3/service_instances?" + q.Encode()
}

func instancePath(i v3.ServiceInstance) string {
	return "/v3/service_instances/" + url.PathEscape(i.GUID)
}

// findService is an instance that must be there.
func (s *session) findService(ctx context.Context, name string) (v3.ServiceInstance, error) {
	i, _, err := s.findServiceWith(ctx, name, "")
	return i, err
}

// findServiceWith is findService that also asks for what the instance refers to.
func (s *session) findServiceWith(ctx context.Context, name, fields string) (v3.ServiceInstance, beside, error) {
	found, b, err := whole[v3.ServiceInstance](ctx, s, s.servicePath(name)+fields)
	if err != nil {
		return v3.ServiceInstance{}, b, err
	}
	if len(found) == 0 {
		return v3.ServiceInstance{}, b, s.notHere(ctx, "service instance", "/v3/service_instances", name, "proa services")
	}
	return found[0], b, nil
}

// notHere says that the space has none of that name, and which it may have been meant for.
func (s *session) notHere(ctx context.Context, noun, path, name, lists string) error {
	all, err := v3.All[Place](ctx, s.api, path+"?per_page=5000&space_guids="+url.QueryEscape(s.cfg.Space.GUID))
	if err != nil {
		return err
	}
	names := make([]string, len(all))
	for i, one := range all {
		names[i] = one.Name
	}
	return missing(lists+"    # lists those of this space", "There is no %s %q in space %s.%s", noun, name, s.cfg.Space.Name, meant(name, names))
}

var serviceCommand = command{
	name: "service", args: "NAME", group: "Services", short: "Show a service instance: how it stands, and which apps are bound to it",
	examples: []string{"proa service db", "proa service db --guid", "proa service db --params    # what it was made with"},
	needs:    aSpace,
	setup: func(f *flags) action {
		guid, params := f.on("guid", "print only its id"), f.on("params", "print only its parameters, as JSON")
		f.output()
		return func(ctx context.Context, s *session, args []string) error {
			if *guid && *params {
				return usage("Choose one of --guid and --params.")
			}
			if *guid || *params {
				i, err := s.findService(ctx, args[0])
				if err != nil {
					return err
				}
				if *guid {
					s.say("%s", clean(i.GUID))
					return nil
				}
				return s.printParameters(ctx, i)
			}
			return s.showService(ctx, args[0])
		}
	},
}

func (s *session) printParameters(ctx context.Context, i v3.ServiceInstance) error {
	if i.Type == v3.UserProvidedInstance {
		return failed("", "Service instance %s is user-provided: no broker knows parameters of it.", i.Name)
	}
	var params json.RawMessage
	if err := s.get(ctx, instancePath(i)+"/parameters", &params); err != nil {
		return err
	}
	return s.printObject(params)
}

// shownService is an instance as `service` shows it.
type shownService struct {
	v3.ServiceInstance
	Plan       string        `json:"service_plan_name"`
	Offering   string        `json:"service_offering_name"`
	Broker     string        `json:"service_broker_name"`
	SharedFrom *sharedSpace  `json:"shared_from,omitempty"`
	SharedWith []sharedSpace `json:"shared_with"`
	Bindings   []boundApp    `json:"bindings"`

	offering v3.ServiceOffering
}

// boundApp is a binding with the name of its app.
type boundApp struct {
	v3.ServiceBinding
	App string `json:"app_name"`
}

// serviceFields ask for what `service` shows beside the instance itself.
var serviceFields = "&" + url.Values{
	"fields[service_plan]":                                 {"name,guid,relationships.service_offering"},
	"fields[service_plan.service_offering]":                {"name,guid,description,tags,documentation_url,relationships.service_broker"},
	"fields[service_plan.service_offering.service_broker]": {"name,guid"},
	"fields[space]":                                        {"name,guid,relationships.organization"},
	"fields[space.organization]":                           {"name,guid"},
}.Encode()

func (s *session) showService(ctx context.Context, name string) error {
	i, b, err := s.findServiceWith(ctx, name, serviceFields)
	if err != nil {
		return err
	}
	plan := b.plans[i.Relationships["service_plan"].GUID()]
	shown := shownService{ServiceInstance: i, Plan: plan.Name, SharedWith: []sharedSpace{}, offering: b.offeringOf(plan)}
	shown.Offering, shown.Broker = shown.offering.Name, b.brokerOf(shown.offering).Name
	at := i.Relationships["space"].GUID()
	switch {
	case at != s.cfg.Space.GUID:
		shown.SharedFrom = new(b.sharedSpace(at))
	case i.Type == v3.ManagedInstance:
		if shown.SharedWith, err = s.sharedWith(ctx, i); err != nil {
			return err
		}
	}
	if shown.Bindings, err = s.boundApps(ctx, i); err != nil {
		return err
	}
	if s.flags.json {
		return s.json(shown)
	}
	return s.printService(ctx, shown)
}

// bindingsPath is where the bindings of a type are that an instance has.
func bindingsPath(i v3.ServiceInstance, kind string) string {
	return "/v3/service_credential_bindings?type=" + kind + "&per_page=5000&service_instance_guids=" + url.QueryEscape(i.GUID)
}

func (s *session) boundApps(ctx context.Context, i v3.ServiceInstance) ([]boundApp, error) {
	bindings, b, err := whole[v3.ServiceBinding](ctx, s, bindingsPath(i, "app")+"&include=app")
	if err != nil {
		return nil, err
	}
	bound := make([]boundApp, len(bindings))
	for n, one := range bindings {
		guid := one.Relationships["app"].GUID()
		bound[n] = boundApp{one, firstOf(b.apps[guid].Name, guid)}
	}
	return bound, nil
}

func (s *session) printService(ctx context.Context, i shownService) error {
	rows := [][2]string{{"name", clean(i.Name)}, {"guid", clean(i.GUID)}, {"type", clean(i.Type)}}
	if i.Type == v3.ManagedInstance {
		rows = append(rows, [2]string{"offering", clean(i.Offering)}, [2]string{"plan", clean(i.Plan)}, [2]string{"broker", clean(i.Broker)})
	}
	for _, r := range [][2]string{{"tags", join(i.Tags)}, {"description", clean(i.offering.Description)}, {"documentation", clean(i.offering.DocumentationURL)},
		{"dashboard", clean(as(i.DashboardURL))}} {
		if r[1] != "" {
			rows = append(rows, r)
		}
	}
	rows = append(rows, [2]string{"status", s.ofOperation(i.LastOperation)})
	if said := clean(i.LastOperation.Description); said != "" {
		rows = append(rows, [2]string{"message", said})
	}
	rows = append(rows, s.times(i.LastOperation)...)
	if i.SharedFrom != nil {
		rows = append(rows, [2]string{"shared from", clean(i.SharedFrom.String())})
	}
	s.pairs(s.Out, rows)
	s.printShared(i.SharedWith)
	s.printBound(i.Bindings)
	if as(i.UpgradeAvailable) && !pending(i.LastOperation) {
		if err := s.printUpgrade(ctx, i.ServiceInstance); err != nil {
			return err
		}
	}
	s.printServiceNext(i)
	return nil
}

func (s *session) printBound(bound []boundApp) {
	s.say("")
	if len(bound) == 0 {
		s.say("No app is bound to it.")
		return
	}
	headings, rows := []string{"bound app", "binding name", "status", "created"}, make([][]string, len(bound))
	apps := map[string]int{}
	for i, b := range bound {
		apps[b.App]++
		rows[i] = []string{clean(b.App), clean(firstOf(as(b.Name), "-")), s.ofOperation(b.LastOperation), s.ago(time.Time(b.CreatedAt))}
	}
	if len(apps) < len(bound) { // who has two may want to take one of them away
		headings = append(headings, "binding guid")
		for i, b := range bound {
			rows[i] = append(rows[i], clean(b.GUID))
		}
	}
	s.table(s.Out, headings, rows)
	for _, b := range bound {
		if said := clean(b.LastOperation.Description); said != "" {
			s.say("%s: %s", clean(b.App), said)
		}
	}
}

// printServiceNext says what comes next: mending what failed, or the first app.
func (s *session) printServiceNext(i shownService) {
	op := i.LastOperation
	switch {
	case op.State == "failed" && op.Type == "create":
		s.say("\nNext: proa delete-service %s    # then create it again", shell(i.Name))
	case op.State == "failed" && op.Type == "delete":
		s.say("\nNext: proa delete-service %s    # tries it again", shell(i.Name))
	case !pending(op) && len(i.Bindings) == 0:
		s.say("\nNext: proa bind-service APP %s", shell(i.Name))
	}
}

// printUpgrade says what an upgrade would bring.
func (s *session) printUpgrade(ctx context.Context, i v3.ServiceInstance) error {
	var plan v3.ServicePlan
	if err := s.get(ctx, "/v3/service_plans/"+url.PathEscape(i.Relationships["service_plan"].GUID()), &plan); err != nil {
		return err
	}
	info := as(plan.Maintenance)
	text := strings.TrimSpace(fmt.Sprintf("An upgrade is there: version %s. %s", info.Version, info.Description))
	s.say("\n%s\nGet it with: proa upgrade-service %s", clean(text), shell(i.Name))
	return nil
}
