package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	v3 "github.com/proa-dev/proa/platform/v3"
)

// routing is the part of the API about domains and routes. Like Cloud Foundry it wants weights to be 100 together, and set for all
// destinations at once. The apps run with port 8080 alone.
type routing struct {
	*world
	elsewhere bool // it is a Cloud Foundry: nothing is pending there
	domains   []v3.Domain
	routes    []*v3.Route
	apps      []v3.App
	last      int
}

func (p *routing) serve(w *world) map[string]http.HandlerFunc {
	p.world = w
	shared := v3.Domain{Resource: v3.Resource{GUID: "d-1"}, Name: "example.com", SupportedProtocols: []string{"http"}}
	own := v3.Domain{Resource: v3.Resource{GUID: "d-2"}, Name: "own.example.org", SupportedProtocols: []string{"http"}}
	own.Relationships.Organization = v3.One("o-1")
	ports := v3.Domain{Resource: v3.Resource{GUID: "d-3"}, Name: "tcp.example.com", SupportedProtocols: []string{"tcp"}}
	p.domains = []v3.Domain{shared, own, ports}
	for guid, name := range map[string]string{"a-1": "shop", "a-2": "next", "a-3": "a,b"} {
		p.apps = append(p.apps, v3.App{Resource: v3.Resource{GUID: guid}, Name: name, State: "STARTED"})
	}
	return map[string]http.HandlerFunc{
		"GET /v3/domains":                                     p.listDomains,
		"GET /v3/organizations/o-1/domains":                   p.listDomains,
		"POST /v3/domains":                                    p.createDomain,
		"DELETE /v3/domains/{guid}":                           p.deleteDomain,
		"GET /v3/domains/{guid}/route_reservations":           p.checkRoute,
		"GET /v3/routes":                                      p.listRoutes,
		"POST /v3/routes":                                     p.createRoute,
		"DELETE /v3/routes/{guid}":                            p.deleteRoute,
		"POST /v3/routes/{guid}/destinations":                 p.destine,
		"PATCH /v3/routes/{guid}/destinations":                p.destine,
		"PATCH /v3/routes/{guid}/destinations/{destination}":  p.redestine,
		"DELETE /v3/routes/{guid}/destinations/{destination}": p.undestine,
		"DELETE /v3/spaces/s-1/routes":                        p.deleteOrphans,
		"GET /v3/apps":                                        p.listApps,
		"GET /v3/apps/a-1/routes":                             p.listAppRoutes,
		"GET /v3/processes":                                   func(rw http.ResponseWriter, _ *http.Request) { p.list(rw) },
		"DELETE /v3/apps/{guid}":                              p.deleteApp,
	}
}

// some answers a list with those that the query names, and refuses parameters that the list does not have.
func some[T any](p *routing, rw http.ResponseWriter, r *http.Request, all []T, filters map[string]func(T) string) {
	q := r.URL.Query()
	for name := range q {
		if filters[name] == nil && !slices.Contains([]string{"per_page", "page", "order_by", "embed"}, name) {
			p.refuse(rw, 400, "CF-BadQueryParameter", "The query parameter is invalid: Unknown query parameter(s): '"+name+"'")
			return
		}
	}
	found := []any{}
	for _, one := range all {
		fits := true
		for name, value := range filters {
			fits = fits && (!q.Has(name) || slices.Contains(strings.Split(q.Get(name), ","), strings.ReplaceAll(value(one), ",", "%2C")))
		}
		if fits {
			found = append(found, one)
		}
	}
	if q.Get("per_page") == "1" {
		found = found[:min(1, len(found))]
	}
	p.list(rw, found...)
}

func (p *routing) listDomains(rw http.ResponseWriter, r *http.Request) {
	some(p, rw, r, p.domains, map[string]func(v3.Domain) string{"names": func(d v3.Domain) string { return d.Name }})
}

func (p *routing) listApps(rw http.ResponseWriter, r *http.Request) {
	some(p, rw, r, p.apps, map[string]func(v3.App) string{
		"names": func(a v3.App) string { return a.Name }, "guids": func(a v3.App) string { return a.GUID }, "space_guids": func(v3.App) string { return "s-1" }})
}

func (p *routing) listRoutes(rw http.ResponseWriter, r *http.Request) {
	some(p, rw, r, p.routes, map[string]func(*v3.Route) string{
		"domain_guids": func(r *v3.Route) string { return r.Relationships.Domain.GUID() }, "hosts": func(r *v3.Route) string { return r.Host },
		"paths": func(r *v3.Route) string { return r.Path }, "space_guids": func(r *v3.Route) string { return r.Relationships.Space.GUID() },
		"organization_guids": func(*v3.Route) string { return "o-1" }, "ports": func(r *v3.Route) string {
			if r.Port == nil {
				return ""
			}
			return fmt.Sprint(*r.Port)
		}})
}

