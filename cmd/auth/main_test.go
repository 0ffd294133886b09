package main_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/proa-dev/proa/auth/store"
	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/pg/pgtest"
	"github.com/proa-dev/proa/kit/token"
)

const adminPassword = "correct horse battery"

// fleet is the real program, any number of times, on one database.
type fleet struct {
	t      *testing.T
	binary string
	env    []string
	first  string // address of the first process, which is also the issuer
	log    sync.Mutex
	output bytes.Buffer
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, binary: binary}
	keyset, err := exec.CommandContext(t.Context(), f.binary, "keyset", "new").Output()
	must(t, err)
	f.first = "http://" + freePort(t)
	f.env = append(os.Environ(), "PROA_AUTH_DATABASE_URL="+pgtest.URL(t, store.Migrations(), store.Table), "PROA_AUTH_KEYSET="+string(bytes.TrimSpace(keyset)),
		"PROA_AUTH_URL="+f.first, "PROA_AUTH_START_FILE=../../deploy/auth/start.yaml", "PROA_ADMIN_USERNAME=admin", "PROA_ADMIN_PASSWORD="+adminPassword,
		"PROA_SSH_CLIENT_SECRET=ssh secret", "PROA_NOTIFY_CLIENT_SECRET=notify secret", "PROA_API_CLIENT_SECRET=api secret")
	return f
}

var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "auth")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "auth")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		panic(fmt.Sprintf("build: %v\n%s", err, out))
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// freePort finds an address that nothing listens on, below the range from which the system gives ports away by itself.
func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(10000))
		if l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("no free port was found in 100 tries")
	return ""
}

func (f *fleet) Write(b []byte) (int, error) {
	f.log.Lock()
	defer f.log.Unlock()
	return f.output.Write(b)
}

// start runs one process on an address and waits until it is ready.
func (f *fleet) start(addr string) *exec.Cmd {
	f.t.Helper()
	cmd := exec.Command(f.binary)
	cmd.Env = slices.Concat(f.env, []string{"PROA_AUTH_LISTEN=" + addr, "PROA_AUTH_METRICS_LISTEN=127.0.0.1:0"})
	cmd.Stderr = f
	must(f.t, cmd.Start())
	f.t.Cleanup(func() { f.stop(cmd) })
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		if resp, err := http.Get("http://" + addr + "/readyz"); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return cmd
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	f.log.Lock()
	defer f.log.Unlock()
	f.t.Fatalf("auth was not ready in 20 s:\n%s", f.output.String())
	return nil
}

// stop asks a process to end and wants it to end well.
func (f *fleet) stop(cmd *exec.Cmd) {
	if cmd.ProcessState != nil {
		return
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		f.t.Errorf("auth did not end well: %v", err)
	}
}

