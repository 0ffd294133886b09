package platform

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/proa-dev/proa/kit/fault"
)

// A Sidecar is a process beside the main one, in the same container: they start together, and when one ends the others do too.
// Its health is that it runs, nothing else, and it scales with the process it belongs to.
type Sidecar struct {
	GUID         string
	AppGUID      string
	Name         string
	Command      string
	ProcessTypes []string
	MemoryMB     *int // carved out of the process; nil: it shares what the main process has
	Origin       SidecarOrigin
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// SidecarOrigin is who asked for a sidecar.
type SidecarOrigin string

// The origins: a developer (through the API or a manifest), or a buildpack while staging.
const (
	SidecarOfUser      SidecarOrigin = "user"
	SidecarOfBuildpack SidecarOrigin = "buildpack"
)

const (
	maxSidecars     = 64 // what pid 1 of a container takes
	maxSidecarTypes = 20
)

// SidecarChange says what shall be different; nil leaves a value as it is.
type SidecarChange struct {
	Name         *string
	Command      *string
	ProcessTypes []string
	MemoryMB     *int
	NoMemory     bool // forget the memory it had
}

// Update changes a sidecar. Whether it fits beside the others is CheckSidecars' and CheckSidecarMemory's to say.
func (s *Sidecar) Update(c SidecarChange) error {
	changed := *s
	setIf(&changed.Name, c.Name)
	setIf(&changed.Command, c.Command)
	if c.ProcessTypes != nil {
		changed.ProcessTypes = c.ProcessTypes
	}
	if c.MemoryMB != nil || c.NoMemory {
		changed.MemoryMB = c.MemoryMB
	}
	if err := changed.Check(); err != nil {
		return err
	}
	*s = changed
	return nil
}

// Check says what is wrong with the sidecar itself, all of it at once.
func (s *Sidecar) Check() error {
	var faults []string
	if wrong := sidecarNameFault(s.Name); wrong != "" {
		faults = append(faults, "Name "+wrong)
	}
	if wrong := commandFault(s.Command); wrong != "" {
		faults = append(faults, "Command "+wrong)
	}
	if wrong := sidecarTypesFault(s.ProcessTypes); wrong != "" {
		faults = append(faults, "Process types "+wrong)
	}
	return faultOf(append(faults, boundsFault("Memory in mb", s.MemoryMB, 1, MaxMegabytes)...))
}

// sidecarNameFault counts bytes, because pid 1 does.
func sidecarNameFault(name string) string {
	switch {
	case strings.TrimSpace(name) == "":
		return "can't be blank"
	case len(name) > maxName:
		return fmt.Sprintf("is too long (maximum is %d characters)", maxName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return "must not hold line breaks or control characters."
	}
	return ""
}

func sidecarTypesFault(types []string) string {
	if len(types) == 0 {
		return "must have at least 1 process_type"
	}
	if len(types) > maxSidecarTypes {
		return fmt.Sprintf("must have at most %d process_types", maxSidecarTypes)
	}
	for i, kind := range types {
		if wrong := processTypeFault(kind); wrong != "" {
			return "entry '" + clipText(kind) + "' " + wrong
		}
		if slices.Contains(types[:i], kind) {
			return "name '" + kind + "' twice."
		}
	}
	return ""
}

// RefuseSidecarKey explains why a sidecar cannot have some keys that a process has. Of other keys it says nothing.
func RefuseSidecarKey(key string) error {
	key = strings.ReplaceAll(key, "_", "-")
	switch {
	case strings.HasPrefix(key, "health-check") || strings.HasPrefix(key, "readiness-health-check"):
		return fault.Unprocessable("Sidecars support only process health checks: a sidecar is healthy while it runs. Take the key away, or check an endpoint of the main process.")
	case key == "instances":
		return fault.Unprocessable("Sidecars cannot be scaled on their own: there is one in each instance of the process. Set instances on the process instead.")
	}
	return nil
}

// CheckSidecars says what is wrong with the sidecars of an app together.
func CheckSidecars(sidecars []Sidecar) error {
	if len(sidecars) > maxSidecars {
		return fault.Unprocessable("An app may have at most %d sidecars, and this one would have %d.", maxSidecars, len(sidecars))
	}
	seen := map[string]bool{}
	for _, s := range sidecars {
		if seen[s.Name] {
			return ErrSidecarExists(s.Name)
		}
		seen[s.Name] = true
	}
	return nil
}

// ErrSidecarExists refuses a second sidecar of the same name.
func ErrSidecarExists(name string) error {
	return fault.Unprocessable("Sidecar with name '%s' already exists for given app", name)
}

// SidecarsOf are the sidecars of one process type, in the order given.
func SidecarsOf(kind string, sidecars []Sidecar) []Sidecar {
	var its []Sidecar
	for _, s := range sidecars {
		if slices.Contains(s.ProcessTypes, kind) {
			its = append(its, s)
		}
	}
	return its
}

// CheckSidecarMemory holds the sidecars of a process against its memory: something must be left to the process itself. It
// names the first sidecar that no longer fits.
func CheckSidecarMemory(p Process, sidecars []Sidecar) error {
	left := p.MemoryMB
	for _, s := range SidecarsOf(p.Type, sidecars) {
		if s.MemoryMB == nil {
			continue
		}
		if left -= *s.MemoryMB; left <= 0 {
			return fault.Unprocessable("The memory allocation defined is too large to run with the dependent \"%s\" process: with sidecar '%s' (%s) its sidecars leave nothing of %s to the process. Give the process more memory or the sidecar less.",
				p.Type, s.Name, FormatMegabytes(*s.MemoryMB), FormatMegabytes(p.MemoryMB))
		}
	}
	return nil
}

// CheckSidecarStart refuses to start a droplet whose buildpacks give all memory to the main process while a sidecar has none
// set aside. Java's do so, and of a buildpack that is not the builder's nobody knows.
func CheckSidecarStart(d Droplet, builders []Buildpack, sidecars []Sidecar) error {
	var why string
	switch {
	case slices.ContainsFunc(d.Buildpacks, func(b DropletBuildpack) bool { return runsJava(b.ID) }):
		why = "a Java app"
	case slices.ContainsFunc(d.Lifecycle.Buildpacks, func(name string) bool { return !fromBuilder(name, builders) }):
		why = "an app with a custom buildpack"
	default:
		return nil
	}
	for _, s := range sidecars {
		if s.MemoryMB == nil {
			return fault.Unprocessable("Sidecar '%s' of %s needs memory of its own, or the app leaves it none: set its `memory` in the manifest, such as 256MB, and start the app again.", s.Name, why)
		}
	}
	return nil
}

// fromBuilder compares ids; a version may follow one.
func fromBuilder(name string, builders []Buildpack) bool {
	id, _, _ := strings.Cut(name, "@")
	return slices.ContainsFunc(builders, func(b Buildpack) bool { return b.Name == id })
}

// javaBuildpacks are ids, or beginnings of ids, of buildpacks that put a Java machine into a droplet. A droplet names the
// parts that took part, not the collection they came from: so the parts are here too.
var javaBuildpacks = []string{
	"proa/java",
	"paketo-buildpacks/java", "paketo-buildpacks/adoptium", "paketo-buildpacks/alibaba-dragonwell", "paketo-buildpacks/amazon-corretto",
	"paketo-buildpacks/apache-tom", "paketo-buildpacks/azul-zulu", "paketo-buildpacks/bellsoft-liberica", "paketo-buildpacks/dist-zip",
	"paketo-buildpacks/eclipse-openj9", "paketo-buildpacks/executable-jar", "paketo-buildpacks/graalvm", "paketo-buildpacks/liberty",
	"paketo-buildpacks/microsoft-openjdk", "paketo-buildpacks/oracle", "paketo-buildpacks/sap-machine", "paketo-buildpacks/spring-boot",
	"heroku/java", "heroku/jvm", "heroku/maven", "heroku/gradle", "heroku/scala", "heroku/sbt", "heroku/clojure",
	"google.java.", "java_buildpack",
}

// runsJava also knows an id by the word java, as in example/java: the first step of an id is only who made it.
func runsJava(id string) bool {
	id = strings.ToLower(id)
	name := id[strings.LastIndex(id, "/")+1:]
	return name == "java" || slices.ContainsFunc(javaBuildpacks, func(start string) bool {
		return strings.HasPrefix(id, start) && !strings.HasPrefix(id, start+"script")
	})
}
