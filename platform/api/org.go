package api

import (
	"net/http"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

func (s *Server) listOrgs(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	l, err := readList(r, "name")
	if err != nil {
		return err
	}
	page, err := s.Store.Orgs(r.Context(), who, l)
	if err != nil {
		return err
	}
	return reply(s, w, r, l, page, s.org)
}

func (s *Server) getOrg(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	o, err := s.Store.Org(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.org(o))
}

// changeOrg writes what a request names onto an organization.
func changeOrg(in v3.OrganizationChange) func(*platform.Org) error {
	return func(o *platform.Org) error {
		if in.Name != nil {
			o.Name = *in.Name
		}
		if in.Suspended != nil {
			o.Suspended = *in.Suspended
		}
		o.Metadata.Apply(noted(in.Metadata))
		return nil
	}
}

func (s *Server) createOrg(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.OrganizationChange
	if err := read(r, &in); err != nil {
		return err
	}
	var o platform.Org
	if err := changeOrg(in)(&o); err != nil {
		return err
	}
	o, err := s.Store.CreateOrg(r.Context(), who, o)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusCreated, s.org(o))
}

func (s *Server) updateOrg(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.OrganizationChange
	if err := read(r, &in); err != nil {
		return err
	}
	o, err := s.Store.UpdateOrg(r.Context(), who, r.PathValue("guid"), changeOrg(in))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.org(o))
}

func (s *Server) deleteOrg(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	j, err := s.Store.DeleteOrg(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return s.accepted(w, j)
}

func (s *Server) getUsage(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	u, err := s.Store.OrgUsage(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	self := "/v3/organizations/" + r.PathValue("guid")
	return web.JSON(w, http.StatusOK, v3.UsageSummary{Usage: map[string]int{"started_instances": u.Instances, "memory_in_mb": u.MemoryMB, "routes": u.Routes, "domains": u.Domains,
		"service_instances": u.ServiceInstances, "service_keys": u.ServiceKeys, "reserved_ports": 0, "per_app_tasks": 0}, Links: v3.Links{"self": s.link(self, "/usage_summary"), "organization": s.link(self)}})
}

// There are no isolation segments: a space says on which cluster its apps run.

func (s *Server) getOrgSegment(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	if _, err := s.Store.Org(r.Context(), who, r.PathValue("guid")); err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, v3.ToOne{})
}

func (s *Server) listSegments(w http.ResponseWriter, r *http.Request, _ platform.Who) error {
	return s.nothing(w, r)
}

// nothing is a list of what there is none of.
func (s *Server) nothing(w http.ResponseWriter, r *http.Request) error {
	l, err := readList(r, "name")
	if err != nil {
		return err
	}
	return reply(s, w, r, l, platform.Page[struct{}]{}, func(v struct{}) struct{} { return v })
}

// quota is the one there is. Null limits nothing.
func (s *Server) quota() v3.Quota {
	return v3.Quota{Resource: resource(platform.DefaultQuota.GUID, s.Offer.Since, s.Offer.Since), Name: platform.DefaultQuota.Name,
		Apps:          map[string]*int{"total_memory_in_mb": nil, "per_process_memory_in_mb": nil, "total_instances": nil, "per_app_tasks": nil, "log_rate_limit_in_bytes_per_second": nil},
		Services:      map[string]any{"paid_services_allowed": true, "total_service_instances": nil, "total_service_keys": nil},
		Routes:        map[string]*int{"total_routes": nil, "total_reserved_ports": nil},
		Domains:       map[string]*int{"total_domains": nil},
		Relationships: map[string]v3.ToMany{"organizations": {Data: []v3.Ref{}}},
		Links:         v3.Links{"self": s.link("/v3/organization_quotas/", platform.DefaultQuota.GUID)}}
}

func (s *Server) listQuotas(w http.ResponseWriter, r *http.Request, _ platform.Who) error {
	l, err := readList(r, "name")
	if err != nil {
		return err
	}
	delete(l.Values, "organization_guids") // it is every organization's
	page := static(l, []v3.Quota{s.quota()}, func(q v3.Quota, parameter string) string {
		if parameter == "names" {
			return q.Name
		}
		return q.GUID
	})
	return reply(s, w, r, l, page, func(q v3.Quota) v3.Quota { return q })
}

func (s *Server) getQuota(w http.ResponseWriter, r *http.Request, _ platform.Who) error {
	if r.PathValue("guid") != platform.DefaultQuota.GUID {
		return fault.NotFound("Organization quota not found")
	}
	return web.JSON(w, http.StatusOK, s.quota())
}
