package platform

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/proa-dev/proa/kit/fault"
)

// An App is what a developer pushes. It belongs to a space, and what it is now may differ from what runs: that is the
// release it was last started with.
type App struct {
	GUID         string
	SpaceGUID    string
	OrgGUID      string // of its space
	Name         string
	State        AppState
	Lifecycle    Lifecycle
	Droplet      string // the current one; empty before the first
	Env          map[string]string
	SSH          bool
	BindingFiles bool // instances find the credentials of services as files, too
	Notices      bool // developers of the space are told by mail when it breaks
	Releases     int  // how many there have been
	Metadata     Metadata
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// AppState is what is asked of the app, not what it does.
type AppState string

// The states.
const (
	Started AppState = "STARTED"
	Stopped AppState = "STOPPED"
)

// Lifecycle says how a package becomes a droplet.
type Lifecycle struct {
	Type       LifecycleType
	Buildpacks []string // of the builder, or images; none: whichever fits
	Stack      string
}

// LifecycleType is the kind of a lifecycle.
type LifecycleType string

// The kinds. Buildpack and CNB are one here: what stages is the Cloud Native Buildpacks lifecycle either way.
const (
	LifecycleBuildpack LifecycleType = "buildpack"
	LifecycleCNB       LifecycleType = "cnb"
	LifecycleDocker    LifecycleType = "docker"
)

const (
	maxAppName = 255
	maxEnvSize = 64 << 10
)

// NewApp is an app as it begins.
func NewApp(spaceGUID, name string) App {
	return App{SpaceGUID: spaceGUID, Name: name, State: Stopped, Lifecycle: Lifecycle{Type: LifecycleBuildpack}, SSH: true}
}

// ErrAppExists is for a second app of the same name in a space. Clients compare its words.
func ErrAppExists(name string) error {
	return fault.Unprocessable("App with the name '%s' already exists.", name)
}

// Check says what is wrong with the app itself.
func (a *App) Check() error {
	switch {
	case strings.TrimSpace(a.Name) == "":
		return fault.Unprocessable("Name can't be blank")
	case len(a.Name) > maxAppName:
		return fault.Unprocessable("Name is too long (maximum is %d characters)", maxAppName)
	case strings.ContainsFunc(a.Name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fault.Unprocessable("Name must not hold line breaks or control characters.")
	}
	if err := a.Metadata.Check(); err != nil {
		return err
	}
	return a.Lifecycle.check()
}

func (l Lifecycle) check() error {
	switch l.Type {
	case LifecycleBuildpack, LifecycleCNB:
	case LifecycleDocker:
		if len(l.Buildpacks) > 0 || l.Stack != "" {
			return fault.Unprocessable("Lifecycle data must be empty for docker: an image brings what it needs.")
		}
	default:
		return fault.Unprocessable("Lifecycle type must be buildpack, cnb or docker.")
	}
	for _, name := range l.Buildpacks {
		if name == "" || len(name) > 1024 || strings.ContainsFunc(name, unicode.IsSpace) {
			return fault.Unprocessable("Buildpack %q is neither the name of one of the builder's nor an image. `buildpacks` lists those there are.", name)
		}
	}
	return nil
}

// LifecycleChange says what shall be different; nil leaves a value as it is.
type LifecycleChange struct {
	Type       *LifecycleType
	Buildpacks *[]string // empty: whichever fits
	Stack      *string
}

// With is the lifecycle after a change. A stack that is asked for must be one of those there are; the first is the default.
func (l Lifecycle) With(c LifecycleChange, stacks []string) (Lifecycle, error) {
	setIf(&l.Type, c.Type)
	setIf(&l.Buildpacks, c.Buildpacks)
	setIf(&l.Stack, c.Stack)
	if l.Type != LifecycleDocker && len(stacks) > 0 {
		if l.Stack == "" {
			l.Stack = stacks[0]
		}
		if c.Stack != nil && !slices.Contains(stacks, l.Stack) {
			return l, fault.Unprocessable("Stack must be an existing stack: there is no '%s'. `stacks` lists those there are.", clipText(l.Stack))
		}
	}
	return l, l.check()
}

// ChangeLifecycle changes how the app is staged next. An app of code never becomes one of an image, nor the reverse: what it has
// been given so far would be of no use.
func (a *App) ChangeLifecycle(c LifecycleChange, stacks []string) error {
	changed, err := a.Lifecycle.With(c, stacks)
	if err != nil {
		return err
	}
	if a.GUID != "" && (changed.Type == LifecycleDocker) != (a.Lifecycle.Type == LifecycleDocker) {
		return fault.Unprocessable("Lifecycle type cannot be changed from %s to %s. Create another app instead.", a.Lifecycle.Type, changed.Type)
	}
	a.Lifecycle = changed
	return nil
}

// The features of an app.
const (
	FeatureSSH          = "ssh"
	FeatureRevisions    = "revisions"
	FeatureBindingFiles = "service-binding-k8s" // Cloud Foundry's name for it
	FeatureNotices      = "notifications"       // ours
)

// SetFeature switches a feature.
func (a *App) SetFeature(name string, on bool) error {
	switch {
	case name == FeatureSSH:
		a.SSH = on
	case name == FeatureBindingFiles:
		a.BindingFiles = on
	case name == FeatureNotices:
		a.Notices = on
	case name != FeatureRevisions:
		return NotFound("Feature")
	case !on:
		return fault.Unprocessable("Revisions cannot be switched off: they are how an app goes back to what it was, and they cost nothing.")
	}
	return nil
}

// Start asks for the app to run.
func (a *App) Start() error {
	if a.Droplet == "" {
		return fault.Unprocessable("Assign a droplet before starting this app.")
	}
	a.State = Started
	return nil
}

// Stop asks for the app not to run.
func (a *App) Stop() { a.State = Stopped }

var envName = regexp.MustCompile(`^[^=\x00]+$`)

// SetEnv changes variables; a nil value takes one away. Nothing that runs sees it before the next start.
func (a *App) SetEnv(changes map[string]*string) error {
	env := maps.Clone(a.Env)
	if env == nil {
		env = map[string]string{}
	}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		if err := checkEnvName(name); err != nil {
			return err
		}
		if value := changes[name]; value == nil {
			delete(env, name)
		} else if strings.ContainsRune(*value, 0) {
			return fault.Unprocessable("The value of the environment variable %q holds a NUL, which no process can be given.", name)
		} else {
			env[name] = *value
		}
	}
	size := 0
	for name, value := range env {
		size += len(name) + len(value)
	}
	if size > maxEnvSize {
		return fault.Unprocessable("The environment variables of an app may hold %d bytes together. Put large settings into a file or a service.", maxEnvSize)
	}
	a.Env = env
	return nil
}

func checkEnvName(name string) error {
	switch {
	case !envName.MatchString(name):
		return fault.Unprocessable("%q cannot be the name of an environment variable: it must not be empty, nor hold an equals sign.", name)
	case strings.HasPrefix(name, "VCAP_"):
		return fault.Unprocessable("Environment variables that begin with VCAP_ are set by the platform: rename %q.", name)
	case strings.HasPrefix(name, "VMC_"):
		return fault.Unprocessable("Environment variables that begin with VMC_ are reserved: rename %q.", name)
	case name == "PORT":
		return fault.Unprocessable("The platform sets PORT to where requests arrive. Read it in the app instead of setting it.")
	}
	return nil
}
