package bits

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/proa-dev/proa/kit/fault"
)

// Bounds for what an image says of itself: far beyond what anybody needs, and small enough to keep in a row of a table.
const (
	maxLabel = 1 << 20  // bytes of a label
	maxText  = 255      // bytes of a name, a version
	maxLine  = 32 << 10 // bytes of a command or an argument
	maxList  = 1000     // of anything there is a list of
)

// readLabel reads a label's JSON. A label that is not there leaves the value as it is.
func readLabel(config *v1.ConfigFile, label string, into any) error {
	text, found := config.Config.Labels[label]
	if !found {
		return nil
	}
	if len(text) > maxLabel {
		return fault.Unprocessable("The image's label %s is longer than %s. Use other buildpacks, or another image.", label, inUnits(maxLabel))
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fault.Unprocessable("The image's label %s is not the JSON it should be. Use other buildpacks, or another image.", label).Because(err)
	}
	return nil
}

// plain refuses what could pass for something else where it is shown or logged.
func plain(what string, max int, texts ...string) error {
	if len(texts) > maxList {
		return fault.Unprocessable("The image names more than %d of one thing: %s. Use other buildpacks, or another image.", maxList, what)
	}
	for _, text := range texts {
		if len(text) > max || !utf8.ValidString(text) || strings.ContainsFunc(text, unprintable(max)) {
			return fault.Unprocessable("The image's %s %s is longer than %d bytes or has control characters in it. Use other buildpacks, or another image.", what, shown(text), max)
		}
	}
	return nil
}

// unprintable lets a command have lines and tabs.
func unprintable(max int) func(rune) bool {
	return func(r rune) bool {
		return unicode.IsControl(r) && (max < maxLine || !strings.ContainsRune("\n\r\t", r))
	}
}

// Config is how an image wants to be run.
type Config struct {
	Entrypoint []string
	Cmd        []string
	Env        []string // NAME=VALUE
	Dir        string
	User       string
	Ports      []int // TCP ports that it says it listens on
}

func readConfig(file *v1.ConfigFile) (Config, error) {
	in := file.Config
	c := Config{Entrypoint: in.Entrypoint, Cmd: in.Cmd, Env: in.Env, Dir: in.WorkingDir, User: in.User}
	for _, check := range []error{
		plain("entrypoint", maxLine, c.Entrypoint...), plain("command", maxLine, c.Cmd...), plain("environment", maxLine, c.Env...),
		plain("directory", maxName, c.Dir), plain("user", maxText, c.User),
	} {
		if check != nil {
			return Config{}, check
		}
	}
	if len(in.ExposedPorts) > maxList {
		return Config{}, fault.Unprocessable("The image exposes more than %d ports. Use another.", maxList)
	}
	for port := range in.ExposedPorts {
		number, protocol, _ := strings.Cut(port, "/")
		n, err := strconv.ParseUint(number, 10, 16)
		if err != nil || n == 0 {
			return Config{}, fault.Unprocessable("The image exposes %s, which is no port. Use another image.", shown(port))
		}
		if protocol == "" || protocol == "tcp" {
			c.Ports = append(c.Ports, int(n))
		}
	}
	slices.Sort(c.Ports)
	return c, nil
}
