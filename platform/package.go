package platform

import (
	"regexp"
	"strings"
	"time"

	"github.com/proa-dev/proa/kit/fault"
)

// A Package is what was uploaded, or an image of the user's own.
type Package struct {
	GUID      string
	AppGUID   string
	Type      PackageType
	State     PackageState
	Error     string // why it failed
	Image     string // by digest: what the kubelet fetches
	Docker    DockerSource
	Size      int64
	Metadata  Metadata
	CreatedAt time.Time
	UpdatedAt time.Time
}

// PackageType is the kind of a package.
type PackageType string

// The kinds.
const (
	PackageBits   PackageType = "bits"
	PackageDocker PackageType = "docker"
)

// PackageState is how far an upload came.
type PackageState string

// The states.
const (
	PackageAwaiting   PackageState = "AWAITING_UPLOAD"
	PackageProcessing PackageState = "PROCESSING_UPLOAD"
	PackageReady      PackageState = "READY"
	PackageFailed     PackageState = "FAILED"
)

// DockerSource is an image that somebody else built.
type DockerSource struct {
	Image    string
	Username string
	Password string
}

// TakeUpload begins the upload. There is one: what a package holds never changes.
func (p *Package) TakeUpload() error {
	if p.Type != PackageBits {
		return fault.Unprocessable("Package type must be bits.")
	}
	if p.State != PackageAwaiting {
		return fault.Unprocessable("Bits may be uploaded only once. Create a new package to upload different bits.")
	}
	p.State = PackageProcessing
	return nil
}

// EndUpload notes what became of an upload: the image, or the reason why there is none.
func (p *Package) EndUpload(image string, size int64, err error) {
	if err != nil {
		p.State, p.Error = PackageFailed, fault.From(err).Detail
		return
	}
	p.State, p.Image, p.Size = PackageReady, image, size
}

// MayStage says no until the bits are there.
func (p *Package) MayStage() error {
	if p.State != PackageReady {
		return fault.Invalid("Bad request: Cannot stage package whose state is not ready.")
	}
	return nil
}

// A Build makes a droplet of a package.
type Build struct {
	GUID        string
	AppGUID     string
	PackageGUID string
	DropletGUID string // once staged
	State       BuildState
	Error       string
	Lifecycle   Lifecycle
	MemoryMB    int
	DiskMB      int
	CreatedBy   Actor
	Metadata    Metadata
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// BuildState is how far a build came.
type BuildState string

// The states.
const (
	BuildStaging BuildState = "STAGING"
	BuildStaged  BuildState = "STAGED"
	BuildFailed  BuildState = "FAILED"
)

// A Droplet is what staging made: an image, and what the image says of itself.
type Droplet struct {
	GUID        string
	AppGUID     string
	PackageGUID string
	BuildGUID   string
	State       DropletState
	Image       string // by digest
	Lifecycle   Lifecycle
	Processes   []DropletProcess
	Buildpacks  []DropletBuildpack
	Stack       string
	Metadata    Metadata
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// DropletState is whether a droplet can run.
type DropletState string

// The states.
const (
	DropletStaged  DropletState = "STAGED"
	DropletExpired DropletState = "EXPIRED"
)

// DropletProcess is a process type that the droplet knows how to start.
type DropletProcess struct {
	Type    string   `json:"type"`
	Command string   `json:"command"` // for people; the image starts it by its type
	Args    []string `json:"args,omitempty"`
	Default bool     `json:"default,omitempty"`
}

// Line is the command with its arguments as a line for a shell. What is such a line already is shown as it was written: a command
// without arguments, which older buildpacks have run by a shell, and what newer ones hand to a shell themselves.
func (p DropletProcess) Line() string {
	switch {
	case len(p.Args) == 0:
		return p.Command
	case (p.Command == "bash" || p.Command == "sh") && len(p.Args) == 2 && p.Args[0] == "-c":
		return p.Args[1]
	}
	line := quoted(p.Command)
	for _, arg := range p.Args {
		line += " " + quoted(arg)
	}
	return line
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]+$`)

func quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// DropletBuildpack is a buildpack that took part.
type DropletBuildpack struct {
	ID      string `json:"id"`
	Version string `json:"version"`
}

// MayRun says no to a droplet of another app.
func (d *Droplet) MayRun(app string) error {
	if d.AppGUID != app || d.State != DropletStaged {
		return ErrDropletOfApp
	}
	return nil
}

// Check says what is wrong with a new package, and gives it its first state.
func (p *Package) Check(a App) error {
	switch p.Type {
	case PackageBits:
		if a.Lifecycle.Type == LifecycleDocker {
			return fault.Unprocessable("Cannot create bits package for a Docker app. Push an image instead: -o IMAGE.")
		}
		p.State, p.Docker = PackageAwaiting, DockerSource{}
	case PackageDocker:
		if a.Lifecycle.Type != LifecycleDocker {
			return fault.Unprocessable("Cannot create Docker package for a buildpack app.")
		}
		if p.Docker.Image == "" || len(p.Docker.Image) > 1024 {
			return fault.Unprocessable("Data image must be the name of an image, such as registry.example.org/team/app:1.")
		}
		p.State = PackageReady
	default:
		return fault.Unprocessable("Type must be one of 'bits, docker'")
	}
	return p.Metadata.Check()
}

// What staging has when nobody asked for anything else.
const (
	DefaultStagingMemoryMB = 1024
	DefaultStagingDiskMB   = 4096
)

// The refusals about builds and droplets. Clients compare the words of some.
var (
	ErrStagingInProgress = fault.Unprocessable("Only one build can be STAGING at a time per application.")
	ErrPackageStaging    = fault.Unprocessable("The package is being staged. Wait until its build has ended, then delete it.")
	ErrDropletOfApp      = fault.Unprocessable("Unable to assign current droplet. Ensure the droplet exists and belongs to this app.")
	ErrDropletInUse      = fault.Unprocessable("The droplet is the one its app starts with. Assign another first, then delete it.")
)

// Begin makes a build of a package; what the request does not say is as the app has it.
func (b *Build) Begin(a App, p Package) error {
	if err := p.MayStage(); err != nil {
		return err
	}
	b.AppGUID, b.State = a.GUID, BuildStaging
	if b.Lifecycle.Type == "" {
		b.Lifecycle = a.Lifecycle
	}
	if (b.Lifecycle.Type == LifecycleDocker) != (p.Type == PackageDocker) {
		return fault.Unprocessable("Lifecycle type %s does not fit a package of type %s.", b.Lifecycle.Type, p.Type)
	}
	if b.MemoryMB == 0 {
		b.MemoryMB = DefaultStagingMemoryMB
	}
	if b.DiskMB == 0 {
		b.DiskMB = DefaultStagingDiskMB
	}
	if b.MemoryMB < 0 || b.MemoryMB > MaxMegabytes || b.DiskMB < 0 || b.DiskMB > MaxMegabytes {
		return fault.Unprocessable("Staging memory in mb and staging disk in mb must be greater than 0.")
	}
	if err := b.Lifecycle.check(); err != nil {
		return err
	}
	return b.Metadata.Check()
}
