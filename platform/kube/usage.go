package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/proa-dev/proa/platform"
)

const (
	usagePatience = 2 * time.Second
	usageFresh    = 5 * time.Second
	statusFailed  = 10 * time.Second // an instance whose pid 1 does not answer is left alone for so long
	statusAsked   = 20               // instances of one process, at the most
)

// Meter tells what instances use. The kubelet of a node knows it of whole containers, and pid 1 of an instance of the processes in it. Both
// cost the node, an exec a tenth of a second, so what they say is kept for 5 s and for everybody who asks.
type Meter struct {
	nodes    *memo[map[string]platform.Usage] // by namespace and pod
	insides  *memo[inside]
	patience time.Duration
}

// NewMeter makes one that answers within 2 s.
func NewMeter() *Meter {
	return &Meter{nodes: newMemo[map[string]platform.Usage](usageFresh, usageFresh), insides: newMemo[inside](usageFresh, statusFailed), patience: usagePatience}
}

// Measure answers for the instances of a process, by their index, with what came in time.
func (m *Meter) Measure(ctx context.Context, c *Cluster, home platform.Home, instances []platform.Instance) map[int]platform.Usage {
	ctx, cancel := context.WithTimeout(ctx, m.patience)
	defer cancel()
	var there, asked []platform.Instance
	for _, i := range instances {
		if i.Pod == "" || i.Node == "" || i.State != platform.InstanceRunning && i.State != platform.InstanceStarting {
			continue
		}
		there = append(there, i)
		if i.State == platform.InstanceRunning && len(asked) < statusAsked {
			asked = append(asked, i)
		}
	}
	said := make([]inside, len(asked))
	var wait sync.WaitGroup
	for n, i := range asked {
		wait.Go(func() { said[n] = m.inside(ctx, c, home, i) })
	}
	whole := m.whole(ctx, c, home, there)
	wait.Wait()
	for n, i := range asked {
		if said[n].processes != nil {
			u := whole[i.Index]
			u.Processes = home.Believe(said[n].processes, time.Now())
			whole[i.Index] = u
		}
	}
	return whole
}

// whole asks the nodes of some instances.
func (m *Meter) whole(ctx context.Context, c *Cluster, home platform.Home, there []platform.Instance) map[int]platform.Usage {
	on := map[string][]platform.Instance{}
	for _, i := range there {
		on[i.Node] = append(on[i.Node], i)
	}
	all := map[int]platform.Usage{}
	var mu sync.Mutex
	var wait sync.WaitGroup
	for node, instances := range on {
		wait.Go(func() {
			key := home.Cluster + "/" + node
			pods, err := m.nodes.get(ctx, key, key, func(ctx context.Context, _ map[string]platform.Usage) (map[string]platform.Usage, error) {
				return c.summary(ctx, node)
			})
			if err != nil {
				return // what is not known is left out
			}
			mu.Lock()
			defer mu.Unlock()
			for _, i := range instances {
				if u, measured := pods[home.Namespace+"/"+i.Pod]; measured {
					all[i.Index] = u
				}
			}
		})
	}
	wait.Wait()
	return all
}

// inside asks pid 1 of an instance. A run of it that begins anew is another question: its counters begin anew too.
func (m *Meter) inside(ctx context.Context, c *Cluster, home platform.Home, i platform.Instance) inside {
	owner := home.Cluster + "/" + home.Namespace
	said, err := m.insides.get(ctx, owner, fmt.Sprint(owner, "/", i.Pod, "/", i.Since.UnixNano()), func(ctx context.Context, before inside) (inside, error) {
		return c.inside(ctx, home.Namespace, i.Pod, before)
	})
	if err != nil {
		return inside{} // what is not known is left out
	}
	return said
}