func (f *fleet) run(args ...string) string {
	f.t.Helper()
	cmd := exec.CommandContext(f.t.Context(), f.binary, args...)
	cmd.Env = f.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.t.Fatalf("auth %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func host(address string) string { return strings.TrimPrefix(address, "http://") }

func TestTwoProcessesOnOneDatabase(t *testing.T) {
	f := newFleet(t)
	second := "http://" + freePort(t)
	// Both at once, on a database that has no key and no administrator yet.
	var starting sync.WaitGroup
	for _, address := range []string{f.first, second} {
		starting.Go(func() { f.start(host(address)) })
	}
	starting.Wait()
	one, two := &uaa.Conn{URL: f.first, HTTP: http.DefaultClient}, &uaa.Conn{URL: second, HTTP: http.DefaultClient}
	admin, err := one.Fetch(t.Context(), "cf", "", url.Values{"grant_type": {"password"}, "username": {"admin"}, "password": {adminPassword}})
	must(t, err)
	two.Token, one.Token = uaa.Static(admin.Access), uaa.Static(admin.Access)

	var page uaa.Page[uaa.User]
	must(t, two.Call(t.Context(), http.MethodGet, "/Users", nil, &page)) // issued by one, verified by the other
	if page.TotalResults != 1 {
		t.Errorf("two processes made %d administrators", page.TotalResults)
	}
	must(t, two.Call(t.Context(), http.MethodDelete, "/oauth/token/revoke/"+admin.JTI, nil, nil)) // revoked by the other
	if err := one.Call(t.Context(), http.MethodGet, "/Users", nil, nil); err == nil || !strings.Contains(err.Error(), "revoked") {
		t.Errorf("the first process does not know of the revocation: %v", err)
	}
	if out := f.run("keys", "list"); strings.Count(out, "\n") != 2 {
		t.Errorf("two processes made more than one key:\n%s", out)
	}
}

// A resource server's verifier, two processes and constant load: rotations, the careful and the sudden kind, fail no request.
func TestRotationUnderLoad(t *testing.T) {
	f := newFleet(t)
	second := "http://" + freePort(t)
	f.start(host(f.first))
	f.start(host(second))
	admin := &uaa.Conn{URL: f.first, HTTP: http.DefaultClient}
	login, err := admin.Fetch(t.Context(), "cf", "", url.Values{"grant_type": {"password"}, "username": {"admin"}, "password": {adminPassword}})
	must(t, err)
	admin.Token = uaa.Static(login.Access)
	must(t, admin.Call(t.Context(), http.MethodPost, "/oauth/clients", uaa.Client{ID: "load", Secret: "s", Grants: uaa.List{"client_credentials"}, Authorities: uaa.List{"scim.read"}}, nil))

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var requests, failed atomic.Int64
	kids := sync.Map{}
	var workers sync.WaitGroup
	for i := range 4 {
		issuer, other := f.first, second
		if i%2 == 1 {
			issuer, other = second, f.first
		}
		keys := &token.Remote{URL: other + "/token_keys", Client: http.DefaultClient, Now: time.Now}
		verifier := &token.Verifier{Issuer: f.first, Audience: []string{"scim"}, Key: keys.Key, Now: time.Now}
		workers.Go(func() {
			for ctx.Err() == nil {
				if err := once(issuer, other, verifier, &kids); err != nil {
					failed.Add(1)
					t.Error(err)
					return
				}
				requests.Add(1)
			}
		})
	}
	wait := func(n int64) {
		for target := requests.Load() + n; requests.Load() < target && failed.Load() == 0; {
			time.Sleep(10 * time.Millisecond)
		}
	}
	wait(50)
	for range 3 {
		time.Sleep(1100 * time.Millisecond) // whoever verifies asks for a key that is missing once in a second: two rotations within one are not promised
		f.run("keys", "rotate", "--now")
		before := count(&kids)
		for deadline := time.Now().Add(20 * time.Second); count(&kids) == before && time.Now().Before(deadline) && failed.Load() == 0; {
			wait(20)
		}
		if count(&kids) == before {
			t.Fatal("the new key was not used in 20 s")
		}
	}
	wait(50)
	cancel()
	workers.Wait()
	t.Logf("%d requests with %d keys, %d failed", requests.Load(), count(&kids), failed.Load())
	if failed.Load() != 0 || count(&kids) != 4 {
		t.Errorf("%d failed, %d keys seen", failed.Load(), count(&kids))
	}
}

func count(m *sync.Map) (n int) {
	m.Range(func(any, any) bool { n++; return true })
	return n
}

// once gets a token from one process, verifies it as a resource server does, and uses it at the other.
func once(issuer, other string, v *token.Verifier, kids *sync.Map) error {
	conn := &uaa.Conn{URL: issuer, HTTP: http.DefaultClient}
	got, err := conn.Fetch(context.Background(), "load", "s", url.Values{"grant_type": {"client_credentials"}})
	if err != nil {
		return fmt.Errorf("get a token: %w", err)
	}
	kids.Store(strings.Split(got.Access, ".")[0], true)
	if _, err := v.Verify(context.Background(), got.Access); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	conn.URL, conn.Token = other, uaa.Static(got.Access)
	if err := conn.Call(context.Background(), http.MethodGet, "/Users?count=1", nil, nil); err != nil {
		return fmt.Errorf("use: %w", err)
	}
	return nil
}

func TestStartStateIsAppliedOnce(t *testing.T) {
	f := newFleet(t)
	cmd := f.start(host(f.first))
	conn := &uaa.Conn{URL: f.first, HTTP: http.DefaultClient}
	form := url.Values{"grant_type": {"password"}, "username": {"admin"}, "password": {adminPassword}}
	admin, err := conn.Fetch(t.Context(), "cf", "", form)
	must(t, err)
	conn.Token = uaa.Static(admin.Access)
	var me uaa.Page[uaa.User]
	must(t, conn.Call(t.Context(), http.MethodGet, "/Users", nil, &me))
	must(t, conn.Call(t.Context(), http.MethodPut, "/oauth/clients/ssh-proxy", map[string]any{"name": "Changed"}, nil))
	must(t, conn.Call(t.Context(), http.MethodPut, "/Users/"+me.Resources[0].ID+"/password", uaa.PasswordChange{New: "the new password"}, nil))
	f.stop(cmd)
	f.start(host(f.first))
	if _, err := conn.Fetch(t.Context(), "cf", "", form); err == nil {
		t.Error("a restart brought back the administrator's first password")
	}
	form.Set("password", "the new password")
	admin, err = conn.Fetch(t.Context(), "cf", "", form)
	must(t, err)
	conn.Token = uaa.Static(admin.Access)
	var client uaa.Client
	must(t, conn.Call(t.Context(), http.MethodGet, "/oauth/clients/ssh-proxy", nil, &client))
	if client.Name != "Secure shell" {
		t.Errorf("a restart left a client of the start file as %q", client.Name)
	}
}

func TestBadSettingsAreExplainedTogether(t *testing.T) {
	f := newFleet(t)
	cmd := exec.CommandContext(t.Context(), f.binary)
	cmd.Env = []string{"PROA_AUTH_PASSWORD_LENGTH=many"}
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatal("auth started without settings")
	}
	for _, want := range []string{"PROA_AUTH_DATABASE_URL is required", "PROA_AUTH_KEYSET is required", "PROA_AUTH_URL is required", "PROA_AUTH_PASSWORD_LENGTH must be", "auth help"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not said in:\n%s", want, out)
		}
	}
	help := f.run("help")
	if !strings.Contains(help, "PROA_AUTH_TRUSTED_PROXIES") || !strings.Contains(help, "keys rotate") {
		t.Errorf("help:\n%s", help)
	}
}
