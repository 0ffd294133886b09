package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

// applyRoutes maps an app, which is locked, to the routes that a manifest names, and makes those that are not there. Routes that it does
// not name stay mapped.
func (s *Store) applyRoutes(ctx context.Context, tx pgx.Tx, who platform.Who, sp platform.Space, a platform.App, m platform.ManifestApp, set Settings) error {
	if m.NoRoute {
		return s.unmapAll(ctx, tx, who, a)
	}
	for _, wanted := range m.Routes {
		if err := s.applyRoute(ctx, tx, who, sp, a, wanted, set); err != nil {
			return err
		}
	}
	if len(m.Routes) > 0 {
		return checkReach(ctx, tx, a.GUID)
	}
	if !m.RandomRoute && !m.DefaultRoute {
		return nil
	}
	its, err := routesOf(ctx, tx, a.GUID)
	if err != nil || len(its) > 0 {
		return err
	}
	if m.RandomRoute {
		return s.randomRoute(ctx, tx, who, sp, a, set)
	}
	r := platform.Route{Host: platform.HostOf(a.Name), DomainName: set.Domain.Name, Protocol: platform.ProtocolHTTP}
	if err := s.mapWeb(ctx, tx, who, sp, a, set.Domain, r, platform.ManifestRoute{}, set); err != nil {
		if fault.Is(err, fault.KindUnprocessable) {
			return fault.Unprocessable("%s Name a route in the manifest, or push with --random-route.", fault.From(err).Detail)
		}
		return err
	}
	return nil
}

// routesOf reads the routes of an app with all their destinations.
func routesOf(ctx context.Context, tx pgx.Tx, app string) ([]platform.Route, error) {
	rows, err := tx.Query(ctx, `select `+routes.columns+` from `+routes.from+` where t.guid in (select x.route_guid from destinations x where x.app_guid = $1) order by t.created_at, t.guid`, app)
	if err != nil {
		return nil, fmt.Errorf("read routes: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (platform.Route, error) {
		var r platform.Route
		err := row.Scan(routes.into(&r)...)
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("read routes: %w", err)
	}
	return all, fillDestinations(ctx, tx, all)
}

func (s *Store) unmapAll(ctx context.Context, tx pgx.Tx, who platform.Who, a platform.App) error {
	its, err := routesOf(ctx, tx, a.GUID)
	if err != nil {
		return err
	}
	for _, r := range its {
		if _, err := tx.Exec(ctx, `select from routes where guid = $1 for update`, r.GUID); err != nil {
			return fmt.Errorf("lock route: %w", err)
		}
		err := s.redirect(ctx, tx, who, r, func(have []platform.Destination) ([]platform.Destination, error) {
			return platform.Unmap(a.GUID, have), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) applyRoute(ctx context.Context, tx pgx.Tx, who platform.Who, sp platform.Space, a platform.App, wanted platform.ManifestRoute, set Settings) error {
	for name, value := range wanted.Options {
		if value != nil { // taking one away that nothing has is done already
			return about("route '"+wanted.Route+"'", platform.CheckOptions(map[string]*string{name: value}))
		}
	}
	address, err := platform.ParseRoute(wanted.Route)
	if err != nil {
		return err
	}
	d, err := domainOf(ctx, tx, sp.OrgGUID, address)
	if err != nil {
		return err
	}
	r := address.Of(d)
	if r.TCP() && r.Port == 0 { // another would be chosen each time
		return fault.Unprocessable("The route '%s' has no port, and '%s' is for tcp. Say which, such as %s:%d.", address, d.Name, d.Name, max(set.TCP.Ports.First, 1024))
	}
	return about("route '"+wanted.Route+"'", s.mapWeb(ctx, tx, who, sp, a, d, r, wanted, set))
}

// domainOf finds the domain of an address among those that an organization can use.
func domainOf(ctx context.Context, tx pgx.Tx, org string, address platform.RouteAddress) (platform.Domain, error) {
	d, err := domains.collect(ctx, tx, `select `+domains.columns+` from `+domains.from+` where t.name = any($1) and (t.org_guid is null or t.org_guid = $2) order by length(t.name) desc limit 1`,
		[]any{address.Domains(), org})
	if pg.NoRows(err) {
		return d, fault.Unprocessable("The route '%s' did not match any existing domains. Use a host of one that `domains` lists, or have the domain created.", address)
	}
	if err != nil {
		return d, fmt.Errorf("find domain: %w", err)
	}
	return d, nil
}

// mapWeb finds a route in the space, or makes it, and lets it lead to the app's web process.
func (s *Store) mapWeb(ctx context.Context, tx pgx.Tx, who platform.Who, sp platform.Space, a platform.App, d platform.Domain, r platform.Route, wanted platform.ManifestRoute, set Settings) error {
	if err := lockAddress(ctx, tx, r); err != nil { // two pushes of one new app find one route
		return err
	}
	found, err := routes.collect(ctx, tx, `select `+routes.columns+` from `+routes.from+` where t.hostname = $1 and t.path = $2 and t.port = $3 and t.space_guid = $4 for update of t`,
		[]any{r.Hostname(), r.Path, r.Port, sp.GUID})
	if pg.NoRows(err) {
		found, err = createRoute(ctx, tx, who, sp, d, r, set)
	}
	if err != nil {
		return err
	}
	return s.redirect(ctx, tx, who, found, func(have []platform.Destination) ([]platform.Destination, error) {
		return wanted.Map(found, a.GUID, have)
	})
}

// randomTries is how often a random host may be taken: with 4,096 for each name of an app, five in a row are not chance.
const randomTries = 5

func (s *Store) randomRoute(ctx context.Context, tx pgx.Tx, who platform.Who, sp platform.Space, a platform.App, set Settings) error {
	for range randomTries {
		r := platform.Route{Host: platform.RandomHost(a.Name), DomainName: set.Domain.Name, Protocol: platform.ProtocolHTTP}
		var taken bool
		if err := tx.QueryRow(ctx, `select exists(select from routes where hostname = $1)`, r.Hostname()).Scan(&taken); err != nil {
			return fmt.Errorf("find host: %w", err)
		}
		if !taken {
			return s.mapWeb(ctx, tx, who, sp, a, set.Domain, r, platform.ManifestRoute{}, set)
		}
	}
	return fault.Unprocessable("No free random host was found for '%s' on domain '%s'. Try again, or name a route.", a.Name, set.Domain.Name)
}
