package api

import (
	"net/http"

	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
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
