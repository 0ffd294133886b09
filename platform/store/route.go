package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

var routes = noun[platform.Route]{
	name: "Route", from: `routes t join domains d on d.guid = t.domain_guid join spaces s on s.guid = t.space_guid`, space: `t.space_guid`, org: `s.org_guid`,
	columns: `t.guid, t.space_guid, s.org_guid, t.domain_guid, d.name, t.host, t.path, t.port, case t.port when 0 then 'http' else 'tcp' end,
		t.labels, t.annotations, t.created_at, t.updated_at`,
	into: func(r *platform.Route) []any {
		return []any{&r.GUID, &r.SpaceGUID, &r.OrgGUID, &r.DomainGUID, &r.DomainName, &r.Host, &r.Path, &r.Port, &r.Protocol,
			&r.Metadata.Labels, &r.Metadata.Annotations, &r.CreatedAt, &r.UpdatedAt}
	},
	filters: map[string]string{"space_guids": `t.space_guid`, "organization_guids": `s.org_guid`, "domain_guids": `t.domain_guid`, "hosts": `t.host`, "paths": `t.path`,
		"ports": `t.port::text`, "service_instance_guids": `null::text`}, // no service has a route
	holding: map[string]string{"app_guids": `select x.route_guid from destinations x where x.app_guid = any(%s)`},
	labels:  `t.labels`,
}

func routeTarget(r platform.Route) platform.Actor {
	return platform.Actor{GUID: r.GUID, Type: "route", Name: r.URL()}
}

// Routes lists routes with their destinations.
func (s *Store) Routes(ctx context.Context, who platform.Who, l platform.List) (platform.Page[platform.Route], error) {
	page, err := routes.list(ctx, s.pool, who, l)
	if err != nil {
		return page, err
	}
	return page, fillDestinations(ctx, s.pool, page.Records)
}

// Route reads one route with its destinations.
func (s *Store) Route(ctx context.Context, who platform.Who, guid string) (platform.Route, error) {
	r, err := routes.find(ctx, s.pool, who, platform.Read, guid)
	if err != nil {
		return r, err
	}
	one := []platform.Route{r}
	err = fillDestinations(ctx, s.pool, one)
	return one[0], err
}

// CreateRoute adds a route to a space.
func (s *Store) CreateRoute(ctx context.Context, who platform.Who, r platform.Route, set Settings) (platform.Route, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Route, error) {
		sp, err := spaces.named(ctx, tx, who, platform.Develop, r.SpaceGUID)
		if err != nil {
			return r, err
		}
		d, err := domains.named(ctx, tx, who, platform.Read, r.DomainGUID)
		if err != nil {
			return r, err
		}
		return createRoute(ctx, tx, who, sp, d, r, set)
	})
}

