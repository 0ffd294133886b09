package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/proa-dev/proa/platform"
)

const (
	maxSummary   = 32 << 20         // some 3 KB for each container of a node
	firstSamples = 25 * time.Second // so long a container's share may be of a time before it ran, or of none: its average is better
)

// nodeSummary is what the kubelet says about its node, as far as we read it.
type nodeSummary struct {
	Pods []struct {
		Ref struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"podRef"`
		Containers []struct {
			Name    string    `json:"name"`
			Started time.Time `json:"startTime"`
			CPU     struct {
				Time        time.Time `json:"time"`
				NanoCores   *int64    `json:"usageNanoCores"`
				NanoSeconds *int64    `json:"usageCoreNanoSeconds"`
			} `json:"cpu"`
			Memory struct {
				WorkingSet *int64 `json:"workingSetBytes"` // what counts against the limit
			} `json:"memory"`
			Rootfs usedBytes `json:"rootfs"`
			Logs   usedBytes `json:"logs"`
		} `json:"containers"`
	} `json:"pods"`
}

type usedBytes struct {
	Used *int64 `json:"usedBytes"`
}

// summary reads from the kubelet what the instances on its node use.
func (c *Cluster) summary(ctx context.Context, node string) (map[string]platform.Usage, error) {
	body, err := c.core.RESTClient().Get().Resource("nodes").Name(node).SubResource("proxy").Suffix("stats", "summary").SetHeader("Accept", "application/json").Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("summary of %s: %w", node, err)
	}
	defer func() { _ = body.Close() }()
	var s nodeSummary
	if err := json.NewDecoder(io.LimitReader(body, maxSummary)).Decode(&s); err != nil {
		return nil, fmt.Errorf("summary of %s: %w", node, err)
	}
	return s.usage(), nil
}

func (s nodeSummary) usage() map[string]platform.Usage {
	all := map[string]platform.Usage{}
	for _, p := range s.Pods {
		for _, c := range p.Containers {
			if c.Name != appContainer {
				continue
			}
			u := platform.Usage{Time: c.CPU.Time, Memory: c.Memory.WorkingSet}
			age := c.CPU.Time.Sub(c.Started)
			switch {
			case age > leastBetween && age < firstSamples && c.CPU.NanoSeconds != nil:
				u.CPU = new(float64(*c.CPU.NanoSeconds) / float64(age))
			case c.CPU.NanoCores != nil:
				u.CPU = new(float64(*c.CPU.NanoCores) / 1e9)
			}
			if c.Rootfs.Used != nil && c.Logs.Used != nil {
				u.Disk = new(*c.Rootfs.Used + *c.Logs.Used)
			}
			all[p.Ref.Namespace+"/"+p.Ref.Name] = u
		}
	}
	return all
}
