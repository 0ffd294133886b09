package kube

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/proa-dev/proa/platform"
)

// A world is a space of its own, of an installation of its own, in the running cluster.
type world struct {
	testing.TB
	*Cluster
	space, namespace string
	registry, host   string
	remote           []remote.Option
}

func here(t *testing.T) *world {
	t.Helper()
	if os.Getenv("PROA_TEST_CLUSTER") == "" {
		t.Skip("This needs a cluster: run make cluster-up, then . .run/cluster.env and PROA_TEST_CLUSTER=1 go test ./platform/kube.")
	}
	ca, err := os.ReadFile(os.Getenv("PROA_REGISTRY_CA_FILE"))
	if err != nil {
		t.Fatal(err)
	}
	account := Account{Username: os.Getenv("PROA_REGISTRY_USERNAME"), Password: os.Getenv("PROA_REGISTRY_PASSWORD")}
	space := strings.ToLower(rand.Text()[:10])
	w := &world{TB: t, space: space, namespace: (&platform.Space{GUID: space}).Namespace(), registry: os.Getenv("PROA_REGISTRY")}
	w.host, _, _ = net.SplitHostPort(w.registry) // of the development cluster: gateway, registry and API server are processes of one host
	w.Cluster, err = Connect(os.Getenv("KUBECONFIG"), Settings{
		Installation: "test-" + space,
		Registry:     Registry{Server: w.registry, Pull: account, Push: account, CA: ca},
		Network:      Network{Gateway: []Peer{{CIDR: w.host + "/32"}}, Registry: []Peer{{CIDR: w.host + "/32", Ports: []int32{5000}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	w.remote = []remote.Option{
		remote.WithAuth(&authn.Basic{Username: account.Username, Password: account.Password}),
		remote.WithTransport(&http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}),
	}
	for range 2 { // the second time changes nothing
		if err := w.ApplySpace(t.Context(), w.space, w.namespace); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := exec.Command("kubectl", "--namespace="+w.namespace, "get", "pods,events").CombinedOutput()
			t.Logf("%s", out)
		}
		if err := w.DeleteSpace(context.Background(), w.namespace); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) try(args ...string) (string, error) {
	out, err := exec.CommandContext(w.Context(), "kubectl", append([]string{"--namespace=" + w.namespace, "--request-timeout=30s"}, args...)...).CombinedOutput()
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

// until asks again until the answer is right.
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
		time.Sleep(20 * time.Millisecond)
	}
}

// build compiles a program of this module for a container.
func (w *world) build(program string) []byte {
	w.Helper()
	out := filepath.Join(w.TempDir(), "program")
	cmd := exec.CommandContext(w.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, "github.com/proa-dev/proa/"+program)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		w.Fatalf("%v: %v\n%s", cmd.Args, err, said)
	}
	content, err := os.ReadFile(out)
	if err != nil {
		w.Fatal(err)
	}
	return content
}

// push adds a layer of executable files to the run image of the development cluster, and names the result by its digest.
func (w *world) push(repository string, files map[string][]byte) string {
	w.Helper()
	return w.pushOn("proa/run", repository, files)
}

func (w *world) pushOn(below, repository string, files map[string][]byte) string {
	w.Helper()
	base, err := remote.Image(w.reference(below), w.remote...)
	if err != nil {
		w.Fatal(err)
	}
	image, err := mutate.AppendLayers(base, w.layer(files))
	if err != nil {
		w.Fatal(err)
	}
	ref := w.reference(w.namespace + "/" + repository)
	if err := remote.Write(ref, image, w.remote...); err != nil {
		w.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		w.Fatal(err)
	}
	return ref.Context().Digest(digest.String()).String()
}

func (w *world) layer(files map[string][]byte) v1.Layer {
	w.Helper()
	var archive bytes.Buffer
	t := tar.NewWriter(&archive)
	for path, content := range files {
		if err := t.WriteHeader(&tar.Header{Name: path, Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
			w.Fatal(err)
		}
		if _, err := t.Write(content); err != nil {
			w.Fatal(err)
		}
	}
	if err := t.Close(); err != nil {
		w.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil })
	if err != nil {
		w.Fatal(err)
	}
	return layer
}

// added is what an image has above the run image: its layers and its configuration.
func (w *world) added(image string) [][]byte {
	w.Helper()
	got, err := remote.Image(w.reference(strings.TrimPrefix(image, w.registry+"/")), w.remote...)
	if err != nil {
		w.Fatal(err)
	}
	config, err := got.RawConfigFile()
	if err != nil {
		w.Fatal(err)
	}
	layers, err := got.Layers()
	if err != nil {
		w.Fatal(err)
	}
	all := [][]byte{config}
	for _, layer := range layers[1:] {
		stream, err := layer.Uncompressed()
		if err != nil {
			w.Fatal(err)
		}
		content, err := io.ReadAll(stream)
		if err != nil {
			w.Fatal(err)
		}
		all = append(all, content)
	}
	return all
}

func (w *world) reference(repository string) name.Reference {
	w.Helper()
	ref, err := name.ParseReference(w.registry + "/" + repository)
	if err != nil {
		w.Fatal(err)
	}
	return ref
}

// staging pushes the files, and says how to build them.
func (w *world) staging(app string, files map[string][]byte) platform.Staging {
	w.Helper()
	source := map[string][]byte{}
	for path, content := range files {
		source["source/"+path] = content
	}
	return platform.Staging{
		BuildGUID: platform.GUIDOf(w.namespace, app), AppGUID: app, SpaceGUID: w.space, Namespace: w.namespace,
		SourceImage: w.push(app+"-source", source), Builder: w.registry + "/proa/builder", RunImage: w.push("run", map[string][]byte{"proa/launcher": w.build("cmd/launcher")}),
		TargetImage: w.registry + "/" + w.namespace + "/" + app, Env: map[string]string{"CANARY": "staging sings"}, MemoryMB: 512, DiskMB: 512, Timeout: 3 * time.Minute,
	}
}

// stage builds the files and answers how that went, and what was printed, with the phase before each line.
func (w *world) stage(app string, files map[string][]byte, change func(*platform.Staging)) (image string, staged platform.Staged, log string) {
	w.Helper()
	b := w.staging(app, files)
	change(&b)
	since := time.Now()
	for range 2 {
		if err := w.Stage(w.Context(), b); err != nil {
			w.Fatal(err)
		}
	}
	var lines strings.Builder
	staged, err := w.Follow(w.Context(), b, func(phase, text string) { fmt.Fprintf(&lines, "%s: %s\n", phase, text) })
	if err != nil {
		w.Fatal(err)
	}
	w.Logf("staging %s ended as %s after %.1f s", app, staged.State, time.Since(since).Seconds())
	if err := w.DeleteStaging(w.Context(), w.namespace, b.BuildGUID); err != nil {
		w.Fatal(err)
	}
	w.until(30*time.Second, "the end of the staging", func() error {
		again, err := w.Staged(w.Context(), b)
		if err == nil && again.State != platform.StagingLost {
			err = fmt.Errorf("it is %+v", again)
		}
		return err
	})
	return b.TargetImage + "@" + staged.Digest, staged, lines.String()
}
