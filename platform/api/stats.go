package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	v3 "github.com/proa-dev/proa/platform/v3"
)

const megabyte = 1 << 20

// getStats shows the instances that a process should have. Clients take an empty list for success, so those not seen yet are in it.
func (s *Server) getStats(w http.ResponseWriter, r *http.Request, who platform.Who) error {
	p, err := s.oneProcess(r, who)
	if err != nil {
		return err
	}
	seen, err := s.Store.Instances(r.Context(), []string{p.GUID})
	if err != nil {
		return err
	}
	used, err := s.usage(r.Context(), who, p.GUID, seen[p.GUID])
	if err != nil {
		return err
	}
	stats, now := v3.Stats{Resources: []v3.InstanceStats{}}, time.Now()
	for _, i := range seen[p.GUID] {
		shown := instance(p, i, now)
		if u, measured := used[i.Index]; measured {
			measure(&shown, p, u)
		}
		stats.Resources = append(stats.Resources, shown)
	}
	return web.JSON(w, http.StatusOK, stats)
}

// usage is what the instances of a process use, as far as their cluster says so in time.
func (s *Server) usage(ctx context.Context, who platform.Who, process string, seen []platform.Instance) (map[int]platform.Usage, error) {
	if !slices.ContainsFunc(seen, func(i platform.Instance) bool { return i.Pod != "" }) {
		return nil, nil
	}
	home, err := s.Store.Home(ctx, who, process)
	if err != nil {
		return nil, err
	}
	cluster := s.Clusters[home.Cluster]
	if cluster == nil {
		return nil, nil
	}
	return s.meter.Measure(ctx, cluster, home, seen), nil
}

func instance(p platform.Process, i platform.Instance, now time.Time) v3.InstanceStats {
	shown := v3.InstanceStats{Type: p.Type, Index: i.Index, State: string(i.State), Routable: &i.Ready, Host: unlessEmpty(i.Node), InternalIP: unlessEmpty(i.Address), Ports: []v3.Port{},
		Uptime: max(0, int64(now.Sub(i.Since)/time.Second)), MemoryQuota: int64(p.MemoryMB) * megabyte, DiskQuota: int64(p.DiskMB) * megabyte, LogRate: p.LogRateBytes,
		FDsQuota: platform.MaxFiles, Details: unlessEmpty(details(i, now)), Crashes: &i.Crashes}
	if i.State == platform.InstanceRunning {
		shown.Usage.Time = at(now)
	}
	if e := i.LastExit; e != nil {
		shown.LastExit = &v3.LastExit{Description: e.Description, At: v3.Time(e.Time)}
	}
	if !i.NextTry.IsZero() {
		shown.NextTry = at(i.NextTry)
	}
	return shown
}

// details say why an instance does not run, and when it will be tried again. Clients show them as they are.
func details(i platform.Instance, now time.Time) string {
	if i.NextTry.IsZero() {
		return i.Details
	}
	text := "Restarts now."
	if wait := i.NextTry.Sub(now).Round(time.Second); wait > 0 {
		text = fmt.Sprintf("Restarts in %s.", wait)
	}
	if i.Details == "" {
		return text
	}
	return strings.TrimRight(i.Details, ". ") + ". " + text
}

// measure adds what an instance uses.
func measure(shown *v3.InstanceStats, p platform.Process, u platform.Usage) {
	shown.Usage.CPU, shown.Usage.Memory, shown.Usage.Disk = u.CPU, u.Memory, u.Disk
	if !u.Time.IsZero() {
		shown.Usage.Time = at(u.Time)
	}
	if u.CPU != nil {
		shown.Usage.CPUEntitlement = new(*u.CPU * 1000 / float64(platform.MilliCPU(p.MemoryMB)))
	}
	for _, one := range u.Processes {
		process := v3.ProcessStats{Type: "main", Name: p.Type, PID: one.PID, State: one.State, CPU: one.CPU, Memory: one.Memory, Reserved: one.Reserved}
		if one.Sidecar != "" {
			process.Type, process.Name = "sidecar", one.Sidecar
		}
		if !one.Since.IsZero() {
			process.Since = at(one.Since)
		}
		shown.Processes = append(shown.Processes, process)
	}
}

func at(t time.Time) *v3.Time { return new(v3.Time(t)) }

func unlessEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
