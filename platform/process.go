package platform

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/proa-dev/proa/kit/fault"
)

// A Process is one kind of work an app does, such as web or worker. Each of its instances is one container, which holds the
// process and the sidecars of its type.
type Process struct {
	GUID         string
	AppGUID      string
	Type         string
	Command      *string // nil: what the droplet says
	Instances    int
	MemoryMB     int   // of one instance, sidecars included
	DiskMB       int   // of one instance
	LogRateBytes int64 // of one instance, in a second; may be Unlimited
	HealthCheck  HealthCheck
	Readiness    HealthCheck // of type process: an instance is ready when it is healthy
	Version      string      // changes when the instances must be replaced
	Metadata     Metadata
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// WebProcess is the type that gets requests, and that the process keys of an app in a manifest are about.
const WebProcess = "web"

// What a process has when nobody asked for anything else.
const (
	DefaultMemoryMB = 1024
	DefaultDiskMB   = 1024
	DefaultLogRate  = Unlimited
)

const (
	maxInstances   = 10_000 // what one cluster can be asked to reconcile
	maxCommand     = 4096
	maxProcessType = 63 // what a Kubernetes label holds
)

// NewProcess is a process as it begins: only web runs without being asked to.
func NewProcess(appGUID, kind string) Process {
	p := Process{
		AppGUID:      appGUID,
		Type:         kind,
		MemoryMB:     DefaultMemoryMB,
		DiskMB:       DefaultDiskMB,
		LogRateBytes: DefaultLogRate,
		HealthCheck:  HealthCheck{Type: CheckProcess},
		Readiness:    HealthCheck{Type: CheckProcess},
	}
	if kind == WebProcess {
		p.Instances, p.HealthCheck.Type = 1, CheckPort
	}
	return p
}

// CheckProcessType says what is wrong with the type of a process: the rules are those of the buildpacks.
func CheckProcessType(kind string) error {
	if wrong := processTypeFault(kind); wrong != "" {
		return fault.Unprocessable("Process type '%s' %s", clipText(kind), wrong)
	}
	return nil
}

func processTypeFault(kind string) string {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
	}
	if kind == "" || len(kind) > maxProcessType || strings.ContainsFunc(kind, odd) {
		return fmt.Sprintf("must be 1 to %d of the characters a-z A-Z 0-9 . _ and -.", maxProcessType)
	}
	return ""
}

// ProcessScale says how many instances there shall be and how large; nil leaves a value as it is.
type ProcessScale struct {
	Instances    *int
	MemoryMB     *int
	DiskMB       *int
	LogRateBytes *int64
}

// Undo is a scale with what was instead of what was made of it, where it is still as it was made: each size for itself.
func (s ProcessScale) Undo(made, was ProcessScale) ProcessScale {
	return ProcessScale{Instances: undo(s.Instances, made.Instances, was.Instances), MemoryMB: undo(s.MemoryMB, made.MemoryMB, was.MemoryMB),
		DiskMB: undo(s.DiskMB, made.DiskMB, was.DiskMB), LogRateBytes: undo(s.LogRateBytes, made.LogRateBytes, was.LogRateBytes)}
}

func undo[T comparable](now, made, was *T) *T {
	if now != nil && made != nil && was != nil && *now == *made {
		return was
	}
	return now
}

// Check says what is wrong with a scale, all of it at once.
func (s *ProcessScale) Check() error {
	var faults []string
	faults = append(faults, boundsFault("Instances", s.Instances, 0, maxInstances)...)
	faults = append(faults, boundsFault("Memory in mb", s.MemoryMB, 1, MaxMegabytes)...)
	faults = append(faults, boundsFault("Disk in mb", s.DiskMB, 1, MaxMegabytes)...)
	faults = append(faults, boundsFault("Log rate limit in bytes per second", s.LogRateBytes, Unlimited, MaxLogRate)...)
	return faultOf(faults)
}

// Scale changes the size of a process. Whether its sidecars still fit is CheckSidecarMemory's to say.
func (p *Process) Scale(s ProcessScale) error {
	if err := s.Check(); err != nil {
		return err
	}
	setIf(&p.Instances, s.Instances)
	setIf(&p.MemoryMB, s.MemoryMB)
	setIf(&p.DiskMB, s.DiskMB)
	setIf(&p.LogRateBytes, s.LogRateBytes)
	return nil
}

// ProcessChange says what shall be different about a process; nil leaves a value as it is.
type ProcessChange struct {
	Command     *string // empty: what the droplet says
	HealthCheck HealthCheckChange
	Readiness   HealthCheckChange
}

