package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proa-dev/proa/kit/pg/pgtest"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/store"
)

var admin = platform.Who{GUID: "admin", Scopes: []string{platform.ScopeAdmin}}

// withApps is a store with the apps a and b.
func withApps(t *testing.T) (*store.Store, *pgxpool.Pool) {
	t.Helper()
	pool := pgtest.New(t, store.Migrations(), store.Table)
	for _, statement := range []string{
		`insert into orgs (guid, name) values ('o', 'o')`,
		`insert into spaces (guid, org_guid, name, cluster_id) values ('s', 'o', 's', 'default')`,
		`insert into apps (guid, space_guid, name, lifecycle, stack, allow_ssh) values ('a', 's', 'a', 'buildpack', 'proa', true), ('b', 's', 'b', 'buildpack', 'proa', true)`,
		`insert into processes (guid, app_guid, type, command, instances, memory_mb, disk_mb, log_rate, health, readiness) values ('p', 'a', 'web', null, 2, 1, 1, -1, '{}', '{}')`,
	} {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return store.New(pool, nil), pool
}

func at(n int64) time.Time { return time.Unix(0, n) }

func texts(lines []platform.LogLine) string {
	var all []string
	for _, l := range lines {
		all = append(all, l.Text)
	}
	return strings.Join(all, " ")
}

func TestLogFilters(t *testing.T) {
	s, _ := withApps(t)
	err := s.AppendLog(t.Context(), []platform.LogLine{
		{App: "a", At: at(10), Source: "STG", Instance: "0", Text: "staging"},
		{App: "a", At: at(20), Source: "APP/PROC/WEB", Instance: "0", Text: "main", PodUID: "u1"},
		{App: "a", At: at(21), Source: "APP/PROC/WEB/SIDECAR/CLOCK", Instance: "0", Text: "clock", PodUID: "u1"},
		{App: "a", At: at(22), Source: "APP/PROC/WEB2", Instance: "1", Text: "other", PodUID: "u2"},
		{App: "a", At: at(5), Source: "APP/PROC/WEB", Instance: "1", Text: "saved", PodUID: "u3"}, // keeps its time
		{App: "a", At: at(1), Source: "API", Instance: "0", Text: "later"},                        // gets a later one
		{App: "b", At: at(1), Source: "API", Instance: "0", Text: "elsewhere"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		window store.LogWindow
		want   string
	}{
		{store.LogWindow{}, "saved staging main clock other later"},
		{store.LogWindow{Descending: true}, "later other clock main staging saved"},
		{store.LogWindow{From: 20, To: 22}, "main clock"},
		{store.LogWindow{Filter: platform.LogFilter{Process: "web"}}, "saved main clock"},
		{store.LogWindow{Filter: platform.LogFilter{Process: "Web", Instance: "0"}}, "main clock"},
		{store.LogWindow{Filter: platform.LogFilter{Sidecar: "clock"}}, "clock"},
		{store.LogWindow{Filter: platform.LogFilter{Sidecar: "lock"}}, ""},
		{store.LogWindow{Filter: platform.LogFilter{Instance: "0"}}, "main clock"},
		{store.LogWindow{Filter: platform.LogFilter{Source: "STG"}}, "staging"},
		{store.LogWindow{Filter: platform.LogFilter{Except: "STG"}}, "saved main clock other later"},
		{store.LogWindow{Without: map[string]int64{"u1": 21, "u3": 0}}, "staging main other later"},
		{store.LogWindow{Upto: 2}, "staging main"},
	} {
		c.window.Limit = 10
		if c.window.To == 0 {
			c.window.To = 1 << 62
		}
		lines, err := s.Log(t.Context(), admin, "a", c.window)
		if err != nil {
			t.Fatal(err)
		}
		if got := texts(lines); got != c.want {
			t.Errorf("%+v: %q, want %q", c.window, got, c.want)
		}
		for _, l := range lines { // the rule in SQL is the rule of the domain
			if !c.window.Filter.Fits(l.Source, l.Instance, l.Text) {
				t.Errorf("%+v has %+v", c.window.Filter, l)
			}
		}
	}
}

// TestLogExits: the exit record of an instance is among its lines.
func TestLogExits(t *testing.T) {
	s, _ := withApps(t)
	web, sidecar, web2 := exitRecord(t, "web", ""), exitRecord(t, "web", "clock"), exitRecord(t, "web2", "")
	err := s.AppendLog(t.Context(), []platform.LogLine{
		{App: "a", At: at(1), Source: "API", Instance: "0", Text: "Started app a."},
		{App: "a", At: at(2), Source: "API", Instance: "0", Text: web},
		{App: "a", At: at(3), Source: "API", Instance: "1", Text: sidecar},
		{App: "a", At: at(4), Source: "API", Instance: "1", Text: web2},
		{App: "a", At: at(5), Source: "APP/PROC/WEB", Instance: "0", Text: platform.ExitRecord},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		filter platform.LogFilter
		want   []string
	}{
		{platform.LogFilter{Process: "web"}, []string{web, sidecar, platform.ExitRecord}},
		{platform.LogFilter{Process: "web", Instance: "1"}, []string{sidecar}},
		{platform.LogFilter{Process: "WEB2"}, []string{web2}},
		{platform.LogFilter{Process: "we"}, nil},
		{platform.LogFilter{Sidecar: "clock", Instance: "0"}, []string{web}},
		{platform.LogFilter{Instance: "1"}, []string{sidecar, web2}},
		{platform.LogFilter{Instance: "1", Source: "APP/PROC/WEB"}, nil},
	} {
		lines, err := s.Log(t.Context(), admin, "a", store.LogWindow{To: 1 << 62, Limit: 10, Filter: c.filter})
		if err != nil {
			t.Fatal(err)
		}
		if got := texts(lines); got != strings.Join(c.want, " ") {
			t.Errorf("%+v: %q, want %q", c.filter, got, c.want)
		}
		for _, l := range lines {
			if !c.filter.Fits(l.Source, l.Instance, l.Text) {
				t.Errorf("%+v has %+v", c.filter, l)
			}
		}
	}
}

func exitRecord(t *testing.T, process, sidecar string) string {
	t.Helper()
	line, err := platform.Crash{App: "a", Exit: platform.Exit{Description: platform.Ended(process, sidecar, 1, false)}}.Line()
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func TestLogNews(t *testing.T) {
	s, _ := withApps(t)
	seen := []platform.Seen{{Process: "p", Release: "r", Count: 2, Instances: []platform.Instance{{Index: 0, Pod: "r-0", PodUID: "u0"}, {Index: 1}}}}
	news := func(after map[string]int64) map[string]store.LogNews {
		t.Helper()
		n, err := s.LogNews(t.Context(), after)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := news(map[string]int64{"a": 0, "gone": 0}); len(n) != 1 || len(n["a"].Pods) != 0 || n["a"].Namespace != (&platform.Space{GUID: "s"}).Namespace() || n["a"].Cluster != "default" {
		t.Errorf("%+v", n)
	}
	if err := s.RecordSeen(t.Context(), "default", seen); err != nil {
		t.Fatal(err)
	}
	if n := news(map[string]int64{"a": 0}); len(n["a"].Pods) != 0 { // the release is not the one that is wanted
		t.Errorf("%+v", n)
	}
	var lines []platform.LogLine
	for n := range 5 {
		lines = append(lines, platform.LogLine{App: "a", At: at(int64(n)), Text: fmt.Sprint(n)}, platform.LogLine{App: "b", At: at(int64(n)), Text: fmt.Sprint(n)})
	}
	if err := s.AppendLog(t.Context(), lines); err != nil {
		t.Fatal(err)
	}
	n := news(map[string]int64{"a": 4, "b": 0})
	if len(n["a"].Lines) != 3 || n["a"].Lines[0].Text != "2" || len(n["b"].Lines) != 5 || n["a"].Last != 9 || n["b"].Last != 10 {
		t.Errorf("%+v", n)
	}
	if number, err := s.LogNumber(t.Context(), "a", n["a"].Lines[0].At.UnixNano()); err != nil || number != 3 {
		t.Errorf("%d %v", number, err)
	}
}

func TestLogPods(t *testing.T) {
	s, pool := withApps(t)
	if _, err := pool.Exec(t.Context(), `update processes set release_guid = 'r'`); err != nil {
		t.Fatal(err)
	}
	seen := []platform.Seen{{Process: "p", Release: "r", Count: 2, Instances: []platform.Instance{{Index: 0, Pod: "r-0", PodUID: "u0"}, {Index: 1}}}}
	if err := s.RecordSeen(t.Context(), "default", seen); err != nil {
		t.Fatal(err)
	}
	place, err := s.LogPlace(t.Context(), admin, "a")
	if err != nil || len(place.Pods) != 1 || place.Pods[0] != (store.LogPod{Process: "web", Index: 0, Name: "r-0", UID: "u0"}) {
		t.Errorf("%+v %v", place, err)
	}
	if _, err := s.LogPlace(t.Context(), platform.Who{GUID: "stranger"}, "a"); err == nil {
		t.Error("a stranger may read")
	}
}

func TestSweepLog(t *testing.T) {
	s, pool := withApps(t)
	now := time.Now()
	// 30 lines of a are too old, and 50 of b too many.
	for _, fill := range []struct {
		app   string
		count int
		from  time.Time
	}{{"a", 30, now.Add(-8 * 24 * time.Hour)}, {"a", 40, now.Add(-6 * 24 * time.Hour)}, {"b", 10_050, now.Add(-time.Hour)}} {
		if _, err := pool.Exec(t.Context(), `insert into log_lines (app_guid, at, source, instance, stderr, text) select $1, $2::bigint + n, 'STG', '0', false, n::text from generate_series(1, $3) n`,
			fill.app, fill.from.UnixNano(), fill.count); err != nil {
			t.Fatal(err)
		}
	}
	if more, err := s.SweepLog(t.Context(), now); err != nil || more {
		t.Fatal(more, err)
	}
	for app, want := range map[string]string{"a": "40 1", "b": "10000 51"} {
		var got string
		if err := pool.QueryRow(t.Context(), `select count(*) || ' ' || min(text::int) from log_lines where app_guid = $1`, app).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %q, want %q, %v", app, got, want, err)
		}
	}
}
