package main_test

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/bits"
	"github.com/proa-dev/proa/platform/controller"
	"github.com/proa-dev/proa/platform/kube"
)

// known goes to the registry with an account, as if it asked users for none.
type known struct {
	http.RoundTripper
	username, password string
}

func (k known) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.SetBasicAuth(k.username, k.password)
	return k.RoundTripper.RoundTrip(req)
}

// startOpen is start within the test, with a registry that shows users' images to everybody.
func (w *world) startOpen() {
	w.Helper()
	dir, err := programs()
	must(w, err)
	registry := *w.packer.Registry
	registry.Public = known{registry.Transport, registry.Username, registry.Password}
	ca, err := os.ReadFile(os.Getenv("PROA_REGISTRY_CA_FILE"))
	must(w, err)
	server := os.Getenv("PROA_REGISTRY")
	host, _, err := net.SplitHostPort(server)
	must(w, err)
	account := kube.Account{Username: registry.Username, Password: registry.Password}
	cluster, err := kube.Connect(os.Getenv("KUBECONFIG"), kube.Settings{Installation: w.installation,
		Registry: kube.Registry{Server: server, Pull: account, Push: account, CA: ca}, Network: kube.Network{Registry: []kube.Peer{{CIDR: host + "/32"}}}})
	must(w, err)
	must(w, w.store.JoinCluster(w.Context(), "default"))
	log := &lockedBuffer{}
	c := &controller.Controller{ID: "default", Store: w.store, Cluster: cluster, Registry: &registry, Builder: server + "/proa/builder:latest", RunImage: server + "/proa/run:latest",
		Programs: bits.Programs{Launcher: filepath.Join(dir, "launcher"), SFTP: filepath.Join(dir, "sftp")}, Timeout: 3 * time.Minute, Log: slog.New(slog.NewJSONHandler(log, nil)), Metrics: controller.NewMetrics(web.NewMetrics().Registry), Now: time.Now}
	ctx, stop := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	w.Cleanup(func() {
		stop()
		<-ended
		if w.Failed() {
			w.Logf("controller:\n%s", log)
		}
	})
}

// buildpack pushes an image with a buildpack: its labels, and its files.
func (w *world) buildpack(repository, id string, files map[string]string) string {
	w.Helper()
	var text bytes.Buffer
	out := tar.NewWriter(&text)
	for name, content := range files {
		must(w, out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(content))}))
		_, err := io.WriteString(out, content)
		must(w, err)
	}
	must(w, out.Close())
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text.Bytes())), nil })
	must(w, err)
	image, err := mutate.AppendLayers(empty.Image, layer)
	must(w, err)
	file, err := image.ConfigFile()
	must(w, err)
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", "amd64"
	file.Config.Labels = map[string]string{"io.buildpacks.buildpackage.metadata": `{"id":"` + id + `","version":"0.0.1","stacks":[{"id":"*"}]}`, "io.buildpacks.buildpack.layers": `{"` + id + `":{"0.0.1":{"api":"0.11"}}}`}
	image, err = mutate.ConfigFile(image, file)
	must(w, err)
	to := os.Getenv("PROA_REGISTRY") + "/" + repository
	must(w, remote.Write(w.reference(to), image, w.remote()...))
	return to
}

const (
	greeterHome = "/cnb/buildpacks/team_greeter/0.0.1/"
	greeterTOML = "api = \"0.11\"\n[buildpack]\nid = \"team/greeter\"\nversion = \"0.0.1\"\n[[targets]]\nos = \"linux\"\narch = \"amd64\"\n"
	greeterTask = "#!/bin/sh\nset -eu\necho The greeter greets.\nmkdir -p \"$CNB_LAYERS_DIR/hello\"\n" +
		"printf '[types]\\nlaunch = true\\n' >\"$CNB_LAYERS_DIR/hello.toml\"\necho hello >\"$CNB_LAYERS_DIR/hello/hello\"\n"
)

// TestBuildpackImage stages with a buildpack of the user's own, beside one of the builder's.
func TestBuildpackImage(t *testing.T) {
	w := newWorld(t)
	w.startOpen()
	greeter := map[string]string{greeterHome + "buildpack.toml": greeterTOML, greeterHome + "bin/detect": "#!/bin/sh\nexit 0\n", greeterHome + "bin/build": greeterTask}
	image := w.buildpack("team/greeter", "team/greeter", greeter)
	a, pkg := w.app("greeted", w.smoke(), "docker://"+image, "proa/procfile")
	b := w.build(pkg)
	log := w.log(a.GUID)
	if b.State != platform.BuildStaged || !strings.Contains(log, "The greeter greets.") {
		t.Fatalf("the build is %+v\n%s", b, log)
	}
	d := get[platform.Droplet](w)(w.store.Droplet(t.Context(), admin, b.DropletGUID))
	if len(d.Buildpacks) != 2 || d.Buildpacks[0] != (platform.DropletBuildpack{ID: "team/greeter", Version: "0.0.1"}) || d.Buildpacks[1].ID != "proa/procfile" {
		t.Errorf("the droplet is %+v", d)
	}
	t.Logf("RUNNING %.1f s after the start", w.run(a, d.GUID).Seconds())
	if again := w.build(pkg); again.State != platform.BuildStaged {
		t.Errorf("again it is %+v", again)
	}

	greeter["/cnb/lifecycle/exporter"] = "#!/bin/sh\nenv\n"
	for name, c := range map[string]struct{ image, want string }{
		"lifecycle": {w.buildpack("team/thief", "team/greeter", greeter), `cannot be used as a buildpack: its entry "/cnb/lifecycle/exporter" is not in the directory`},
		"liar":      {w.buildpack("team/liar", "team/other", map[string]string{greeterHome + "buildpack.toml": greeterTOML}), "is not in the directory of a buildpack that the image's labels name."},
		"no image":  {image + "-that-is-not-there", "does not exist, or needs another account."},
		"an app":    {w.foreign("team/app"), "holds no buildpack: it lacks the label"},
		"ours":      {w.packer.Base, "is a place of the platform's own images."},
	} {
		t.Run(name, func(t *testing.T) {
			_, pkg := w.app(name, w.smoke(), c.image)
			if b := w.build(pkg); b.State != platform.BuildFailed || !strings.HasPrefix(b.Error, "StagingError - ") || !strings.Contains(b.Error, c.want) {
				t.Errorf("the build is %s: %s", b.State, b.Error)
			}
		})
	}
}
