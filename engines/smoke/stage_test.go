package smoke_test

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// A source is what is pushed: a directory, and where the buildpacks are if not the builder's own are to be used.
type source struct{ dir, buildpacks string }

// stage builds the source with the lifecycle in a pod, and answers the image it made.
func (w *world) stage(name string, s source) string {
	w.Helper()
	since := time.Now()
	image := w.Registry + "/" + w.Namespace + "/" + name
	w.apply("stage.yaml", map[string]string{
		"Name": name, "Namespace": w.Namespace, "Registry": w.Registry, "Image": image, "Source": w.sourceImage(name, s), "Buildpacks": s.buildpacks,
	})
	w.until(3*time.Minute, "staging "+name, func() error {
		var pod struct{ Status struct{ Phase string } }
		w.get("pod/"+name, &pod)
		switch pod.Status.Phase {
		case "Succeeded":
			return nil
		case "Failed":
			w.Fatalf("staging %s failed:\n%s", name, w.kubectl("logs", name, "--all-containers", "--prefix"))
		}
		return fmt.Errorf("the pod is %s", pod.Status.Phase)
	})
	w.Logf("staged %s in %.1f s", name, time.Since(since).Seconds())
	return image
}

// sourceImage pushes a directory as one layer on the run image, so that the kubelet fetches it: then no container needs
// credentials for it.
func (w *world) sourceImage(name string, s source) string {
	w.Helper()
	base, err := remote.Image(w.reference("proa/run"), w.remote()...)
	if err != nil {
		w.Fatal(err)
	}
	image, err := mutate.AppendLayers(base, w.layer("source", s.dir))
	if err != nil {
		w.Fatal(err)
	}
	ref := w.reference(w.Namespace + "/" + name + "-source")
	if err := remote.Write(ref, image, w.remote()...); err != nil {
		w.Fatal(err)
	}
	return ref.String()
}

// layer is a directory's content below another name.
func (w *world) layer(root, dir string) v1.Layer {
	w.Helper()
	out, err := exec.CommandContext(w.Context(), "tar", "-c", "--transform=s,^\\.,"+root+",", "-C", dir, ".").Output()
	if err != nil {
		w.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out)), nil })
	if err != nil {
		w.Fatal(err)
	}
	return layer
}

// build makes a directory with some files, and lets a command add to it.
func (w *world) build(files map[string]string, command ...string) string {
	w.Helper()
	dir := w.TempDir()
	for file, content := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755); err != nil {
			w.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644); err != nil {
			w.Fatal(err)
		}
	}
	if len(command) == 0 {
		return dir
	}
	for i, word := range command {
		command[i] = strings.ReplaceAll(word, "DIR", dir)
	}
	cmd := exec.CommandContext(w.Context(), command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		w.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return dir
}

const goApp = `package main

import (
	"fmt"
	"net/http"
	"os"
)

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "go") })
	panic(http.ListenAndServe(":"+os.Getenv("PORT"), nil))
}
`

func TestStageAndRun(t *testing.T) {
	if _, err := exec.LookPath("javac"); err != nil && os.Getenv("PROA_TEST_CLUSTER") != "" {
		t.Fatal("There is no javac for the Java app. Install it: engines/apt.sh openjdk-17-jdk-headless")
	}
	for _, app := range []struct {
		name string
		make func(*world) string
		says string
	}{
		{"procfile", func(w *world) string {
			return w.build(map[string]string{"Procfile": "web: exec ./app $PORT\n"}, "go", "build", "-ldflags=-s -w", "-o", "DIR/app", "./app")
		}, `^procfile-0 on 8080$`},
		{"java", func(w *world) string {
			return w.build(map[string]string{"META-INF/MANIFEST.MF": "Main-Class: Hello\r\n"}, "javac", "--release", "17", "-d", "DIR", "testdata/java/Hello.java")
		}, `^java with a heap of \d\d?$`},
		{"go", func(w *world) string {
			return w.build(map[string]string{"go.mod": "module hello\n\ngo 1.26\n", "main.go": goApp})
		}, `^go$`},
	} {
		t.Run(app.name, func(t *testing.T) {
			w := here(t)
			dir := app.make(w)
			image := w.stage(app.name, source{dir: dir})
			w.apply("app.yaml", map[string]string{"Name": app.name, "Namespace": w.Namespace, "Image": image})
			w.kubectl("rollout", "status", "--timeout=90s", "statefulset/"+app.name)
			w.until(30*time.Second, "the answer", func() error {
				got, err := w.ask(w.url(app.name))
				if err == nil && !regexp.MustCompile(app.says).MatchString(strings.TrimSpace(got)) {
					err = fmt.Errorf("it says %q", got)
				}
				return err
			})
		})
	}
}

// TestBuildpackFindsNoCredentials stages with a buildpack that prints all it can read and lays traps for the phase that
// has them.
func TestBuildpackFindsNoCredentials(t *testing.T) {
	w := here(t)
	password := os.Getenv("PROA_REGISTRY_PASSWORD")
	basic := base64.StdEncoding.EncodeToString([]byte(os.Getenv("PROA_REGISTRY_USERNAME") + ":" + password))
	clean := func(where, text string) {
		t.Helper()
		for _, secret := range []string{password, basic} {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds the registry's credentials", where)
			}
		}
		if strings.Contains(text, "kubernetes.io/serviceaccount") {
			t.Errorf("%s holds a token of the Kubernetes API", where)
		}
	}
	w.kubectl("create", "configmap", "snoop", "--from-literal=CANARY=sings")
	image := w.stage("snoop", source{dir: "testdata/snoop", buildpacks: "/workspace/buildpacks"})
	log := w.kubectl("logs", "snoop", "--container=builder")
	_, looks, _ := strings.Cut(log, "LOOK detector\n")
	detector, builder, _ := strings.Cut(looks, "LOOK builder\n")
	for phase, look := range map[string]string{"detector": detector, "builder": builder} {
		for _, seen := range []string{"CNB_PLATFORM_API=0.14", "sings", "MOUNT /workspace", "MOUNT /layers", "[run-image]"} {
			if !strings.Contains(look, seen) {
				t.Errorf("the %s's look around misses %q, so it proves nothing:\n%s", phase, seen, look)
			}
		}
	}
	clean("what buildpacks see", log)
	clean("the log of the exporter", w.kubectl("logs", "snoop", "--container=exporter"))
	for name, content := range w.content(image) {
		clean("the image's file "+name, content)
	}
}

// content reads every file of the layers that staging added to an image.
func (w *world) content(repository string) map[string]string {
	w.Helper()
	image, err := remote.Image(w.reference(strings.TrimPrefix(repository, w.Registry+"/")), w.remote()...)
	if err != nil {
		w.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil {
		w.Fatal(err)
	}
	files := map[string]string{}
	for _, layer := range layers[1:] {
		stream, err := layer.Uncompressed()
		if err != nil {
			w.Fatal(err)
		}
		for r := tar.NewReader(stream); ; {
			header, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				w.Fatal(err)
			}
			content, err := io.ReadAll(io.LimitReader(r, 1<<20))
			if err != nil {
				w.Fatal(err)
			}
			files[header.Name] = string(content)
		}
		_ = stream.Close()
	}
	if len(files) == 0 {
		w.Fatal("staging added nothing to the image, so looking into it proves nothing")
	}
	config, err := image.RawConfigFile()
	if err != nil {
		w.Fatal(err)
	}
	files["config"] = string(config)
	return files
}
