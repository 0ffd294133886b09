package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/proa-dev/proa/kit/pg/pgtest"
	"github.com/proa-dev/proa/platform/store"
)

// TestLead cuts the leader's connection: its context ends, and another leads. Another cluster has a leader of its own.
func TestLead(t *testing.T) {
	pool := pgtest.New(t, store.Migrations(), store.Table)
	s := store.New(pool, nil)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	led, ended := make(chan string, 3), make(chan error, 3)
	hinted := make(chan struct{}, 10)
	lead := func(name, cluster string) {
		ended <- s.Lead(ctx, cluster, func(ctx context.Context, hints <-chan struct{}) error {
			led <- name
			for {
				select {
				case <-hints:
					hinted <- struct{}{}
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
		})
	}
	soon := func(c chan string, want string) {
		t.Helper()
		select {
		case got := <-c:
			if got != want {
				t.Fatalf("%s leads, want %s", got, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s does not lead", want)
		}
	}
	go lead("first", "default")
	soon(led, "first")
	go lead("second", "default")
	go lead("other", "elsewhere")
	soon(led, "other")
	if _, err := pool.Exec(ctx, `insert into orgs (guid, name) values ('o', 'o'); insert into spaces (guid, org_guid, name, cluster_id) values ('s', 'o', 's', 'default'); delete from spaces`); err != nil {
		t.Fatal(err)
	}
	select {
	case <-hinted:
	case <-time.After(5 * time.Second):
		t.Error("there was no hint")
	}
	_, err := pool.Exec(ctx, `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted and objsubid = 1
		and ((classid::bigint << 32) | objid::bigint) = hashtextextended('proa cluster default', 0)
		and database = (select oid from pg_database where datname = current_database())`)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, store.ErrLeadLost) {
			t.Errorf("the first ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the first still leads")
	}
	soon(led, "second")
	stop()
	for range 2 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	}
}
