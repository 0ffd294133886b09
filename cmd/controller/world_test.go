package main_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/proa-dev/proa/kit/pg/pgtest"
	"github.com/proa-dev/proa/kit/seal"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/bits"
	"github.com/proa-dev/proa/platform/store"
)

// world is an installation of its own on the running cluster, with a database of its own.
type world struct {
	*testing.T
	store        *store.Store
	packer       *bits.Packer
	installation string
	env          []string
	space        platform.Space
}

var admin = platform.Who{GUID: "admin", Name: "admin", ClientID: "test", Scopes: []string{platform.ScopeAdmin}}

var noted = platform.Metadata{Labels: map[string]string{}, Annotations: map[string]string{}}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func get[V any](w *world) func(V, error) V {
	return func(v V, err error) V {
		w.Helper()
		must(w, err)
		return v
	}
}

var built string // where the programs are, once they are needed

// programs are built once for all tests.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "proa-controller-")
	if err != nil {
		return "", err
	}
	built = dir
	build := func(env string, args ...string) error {
		cmd := exec.Command("go", append([]string{"build", "-buildvcs=false", "-o", dir + "/"}, args...)...)
		cmd.Env = append(os.Environ(), env)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		return nil
	}
	race := "-race=false"
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		race = "-race=true" // what is tested is the program
	}
	if err := errors.Join(build("", race, "../../cmd/controller"), build("CGO_ENABLED=0", "-ldflags=-s -w", "../../cmd/launcher", "../../cmd/sftp", "../../engines/smoke/app", "./testdata/traffic")); err != nil {
		return "", err
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(code)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if os.Getenv("PROA_TEST_CLUSTER") == "" {
		t.Skip("This needs a cluster: run make cluster-up, then . .run/cluster.env and PROA_TEST_CLUSTER=1 go test ./cmd/controller.")
	}
	dir, err := programs()
	must(t, err)
	w := &world{T: t, installation: "test-" + strings.ToLower(rand.Text()[:10])}
	keyset, err := seal.Generate()
	must(t, err)
	box, err := seal.New(keyset)
	must(t, err)
	url := pgtest.URL(t, store.Migrations(), store.Table)
	w.store, err = store.Open(t.Context(), url, box)
	must(t, err)
	t.Cleanup(w.store.Close)
	ca, err := os.ReadFile(os.Getenv("PROA_REGISTRY_CA_FILE"))
	must(t, err)
	way, err := bits.Trusting(ca)
	must(t, err)
	server := os.Getenv("PROA_REGISTRY")
	host, _, err := net.SplitHostPort(server)
	must(t, err)
	registry := &bits.Registry{Prefix: server + "/proa", Username: os.Getenv("PROA_REGISTRY_USERNAME"), Password: os.Getenv("PROA_REGISTRY_PASSWORD"), Transport: way}
	w.packer = &bits.Packer{Registry: registry, Base: server + "/proa/run"}
	w.env = append(os.Environ(), "PROA_CONTROLLER_DATABASE_URL="+url, "PROA_CONTROLLER_KEYSET="+string(keyset), "PROA_INSTALLATION="+w.installation,
		"PROA_LAUNCHER_FILE="+filepath.Join(dir, "launcher"), "PROA_SFTP_FILE="+filepath.Join(dir, "sftp"), "PROA_GATEWAY_CIDRS="+host+"/32", "PROA_STAGING_TIMEOUT=3m")
	org := get[platform.Org](w)(w.store.CreateOrg(t.Context(), admin, platform.Org{Name: "org", Metadata: noted}))
	w.space = get[platform.Space](w)(w.store.CreateSpace(t.Context(), admin, platform.Space{OrgGUID: org.GUID, Name: "space", Metadata: noted}))
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.try("get", "pods,statefulsets,events", "--all-namespaces", "-l", "proa.dev/installation="+w.installation))
		}
		t.Log(w.try("delete", "namespaces", "--wait=false", "-l", "proa.dev/installation="+w.installation))
		w.letGo()
	})
	return w
}

