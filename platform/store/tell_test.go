package store_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/store"
)

// told takes the notices that wait to be handed over out of the queue, the oldest first.
func (b *binder) told() (all []store.Tell) {
	b.Helper()
	rows, err := b.pool.Query(b.Context(), `with gone as (delete from river_job where kind = 'tell' and queue = 'notices' returning id, args) select args from gone order by id`)
	if err != nil {
		b.Fatal(err)
	}
	raw, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		b.Fatal(err)
	}
	for _, args := range raw {
		var one store.Tell
		if err := json.Unmarshal(args, &one); err != nil {
			b.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

// subjects wants notices of these subjects, each for its space, and gives them.
func (b *binder) subjects(what string, want ...string) []store.Tell {
	b.Helper()
	all := b.told()
	var got, keys []string
	for _, one := range all {
		got, keys = append(got, one.Space+": "+one.Notice.Subject), append(keys, one.Key)
	}
	slices.Sort(got)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		b.Errorf("%s: told\n got %q\nwant %q", what, got, want)
	}
	if slices.Sort(keys); len(slices.Compact(keys)) != len(all) {
		b.Errorf("%s: two notices have one key", what)
	}
	return all
}

// crash records the next death of an instance, which had been up so long.
func (b *binder) crash(release string, index int, up time.Duration) {
	b.Helper()
	pod := platform.NewGUID()
	if _, err := b.RecordCrash(b.Context(), platform.Crash{App: "a", Process: "a", Release: release, Index: index, PodUID: pod, Up: up,
		Exit: platform.Exit{ID: pod + "/1", Time: time.Now(), Description: "APP/PROC/WEB: Exited with status 1"},
		Log:  []platform.LogLine{{App: "a", At: time.Now(), Source: "APP/PROC/WEB", Instance: "0", Text: "password=hush"}}}); err != nil {
		b.Fatal(err)
	}
}

// asks has the app ask that its developers are told, or not.
func (b *binder) asks(enabled bool) {
	b.Helper()
	if _, err := b.UpdateApp(b.Context(), admin, "a", func(a *platform.App) error { return a.SetFeature(platform.FeatureNotices, enabled) }); err != nil {
		b.Fatal(err)
	}
}

// TestTellsOfCrashes: the third crash in a row is told of, or the first after it that somebody asks to be told of; once for each streak of a
// process, and only if the app asks for it.
func TestTellsOfCrashes(t *testing.T) {
	b := newBinder(t)
	const once = "s: App shop crashed three times"
	for range 5 {
		b.crash("r1", 0, 0)
	}
	b.subjects("an app that does not ask")
	b.asks(true)
	b.crash("r1", 1, 0)
	b.subjects("another instance, which is well so far")
	b.crash("r1", 0, 0)
	b.subjects("in the middle of a streak", "s: App shop crashed 6 times")
	for range 20 { // more than are remembered
		b.crash("r1", 0, 0)
	}
	for range 3 {
		b.crash("r1", 1, 0)
	}
	b.subjects("a streak is told of once, however long it lasts")
	for range 2 {
		b.crash("r2", 0, 0)
	}
	b.subjects("two crashes")
	b.crash("r2", 0, 0)
	one := b.subjects("the third", once)
	if text, err := json.Marshal(one); err != nil || strings.Contains(string(text), "hush") || !strings.Contains(string(text), "Exited with status 1") {
		t.Errorf("what is told: %s", text)
	}
	for index := range 3 {
		for range 4 {
			b.crash("r2", index, 0)
		}
	}
	b.subjects("the others of the same fault")

	// A streak ends when the instance has been well, and another begins.
	b.exec(`update exits set created_at = created_at - $1::interval where index > 0`, platform.StreakLasts)
	b.crash("r2", 0, platform.ForgetAfter)
	b.crash("r2", 0, 0)
	b.subjects("two after it was well")
	b.crash("r2", 0, 0)
	b.subjects("the next streak", once)

	// What nobody was told of keeps nothing from anybody.
	b.asks(false)
	for range 3 {
		b.crash("r4", 0, 0)
	}
	b.asks(true)
	for range 3 {
		b.crash("r4", 1, 0)
	}
	b.subjects("another instance, after a streak of which nobody was told", once)
	b.crash("r4", 0, 0)
	b.subjects("the first instance again, of the same fault")

	// Whoever sees a death, it is told of once.
	for range 2 {
		b.crash("r3", 0, 0)
	}
	third := platform.Crash{App: "a", Process: "a", Release: "r3", PodUID: "pod", Exit: platform.Exit{ID: "pod/1", Time: time.Now(), Description: "APP/PROC/WEB: Exited with status 1"}}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := b.RecordCrash(t.Context(), third); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	b.subjects("seen by many", once)
}

// fails has an operation fail as the workers have it fail.
func (b *binder) fails(kind platform.OperationKind, subject string) {
	b.Helper()
	b.exec(`insert into jobs (guid, owner, operation, state) values ('job', '', $1, 'PROCESSING')`, kind)
	b.exec(`insert into service_operations (guid, job_guid, kind, subject, request) values ('op', 'job', $1, $2, $3)`, kind, subject, b.seal(`{"Parameters":{"p":"hush"}}`, "service operation op"))
	t, err := b.Claim(b.Context(), "op", time.Minute)
	if err != nil {
		b.Fatal(err)
	}
	if err := b.Fail(b.Context(), t, platform.Verdict{Next: platform.NextFail, Words: "The service broker could not do it: no room."}); err != nil {
		b.Fatal(err)
	}
	b.exec(`delete from jobs`)
}

// TestTellsOfFailures: one notice for each space in which an app asks for it, and that has to do with the instance.
func TestTellsOfFailures(t *testing.T) {
	b := newBinder(t)
	for _, statement := range []string{
		`insert into spaces (guid, org_guid, name, cluster_id) values ('s2', 'o', 'next', 'default'), ('s3', 'o', 'far', 'default')`,
		`insert into apps (guid, space_guid, name, state) values ('a2', 's', 'also', 'STARTED'), ('b', 's2', 'guest', 'STARTED'), ('c', 's3', 'stranger', 'STARTED')`,
		`insert into service_instance_shares (instance_guid, space_guid) values ('i', 's2')`,
		`insert into service_bindings (guid, type, instance_guid, app_guid, space_guid, op_type, op_state) values ('bb', 'app', 'i', 'b', 's2', 'create', 'succeeded')`,
	} {
		b.exec(statement)
	}
	b.bind("ba", "create", "succeeded", "hush")
	b.fails(platform.InstanceUpdate, "i")
	b.subjects("nobody asks")
	b.exec(`update apps set notices = true`)
	const updating, unbinding = "Updating service instance 'my-db' failed", "Deleting the binding of app 'guest' to service instance 'my-db' failed"
	b.fails(platform.InstanceUpdate, "i")
	all := b.subjects("its own space, and that of an app bound to it", "s2: "+updating, "s: "+updating)
	text, err := json.Marshal(all)
	if err != nil || strings.Contains(string(text), "hush") || strings.Count(string(text), "no room") != 4 {
		t.Errorf("what is told: %s", text)
	}
	b.fails(platform.BindingDelete, "bb")
	b.subjects("a binding, in its own space", "s2: "+unbinding)
	b.fails(platform.InstanceDelete, "i") // its bindings go first
	b.subjects("a deletion", "s2: Deleting service instance 'my-db' failed", "s: Deleting service instance 'my-db' failed")
	b.exec(`update apps set notices = false where guid <> 'c'`)
	b.fails(platform.InstanceUpdate, "i")
	b.subjects("only strangers ask")
	b.exec(`update apps set notices = true`)
	b.fails(platform.BrokerUpdate, "br")
	b.subjects("a broker is nobody's app")
}
