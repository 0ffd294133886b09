// Package smoke_test tries the development cluster from outside, as Proa will use it: kubectl, the gateway and the
// registry, nothing of our own code. `make cluster-test` brings the cluster up and runs it.
package smoke_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// A world is a namespace of its own in the running cluster.
type world struct {
	testing.TB
	Namespace string
	Registry  string
	Auth      string // what the lifecycle calls registry auth
	Pull      string // the same for the kubelet: a docker config
	CA        string
}

// here makes the test's world, and fails where there is no cluster to make it in.
func here(t *testing.T) *world {
	t.Helper()
	if os.Getenv("PROA_TEST_CLUSTER") == "" {
		t.Skip("This needs a cluster: make cluster-test brings one up and runs it.")
	}
	t.Parallel()
	registry, user, password := os.Getenv("PROA_REGISTRY"), os.Getenv("PROA_REGISTRY_USERNAME"), os.Getenv("PROA_REGISTRY_PASSWORD")
	basic := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	ca, err := os.ReadFile(os.Getenv("PROA_REGISTRY_CA_FILE"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		TB: t, Namespace: "smoke-" + strings.ToLower(rand.Text()[:8]), Registry: registry, CA: string(ca),
		Auth: fmt.Sprintf(`{%q:"Basic %s"}`, registry, basic),
		Pull: fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, registry, basic),
	}
	w.apply("world.yaml", w)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.try("get", "pods,events", "-o", "wide"))
		}
		w.kubectl("delete", "namespace", w.Namespace, "--wait=false")
	})
	return w
}

func (w *world) try(args ...string) (string, error) {
	cmd := exec.CommandContext(w.Context(), "kubectl", append([]string{"--namespace=" + w.Namespace, "--request-timeout=30s"}, args...)...)
	if w.Context().Err() != nil { // the test is over: this is its cleanup
		cmd = exec.Command("kubectl", append([]string{"--namespace=" + w.Namespace, "--request-timeout=30s"}, args...)...)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (w *world) kubectl(args ...string) string {
	w.Helper()
	out, err := w.try(args...)
	if err != nil {
		w.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// apply fills a template of testdata/ and gives it to the cluster.
func (w *world) apply(file string, data any) {
	w.Helper()
	functions := template.FuncMap{"base64": func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }}
	parsed, err := template.New(file).Funcs(functions).Option("missingkey=error").ParseFiles(filepath.Join("testdata", file))
	if err != nil {
		w.Fatal(err)
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, data); err != nil {
		w.Fatal(err)
	}
	path := filepath.Join(w.TempDir(), file)
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		w.Fatal(err)
	}
	w.kubectl("apply", "--server-side", "-f", path)
}

// until asks again until the answer is right, at most for the time given.
func (w *world) until(limit time.Duration, what string, ask func() error) {
	w.Helper()
	end := time.Now().Add(limit)
	for {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			w.Fatalf("%s: not within %s: %v", what, limit, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// ready waits until a pod is ready.
func (w *world) ready(pod string) {
	w.Helper()
	w.kubectl("wait", "--for=condition=Ready", "--timeout=90s", "pod/"+pod)
}

// appImage pushes the test's app, once for all tests, and answers what it is called.
func (w *world) appImage() string {
	w.Helper()
	dir := w.TempDir()
	build := exec.CommandContext(w.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, "app"), "./app")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		w.Fatalf("go build: %v\n%s", err, out)
	}
	if out, err := exec.CommandContext(w.Context(), "tar", "-cf", filepath.Join(dir, "app.tar"), "-C", dir, "app").CombinedOutput(); err != nil {
		w.Fatalf("tar: %v\n%s", err, out)
	}
	layer, err := tarball.LayerFromFile(filepath.Join(dir, "app.tar"))
	if err != nil {
		w.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		w.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		w.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Config.Entrypoint = "linux", "amd64", []string{"/app"}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		w.Fatal(err)
	}
	ref := w.reference(w.Namespace + "/app")
	if err := remote.Write(ref, image, w.remote()...); err != nil {
		w.Fatal(err)
	}
	return ref.String()
}

func (w *world) reference(repository string) name.Reference {
	w.Helper()
	ref, err := name.ParseReference(w.Registry + "/" + repository)
	if err != nil {
		w.Fatal(err)
	}
	return ref
}

func (w *world) remote() []remote.Option {
	return []remote.Option{
		remote.WithAuth(&authn.Basic{Username: os.Getenv("PROA_REGISTRY_USERNAME"), Password: os.Getenv("PROA_REGISTRY_PASSWORD")}),
		remote.WithTransport(&http.Transport{TLSClientConfig: &tls.Config{RootCAs: w.roots()}}),
	}
}

func (w *world) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(w.CA))
	return pool
}

// ask sends a request to the gateway as a browser would send it to a host of the apps domain.
func (w *world) ask(url string) (string, error) {
	address := map[bool]string{true: os.Getenv("PROA_GATEWAY_HTTPS"), false: os.Getenv("PROA_GATEWAY_HTTP")}[strings.HasPrefix(url, "https:")]
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: w.roots()},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}}
	response, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return string(body), err
}

// answers waits until a host of the apps domain gives the answer.
func (w *world) answers(url, want string) {
	w.Helper()
	w.until(30*time.Second, url, func() error {
		got, err := w.ask(url)
		if err == nil && strings.TrimSpace(got) != want {
			err = fmt.Errorf("it says %q instead of %q", got, want)
		}
		return err
	})
}

// get reads an object of the cluster.
func (w *world) get(what string, into any) {
	w.Helper()
	if err := json.Unmarshal([]byte(w.kubectl("get", what, "-o", "json")), into); err != nil {
		w.Fatal(err)
	}
}
