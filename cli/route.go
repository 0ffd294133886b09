package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	v3 "github.com/proa-dev/proa/platform/v3"
)

// address is a route as it is written on the command line.
type address struct {
	domain, host, path string
	port               *int
}

func addressFlags(f *flags) func(domain string) address {
	host := f.text("hostname,n", "HOST", "what stands before the domain; * for all that no other route has; nothing for the domain itself")
	path := f.text("path", "PATH", "with what the paths of its requests begin, such as /api")
	port := f.number("port", "PORT", "the port, under a domain for tcp")
	return func(domain string) address {
		a := address{domain: domain, host: *host, path: *path, port: *port}
		if a.path != "" && !strings.HasPrefix(a.path, "/") {
			a.path = "/" + a.path
		}
		return a
	}
}

func (a address) String() string {
	text := a.domain
	if a.host != "" {
		text = a.host + "." + text
	}
	if a.port != nil {
		text += ":" + strconv.Itoa(*a.port)
	}
	return text + a.path
}

// words write the address for another command.
func (a address) words() string {
	text := shell(a.domain)
	if a.host != "" {
		text += " --hostname " + shell(a.host)
	}
	if a.path != "" {
		text += " --path " + shell(a.path)
	}
	if a.port != nil {
		text += " --port " + strconv.Itoa(*a.port)
	}
	return text
}

// isTCP tells whether the routes of a domain are ports.
func isTCP(d v3.Domain) bool { return slices.Contains(d.SupportedProtocols, "tcp") }

// which refuses an address that could be any port of a domain.
func (a address) which(d v3.Domain) error {
	if isTCP(d) && a.port == nil {
		return usage("Routes of domain %s are ports: say which one with --port. proa routes lists those of this space.", clean(d.Name))
	}
	return nil
}

// find is the route there is, or nil: of a domain for tcp without a port, none is meant that is there. A parameter that is sent empty asks
// for routes that have none; a comma in one asks for two.
func (s *session) find(ctx context.Context, d v3.Domain, a address) (*v3.Route, error) {
	if isTCP(d) && a.port == nil {
		return nil, nil
	}
	q := url.Values{"domain_guids": {d.GUID}, "hosts": {a.host}, "paths": {a.path}, "per_page": {"1"}, "page": {"1"}}
	if a.port != nil {
		q.Set("ports", strconv.Itoa(*a.port))
	}
	if strings.Contains(a.path, ",") {
		q.Del("paths")
		q.Del("page")
		q.Set("per_page", "5000")
	}
	for r, err := range v3.Each[v3.Route](ctx, s.api, "/v3/routes?"+q.Encode()) {
		if err != nil {
			return nil, err
		}
		if strings.EqualFold(r.Host, a.host) && r.Path == a.path && as(r.Port) == as(a.port) {
			return &r, nil
		}
		if q.Has("page") {
			break
		}
	}
	return nil, nil
}

// findRoute is a route that must be there.
func (s *session) findRoute(ctx context.Context, a address) (v3.Route, error) {
	d, err := s.findDomain(ctx, a.domain)
	if err != nil {
		return v3.Route{}, err
	}
	if err := a.which(d); err != nil {
		return v3.Route{}, err
	}
	r, err := s.find(ctx, d, a)
	if err != nil {
		return v3.Route{}, err
	}
	if r == nil {
		return v3.Route{}, noRoute(a)
	}
	return *r, nil
}

func noRoute(a address) error {
	return missing("proa routes    # lists those of this space", "There is no route %s that you can see.", a)
}

func (s *session) createRoute(ctx context.Context, d v3.Domain, a address) (v3.Route, error) {
	ask := v3.RouteCreate{Port: a.port, Relationships: v3.RouteRelationships{Space: v3.One(s.cfg.Space.GUID), Domain: v3.One(d.GUID)}}
	if a.host != "" {
		ask.Host = &a.host
	}
	if a.path != "" {
		ask.Path = &a.path
	}
	var made v3.Route
	err := s.post(ctx, "/v3/routes", ask, &made)
	return made, err
}

// chosen is the port of a route, and says so if it was the platform that chose it.
func (s *session) chosen(a address, made v3.Route) *int {
	if a.port != nil || made.Port == nil {
		return a.port
	}
	s.say("The route is %s.", s.bold(clean(made.URL)))
	return made.Port
}

