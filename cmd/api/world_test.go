package main_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/pg/pgtest"
	"github.com/proa-dev/proa/kit/seal"
	"github.com/proa-dev/proa/kit/token"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/bits"
	"github.com/proa-dev/proa/platform/store"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// world is an installation of its own on the running cluster: a database, a controller and an API, and keys that tokens are signed with.
type world struct {
	*testing.T
	store  *store.Store
	packer *bits.Packer
	space  platform.Space
	env    []string
	dir    string // of the programs
	key    *rsa.PrivateKey
	issuer string
	api    *process
	url    string
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

func newWorld(t *testing.T) *world {
	t.Helper()
	if os.Getenv("PROA_TEST_CLUSTER") == "" {
		t.Skip("This needs a cluster: run make cluster-up, then . .run/cluster.env and PROA_TEST_CLUSTER=1 go test ./cmd/api.")
	}
	w := &world{T: t, dir: t.TempDir()}
	w.build("", "../../cmd/controller", ".")
	w.build("CGO_ENABLED=0", "../../cmd/launcher", "../../cmd/sftp", "./testdata/writer")
	keyset, err := seal.Generate()
	must(t, err)
	box, err := seal.New(keyset)
	must(t, err)
	database := pgtest.URL(t, store.Migrations(), store.Table)
	w.store, err = store.Open(t.Context(), database, box)
	must(t, err)
	t.Cleanup(w.store.Close)
	w.authServer()
	ca, err := os.ReadFile(os.Getenv("PROA_REGISTRY_CA_FILE"))
	must(t, err)
	way, err := bits.Trusting(ca)
	must(t, err)
	server := os.Getenv("PROA_REGISTRY")
	host, _, err := net.SplitHostPort(server)
	must(t, err)
	w.packer = &bits.Packer{Base: server + "/proa/run",
		Registry: &bits.Registry{Prefix: server + "/proa", Username: os.Getenv("PROA_REGISTRY_USERNAME"), Password: os.Getenv("PROA_REGISTRY_PASSWORD"), Transport: way}}
	installation := "test-" + strings.ToLower(rand.Text()[:10])
	w.env = append(os.Environ(), "PROA_CONTROLLER_DATABASE_URL="+database, "PROA_CONTROLLER_KEYSET="+string(keyset), "PROA_API_DATABASE_URL="+database, "PROA_API_KEYSET="+string(keyset),
		"PROA_INSTALLATION="+installation, "PROA_AUTH_URL="+w.issuer, "PROA_API_CLIENT_SECRET=none", "PROA_LAUNCHER_FILE="+filepath.Join(w.dir, "launcher"),
		"PROA_SFTP_FILE="+filepath.Join(w.dir, "sftp"), "PROA_GATEWAY_CIDRS="+host+"/32", "PROA_STAGING_TIMEOUT=3m", "PROA_API_LISTEN="+w.free(), "PROA_API_METRICS_LISTEN="+w.free())
	org := get[platform.Org](w)(w.store.CreateOrg(t.Context(), admin, platform.Org{Name: "org", Metadata: noted}))
	w.space = get[platform.Space](w)(w.store.CreateSpace(t.Context(), admin, platform.Space{OrgGUID: org.GUID, Name: "space", Metadata: noted}))
	t.Cleanup(func() { w.away(installation) })
	w.start("controller", "PROA_CONTROLLER_METRICS_LISTEN="+w.free())
	w.startAPI()
	return w
}

// away takes down what is left in the cluster, and frees pods that a controller which is no more had held.
func (w *world) away(installation string) {
	ours := []string{"--all-namespaces", "-l", "proa.dev/installation=" + installation}
	if w.Failed() {
		w.Log(w.kubectl(append([]string{"get", "pods,statefulsets,events"}, ours...)...))
	}
	w.Log(w.kubectl("delete", "namespaces", "--wait=false", "-l", "proa.dev/installation="+installation))
	held := w.kubectl(append([]string{"get", "pods", "-o", `jsonpath={range .items[?(@.metadata.finalizers)]}{.metadata.namespace} {.metadata.name}{"\n"}{end}`}, ours...)...)
	for line := range strings.Lines(held) {
		if f := strings.Fields(line); len(f) == 2 {
			w.kubectl("--namespace="+f[0], "patch", "pod", f[1], "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		}
	}
}

func (w *world) kubectl(args ...string) string {
	out, err := exec.CommandContext(context.Background(), "kubectl", append([]string{"--request-timeout=30s"}, args...)...).CombinedOutput()
	if err != nil {
		return err.Error() + " " + string(out)
	}
	return strings.TrimSpace(string(out))
}

func (w *world) build(env string, programs ...string) {
	w.Helper()
	for _, program := range programs {
		name := filepath.Base(program)
		if program == "." {
			name = "api"
		}
		cmd := exec.CommandContext(w.Context(), "go", "build", "-buildvcs=false", "-o", filepath.Join(w.dir, name), program)
		cmd.Env = append(os.Environ(), env)
		if out, err := cmd.CombinedOutput(); err != nil {
			w.Fatalf("build %s: %v\n%s", program, err, out)
		}
	}
}

func (w *world) free() string {
	w.Helper()
	l, err := new(net.ListenConfig).Listen(w.Context(), "tcp", "127.0.0.1:0")
	must(w, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// authServer publishes the key of our tokens.
func (w *world) authServer() {
	w.Helper()
	var err error
	w.key, err = rsa.GenerateKey(rand.Reader, 2048)
	must(w, err)
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: w.key.Public(), KeyID: "k1", Use: "sig", Algorithm: string(jose.RS256)}}})
	must(w, err)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/token_keys" {
			http.NotFound(rw, r)
			return
		}
		_, _ = rw.Write(set)
	}))
	w.Cleanup(server.Close)
	w.issuer = server.URL
}

