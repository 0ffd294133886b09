package api

import (
	"net/http"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

func (s *Server) serviceBroker(b platform.ServiceBroker) v3.ServiceBroker {
	self := "/v3/service_brokers/" + b.GUID
	shown := v3.ServiceBroker{Resource: resource(b.GUID, b.CreatedAt, b.UpdatedAt), Name: b.Name, URL: b.URL, State: string(b.State), Metadata: metadata(b.Metadata),
		Relationships: map[string]v3.ToOne{}, Links: v3.Links{"self": s.link(self), "service_offerings": s.link("/v3/service_offerings?service_broker_guids=", b.GUID)}}
	if b.SpaceGUID != "" {
		shown.Relationships["space"] = v3.One(b.SpaceGUID)
		shown.Links["space"] = s.link("/v3/spaces/", b.SpaceGUID)
	}
	return shown
}

func (s *Server) listServiceBrokers(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	l, err := readList(r, "name")
	if err != nil {
		return err
	}
	page, err := s.Store.ServiceBrokers(r.Context(), who, l)
	if err != nil {
		return err
	}
	return reply(s, w, r, l, page, s.serviceBroker)
}

func (s *Server) getServiceBroker(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	b, err := s.Store.ServiceBroker(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.serviceBroker(b))
}

// brokerAccount reads how to log in. Basic authentication is all that brokers are asked with.
func brokerAccount(in *v3.BrokerAuthentication) (*platform.BrokerAccount, error) {
	switch {
	case in == nil:
		return nil, nil
	case in.Type != "basic":
		return nil, fault.Unprocessable("Authentication type must be basic, with credentials of a username and a password.")
	}
	return &platform.BrokerAccount{Username: in.Credentials.Username, Password: in.Credentials.Password}, nil
}

func (s *Server) createServiceBroker(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.ServiceBrokerCreate
	if err := read(r, &in); err != nil {
		return err
	}
	account, err := brokerAccount(in.Authentication)
	if err != nil {
		return err
	}
	if account == nil {
		return fault.Unprocessable("Authentication can't be blank: give the type basic, and credentials of a username and a password.")
	}
	b := platform.ServiceBroker{Name: in.Name, URL: in.URL}
	if in.Relationships != nil {
		if b.SpaceGUID = in.Relationships.Space.GUID(); b.SpaceGUID == "" {
			return fault.Unprocessable("Relationships must name a space. Leave them out for a broker that is for all.")
		}
	}
	b.Metadata.Apply(noted(in.Metadata))
	j, err := s.Store.CreateServiceBroker(r.Context(), who, b, *account)
	if err != nil {
		return err
	}
	return s.accepted(w, j)
}

func (s *Server) updateServiceBroker(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.ServiceBrokerChange
	if err := read(r, &in); err != nil {
		return err
	}
	account, err := brokerAccount(in.Authentication)
	if err != nil {
		return err
	}
	change := platform.BrokerChange{Name: in.Name, URL: in.URL, Account: account, Metadata: noted(in.Metadata)}
	asked, err := s.Store.UpdateServiceBroker(r.Context(), who, r.PathValue("guid"), change)
	if err != nil {
		return err
	}
	if asked.Job != nil {
		return s.accepted(w, *asked.Job)
	}
	return web.JSON(w, http.StatusOK, s.serviceBroker(asked.Record))
}

func (s *Server) deleteServiceBroker(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	j, err := s.Store.DeleteServiceBroker(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return s.accepted(w, j)
}