func (p *routing) listAppRoutes(rw http.ResponseWriter, r *http.Request) {
	own := slices.DeleteFunc(slices.Clone(p.routes), func(one *v3.Route) bool { return !slices.Contains(destined(*one), "a-1") })
	some(p, rw, r, own, nil)
}

// hears reads a body in which nothing may stand that the API does not know.
func (p *routing) hears(rw http.ResponseWriter, r *http.Request, into any) bool {
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		p.refuse(rw, 422, "CF-UnprocessableEntity", "Unknown field(s): "+err.Error())
		return false
	}
	return true
}

func (p *routing) id(letter string) v3.Resource {
	p.last++
	return v3.Resource{GUID: fmt.Sprintf("%s-%d", letter, 100+p.last)}
}

func (p *routing) job(rw http.ResponseWriter) {
	rw.Header().Set("Location", p.URL+"/v3/jobs/j-1")
	rw.WriteHeader(http.StatusAccepted)
}

func (p *routing) createDomain(rw http.ResponseWriter, r *http.Request) {
	var ask v3.DomainCreate
	if !p.hears(rw, r, &ask) {
		return
	}
	if slices.ContainsFunc(p.domains, func(d v3.Domain) bool { return d.Name == ask.Name }) {
		p.refuse(rw, 422, "CF-UnprocessableEntity", fmt.Sprintf("The domain name %q is already in use", ask.Name))
		return
	}
	d := v3.Domain{Resource: p.id("d"), Name: ask.Name, SupportedProtocols: []string{"http"}}
	d.Relationships.Organization = ask.Relationships.Organization
	p.domains = append(p.domains, d)
	p.say(rw, http.StatusCreated, d)
}

func (p *routing) deleteDomain(rw http.ResponseWriter, r *http.Request) {
	p.domains = slices.DeleteFunc(p.domains, func(d v3.Domain) bool { return d.GUID == r.PathValue("guid") })
	p.routes = slices.DeleteFunc(p.routes, func(o *v3.Route) bool { return o.Relationships.Domain.GUID() == r.PathValue("guid") })
	p.job(rw)
}

func (p *routing) checkRoute(rw http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	p.say(rw, http.StatusOK, v3.RouteReservation{MatchingRoute: p.taken(r.PathValue("guid"), q.Get("host"), q.Get("path"), q.Get("port"))})
}

func (p *routing) taken(domain, host, path, port string) bool {
	return slices.ContainsFunc(p.routes, func(o *v3.Route) bool {
		return o.Relationships.Domain.GUID() == domain && o.Host == host && o.Path == path && (o.Port == nil && port == "" || o.Port != nil && fmt.Sprint(*o.Port) == port)
	})
}

func (p *routing) createRoute(rw http.ResponseWriter, r *http.Request) {
	var ask v3.RouteCreate
	if !p.hears(rw, r, &ask) {
		return
	}
	d := slices.IndexFunc(p.domains, func(d v3.Domain) bool { return d.GUID == ask.Relationships.Domain.GUID() })
	if d < 0 || ask.Relationships.Space.GUID() != "s-1" {
		p.refuse(rw, 422, "CF-UnprocessableEntity", "Invalid domain or space. Ensure that both exist and you have access to them.")
		return
	}
	if isTCP(p.domains[d]) {
		p.createPort(rw, p.domains[d], ask)
		return
	}
	if p.taken(p.domains[d].GUID, as(ask.Host), as(ask.Path), "") {
		p.refuse(rw, 422, "CF-UnprocessableEntity", fmt.Sprintf("Route already exists with host '%s' for domain '%s'.", as(ask.Host), p.domains[d].Name))
		return
	}
	at := address{domain: p.domains[d].Name, host: as(ask.Host), path: as(ask.Path)}
	made := &v3.Route{Resource: p.id("r"), Protocol: "http", Host: at.host, Path: at.path, URL: at.String(), Relationships: ask.Relationships, Destinations: []v3.Destination{}}
	p.routes = append(p.routes, made)
	p.say(rw, http.StatusCreated, made)
}

// createPort takes a port from 20000 on: the one that is asked for, or the first that is free.
func (p *routing) createPort(rw http.ResponseWriter, d v3.Domain, ask v3.RouteCreate) {
	port := 20000
	for ask.Port == nil && p.taken(d.GUID, "", "", fmt.Sprint(port)) {
		port++
	}
	if ask.Port != nil {
		port = *ask.Port
	}
	switch {
	case ask.Host != nil || ask.Path != nil:
		p.refuse(rw, 422, "CF-UnprocessableEntity", "Hosts are not supported for TCP routes.")
	case port < 20000 || port > 20009:
		p.refuse(rw, 422, "CF-UnprocessableEntity", fmt.Sprintf("Port %d is not available on this domain's router group. Try a different port", port))
	case p.taken(d.GUID, "", "", fmt.Sprint(port)):
		p.refuse(rw, 422, "CF-UnprocessableEntity", fmt.Sprintf("Route already exists with port '%d' for domain '%s'.", port, d.Name))
	default:
		made := &v3.Route{Resource: p.id("r"), Protocol: "tcp", Port: &port, URL: fmt.Sprintf("%s:%d", d.Name, port), Relationships: ask.Relationships, Destinations: []v3.Destination{}}
		p.routes = append(p.routes, made)
		p.say(rw, http.StatusCreated, made)
	}
}

