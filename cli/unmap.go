package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	v3 "github.com/proa-dev/proa/platform/v3"
)

var unmapRouteCommand = command{
	name: "unmap-route", args: "APP DOMAIN", group: "Routes", short: "Let a route not lead to an app any more; the route stays",
	examples: []string{"proa unmap-route shop apps.example.com --hostname shop", "proa unmap-route shop apps.example.com --hostname shop --app-port 9191"},
	needs:    aSpace,
	setup: func(f *flags) action {
		at := addressFlags(f)
		port, kind := f.number("app-port", "PORT", "only the destination with this port of the app"), f.text("process", "TYPE", "only destinations with this process of the app")
		return func(ctx context.Context, s *session, args []string) error {
			meant := func(a v3.App, d v3.Destination) bool {
				return d.App.GUID == a.GUID && (*port == nil || **port == portOf(d)) && (*kind == "" || *kind == typeOf(d))
			}
			return s.unmapRoute(ctx, args[0], at(args[1]), meant)
		}
	},
}

func (s *session) unmapRoute(ctx context.Context, app string, at address, meant func(v3.App, v3.Destination) bool) error {
	d, err := s.findDomain(ctx, at.domain)
	if err != nil {
		return err
	}
	if err := at.which(d); err != nil {
		return err
	}
	a, err := s.findApp(ctx, app)
	if err != nil {
		return err
	}
	s.say("Unmapping route %s from app %s %s...", s.bold(clean(at.String())), s.bold(clean(a.Name)), s.where())
	r, err := s.find(ctx, d, at)
	if err != nil {
		return err
	}
	if r == nil {
		return noRoute(at)
	}
	gone := 0
	for _, one := range r.Destinations {
		if !meant(a, one) {
			continue
		}
		path := "/v3/routes/" + url.PathEscape(r.GUID) + "/destinations/" + url.PathEscape(one.GUID)
		if err := s.api.Call(ctx, http.MethodDelete, path, nil, nil); err != nil {
			return err
		}
		gone++
	}
	if gone == 0 {
		fmt.Fprintf(s.Err, "The route does not lead to app %s.\n", clean(a.Name))
	}
	s.ok()
	return nil
}