// token is one of an administrator.
func (w *world) token(lasts time.Duration) string {
	w.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: w.key, KeyID: "k1"}}, nil)
	must(w, err)
	raw, err := jwt.Signed(signer).Claims(token.Claims{ID: platform.NewGUID(), Issuer: w.issuer, Audience: []string{"cloud_controller"}, UserID: "admin", UserName: "admin", Origin: "uaa", ClientID: "cf",
		Scopes: []string{platform.ScopeAdmin}, Issued: *jwt.NewNumericDate(time.Now()), Expires: *jwt.NewNumericDate(time.Now().Add(lasts))}).Serialize()
	must(w, err)
	return raw
}

func (w *world) client(lasts time.Duration) *v3.Client {
	w.Helper()
	return &v3.Client{URL: w.url, HTTP: http.DefaultClient, Token: uaa.Static(w.token(lasts)), Poll: 20 * time.Millisecond}
}

// A process is a program that runs. What it logs is in its log.
type process struct {
	cmd *exec.Cmd
	log *lockedBuffer
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

func (w *world) start(name string, env ...string) *process {
	w.Helper()
	p := &process{log: &lockedBuffer{}, cmd: exec.Command(filepath.Join(w.dir, name))}
	p.cmd.Env = append(append([]string{}, w.env...), env...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	must(w, p.cmd.Start())
	w.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		if w.Failed() {
			text := p.log.String()
			w.Logf("%s %d:\n%s", name, p.cmd.Process.Pid, text[max(0, len(text)-8000):])
		}
	})
	return p
}

func (w *world) startAPI() {
	w.Helper()
	for _, pair := range w.env {
		if at, found := strings.CutPrefix(pair, "PROA_API_LISTEN="); found {
			w.url = "http://" + at
		}
	}
	w.api = w.start("api", "PROA_API_URL="+w.url)
	w.until(30*time.Second, "the API", func() error {
		resp, err := http.Get(w.url + "/readyz")
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return nil
	})
}

// until asks again until the answer is right.
func (w *world) until(limit time.Duration, what string, ask func() error) {
	w.Helper()
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		err := ask()
		if err == nil {
			return
		}
		if time.Since(began) > limit {
			w.Fatalf("%s: not within %s: %v", what, limit, err)
		}
	}
}

