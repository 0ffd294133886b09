package api

import (
	"net/http"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/store"
	v3 "github.com/proa-dev/proa/platform/v3"
)

func (s *Server) serviceInstance(i platform.ServiceInstance) v3.ServiceInstance {
	self := "/v3/service_instances/" + i.GUID
	shown := v3.ServiceInstance{Resource: resource(i.GUID, i.CreatedAt, i.UpdatedAt), Name: i.Name, Type: v3.UserProvidedInstance, Tags: append([]string{}, i.Tags...),
		LastOperation: lastOperation(i.LastOperation), Metadata: metadata(i.Metadata), Relationships: map[string]v3.ToOne{"space": v3.One(i.SpaceGUID)},
		Links: v3.Links{"self": s.link(self), "space": s.link("/v3/spaces/", i.SpaceGUID), "service_credential_bindings": s.link("/v3/service_credential_bindings?service_instance_guids=", i.GUID)}}
	if !i.Managed() {
		shown.Links["credentials"] = s.link(self, "/credentials")
		return shown
	}
	shown.Type, shown.DashboardURL, shown.UpgradeAvailable, shown.MaintenanceInfo = v3.ManagedInstance, &i.DashboardURL, &i.Upgradable, &v3.MaintenanceInfo{}
	if i.Maintenance != nil {
		*shown.MaintenanceInfo = v3.MaintenanceInfo(*i.Maintenance)
	}
	shown.Relationships["service_plan"] = v3.One(i.PlanGUID)
	shown.Links["service_plan"], shown.Links["parameters"], shown.Links["shared_spaces"] = s.link("/v3/service_plans/", i.PlanGUID), s.link(self, "/parameters"), s.link(self, "/relationships/shared_spaces")
	return shown
}

func lastOperation(o platform.LastOperation) v3.LastOperation {
	return v3.LastOperation{Type: o.Type, State: string(o.State), Description: o.Description, CreatedAt: v3.Time(o.CreatedAt), UpdatedAt: v3.Time(o.UpdatedAt)}
}

func (s *Server) listServiceInstances(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	l, err := readList(r, "name")
	if err != nil {
		return err
	}
	asked, err := fields(r, instanceFields)
	if err != nil {
		return err
	}
	page, err := s.Store.ServiceInstances(r.Context(), who, l)
	if err != nil {
		return err
	}
	included, err := s.besideInstances(r, asked, page.Records)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, withPage(pageOf(s, r, l, page, s.serviceInstance), included))
}

// instanceFields are what can be asked for beside instances.
var instanceFields = fieldSet{
	"space": {"name", "guid", "relationships.organization"}, "space.organization": {"name", "guid"},
	"service_plan":                                 {"name", "guid", "relationships.service_offering"},
	"service_plan.service_offering":                {"name", "guid", "description", "documentation_url", "tags", "relationships.service_broker"},
	"service_plan.service_offering.service_broker": {"name", "guid"},
}

// besideInstances reads what instances refer to, if it is asked for.
func (s *Server) besideInstances(r *http.Request, asked map[string][]string, found []platform.ServiceInstance) (beside, error) {
	if len(asked) == 0 {
		return nil, nil
	}
	all, err := s.Store.Surroundings(r.Context(), distinct(found, func(i platform.ServiceInstance) string { return i.SpaceGUID }), distinct(found, func(i platform.ServiceInstance) string { return i.PlanGUID }))
	if err != nil {
		return nil, err
	}
	return surroundings(all, asked)
}

// surroundings are the fields that were asked for, of what was read.
func surroundings(all store.Surroundings, asked map[string][]string) (beside, error) {
	included := beside{}
	err := errFirst(
		choose(included, "spaces", all.Spaces, asked["space"], func(sp platform.Space) any {
			return v3.Space{Resource: v3.Resource{GUID: sp.GUID}, Name: sp.Name, Relationships: map[string]v3.ToOne{"organization": v3.One(sp.OrgGUID)}}
		}),
		choose(included, "organizations", all.Orgs, asked["space.organization"], func(o platform.Org) any { return v3.Named{GUID: o.GUID, Name: o.Name} }),
		choose(included, "service_plans", all.Plans, asked["service_plan"], func(p platform.ServicePlan) any {
			return v3.ServicePlan{Resource: v3.Resource{GUID: p.GUID}, Name: p.Name, Relationships: map[string]v3.ToOne{"service_offering": v3.One(p.OfferingGUID)}}
		}),
		choose(included, "service_offerings", all.Offerings, asked["service_plan.service_offering"], func(o platform.ServiceOffering) any {
			return v3.ServiceOffering{Resource: v3.Resource{GUID: o.GUID}, Name: o.Name, Description: o.Description, DocumentationURL: o.DocumentationURL, Tags: append([]string{}, o.Tags...),
				Relationships: map[string]v3.ToOne{"service_broker": v3.One(o.BrokerGUID)}}
		}),
		choose(included, "service_brokers", all.Brokers, asked["service_plan.service_offering.service_broker"], func(b platform.ServiceBroker) any { return v3.Named{GUID: b.GUID, Name: b.Name} }),
	)
	return included, err
}

// choose puts the fields of records that were asked for under a name, if any were.
func choose[T any](included beside, name string, records []T, asked []string, shape func(T) any) error {
	if asked == nil {
		return nil
	}
	shaped := make([]any, 0, len(records))
	for _, record := range records {
		shaped = append(shaped, shape(record))
	}
	picked, err := pick(shaped, asked)
	included[name] = picked
	return err
}

func errFirst(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) getServiceInstance(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	asked, err := fields(r, instanceFields)
	if err != nil {
		return err
	}
	i, err := s.Store.ServiceInstance(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	included, err := s.besideInstances(r, asked, []platform.ServiceInstance{i})
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, struct {
		v3.ServiceInstance
		Included beside `json:"included,omitempty"`
	}{s.serviceInstance(i), included})
}

