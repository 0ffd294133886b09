package main

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	xssh "golang.org/x/crypto/ssh"

	authstore "github.com/proa-dev/proa/auth/store"
	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/pg/pgtest"
	"github.com/proa-dev/proa/kit/seal"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/bits"
	"github.com/proa-dev/proa/platform/ssh"
	"github.com/proa-dev/proa/platform/store"
)

const (
	adminPassword = "correct horse battery"
	codeLife      = 10 * time.Second
)

var (
	admin = platform.Who{GUID: "admin", Name: "admin", ClientID: "test", Scopes: []string{platform.ScopeAdmin}}
	noted = platform.Metadata{Labels: map[string]string{}, Annotations: map[string]string{}}
)

// world is an installation of its own on the running cluster: an authorization server, a controller, an ssh server, and an app
// that runs.
type world struct {
	*testing.T
	store        *store.Store
	installation string
	auth         *uaa.Conn
	org          platform.Org
	space        platform.Space
	app          platform.App
	env          []string // of the ssh server
	server       *process
	dir          string // with what clients need
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func get[V any](t testing.TB) func(V, error) V {
	return func(v V, err error) V {
		t.Helper()
		must(t, err)
		return v
	}
}

var built string // where the programs are, once they are needed

// programs are built once for all tests.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "proa-ssh-")
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
	err = errors.Join(build("", race, "../../cmd/ssh"), build("", "../../cmd/auth", "../../cmd/controller"),
		build("CGO_ENABLED=0", "-ldflags=-s -w", "../../cmd/launcher", "../../cmd/sftp", "../../engines/smoke/app"))
	return dir, err
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
		t.Skip("This needs a cluster: run make cluster-up, then . .run/cluster.env and PROA_TEST_CLUSTER=1 go test ./cmd/ssh.")
	}
	programs := get[string](t)(programs())
	w := &world{T: t, installation: "test-" + strings.ToLower(rand.Text()[:10]), dir: t.TempDir()}
	keyset := get[[]byte](t)(seal.Generate())
	url := pgtest.URL(t, store.Migrations(), store.Table)
	w.store = get[*store.Store](t)(store.Open(t.Context(), url, get[*seal.Box](t)(seal.New(keyset))))
	t.Cleanup(w.store.Close)
	authAt := free(t)
	w.start("auth", authAt, []string{"PROA_AUTH_LISTEN=" + authAt, "PROA_AUTH_METRICS_LISTEN=" + free(t), "PROA_AUTH_URL=http://" + authAt,
		"PROA_AUTH_DATABASE_URL=" + pgtest.URL(t, authstore.Migrations(), authstore.Table), "PROA_AUTH_KEYSET=" + string(get[[]byte](t)(seal.Generate())),
		"PROA_AUTH_START_FILE=" + get[string](t)(filepath.Abs("../../deploy/auth/start.yaml")), "PROA_AUTH_CODE_LIFE=" + codeLife.String(),
		"PROA_ADMIN_USERNAME=admin", "PROA_ADMIN_PASSWORD=" + adminPassword,
		"PROA_SSH_CLIENT_SECRET=ssh secret", "PROA_NOTIFY_CLIENT_SECRET=notify secret", "PROA_API_CLIENT_SECRET=api secret"})
	w.auth = &uaa.Conn{URL: "http://" + authAt, HTTP: &http.Client{Timeout: 10 * time.Second}}
	w.auth.Token = uaa.Static(w.token("admin", adminPassword))
	host, _, err := net.SplitHostPort(os.Getenv("PROA_REGISTRY"))
	must(t, err)
	controllerAt := free(t)
	w.start("controller", controllerAt, []string{"PROA_CONTROLLER_METRICS_LISTEN=" + controllerAt, "PROA_CONTROLLER_DATABASE_URL=" + url, "PROA_CONTROLLER_KEYSET=" + string(keyset),
		"PROA_INSTALLATION=" + w.installation, "PROA_LAUNCHER_FILE=" + filepath.Join(programs, "launcher"), "PROA_SFTP_FILE=" + filepath.Join(programs, "sftp"),
		"PROA_GATEWAY_CIDRS=" + host + "/32", "PROA_STAGING_TIMEOUT=3m"})
	key := get[[]byte](t)(ssh.NewKey())
	w.env = []string{"PROA_SSH_DATABASE_URL=" + url, "PROA_SSH_HOST_KEY=" + string(key), "PROA_AUTH_URL=http://" + authAt, "PROA_SSH_CLIENT_SECRET=ssh secret",
		"PROA_INSTALLATION=" + w.installation, "PROA_LOG_LEVEL=debug"}
	w.serve()
	public := get[xssh.Signer](t)(ssh.ReadKey(key)).PublicKey()
	must(t, os.WriteFile(filepath.Join(w.dir, "known"), append([]byte("proa "), xssh.MarshalAuthorizedKey(public)...), 0o600))
	must(t, os.WriteFile(filepath.Join(w.dir, "askpass"), []byte("#!/bin/sh\nprintf '%s\\n' \"$SHOWN_CODE\"\n"), 0o700))
	w.org = get[platform.Org](t)(w.store.CreateOrg(t.Context(), admin, platform.Org{Name: "org", Metadata: noted}))
	w.space = get[platform.Space](t)(w.store.CreateSpace(t.Context(), admin, platform.Space{OrgGUID: w.org.GUID, Name: "dev", Metadata: noted}))
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.kubectl("get", "pods,statefulsets", "--all-namespaces", "-l", "proa.dev/installation="+w.installation))
		}
		w.kubectl("delete", "namespaces", "--wait=false", "-l", "proa.dev/installation="+w.installation)
	})
	return w
}

