package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/kit/seal"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/store"
)

// What a person sees of a platform must not become slow because others use it too. There is no engine to compare that with but the same
// store with few apps in it.
var manyApps = figure{
	name:  appsName,
	about: "list, find and get apps among 100,000, beside the same among 1,000",
	run:   measureApps,
}

const (
	appsName   = "platform.apps"
	fewApps    = 1_000
	allApps    = 100_000
	spaceApps  = 100 // in each space
	appsRounds = 300
	appsPage   = 50
)

func measureApps(ctx context.Context, b *bench) ([]line, error) {
	var lines []line
	err := b.withApps(ctx, fewApps, func(few *appStore) error {
		return b.withApps(ctx, allApps, func(all *appStore) error {
			say("%s: %d rounds of each question", appsName, appsRounds)
			for _, q := range appQuestions {
				l, err := compareApps(ctx, q, few, all)
				if err != nil {
					return fmt.Errorf("%s: %w", q.name, err)
				}
				lines = append(lines, l)
			}
			return nil
		})
	})
	return lines, err
}

// appStore is a store with apps in it, and somebody who develops those of one space in the middle.
type appStore struct {
	*store.Store
	database  string
	apps      int
	developer platform.Who
	guid      string // of one of the developer's apps
	appName   string
}

var (
	developerScopes = []string{platform.ScopeRead, platform.ScopeWrite}
	operator        = platform.Who{GUID: "operator", Name: "operator", Scopes: append([]string{platform.ScopeAdmin}, developerScopes...)}
)

func (b *bench) withApps(ctx context.Context, apps int, use func(*appStore) error) error {
	return b.withDatabase(ctx, func(database string) error {
		keyset, err := seal.Generate()
		if err != nil {
			return err
		}
		box, err := seal.New(keyset)
		if err != nil {
			return err
		}
		s, err := store.Open(ctx, database, box)
		if err != nil {
			return err
		}
		defer s.Close()
		if err := addApps(ctx, database, apps); err != nil {
			return fmt.Errorf("add apps: %w", err)
		}
		middle := apps / spaceApps / 2
		return use(&appStore{
			Store: s, database: database, apps: apps, guid: fmt.Sprintf("app-%d", middle), appName: fmt.Sprintf("shop-%d", middle),
			developer: platform.Who{GUID: fmt.Sprintf("user-%d", middle), Name: "somebody", Scopes: developerScopes},
		})
	})
}

// addApps gives each organization ten spaces, each space a hundred apps and one developer. Apps of one space are not neighbours in time.
func addApps(ctx context.Context, database string, apps int) error {
	pool, err := pg.Open(ctx, database)
	if err != nil {
		return err
	}
	defer pool.Close()
	spaces := apps / spaceApps
	for _, step := range []struct {
		sql  string
		args []any
	}{
		{`insert into orgs (guid, name) select 'org-' || n, 'org-' || n from generate_series(0, $1::int / 10) n`, []any{spaces}},
		{`insert into spaces (guid, org_guid, name, cluster_id) select 'space-' || n, 'org-' || n / 10, 'space-' || n, 'default' from generate_series(0, $1::int - 1) n`, []any{spaces}},
		{`insert into users (guid, username) select 'user-' || n, 'user-' || n from generate_series(0, $1::int - 1) n`, []any{spaces}},
		{`insert into roles (guid, type, user_guid, org_guid, space_guid) select 'role-' || n, 'space_developer', 'user-' || n, 'org-' || n / 10, 'space-' || n from generate_series(0, $1::int - 1) n`, []any{spaces}},
		{`insert into apps (guid, space_guid, name, created_at) select 'app-' || n, 'space-' || n % $2::int, 'shop-' || n, now() - ($1::int - n) * interval '1 minute' from generate_series(0, $1::int - 1) n`, []any{apps, spaces}},
		{`vacuum (analyze)`, nil},
	} {
		if _, err := pool.Exec(ctx, step.sql, step.args...); err != nil {
			return err
		}
	}
	say("%s apps added", number(float64(apps)))
	return nil
}

// appQuestion is what somebody asks. It tells how many apps it got, and how many it should have.
type appQuestion struct {
	name string
	ask  func(context.Context, *appStore) (got, want int, err error)
	note string
}

var appQuestions = []appQuestion{
	{name: "list", note: "the first 50 of a developer's 100 apps", ask: func(ctx context.Context, s *appStore) (int, int, error) {
		page, err := s.Apps(ctx, s.developer, platform.List{Page: 1, PerPage: appsPage})
		return len(page.Records) + page.Total, appsPage + spaceApps, err
	}},
	{name: "find", note: "a developer's app by its name", ask: func(ctx context.Context, s *appStore) (int, int, error) {
		page, err := s.Apps(ctx, s.developer, platform.List{Page: 1, PerPage: appsPage, Values: map[string][]string{"names": {s.appName}}})
		return len(page.Records) + page.Total, 2, err
	}},
	{name: "get", note: "a developer's app by its guid", ask: func(ctx context.Context, s *appStore) (int, int, error) {
		app, err := s.App(ctx, s.developer, s.guid)
		return len(app.Name), len(s.appName), err
	}},
	{name: "list_all", note: "the first 50 of all apps for an administrator, who is told how many there are", ask: func(ctx context.Context, s *appStore) (int, int, error) {
		page, err := s.Apps(ctx, operator, platform.List{Page: 1, PerPage: appsPage})
		return len(page.Records) + page.Total, appsPage + s.apps, err
	}},
	{name: "find_all", note: "any app by its name for an administrator", ask: func(ctx context.Context, s *appStore) (int, int, error) {
		page, err := s.Apps(ctx, operator, platform.List{Page: 1, PerPage: appsPage, Values: map[string][]string{"names": {s.appName}}})
		return len(page.Records) + page.Total, 2, err
	}},
}

// compareApps asks both stores in turn, so that both meet the same neighbours on this machine.
func compareApps(ctx context.Context, q appQuestion, few, all *appStore) (line, error) {
	times := map[*appStore][]float64{}
	order := []*appStore{few, all}
	for round := range appsRounds + appsRounds/10 {
		for _, s := range order {
			begin := time.Now()
			got, want, err := q.ask(ctx, s)
			spent := time.Since(begin)
			if err == nil && got != want {
				err = fmt.Errorf("among %d apps the answer has %d instead of %d", s.apps, got, want)
			}
			if err != nil {
				return line{}, err
			}
			if round >= appsRounds/10 { // after the caches are warm
				times[s] = append(times[s], spent.Seconds()*1000)
			}
		}
		slices.Reverse(order)
	}
	return line{name: appsName + "." + q.name, ours: quantity{median(times[all]), "ms in 100,000"}, bare: quantity{median(times[few]), "ms in 1,000"},
		aim: aim{of: "ratio", is: "<=", bound: 1.5}, notes: []string{q.note}}, nil
}
