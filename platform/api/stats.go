package api

import (
	"net/http"
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
	stats := v3.Stats{Resources: []v3.InstanceStats{}}
	for _, i := range seen[p.GUID] {
		stats.Resources = append(stats.Resources, instance(p, i, time.Now()))
	}
	return web.JSON(w, http.StatusOK, stats)
}

func instance(p platform.Process, i platform.Instance, now time.Time) v3.InstanceStats {
	shown := v3.InstanceStats{Type: p.Type, Index: i.Index, State: string(i.State), Routable: &i.Ready, Host: unlessEmpty(i.Node), InternalIP: unlessEmpty(i.Address), Ports: []v3.Port{},
		Uptime: max(0, int64(now.Sub(i.Since)/time.Second)), MemoryQuota: int64(p.MemoryMB) * megabyte, DiskQuota: int64(p.DiskMB) * megabyte, LogRate: p.LogRateBytes,
		FDsQuota: platform.MaxFiles, Details: unlessEmpty(i.Details)}
	if i.State == platform.InstanceRunning {
		at := v3.Time(now)
		shown.Usage.Time = &at // what is used is not measured yet
	}
	return shown
}

func unlessEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
