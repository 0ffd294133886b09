package api

import (
	"net/http"
	"strings"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

func (s *Server) listDomains(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	l, err := readList(r, "name")
	if err != nil {
		return err
	}
	page, err := s.Store.Domains(r.Context(), who, l)
	if err != nil {
		return err
	}
	return reply(s, w, r, l, page, s.domain)
}

func (s *Server) listOrgDomains(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	l, err := readList(r, "name")
	if err != nil {
		return err
	}
	page, err := s.Store.OrgDomains(r.Context(), who, r.PathValue("guid"), l)
	if err != nil {
		return err
	}
	return reply(s, w, r, l, page, s.domain)
}

func (s *Server) getDomain(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	d, err := s.Store.Domain(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.domain(d))
}

func (s *Server) getDefaultDomain(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	if _, err := s.Store.Org(r.Context(), who, r.PathValue("guid")); err != nil {
		return err
	}
	d, err := s.Store.Domain(r.Context(), who, s.Offer.Domain.GUID)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.domain(d))
}

func (s *Server) createDomain(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.DomainCreate
	if err := read(r, &in); err != nil {
		return err
	}
	switch {
	case in.Internal != nil && *in.Internal:
		return fault.Unprocessable("There are no internal domains: every route is reached through the gateway. Leave internal out.")
	case in.RouterGroup != nil:
		return fault.Unprocessable("There are no router groups: the domain for tcp is the operator's, and every other speaks http. Leave router_group out.")
	case len(in.Relationships.SharedOrganizations.Data) > 0:
		return fault.Unprocessable("A domain belongs to one organization, or is shared by all. Leave shared_organizations out.")
	}
	d := platform.Domain{Name: strings.ToLower(in.Name), OrgGUID: in.Relationships.Organization.GUID()}
	d.Metadata.Apply(noted(in.Metadata))
	d, err := s.Store.CreateDomain(r.Context(), who, d, s.settings())
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusCreated, s.domain(d))
}

func (s *Server) updateDomain(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.DomainChange
	if err := read(r, &in); err != nil {
		return err
	}
	d, err := s.Store.UpdateDomain(r.Context(), who, r.PathValue("guid"), noted(in.Metadata))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.domain(d))
}

func (s *Server) deleteDomain(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	j, err := s.Store.DeleteDomain(r.Context(), who, r.PathValue("guid"), s.settings())
	if err != nil {
		return err
	}
	return s.accepted(w, j)
}
