package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/api"
	"github.com/proa-dev/proa/platform/kube"
	"github.com/proa-dev/proa/platform/store"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// statements notes what is asked of the database.
type statements struct {
	mu  sync.Mutex
	all []string
}

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, q.SQL)
	return ctx
}

func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// traced lets a server use its database through a connection that is listened to.
func traced(w *world, server *api.Server) *statements {
	w.t.Helper()
	heard, config := &statements{}, w.pool.Config()
	config.ConnConfig.Tracer = heard
	pool, err := pgxpool.NewWithConfig(w.t.Context(), config)
	must(w.t, err)
	w.t.Cleanup(pool.Close)
	server.Store = store.New(pool, sealing())
	return heard
}

func TestInstancesOfASpaceCostOneStatement(t *testing.T) {
	var server *api.Server
	w := newWorld(t, func(s *api.Server) { server = s })
	_, space, dev := w.place()
	for _, name := range []string{"blue", "green", "red"} {
		app := w.startable(space, name, platform.Droplet{Processes: []platform.DropletProcess{{Type: "web"}, {Type: "worker"}}})
		do[v3.App](w, 200, http.MethodPost, "/v3/apps/"+app.GUID+"/actions/start", dev, nil)
	}
	heard := traced(w, server)
	ask := func(path string) (processes int, asked []string) {
		w.call(http.MethodGet, path, dev, nil) // connections and who asks are known from now on
		heard.mu.Lock()
		heard.all = nil
		heard.mu.Unlock()
		list := do[v3.List[v3.Process]](w, 200, http.MethodGet, path, dev, nil).Resources
		for _, p := range list {
			if strings.Contains(path, "embed") && p.Type == "web" && (len(p.Seen) != 1 || p.Seen[0].State != "STARTING") {
				t.Errorf("got %+v", p)
			}
		}
		return len(list), slices.Clone(heard.all)
	}
	plain := "/v3/processes?space_guids=" + space.GUID
	_, without := ask(plain)
	processes, with := ask(plain + "&embed=process_instances")
	if processes != 6 || len(with) != len(without)+1 {
		t.Errorf("%d processes without instances cost %d statements, and with them %d:\n%s", processes, len(without), len(with), strings.Join(with, "\n\n"))
	}
}

// oneNode is an API server that knows one node, on which the instance "pod-0" runs.
func oneNode(t *testing.T, namespace func() string) *kube.Cluster {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer let me in":
			http.Error(rw, "Unauthorized", http.StatusUnauthorized)
		case r.URL.Path == "/api/v1/nodes/node-1/proxy/stats/summary":
			fmt.Fprintf(rw, `{"pods":[{"podRef":{"name":"pod-0","namespace":%q},"containers":[{"name":"app","cpu":{"time":"2026-01-02T03:04:05Z","usageNanoCores":50000000},
				"memory":{"workingSetBytes":1000},"rootfs":{"usedBytes":20},"logs":{"usedBytes":3}}]}]}`, namespace())
		default:
			http.Error(rw, "Not found", http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(file, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
		"clusters":[{"name":"c","cluster":{"server":%q,"insecure-skip-tls-verify":true}}],"users":[{"name":"u","user":{"token":"let me in"}}]}`, server.URL), 0o600))
	c, err := kube.Connect(file, kube.Settings{})
	must(t, err)
	return c
}

func TestStatsAreMeasured(t *testing.T) {
	var namespace string
	w := newWorld(t, func(s *api.Server) {
		s.Clusters = map[string]*kube.Cluster{"default": oneNode(t, func() string { return namespace })}
	})
	_, space, dev := w.place()
	namespace = (&platform.Space{GUID: space.GUID}).Namespace()
	app := w.startable(space, "blue", platform.Droplet{})
	do[v3.App](w, 200, http.MethodPost, "/v3/apps/"+app.GUID+"/actions/start", dev, nil)
	release := do[v3.Process](w, 200, http.MethodGet, "/v3/processes/"+app.GUID, dev, nil).Version
	seen := platform.Seen{Release: release, Process: app.GUID, App: app.GUID, Count: 1,
		Instances: []platform.Instance{{Index: 0, Pod: "pod-0", State: platform.InstanceRunning, Since: time.Now(), Node: "node-1"}}}
	must(t, w.store.RecordSeen(t.Context(), "default", []platform.Seen{seen}))
	one := do[v3.Stats](w, 200, http.MethodGet, "/v3/processes/"+app.GUID+"/stats", dev, nil).Resources[0]
	u := one.Usage
	if u.CPU == nil || u.Memory == nil || u.Disk == nil || *u.CPU != 0.05 || *u.CPUEntitlement != 0.5 || *u.Memory != 1000 || *u.Disk != 23 || time.Time(*u.Time).Year() != 2026 {
		t.Errorf("got %+v", one)
	}
	if one.Processes != nil || one.Crashes == nil || *one.Crashes != 0 || one.NextTry != nil || one.LastExit != nil {
		t.Errorf("got %+v", one)
	}
	seen.Instances[0].Node = "node-2" // the cluster knows nothing of it: that is no error
	must(t, w.store.RecordSeen(t.Context(), "default", []platform.Seen{seen}))
	if one := do[v3.Stats](w, 200, http.MethodGet, "/v3/processes/"+app.GUID+"/stats", dev, nil).Resources[0]; one.Usage.CPU != nil || one.State != "RUNNING" {
		t.Errorf("got %+v", one)
	}
}

func TestStatsTellOfCrashes(t *testing.T) {
	w := newWorld(t)
	_, space, dev := w.place()
	app := w.startable(space, "blue", platform.Droplet{})
	do[v3.App](w, 200, http.MethodPost, "/v3/apps/"+app.GUID+"/actions/start", dev, nil)
	release := do[v3.Process](w, 200, http.MethodGet, "/v3/processes/"+app.GUID, dev, nil).Version
	crash := func(n int) v3.InstanceStats {
		t.Helper()
		uid := fmt.Sprint("uid-", n)
		_, err := w.store.RecordCrash(t.Context(), platform.Crash{App: app.GUID, Process: app.GUID, Release: release, PodUID: uid,
			Exit: platform.Exit{ID: uid + "/", Time: time.Now(), Description: "APP/PROC/WEB/SIDECAR/CLOCK: Exited with status 1"}})
		must(t, err)
		seen := platform.Seen{Release: release, Process: app.GUID, App: app.GUID, Count: 1,
			Instances: []platform.Instance{{Index: 0, PodUID: uid, Run: uid + "/", State: platform.InstanceCrashed, Since: time.Now(), Details: "The clock stopped."}}}
		must(t, w.store.RecordSeen(t.Context(), "default", []platform.Seen{seen}))
		return do[v3.Stats](w, 200, http.MethodGet, "/v3/processes/"+app.GUID+"/stats", dev, nil).Resources[0]
	}
	if one := crash(1); *one.Crashes != 1 || one.NextTry != nil || *one.Details != "The clock stopped." || one.LastExit.Description != "APP/PROC/WEB/SIDECAR/CLOCK: Exited with status 1" {
		t.Errorf("after the first: %+v", one)
	}
	crash(2)
	crash(3)
	one := crash(4)
	if *one.Crashes != 4 || one.NextTry == nil || time.Until(time.Time(*one.NextTry)) < 25*time.Second || time.Since(time.Time(one.LastExit.At)) > time.Minute {
		t.Fatalf("after the fourth: %+v", one)
	}
	if got := *one.Details; got != "The clock stopped. Restarts in 30s." && got != "The clock stopped. Restarts in 29s." {
		t.Errorf("the details are %q", got)
	}
}
