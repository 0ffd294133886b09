package platform

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/proa-dev/proa/kit/fault"
)

// DefaultPort is where a web process listens unless a route says otherwise.
const DefaultPort = 8080

// DefaultLang is the locale of a process whose app sets none: the one that every image has.
const DefaultLang = "C.UTF-8"

// Release is one process of an app as it was when it was started: whatever changes later is in the next release.
// It is never altered, and it is all that a cluster is told.
type Release struct {
	GUID        string
	AppGUID     string
	AppName     string
	SpaceGUID   string
	Namespace   string // of the space, in the cluster
	ProcessGUID string
	ProcessType string
	Version     int // counts the releases of the app

	Image    string // by digest
	User     string // UID or UID:GID; empty means the image's own
	Command  string // a line for a shell; empty means the image's own process of this type
	Sidecars []ReleaseSidecar

	Env       map[string]string // complete: VCAP_APPLICATION and VCAP_SERVICES are in it
	Files     map[string]string // to be found below BindingsRoot, by path; nil: there is no such directory
	Ports     []int             // the first is the one that PORT tells; none for a process that nobody calls
	MemoryMB  int               // of the whole container
	DiskMB    int
	Health    Probe // while it fails, the instance is not running; when it fails later, the instance is started again
	Readiness Probe // while it fails, no requests are sent to the instance
}

// ReleaseSidecar is a process beside the main one. Its memory is carved out of the release's; 0 means that it shares
// what is left with the main process.
type ReleaseSidecar struct {
	Name     string
	Command  string
	MemoryMB int
}

// ProbeType is how the cluster finds out whether an instance is well.
type ProbeType string

// A process is asked for a page, for a connection, or merely has to be there.
const (
	ProbeHTTP    ProbeType = "http"
	ProbePort    ProbeType = "port"
	ProbeProcess ProbeType = "process"
)

// Probe asks the first port of a release. A time of 0 means the default.
type Probe struct {
	Type              ProbeType
	Endpoint          string        // the page, for http
	Timeout           time.Duration // within which an instance must be well after its start; 60 s
	InvocationTimeout time.Duration // within which it must answer; 1 s
	Interval          time.Duration // within which a failure is to be noticed; 30 s
}

// Wanted is a release and how many instances of it there should be.
type Wanted struct {
	Release    Release
	Instances  int
	Draining   bool        // it gives way to a newer release of its process
	Deployment *Deployment // that is under way; Roll says the counts then
}

// Check says why a release cannot run. The rules for what people ask for are elsewhere; this is the last look.
func (r Release) Check() error {
	switch {
	case r.GUID == "" || r.AppGUID == "" || r.SpaceGUID == "" || r.ProcessGUID == "" || r.ProcessType == "" || r.Namespace == "":
		return fmt.Errorf("release %q is not whole", r.GUID)
	case !strings.Contains(r.Image, "@sha256:"):
		return fmt.Errorf("release %s: the image %q is not named by its digest", r.GUID, r.Image)
	case r.MemoryMB <= 0 || r.DiskMB <= 0:
		return fmt.Errorf("release %s: %d MB of memory and %d MB of disk", r.GUID, r.MemoryMB, r.DiskMB)
	case r.MainMemoryMB() <= 0:
		return fault.Unprocessable("The sidecars of process '%s' take %s of its %s of memory, so nothing is left for the app. Give the process more memory, or the sidecars less.",
			r.ProcessType, FormatMegabytes(r.MemoryMB-r.MainMemoryMB()), FormatMegabytes(r.MemoryMB))
	case len(r.Ports) == 0 && (r.Health.asks() || r.Readiness.asks()):
		return fault.Unprocessable("Process '%s' has a health check of type port or http, but no port. Choose the type process.", r.ProcessType)
	}
	return r.checkVariables()
}

// maxVariable is the kernel's limit for one variable: its name, the equals sign, its value and the zero byte.
const maxVariable = 128 << 10

