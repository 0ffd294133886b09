package api

import (
	"net/http"
	"net/url"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/auth/store"
	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
)

func presentGroup(g auth.Group) uaa.Group {
	return uaa.Group{ID: g.ID, Name: g.Name, Description: g.Description, Everyone: &g.Everyone, ZoneID: "uaa",
		Meta: &uaa.Meta{Version: g.Version, Created: g.Created, LastModified: g.Modified}, Schemas: uaa.Schemas}
}

func presentMembers(ids []string) []uaa.Member {
	list := make([]uaa.Member, len(ids))
	for i, id := range ids {
		list[i] = uaa.Member{Value: id, Type: "USER", Origin: auth.Internal}
	}
	return list
}

// replyGroup shows a group with its first members, and where the others are.
func (s *Server) replyGroup(w http.ResponseWriter, r *http.Request, status int, g auth.Group) error {
	ids, err := s.Store.Members(r.Context(), g.ID, "", store.MaxPage+1)
	if err != nil {
		return err
	}
	out := presentGroup(g)
	if len(ids) > store.MaxPage {
		ids = ids[:store.MaxPage]
		out.MoreMembers = membersAfter(g.ID, ids[len(ids)-1])
	}
	members := presentMembers(ids)
	out.Members = &members
	w.Header().Set("ETag", etag(g.Version))
	return web.JSON(w, status, out)
}

func membersAfter(group, id string) string {
	return "/Groups/" + url.PathEscape(group) + "/members?after=" + url.QueryEscape(id)
}

func (s *Server) listGroups(w http.ResponseWriter, r *http.Request, _ auth.Who) error {
	p, err := readPage(r, store.GroupAttrs)
	if err != nil {
		return err
	}
	groups, total, err := s.Store.Groups(r.Context(), p)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, present(groups, total, p, presentGroup))
}

func userIDs(members *[]uaa.Member) ([]string, error) {
	if members == nil {
		return nil, nil
	}
	ids := []string{}
	for _, m := range *members {
		if m.Type != "" && m.Type != "USER" {
			return nil, fault.Invalid("members: a member of type %s is not possible. Only people (USER) can be members.", m.Type).WithCode("invalid_scim_resource")
		}
		ids = append(ids, m.Value)
	}
	return ids, nil
}

func (s *Server) createGroup(w http.ResponseWriter, r *http.Request, who auth.Who) error {
	var in uaa.Group
	if err := web.Read(r, &in); err != nil {
		return err
	}
	members, err := userIDs(in.Members)
	if err != nil {
		return err
	}
	g := auth.Group{Name: in.Name, Description: in.Description, Everyone: in.Everyone != nil && *in.Everyone}
	if err := g.Check(); err != nil {
		return err
	}
	if g, err = s.Store.CreateGroup(r.Context(), who, g, members); err != nil {
		return err
	}
	return s.replyGroup(w, r, http.StatusCreated, g)
}

func (s *Server) getGroup(w http.ResponseWriter, r *http.Request, _ auth.Who) error {
	g, err := s.Store.Group(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return s.replyGroup(w, r, http.StatusOK, g)
}

// updateGroup changes what the body names and leaves the rest. A list of members replaces the members.
func (s *Server) updateGroup(w http.ResponseWriter, r *http.Request, who auth.Who) error {
	body, err := readRaw(r)
	if err != nil {
		return err
	}
	var given uaa.Group
	if err := overlay(body, &given); err != nil {
		return err
	}
	members, err := userIDs(given.Members)
	if err != nil {
		return err
	}
	g, err := s.Store.UpdateGroup(r.Context(), who, r.PathValue("id"), members, func(g *auth.Group) error {
		if err := unchanged(r, g.Version); err != nil {
			return err
		}
		in := presentGroup(*g)
		if err := overlay(body, &in); err != nil {
			return err
		}
		g.Name, g.Description, g.Everyone = in.Name, in.Description, *in.Everyone
		return g.Check()
	})
	if err != nil {
		return err
	}
	return s.replyGroup(w, r, http.StatusOK, g)
}

func (s *Server) deleteGroup(w http.ResponseWriter, r *http.Request, who auth.Who) error {
	g, err := s.Store.DeleteGroup(r.Context(), who, r.PathValue("id"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, presentGroup(g))
}

// listMembers gives the members in the order of their ids, after an id; a Link header says where the list goes on.
func (s *Server) listMembers(w http.ResponseWriter, r *http.Request, _ auth.Who) error {
	g, err := s.Store.Group(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	ids, err := s.Store.Members(r.Context(), g.ID, r.URL.Query().Get("after"), store.MaxPage+1)
	if err != nil {
		return err
	}
	if len(ids) > store.MaxPage {
		ids = ids[:store.MaxPage]
		w.Header().Set("Link", "<"+s.URL.String()+membersAfter(g.ID, ids[len(ids)-1])+`>; rel="next"`)
	}
	return web.JSON(w, http.StatusOK, presentMembers(ids))
}

func (s *Server) addMember(w http.ResponseWriter, r *http.Request, who auth.Who) error {
	var in uaa.Member
	if err := web.Read(r, &in); err != nil {
		return err
	}
	ids, err := userIDs(&[]uaa.Member{in})
	if err != nil {
		return err
	}
	if _, err := s.Store.AddMember(r.Context(), who, r.PathValue("id"), ids[0]); err != nil {
		return err
	}
	return web.JSON(w, http.StatusCreated, presentMembers(ids)[0])
}

func (s *Server) removeMember(w http.ResponseWriter, r *http.Request, who auth.Who) error {
	id := r.PathValue("user")
	if _, err := s.Store.RemoveMember(r.Context(), who, r.PathValue("id"), id); err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, presentMembers([]string{id})[0])
}
