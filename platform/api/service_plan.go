package api

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

func (s *Server) servicePlan(p platform.ServicePlan) v3.ServicePlan {
	self := "/v3/service_plans/" + p.GUID
	shown := v3.ServicePlan{Resource: resource(p.GUID, p.CreatedAt, p.UpdatedAt), Name: p.Name, Description: p.Description, Free: p.Free, Available: p.Active, VisibilityType: string(p.Visibility),
		Costs: costs(p.Catalog), Maintenance: &v3.MaintenanceInfo{}, Schemas: schemas(p.Schemas), Metadata: metadata(p.Metadata),
		BrokerCatalog: v3.PlanCatalog{ID: p.UniqueID, Metadata: p.Catalog, Features: v3.PlanFeatures{Bindable: p.Bindable, PlanUpdateable: p.PlanUpdateable}},
		Relationships: map[string]v3.ToOne{"service_offering": v3.One(p.OfferingGUID)},
		Links:         v3.Links{"self": s.link(self), "service_offering": s.link("/v3/service_offerings/", p.OfferingGUID), "visibility": s.link(self, "/visibility")}}
	if p.Maintenance != nil {
		*shown.Maintenance = v3.MaintenanceInfo(*p.Maintenance)
	}
	if seconds := int(p.MaxPolling / time.Second); seconds > 0 {
		shown.BrokerCatalog.MaxPolling = &seconds
	}
	if p.BrokerSpace != "" {
		shown.Relationships["space"] = v3.One(p.BrokerSpace)
		shown.Links["space"] = s.link("/v3/spaces/", p.BrokerSpace)
	}
	return shown
}

// costs reads what a plan costs from what its broker says, where that has the customary form.
func costs(catalog json.RawMessage) []v3.Cost {
	list := []v3.Cost{}
	var all map[string]json.RawMessage
	var said []struct {
		Amount map[string]float64 `json:"amount"`
		Unit   string             `json:"unit"`
	}
	if json.Unmarshal(catalog, &all) != nil || json.Unmarshal(all["costs"], &said) != nil {
		return list
	}
	for _, cost := range said {
		for _, currency := range slices.Sorted(maps.Keys(cost.Amount)) {
			list = append(list, v3.Cost{Amount: cost.Amount[currency], Currency: strings.ToUpper(currency), Unit: cost.Unit})
		}
	}
	return list
}

// schemas are those of a plan, with an empty one wherever its broker has none: clients look into all of them.
func schemas(raw json.RawMessage) json.RawMessage {
	type parameters struct {
		Parameters json.RawMessage `json:"parameters"`
	}
	var all struct {
		Instance struct {
			Create parameters `json:"create"`
			Update parameters `json:"update"`
		} `json:"service_instance"`
		Binding struct {
			Create parameters `json:"create"`
		} `json:"service_binding"`
	}
	_ = json.Unmarshal(raw, &all) // what has another form is none
	for _, p := range []*parameters{&all.Instance.Create, &all.Instance.Update, &all.Binding.Create} {
		if len(p.Parameters) == 0 || p.Parameters[0] != '{' {
			p.Parameters = json.RawMessage(`{}`)
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return text
}

// besidePlans reads the offerings, brokers, spaces and organizations of plans, if they are asked for.
func (s *Server) besidePlans(r *http.Request, who platform.Who, plans []platform.ServicePlan) (beside, error) {
	with, err := include(r, "service_offering", "space.organization")
	if err != nil {
		return nil, err
	}
	asked, err := fields(r, fieldSet{"service_offering.service_broker": brokerFields})
	if err != nil {
		return nil, err
	}
	included := beside{}
	if with["service_offering"] {
		found, err := s.Store.ServiceOfferings(r.Context(), who, platform.Only(distinct(plans, func(p platform.ServicePlan) string { return p.OfferingGUID })))
		if err != nil {
			return nil, err
		}
		included["service_offerings"] = refer(found, s.serviceOffering)
	}
	if of := asked["service_offering.service_broker"]; of != nil {
		if included["service_brokers"], err = brokersOf(plans, func(p platform.ServicePlan) brokerRef { return brokerRef{p.BrokerGUID, p.BrokerName} }, of); err != nil {
			return nil, err
		}
	}
	if with["space.organization"] {
		err = s.besideSpaces(r, who, distinct(plans, func(p platform.ServicePlan) string { return p.BrokerSpace }), included)
	}
	return included, err
}

// besideSpaces adds spaces and their organizations.
func (s *Server) besideSpaces(r *http.Request, who platform.Who, guids []string, included beside) error {
	spaces, err := s.Store.Spaces(r.Context(), who, platform.Only(guids))
	if err != nil {
		return err
	}
	orgs, err := s.Store.Orgs(r.Context(), who, platform.Only(distinct(spaces.Records, func(sp platform.Space) string { return sp.OrgGUID })))
	if err != nil {
		return err
	}
	included["spaces"], included["organizations"] = refer(spaces, s.space), refer(orgs, s.org)
	return nil
}

func (s *Server) listServicePlans(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	l, err := readServices(r)
	if err != nil {
		return err
	}
	page, err := s.Store.ServicePlans(r.Context(), who, l)
	if err != nil {
		return err
	}
	included, err := s.besidePlans(r, who, page.Records)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, withPage(pageOf(s, r, l, page, s.servicePlan), included))
}

func (s *Server) getServicePlan(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	p, err := s.Store.ServicePlan(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	shown := struct {
		v3.ServicePlan
		Included beside `json:"included,omitempty"`
	}{ServicePlan: s.servicePlan(p)}
	if shown.Included, err = s.besidePlans(r, who, []platform.ServicePlan{p}); err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, shown)
}

func (s *Server) updateServicePlan(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in noteChange
	if err := read(r, &in); err != nil {
		return err
	}
	p, err := s.Store.UpdateServicePlan(r.Context(), who, r.PathValue("guid"), noted(in.Metadata))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.servicePlan(p))
}

func (s *Server) deleteServicePlan(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	if err := s.Store.DeleteServicePlan(r.Context(), who, r.PathValue("guid")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