// A process is one of our programs. What it logs is in its log.
type process struct {
	cmd         *exec.Cmd
	at, metrics string
	log         *lockedBuffer
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

// start runs a program until the test ends, and waits until it is ready at an address.
func (w *world) start(name, ready string, env []string) *process {
	w.Helper()
	p := &process{cmd: exec.Command(filepath.Join(get[string](w)(programs()), name)), log: &lockedBuffer{}}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	must(w, p.cmd.Start())
	w.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		if strings.Contains(p.log.String(), "DATA RACE") || strings.Contains(p.log.String(), `"msg":"panic"`) {
			w.Errorf("%s races or panics:\n%s", name, p.log)
		}
		if w.Failed() {
			w.Logf("%s:\n%s", name, p.log)
		}
	})
	w.until(30*time.Second, name+" is ready", func() error {
		response, err := http.Get("http://" + ready + "/readyz")
		if err == nil {
			if response.Body.Close(); response.StatusCode != http.StatusOK {
				err = errors.New(response.Status)
			}
		}
		return err
	})
	return p
}

// serve starts the ssh server.
func (w *world) serve() {
	w.Helper()
	at, metrics := free(w), free(w)
	w.server = w.start("ssh", metrics, append(slices.Clone(w.env), "PROA_SSH_LISTEN="+at, "PROA_SSH_METRICS_LISTEN="+metrics))
	w.server.at, w.server.metrics = at, metrics
}

// free is an address that nothing listens on.
func free(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func (w *world) kubectl(args ...string) string {
	out, err := exec.CommandContext(context.Background(), "kubectl", append([]string{"--request-timeout=30s"}, args...)...).CombinedOutput()
	if err != nil {
		return err.Error() + " " + string(out)
	}
	return strings.TrimSpace(string(out))
}

// until asks again until the answer is right.
func (w *world) until(limit time.Duration, what string, ask func() error) {
	w.Helper()
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		err := ask()
		if err == nil {
			return
		}
		if time.Since(begun) > limit {
			w.Fatalf("%s: not within %s: %v", what, limit, err)
		}
	}
}

// push stages and runs an app.
func (w *world) push(name string, files map[string]string) platform.App {
	w.Helper()
	ctx := w.Context()
	ca := get[[]byte](w)(os.ReadFile(os.Getenv("PROA_REGISTRY_CA_FILE")))
	server := os.Getenv("PROA_REGISTRY")
	registry := &bits.Registry{Prefix: server + "/proa", Username: os.Getenv("PROA_REGISTRY_USERNAME"), Password: os.Getenv("PROA_REGISTRY_PASSWORD"), Transport: get[http.RoundTripper](w)(bits.Trusting(ca))}
	packer := &bits.Packer{Registry: registry, Base: server + "/proa/run"}
	a := get[platform.App](w)(w.store.CreateApp(ctx, admin, platform.App{SpaceGUID: w.space.GUID, Name: name, SSH: true, Metadata: noted, Lifecycle: platform.Lifecycle{Type: platform.LifecycleBuildpack},
		Env: map[string]string{"CANARY": "sings", "odd.name": "odd"}}))
	p := get[platform.Package](w)(w.store.CreatePackage(ctx, admin, platform.Package{AppGUID: a.GUID, Type: platform.PackageBits}))
	p = get[platform.Package](w)(w.store.BeginUpload(ctx, admin, p.GUID))
	z := archive(w, files)
	up, err := packer.Upload(ctx, a.GUID, z, z.Size())
	must(w, err)
	p.Image, p.Size, p.State = up.Image, up.Size, platform.PackageReady
	p = get[platform.Package](w)(w.store.EndUpload(ctx, p))
	b := get[platform.Build](w)(w.store.CreateBuild(ctx, admin, platform.Build{PackageGUID: p.GUID, MemoryMB: 512, DiskMB: 512}))
	w.until(90*time.Second, "the end of the build", func() error {
		if b = get[platform.Build](w)(w.store.Build(ctx, admin, b.GUID)); b.State == platform.BuildStaging {
			return errors.New("it is still under way")
		}
		return nil
	})
	if b.State != platform.BuildStaged {
		w.Fatalf("the build is %+v", b)
	}
	get[platform.App](w)(w.store.AssignDroplet(ctx, admin, a.GUID, b.DropletGUID))
	a = get[platform.App](w)(w.store.StartApp(ctx, admin, a.GUID, store.Settings{API: "https://api.example.org"}))
	w.running(a)
	return a
}

