package bits

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/platform"
)

const builtLabel = `{"bom":null,
	"buildpacks":[{"id":"proa/java","version":"1.0.0","homepage":"https://proa.example","api":"0.11"},{"id":"proa/procfile","version":"0.2.0"}],
	"launcher":{"version":"0.20.11","source":{"git":{}}},
	"processes":[
		{"type":"web","command":["java","-jar"],"args":["app.jar"],"direct":true,"buildpackID":"proa/java"},
		{"type":"worker","command":"exec ./work\n","args":null,"direct":false,"default":true,"buildpackID":"proa/procfile"}],
	"buildpack-default-process-type":"web"}`

func TestDroplet(t *testing.T) {
	r, _ := here(t)
	image := putImage(t, r, "proa/droplets/"+newApp(), v1.Config{
		User: "2000:2000", WorkingDir: "/workspace", Entrypoint: []string{"/cnb/process/web"}, Env: []string{"PATH=/cnb/process:/bin"},
		ExposedPorts: map[string]struct{}{"9090": {}, "8080/tcp": {}, "53/udp": {}},
		Labels: map[string]string{
			"io.buildpacks.build.metadata":     builtLabel,
			"io.buildpacks.lifecycle.metadata": `{"app":[{"sha":"sha256:1"}],"runImage":{"topLayer":"sha256:2","reference":"reg/run@sha256:3","image":"reg/run"}}`,
			"io.buildpacks.stack.id":           "io.proa.stacks.bookworm",
		},
	}, types.DockerManifestSchema2)
	got, err := r.Droplet(t.Context(), image)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(got.Image, "@"+got.Digest) || !strings.HasPrefix(got.Digest, "sha256:") || got.Size <= 0 {
		t.Errorf("it is %+v", got)
	}
	byDigest, err := r.Droplet(t.Context(), got.Image)
	if err != nil || !reflect.DeepEqual(byDigest, got) {
		t.Errorf("by digest it is %+v: %v", byDigest, err)
	}
	got.Image, got.Digest, got.Size = "", "", 0
	want := Droplet{
		Stack: "io.proa.stacks.bookworm", RunImage: "reg/run",
		Processes: []platform.DropletProcess{
			{Type: "web", Command: "java", Args: []string{"-jar", "app.jar"}, Default: true},
			{Type: "worker", Command: "exec ./work\n", Args: []string{}, Default: true},
		},
		Buildpacks: []platform.DropletBuildpack{{ID: "proa/java", Version: "1.0.0"}, {ID: "proa/procfile", Version: "0.2.0"}},
		Config: Config{
			User: "2000:2000", Dir: "/workspace", Entrypoint: []string{"/cnb/process/web"}, Env: []string{"PATH=/cnb/process:/bin"}, Ports: []int{8080, 9090},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if _, err := r.Droplet(t.Context(), strings.Replace(image, "/proa/", "/other/", 1)); err == nil {
		t.Error("a droplet is below the prefix")
	}
	if _, err := r.Droplet(t.Context(), image+"-none"); !fault.Is(err, fault.KindNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestHostileLabels(t *testing.T) {
	built := func(processes string) map[string]string {
		return map[string]string{"io.buildpacks.build.metadata": `{"processes":[` + processes + `]}`}
	}
	process := func(kind, command string) string {
		text, _ := json.Marshal(map[string]any{"type": kind, "command": []string{command}})
		return string(text)
	}
	for name, c := range map[string]struct {
		config v1.Config
		says   string
	}{
		"no JSON":        {v1.Config{Labels: map[string]string{"io.buildpacks.build.metadata": "{"}}, "not the JSON"},
		"another JSON":   {v1.Config{Labels: map[string]string{"io.buildpacks.lifecycle.metadata": `{"runImage":[]}`}}, "not the JSON"},
		"long":           {v1.Config{Labels: map[string]string{"io.buildpacks.build.metadata": strings.Repeat(" ", 1<<20+1)}}, "longer than 1 MB"},
		"type":           {v1.Config{Labels: built(process("web/../x", "a"))}, `process type "web/../x"`},
		"long type":      {v1.Config{Labels: built(process(strings.Repeat("a", 64), "a"))}, "1 to 63"},
		"type twice":     {v1.Config{Labels: built(process("web", "a") + "," + process("web", "b"))}, "be there once"},
		"escape":         {v1.Config{Labels: built(process("web", "a\x1b[2J"))}, "control characters"},
		"no command":     {v1.Config{Labels: built(process("web", ""))}, "without a command"},
		"long command":   {v1.Config{Labels: built(process("web", strings.Repeat("a", 40000)))}, "longer than 32768 bytes"},
		"many":           {v1.Config{Labels: built(strings.Repeat(process("web", "a")+",", 1000) + process("web", "a"))}, "more than 1000"},
		"buildpack":      {v1.Config{Labels: map[string]string{"io.buildpacks.build.metadata": `{"buildpacks":[{"id":"a\nb"}]}`}}, "control characters"},
		"stack":          {v1.Config{Labels: map[string]string{"io.buildpacks.stack.id": "a\rb"}}, "control characters"},
		"port":           {v1.Config{ExposedPorts: map[string]struct{}{"99999/tcp": {}}}, `"99999/tcp", which is no port`},
		"environment":    {v1.Config{Env: []string{"A=\x00"}}, "control characters"},
		"many variables": {v1.Config{Env: slices.Repeat([]string{"A=B"}, 1001)}, "more than 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			err := new(Droplet).read(&v1.ConfigFile{Config: c.config})
			expect(t, err, c.says)
		})
	}
}

func TestHugeSettingsAreNotRead(t *testing.T) {
	r, _ := here(t)
	image := putImage(t, r, "proa/droplets/"+newApp(), v1.Config{Labels: map[string]string{"x": strings.Repeat("x", 5<<20)}}, types.OCIManifestSchema1)
	_, err := r.Droplet(t.Context(), image)
	expect(t, err, "more than 4 MB of settings")
}

func TestDockerImage(t *testing.T) {
	r, _ := here(t)
	at := "theirs/" + newApp()
	image := putImage(t, r, at, v1.Config{Entrypoint: []string{"/app"}, Cmd: []string{"serve"}, User: "root", ExposedPorts: map[string]struct{}{"80/tcp": {}}}, types.OCIManifestSchema1)
	got, err := r.DockerImage(t.Context(), image, "proa", r.Password)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(got.Image, at+"@"+got.Digest) || fmt.Sprint(got.Config) != "{[/app] [serve] []  root [80]}" {
		t.Errorf("it is %+v", got)
	}
	for image, says := range map[string]string{
		image:                         "does not exist, or needs another account", // never with the platform's account
		"Not An Image":                "not the name of an image",
		r.Prefix + "/droplets/other":  "the platform's own images",
		"127.0.0.1:1/x":               "could not be asked",
		"169.254.169.254/latest/meta": "could not be asked",
		"localhost:5000/internal":     "could not be asked",
	} {
		_, err := r.DockerImage(t.Context(), image, "", "")
		expect(t, err, says)
	}
	_, err = r.DockerImage(t.Context(), image, "proa", "wrong")
	expect(t, err, "needs another account")
}

func TestOnlyPublicAddresses(t *testing.T) {
	for address, public := range map[string]bool{
		"93.184.216.34:443": true, "[2606:2800:220:1::1]:443": true,
		"127.0.0.1:443": false, "10.1.2.3:443": false, "192.168.0.1:443": false, "169.254.169.254:80": false, "100.64.0.1:443": false, "0.0.0.0:443": false,
		"[::1]:443": false, "[fd00::1]:443": false, "[fe80::1]:443": false, "[::ffff:10.0.0.1]:443": false, "[64:ff9b::a00:1]:443": false,
	} {
		if err := toPublic("tcp", address, nil); (err == nil) != public {
			t.Errorf("%s: %v", address, err)
		}
	}
	resp, err := (&http.Client{Transport: publicOnly}).Get("https://" + theEngine(t).address)
	if err == nil {
		_ = resp.Body.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "not a public address") {
		t.Errorf("got %v", err)
	}
}

func TestBuilder(t *testing.T) {
	r, _ := here(t)
	image := putImage(t, r, "base/"+newApp(), v1.Config{Labels: map[string]string{
		"io.buildpacks.builder.metadata": `{"description":"d","buildpacks":[{"id":"proa/procfile","version":"0.2.0"},{"id":"proa/java","version":"1.0.0","homepage":"h"}],
			"stack":{"runImage":{"image":"old/run"}},"images":[{"image":"proa/run"}],"lifecycle":{"version":"0.20.11"}}`,
		"io.buildpacks.buildpack.layers": `{"proa/java":{"1.0.0":{"api":"0.11","name":"Java","stacks":[{"id":"*"}]}}}`,
		"io.buildpacks.buildpack.order":  `[{"group":[{"id":"proa/java","version":"1.0.0"},{"id":"proa/procfile","optional":true}]},{"group":[{"id":"proa/procfile"}]}]`,
		"io.buildpacks.stack.id":         "io.proa.stacks.bookworm",
	}}, types.DockerManifestSchema2)
	got, err := r.Builder(t.Context(), image)
	if err != nil {
		t.Fatal(err)
	}
	want := Builder{
		Image: got.Image, Stack: "io.proa.stacks.bookworm", RunImage: "proa/run", Lifecycle: "0.20.11",
		Buildpacks: []Buildpack{{ID: "proa/java", Version: "1.0.0", Name: "Java", Homepage: "h"}, {ID: "proa/procfile", Version: "0.2.0"}},
		Order:      [][]string{{"proa/java", "proa/procfile"}, {"proa/procfile"}},
	}
	if !reflect.DeepEqual(got, want) || !strings.Contains(got.Image, "@sha256:") {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	for buildpack, has := range map[string]bool{"proa/java": true, "proa/java@1.0.0": true, "proa/java@2": false, "java": false, "": false} {
		if got.Has(buildpack) != has {
			t.Errorf("has %q is %v", buildpack, !has)
		}
	}
	plain := putImage(t, r, "base/"+newApp(), v1.Config{}, types.DockerManifestSchema2)
	if _, err := r.Builder(t.Context(), plain); err == nil || !strings.Contains(err.Error(), "name an image that is a builder") {
		t.Errorf("got %v", err)
	}
}
