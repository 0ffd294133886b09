package api

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

func (s *Server) route(r platform.Route) v3.Route {
	self := "/v3/routes/" + r.GUID
	shown := v3.Route{Resource: resource(r.GUID, r.CreatedAt, r.UpdatedAt), Protocol: r.Protocol, Host: r.Host, Path: r.Path, URL: r.URL(), Destinations: destinations(r.Destinations),
		Options: map[string]string{}, Metadata: metadata(r.Metadata), Relationships: v3.RouteRelationships{Space: v3.One(r.SpaceGUID), Domain: v3.One(r.DomainGUID)},
		Links: v3.Links{"self": s.link(self), "space": s.link("/v3/spaces/", r.SpaceGUID), "domain": s.link("/v3/domains/", r.DomainGUID), "destinations": s.link(self, "/destinations")}}
	if r.Port != 0 {
		shown.Port = &r.Port
	}
	return shown
}

// readRoutes is a list of routes. Hosts are lower-case.
func readRoutes(r *http.Request) (platform.List, error) {
	l, err := readList(r)
	for i, host := range l.Values["hosts"] {
		l.Values["hosts"][i] = strings.ToLower(host)
	}
	return l, err
}

func (s *Server) listRoutes(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	l, err := readRoutes(r)
	if err != nil {
		return err
	}
	return s.replyRoutes(w, r, who, l)
}

func (s *Server) listAppRoutes(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	l, err := readRoutes(r)
	if err != nil {
		return err
	}
	if err := s.ofApp(r, who, &l); err != nil {
		return err
	}
	return s.replyRoutes(w, r, who, l)
}

func (s *Server) replyRoutes(w http.ResponseWriter, r *http.Request, who platform.Who, l platform.List) error {
	page, err := s.Store.Routes(r.Context(), who, l)
	if err != nil {
		return err
	}
	list := pageOf(s, r, l, page, s.route)
	if list.Included, err = s.besideRoutes(r, who, page.Records); err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, list)
}

// besideRoutes reads the domains, spaces and organizations of routes, if they are asked for.
func (s *Server) besideRoutes(r *http.Request, who platform.Who, routes []platform.Route) (*v3.Included, error) {
	with, err := include(r, "domain", "space", "space.organization")
	if err != nil || len(with) == 0 {
		return nil, err
	}
	var beside v3.Included
	if with["domain"] {
		found, err := s.Store.Domains(r.Context(), who, platform.Only(distinct(routes, func(r platform.Route) string { return r.DomainGUID })))
		if err != nil {
			return nil, err
		}
		beside.Domains = refer(found, s.domain)
	}
	if with["space"] || with["space.organization"] {
		found, err := s.Store.Spaces(r.Context(), who, platform.Only(distinct(routes, func(r platform.Route) string { return r.SpaceGUID })))
		if err != nil {
			return nil, err
		}
		beside.Spaces = refer(found, s.space)
	}
	if with["space.organization"] {
		found, err := s.Store.Orgs(r.Context(), who, platform.Only(distinct(routes, func(r platform.Route) string { return r.OrgGUID })))
		if err != nil {
			return nil, err
		}
		beside.Organizations = refer(found, s.org)
	}
	return &beside, nil
}

func (s *Server) getRoute(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	one, err := s.Store.Route(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	shown := struct {
		v3.Route
		Included *v3.Included `json:"included,omitempty"`
	}{Route: s.route(one)}
	if shown.Included, err = s.besideRoutes(r, who, []platform.Route{one}); err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, shown)
}

func (s *Server) createRoute(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.RouteCreate
	if err := read(r, &in); err != nil {
		return err
	}
	one := platform.Route{SpaceGUID: in.Relationships.Space.GUID(), DomainGUID: in.Relationships.Domain.GUID()}
	if one.SpaceGUID == "" || one.DomainGUID == "" {
		return fault.Unprocessable("Relationships 'relationships' must include one or more valid relationships: say the space and the domain of the route.")
	}
	if err := platform.CheckOptions(in.Options); err != nil {
		return err
	}
	if in.Host != nil {
		one.Host = strings.ToLower(*in.Host)
	}
	if in.Path != nil {
		one.Path = *in.Path
	}
	if in.Port != nil {
		one.Port = *in.Port
	}
	one.Metadata.Apply(noted(in.Metadata))
	one, err := s.Store.CreateRoute(r.Context(), who, one, s.settings())
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusCreated, s.route(one))
}

func (s *Server) updateRoute(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	var in v3.RouteChange
	if err := read(r, &in); err != nil {
		return err
	}
	if err := platform.CheckOptions(in.Options); err != nil {
		return err
	}
	one, err := s.Store.UpdateRoute(r.Context(), who, r.PathValue("guid"), noted(in.Metadata))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.route(one))
}

func (s *Server) deleteRoute(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	j, err := s.Store.DeleteRoute(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return s.accepted(w, j)
}

// deleteUnmappedRoutes wants to be told that only those are meant: there is no way to delete all.
func (s *Server) deleteUnmappedRoutes(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	if r.URL.Query().Get("unmapped") != "true" {
		return fault.Unprocessable("Only routes that lead nowhere can be deleted together. Add the parameter unmapped=true.")
	}
	j, err := s.Store.DeleteUnmapped(r.Context(), who, r.PathValue("guid"))
	if err != nil {
		return err
	}
	return s.accepted(w, j)
}

func (s *Server) getReservation(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	q := r.URL.Query()
	one := platform.Route{DomainGUID: r.PathValue("guid"), Host: strings.ToLower(q.Get("host")), Path: q.Get("path")}
	if text := q.Get("port"); text != "" {
		port, err := strconv.Atoi(text)
		if err != nil {
			return badQuery("Port must be a number")
		}
		one.Port = port
	}
	taken, err := s.Store.Reserved(r.Context(), who, one, s.settings())
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, v3.RouteReservation{MatchingRoute: taken})
}

// listRouteBindings lists none: no service stands before a route. Clients ask when they list routes.
func (s *Server) listRouteBindings(w http.ResponseWriter, r *http.Request, _ platform.Who) error {
	return s.nothing(w, r)
}