var createRouteCommand = command{
	name: "create-route", args: "DOMAIN", group: "Routes", short: "Take an address for the space, without an app behind it yet",
	long:     "Under a domain for tcp a route is a port: the one that --port names, or any that is free.",
	examples: []string{"proa create-route apps.example.com --hostname shop", "proa create-route apps.example.com --hostname shop --path /api", "proa create-route tcp.apps.example.com"},
	needs:    aSpace,
	setup: func(f *flags) action {
		at := addressFlags(f)
		return func(ctx context.Context, s *session, args []string) error {
			a := at(args[0])
			s.say("Creating route %s %s...", s.bold(clean(a.String())), s.where())
			d, err := s.findDomain(ctx, a.domain)
			if err != nil {
				return err
			}
			made, err := s.createRoute(ctx, d, a)
			if err := s.already(err, "Route already exists", ""); err != nil {
				return err
			}
			a.port = s.chosen(a, made)
			s.ok()
			s.say("\nNext: proa map-route APP %s", a.words())
			return nil
		}
	},
}

var deleteRouteCommand = command{
	name: "delete-route", args: "DOMAIN", group: "Routes", short: "Delete a route: nothing answers at its address any more",
	examples: []string{"proa delete-route apps.example.com --hostname shop -f"},
	needs:    aSpace,
	setup: func(f *flags) action {
		at, force := addressFlags(f), f.on("force,f", "do not ask")
		return func(ctx context.Context, s *session, args []string) error {
			r, err := s.findRoute(ctx, at(args[0]))
			if err != nil {
				return err
			}
			question := fmt.Sprintf("Really delete route %s?", clean(r.URL))
			if n := len(r.Destinations); n > 0 {
				question = fmt.Sprintf("Route %s has %s. Really delete it?", clean(r.URL), plural(n, "destination"))
			}
			if err := s.confirm(ctx, *force, question); err != nil {
				return err
			}
			s.say("Deleting route %s %s...", s.bold(clean(r.URL)), s.where())
			if err := s.remove(ctx, "/v3/routes/"+url.PathEscape(r.GUID)); err != nil {
				return err
			}
			s.ok()
			return nil
		}
	},
}

var checkRouteCommand = command{
	name: "check-route", args: "DOMAIN", group: "Routes", short: "Tell whether somebody has taken an address",
	examples: []string{"proa check-route apps.example.com --hostname shop"},
	needs:    aLogin,
	setup: func(f *flags) action {
		at := addressFlags(f)
		f.output()
		return func(ctx context.Context, s *session, args []string) error {
			a := at(args[0])
			d, err := s.findDomain(ctx, a.domain)
			if err != nil {
				return err
			}
			if err := a.which(d); err != nil {
				return err
			}
			q := url.Values{}
			for name, value := range map[string]string{"host": a.host, "path": a.path} {
				if value != "" {
					q.Set(name, value)
				}
			}
			if a.port != nil {
				q.Set("port", strconv.Itoa(*a.port))
			}
			var reply v3.RouteReservation
			if err := s.get(ctx, "/v3/domains/"+url.PathEscape(d.GUID)+"/route_reservations?"+q.Encode(), &reply); err != nil {
				return err
			}
			switch {
			case s.flags.json:
				return s.json(reply)
			case reply.MatchingRoute:
				s.say("The route %s exists.", s.bold(clean(a.String())))
			default:
				s.say("The route %s does not exist.", s.bold(clean(a.String())))
				s.say("\nNext: proa create-route %s", a.words())
			}
			return nil
		}
	},
}

var deleteOrphanedRoutesCommand = command{
	name: "delete-orphaned-routes", group: "Routes", short: "Delete the routes of the space that lead to no app",
	needs: aSpace,
	setup: func(f *flags) action {
		force := f.on("force,f", "do not ask")
		return func(ctx context.Context, s *session, _ []string) error {
			question := fmt.Sprintf("Really delete all routes of space %s that lead to no app?", clean(s.cfg.Space.Name))
			if err := s.confirm(ctx, *force, question); err != nil {
				return err
			}
			s.say("Deleting orphaned routes %s...", s.where())
			if err := s.remove(ctx, "/v3/spaces/"+url.PathEscape(s.cfg.Space.GUID)+"/routes?unmapped=true"); err != nil {
				return err
			}
			s.ok()
			return nil
		}
	},
}

// remove deletes what takes its time, and waits until it is gone.
func (s *session) remove(ctx context.Context, path string) error {
	job, err := s.api.Begin(ctx, http.MethodDelete, path, nil)
	if err != nil {
		return err
	}
	return s.api.Finish(ctx, job)
}
