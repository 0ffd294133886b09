package platform

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func sidecar(name string, memory *int, types ...string) Sidecar {
	return Sidecar{Name: name, Command: "./" + name, ProcessTypes: types, MemoryMB: memory}
}

func TestCheckSidecar(t *testing.T) {
	for name, test := range map[string]struct {
		sidecar Sidecar
		want    []string
	}{
		"fine":            {sidecar("config server", new(256), "web", "worker"), nil},
		"nothing":         {Sidecar{}, []string{"Name can't be blank", "Command can't be blank", "Process types must have at least 1 process_type"}},
		"a long name":     {sidecar(strings.Repeat("n", 256), nil, "web"), []string{"Name is too long (maximum is 255 characters)"}},
		"a line break":    {sidecar("a\nb", nil, "web"), []string{"Name must not hold line breaks or control characters."}},
		"a long command":  {Sidecar{Name: "a", Command: strings.Repeat("c", 4097), ProcessTypes: []string{"web"}}, []string{"Command is too long (maximum is 4096 characters)"}},
		"an odd type":     {sidecar("a", nil, "web 1"), []string{"Process types entry 'web 1' must be 1 to 63 of the characters a-z A-Z 0-9 . _ and -."}},
		"a type twice":    {sidecar("a", nil, "web", "web"), []string{"Process types name 'web' twice."}},
		"no memory left":  {sidecar("a", new(0), "web"), []string{"Memory in mb must be greater than 0"}},
		"memory too much": {sidecar("a", new(1<<30), "web"), []string{"Memory in mb must be less than or equal to 16777216"}},
	} {
		if got := told(test.sidecar.Check()); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestUpdateSidecar(t *testing.T) {
	s := sidecar("a", new(64), "web")
	if err := s.Update(SidecarChange{Name: new(" "), Command: new("./b")}); err == nil || s.Command != "./a" {
		t.Errorf("a refused change left %+v", s)
	}
	if err := s.Update(SidecarChange{Command: new("./b"), ProcessTypes: []string{"worker"}}); err != nil || s.Command != "./b" || s.ProcessTypes[0] != "worker" || *s.MemoryMB != 64 {
		t.Errorf("changed to %+v: %v", s, err)
	}
	if err := s.Update(SidecarChange{NoMemory: true}); err != nil || s.MemoryMB != nil {
		t.Errorf("the memory stayed: %+v: %v", s, err)
	}
}

func TestCheckSidecars(t *testing.T) {
	var many []Sidecar
	for i := range 65 {
		many = append(many, sidecar(fmt.Sprint(i), nil, "web"))
	}
	if err := CheckSidecars(many[:64]); err != nil {
		t.Error(err)
	}
	want := []string{"An app may have at most 64 sidecars, and this one would have 65."}
	if got := told(CheckSidecars(many)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	want = []string{"Sidecar with name '1' already exists for given app"}
	if got := told(CheckSidecars(append(many[:2:2], many[1]))); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRefuseSidecarKey(t *testing.T) {
	for key, want := range map[string]string{
		"health-check-type":           "Sidecars support only process health checks: a sidecar is healthy while it runs. Take the key away, or check an endpoint of the main process.",
		"health_check":                "Sidecars support only process health checks: a sidecar is healthy while it runs. Take the key away, or check an endpoint of the main process.",
		"readiness-health-check-type": "Sidecars support only process health checks: a sidecar is healthy while it runs. Take the key away, or check an endpoint of the main process.",
		"instances":                   "Sidecars cannot be scaled on their own: there is one in each instance of the process. Set instances on the process instead.",
		"memory":                      "",
	} {
		if got := strings.Join(told(RefuseSidecarKey(key)), "|"); got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
}

func TestSidecarMemory(t *testing.T) {
	web := NewProcess("app", "web")
	web.MemoryMB = 512
	sidecars := []Sidecar{sidecar("a", new(256), "web"), sidecar("b", nil, "web"), sidecar("c", new(9999), "worker"), sidecar("d", new(255), "web")}
	if err := CheckSidecarMemory(web, sidecars); err != nil {
		t.Error(err)
	}
	sidecars[3].MemoryMB = new(256)
	want := []string{`The memory allocation defined is too large to run with the dependent "web" process: with sidecar 'd' (256M) its sidecars leave nothing of 512M to the process. Give the process more memory or the sidecar less.`}
	if got := told(CheckSidecarMemory(web, sidecars)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCheckSidecarStart(t *testing.T) {
	builders := []Buildpack{{Name: "proa/go"}, {Name: "proa/java"}}
	droplet := func(asked string, took ...string) Droplet {
		var d Droplet
		if asked != "" {
			d.Lifecycle.Buildpacks = []string{asked}
		}
		for _, id := range took {
			d.Buildpacks = append(d.Buildpacks, DropletBuildpack{ID: id})
		}
		return d
	}
	with, without := []Sidecar{sidecar("ok", new(64), "web")}, []Sidecar{sidecar("ok", new(64), "web"), sidecar("config server", nil, "web")}
	java := "Sidecar 'config server' of a Java app needs memory of its own, or the app leaves it none: set its `memory` in the manifest, such as 256MB, and start the app again."
	custom := strings.Replace(java, "a Java app", "an app with a custom buildpack", 1)
	for name, test := range map[string]struct {
		droplet  Droplet
		sidecars []Sidecar
		want     string
	}{
		"go":                  {droplet("", "proa/go"), without, ""},
		"go with its version": {droplet("proa/go@1.2", "proa/go"), without, ""},
		"node":                {droplet("", "paketo-buildpacks/node-engine", "example/javascript"), without, ""},
		"an image":            {droplet(""), without, ""},
		"java with memory":    {droplet("", "proa/java"), with, ""},
		"java, no sidecar":    {droplet("", "proa/java"), nil, ""},
		"java":                {droplet("", "proa/java"), without, java},
		"parts of Paketo's":   {droplet("", "paketo-buildpacks/ca-certificates", "paketo-buildpacks/bellsoft-liberica"), without, java},
		"heroku":              {droplet("", "heroku/jvm"), without, java},
		"google":              {droplet("", "google.java.runtime"), without, java},
		"anyone's java":       {droplet("docker://example.org/java", "example/java"), without, java},
		"custom":              {droplet("https://example.org/buildpack.git", "example/lisp"), without, custom},
		"custom with memory":  {droplet("https://example.org/buildpack.git", "example/lisp"), with, ""},
	} {
		if got := strings.Join(told(CheckSidecarStart(test.droplet, builders, test.sidecars)), "|"); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
