package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	memory "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// tree makes a small root filesystem, its files written in the given order.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte("this is "+name), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("b/c", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "b", "twin")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// small is an image of one layer, made in a cache of its own.
func small(t *testing.T, root string) image {
	t.Helper()
	cache := cache(t.TempDir())
	r := recipe{
		name: "run",
		layers: []layer{{name: "stack", from: []string{"a test"}, cache: cache, write: func(_ context.Context, a *archive) error {
			return a.system(root)
		}}},
		settings: func([]v1.Layer) (v1.Config, error) { return baseSettings(), nil },
	}
	i, err := r.assemble(t.Context(), cache)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func digest(t *testing.T, i image) string {
	t.Helper()
	img, err := i.open()
	if err != nil {
		t.Fatal(err)
	}
	d, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

func TestSameInputSameDigest(t *testing.T) {
	first := digest(t, small(t, tree(t, "a", "b/c", "d")))
	other := tree(t, "d", "b/c", "a")
	if err := os.Chtimes(filepath.Join(other, "a"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if second := digest(t, small(t, other)); second != first {
		t.Errorf("the same files made at another time, in another order, give %s instead of %s", second, first)
	}
	if third := digest(t, small(t, tree(t, "a", "b/c", "e"))); third == first {
		t.Error("other files give the same digest")
	}
}

// TestPush pushes to a registry that asks for a password and whose certificate nobody knows.
func TestPush(t *testing.T) {
	var sent atomic.Int32
	inner := memory.New(memory.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, password, _ := r.BasicAuth(); name != "proa" || password != "right" {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			sent.Add(1)
		}
		inner.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it tells of clients that do not trust it
	server.StartTLS()
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "https://")
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	i := small(t, tree(t, "a", "b/c"))
	push := func() (string, error) {
		to, err := newRegistry(address)
		if err != nil {
			return "", err
		}
		return to.push(t.Context(), i)
	}

	t.Setenv("PROA_REGISTRY_USERNAME", "proa")
	t.Setenv("PROA_REGISTRY_PASSWORD", "right")
	if _, err := push(); err == nil {
		t.Error("pushed to a registry whose certificate cannot be trusted")
	}
	t.Setenv("PROA_REGISTRY_CA_FILE", ca)
	t.Setenv("PROA_REGISTRY_PASSWORD", "wrong")
	if _, err := push(); err == nil || sent.Load() != 0 {
		t.Errorf("pushed with a wrong password: %v", err)
	}
	t.Setenv("PROA_REGISTRY_PASSWORD", "right")
	ref, err := push()
	if want := address + "/proa/run@" + digest(t, i); err != nil || ref != want {
		t.Fatalf("pushed %s, %v; want %s", ref, err, want)
	}
	before := sent.Swap(0)
	if _, err := push(); err != nil || before == 0 || sent.Load() != 0 {
		t.Errorf("the first push sent %d requests, the second %d and ended with %v; want some, none and nil", before, sent.Load(), err)
	}
}

func TestRegistrySettings(t *testing.T) {
	t.Setenv("PROA_REGISTRY_CA_FILE", "image_test.go")
	if _, err := newRegistry("registry"); err == nil || !strings.Contains(err.Error(), "certificates in PEM form") {
		t.Errorf("got %v", err)
	}
	t.Setenv("PROA_REGISTRY_CA_FILE", "nowhere")
	if _, err := newRegistry("registry"); err == nil || !strings.Contains(err.Error(), "a file that can be read") {
		t.Errorf("got %v", err)
	}
}

// TestOrder holds the order against the buildpacks there are, and the labels against both.
func TestOrder(t *testing.T) {
	packs, err := readBuildpacks("../../buildpacks")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, g := range groups(packs) {
		for _, m := range g.Group {
			used[m.ID] = true
			if m.Version == "" {
				t.Errorf("the order names %s, but there is no such buildpack", m.ID)
			}
		}
	}
	for _, p := range packs {
		if !used[p.ID] {
			t.Errorf("the order does not name %s", p.ID)
		}
		if !slices.Contains(lifecycleAPIs["buildpack"].Supported, p.API) {
			t.Errorf("%s wants buildpack API %s, which the lifecycle does not speak", p.ID, p.API)
		}
		for _, program := range []string{"bin/build", "bin/detect"} {
			if info, err := os.Stat(filepath.Join(p.dir, program)); err != nil || info.Mode()&0o111 != 0o111 {
				t.Errorf("%s of %s must be a program that all may run: %v", program, p.ID, err)
			}
		}
	}
}

func TestBuilderLabels(t *testing.T) {
	img, err := small(t, tree(t, "a", "b/c")).open()
	if err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	config, err := builderSettings([]buildpack{{API: "0.11", ID: "proa/x", Version: "1.2.3"}}, layers)
	if err != nil {
		t.Fatal(err)
	}
	var places map[string]map[string]struct{ LayerDiffID string }
	if err := json.Unmarshal([]byte(config.Labels["io.buildpacks.buildpack.layers"]), &places); err != nil {
		t.Fatal(err)
	}
	if diffID, err := layers[0].DiffID(); err != nil || places["proa/x"]["1.2.3"].LayerDiffID != diffID.String() {
		t.Errorf("the label names the layer %v, want %s (%v)", places, diffID, err)
	}
	var metadata struct {
		Buildpacks []struct{ ID, Version string }
		Images     []struct{ Image string }
		Lifecycle  struct{ Version string }
	}
	if err := json.NewDecoder(bytes.NewBufferString(config.Labels["io.buildpacks.builder.metadata"])).Decode(&metadata); err != nil {
		t.Fatal(err)
	}
	if len(metadata.Buildpacks) != 1 || metadata.Buildpacks[0].ID != "proa/x" || metadata.Images[0].Image != runImage || metadata.Lifecycle.Version != lifecycleVersion {
		t.Errorf("the metadata are %+v", metadata)
	}
}

func TestReadBuildpack(t *testing.T) {
	for text, want := range map[string]string{
		"api = \"0.11\"\n[buildpack]\nid = \"x\"\n": "must say api, and id and version",
		"api = 0.11\n": "must be one quoted text",
		"api = \"0.11\"\n[other]\nid = \"x\"\nversion = \"1\"\n":       "must say api, and id and version",
		"api = \"0.11\"\n[buildpack]\nid = \"x\"\nversion = \"1.0\"\n": "",
	} {
		description := filepath.Join(t.TempDir(), "buildpack.toml")
		if err := os.WriteFile(description, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := readBuildpack(description)
		if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%q gives %v, want %q", text, err, want)
		}
	}
}

func TestToBuild(t *testing.T) {
	for name, want := range map[string]bool{
		"bin/go": true, "bin/gofmt": false, "pkg/tool/linux_amd64/compile": true, "pkg/tool/linux_amd64/vet": false,
		"pkg/include/textflag.h": true, "src/fmt/print.go": true, "src/fmt/fmt_test.go": false, "src/cmd/go/main.go": false,
		"src/_go.mod": true, "src/crypto/md5/_asm/_go.mod": false, "src/go/parser/testdata/x.go": false, "VERSION": true, "README.md": false,
	} {
		if toBuild(name) != want {
			t.Errorf("%s: got %t, want %t", name, !want, want)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"push"}, {"build", "x"}, {"nonsense"}} {
		if err := run(t.Context(), args); err == nil || !strings.Contains(err.Error(), "Say what to do") {
			t.Errorf("%q gives %v", args, err)
		}
	}
}