// createRoute adds a route of a domain to a space in which the sender may develop.
func createRoute(ctx context.Context, tx pgx.Tx, who platform.Who, sp platform.Space, d platform.Domain, r platform.Route, set Settings) (platform.Route, error) {
	r.GUID, r.SpaceGUID, r.OrgGUID, r.DomainGUID, r.DomainName, r.Protocol = platform.NewGUID(), sp.GUID, sp.OrgGUID, d.GUID, d.Name, d.Speaks()
	if err := allowed(ctx, tx, who, platform.FlagRouteCreation); err != nil {
		return r, err
	}
	if !d.Shared() && d.OrgGUID != sp.OrgGUID {
		return r, platform.ErrNotOfOrg(d)
	}
	if err := r.Check(); err != nil {
		return r, err
	}
	if err := who.MayTake(r, d, set.Reserved); err != nil {
		return r, err
	}
	if r.TCP() {
		if err := takePort(ctx, tx, &r, set.TCP.of(d)); err != nil {
			return r, err
		}
	} else if err := free(ctx, tx, who, r, d); err != nil {
		return r, err
	}
	_, err := tx.Exec(ctx, `insert into routes (guid, space_guid, domain_guid, host, hostname, path, port, labels, annotations) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		r.GUID, r.SpaceGUID, r.DomainGUID, r.Host, r.Hostname(), r.Path, r.Port, none2(r.Metadata.Labels), none2(r.Metadata.Annotations))
	if err != nil {
		return r, routeConflict(err, r)
	}
	if err := record(ctx, tx, who, platform.On("audit.route.create", routeTarget(r), r.OrgGUID, r.SpaceGUID)); err != nil {
		return r, err
	}
	return routes.read(ctx, tx, r.GUID)
}

// free refuses an address that somebody has, and one whose host belongs to another space. Others who ask for the host wait until the
// transaction ends: of two spaces that ask at once for two paths of it, one gets it.
func free(ctx context.Context, tx pgx.Tx, who platform.Who, r platform.Route, d platform.Domain) error {
	if err := lockHost(ctx, tx, r.Hostname()); err != nil {
		return err
	}
	var here, there, elsewhere, domain bool // the route, in this space or another; its host, in another; a domain of this name
	err := tx.QueryRow(ctx, `select coalesce(bool_or(path = $2 and port = $3 and space_guid = $4), false), coalesce(bool_or(path = $2 and port = $3 and space_guid <> $4), false),
		coalesce(bool_or(space_guid <> $4), false), exists(select from domains where name = $1 and guid <> $5) from routes where hostname = $1`,
		r.Hostname(), r.Path, r.Port, r.SpaceGUID, r.DomainGUID).Scan(&here, &there, &elsewhere, &domain)
	switch {
	case err != nil:
		return fmt.Errorf("find host: %w", err)
	case here:
		return platform.ErrRouteExists(r)
	case d.Shared() && (elsewhere || domain && !who.Admin()):
		return platform.ErrHostTaken(r)
	case there:
		return platform.ErrRouteTaken(r)
	}
	return nil
}

// takePort gives a route of tcp its port. Whoever else asks for one waits: of two that ask for the last, one gets it.
func takePort(ctx context.Context, tx pgx.Tx, r *platform.Route, ports platform.Ports) error {
	if err := lockAddress(ctx, tx, *r); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, `select port, space_guid, domain_guid from routes where port <> 0`)
	if err != nil {
		return fmt.Errorf("find ports: %w", err)
	}
	taken, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (other platform.Route, err error) {
		err = row.Scan(&other.Port, &other.SpaceGUID, &other.DomainGUID)
		return other, err
	})
	if err != nil {
		return fmt.Errorf("find ports: %w", err)
	}
	return r.TakePort(ports, taken)
}

// lockAddress keeps others from asking for the host of a route until the transaction ends, or for any port.
func lockAddress(ctx context.Context, tx pgx.Tx, r platform.Route) error {
	if r.TCP() {
		return lockHost(ctx, tx, ":") // no host is called so
	}
	return lockHost(ctx, tx, r.Hostname())
}

// lockHost keeps others from asking for a host until the transaction ends.
func lockHost(ctx context.Context, tx pgx.Tx, hostname string) error {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('route ' || $1::text, 0))`, hostname); err != nil {
		return fmt.Errorf("lock host: %w", err)
	}
	return nil
}

func routeConflict(err error, r platform.Route) error {
	switch constraint, _ := pg.Conflict(err); constraint {
	case "route_space":
		return invalid("Space") // it went while we looked
	case "route_domain":
		return invalid("Domain")
	}
	return fmt.Errorf("write route %s: %w", r.GUID, err)
}

// UpdateRoute changes what is noted on a route.
func (s *Store) UpdateRoute(ctx context.Context, who platform.Who, guid string, change platform.MetadataChange) (platform.Route, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Route, error) {
		r, err := routes.lock(ctx, tx, who, platform.Develop, guid)
		if err != nil {
			return r, err
		}
		r.Metadata.Apply(change)
		if err := r.Metadata.Check(); err != nil {
			return r, err
		}
		if _, err := tx.Exec(ctx, `update routes set labels = $2, annotations = $3, updated_at = now() where guid = $1`, guid, r.Metadata.Labels, r.Metadata.Annotations); err != nil {
			return r, fmt.Errorf("save route: %w", err)
		}
		if err := record(ctx, tx, who, platform.On("audit.route.update", routeTarget(r), r.OrgGUID, r.SpaceGUID)); err != nil {
			return r, err
		}
		return readRoute(ctx, tx, guid)
	})
}

