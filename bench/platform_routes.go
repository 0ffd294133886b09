package main

import (
	"context"
	"fmt"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

// As many routes as apps: what a person and a controller see of them must not become slow because there are many.
var manyRoutes = figure{
	name:  routesName,
	about: "list and find routes among 100,000, beside the same among 1,000, and what a cluster should serve",
	run:   measureRoutes,
}

const (
	routesName   = "platform.routes"
	wantedRoutes = 10 // of a hundred: those of apps that run
	wantedMost   = 100.0
)

func measureRoutes(ctx context.Context, b *bench) ([]line, error) {
	var lines []line
	err := b.withRoutes(ctx, fewApps, func(few *appStore) error {
		return b.withRoutes(ctx, allApps, func(all *appStore) error {
			say("%s: %d rounds of each question", routesName, appsRounds)
			for _, q := range routeQuestions {
				l, err := compareApps(ctx, q, few, all)
				if err != nil {
					return fmt.Errorf("%s: %w", q.name, err)
				}
				l.name = routesName + "." + q.name
				if q.name == "wanted" { // it is ten times as much, and has a time of its own
					l.ours.unit, l.bare.unit = "ms for 10,000", "ms for 100"
					l.aim = aim{of: "ours", is: "<=", bound: wantedMost, unit: " ms"}
				}
				lines = append(lines, l)
			}
			return nil
		})
	})
	return lines, err
}

func (b *bench) withRoutes(ctx context.Context, apps int, use func(*appStore) error) error {
	return b.withApps(ctx, apps, func(s *appStore) error {
		if err := addRoutes(ctx, s.database, apps); err != nil {
			return fmt.Errorf("add routes: %w", err)
		}
		return use(s)
	})
}

// addRoutes gives each app a route, and lets one of ten run.
func addRoutes(ctx context.Context, database string, apps int) error {
	pool, err := pg.Open(ctx, database)
	if err != nil {
		return err
	}
	defer pool.Close()
	for _, step := range []struct {
		sql  string
		args []any
	}{
		{`insert into domains (guid, name) values ('domain', 'apps.example.org')`, nil},
		{`insert into processes (guid, app_guid, type, instances, memory_mb, disk_mb, log_rate, health, readiness, release_guid)
			select guid, guid, 'web', 1, 64, 64, -1, '{}', '{}', 'release-' || guid from apps`, nil},
		{`insert into releases (guid, app_guid, process_guid, version, body, ports) select 'release-' || guid, guid, guid, 1, '', '{8080}' from apps`, nil},
		{`update apps set state = 'STARTED' where substring(guid from 5)::int % 100 < $1`, []any{wantedRoutes}},
		{`insert into routes (guid, space_guid, domain_guid, host, hostname, path, created_at)
			select 'route-' || guid, space_guid, 'domain', name, name || '.apps.example.org', '', created_at from apps`, nil},
		{`insert into destinations (guid, route_guid, app_guid, process_type, port, weight, protocol) select 'destination-' || guid, 'route-' || guid, guid, 'web', 0, 0, 'http1' from apps`, nil},
		{`vacuum (analyze)`, nil},
	} {
		if _, err := pool.Exec(ctx, step.sql, step.args...); err != nil {
			return err
		}
	}
	say("%s routes added", number(float64(apps)))
	return nil
}

// routesWith lists routes, and counts those that it got, each with its one destination.
func routesWith(ctx context.Context, s *appStore, who platform.Who, values map[string][]string) (int, error) {
	page, err := s.Routes(ctx, who, platform.List{Page: 1, PerPage: appsPage, Values: values})
	got := page.Total
	for _, r := range page.Records {
		got += len(r.Destinations)
	}
	return got, err
}

var routeQuestions = []appQuestion{
	{name: "list", note: "the first 50 of a developer's 100 routes, with their destinations", ask: func(ctx context.Context, s *appStore) (int, int, error) {
		got, err := routesWith(ctx, s, s.developer, nil)
		return got, appsPage + spaceApps, err
	}},
	{name: "host", note: "a developer's route by its domain, host and path, as map-route asks", ask: func(ctx context.Context, s *appStore) (int, int, error) {
		got, err := routesWith(ctx, s, s.developer, map[string][]string{"domain_guids": {"domain"}, "hosts": {s.appName}, "paths": {""}})
		return got, 2, err
	}},
	{name: "app", note: "the routes of a developer's app", ask: func(ctx context.Context, s *appStore) (int, int, error) {
		got, err := routesWith(ctx, s, s.developer, map[string][]string{"app_guids": {s.guid}})
		return got, 2, err
	}},
	{name: "host_all", note: "any route by its host for an administrator", ask: func(ctx context.Context, s *appStore) (int, int, error) {
		got, err := routesWith(ctx, s, operator, map[string][]string{"hosts": {s.appName}})
		return got, 2, err
	}},
	{name: "list_all", note: "the first 50 of all routes for an administrator, who is told how many there are", ask: func(ctx context.Context, s *appStore) (int, int, error) {
		got, err := routesWith(ctx, s, operator, nil)
		return got, appsPage + s.apps, err
	}},
	{name: "wanted", note: "what a cluster should serve: the routes of every tenth app", ask: func(ctx context.Context, s *appStore) (int, int, error) {
		wanted, err := s.WantedRoutes(ctx, "default")
		return len(wanted), s.apps * wantedRoutes / 100, err
	}},
}
