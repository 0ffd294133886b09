package kube

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/launch"
)

var update = flag.Bool("update", false, "write testdata instead of comparing with it")

// golden holds objects against a file that a person can read.
func golden(t *testing.T, file string, objects []runtime.Object) {
	t.Helper()
	var got bytes.Buffer
	encoder := yaml.NewEncoder(&got)
	encoder.SetIndent(2)
	for _, o := range objects {
		text, err := encode(o)
		if err != nil {
			t.Fatal(err)
		}
		var plain any
		if err := json.Unmarshal(text, &plain); err != nil {
			t.Fatal(err)
		}
		if err := encoder.Encode(plain); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the objects are not those of %s (go test -update writes it):\n%s", path, got.String())
	}
}

var settings = Settings{
	Registry: Registry{
		Server: "registry:5000", Pull: Account{Username: "reader", Password: "r"}, Push: Account{Username: "writer", Password: "w"}, CA: []byte("pem\n"),
	},
	Network: Network{
		Gateway:  []Peer{{CIDR: "10.0.0.1/32"}, {Namespaces: map[string]string{"kubernetes.io/metadata.name": "gateway"}}},
		Registry: []Peer{{CIDR: "10.0.0.2/32", Ports: []int32{5000}}},
		Allowed:  []Peer{{CIDR: "10.1.0.0/16", Ports: []int32{5432}}},
	},
}.Defaults()

func wanted() platform.Wanted {
	return platform.Wanted{Instances: 2, Release: platform.Release{
		GUID: "6a1c6c1e-7f0b-4b6b-9e52-0f3a5c0f1d11", AppGUID: "app-guid", AppName: "The shop", SpaceGUID: "space-guid", Namespace: "space-1",
		ProcessGUID: "process-guid", ProcessType: "web", Version: 7, Image: "registry:5000/droplet@sha256:" + strings.Repeat("a", 64), User: "2000:2000",
		Command: "exec ./shop", Sidecars: []platform.ReleaseSidecar{{Name: "config server", Command: "./config", MemoryMB: 64}},
		Env:   map[string]string{"VCAP_SERVICES": `{"secret":true}`, "odd.name": "odd"},
		Ports: []int{8080, 9191}, MemoryMB: 512, DiskMB: 1024,
		Health:    platform.Probe{Type: platform.ProbeHTTP, Endpoint: "/health", Timeout: 90 * time.Second},
		Readiness: platform.Probe{Type: platform.ProbePort, Interval: 10 * time.Second, InvocationTimeout: 2 * time.Second},
	}}
}

func staging() platform.Staging {
	return platform.Staging{
		BuildGUID: "b7c7ed3c-5e7e-4b2f-8a2e-4a1a2f7f2c55", AppGUID: "app-guid", SpaceGUID: "space-guid", Namespace: "space-1",
		SourceImage: "registry:5000/source@sha256:1", Builder: "registry:5000/builder@sha256:2", RunImage: "registry:5000/run@sha256:3", TargetImage: "registry:5000/droplet",
		Buildpacks: []string{"proa/procfile@0.1.0"}, Env: map[string]string{"BP_X": "1", "odd name": "2", "../escape": "3"}, MemoryMB: 1024, DiskMB: 2048, Timeout: 10 * time.Minute,
	}
}

// TestBuildImage keeps a user's own buildpacks out of the containers that have the registry's credentials.
func TestBuildImage(t *testing.T) {
	b := staging()
	b.BuildImage = "registry:5000/custom@sha256:4"
	objects, err := settings.StagingObjects(b)
	if err != nil {
		t.Fatal(err)
	}
	pod := objects[1].(*corev1.Pod).Spec
	want := map[string]string{
		"fetch": b.SourceImage, "analyzer": b.Builder, "detector": b.BuildImage, "restorer": b.Builder, "builder": b.BuildImage, "exporter": b.Builder,
	}
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		account := slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "CNB_REGISTRY_AUTH" })
		if c.Image != want[c.Name] || account && c.Image == b.BuildImage {
			t.Errorf("%s has the image %s, and an account: %t", c.Name, c.Image, account)
		}
		delete(want, c.Name)
	}
	if len(want) > 0 {
		t.Errorf("these are missing: %v", want)
	}
}

func TestSpaceObjects(t *testing.T) {
	golden(t, "space.yaml", settings.SpaceObjects("space-guid", "space-1"))
}