func (p *routing) at(rw http.ResponseWriter, r *http.Request) *v3.Route {
	for _, one := range p.routes {
		if one.GUID == r.PathValue("guid") {
			return one
		}
	}
	p.refuse(rw, 404, "CF-ResourceNotFound", "Route not found")
	return nil
}

func (p *routing) deleteRoute(rw http.ResponseWriter, r *http.Request) {
	if one := p.at(rw, r); one != nil {
		p.routes = slices.DeleteFunc(p.routes, func(o *v3.Route) bool { return o == one })
		p.job(rw)
	}
}

func (p *routing) destine(rw http.ResponseWriter, r *http.Request) {
	var ask v3.DestinationsChange
	one := p.at(rw, r)
	if one == nil || !p.hears(rw, r, &ask) {
		return
	}
	all, sum, weights := []v3.Destination{}, 0, 0
	if r.Method == http.MethodPost {
		all = one.Destinations
	}
	for _, d := range ask.Destinations {
		made := p.destination(d)
		if one.Protocol == "tcp" {
			made.Protocol = "tcp"
		}
		if slices.ContainsFunc(all, func(o v3.Destination) bool {
			return o.App.GUID == made.App.GUID && typeOf(o) == typeOf(made) && o.Port == made.Port
		}) {
			p.refuse(rw, 422, "CF-UnprocessableEntity", "Destinations cannot contain duplicate entries.")
			return
		}
		all = append(all, made)
	}
	for _, d := range all {
		if d.Weight != nil {
			sum, weights = sum+*d.Weight, weights+1
		}
	}
	switch {
	case weights > 0 && r.Method == http.MethodPost:
		p.refuse(rw, 422, "CF-UnprocessableEntity", "Destinations cannot be inserted when there are weighted destinations already configured.")
	case weights > 0 && (weights < len(all) || sum != 100):
		p.refuse(rw, 422, "CF-UnprocessableEntity", "Destinations must have weights that add up to 100.")
	default:
		one.Destinations = all
		p.say(rw, http.StatusOK, v3.Destinations{Destinations: all})
	}
}

func (p *routing) destination(ask v3.DestinationWanted) v3.Destination {
	d := v3.Destination{Resource: p.id("x"), App: ask.App, Weight: ask.Weight, Port: usualPort, Protocol: "http1", State: v3.DestinationMapped}
	if d.App.Process == nil {
		d.App.Process = &v3.DestinationProcess{Type: "web"}
	}
	if ask.Port != nil {
		d.Port, d.State = *ask.Port, v3.DestinationPending
	}
	if ask.Protocol != nil {
		d.Protocol = *ask.Protocol
	}
	if p.elsewhere {
		d.State = ""
	}
	return d
}

func (p *routing) redestine(rw http.ResponseWriter, r *http.Request) {
	var ask v3.DestinationChange
	one := p.at(rw, r)
	if one == nil || !p.hears(rw, r, &ask) {
		return
	}
	i := slices.IndexFunc(one.Destinations, func(d v3.Destination) bool { return d.GUID == r.PathValue("destination") })
	if i < 0 {
		p.refuse(rw, 404, "CF-ResourceNotFound", "Destination not found")
		return
	}
	one.Destinations[i].Protocol = as(ask.Protocol)
	p.say(rw, http.StatusOK, one.Destinations[i])
}

func (p *routing) undestine(rw http.ResponseWriter, r *http.Request) {
	if one := p.at(rw, r); one != nil {
		one.Destinations = slices.DeleteFunc(one.Destinations, func(d v3.Destination) bool { return d.GUID == r.PathValue("destination") })
		rw.WriteHeader(http.StatusNoContent)
	}
}

func (p *routing) deleteOrphans(rw http.ResponseWriter, r *http.Request) {
	if r.URL.RawQuery != "unmapped=true" {
		p.refuse(rw, 422, "CF-UnprocessableEntity", "Mass delete not supported for routes. Use 'unmapped=true' parameter to delete all unmapped routes.")
		return
	}
	p.routes = slices.DeleteFunc(p.routes, func(o *v3.Route) bool { return len(o.Destinations) == 0 })
	p.job(rw)
}

func (p *routing) deleteApp(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || len(body) > 0 {
		p.refuse(rw, 400, "CF-MessageParseError", "A body is not wanted.")
		return
	}
	p.apps = slices.DeleteFunc(p.apps, func(a v3.App) bool { return a.GUID == r.PathValue("guid") })
	p.job(rw)
}
