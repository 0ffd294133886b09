package store_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/proa-dev/proa/kit/pg/pgtest"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/store"
)

// TestRecordCrash tells of the same death from several processes at once: it is written once, with all that belongs to it.
func TestRecordCrash(t *testing.T) {
	pool := pgtest.New(t, store.Migrations(), store.Table)
	s := store.New(pool, nil)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	count := func(query string) (n int) {
		t.Helper()
		must(pool.QueryRow(ctx, query).Scan(&n))
		return n
	}
	_, err := pool.Exec(ctx, `with o as (insert into orgs (guid, name) values ('o', 'o') returning guid), s as (insert into spaces (guid, org_guid, name, cluster_id) select 's', guid, 's', 'default' from o returning guid),
		a as (insert into apps (guid, space_guid, name, state) select 'a', guid, 'shop', 'STARTED' from s returning guid)
		insert into processes (guid, app_guid, type, instances, memory_mb, disk_mb, log_rate, health, readiness, release_guid) select 'p', guid, 'web', 1, 1, 1, 1, '{}', '{}', 'r1' from a`)
	must(err)
	see := func(i platform.Instance) {
		t.Helper()
		must(s.RecordSeen(ctx, "default", []platform.Seen{{Release: "r1", Process: "p", Count: 1, Instances: []platform.Instance{i}}}))
	}
	instance := func() platform.Instance {
		t.Helper()
		all, err := s.Instances(ctx, []string{"p"})
		must(err)
		return all["p"][0]
	}
	died := time.Now().Add(-time.Minute).Truncate(time.Microsecond)
	crash := func(run int) platform.Crash {
		pod := fmt.Sprint("pod", run)
		return platform.Crash{App: "a", Process: "p", Release: "r1", PodUID: pod, Node: "node-1", Exit: platform.Exit{ID: pod + "/1", Time: died, Description: "APP/PROC/WEB: Exited with status 1"},
			Log: []platform.LogLine{{App: "a", At: died, Source: "APP/PROC/WEB", Instance: "0", Text: "last words"}, {App: "a", At: died, Source: "APP/PROC/WEB", Instance: "0", Text: "at once"}}}
	}
	see(platform.Instance{Pod: "r-0", PodUID: "pod1", Run: "pod1/1", State: platform.InstanceRunning, Since: died})

	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if c, err := s.RecordCrash(ctx, crash(1)); err != nil || c.Count != 1 || !c.NextTry.IsZero() {
				t.Errorf("%v: %+v", err, c)
			}
		})
	}
	all.Wait()
	if n := count(`select count(*) from log_lines where source = 'API' and instance = '0' and not stderr and pod_uid = ''`); n != 1 {
		t.Errorf("there are %d exit records", n)
	}
	if n := count(`select count(*) from log_lines where source = 'APP/PROC/WEB' and pod_uid = 'pod1'`); n != 2 {
		t.Errorf("%d lines are saved", n)
	}
	if n := count(`select count(distinct at) from log_lines`); n != 3 {
		t.Errorf("three lines have %d times", n)
	}
	for kind, actor := range map[string]string{"app.crash": "a/app/shop", "audit.app.process.crash": "p/process/web"} {
		if n := count(fmt.Sprintf(`select count(*) from audit_events where type = '%s' and actor_guid || '/' || actor_type || '/' || actor_name = '%s' and target_guid = 'a' and target_type = 'app'
			and space_guid = 's' and org_guid = 'o' and data ->> 'exit_description' = 'APP/PROC/WEB: Exited with status 1' and (data ->> 'crash_count')::int = 1`, kind, actor)); n != 1 {
			t.Errorf("there are %d events %s", n, kind)
		}
	}

	// The run is not missed, nor one that follows it in the same pod; and who asks is told.
	runs, exits, err := s.Runs(ctx, "default", []string{"pod1/1", "pod2/1"})
	must(err)
	if len(runs) != 1 || runs[0].Instance.Run != "" || runs[0].LastPod != "pod1" || runs[0].Instance.Crashes != 1 || !exits["pod1/1"] || exits["pod2/1"] {
		t.Errorf("the runs are %+v, and the exits %v", runs, exits)
	}
	if i := instance(); i.Crashes != 1 || i.LastExit == nil || i.LastExit.Description != "APP/PROC/WEB: Exited with status 1" || !i.LastExit.Time.Equal(died) || !i.NextTry.IsZero() {
		t.Errorf("the instance is %+v", i)
	}

	// From the fourth on it waits.
	died = time.Now().Truncate(time.Microsecond)
	for run := 2; run <= 5; run++ {
		c, err := s.RecordCrash(ctx, crash(run))
		must(err)
		if c.Count != run || !c.NextTry.IsZero() != (run > 3) {
			t.Errorf("crash %d is number %d, and the next try is at %s", run, c.Count, c.NextTry)
		}
	}
	see(platform.Instance{Pod: "r-0", State: platform.InstanceCrashed, Since: died})
	if i := instance(); i.Crashes != 5 || !i.NextTry.Equal(died.Add(time.Minute)) {
		t.Errorf("the instance is %+v", i)
	}
	again, err := s.RecordCrash(ctx, crash(5))
	must(err)
	if again.Count != 5 || !again.NextTry.Equal(died.Add(time.Minute)) {
		t.Errorf("told again, it is %+v", again)
	}

	// After five minutes up nobody speaks of it any more, nor does the next release.
	see(platform.Instance{Pod: "r-0", PodUID: "pod6", Run: "pod6/1", State: platform.InstanceRunning, Since: time.Now().Add(-platform.ForgetAfter)})
	if i := instance(); i.Crashes != 0 || i.LastExit == nil || !i.NextTry.IsZero() || i.PodUID != "pod6" {
		t.Errorf("the instance is %+v", i)
	}
	_, err = pool.Exec(ctx, `update processes set release_guid = 'r2'`)
	must(err)
	if i := instance(); i.Crashes != 0 || i.LastExit != nil {
		t.Errorf("the instance of the next release is %+v", i)
	}

	// One that crashes for ever does not fill the table, nor take from one of a release that is still known; and of what is deleted nothing is told.
	_, err = pool.Exec(ctx, `insert into releases (guid, app_guid, process_guid, version, body) values ('r0', 'a', 'p', 1, '')`)
	must(err)
	for i, release := range []string{"r0", "forgotten"} {
		other := crash(100 + i)
		other.Release = release
		_, err := s.RecordCrash(ctx, other)
		must(err)
	}
	for run := 10; run < 40; run++ {
		_, err := s.RecordCrash(ctx, crash(run))
		must(err)
	}
	if n := count(`select count(*) from exits where release_guid = 'r1'`); n != 10 {
		t.Errorf("%d exits are remembered", n)
	}
	if n, known := count(`select count(*) from exits where release_guid <> 'r1'`), count(`select count(*) from exits where release_guid = 'r0'`); n != 1 || known != 1 {
		t.Errorf("%d exits of other releases are remembered, %d of one that is known", n, known)
	}
	c := crash(50)
	c.Process = "none"
	_, err = s.RecordCrash(ctx, c)
	must(err)
	if n := count(`select count(*) from exits where pod_uid = 'pod50'`); n != 0 {
		t.Error("a crash of nothing is recorded")
	}
}
