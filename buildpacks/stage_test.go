package buildpacks_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// A yard is where the tests stage and run apps: the real images, a registry with the run image in it, and the real
// lifecycle, each phase in the builder's root filesystem.
type yard struct {
	builder, run string // root filesystems
	registry     string // address
	environment  []string
}

var theYard *yard

// TestMain stands the yard up once, when the tests were asked for.
func TestMain(m *testing.M) {
	if os.Getenv("PROA_TEST_IMAGES") != "1" {
		os.Exit(m.Run()) // each test says how to run it
	}
	blobs, err := os.MkdirTemp("", "proa-buildpacks-")
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithBlobHandler(registry.NewDiskBlobHandler(blobs))))
	code := 1
	if theYard, err = openYard(strings.TrimPrefix(server.URL, "http://")); err == nil {
		code = m.Run()
	} else {
		log.Print(err)
	}
	server.Close()
	if err := os.RemoveAll(blobs); err != nil {
		log.Print(err)
		code = 1
	}
	os.Exit(code)
}

func openYard(address string) (*yard, error) {
	if os.Getuid() != 0 {
		return nil, errors.New("These tests enter root filesystems, which needs root. Run them again as root.")
	}
	if _, err := image("push", address); err != nil {
		return nil, err
	}
	y := &yard{registry: address}
	var err error
	if y.run, err = image("unpack", "run"); err != nil {
		return nil, err
	}
	if y.builder, err = image("unpack", "builder"); err != nil {
		return nil, err
	}
	config, err := y.config("proa/builder")
	if err != nil {
		return nil, err
	}
	y.environment = append(config.Env, "CNB_PLATFORM_API=0.14", "CNB_NO_COLOR=true")
	return y, nil
}