// Update changes how a process is started and watched.
func (p *Process) Update(c ProcessChange) error {
	health, faults := p.HealthCheck.with(c.HealthCheck, "Health check")
	ready, more := p.Readiness.with(c.Readiness, "Readiness health check")
	faults = append(faults, more...)
	if c.Command != nil && *c.Command != "" {
		if wrong := commandFault(*c.Command); wrong != "" {
			faults = append(faults, "Command "+wrong)
		}
	}
	if len(faults) > 0 {
		return faultOf(faults)
	}
	p.HealthCheck, p.Readiness = health, ready
	if c.Command != nil {
		if p.Command = c.Command; *c.Command == "" {
			p.Command = nil
		}
	}
	return nil
}

func commandFault(command string) string {
	switch {
	case strings.TrimSpace(command) == "":
		return "can't be blank"
	case len(command) > maxCommand:
		return fmt.Sprintf("is too long (maximum is %d characters)", maxCommand)
	case strings.ContainsFunc(command, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }):
		return "must not hold control characters."
	}
	return ""
}

// CheckType is how the platform finds out whether an instance is well.
type CheckType string

// The checks: something listens on the port, the process is there, an endpoint answers.
const (
	CheckPort    CheckType = "port"
	CheckProcess CheckType = "process"
	CheckHTTP    CheckType = "http"
)

// HealthCheck says how an instance is watched. Zero seconds are the platform's own.
type HealthCheck struct {
	Type              CheckType
	Endpoint          string // of http
	Timeout           int    // seconds an instance may take to become healthy; a readiness check has none
	InvocationTimeout int    // seconds one check may take
	Interval          int    // seconds between checks
}

// HealthCheckChange says what shall be different; nil leaves a value as it is, and zero gives it back to the platform.
type HealthCheckChange struct {
	Type              *CheckType
	Endpoint          *string
	Timeout           *int
	InvocationTimeout *int
	Interval          *int
}

const (
	maxStartSeconds = 600 // an instance that needs longer is not told from one that hangs
	maxCheckSeconds = 300
	maxEndpoint     = 255
)

// with is the check after a change, and what is wrong with it.
func (h HealthCheck) with(c HealthCheckChange, what string) (HealthCheck, []string) {
	setIf(&h.Type, c.Type)
	setIf(&h.Endpoint, c.Endpoint)
	setIf(&h.Timeout, c.Timeout)
	setIf(&h.InvocationTimeout, c.InvocationTimeout)
	setIf(&h.Interval, c.Interval)
	if h.Type == CheckHTTP && h.Endpoint == "" {
		h.Endpoint = "/"
	}
	faults := boundsFault(what+" timeout", &h.Timeout, 0, maxStartSeconds)
	faults = append(faults, boundsFault(what+" invocation timeout", &h.InvocationTimeout, 0, maxCheckSeconds)...)
	faults = append(faults, boundsFault(what+" interval", &h.Interval, 0, maxCheckSeconds)...)
	if !h.Type.known() {
		faults = append(faults, what+" type must be \"port\", \"process\", or \"http\"")
	}
	if h.Type != CheckHTTP && c.Endpoint != nil && *c.Endpoint != "" {
		faults = append(faults, what+" type must be \"http\" to set a health check HTTP endpoint")
	}
	if h.Type == CheckHTTP && !validEndpoint(h.Endpoint) {
		faults = append(faults, what+" endpoint must be a valid URI path")
	}
	if h.Type != CheckHTTP {
		h.Endpoint = ""
	}
	return h, faults
}

func (t CheckType) known() bool { return t == CheckPort || t == CheckProcess || t == CheckHTTP }

func validEndpoint(path string) bool {
	return strings.HasPrefix(path, "/") && len(path) <= maxEndpoint &&
		!strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("#<>\"\\^`{|}", r) })
}

// boundsFault speaks Cloud Foundry's words.
func boundsFault[N int | int64](what string, value *N, least, most N) []string {
	switch {
	case value == nil:
		return nil
	case *value < least && least == 1:
		return []string{what + " must be greater than 0"}
	case *value < least:
		return []string{fmt.Sprintf("%s must be greater than or equal to %d", what, least)}
	case *value > most:
		return []string{fmt.Sprintf("%s must be less than or equal to %d", what, most)}
	}
	return nil
}

func setIf[T any](to, value *T) {
	if value != nil {
		*to = *value
	}
}

// faultOf makes one fault of what was found, and none of nothing.
func faultOf(found []string) error {
	if len(found) == 0 {
		return nil
	}
	f := fault.Unprocessable("%s", strings.Join(found, " "))
	if len(found) > 1 {
		f.Details = found
	}
	return f
}