func (s *Server) createServiceInstance(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.ServiceInstanceCreate
	if err := read(r, &in); err != nil {
		return err
	}
	i := platform.ServiceInstance{Name: in.Name, SpaceGUID: in.Relationships.Space.GUID(), Tags: in.Tags}
	if i.SpaceGUID == "" {
		return fault.Unprocessable("Relationships 'relationships' must include one or more valid relationships: say the space of the service instance.")
	}
	i.Metadata.Apply(noted(in.Metadata))
	switch in.Type {
	case v3.ManagedInstance:
		return s.createManaged(w, r, who, i, in)
	case v3.UserProvidedInstance:
		return s.createUserProvided(w, r, who, i, in)
	}
	return fault.Unprocessable("Type must be one of 'managed', 'user-provided'")
}

func (s *Server) createManaged(w http.ResponseWriter, r *http.Request, who platform.Who, i platform.ServiceInstance, in v3.ServiceInstanceCreate) error {
	if in.Credentials != nil || in.SyslogDrainURL != nil || in.RouteServiceURL != nil {
		return fault.Unprocessable("Credentials, syslog_drain_url and route_service_url belong to user-provided service instances: a broker makes those of a managed one.")
	}
	if in.Relationships.Plan == nil || in.Relationships.Plan.GUID() == "" {
		return fault.Unprocessable("Relationships 'relationships' must include one or more valid relationships: say the service_plan of the service instance.")
	}
	i.PlanGUID = in.Relationships.Plan.GUID()
	parameters, err := platform.CheckObject("Parameters", in.Parameters)
	if err != nil {
		return err
	}
	j, err := s.Store.CreateServiceInstance(r.Context(), who, i, parameters)
	if err != nil {
		return err
	}
	return s.accepted(w, j)
}

func (s *Server) createUserProvided(w http.ResponseWriter, r *http.Request, who platform.Who, i platform.ServiceInstance, in v3.ServiceInstanceCreate) error {
	if in.Parameters != nil || in.Relationships.Plan != nil {
		return fault.Unprocessable("Parameters and a service_plan belong to managed service instances: nobody makes a user-provided one but its user.")
	}
	if err := checkForwarding(in.SyslogDrainURL, in.RouteServiceURL); err != nil {
		return err
	}
	credentials, err := platform.CheckObject("Credentials", in.Credentials)
	if err != nil {
		return err
	}
	if i, err = s.Store.CreateUserProvided(r.Context(), who, i, credentials); err != nil {
		return err
	}
	return web.JSON(w, http.StatusCreated, s.serviceInstance(i))
}

// checkForwarding refuses what would be kept and never done.
func checkForwarding(drain, route *string) error {
	switch {
	case drain != nil && *drain != "":
		return fault.Unprocessable("Logs are not sent to a syslog_drain_url: Proa has no log drains. Leave it out, and read logs where the cluster collects them.")
	case route != nil && *route != "":
		return fault.Unprocessable("Requests are not sent through a route_service_url: Proa has no route services. Leave it out.")
	}
	return nil
}

func (s *Server) updateServiceInstance(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.ServiceInstanceChange
	if err := read(r, &in); err != nil {
		return err
	}
	change, err := instanceChange(in)
	if err != nil {
		return err
	}
	changed, err := s.Store.UpdateServiceInstance(r.Context(), who, r.PathValue("guid"), change)
	switch {
	case err != nil:
		return err
	case changed.Job != nil:
		return s.accepted(w, *changed.Job)
	}
	return web.JSON(w, http.StatusOK, s.serviceInstance(changed.Record))
}

func instanceChange(in v3.ServiceInstanceChange) (platform.InstanceChange, error) {
	c := platform.InstanceChange{Name: in.Name, Tags: in.Tags, Metadata: noted(in.Metadata), Maintenance: (*platform.Maintenance)(in.MaintenanceInfo)}
	if in.Relationships != nil {
		if in.Relationships.Space.Data != nil {
			return c, fault.Unprocessable("A service instance stays in its space. Share it with the other, or create one there.")
		}
		if in.Relationships.Plan != nil {
			c.PlanGUID = in.Relationships.Plan.GUID()
		}
	}
	if err := checkForwarding(in.SyslogDrainURL, in.RouteServiceURL); err != nil {
		return c, err
	}
	var err error
	if c.Parameters, err = platform.CheckObject("Parameters", in.Parameters); err != nil {
		return c, err
	}
	c.Credentials, err = platform.CheckObject("Credentials", in.Credentials)
	return c, err
}

func (s *Server) deleteServiceInstance(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	if r.URL.Query().Get("purge") == "true" {
		return gone(w, s.Store.PurgeServiceInstance(r.Context(), who, r.PathValue("guid")))
	}
	j, err := s.Store.DeleteServiceInstance(r.Context(), who, r.PathValue("guid"))
	if err != nil || j == nil {
		return gone(w, err)
	}
	return s.accepted(w, *j)
}

// gone answers a deletion that is done. It has no Location: clients would poll it.
func gone(w http.ResponseWriter, err error) error {
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

func (s *Server) getInstanceParameters(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	parameters, err := s.Store.InstanceParameters(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, parameters)
}

func (s *Server) getInstanceCredentials(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	credentials, err := s.Store.InstanceCredentials(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, credentials)
}

// getInstancePermissions tells the dashboard of a service what its visitor may do.
func (s *Server) getInstancePermissions(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	manages, err := s.Store.ManagesInstance(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, v3.InstancePermissions{Read: true, Manage: manages})
}
