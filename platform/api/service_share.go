package api

import (
	"net/http"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/store"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// sharedSpaces are the spaces that an instance is shared with.
func (s *Server) sharedSpaces(guid string, shares []store.Share) v3.SharedSpaces {
	shown := v3.SharedSpaces{Data: []v3.Ref{}, Links: v3.Links{"self": s.link("/v3/service_instances/", guid, "/relationships/shared_spaces")}}
	for _, one := range shares {
		shown.Data = append(shown.Data, v3.Ref{GUID: one.Space.GUID})
	}
	return shown
}

func (s *Server) listSharedSpaces(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	asked, err := fields(r, fieldSet{"space": instanceFields["space"], "space.organization": instanceFields["space.organization"]})
	if err != nil {
		return err
	}
	guid := r.PathValue("guid")
	shares, err := s.Store.Shares(r.Context(), who, guid)
	if err != nil {
		return err
	}
	var all store.Surroundings
	orgs := map[string]bool{}
	for _, one := range shares {
		all.Spaces = append(all.Spaces, one.Space)
		if !orgs[one.Space.OrgGUID] {
			orgs[one.Space.OrgGUID] = true
			all.Orgs = append(all.Orgs, platform.Org{GUID: one.Space.OrgGUID, Name: one.OrgName})
		}
	}
	shown := struct {
		v3.SharedSpaces
		Included beside `json:"included,omitempty"`
	}{SharedSpaces: s.sharedSpaces(guid, shares)}
	if shown.Included, err = surroundings(all, asked); err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, shown)
}

func (s *Server) shareServiceInstance(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.ToMany
	if err := read(r, &in); err != nil {
		return err
	}
	var with []string
	for _, one := range in.Data {
		with = append(with, one.GUID)
	}
	if len(with) == 0 {
		return fault.Unprocessable("Data must be a list of one or more spaces, each with its guid.")
	}
	guid := r.PathValue("guid")
	shares, err := s.Store.ShareServiceInstance(r.Context(), who, guid, with)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.sharedSpaces(guid, shares))
}

func (s *Server) unshareServiceInstance(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	return gone(w, s.Store.UnshareServiceInstance(r.Context(), who, r.PathValue("guid"), r.PathValue("space")))
}

func (s *Server) getSharedUsage(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	guid := r.PathValue("guid")
	shares, err := s.Store.Shares(r.Context(), who, guid)
	if err != nil {
		return err
	}
	self := "/v3/service_instances/" + guid
	shown := v3.SharedUsage{UsageSummary: []v3.SpaceUsage{}, Links: v3.Links{"self": s.link(self, "/relationships/shared_spaces/usage_summary"),
		"shared_spaces": s.link(self, "/relationships/shared_spaces"), "service_instance": s.link(self)}}
	for _, one := range shares {
		shown.UsageSummary = append(shown.UsageSummary, v3.SpaceUsage{Space: v3.Ref{GUID: one.Space.GUID}, BoundAppCount: one.BoundApps})
	}
	return web.JSON(w, http.StatusOK, shown)
}