func fitsVariable(name, value string) bool { return len(name)+1+len(value)+1 <= maxVariable }

func (r Release) checkVariables() error {
	env := r.Environment()
	for _, name := range slices.Sorted(maps.Keys(env)) {
		switch {
		case fitsVariable(name, env[name]):
		case name == envServices:
			return fault.Unprocessable("The credentials of the services of app '%s' have %d bytes, and one environment variable (%s) ends at %d. Have them as files: switch on the feature %s of the app, with `features: {%s: true}` in its manifest. Or unbind services that it does not need.",
				r.AppName, len(env[name]), name, maxVariable, FeatureBindingFiles, FeatureBindingFiles)
		default:
			return fault.Unprocessable("The environment of process '%s' is too large at '%s': a variable ends at %d bytes. Put large values into a file of the app, or into a service.", r.ProcessType, clipText(name), maxVariable)
		}
	}
	return nil
}

func (p Probe) asks() bool { return p.Type == ProbeHTTP || p.Type == ProbePort }

// MainMemoryMB is what the sidecars leave to the main process.
func (r Release) MainMemoryMB() int {
	left := r.MemoryMB
	for _, s := range r.Sidecars {
		left -= s.MemoryMB
	}
	return left
}

// Environment is what every process of an instance finds, apart from what only the instance knows (its index, its
// address). What the platform says about the container wins over what the app says.
func (r Release) Environment() map[string]string {
	env := map[string]string{"LANG": DefaultLang}
	// Paketo's memory calculator looks at the container's limit, and must be told what is not the JVM's.
	if taken := r.MemoryMB - r.MainMemoryMB(); taken > 0 && r.MemoryMB > 0 {
		env["BPL_JVM_HEAD_ROOM"] = fmt.Sprint((100*taken + r.MemoryMB - 1) / r.MemoryMB)
	}
	maps.Copy(env, r.Env)
	env["MEMORY_LIMIT"] = memoryLimit(r.MainMemoryMB())
	env["CF_PROCESS_TYPE"] = r.ProcessType
	if len(r.Ports) > 0 {
		port := fmt.Sprint(r.Ports[0])
		env["PORT"], env["VCAP_APP_PORT"], env["VCAP_APP_HOST"], env["CF_INSTANCE_PORT"] = port, port, "0.0.0.0", port
		env["CF_INSTANCE_PORTS"] = instancePorts(r.Ports)
	}
	return env
}

func memoryLimit(mb int) string { return fmt.Sprintf("%dm", mb) }

// instancePorts is JSON. Pods have addresses of their own, so inside and outside are the same.
func instancePorts(ports []int) string {
	var pairs []string
	for _, p := range ports {
		pairs = append(pairs, fmt.Sprintf(`{"external":%d,"internal":%d}`, p, p))
	}
	return "[" + strings.Join(pairs, ",") + "]"
}

// Launch is what pid 1 of an instance is told.
type Launch struct {
	Process  string
	Main     LaunchProcess
	Sidecars []LaunchProcess
}

// LaunchProcess is the main process, which has no name, or a sidecar. Env is what it has beyond Environment.
type LaunchProcess struct {
	Name     string
	Command  string
	Env      map[string]string
	MemoryMB int
}

// Launch tells each sidecar with memory of its own how much that is.
func (r Release) Launch() Launch {
	l := Launch{Process: r.ProcessType, Main: LaunchProcess{Command: r.Command, MemoryMB: r.MainMemoryMB()}}
	for _, s := range r.Sidecars {
		p := LaunchProcess{Name: s.Name, Command: s.Command, MemoryMB: s.MemoryMB}
		if s.MemoryMB > 0 {
			p.Env = map[string]string{"MEMORY_LIMIT": memoryLimit(s.MemoryMB)}
		}
		l.Sidecars = append(l.Sidecars, p)
	}
	return l
}