// readRoute reads a route with its destinations for a caller who has found it already.
func readRoute(ctx context.Context, tx pgx.Tx, guid string) (platform.Route, error) {
	r, err := routes.read(ctx, tx, guid)
	if err != nil {
		return r, err
	}
	one := []platform.Route{r}
	err = fillDestinations(ctx, tx, one)
	return one[0], err
}

// DeleteRoute removes a route with its destinations.
func (s *Store) DeleteRoute(ctx context.Context, who platform.Who, guid string) (platform.Job, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Job, error) {
		r, err := routes.lock(ctx, tx, who, platform.Develop, guid)
		if err != nil {
			return platform.Job{}, err
		}
		if _, err := tx.Exec(ctx, `delete from routes where guid = $1`, guid); err != nil {
			return platform.Job{}, fmt.Errorf("delete route: %w", err)
		}
		if err := record(ctx, tx, who, platform.On("audit.route.delete-request", routeTarget(r), r.OrgGUID, r.SpaceGUID)); err != nil {
			return platform.Job{}, err
		}
		return insertJob(ctx, tx, who, "route.delete", platform.JobComplete)
	})
}

// DeleteUnmapped removes the routes of a space that lead nowhere. They are locked first: one that is being mapped stays.
func (s *Store) DeleteUnmapped(ctx context.Context, who platform.Who, space string) (platform.Job, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Job, error) {
		sp, err := spaces.find(ctx, tx, who, platform.Develop, space)
		if err != nil {
			return platform.Job{}, err
		}
		const unmapped = ` and not exists (select from destinations x where x.route_guid = t.guid)`
		if _, err := tx.Exec(ctx, `select from routes t where t.space_guid = $1`+unmapped+` order by t.guid for update`, space); err != nil {
			return platform.Job{}, fmt.Errorf("lock routes: %w", err)
		}
		tag, err := tx.Exec(ctx, `delete from routes t where t.space_guid = $1`+unmapped, space)
		if err != nil {
			return platform.Job{}, fmt.Errorf("delete routes: %w", err)
		}
		e := platform.On("audit.space.delete-unmapped-routes", spaceTarget(sp), sp.OrgGUID, sp.GUID).With(map[string]any{"routes": tag.RowsAffected()})
		if err := record(ctx, tx, who, e); err != nil {
			return platform.Job{}, err
		}
		return insertJob(ctx, tx, who, "space.delete_unmapped_routes", platform.JobComplete)
	})
}

// Reserved tells whether an address of a domain is taken, or is the platform's own. A port is taken whatever the domain. A host of a shared domain is taken with all its paths
// for those who cannot develop in the space that has it.
func (s *Store) Reserved(ctx context.Context, who platform.Who, r platform.Route, set Settings) (bool, error) {
	d, err := domains.find(ctx, s.pool, who, platform.Read, r.DomainGUID)
	if err != nil {
		return false, err
	}
	q := &query{}
	if d.Speaks() == platform.ProtocolTCP {
		return s.exists(ctx, `select from routes where port <> 0 and port = `+q.arg(r.Port), q)
	}
	if r.DomainName = d.Name; set.Reserved.Holds(r.Hostname()) {
		return true, nil
	}
	hostname := q.arg(r.Hostname())
	taking := `select from routes where hostname = ` + hostname + ` and (path = ` + q.arg(r.Path) + ` and port = ` + q.arg(r.Port)
	if d.Shared() && !who.Everywhere(platform.Develop) {
		taking += ` or space_guid not in (` + spacesOf(q, who, platform.Develop) + `)) union all select from domains where name = ` + hostname + ` and guid <> ` + q.arg(d.GUID)
	} else {
		taking += `)`
	}
	return s.exists(ctx, taking, q)
}

func (s *Store) exists(ctx context.Context, selecting string, q *query) (is bool, err error) {
	if err := s.pool.QueryRow(ctx, `select exists(`+selecting+`)`, q.args...).Scan(&is); err != nil {
		return false, fmt.Errorf("find route: %w", err)
	}
	return is, nil
}