func (w *world) running(a platform.App) {
	w.Helper()
	w.until(90*time.Second, "a running instance", func() error {
		all := get[map[string][]platform.Instance](w)(w.store.Instances(w.Context(), []string{a.GUID}))
		if len(all[a.GUID]) != 1 || all[a.GUID][0].State != platform.InstanceRunning {
			return fmt.Errorf("they are %+v", all)
		}
		return nil
	})
}

// shop is an app that is told apart by what its buildpack's launcher reads.
func (w *world) shop() {
	w.Helper()
	program := get[[]byte](w)(os.ReadFile(filepath.Join(get[string](w)(programs()), "app")))
	w.app = w.push("shop", map[string]string{"Procfile": "web: exec ./app $PORT\n", "app": string(program), ".profile": "export FROM_PROFILE=yes\n"})
}

// archive is a zip of programs and texts.
func archive(t testing.TB, files map[string]string) *bytes.Reader {
	t.Helper()
	var text bytes.Buffer
	z := zip.NewWriter(&text)
	for name, content := range files {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		h.SetMode(0o755)
		f := get[io.Writer](t)(z.CreateHeader(h))
		get[int](t)(f.Write([]byte(content)))
	}
	must(t, z.Close())
	return bytes.NewReader(text.Bytes())
}

// A person can log in at the authorization server.
type person struct{ guid, name, password string }

// hire makes a person with a role in a space, or none.
func (w *world) hire(name string, role platform.RoleType, space platform.Space) person {
	w.Helper()
	p := person{name: name, password: "the password of " + name}
	var made struct{ ID string }
	must(w, w.auth.Call(w.Context(), http.MethodPost, "/Users", map[string]any{"userName": name, "password": p.password, "emails": []map[string]any{{"value": name + "@example.org"}}}, &made))
	p.guid = made.ID
	if role != "" {
		user := platform.User{GUID: p.guid, Name: name, Origin: "uaa"}
		_, err := w.store.CreateRole(w.Context(), admin, platform.Role{Type: platform.OrgUser, OrgGUID: space.OrgGUID}, user)
		must(w, err)
		_, err = w.store.CreateRole(w.Context(), admin, platform.Role{Type: role, SpaceGUID: space.GUID}, user)
		must(w, err)
	}
	return p
}

func (w *world) token(name, password string) string {
	w.Helper()
	t, err := w.auth.Fetch(w.Context(), "cf", "", url.Values{"grant_type": {"password"}, "username": {name}, "password": {password}})
	must(w, err)
	return t.Access
}

// code is what `cf ssh-code` shows.
func (w *world) code(p person) string {
	w.Helper()
	client := http.Client{Timeout: 10 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r := get[*http.Request](w)(http.NewRequestWithContext(w.Context(), http.MethodGet, w.auth.URL+"/oauth/authorize?client_id=ssh-proxy&response_type=code", nil))
	r.Header.Set("Authorization", "bearer "+w.token(p.name, p.password))
	response, err := client.Do(r)
	must(w, err)
	defer response.Body.Close()
	code := get[*url.URL](w)(response.Location()).Query().Get("code")
	if code == "" {
		w.Fatalf("no code: %s", response.Status)
	}
	return code
}

// options are for all programs of OpenSSH.
func (w *world) options() []string {
	_, port, _ := net.SplitHostPort(w.server.at)
	return []string{"-F", "none", "-o", "Port=" + port, "-o", "UserKnownHostsFile=" + filepath.Join(w.dir, "known"), "-o", "StrictHostKeyChecking=yes", "-o", "HostKeyAlias=proa",
		"-o", "NumberOfPasswordPrompts=1", "-o", "PreferredAuthentications=password", "-o", "ExitOnForwardFailure=yes"}
}

// as is a program of OpenSSH that shows a code when it is asked for a password. $ in its arguments is where to log in.
func (w *world) as(code, program string, args ...string) *exec.Cmd {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), program, append(w.options(), args...)...)
	cmd.Env = append(os.Environ(), "SSH_ASKPASS="+filepath.Join(w.dir, "askpass"), "SSH_ASKPASS_REQUIRE=force", "SHOWN_CODE="+code, "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal of ours
	return cmd
}

// user is how somebody names an instance of the app.
func (w *world) user(index int) string { return fmt.Sprintf("cf:%s/%d", w.app.GUID, index) }

// ssh runs a line in the app's only instance.
func (w *world) ssh(p person, line string) *exec.Cmd {
	w.Helper()
	return w.as(w.code(p), "ssh", "-l", w.user(0), "127.0.0.1", line)
}

// events are the app's in the audit trail, the latest last.
func (w *world) events(kind string) []platform.Event {
	w.Helper()
	page := get[platform.Page[platform.Event]](w)(w.store.Events(w.Context(), admin, platform.List{Page: 1, PerPage: 100, Values: map[string][]string{"types": {kind}, "target_guids": {w.app.GUID}}}))
	text, _ := json.Marshal(page.Records)
	w.Logf("%s: %s", kind, text)
	return page.Records
}