// app makes an app of the writer with its droplet. What it and its sidecars do is said when it is started.
func (w *world) app(name string) platform.App {
	w.Helper()
	ctx := w.Context()
	program, err := os.ReadFile(filepath.Join(w.dir, "writer"))
	must(w, err)
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	for file, content := range map[string]string{"Procfile": "web: ./writer main 1\n", "writer": string(program)} {
		h := &zip.FileHeader{Name: file, Method: zip.Deflate}
		h.SetMode(0o755)
		f, err := z.CreateHeader(h)
		must(w, err)
		_, err = io.WriteString(f, content)
		must(w, err)
	}
	must(w, z.Close())
	a := get[platform.App](w)(w.store.CreateApp(ctx, admin, platform.App{SpaceGUID: w.space.GUID, Name: name, Metadata: noted, Lifecycle: platform.Lifecycle{Type: platform.LifecycleBuildpack}}))
	p := get[platform.Package](w)(w.store.CreatePackage(ctx, admin, platform.Package{AppGUID: a.GUID, Type: platform.PackageBits}))
	p = get[platform.Package](w)(w.store.BeginUpload(ctx, admin, p.GUID))
	up, err := w.packer.Upload(ctx, a.GUID, bytes.NewReader(packed.Bytes()), int64(packed.Len()))
	must(w, err)
	p.Image, p.Size, p.State = up.Image, up.Size, platform.PackageReady
	p = get[platform.Package](w)(w.store.EndUpload(ctx, p))
	b := get[platform.Build](w)(w.store.CreateBuild(ctx, admin, platform.Build{PackageGUID: p.GUID, MemoryMB: 512, DiskMB: 512}))
	w.until(2*time.Minute, "staging", func() error {
		b = get[platform.Build](w)(w.store.Build(ctx, admin, b.GUID))
		if b.State == platform.BuildStaging {
			return errors.New("it is still under way")
		}
		return nil
	})
	if b.State != platform.BuildStaged {
		w.Fatalf("the build is %+v", b)
	}
	get[platform.App](w)(w.store.AssignDroplet(ctx, admin, a.GUID, b.DropletGUID))
	return a
}

// runs starts the app with these commands, the first of which is the main one.
func (w *world) runs(a platform.App, instances int, main string, sidecars map[string]string) {
	w.Helper()
	ctx := w.Context()
	web := get[platform.Process](w)(w.store.ProcessOf(ctx, admin, a.GUID, platform.WebProcess))
	get[platform.Process](w)(w.store.UpdateProcess(ctx, admin, web.GUID, func(p *platform.Process) error {
		p.Command, p.Instances, p.MemoryMB, p.DiskMB, p.HealthCheck = &main, instances, 128, 256, platform.HealthCheck{Type: platform.CheckProcess}
		return nil
	}))
	for _, s := range get[platform.Page[platform.Sidecar]](w)(w.store.SidecarsOfApp(ctx, admin, a.GUID, platform.List{PerPage: 50})).Records {
		must(w, w.store.DeleteSidecar(ctx, admin, s.GUID))
	}
	for name, command := range sidecars {
		get[platform.Sidecar](w)(w.store.CreateSidecar(ctx, admin, platform.Sidecar{AppGUID: a.GUID, Name: name, Command: command, ProcessTypes: []string{"web"}, MemoryMB: new(16), Origin: platform.SidecarOfUser}))
	}
	get[platform.App](w)(w.store.RestartApp(ctx, admin, a.GUID, store.Settings{API: w.url}))
}

func (w *world) running(a platform.App, instances int) {
	w.Helper()
	web := get[platform.Process](w)(w.store.ProcessOf(w.Context(), admin, a.GUID, platform.WebProcess))
	w.until(time.Minute, "running instances", func() error {
		all, err := w.store.Instances(w.Context(), []string{web.GUID})
		n := 0
		for _, i := range all[web.GUID] {
			if i.State == platform.InstanceRunning {
				n++
			}
		}
		if err == nil && n != instances {
			err = fmt.Errorf("they are %+v", all[web.GUID])
		}
		return err
	})
}
