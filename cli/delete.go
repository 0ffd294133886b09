package cli

import (
	"context"
	"fmt"
	"net/url"

	"github.com/proa-dev/proa/kit/fault"
	v3 "github.com/proa-dev/proa/platform/v3"
)

var deleteCommand = command{
	name: "delete", args: "APP", group: "Apps", short: "Delete an app",
	examples: []string{"proa delete shop", "proa delete shop -r -f    # its routes too, without being asked"},
	needs:    aSpace,
	setup: func(f *flags) action {
		force, routes := f.on("force,f", "do not ask"), f.on("r,routes", "delete its routes too")
		return func(ctx context.Context, s *session, args []string) error {
			a, err := s.findApp(ctx, args[0])
			if err != nil {
				return err
			}
			if err := s.confirm(ctx, *force, fmt.Sprintf("Really delete app %s?", clean(a.Name))); err != nil {
				return err
			}
			s.say("Deleting app %s %s...", s.bold(clean(a.Name)), s.where())
			doomed := []string{"/v3/apps/" + url.PathEscape(a.GUID)}
			if *routes {
				own, err := s.ownRoutes(ctx, a)
				if err != nil {
					return err
				}
				doomed = append(doomed, own...)
			}
			for i, path := range doomed {
				err := s.remove(ctx, path)
				if err != nil && (i == 0 || !fault.Is(err, fault.KindNotFound)) { // a route that has gone meanwhile is gone
					return err
				}
			}
			s.ok()
			return nil
		}
	},
}

// ownRoutes are the routes that serve this app, if none of them serves another one too.
func (s *session) ownRoutes(ctx context.Context, a v3.App) ([]string, error) {
	var own []string
	for r, err := range v3.Each[v3.Route](ctx, s.api, "/v3/apps/"+url.PathEscape(a.GUID)+"/routes") {
		if err != nil {
			return nil, err
		}
		for _, d := range r.Destinations {
			if d.App.GUID != a.GUID {
				return nil, failed("proa delete "+shell(a.Name)+"    # keeps the routes", "The route %s serves another app too, so nothing was deleted.", r.URL)
			}
		}
		own = append(own, "/v3/routes/"+url.PathEscape(r.GUID))
	}
	return own, nil
}
