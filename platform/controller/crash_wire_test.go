package controller

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/proa-dev/proa/kit/pg/pgtest"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/kube"
	"github.com/proa-dev/proa/platform/store"
)

// A crashWorld has a database, a clock, and a cluster that answers for nothing but pods and their logs.
type crashWorld struct {
	*term
	clock atomic.Int64 // since now
	log   func(w http.ResponseWriter, namespace string)
	count func(query string) int
}

func newCrashWorld(t *testing.T) *crashWorld {
	w := &crashWorld{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}/pods/{pod}/log", func(out http.ResponseWriter, r *http.Request) { w.log(out, r.PathValue("namespace")) })
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}/pods/{pod}", func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(out, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"uid":%q}}`, r.PathValue("pod"), r.PathValue("pod"))
	})
	mux.HandleFunc("DELETE /api/v1/namespaces/{namespace}/pods/{pod}", func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(out, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	config := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],"clusters":[{"name":"c","cluster":{"server":%q}}]}`, server.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster, err := kube.Connect(config, kube.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	pool := pgtest.New(t, store.Migrations(), store.Table)
	w.count = func(query string) (n int) {
		t.Helper()
		if err := pool.QueryRow(t.Context(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if _, err := pool.Exec(t.Context(), `with o as (insert into orgs (guid, name) values ('o', 'o') returning guid),
		s as (insert into spaces (guid, org_guid, name, cluster_id) select 's', guid, 's', 'default' from o returning guid),
		a as (insert into apps (guid, space_guid, name, state) select 'app', guid, 'shop', 'STARTED' from s returning guid),
		p as (insert into processes (guid, app_guid, type, instances, memory_mb, disk_mb, log_rate, health, readiness) select 'p', guid, 'web', 1, 1, 1, 1, '{}', '{}' from a returning guid)
		insert into releases (guid, app_guid, process_guid, version, body) select 'r-' || namespace, 'app', p.guid, version, '' from p, (values ('many', 1), ('other', 2)) known(namespace, version)`); err != nil {
		t.Fatal(err)
	}
	w.term = &term{Controller: &Controller{
		ID: "default", Store: store.New(pool, nil), Cluster: cluster, Log: slog.New(slog.DiscardHandler), Metrics: NewMetrics(prometheus.NewRegistry()),
		Now: func() time.Time { return now.Add(time.Duration(w.clock.Load())) },
	}}
	return w
}

// crashed are instances of a namespace that have ended, for the first time.
func (w *crashWorld) crashed(p *picture, namespace string, instances int) {
	release := platform.Release{GUID: "r-" + namespace, AppGUID: "app", ProcessGUID: "p", ProcessType: "web", Namespace: namespace}
	p.wanted = append(p.wanted, platform.Wanted{Instances: instances, Release: release})
	seen := platform.Seen{Namespace: namespace, Release: release.GUID, Count: instances}
	for index := range instances {
		uid := fmt.Sprint(namespace, index)
		run := platform.Instance{Index: index, Pod: uid, PodUID: uid, Run: uid + "/1", State: platform.InstanceRunning, Since: now.Add(-time.Hour)}
		p.deaths.runs = append(p.deaths.runs, store.Run{Release: release.GUID, Instance: run})
		run.State, run.Since, run.LastExit = platform.InstanceCrashed, now, &platform.Exit{ID: run.Run, Time: now, Description: "ended"}
		seen.Instances = append(seen.Instances, run)
	}
	p.seen = append(p.seen, seen)
}

// TestLastLinesAreAskedForTwice lets a node fail to give a log: once, and for good.
func TestLastLinesAreAskedForTwice(t *testing.T) {
	for name, c := range map[string]struct {
		forGood bool
		lines   int
	}{"once": {lines: 1}, "for good": {forGood: true}} {
		t.Run(name, func(t *testing.T) {
			w := newCrashWorld(t)
			var failing atomic.Bool
			failing.Store(true)
			w.log = func(out http.ResponseWriter, _ string) {
				if failing.Load() {
					out.WriteHeader(http.StatusInternalServerError)
					return
				}
				_, _ = fmt.Fprintln(out, now.Add(-time.Second).Format(time.RFC3339Nano), "last words")
			}
			p := picture{}
			w.crashed(&p, "n", 1)
			seen := w.actOnCrashes(t.Context(), p, map[string]bool{})
			if i := seen[0].Instances[0]; i.Run != "n0/1" || i.State != platform.InstanceRunning || w.count(`select count(*) from exits`) != 0 {
				t.Fatalf("without its last lines it is recorded as %+v", i)
			}
			failing.Store(c.forGood)
			w.clock.Add(int64(2 * time.Second))
			w.actOnCrashes(t.Context(), p, map[string]bool{})
			if n := w.count(`select count(*) from exits where crashes = 1`); n != 1 {
				t.Errorf("%d crashes are recorded", n)
			}
			if n := w.count(`select count(*) from log_lines where source = 'APP/PROC/WEB'`); n != c.lines {
				t.Errorf("%d lines are saved, want %d", n, c.lines)
			}
		})
	}
}

// TestManyCrashes lets hundreds crash on a node that is slow: those of others have their turn in the same pass, and it ends in time.
func TestManyCrashes(t *testing.T) {
	w := newCrashWorld(t)
	w.log = func(out http.ResponseWriter, namespace string) {
		if strings.HasPrefix(namespace, "many") {
			w.clock.Add(int64(100 * time.Millisecond))
		}
		out.WriteHeader(http.StatusNotFound)
	}
	p := picture{}
	w.crashed(&p, "many", 200)
	w.crashed(&p, "other", 3)
	seen := w.actOnCrashes(t.Context(), p, map[string]bool{})
	if n := w.count(`select count(*) from exits where release_guid = 'r-other'`); n != 3 {
		t.Errorf("of others, %d crashes are recorded", n)
	}
	first := w.count(`select count(*) from exits`)
	if took := w.Now().Sub(now); first > 60 || took > crashesFor+parallel*200*time.Millisecond {
		t.Errorf("%d crashes are recorded in one pass, which took %s", first, took)
	}
	if w.due.After(w.Now()) || w.due.IsZero() {
		t.Errorf("the next pass is due at %s", w.due)
	}
	left := 0
	for _, i := range seen[0].Instances {
		if i.State == platform.InstanceRunning && i.Since.Equal(now.Add(-time.Hour)) && i.Run != "" {
			left++
		}
	}
	if left != 203-first {
		t.Errorf("%d of %d are left for the next pass", left, 203-first)
	}
}
