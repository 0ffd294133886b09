package cli

import (
	"context"

	v3 "github.com/proa-dev/proa/platform/v3"
)

// as is what a pointer leads to, or nothing.
func as[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}

// beside are the records that those of a list refer to, by their ids.
type beside struct {
	orgs      map[string]v3.Organization
	spaces    map[string]v3.Space
	apps      map[string]v3.App
	brokers   map[string]v3.ServiceBroker
	offerings map[string]v3.ServiceOffering
	plans     map[string]v3.ServicePlan
}

func newBeside() beside {
	return beside{map[string]v3.Organization{}, map[string]v3.Space{}, map[string]v3.App{}, map[string]v3.ServiceBroker{},
		map[string]v3.ServiceOffering{}, map[string]v3.ServicePlan{}}
}

// whole is a list to its end, with what its records refer to.
func whole[T any](ctx context.Context, s *session, path string) ([]T, beside, error) {
	all, b := []T{}, newBeside()
	for path != "" {
		var page v3.List[T]
		if err := s.get(ctx, path, &page); err != nil {
			return nil, b, err
		}
		all = append(all, page.Resources...)
		b.add(page.Included)
		path = ""
		if page.Pagination.Next != nil {
			path = page.Pagination.Next.Href
		}
	}
	return all, b, nil
}

func (b beside) add(in *v3.Included) {
	if in == nil {
		return
	}
	for _, o := range in.Organizations {
		b.orgs[o.GUID] = o
	}
	for _, p := range in.Spaces {
		b.spaces[p.GUID] = p
	}
	for _, a := range in.Apps {
		b.apps[a.GUID] = a
	}
	for _, r := range in.ServiceBrokers {
		b.brokers[r.GUID] = r
	}
	for _, o := range in.ServiceOfferings {
		b.offerings[o.GUID] = o
	}
	for _, p := range in.ServicePlans {
		b.plans[p.GUID] = p
	}
}

func (b beside) offeringOf(p v3.ServicePlan) v3.ServiceOffering {
	return b.offerings[p.Relationships["service_offering"].GUID()]
}

func (b beside) brokerOf(o v3.ServiceOffering) v3.ServiceBroker {
	return b.brokers[o.Relationships["service_broker"].GUID()]
}