func TestReleaseObjects(t *testing.T) {
	objects, err := settings.ReleaseObjects(wanted())
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "release.yaml", objects)
	if text, _ := json.Marshal(objects[1]); bytes.Contains(text, []byte("secret\\\"")) || bytes.Contains(text, []byte("./shop")) || bytes.Contains(text, []byte("odd")) {
		t.Errorf("the StatefulSet tells what only the Secret may: %s", text)
	}
	config, err := launch.Decode(objects[0].(*corev1.Secret).Data[launch.EnvConfig])
	if err != nil {
		t.Fatal(err)
	}
	if s := config.Sidecars[0]; config.Main.Env["odd.name"] != "odd" || s.Env["odd.name"] != "odd" || s.Env["MEMORY_LIMIT"] != "64m" || config.Main.Memory != 448<<20 {
		t.Errorf("launch is told %+v", config)
	}
}

func TestReleaseObjectsRefuse(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*platform.Release)
		says   string
	}{
		"too large a variable": {func(r *platform.Release) { r.Env["X"] = strings.Repeat("x", 128<<10) }, "too large at 'X'"},
		"a name given twice":   {func(r *platform.Release) { r.Sidecars = append(r.Sidecars, r.Sidecars[0]) }, "name of its own"},
		"no digest":            {func(r *platform.Release) { r.Image = "registry/x" }, "digest"},
	} {
		w := wanted()
		c.change(&w.Release)
		if _, err := settings.ReleaseObjects(w); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want something about %q", name, err, c.says)
		}
	}
}

func TestReleaseWithoutChecks(t *testing.T) {
	w := wanted()
	w.Release.Ports, w.Release.Health, w.Release.Readiness, w.Release.User = nil, platform.Probe{Type: platform.ProbeProcess}, platform.Probe{}, ""
	objects, err := settings.ReleaseObjects(w)
	if err != nil {
		t.Fatal(err)
	}
	pod := objects[1].(*appsv1.StatefulSet).Spec.Template.Spec
	if c := pod.Containers[0]; c.StartupProbe != nil || c.LivenessProbe != nil || c.ReadinessProbe != nil || len(c.Ports) != 0 {
		t.Errorf("a process that merely has to be there is asked: %+v", c)
	}
	if s := pod.SecurityContext; s.RunAsUser != nil || !*s.RunAsNonRoot {
		t.Errorf("without a user the image's own should do, if it is not root: %+v", s)
	}
}

func TestStagingObjects(t *testing.T) {
	objects, err := settings.StagingObjects(staging())
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "staging.yaml", objects)
	pod := objects[1].(*corev1.Pod)
	for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		text, _ := json.Marshal(c)
		if has := strings.Contains(string(text), registrySecret+`","key"`); has != trusted(c.Name) {
			t.Errorf("%s has the registry's credentials: %t", c.Name, has)
		}
		for _, m := range c.VolumeMounts {
			if m.Name == "analyzed" && m.ReadOnly == trusted(c.Name) {
				t.Errorf("%s can write analyzed.toml: %t", c.Name, !m.ReadOnly)
			}
		}
	}
}

// TestNoPeersMeansNobody: in a NetworkPolicy a rule without peers would mean everybody.
func TestNoPeersMeansNobody(t *testing.T) {
	for _, p := range (Settings{}).Defaults().policies("n") {
		for _, rule := range p.Spec.Ingress {
			t.Errorf("%s lets in %+v", p.Name, rule)
		}
		for _, rule := range p.Spec.Egress {
			if len(rule.To) == 0 {
				t.Errorf("%s lets out to everybody", p.Name)
			}
		}
		if len(p.Spec.PolicyTypes) != 2 || p.Spec.PolicyTypes[0] != networkingv1.PolicyTypeIngress || p.Spec.PolicyTypes[1] != networkingv1.PolicyTypeEgress {
			t.Errorf("%s is about %v only", p.Name, p.Spec.PolicyTypes)
		}
	}
}

func TestNames(t *testing.T) {
	for _, guid := range []string{"6a1c6c1e-7f0b-4b6b-9e52-0f3a5c0f1d11", "UPPER", "", "a b", strings.Repeat("x", 300), "ends-with-"} {
		name := SetName(guid)
		if len(name) > maxName || !fitName.MatchString(name) {
			t.Errorf("%q is named %q", guid, name)
		}
	}
	if SetName("A") == SetName("a") {
		t.Error("two guids have one name")
	}
	if got := labelValue("web worker/ü"); !fitLabel.MatchString(got) {
		t.Errorf("the label is %q", got)
	}
}