// caught lists, of the routes of a cluster ($1), those whose requests would go to a route of another space if they were not served: to a
// wildcard of the domain or of one above it, or to a shorter path of the host. It asks for each address that could by name, because a host
// can have many paths. Each offset keeps PostgreSQL from beginning with all routes instead.
const caught = `select t.guid from (select d.guid, i, o.space_guid from domains d cross join lateral (select string_to_array(d.name, '.') as names) c
			cross join lateral generate_series(1, cardinality(names)) i cross join lateral (select space_guid from routes
				where hostname = '*.' || array_to_string(names[i:], '.') and path = '' and port = 0 offset 0) o offset 0) w
		join spaces n on n.guid = w.space_guid and n.cluster_id = $1
		join routes t on t.domain_guid = w.guid and t.port = 0 and t.space_guid <> w.space_guid and (t.host <> '' or w.i > 1)
		join spaces s on s.guid = t.space_guid and s.cluster_id = $1
	union select t.guid from routes t join spaces s on s.guid = t.space_guid and s.cluster_id = $1
		cross join lateral (select string_to_array(t.path, '/') as names) c cross join lateral generate_series(1, cardinality(names) - 1) i
		where t.path <> '' and exists (select from routes o where o.hostname = t.hostname and o.path = array_to_string(names[:i], '/') and o.port = t.port
			and o.space_guid <> t.space_guid and (select cluster_id from spaces where guid = o.space_guid) = $1 offset 0)`

// WantedRoutes lists what a cluster should serve: the routes of its spaces with the destinations that run and have the port. One that has
// none is left out, unless another space would get its requests then, with the cookies of its visitors.
func (s *Store) WantedRoutes(ctx context.Context, cluster string) ([]platform.WantedRoute, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) ([]platform.WantedRoute, error) {
		if _, err := tx.Exec(ctx, `set local jit = off`); err != nil { // it takes the statement for a long one, and a second to compile it
			return nil, fmt.Errorf("list wanted routes: %w", err)
		}
		return wantedRoutes(ctx, tx, cluster)
	})
}

func wantedRoutes(ctx context.Context, tx pgx.Tx, cluster string) ([]platform.WantedRoute, error) {
	rows, err := tx.Query(ctx, `with live as (select t.guid as route_guid, t.space_guid, t.hostname, t.path, t.port as at, p.guid as process_guid, `+effective+` as port, x.weight, x.protocol, x.created_at, x.guid
			from destinations x join routes t on t.guid = x.route_guid join spaces s on s.guid = t.space_guid join apps a on a.guid = x.app_guid
			join processes p on p.app_guid = x.app_guid and p.type = x.process_type join releases r on r.guid = p.release_guid
			where s.cluster_id = $1 and a.state = $2 and p.instances > 0 and `+hasPort+`),
		backends as (select * from live union all select t.guid, t.space_guid, t.hostname, t.path, t.port, '', 0, 0, '', null, ''
			from (`+caught+`) c join routes t on t.guid = c.guid where c.guid not in (select route_guid from live))
		select route_guid, space_guid, hostname, path, at, case at when 0 then 'http' else 'tcp' end, process_guid, port, weight, protocol
		from backends order by route_guid, created_at, guid`, cluster, platform.Started)
	if err != nil {
		return nil, fmt.Errorf("list wanted routes: %w", err)
	}
	var all []platform.WantedRoute
	var r platform.WantedRoute
	var b platform.Backend
	var space platform.Space
	_, err = pgx.ForEachRow(rows, []any{&r.GUID, &space.GUID, &r.Hostname, &r.Path, &r.Port, &r.Protocol, &b.ProcessGUID, &b.Port, &b.Weight, &b.Protocol}, func() error {
		if last := len(all) - 1; last < 0 || all[last].GUID != r.GUID {
			r.Namespace = space.Namespace()
			all = append(all, r)
		}
		if last := &all[len(all)-1]; b.ProcessGUID != "" {
			last.Backends = append(last.Backends, b)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list wanted routes: %w", err)
	}
	return all, nil
}
