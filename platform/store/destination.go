package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

// effective is the port of destination x; see platform.DefaultPort.
const effective = `coalesce(nullif(x.port, 0), 8080)`

// hasPort tells whether release r of process p has the port of destination x, and those that give way to it have it too: requests go to all
// of them. PostgreSQL takes it for true half of the time, and for very rare without the coalesce: it then looks at each app by itself.
const hasPort = `coalesce(` + effective + ` = any(r.ports) and not exists (select from draining g join releases o on o.guid = g.release_guid
	where g.process_guid = p.guid and ` + effective + ` <> all(o.ports)), false)`

// A destination is pending when the app runs and what its process runs does not have the port.
const destinationsOf = `select x.route_guid, x.guid, x.app_guid, x.process_type, x.port, x.weight, x.protocol,
		a.state = 'STARTED' and not ` + hasPort + `, x.created_at, x.updated_at
	from destinations x join apps a on a.guid = x.app_guid left join processes p on p.app_guid = x.app_guid and p.type = x.process_type left join releases r on r.guid = p.release_guid`

func eachDestination(ctx context.Context, on db, narrowed string, arg any, do func(route string, d platform.Destination)) error {
	rows, err := on.Query(ctx, destinationsOf+narrowed+` order by x.created_at, x.guid`, arg)
	if err != nil {
		return fmt.Errorf("read destinations: %w", err)
	}
	var route string
	var d platform.Destination
	_, err = pgx.ForEachRow(rows, []any{&route, &d.GUID, &d.AppGUID, &d.ProcessType, &d.Port, &d.Weight, &d.Protocol, &d.Pending, &d.CreatedAt, &d.UpdatedAt}, func() error {
		do(route, d)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read destinations: %w", err)
	}
	return nil
}

// fillDestinations reads those of some routes, with one statement.
func fillDestinations(ctx context.Context, on db, all []platform.Route) error {
	if len(all) == 0 {
		return nil
	}
	at := make(map[string]*platform.Route, len(all))
	guids := make([]string, len(all))
	for i := range all {
		guids[i] = all[i].GUID
		at[all[i].GUID] = &all[i]
	}
	return eachDestination(ctx, on, ` where x.route_guid = any($1)`, guids, func(route string, d platform.Destination) {
		at[route].Destinations = append(at[route].Destinations, d)
	})
}

// reached reads all destinations of an app.
func reached(ctx context.Context, on db, app string) ([]platform.Destination, error) {
	var all []platform.Destination
	err := eachDestination(ctx, on, ` where x.app_guid = $1`, app, func(_ string, d platform.Destination) { all = append(all, d) })
	return all, err
}

// toldURIs is how many addresses an app is told of. Each has at most 253+128 characters and stands twice in VCAP_APPLICATION, and the kernel
// takes variables of up to 128 KiB.
const toldURIs = 100

// uris reads the addresses of an app.
func uris(ctx context.Context, on db, app string) ([]string, error) {
	rows, err := on.Query(ctx, `select t.hostname || case t.port when 0 then t.path else ':' || t.port end from routes t where t.guid in (select x.route_guid from destinations x where x.app_guid = $1)
		order by t.created_at, t.guid limit $2`, app, toldURIs)
	if err != nil {
		return nil, fmt.Errorf("read addresses: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// redirection is what becomes of the destinations that a route has, and of those that are named.
type redirection func(r platform.Route, have, named []platform.Destination) ([]platform.Destination, error)

// AddDestinations lets a route lead to more processes.
func (s *Store) AddDestinations(ctx context.Context, who platform.Who, route string, more []platform.Destination) (platform.Route, error) {
	return s.changeDestinations(ctx, who, route, more, platform.Route.AddDestinations)
}

// ReplaceDestinations lets a route lead to these processes and no others.
func (s *Store) ReplaceDestinations(ctx context.Context, who platform.Who, route string, wanted []platform.Destination) (platform.Route, error) {
	return s.changeDestinations(ctx, who, route, wanted, platform.Route.ReplaceDestinations)
}

// RemoveDestination lets a route no longer lead to one of its destinations.
func (s *Store) RemoveDestination(ctx context.Context, who platform.Who, route, guid string) (platform.Route, error) {
	return s.changeDestinations(ctx, who, route, nil, func(_ platform.Route, have, _ []platform.Destination) ([]platform.Destination, error) {
		left := slices.DeleteFunc(slices.Clone(have), func(d platform.Destination) bool { return d.GUID == guid })
		if len(left) == len(have) {
			return nil, fault.Unprocessable("Unable to unmap route from destination. Ensure the route has a destination with this guid.")
		}
		return left, nil
	})
}

// SetProtocol says what is spoken to one destination of a route; empty: what is usual there.
func (s *Store) SetProtocol(ctx context.Context, who platform.Who, route, guid, protocol string) (platform.Destination, error) {
	r, err := s.Route(ctx, who, route)
	if err != nil {
		return platform.Destination{}, err
	}
	is := func(d platform.Destination) bool { return d.GUID == guid }
	i := slices.IndexFunc(r.Destinations, is)
	if i < 0 {
		return platform.Destination{}, platform.NotFound("Destination")
	}
	r, err = s.changeDestinations(ctx, who, route, r.Destinations[i:i+1], func(r platform.Route, have, _ []platform.Destination) ([]platform.Destination, error) {
		now := slices.Clone(have)
		i := slices.IndexFunc(now, is)
		if i < 0 {
			return nil, platform.NotFound("Destination")
		}
		now[i].Protocol = protocol
		now = r.Spoken(now)
		return now, r.CheckDestinations(now)
	})
	if err != nil {
		return platform.Destination{}, err
	}
	return r.Destinations[slices.IndexFunc(r.Destinations, is)], nil
}

// changeDestinations changes where a route leads. The apps that it is to lead to are locked, so that no release is made of them
// meanwhile, and before the route, as a manifest does.
func (s *Store) changeDestinations(ctx context.Context, who platform.Who, guid string, named []platform.Destination, change redirection) (platform.Route, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Route, error) {
		r, err := routes.find(ctx, tx, who, platform.Support, guid)
		if err != nil {
			return r, err
		}
		named = r.Spoken(named)
		if err := r.CheckDestinations(named); err != nil {
			return r, err
		}
		if err := lockApps(ctx, tx, who, r.SpaceGUID, named); err != nil {
			return r, err
		}
		if r, err = routes.lock(ctx, tx, who, platform.Support, guid); err != nil {
			return r, err
		}
		err = s.redirect(ctx, tx, who, r, func(have []platform.Destination) ([]platform.Destination, error) { return change(r, have, named) })
		if err != nil {
			return r, err
		}
		for _, app := range appsOf(named) {
			if err := checkReach(ctx, tx, app); err != nil {
				return r, err
			}
		}
		return readRoute(ctx, tx, guid)
	})
}

// checkReach holds together what all routes say of an app, once they all do.
func checkReach(ctx context.Context, tx pgx.Tx, app string) error {
	all, err := reached(ctx, tx, app)
	if err != nil {
		return err
	}
	return platform.CheckReach(all)
}

// appsOf are the apps of destinations, each once and in one order for everybody who locks them.
func appsOf(named []platform.Destination) []string {
	var guids []string
	for _, d := range named {
		guids = append(guids, d.AppGUID)
	}
	return distinct(guids)
}

func lockApps(ctx context.Context, tx pgx.Tx, who platform.Who, space string, named []platform.Destination) error {
	for _, guid := range appsOf(named) {
		a, err := apps.lock(ctx, tx, who, platform.Read, guid)
		switch {
		case fault.Is(err, fault.KindNotFound):
			return platform.ErrNoSuchApp(guid)
		case err != nil:
			return err
		case a.SpaceGUID != space:
			return platform.ErrOtherSpace
		}
	}
	return nil
}

// redirect writes the new destinations of a route that is locked, as are the apps of those that are new.
func (s *Store) redirect(ctx context.Context, tx pgx.Tx, who platform.Who, r platform.Route, change func([]platform.Destination) ([]platform.Destination, error)) error {
	var have []platform.Destination
	if err := eachDestination(ctx, tx, ` where x.route_guid = $1`, r.GUID, func(_ string, d platform.Destination) { have = append(have, d) }); err != nil {
		return err
	}
	now, err := change(have)
	if err != nil {
		return err
	}
	was := map[string]platform.Destination{}
	for _, d := range have {
		was[d.GUID] = d
	}
	var mapped, unmapped []string
	batch := &pgx.Batch{}
	kept := map[string]bool{}
	for _, d := range now {
		old, there := was[d.GUID]
		switch kept[d.GUID] = true; {
		case !there:
			mapped = append(mapped, d.AppGUID)
			batch.Queue(`insert into destinations (guid, route_guid, app_guid, process_type, port, weight, protocol) values ($1, $2, $3, $4, $5, $6, $7)`,
				platform.NewGUID(), r.GUID, d.AppGUID, d.ProcessType, d.Port, d.Weight, d.Protocol)
		case old.Port != d.Port || old.Weight != d.Weight || old.Protocol != d.Protocol:
			mapped = append(mapped, d.AppGUID)
			batch.Queue(`update destinations set port = $2, weight = $3, protocol = $4, updated_at = clock_timestamp() where guid = $1`, d.GUID, d.Port, d.Weight, d.Protocol)
		}
	}
	for _, d := range have {
		if !kept[d.GUID] {
			unmapped = append(unmapped, d.AppGUID)
			batch.Queue(`delete from destinations where guid = $1`, d.GUID)
		}
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("write destinations: %w", err)
	}
	if err := s.recordMapping(ctx, tx, who, r, "unmap-route", unmapped); err != nil {
		return err
	}
	return s.recordMapping(ctx, tx, who, r, "map-route", mapped)
}

func distinct(guids []string) []string {
	slices.Sort(guids)
	return slices.Compact(guids)
}

// recordMapping writes what became of a route to the trail of each app. One that is being deleted needs none.
func (s *Store) recordMapping(ctx context.Context, tx pgx.Tx, who platform.Who, r platform.Route, kind string, guids []string) error {
	for _, guid := range distinct(guids) {
		a, err := apps.read(ctx, tx, guid)
		if pg.NoRows(err) {
			continue
		}
		if err != nil {
			return err
		}
		if err := s.recordApp(ctx, tx, who, kind, a, map[string]any{"route_guid": r.GUID, "route": r.URL()}); err != nil {
			return err
		}
	}
	return nil
}
