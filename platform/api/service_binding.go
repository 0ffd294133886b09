package api

import (
	"net/http"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

func (s *Server) serviceBinding(b platform.ServiceBinding) v3.ServiceBinding {
	self := "/v3/service_credential_bindings/" + b.GUID
	shown := v3.ServiceBinding{Resource: resource(b.GUID, b.CreatedAt, b.UpdatedAt), Type: string(b.Type), LastOperation: lastOperation(b.LastOperation), Metadata: metadata(b.Metadata),
		Relationships: map[string]v3.ToOne{"service_instance": v3.One(b.InstanceGUID)},
		Links: v3.Links{"self": s.link(self), "details": s.link(self, "/details"), "parameters": s.link(self, "/parameters"),
			"service_instance": s.link("/v3/service_instances/", b.InstanceGUID)}}
	if b.Name != "" {
		shown.Name = &b.Name
	}
	if b.AppGUID != "" {
		shown.Relationships["app"], shown.Links["app"] = v3.One(b.AppGUID), s.link("/v3/apps/", b.AppGUID)
	}
	return shown
}

func (s *Server) listServiceBindings(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	l, err := readList(r, "name")
	if err != nil {
		return err
	}
	page, err := s.Store.ServiceBindings(r.Context(), who, l)
	if err != nil {
		return err
	}
	list := pageOf(s, r, l, page, s.serviceBinding)
	if list.Included, err = s.besideBindings(r, who, page.Records); err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, list)
}

// besideBindings reads the apps and instances of bindings, if they are asked for.
func (s *Server) besideBindings(r *http.Request, who platform.Who, bindings []platform.ServiceBinding) (*v3.Included, error) {
	with, err := include(r, "app", "service_instance")
	if err != nil || len(with) == 0 {
		return nil, err
	}
	var included v3.Included
	if with["app"] {
		found, err := s.Store.Apps(r.Context(), who, platform.Only(distinct(bindings, func(b platform.ServiceBinding) string { return b.AppGUID })))
		if err != nil {
			return nil, err
		}
		included.Apps = refer(found, s.appOf)
	}
	if with["service_instance"] {
		found, err := s.Store.ServiceInstances(r.Context(), who, platform.Only(distinct(bindings, func(b platform.ServiceBinding) string { return b.InstanceGUID })))
		if err != nil {
			return nil, err
		}
		included.ServiceInstances = refer(found, s.serviceInstance)
	}
	return &included, nil
}

func (s *Server) getServiceBinding(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	b, err := s.Store.ServiceBinding(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	shown := struct {
		v3.ServiceBinding
		Included *v3.Included `json:"included,omitempty"`
	}{ServiceBinding: s.serviceBinding(b)}
	if shown.Included, err = s.besideBindings(r, who, []platform.ServiceBinding{b}); err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, shown)
}

func (s *Server) createServiceBinding(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.ServiceBindingCreate
	if err := read(r, &in); err != nil {
		return err
	}
	b, err := bindingOf(in)
	if err != nil {
		return err
	}
	parameters, err := platform.CheckObject("Parameters", in.Parameters)
	if err != nil {
		return err
	}
	made, err := s.Store.CreateBinding(r.Context(), who, b, parameters, in.Strategy == "multiple")
	switch {
	case err != nil:
		return err
	case made.Job != nil:
		return s.accepted(w, *made.Job)
	}
	return web.JSON(w, http.StatusCreated, s.serviceBinding(made.Record))
}

func bindingOf(in v3.ServiceBindingCreate) (platform.ServiceBinding, error) {
	b := platform.ServiceBinding{Type: platform.BindingType(in.Type), InstanceGUID: in.Relationships.Instance.GUID()}
	if in.Name != nil {
		b.Name = *in.Name
	}
	if in.Relationships.App != nil {
		b.AppGUID = in.Relationships.App.GUID()
	}
	b.Metadata.Apply(noted(in.Metadata))
	switch {
	case b.Type != platform.BindingApp && b.Type != platform.BindingKey:
		return b, fault.Unprocessable("Type must be one of 'app', 'key'")
	case b.InstanceGUID == "":
		return b, fault.Unprocessable("Relationships 'relationships' must include one or more valid relationships: say the service_instance to bind.")
	case b.Type == platform.BindingApp && b.AppGUID == "":
		return b, fault.Unprocessable("Relationships 'relationships' must include one or more valid relationships: say the app to bind.")
	case b.Type == platform.BindingKey && in.Relationships.App != nil:
		return b, fault.Unprocessable("A key belongs to no app. Leave the app out, or set the type to 'app'.")
	case in.Strategy != "" && in.Strategy != "single" && in.Strategy != "multiple":
		return b, fault.Unprocessable("Strategy must be one of 'single', 'multiple'")
	}
	return b, nil
}

func (s *Server) updateServiceBinding(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.ServiceBindingChange
	if err := read(r, &in); err != nil {
		return err
	}
	b, err := s.Store.UpdateBinding(r.Context(), who, r.PathValue("guid"), noted(in.Metadata))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.serviceBinding(b))
}

func (s *Server) deleteServiceBinding(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	j, err := s.Store.DeleteBinding(r.Context(), who, r.PathValue("guid"))
	if err != nil || j == nil {
		return gone(w, err)
	}
	return s.accepted(w, *j)
}

func (s *Server) getBindingDetails(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	details, err := s.Store.BindingDetails(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	shown := v3.BindingDetails{Credentials: details.Credentials}
	if string(details.VolumeMounts) != "null" {
		shown.VolumeMounts = details.VolumeMounts
	}
	if details.SyslogDrainURL != "" {
		shown.SyslogDrainURL = &details.SyslogDrainURL
	}
	return web.JSON(w, http.StatusOK, shown)
}

func (s *Server) getBindingParameters(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	parameters, err := s.Store.BindingParameters(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, parameters)
}
