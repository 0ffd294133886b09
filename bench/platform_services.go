package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/store"
)

// One space with very many services: each page of the list comes with its plans, offerings, brokers, space and organization, and the last
// must not cost more than the first.
var manyServices = figure{
	name:  servicesName,
	about: "list 40,000 service instances with all that stands beside them, the last page beside the first, and the first beside that of 1,000",
	run:   measureServices,
}

const (
	servicesName   = "platform.services"
	fewServices    = 1_000
	allServices    = 40_000
	serviceSpace   = "space-0"
	servicesRounds = 100
)

func measureServices(ctx context.Context, b *bench) ([]line, error) {
	var lines []line
	err := b.withServices(ctx, fewServices, func(few *appStore) error {
		return b.withServices(ctx, allServices, func(all *appStore) error {
			say("%s: %d rounds of each question", servicesName, servicesRounds)
			for _, size := range []int{50, 500} {
				more, err := compareServices(ctx, few, all, size)
				if err != nil {
					return fmt.Errorf("%d per page: %w", size, err)
				}
				lines = append(lines, more...)
			}
			return nil
		})
	})
	return lines, err
}

// withServices is a store with one space whose developer has services: a fortieth of them is one plan.
func (b *bench) withServices(ctx context.Context, services int, use func(*appStore) error) error {
	return b.withApps(ctx, 2*spaceApps, func(s *appStore) error {
		s.apps, s.developer.GUID = services, "user-0"
		if err := addServices(ctx, s.database, services); err != nil {
			return fmt.Errorf("add services: %w", err)
		}
		return use(s)
	})
}

func addServices(ctx context.Context, database string, services int) error {
	pool, err := pg.Open(ctx, database)
	if err != nil {
		return err
	}
	defer pool.Close()
	for _, step := range []struct {
		sql  string
		args []any
	}{
		{`insert into service_brokers (guid, name, url, credentials, state) select 'broker-' || n, 'broker-' || n, 'http://broker', '', 'AVAILABLE' from generate_series(0, 1) n`, nil},
		{`insert into service_offerings (guid, broker_guid, unique_id, name, description, active, bindable, plan_updateable, instances_retrievable, bindings_retrievable, context_updates, shareable,
			tags, requires, documentation_url, catalog_metadata) select 'offering-' || n, 'broker-' || n % 2, n::text, 'offering-' || n, 'a service', true, true, true, true, true, false, true,
			'{a,b}', '{}', '', '{}' from generate_series(0, 7) n`, nil},
		{`insert into service_plans (guid, offering_guid, unique_id, name, description, free, active, bindable, plan_updateable, visibility, max_polling, catalog_metadata, schemas)
			select 'plan-' || n, 'offering-' || n % 8, n::text, 'plan-' || n, '', true, true, true, true, 'public', 0, '{}', '{}' from generate_series(0, 39) n`, nil},
		{`insert into service_instances (guid, space_guid, name, plan_guid, held, service_id, plan_id, tags, created_at)
			select 'service-' || n, $2, 'db-' || md5(n::text), 'plan-' || n % 40, true, '', '', '{a}', now() - ($1::int - n) * interval '1 minute' from generate_series(0, $1::int - 1) n`, []any{services, serviceSpace}},
		{`vacuum (analyze)`, nil},
	} {
		if _, err := pool.Exec(ctx, step.sql, step.args...); err != nil {
			return err
		}
	}
	say("%s service instances added", number(float64(services)))
	return nil
}

// servicesPage reads a page of a space's services by name, as `services` asks for it, and what stands beside.
func servicesPage(ctx context.Context, s *appStore, l platform.List) (platform.Page[platform.ServiceInstance], error) {
	l.OrderBy, l.Values = "name", map[string][]string{"space_guids": {serviceSpace}}
	page, err := s.ServiceInstances(ctx, s.developer, l)
	if err != nil {
		return page, err
	}
	plans := map[string]bool{}
	for _, i := range page.Records {
		plans[i.PlanGUID] = true
	}
	var beside store.Surroundings
	var guids []string
	for guid := range plans {
		guids = append(guids, guid)
	}
	if beside, err = s.Surroundings(ctx, []string{serviceSpace}, guids); err != nil {
		return page, err
	}
	if page.Total != s.apps || len(page.Records) != l.PerPage || len(beside.Plans) != len(plans) || len(beside.Spaces) != 1 || len(beside.Orgs) != 1 {
		return page, fmt.Errorf("among %d services the page has %d of %d with %d plans", s.apps, len(page.Records), page.Total, len(beside.Plans))
	}
	return page, nil
}

// lastPage is the list that begins where a walk from page to page comes to the last one.
func lastPage(ctx context.Context, s *appStore, size int) (platform.List, error) {
	page, err := servicesPage(ctx, s, platform.List{Page: 1, PerPage: size + 1, Down: true})
	if err != nil {
		return platform.List{}, err
	}
	before := page.Records[size]
	return platform.List{Page: s.apps / size, PerPage: size, After: &platform.Cursor{Value: before.Name, GUID: before.GUID}}, nil
}

func compareServices(ctx context.Context, few, all *appStore, size int) ([]line, error) {
	first := platform.List{Page: 1, PerPage: size}
	last, err := lastPage(ctx, all, size)
	if err != nil {
		return nil, err
	}
	asks := []struct {
		of   *appStore
		what platform.List
	}{{few, first}, {all, first}, {all, last}, {all, platform.List{Page: all.apps / size, PerPage: size}}}
	times := make([][]float64, len(asks))
	for round := range servicesRounds + servicesRounds/10 {
		for i, ask := range asks {
			begin := time.Now()
			page, err := servicesPage(ctx, ask.of, ask.what)
			spent := time.Since(begin)
			if err == nil && i > 1 && page.Next != nil {
				err = fmt.Errorf("the last page is not the last")
			}
			if err != nil {
				return nil, err
			}
			if round >= servicesRounds/10 { // after the caches are warm
				times[i] = append(times[i], spent.Seconds()*1000)
			}
		}
	}
	ms := func(i int, unit string) quantity { return quantity{median(slices.Clone(times[i])), unit} }
	name := func(what string) string { return fmt.Sprintf("%s.%s_%d", servicesName, what, size) }
	return []line{
		{name: name("first"), ours: ms(1, "ms in 40,000"), bare: ms(0, "ms in 1,000"), notes: []string{"the first page and all that stands beside it, and how many there are: they are counted"}},
		{name: name("last"), ours: ms(2, "ms the last"), bare: ms(1, "ms the first"), aim: aim{of: "ratio", is: "<=", bound: 1.5}, notes: []string{"by the link to the next page"}},
		{name: name("number"), ours: ms(3, "ms the last"), bare: ms(1, "ms the first"), notes: []string{"by its number, which skips all before it"}},
	}, nil
}
