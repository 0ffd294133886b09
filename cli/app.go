package cli

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/proa-dev/proa/kit/fault"
	v3 "github.com/proa-dev/proa/platform/v3"
)

var appCommand = command{
	name: "app", args: "APP", group: "Apps", short: "Show an app: its routes, processes, sidecars and instances",
	examples: []string{"proa app shop", "proa app shop --guid --process web", "proa app shop --output json"},
	needs:    aSpace,
	setup: func(f *flags) action {
		guid, process := f.on("guid", "print only the id of the app"), f.text("process", "TYPE", "with --guid: print the id of this process instead")
		f.output()
		return func(ctx context.Context, s *session, args []string) error {
			if *process != "" && !*guid {
				return usage("--process needs --guid.")
			}
			a, err := s.findApp(ctx, args[0])
			if err != nil {
				return err
			}
			if *process != "" {
				return s.printProcessID(ctx, a, *process)
			}
			if *guid {
				s.say("%s", a.GUID)
				return nil
			}
			return s.showApp(ctx, a)
		}
	},
}

func (s *session) printProcessID(ctx context.Context, a v3.App, kind string) error {
	all, err := s.processesOf(ctx, a)
	if err == nil {
		all, err = ofType(all, a, kind, "proa app --guid")
	}
	if err != nil {
		return err
	}
	s.say("%s", all[0].GUID)
	return nil
}

func (s *session) findApp(ctx context.Context, name string) (v3.App, error) {
	a, err := v3.First[v3.App](ctx, s.api, "/v3/apps?names="+queryName(name)+"&space_guids="+url.QueryEscape(s.cfg.Space.GUID))
	if err != nil {
		return v3.App{}, err
	}
	if a == nil {
		return v3.App{}, s.notHere(ctx, "app", "/v3/apps", name, "proa apps")
	}
	return *a, nil
}

// processesOf are the processes of an app, web first.
func (s *session) processesOf(ctx context.Context, a v3.App) ([]v3.Process, error) {
	all, err := v3.All[v3.Process](ctx, s.api, "/v3/apps/"+url.PathEscape(a.GUID)+"/processes")
	slices.SortStableFunc(all, webFirst)
	return all, err
}

func webFirst(a, b v3.Process) int {
	switch {
	case a.Type == b.Type:
		return 0
	case a.Type == "web":
		return -1
	case b.Type == "web":
		return 1
	}
	return 0
}

// ofType leaves the processes of a type: during a deployment there may be several. There is at least one; the command is what to try
// when there is not.
func ofType(all []v3.Process, a v3.App, kind, command string) ([]v3.Process, error) {
	var found []v3.Process
	var types []string
	for _, p := range all {
		if types = append(types, p.Type); strings.EqualFold(p.Type, kind) {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		return nil, missing(command+" "+shell(a.Name)+" --process TYPE", "App %s has no process %s. It has: %s.", a.Name, kind, firstOf(strings.Join(slices.Compact(types), ", "), "none"))
	}
	return found, nil
}

// summary is all there is to see of an app.
type summary struct {
	v3.App
	Routes     []v3.Route     `json:"routes"`
	Droplet    *v3.Droplet    `json:"current_droplet"`
	Processes  []running      `json:"processes"`
	Deployment *v3.Deployment `json:"deployment"` // that goes on
	Notices    bool           `json:"notifications"`
}

// running is a process and how its instances are.
type running struct {
	v3.Process
	Sidecars []v3.Sidecar       `json:"sidecars"`
	Stats    []v3.InstanceStats `json:"stats"`
}

func (s *session) showApp(ctx context.Context, a v3.App) error {
	sum, err := s.summarize(ctx, a)
	if err != nil {
		return err
	}
	if s.flags.json {
		return s.json(sum)
	}
	s.printApp(sum)
	return nil
}

func (s *session) summarize(ctx context.Context, a v3.App) (summary, error) {
	sum, base := summary{App: a}, "/v3/apps/"+url.PathEscape(a.GUID)
	var err error
	if sum.Routes, err = v3.All[v3.Route](ctx, s.api, base+"/routes"); err != nil {
		return sum, err
	}
	if sum.Deployment, err = s.activeDeployment(ctx, a); err != nil {
		return sum, err
	}
	if sum.Notices, err = s.notices(ctx, a); err != nil {
		return sum, err
	}
	var d v3.Droplet
	switch err := s.get(ctx, base+"/droplets/current", &d); {
	case err == nil:
		sum.Droplet = &d
	case !fault.Is(err, fault.KindNotFound): // an app that was never staged has none
		return sum, err
	}
	processes, err := s.processesOf(ctx, a)
	if err != nil {
		return sum, err
	}
	for _, p := range processes {
		r := running{Process: p}
		if r.Sidecars, err = v3.All[v3.Sidecar](ctx, s.api, "/v3/processes/"+url.PathEscape(p.GUID)+"/sidecars"); err != nil {
			return sum, err
		}
		if r.Stats, err = s.stats(ctx, p.GUID); err != nil {
			return sum, err
		}
		sum.Processes = append(sum.Processes, r)
	}
	return sum, nil
}

func (s *session) stats(ctx context.Context, process string) ([]v3.InstanceStats, error) {
	var reply v3.Stats
	err := s.get(ctx, "/v3/processes/"+url.PathEscape(process)+"/stats", &reply)
	return reply.Resources, err
}

func (s *session) printApp(sum summary) {
	rows := [][2]string{{"name", clean(sum.Name)}, {"requested state", s.ofState(sum.State)}, {"routes", routesTo(sum.App, sum.Routes)}}
	if sum.Deployment != nil {
		rows = append(rows, [2]string{"deployment", progressOf(*sum.Deployment)})
	}
	if d := sum.Droplet; d != nil {
		rows = append(rows, [2]string{"last staged", s.ago(time.Time(d.CreatedAt))})
		if d.Image != nil {
			rows = append(rows, [2]string{"image", clean(*d.Image)})
		}
		if d.Stack != nil {
			rows = append(rows, [2]string{"stack", clean(*d.Stack)})
		}
		var packs []string
		for _, b := range d.Buildpacks {
			packs = append(packs, strings.TrimSpace(b.Name+" "+b.Version))
		}
		if len(packs) > 0 {
			rows = append(rows, [2]string{"buildpacks", join(packs)})
		}
	}
	if sum.Notices {
		rows = append(rows, [2]string{"notifications", "on"})
	}
	s.pairs(s.Out, rows)
	s.printPending(map[string]string{sum.GUID: sum.Name}, toApp(sum.App, sum.Routes))
	for _, p := range sum.Processes {
		if p.Instances > 0 || p.Type == "web" || len(p.Stats) > 0 {
			s.say("")
			s.printProcess(p)
		}
	}
	s.printDeployment(sum.App, sum.Deployment)
}

func (s *session) printProcess(p running) {
	up := 0
	for _, i := range p.Stats {
		if i.State == "RUNNING" {
			up++
		}
	}
	rows := [][2]string{{"type", clean(p.Type)}, {"instances", fmt.Sprintf("%d/%d", up, p.Instances)}, {"memory", fmt.Sprintf("%d MB", p.MemoryMB)}}
	var names []string
	for _, c := range p.Sidecars {
		names = append(names, c.Name)
	}
	if len(names) > 0 {
		rows = append(rows, [2]string{"sidecars", join(names)})
	}
	s.pairs(s.Out, rows)
	if len(p.Stats) == 0 {
		s.say("There are no running instances of this process.")
		return
	}
	s.printInstances(p.Stats)
}
