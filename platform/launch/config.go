package launch

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// What holds where the configuration says nothing else.
const (
	DefaultGrace          = 10 * time.Second
	DefaultHold           = 10 * time.Second
	DefaultIndexFrom      = "CF_INSTANCE_INDEX"
	DefaultTerminationLog = "/dev/termination-log"
	DefaultSocket         = "@proa-launch" // abstract: no file, and out of reach from outside the pod's network namespace
)

// EnvConfig is the environment variable that holds the configuration where no file does. No process inherits it.
const EnvConfig = "PROA_LAUNCH"

const (
	maxConfig   = 1 << 20
	maxSidecars = 64
	maxName     = 255
	maxGrace    = time.Hour
)

// Config says what runs in the container. A field that this version does not know is passed over: the launcher lives in
// the app's image and may be older than the controller that writes the configuration.
type Config struct {
	Process        string    `json:"process"`                   // process type, such as web
	IndexFrom      string    `json:"index_from,omitempty"`      // environment variable that holds the instance index
	Launcher       string    `json:"launcher,omitempty"`        // the CNB launcher; none means /bin/sh
	Main           Process   `json:"main"`                      // has no name
	Sidecars       []Process `json:"sidecars,omitempty"`        // each has one of its own
	GraceSeconds   float64   `json:"grace_seconds,omitempty"`   // between TERM and KILL
	TerminationLog string    `json:"termination_log,omitempty"` // where the exit record goes
	Socket         string    `json:"socket,omitempty"`          // where status is asked; @ begins an abstract name
	Mark           string    `json:"mark,omitempty"`            // a file that outlives the container, by which a restart in its place is known
	HoldSeconds    float64   `json:"hold_seconds,omitempty"`    // that it waits after such a restart
}

// Process is the main process or a sidecar: a command line for a shell, or a program with its arguments and no shell.
// A main process with neither is the image's own process of that type, which only the CNB launcher knows.
type Process struct {
	Name    string            `json:"name,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`    // added to what the container has
	Memory  int64             `json:"memory,omitempty"` // bytes set aside for it: told in the status, held by nobody
}

// Load reads the configuration from a file, or from the environment where none is named.
func Load(file string) (Config, error) {
	if file == "" {
		text, found := os.LookupEnv(EnvConfig)
		if !found {
			return Config{}, fmt.Errorf("There is nothing to launch: name a configuration file, or set %s.", EnvConfig)
		}
		return Decode([]byte(text))
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return Config{}, fmt.Errorf("The launch configuration cannot be read: %w", err)
	}
	return Decode(text)
}

// Decode reads a configuration, fills in what it leaves out and says what is wrong with it.
func Decode(text []byte) (Config, error) {
	var c Config
	if len(text) > maxConfig {
		return c, fmt.Errorf("The launch configuration is longer than %d bytes.", maxConfig)
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return Config{}, fmt.Errorf("The launch configuration is not the JSON it should be: %w", err)
	}
	c.fillIn()
	if err := c.check(); err != nil {
		return Config{}, err
	}
	return c, nil
}

func (c *Config) fillIn() {
	fill := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	fill(&c.IndexFrom, DefaultIndexFrom)
	fill(&c.TerminationLog, DefaultTerminationLog)
	fill(&c.Socket, DefaultSocket)
	if c.GraceSeconds == 0 {
		c.GraceSeconds = DefaultGrace.Seconds()
	}
	if c.HoldSeconds == 0 {
		c.HoldSeconds = DefaultHold.Seconds()
	}
}

func (c *Config) check() error {
	switch {
	case !fitName(c.Process):
		return fmt.Errorf("The launch configuration needs a process type of 1 to %d bytes without control characters.", maxName)
	case c.Main.Name != "":
		return fmt.Errorf("The main process is named by its type; take the name %q away.", c.Main.Name)
	case c.GraceSeconds < 0 || c.GraceSeconds > maxGrace.Seconds():
		return fmt.Errorf("The grace period must be between 0 and %v.", maxGrace)
	case c.HoldSeconds < 0 || c.HoldSeconds > DefaultHold.Seconds():
		return fmt.Errorf("After a restart in its place, a container waits between 0 and %v.", DefaultHold)
	case len(c.Sidecars) > maxSidecars:
		return fmt.Errorf("There are %d sidecars; at most %d fit into a container.", len(c.Sidecars), maxSidecars)
	case strings.ContainsRune(c.TerminationLog+c.Launcher+c.Socket+c.Mark, 0):
		return fmt.Errorf("A path in the launch configuration holds a NUL.")
	}
	if err := c.Main.check(c.Launcher != ""); err != nil {
		return fmt.Errorf("The main process: %w", err)
	}
	seen := map[string]bool{}
	for _, s := range c.Sidecars {
		if !fitName(s.Name) || seen[s.Name] {
			return fmt.Errorf("Each sidecar needs a name of its own, of 1 to %d bytes without control characters; %q is none.", maxName, s.Name)
		}
		seen[s.Name] = true
		if err := s.check(false); err != nil {
			return fmt.Errorf("The sidecar %q: %w", s.Name, err)
		}
	}
	return nil
}

func (p Process) check(mayBeEmpty bool) error {
	switch {
	case p.Command != "" && len(p.Args) > 0:
		return fmt.Errorf("it has both a command and args; give one of them.")
	case p.Command == "" && (len(p.Args) == 0 || p.Args[0] == "") && (len(p.Args) > 0 || !mayBeEmpty):
		return fmt.Errorf("it has no command.")
	case p.Memory < 0:
		return fmt.Errorf("its memory is negative.")
	case strings.ContainsRune(p.Command, 0) || slices.ContainsFunc(p.Args, func(a string) bool { return strings.ContainsRune(a, 0) }):
		return fmt.Errorf("its command holds a NUL.")
	}
	for name, value := range p.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return fmt.Errorf("%q cannot be an environment variable.", name)
		}
	}
	return nil
}

// fitName keeps control characters out: a name stands in the mark of a line.
func fitName(name string) bool {
	return name != "" && len(name) <= maxName && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}

func (c *Config) grace() time.Duration {
	return time.Duration(c.GraceSeconds * float64(time.Second))
}

// index is 0 where the environment does not tell: a container by itself is the first instance.
func (c *Config) index() int {
	n, err := strconv.Atoi(os.Getenv(c.IndexFrom))
	if err != nil || n < 0 {
		return 0
	}
	return n
}
