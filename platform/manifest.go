package platform

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// A Manifest says what apps shall be like. It changes only what it names: nil is not named, in every field below.
type Manifest struct {
	Applications []ManifestApp
}

// ManifestApp is what a manifest says of one app.
type ManifestApp struct {
	Name           string
	Lifecycle      *LifecycleType
	Buildpacks     *[]string // empty: whichever fits
	Stack          *string
	Docker         *ManifestDocker
	Web            ManifestSettings   // process keys of the app itself are about web
	Env            map[string]*string // nil takes a variable away
	Routes         []ManifestRoute
	NoRoute        bool // takes all routes away; Routes are of no matter then
	RandomRoute    bool // as DefaultRoute, with a random host
	DefaultRoute   bool // only if the app has no route and is given none
	Services       []ManifestService
	Sidecars       []ManifestSidecar
	Processes      []ManifestProcess
	Metadata       MetadataChange
	Features       map[string]bool
	CNBCredentials map[string]any // by registry: secrets, never shown
}

// ManifestDocker is the image an app is made of. Its password is never in a manifest.
type ManifestDocker struct {
	Image    string
	Username string
}

// ManifestSettings are the keys of a process.
type ManifestSettings struct {
	Scale  ProcessScale
	Change ProcessChange
}

// ManifestProcess is what a manifest says of one process.
type ManifestProcess struct {
	Type string
	ManifestSettings
}

// ManifestRoute is a route to map to the web process.
type ManifestRoute struct {
	Route    string             // such as www.example.org/path
	Protocol string             // http1, http2 or tcp; empty: what the domain speaks
	Options  map[string]*string // nil takes an option away
}

// ManifestService is a service instance to bind.
type ManifestService struct {
	Name        string
	BindingName string
	Parameters  map[string]any // nil: none; known only to the broker afterwards
}

// ManifestSidecar is what a manifest says of one sidecar, which it may make: so all of it is said.
type ManifestSidecar struct {
	Name         string
	ProcessTypes []string
	Command      string
	MemoryMB     *int
}

const (
	maxManifest      = 1 << 20
	maxManifestNotes = 5000
	maxManifestNodes = 250_000 // once aliases stand for what they mean
	maxManifestText  = 4 << 20 // likewise
	maxManifestDepth = 32
	maxManifestApps  = 100
	maxManifestList  = 1000 // entries of a list that has no limit of its own
	maxManifestTold  = 20   // problems
	maxProcesses     = 64   // of one app
	maxReference     = 1024 // characters of an image, a buildpack or a route
)

// ParseManifest reads a manifest and says all that is wrong with it. What is not YAML at all, or would be too much, is Invalid
// or TooLarge; what breaks a rule is Unprocessable, with a sentence for each problem.
func ParseManifest(data []byte) (Manifest, error) {
	root, err := readYAML(data)
	if err != nil {
		return Manifest{}, err
	}
	w := &manifestWalk{}
	m := w.manifest(root)
	if err := w.err(); err != nil {
		return Manifest{}, err
	}
	return m, nil
}

// manifest ignores keys it does not know at the top: they hold anchors, and the command-line client drops them too.
func (w *manifestWalk) manifest(root *yaml.Node) Manifest {
	var m Manifest
	for _, p := range w.pairs(root, "The manifest") {
		switch p.key {
		case "version":
			if p.value.Value != "1" {
				w.wrong("version", "must be 1: there is no other version of manifests.")
			}
		case "applications":
			for i, n := range w.list(p.value, "applications", maxManifestApps) {
				m.Applications = append(m.Applications, w.app(n, i))
				w.where = ""
			}
		}
	}
	if len(m.Applications) == 0 && len(w.faults) == 0 {
		w.wrong("applications", "must be a list of at least one application.")
	}
	seen := map[string]bool{}
	for i, a := range m.Applications {
		if seen[a.Name] && a.Name != "" {
			w.wrong(fmt.Sprintf("applications[%d].name", i), "must not be '%s' again: each application is named once.", clipText(a.Name))
		}
		seen[a.Name] = true
	}
	return m
}

// EveryProcess is what the manifest says of each process: the keys of the app itself are web's, and where the list of processes
// names web too, the list wins key by key.
func (a *ManifestApp) EveryProcess() []ManifestProcess {
	all := slices.Clone(a.Processes)
	if a.Web.empty() {
		return all
	}
	i := slices.IndexFunc(all, func(p ManifestProcess) bool { return p.Type == WebProcess })
	if i < 0 {
		return slices.Insert(all, 0, ManifestProcess{Type: WebProcess, ManifestSettings: a.Web})
	}
	all[i].ManifestSettings = a.Web.with(all[i].ManifestSettings)
	return all
}

func (s *ManifestSettings) empty() bool { return *s == ManifestSettings{} }

// with prefers what the other says.
func (s ManifestSettings) with(other ManifestSettings) ManifestSettings {
	preferSet(&s.Scale.Instances, other.Scale.Instances)
	preferSet(&s.Scale.MemoryMB, other.Scale.MemoryMB)
	preferSet(&s.Scale.DiskMB, other.Scale.DiskMB)
	preferSet(&s.Scale.LogRateBytes, other.Scale.LogRateBytes)
	preferSet(&s.Change.Command, other.Change.Command)
	s.Change.HealthCheck = s.Change.HealthCheck.with(other.Change.HealthCheck)
	s.Change.Readiness = s.Change.Readiness.with(other.Change.Readiness)
	return s
}

func (c HealthCheckChange) with(other HealthCheckChange) HealthCheckChange {
	preferSet(&c.Type, other.Type)
	preferSet(&c.Endpoint, other.Endpoint)
	preferSet(&c.Timeout, other.Timeout)
	preferSet(&c.InvocationTimeout, other.InvocationTimeout)
	preferSet(&c.Interval, other.Interval)
	return c
}

func preferSet[T any](to **T, value *T) {
	if value != nil {
		*to = value
	}
}