// image runs deploy/image and gives what it prints.
func image(args ...string) (string, error) {
	cmd := exec.Command("go", append([]string{"run", "../deploy/image"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

func yardFor(t *testing.T) *yard {
	t.Helper()
	if theYard == nil {
		t.Skip("This test stages apps in real images. To run it, as root: PROA_TEST_IMAGES=1 go test ./buildpacks")
	}
	return theYard
}

func (y *yard) pull(repository string) (v1.Image, error) {
	ref, err := name.ParseReference(y.registry + "/" + repository)
	if err != nil {
		return nil, err
	}
	return remote.Image(ref)
}

func (y *yard) config(repository string) (v1.Config, error) {
	img, err := y.pull(repository)
	if err != nil {
		return v1.Config{}, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return v1.Config{}, err
	}
	return file.Config, nil
}

// A command is one run in a root filesystem.
type command struct {
	root        string
	network     string // none or host
	binds       []string
	environment []string
	args        []string
}

// outcome is what a command wrote and how it ended.
type outcome struct {
	text string
	code int
}

func (c command) run(t *testing.T) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	args := append([]string{c.root, c.network}, c.binds...)
	cmd := exec.CommandContext(ctx, "testdata/enter.sh", append(append(args, "--"), c.args...)...)
	cmd.Env = c.environment
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatalf("%s did not end in time; it said:\n%s", strings.Join(c.args, " "), out)
	}
	return outcome{text: string(out), code: cmd.ProcessState.ExitCode()}
}

// A source is an app before it is staged: its files, and the environment it is staged with.
type source struct {
	files       map[string]string
	environment map[string]string
	cache       string // a directory to keep between builds; one of its own if empty
}

// staged is an app as far as staging came.
type staged struct {
	outcome        // of the last phase that ran
	phase   string // its name; empty when all came through
	log     string // of all phases
	image   string // repository
}

var notInName = regexp.MustCompile(`[^a-z0-9]+`) // of a repository

// stage runs the phases of the lifecycle on the source, as pods do: only the phases that talk to the registry have a
// network. It stops at the first that fails.
func (y *yard) stage(t *testing.T, s source) staged {
	t.Helper()
	dir := t.TempDir()
	if s.cache == "" {
		s.cache = filepath.Join(dir, "cache")
	}
	write(t, filepath.Join(dir, "workspace"), s.files)
	write(t, filepath.Join(dir, "platform", "env"), s.environment)
	for _, at := range []string{filepath.Join(dir, "layers"), s.cache} {
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	own(t, dir)
	own(t, s.cache)
	result := staged{image: "apps/" + strings.Trim(notInName.ReplaceAllString(strings.ToLower(t.Name()), "-"), "-")}
	ref := y.registry + "/" + result.image
	for _, phase := range []struct {
		name, network string
		args          []string
	}{
		{"analyzer", "host", []string{"-run-image", y.registry + "/proa/run", ref}},
		{"detector", "none", nil},
		{"restorer", "host", []string{"-cache-dir", "/cache"}},
		{"builder", "none", nil},
		{"exporter", "host", []string{"-cache-dir", "/cache", ref}},
	} {
		result.phase = phase.name
		result.outcome = command{
			root: y.builder, network: phase.network, environment: y.environment,
			binds: []string{dir + "/workspace:/workspace", dir + "/layers:/layers", dir + "/platform:/platform", s.cache + ":/cache"},
			args:  append([]string{"/cnb/lifecycle/" + phase.name}, phase.args...),
		}.run(t)
		result.log += result.text
		if result.code != 0 {
			return result
		}
	}
	result.phase = ""
	return result
}

// stageWell is stage for an app that must come through.
func (y *yard) stageWell(t *testing.T, s source) staged {
	t.Helper()
	result := y.stage(t, s)
	if result.phase != "" {
		t.Fatalf("the %s ended with status %d:\n%s", result.phase, result.code, result.log)
	}
	return result
}

// ask starts a command, waits until it answers at its port or ends, and prints the answer.
const ask = `
"$@" &
for ((try = 0; try < 600; try++)); do
	if answer=$(curl --fail --silent --max-time 5 "http://127.0.0.1:$PORT/"); then
		echo "answer: $answer"
		exit 0
	fi
	kill -0 $! 2>/dev/null || { wait $!; exit; }
	sleep 0.05
done
echo "no answer in time"
exit 1
`

// start runs a process of a staged app in the run image's root filesystem, with the app's layers from the registry over it.
func (y *yard) start(t *testing.T, app staged, script string, environment map[string]string, args ...string) outcome {
	t.Helper()
	dir := t.TempDir()
	config, err := y.config(app.image)
	if err != nil {
		t.Fatal(err)
	}
	c := command{root: y.run, network: "none", environment: append(config.Env, "PORT=8080"), args: []string{"bash", "-c", script, "bash"}}
	for name, value := range environment {
		c.environment = append(c.environment, name+"="+value)
	}
	y.unpackOver(t, app, dir)
	for _, at := range []string{"cnb", "layers", "workspace"} {
		c.binds = append(c.binds, filepath.Join(dir, at)+":/"+at)
	}
	if limit, found := environment["TEST_CGROUP"]; found {
		write(t, filepath.Join(dir, "cgroup"), map[string]string{limit: environment["TEST_CGROUP_LIMIT"] + "\n"})
		c.binds = append(c.binds, filepath.Join(dir, "cgroup")+":/sys/fs/cgroup")
	}
	c.args = append(c.args, args...)
	return c.run(t)
}

// unpackOver unpacks the layers that staging put over those of the run image.
func (y *yard) unpackOver(t *testing.T, app staged, dir string) {
	t.Helper()
	base, err := y.pull("proa/run")
	if err != nil {
		t.Fatal(err)
	}
	img, err := y.pull(app.image)
	if err != nil {
		t.Fatal(err)
	}
	below, err := base.Layers()
	if err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range layers[len(below):] {
		content, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		tar := exec.Command("tar", "--extract", "--numeric-owner", "--preserve-permissions", "--directory", dir)
		tar.Stdin = content
		if out, err := tar.CombinedOutput(); err != nil {
			t.Fatalf("unpack: %v: %s", err, out)
		}
		_ = content.Close()
	}
}

// write puts files into a directory. What begins like a script or a program may be executed.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") || strings.HasPrefix(text, "\x7fELF") {
			mode = 0o755
		}
		if err := os.WriteFile(at, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
}

// read gives the files below a directory, by name.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(at string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(at)
		files[strings.TrimPrefix(at, dir+"/")] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// own gives a directory, and what is in it, to the images' user.
func own(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(at string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(at, 2000, 2000))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// jar compiles the Java app of testdata into an executable archive.
func jar(t *testing.T) []byte {
	t.Helper()
	if _, err := exec.LookPath("javac"); err != nil {
		do(t, "../engines/apt.sh", "openjdk-17-jdk-headless")
	}
	dir := t.TempDir()
	do(t, "javac", "--release", "17", "-d", filepath.Join(dir, "classes"), "testdata/java/Hello.java")
	archive := filepath.Join(dir, "app.jar")
	do(t, "jar", "--create", "--file", archive, "--main-class", mainClass, "-C", filepath.Join(dir, "classes"), ".")
	content, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// exploded unpacks an archive, as a client does before it sends one.
func exploded(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(text)
	}
	return files
}

func do(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
}

// with gives a copy of the files with others added.
func with(files, more map[string]string) map[string]string {
	all := maps.Clone(files)
	maps.Copy(all, more)
	return all
}
