package platform

import (
	"maps"
	"slices"

	"github.com/proa-dev/proa/kit/fault"
)

// ApplyManifest makes an app, which may be new, what a manifest says. Its processes and sidecars are records of their own.
func (a *App) ApplyManifest(m ManifestApp, stacks []string) error {
	a.Name = m.Name
	if err := a.ChangeLifecycle(m.lifecycleChange(), stacks); err != nil {
		return err
	}
	if err := a.SetEnv(m.Env); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(m.Features)) {
		err := a.SetFeature(name, m.Features[name])
		if fault.Is(err, fault.KindNotFound) {
			err = fault.Unprocessable("features.%s is not a feature of apps: those are %s, %s, %s and %s.", clipText(name), FeatureSSH, FeatureRevisions, FeatureBindingFiles, FeatureNotices)
		}
		if err != nil {
			return err
		}
	}
	a.Metadata.Apply(m.Metadata)
	return a.Check()
}

// lifecycleChange is docker for an app that is made of an image.
func (a *ManifestApp) lifecycleChange() LifecycleChange {
	c := LifecycleChange{Type: a.Lifecycle, Buildpacks: a.Buildpacks, Stack: a.Stack}
	if a.Docker != nil {
		kind := LifecycleDocker
		c.Type = &kind
	}
	return c
}

// Change is what a manifest changes about a sidecar that is there. Memory that it does not name stays.
func (s *ManifestSidecar) Change() SidecarChange {
	return SidecarChange{Command: &s.Command, ProcessTypes: s.ProcessTypes, MemoryMB: s.MemoryMB}
}

// ManifestOf is the manifest that would make an app what it is. The image is the one that it was last given, if it is made of one.
func ManifestOf(a App, image DockerSource, processes []Process, sidecars []Sidecar, routes []Route) ManifestApp {
	m := ManifestApp{Name: a.Name, Lifecycle: &a.Lifecycle.Type, Features: map[string]bool{FeatureSSH: a.SSH, FeatureBindingFiles: a.BindingFiles, FeatureNotices: a.Notices}, Routes: manifestRoutes(a.GUID, routes), NoRoute: len(routes) == 0,
		Env: pointers(a.Env), Metadata: MetadataChange{Labels: pointers(a.Metadata.Labels), Annotations: pointers(a.Metadata.Annotations)}}
	if len(a.Lifecycle.Buildpacks) > 0 {
		m.Buildpacks = &a.Lifecycle.Buildpacks
	}
	if a.Lifecycle.Stack != "" {
		m.Stack = &a.Lifecycle.Stack
	}
	if image.Image != "" {
		m.Docker = &ManifestDocker{Image: image.Image, Username: image.Username}
	}
	for i := range processes {
		m.Processes = append(m.Processes, ManifestProcess{Type: processes[i].Type, ManifestSettings: processes[i].settings()})
	}
	for _, s := range sidecars {
		if s.Origin == SidecarOfUser {
			m.Sidecars = append(m.Sidecars, ManifestSidecar{Name: s.Name, ProcessTypes: s.ProcessTypes, Command: s.Command, MemoryMB: s.MemoryMB})
		}
	}
	return m
}

// manifestRoutes are the routes to an app's web process: a manifest knows no other.
func manifestRoutes(app string, routes []Route) []ManifestRoute {
	var all []ManifestRoute
	for _, r := range routes {
		if d, is := r.toWeb(app); is {
			all = append(all, ManifestRoute{Route: r.URL(), Protocol: d.Protocol})
		}
	}
	return all
}

// toWeb is the first destination that is an app's web process.
func (r Route) toWeb(app string) (Destination, bool) {
	i := slices.IndexFunc(r.Destinations, func(d Destination) bool { return d.AppGUID == app && d.ProcessType == WebProcess })
	if i < 0 {
		return Destination{}, false
	}
	return r.Destinations[i], true
}

// Map is what a route's destinations are when it is to lead to the web process of an app. If it does already, at whatever port, only its
// protocol may change.
func (m ManifestRoute) Map(r Route, app string, have []Destination) ([]Destination, error) {
	if _, is := (Route{Destinations: have}).toWeb(app); !is {
		return r.AddDestinations(have, r.Spoken([]Destination{{AppGUID: app, ProcessType: WebProcess, Protocol: m.Protocol}}))
	}
	all := slices.Clone(have)
	for i, d := range all {
		if d.AppGUID == app && d.ProcessType == WebProcess && m.Protocol != "" {
			all[i].Protocol = m.Protocol
		}
	}
	return all, r.CheckDestinations(all)
}

// Unmap is what a route's destinations are without an app's.
func Unmap(app string, have []Destination) []Destination {
	return slices.DeleteFunc(slices.Clone(have), func(d Destination) bool { return d.AppGUID == app })
}

func pointers(m map[string]string) map[string]*string {
	all := map[string]*string{}
	for key, value := range m {
		all[key] = &value
	}
	return filled(all)
}

func (p *Process) settings() ManifestSettings {
	return ManifestSettings{
		Scale:  ProcessScale{Instances: &p.Instances, MemoryMB: &p.MemoryMB, DiskMB: &p.DiskMB, LogRateBytes: &p.LogRateBytes},
		Change: ProcessChange{Command: p.Command, HealthCheck: p.HealthCheck.asChange(), Readiness: p.Readiness.asChange()},
	}
}

// asChange leaves out what is the platform's own.
func (h *HealthCheck) asChange() HealthCheckChange {
	c := HealthCheckChange{Type: &h.Type, Timeout: unlessZero(&h.Timeout), InvocationTimeout: unlessZero(&h.InvocationTimeout), Interval: unlessZero(&h.Interval)}
	if h.Type == CheckHTTP {
		c.Endpoint = &h.Endpoint
	}
	return c
}

func unlessZero(n *int) *int {
	if *n == 0 {
		return nil
	}
	return n
}