// letGo frees the pods that a controller which is no more had held.
func (w *world) letGo() {
	for line := range strings.Lines(w.try("get", "pods", "--all-namespaces", "-l", "proa.dev/installation="+w.installation, "-o",
		`jsonpath={range .items[?(@.metadata.finalizers)]}{.metadata.namespace} {.metadata.name}{"\n"}{end}`)) {
		if f := strings.Fields(line); len(f) == 2 {
			w.try("--namespace="+f[0], "patch", "pod", f[1], "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		}
	}
}

// A process is a controller that runs. What it logs is in its log.
type process struct {
	cmd     *exec.Cmd
	metrics string
	log     *lockedBuffer
}

type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (w *world) start() *process {
	w.Helper()
	dir, err := programs()
	must(w, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(w, err)
	p := &process{metrics: l.Addr().String(), log: &lockedBuffer{}}
	must(w, l.Close())
	p.cmd = exec.Command(filepath.Join(dir, "controller"))
	p.cmd.Env = append(append([]string{}, w.env...), "PROA_CONTROLLER_METRICS_LISTEN="+p.metrics)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	must(w, p.cmd.Start())
	w.Cleanup(func() {
		p.kill()
		if strings.Contains(p.log.String(), "DATA RACE") {
			w.Error("the controller races")
		}
		if w.Failed() {
			w.Logf("controller %d:\n%s", p.cmd.Process.Pid, p.log)
		}
	})
	return p
}

// kill gives the process no chance.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func (p *process) ask(path string) string {
	client := http.Client{Timeout: 2 * time.Second}
	response, err := client.Get("http://" + p.metrics + path)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return response.Status + "\n" + string(text)
}

func (p *process) leads() bool {
	return strings.Contains(p.ask("/metrics"), "\nproa_controller_leader 1\n")
}

func (w *world) try(args ...string) string {
	out, err := exec.CommandContext(context.Background(), "kubectl", append([]string{"--request-timeout=30s"}, args...)...).CombinedOutput()
	if err != nil {
		return err.Error() + " " + string(out)
	}
	return strings.TrimSpace(string(out))
}

// there lists the names of what the cluster has in the space.
func (w *world) there(kind, role string) []string {
	w.Helper()
	return strings.Fields(w.try("--namespace="+w.space.Namespace(), "get", kind, "-o", "name", "-l", "proa.dev/installation="+w.installation+",proa.dev/role="+role))
}

// until asks again until the answer is right, and tells how long that took.
func (w *world) until(limit time.Duration, what string, ask func() error) time.Duration {
	w.Helper()
	began := time.Now()
	for {
		err := ask()
		if err == nil {
			return time.Since(began)
		}
		if time.Since(began) > limit {
			w.Fatalf("%s: not within %s: %v", what, limit, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// archive is a zip of programs and texts.
func archive(t testing.TB, files map[string]string) *bytes.Reader {
	t.Helper()
	var text bytes.Buffer
	z := zip.NewWriter(&text)
	for name, content := range files {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		h.SetMode(0o755)
		f, err := z.CreateHeader(h)
		must(t, err)
		_, err = f.Write([]byte(content))
		must(t, err)
	}
	must(t, z.Close())
	return bytes.NewReader(text.Bytes())
}

// foreign pushes an image to where the platform's own are not.
func (w *world) foreign(repository string) string {
	w.Helper()
	base, err := remote.Image(w.reference(w.packer.Base), w.remote()...)
	must(w, err)
	file, err := base.ConfigFile()
	must(w, err)
	file = file.DeepCopy()
	file.Config.Entrypoint, file.Config.Cmd = []string{"/bin/app"}, []string{"8080"}
	image, err := mutate.ConfigFile(base, file)
	must(w, err)
	to := os.Getenv("PROA_REGISTRY") + "/" + repository
	must(w, remote.Write(w.reference(to), image, w.remote()...))
	return to
}

func (w *world) layers(image string) int {
	w.Helper()
	found, err := remote.Image(w.reference(image), w.remote()...)
	must(w, err)
	layers, err := found.Layers()
	must(w, err)
	return len(layers)
}

func (w *world) reference(image string) name.Reference {
	w.Helper()
	ref, err := name.ParseReference(image)
	must(w, err)
	return ref
}

func (w *world) remote() []remote.Option {
	r := w.packer.Registry
	return []remote.Option{remote.WithTransport(r.Transport), remote.WithAuth(&authn.Basic{Username: r.Username, Password: r.Password})}
}

const procfile = "web: exec ./app $PORT\n"

// app makes an app with a package that is uploaded.
func (w *world) app(name string, files map[string]string, buildpacks ...string) (platform.App, platform.Package) {
	w.Helper()
	ctx := w.Context()
	a := get[platform.App](w)(w.store.CreateApp(ctx, admin, platform.App{SpaceGUID: w.space.GUID, Name: name, Metadata: noted, Lifecycle: platform.Lifecycle{Type: platform.LifecycleBuildpack, Buildpacks: buildpacks}}))
	p := get[platform.Package](w)(w.store.CreatePackage(ctx, admin, platform.Package{AppGUID: a.GUID, Type: platform.PackageBits}))
	p = get[platform.Package](w)(w.store.BeginUpload(ctx, admin, p.GUID))
	z := archive(w, files)
	up, err := w.packer.Upload(ctx, a.GUID, z, z.Size())
	must(w, err)
	p.Image, p.Size, p.State = up.Image, up.Size, platform.PackageReady
	return a, get[platform.Package](w)(w.store.EndUpload(ctx, p))
}

func (w *world) smoke() map[string]string {
	w.Helper()
	dir, err := programs()
	must(w, err)
	program, err := os.ReadFile(filepath.Join(dir, "app"))
	must(w, err)
	return map[string]string{"Procfile": procfile, "app": string(program)}
}

// build waits for a build to end.
func (w *world) build(p platform.Package) platform.Build {
	w.Helper()
	b := get[platform.Build](w)(w.store.CreateBuild(w.Context(), admin, platform.Build{PackageGUID: p.GUID, MemoryMB: 512, DiskMB: 512}))
	return w.ended(b)
}

func (w *world) ended(b platform.Build) platform.Build {
	w.Helper()
	took := w.until(90*time.Second, "the end of the build", func() error {
		b = get[platform.Build](w)(w.store.Build(w.Context(), admin, b.GUID))
		if b.State == platform.BuildStaging {
			return fmt.Errorf("it is still under way\n%s", w.log(b.AppGUID))
		}
		return nil
	})
	w.Logf("staging of %s ended as %s after %.1f s. %s", b.AppGUID, b.State, took.Seconds(), b.Error)
	return b
}

// log is the app's stream.
func (w *world) log(app string) string {
	w.Helper()
	lines, err := w.store.Log(w.Context(), admin, app, store.LogWindow{To: 1 << 62, Limit: 10000})
	must(w, err)
	var text strings.Builder
	var last time.Time
	for _, l := range lines {
		if !l.At.After(last) {
			w.Errorf("line %q is not after the one before", l.Text)
		}
		last = l.At
		fmt.Fprintf(&text, "[%s/%s] %s\n", l.Source, l.Instance, l.Text)
	}
	return text.String()
}

// run takes a droplet to its first running instance, and tells how long that took after the start.
func (w *world) run(a platform.App, droplet string) time.Duration {
	w.Helper()
	get[platform.App](w)(w.store.AssignDroplet(w.Context(), admin, a.GUID, droplet))
	get[platform.App](w)(w.store.StartApp(w.Context(), admin, a.GUID, store.Settings{API: "https://api.example.org"}))
	return w.instances(a, "RUNNING")
}

func (w *world) web(a platform.App) platform.Process {
	w.Helper()
	return get[platform.Process](w)(w.store.ProcessOf(w.Context(), admin, a.GUID, platform.WebProcess))
}

// instances waits until the records say this of the instances.
func (w *world) instances(a platform.App, want string) time.Duration {
	w.Helper()
	process := w.web(a).GUID
	return w.until(90*time.Second, "instances "+want, func() error {
		all, err := w.store.Instances(w.Context(), []string{process})
		must(w, err)
		var got []string
		for _, i := range all[process] {
			got = append(got, string(i.State))
		}
		if strings.Join(got, " ") != want {
			return fmt.Errorf("they are %+v", all[process])
		}
		return nil
	})
}
