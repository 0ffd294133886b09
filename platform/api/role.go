package api

import (
	"net/http"

	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

func (s *Server) listRoles(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	l, err := readList(r)
	if err != nil {
		return err
	}
	page, err := s.Store.Roles(r.Context(), who, l)
	if err != nil {
		return err
	}
	list := pageOf(s, r, l, page, s.role)
	if list.Included, err = s.besideRoles(r, who, page.Records); err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, list)
}

// besideRoles reads what roles refer to, if it is asked for.
func (s *Server) besideRoles(r *http.Request, who platform.Who, roles []platform.Role) (*v3.Included, error) {
	with, err := include(r, "user", "space", "organization")
	if err != nil || len(with) == 0 {
		return nil, err
	}
	var beside v3.Included
	if with["user"] {
		page, err := s.Store.Users(r.Context(), who, platform.Only(distinct(roles, func(r platform.Role) string { return r.UserGUID })))
		if err != nil {
			return nil, err
		}
		beside.Users = refer(page, s.user)
	}
	if with["space"] {
		page, err := s.Store.Spaces(r.Context(), who, platform.Only(distinct(roles, func(r platform.Role) string { return r.SpaceGUID })))
		if err != nil {
			return nil, err
		}
		beside.Spaces = refer(page, s.space)
	}
	if with["organization"] {
		page, err := s.Store.Orgs(r.Context(), who, platform.Only(distinct(roles, func(r platform.Role) string {
			if r.Type.InSpace() {
				return ""
			}
			return r.OrgGUID
		})))
		if err != nil {
			return nil, err
		}
		beside.Organizations = refer(page, s.org)
	}
	return &beside, nil
}

func (s *Server) getRole(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	role, err := s.Store.Role(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	shown := struct {
		v3.Role
		Included *v3.Included `json:"included,omitempty"`
	}{Role: s.role(role)}
	if shown.Included, err = s.besideRoles(r, who, []platform.Role{role}); err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, shown)
}

func (s *Server) createRole(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.RoleCreate
	if err := read(r, &in); err != nil {
		return err
	}
	role := platform.Role{Type: platform.RoleType(in.Type), OrgGUID: in.Relationships.Organization.GUID(), SpaceGUID: in.Relationships.Space.GUID()}
	if err := role.Check(); err != nil {
		return err
	}
	if err := s.Store.MayGive(r.Context(), who, role); err != nil { // before anybody outside is asked on the sender's behalf
		return err
	}
	user, err := s.someone(r.Context(), who, in.Relationships.User)
	if err != nil {
		return err
	}
	role, err = s.Store.CreateRole(r.Context(), who, role, user)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusCreated, s.role(role))
}

func (s *Server) deleteRole(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	j, err := s.Store.DeleteRole(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return s.accepted(w, j)
}
