package store_test

import (
	"testing"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg/pgtest"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/store"
)

// TestHomeIsNotForEverybody asks where a process runs that the sender cannot see.
func TestHomeIsNotForEverybody(t *testing.T) {
	pool := pgtest.New(t, store.Migrations(), store.Table)
	s := store.New(pool, nil)
	if _, err := pool.Exec(t.Context(), `with o as (insert into orgs (guid, name) values ('o', 'o') returning guid), s as (insert into spaces (guid, org_guid, name, cluster_id) select 's', guid, 's', 'default' from o returning guid),
		a as (insert into apps (guid, space_guid, name, state) select 'a', guid, 'shop', 'STARTED' from s returning guid)
		insert into processes (guid, app_guid, type, instances, memory_mb, disk_mb, log_rate, health, readiness) select 'p', guid, 'web', 1, 1, 1, 1, '{}', '{}' from a`); err != nil {
		t.Fatal(err)
	}
	if home, err := s.Home(t.Context(), platform.Who{GUID: "stranger"}, "p"); !fault.Is(err, fault.KindNotFound) {
		t.Errorf("a stranger finds %+v, %v", home, err)
	}
	if home, err := s.Home(t.Context(), platform.Who{GUID: "admin", Scopes: []string{platform.ScopeAdmin}}, "p"); err != nil || home.Cluster != "" {
		t.Errorf("before its first start it is at %+v, %v", home, err)
	}
}
