package platform

import (
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// A Snapshot is everything that a release is made of, as it stands at one moment.
type Snapshot struct {
	App      App // with its environment
	Space    Space
	OrgName  string
	Droplet  Droplet
	Sidecars []Sidecar
	Reached  []Destination // of the app, on all routes
	API      string        // where the platform's API is
	URIs     []string      // of the app's routes
	Builder  []Buildpack
	Services []BoundService // of the app, with their credentials
}

// Release is the next release of one process. It says no where the rules of sidecars do.
func (s Snapshot) Release(p Process) (Release, error) {
	its := SidecarsOf(p.Type, s.Sidecars)
	if err := CheckSidecarMemory(p, its); err != nil {
		return Release{}, err
	}
	if err := CheckSidecarStart(s.Droplet, s.Builder, its); err != nil {
		return Release{}, err
	}
	r := Release{
		GUID: NewGUID(), AppGUID: s.App.GUID, AppName: s.App.Name, SpaceGUID: s.Space.GUID, Namespace: s.Space.Namespace(),
		ProcessGUID: p.GUID, ProcessType: p.Type, Version: s.App.Releases,
		Image: s.Droplet.Image, MemoryMB: p.MemoryMB, DiskMB: p.DiskMB,
		Health: p.HealthCheck.probe(), Readiness: p.Readiness.probe(),
	}
	if p.Command != nil {
		r.Command = *p.Command
	}
	if r.Ports = PortsOf(p.Type, s.Reached); len(r.Ports) == 0 && (r.Health.asks() || r.Readiness.asks()) {
		r.Ports = []int{DefaultPort}
	}
	for _, sidecar := range its {
		one := ReleaseSidecar{Name: sidecar.Name, Command: sidecar.Command}
		if sidecar.MemoryMB != nil {
			one.MemoryMB = *sidecar.MemoryMB
		}
		r.Sidecars = append(r.Sidecars, one)
	}
	env, err := s.environment(p, r)
	if err != nil {
		return Release{}, err
	}
	r.Env = env
	if s.App.BindingFiles {
		if r.Files, err = BindingFiles(s.Services); err != nil {
			return Release{}, err
		}
	}
	return r, r.Check()
}

func (h HealthCheck) probe() Probe {
	seconds := func(n int) time.Duration { return time.Duration(n) * time.Second }
	return Probe{Type: ProbeType(h.Type), Endpoint: h.Endpoint, Timeout: seconds(h.Timeout), InvocationTimeout: seconds(h.InvocationTimeout), Interval: seconds(h.Interval)}
}

// environment is the app's own, and what the platform says about the app and its services.
func (s Snapshot) environment(p Process, r Release) (map[string]string, error) {
	env := maps.Clone(s.App.Env)
	if env == nil {
		env = map[string]string{}
	}
	about, err := json.Marshal(s.Application(p.Type, r))
	if err != nil {
		return nil, err
	}
	env["VCAP_APPLICATION"] = string(about)
	system, err := s.System()
	maps.Copy(env, system)
	return env, err
}

// System are the variables that tell of the app's services. What is too large for a variable is left out if there are files.
func (s Snapshot) System() (map[string]string, error) {
	services, err := VCAPServices(s.Services)
	if err != nil {
		return nil, err
	}
	system := map[string]string{}
	if !s.App.BindingFiles || fitsVariable(envServices, services) {
		system[envServices] = services
	}
	if s.App.BindingFiles {
		system[envBindings] = BindingsRoot
	}
	return system, nil
}

// Application is what VCAP_APPLICATION tells the instances of a release about their app.
func (s Snapshot) Application(kind string, r Release) map[string]any {
	about := s.About()
	about["process_type"], about["process_id"] = kind, r.ProcessGUID
	about["application_version"], about["version"] = r.GUID, r.GUID
	about["limits"] = map[string]any{"mem": r.MemoryMB, "disk": r.DiskMB, "fds": MaxFiles}
	return about
}

// MaxFiles is how many files an instance may have open.
const MaxFiles = 16384

// About is the part of VCAP_APPLICATION that is known before there is a release.
func (s Snapshot) About() map[string]any {
	uris := slices.Clone(s.URIs)
	if uris == nil {
		uris = []string{}
	}
	return map[string]any{
		"cf_api": s.API, "application_id": s.App.GUID, "application_name": s.App.Name, "name": s.App.Name, "application_uris": uris, "uris": uris,
		"space_id": s.Space.GUID, "space_name": s.Space.Name, "organization_id": s.Space.OrgGUID, "organization_name": s.OrgName,
		"limits": map[string]any{"fds": MaxFiles}, "users": nil,
	}
}
