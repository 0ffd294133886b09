package bits

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// An engine is a real registry, with TLS and a password.
type engine struct {
	address, password string
	ca                []byte
	cmd               *exec.Cmd
	dir               string
}

// started is shared by all tests, which keep apart by the names of their apps.
var started struct {
	sync.Once
	engine *engine
	err    error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if started.engine != nil {
		started.engine.stop()
	}
	os.Exit(code)
}

func theEngine(t testing.TB) *engine {
	t.Helper()
	started.Do(func() { started.engine, started.err = start() })
	if started.err != nil {
		t.Fatal(started.err)
	}
	return started.engine
}

// here is a Registry at the engine, and the traffic of this test with it.
func here(t testing.TB) (*Registry, *traffic) {
	t.Helper()
	e := theEngine(t)
	trip, err := Trusting(e.ca)
	if err != nil {
		t.Fatal(err)
	}
	seen := &traffic{inner: trip}
	return &Registry{Prefix: e.address + "/proa", Username: "proa", Password: e.password, Transport: seen}, seen
}

func start() (*engine, error) {
	program, err := findProgram()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "proa-registry-")
	if err != nil {
		return nil, err
	}
	e := &engine{dir: dir, password: rand.Text()}
	if err := e.configure(); err != nil {
		return e, err
	}
	e.cmd = exec.Command(program, "serve", dir+"/config.yaml")
	log, err := os.Create(dir + "/log")
	if err != nil {
		return e, err
	}
	e.cmd.Env, e.cmd.Stderr = append(os.Environ(), "OTEL_TRACES_EXPORTER=none"), log
	if err := errors.Join(e.cmd.Start(), log.Close()); err != nil {
		return e, err
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", e.address)
		if err == nil {
			return e, conn.Close()
		}
		if time.Now().After(end) {
			said, _ := os.ReadFile(dir + "/log")
			return e, fmt.Errorf("the registry does not start: %w\n%s", err, said)
		}
	}
}

func findProgram() (string, error) {
	out, err := exec.Command("../../engines/build.sh", "find").Output()
	for line := range strings.Lines(string(out)) {
		if dir, found := strings.CutPrefix(strings.TrimSpace(line), "registry "); found {
			return filepath.Join(dir, "registry"), nil
		}
	}
	return "", fmt.Errorf("The registry is not built. Build it, once for this machine: make engines (%w)", err)
}

func (e *engine) stop() {
	if e.cmd != nil && e.cmd.Process != nil {
		_ = e.cmd.Process.Kill()
		_ = e.cmd.Wait()
	}
	_ = os.RemoveAll(e.dir)
}

const engineConfig = `version: 0.1
log: { level: error, accesslog: { disabled: true } }
storage:
  filesystem: { rootdirectory: "%[1]s/data" }
  delete: { enabled: true }
http:
  addr: "%[2]s"
  secret: secret
  tls: { certificate: "%[1]s/tls.crt", key: "%[1]s/tls.key" }
auth:
  htpasswd: { realm: Proa, path: "%[1]s/htpasswd" }
`

func (e *engine) configure() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	e.address = listener.Addr().String()
	hash, err := bcrypt.GenerateFromPassword([]byte(e.password), bcrypt.MinCost)
	if err := errors.Join(err, listener.Close()); err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "registry"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, authority, authority, key.Public(), key)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	e.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, content := range map[string][]byte{
		"tls.crt": e.ca, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
		"htpasswd": []byte("proa:" + string(hash) + "\n"), "config.yaml": fmt.Appendf(nil, engineConfig, e.dir, e.address),
	} {
		if err := os.WriteFile(filepath.Join(e.dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// traffic counts what was sent to the registry.
type traffic struct {
	inner http.RoundTripper
	sync.Mutex
	blobs, manifests, mounts int
	bytes                    int64
}

func (s *traffic) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := s.inner.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	s.Lock()
	defer s.Unlock()
	switch {
	case req.Method == http.MethodPost && resp.StatusCode == http.StatusCreated:
		s.mounts++
	case req.Method == http.MethodPatch:
		s.blobs++
		s.bytes += req.ContentLength
	case req.Method == http.MethodPut && strings.Contains(req.URL.Path, "/manifests/"):
		s.manifests++
	}
	return resp, err
}

// since says what was sent since it was last asked.
func (s *traffic) since() string {
	s.Lock()
	defer s.Unlock()
	text := fmt.Sprintf("%d blobs, %d mounts, %d manifests", s.blobs, s.mounts, s.manifests)
	s.blobs, s.mounts, s.manifests, s.bytes = 0, 0, 0, 0
	return text
}

func newApp() string { return "app-" + strings.ToLower(rand.Text()[:12]) }
