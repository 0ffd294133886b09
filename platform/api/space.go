package api

import (
	"net/http"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

func (s *Server) listSpaces(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	l, err := readList(r, "name")
	if err != nil {
		return err
	}
	with, err := include(r, "organization")
	if err != nil {
		return err
	}
	page, err := s.Store.Spaces(r.Context(), who, l)
	if err != nil {
		return err
	}
	list := pageOf(s, r, l, page, s.space)
	if with["organization"] {
		orgs, err := s.Store.Orgs(r.Context(), who, platform.Only(distinct(page.Records, func(sp platform.Space) string { return sp.OrgGUID })))
		if err != nil {
			return err
		}
		list.Included = &v3.Included{Organizations: refer(orgs, s.org)}
	}
	return web.JSON(w, http.StatusOK, list)
}

func (s *Server) getSpace(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	with, err := include(r, "organization")
	if err != nil {
		return err
	}
	sp, err := s.Store.Space(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	shown := struct {
		v3.Space
		Included *v3.Included `json:"included,omitempty"`
	}{Space: s.space(sp)}
	if with["organization"] {
		orgs, err := s.Store.Orgs(r.Context(), who, platform.Only([]string{sp.OrgGUID}))
		if err != nil {
			return err
		}
		shown.Included = &v3.Included{Organizations: refer(orgs, s.org)}
	}
	return web.JSON(w, http.StatusOK, shown)
}

func (s *Server) createSpace(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.SpaceCreate
	if err := read(r, &in); err != nil {
		return err
	}
	sp := platform.Space{Name: in.Name, OrgGUID: in.Relationships.Organization.GUID()}
	if sp.OrgGUID == "" {
		return fault.Unprocessable("Relationships 'relationships' must include one or more valid relationships")
	}
	sp.Metadata.Apply(noted(in.Metadata))
	sp, err := s.Store.CreateSpace(r.Context(), who, sp)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusCreated, s.space(sp))
}

func (s *Server) updateSpace(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.SpaceChange
	if err := read(r, &in); err != nil {
		return err
	}
	sp, err := s.Store.UpdateSpace(r.Context(), who, r.PathValue("guid"), func(sp *platform.Space) error {
		if in.Name != nil {
			sp.Name = *in.Name
		}
		sp.Metadata.Apply(noted(in.Metadata))
		return nil
	})
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.space(sp))
}

func (s *Server) deleteSpace(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	j, err := s.Store.DeleteSpace(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return s.accepted(w, j)
}

func sshFeature(sp platform.Space) v3.Feature {
	return v3.Feature{Name: "ssh", Description: "Enable SSHing into apps in the space.", Enabled: sp.AllowSSH}
}

func (s *Server) listFeatures(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	sp, err := s.Store.Space(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, map[string]any{"features": []v3.Feature{sshFeature(sp)}})
}

func (s *Server) getFeature(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	sp, err := s.Store.Space(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	if r.PathValue("name") != "ssh" {
		return platform.NotFound("Feature")
	}
	return web.JSON(w, http.StatusOK, sshFeature(sp))
}

func (s *Server) setFeature(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.FeatureChange
	if err := read(r, &in); err != nil {
		return err
	}
	sp, err := s.Store.UpdateSpace(r.Context(), who, r.PathValue("guid"), func(sp *platform.Space) error {
		switch {
		case r.PathValue("name") != "ssh":
			return platform.NotFound("Feature")
		case in.Enabled == nil:
			return fault.Unprocessable("Enabled must be a boolean")
		}
		sp.AllowSSH = *in.Enabled
		return nil
	})
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, sshFeature(sp))
}

func (s *Server) getSpaceSegment(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	if _, err := s.Store.Space(r.Context(), who, r.PathValue("guid")); err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, v3.ToOne{})
}

// listSecurityGroups lists none: what an app may reach is the network policy's business.
func (s *Server) listSecurityGroups(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	if _, err := s.Store.Space(r.Context(), who, r.PathValue("guid")); err != nil {
		return err
	}
	return s.nothing(w, r)
}
