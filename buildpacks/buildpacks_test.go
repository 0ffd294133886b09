// Package buildpacks_test stages apps with each buildpack, in the real images and with the real lifecycle, starts what
// came of it through the launcher, and asks it over HTTP.
package buildpacks_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/types"
)

const mainClass = "com.example.with.a.name.so.extended.that.a.manifest.has.to.fold.its.line.Hello"

func TestNothingFits(t *testing.T) {
	y := yardFor(t)
	t.Parallel()
	result := y.stage(t, source{files: map[string]string{"readme.txt": "not an app"}})
	if result.phase != "detector" || result.code != 20 {
		t.Fatalf("the %s ended with status %d, want the detector with 20:\n%s", result.phase, result.code, result.log)
	}
}

func TestProcfile(t *testing.T) {
	y := yardFor(t)
	t.Parallel()
	program := filepath.Join(t.TempDir(), "web")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir, build.Env = "testdata/web", append(build.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	files := read(t, filepath.Dir(program))
	files["Procfile"] = "# what to run\r\n\r\nweb: ./web --port $PORT \"two words\" \\$\r\n" +
		"config-server: echo \"serving\tconfiguration for $NAME\"\r\n  worker_2 :  ./web   "
	app := y.stageWell(t, source{files: files})

	t.Run("the image is of one kind", func(t *testing.T) {
		img, err := y.pull(app.image)
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := img.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range manifest.Layers {
			if manifest.MediaType != types.DockerManifestSchema2 || l.MediaType != types.DockerLayer {
				t.Errorf("a manifest of the type %s has a layer of the type %s", manifest.MediaType, l.MediaType)
			}
		}
	})
	t.Run("the default process is web", func(t *testing.T) {
		config, err := y.config(app.image)
		if err != nil {
			t.Fatal(err)
		}
		got := y.start(t, app, ask, nil, config.Entrypoint...)
		if want := "answer: hello from ./web, arguments: --port 8080 two words $\n"; got.text != want {
			t.Errorf("got %q, want %q", got.text, want)
		}
	})
	t.Run("another process", func(t *testing.T) {
		got := y.start(t, app, `exec "$@"`, map[string]string{"NAME": "web"}, "/cnb/process/config-server")
		if want := "serving\tconfiguration for web\n"; got.text != want || got.code != 0 {
			t.Errorf("got %q and status %d, want %q", got.text, got.code, want)
		}
	})
	t.Run("a process with spaces around its name", func(t *testing.T) {
		got := y.start(t, app, ask, nil, "/cnb/process/worker_2")
		if want := "answer: hello from ./web, arguments: \n"; got.text != want {
			t.Errorf("got %q, want %q", got.text, want)
		}
	})
}

func TestProcfileRefusals(t *testing.T) {
	y := yardFor(t)
	t.Parallel()
	result := y.stage(t, source{files: map[string]string{"Procfile": "web ./server\nhello world: ./x\nweb:\n" +
		"web: ./a\n# fine\nweb: ./b\nworker: a\x01b\n"}})
	if result.phase != "builder" || result.code != 51 {
		t.Fatalf("the %s ended with status %d, want the builder with 51:\n%s", result.phase, result.code, result.log)
	}
	expect(t, result.log,
		"Procfile, line 1: this is not a process: web ./server. Write a type, a colon and a command",
		"Procfile, line 2: this is not a process: hello world",
		"Procfile, line 3: the process web has no command. Write what to run after the colon.",
		"Procfile, line 6: the process web is there already, in line 4. Keep one of the two.",
		"Procfile, line 7: the command of worker holds a control character.")

	result = y.stage(t, source{files: map[string]string{"Procfile": "w€b: ./a\n"}})
	expect(t, result.log, "cannot be a process type. Use letters, digits, - and _ only")
	result = y.stage(t, source{files: map[string]string{"Procfile": "# nothing yet\n"}})
	expect(t, result.log, "The Procfile names no process. Write a line such as")
}

func TestJava(t *testing.T) {
	y := yardFor(t)
	t.Parallel()
	archive := jar(t)
	files := exploded(t, archive)
	if !strings.Contains(files["META-INF/MANIFEST.MF"], "\r\n ") {
		t.Fatalf("the manifest is meant to have a folded line: %q", files["META-INF/MANIFEST.MF"])
	}
	app := y.stageWell(t, source{files: files})

	for _, c := range []struct {
		name        string
		environment map[string]string
		least, most int // megabytes of heap
	}{
		{"what the platform leaves", map[string]string{"MEMORY_LIMIT": "256m"}, 80, 128},
		{"in gigabytes", map[string]string{"MEMORY_LIMIT": "1G"}, 400, 520},
		{"the user's heap wins", map[string]string{"MEMORY_LIMIT": "256m", "JAVA_OPTS": "-Xmx64m"}, 50, 64},
		{"as a tool option too", map[string]string{"MEMORY_LIMIT": "64m", "JAVA_TOOL_OPTIONS": "-Dx=y -Xmx48m"}, 32, 48},
		{"the user's other settings count", map[string]string{"MEMORY_LIMIT": "1024M", "JAVA_OPTS": "-XX:MaxMetaspaceSize=400m"}, 280, 340},
		{"the container's limit", map[string]string{"TEST_CGROUP": "memory.max", "TEST_CGROUP_LIMIT": "268435456"}, 80, 128},
		{"an older kernel's limit", map[string]string{"TEST_CGROUP": "memory/memory.limit_in_bytes", "TEST_CGROUP_LIMIT": "268435456"}, 80, 128},
		{"a malformed limit", map[string]string{"MEMORY_LIMIT": "lots", "TEST_CGROUP": "memory.max", "TEST_CGROUP_LIMIT": "268435456"}, 80, 128},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := y.start(t, app, ask, c.environment, "/cnb/process/web")
			var heap, args int
			_, line, _ := strings.Cut(got.text, "answer: ")
			if _, err := fmt.Sscanf(line, "heap %d of %d", &heap, &args); err != nil || heap < c.least || heap > c.most {
				t.Errorf("Java has a heap of %d MB, want %d to %d; it said:\n%s", heap, c.least, c.most, got.text)
			}
		})
	}
	t.Run("no limit", func(t *testing.T) {
		got := y.start(t, app, ask, map[string]string{"TEST_CGROUP": "memory.max", "TEST_CGROUP_LIMIT": "max"}, "/cnb/process/web")
		expect(t, got.text, "answer: heap")
		if strings.Contains(got.text, "-Xmx") {
			t.Errorf("Java was given settings without a limit:\n%s", got.text)
		}
	})
	t.Run("too little", func(t *testing.T) {
		got := y.start(t, app, ask, map[string]string{"MEMORY_LIMIT": "64m"}, "/cnb/process/web")
		expect(t, got.text, "This process has 64 MB of memory, and Java needs at least 128 MB. Give the app more memory")
		if got.code != 82 {
			t.Errorf("the launcher ended with status %d, want 82", got.code)
		}
		got = y.start(t, app, `exec "$@"`, map[string]string{"MEMORY_LIMIT": "64m"}, "/cnb/lifecycle/launcher", "echo", "not a Java")
		if got.code != 0 || got.text != "not a Java\n" {
			t.Errorf("a process of another kind may live in less: status %d, %q", got.code, got.text)
		}
	})
	t.Run("too little beside the user's settings", func(t *testing.T) {
		got := y.start(t, app, ask, map[string]string{"MEMORY_LIMIT": "256m", "JAVA_OPTS": "-XX:MaxMetaspaceSize=150m"}, "/cnb/process/web")
		expect(t, got.text, "Of 256 MB of memory, the settings in JAVA_OPTS and JAVA_TOOL_OPTIONS leave 11 MB for Java's heap.")
	})

	t.Run("one archive", func(t *testing.T) {
		app := y.stageWell(t, source{files: map[string]string{"it's an app.jar": string(archive)}})
		expect(t, y.start(t, app, ask, map[string]string{"MEMORY_LIMIT": "256m"}, "/cnb/process/web").text, "answer: heap")
	})
	t.Run("with a Procfile", func(t *testing.T) {
		app := y.stageWell(t, source{files: with(files, map[string]string{
			"Procfile": "web: exec java $JAVA_OPTS -cp . " + mainClass + " one two\nhelper: echo $JAVA_TOOL_OPTIONS\n",
		})})
		limit := map[string]string{"MEMORY_LIMIT": "256m", "SERVER_PORT": "8080"}
		got := y.start(t, app, ask, limit, "/cnb/process/web")
		expect(t, got.text, "of 2\n")
		expect(t, y.start(t, app, `exec "$@"`, limit, "/cnb/process/helper").text, "-Xmx")
	})
}

func TestJavaRefusals(t *testing.T) {
	y := yardFor(t)
	t.Parallel()
	result := y.stage(t, source{files: map[string]string{"META-INF/MANIFEST.MF": "Manifest-Version: 1.0\r\n\r\nName: x\r\nMain-Class: not.this.One\r\n"}})
	expect(t, result.log, "The manifest of this Java archive names no Main-Class")
	if result.code != 51 {
		t.Errorf("the %s ended with status %d, want the builder with 51", result.phase, result.code)
	}
	result = y.stage(t, source{files: map[string]string{"META-INF/MANIFEST.MF": "Main-Class: a b; rm\n"}})
	expect(t, result.log, `The manifest's Main-Class is "a b; rm", which is no class name.`)

	library := bytes.Buffer{}
	z := zip.NewWriter(&library)
	manifest, err := z.Create("META-INF/MANIFEST.MF")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := manifest.Write([]byte("Manifest-Version: 1.0\r\n")); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	result = y.stage(t, source{files: map[string]string{"library.jar": library.String()}})
	expect(t, result.log, "The manifest of library.jar names no Main-Class, so this archive cannot be started.")
	if result.code != 20 {
		t.Errorf("the %s ended with status %d, want the detector with 20", result.phase, result.code)
	}
}

func TestGo(t *testing.T) {
	y := yardFor(t)
	t.Parallel()
	cache := t.TempDir()
	app := source{environment: map[string]string{"GOFLAGS": "-v"}, cache: cache, files: with(read(t, "testdata/web"), map[string]string{
		"kept/kept.go": "package kept\n", "kept.go": "package main\n\nimport _ \"example.com/web/kept\"\n",
	})}
	first := y.stageWell(t, app)
	expect(t, first.log, "Building web with Go 1.", "\nexample.com/web\n", "\nexample.com/web/kept\n")
	if slices.Contains(strings.Split(first.log, "\n"), "net") {
		t.Errorf("the build compiled the standard library, which the image has:\n%s", first.log)
	}
	got := y.start(t, first, ask, nil, "/cnb/process/web")
	expect(t, got.text, "answer: hello from /layers/proa_go/programs/bin/web, arguments: ")

	t.Run("a second build compiles only what changed", func(t *testing.T) {
		app.files = with(app.files, map[string]string{"more.go": "package main\n\nfunc init() {}\n"})
		second := y.stageWell(t, app)
		expect(t, second.log, "\nexample.com/web\n")
		if slices.Contains(strings.Split(second.log, "\n"), "example.com/web/kept") {
			t.Errorf("the second build compiled what had not changed:\n%s", second.log)
		}
	})
	t.Run("vendored, the only program under cmd", func(t *testing.T) {
		app := y.stageWell(t, source{files: read(t, "testdata/vendored"), cache: cache})
		expect(t, y.start(t, app, `exec "$@"`, nil, "/cnb/process/web").text, "greetings from a vendored module")
	})
	t.Run("several programs and a Procfile", func(t *testing.T) {
		files := with(app.files, map[string]string{"Procfile": "web: web from a Procfile", "tool/main.go": "package main\n\nfunc main() { println(\"a tool\") }\n"})
		app := y.stageWell(t, source{files: files, environment: map[string]string{"BP_GO_TARGETS": ".:./tool"}, cache: cache})
		expect(t, y.start(t, app, ask, nil, "/cnb/process/web").text, "answer: hello from web, arguments: from a Procfile")
		expect(t, y.start(t, app, `exec "$@"`, nil, "/cnb/process/tool").text, "a tool")
	})
	t.Run("refusals", func(t *testing.T) { refuseGo(t, y, cache) })
}

func refuseGo(t *testing.T, y *yard, cache string) {
	program := "package main\n\nfunc main() {}\n"
	vendored := read(t, "testdata/vendored")
	delete(vendored, "vendor/modules.txt")
	delete(vendored, "vendor/example.com/greeting/greeting.go")
	for _, c := range []struct {
		name        string
		files       map[string]string
		environment map[string]string
		want        string
	}{
		{"dependencies that are missing", vendored, nil, `Run "go mod vendor" and push again, with the directory vendor.`},
		{"vendor is out of date", with(vendored, map[string]string{"vendor/modules.txt": ""}), nil, `The directory vendor does not hold what go.mod asks for. Run "go mod vendor" and push again.`},
		{"a newer Go", map[string]string{"go.mod": "module x\n\ngo 1.99\n", "main.go": program}, nil, "This app wants a newer Go than the builder has, 1."},
		{"no program", map[string]string{"go.mod": "module x\n\ngo 1.26\n", "x.go": "package x\n"}, nil, "There is no program in the root of this module, nor under cmd/."},
		{"several programs", map[string]string{"go.mod": "module x\n\ngo 1.26\n", "cmd/a/main.go": program, "cmd/b/main.go": program}, nil, "There are several programs under cmd/: x/cmd/a, x/cmd/b. Say which to build with BP_GO_TARGETS"},
		{"not a program", map[string]string{"go.mod": "module x\n\ngo 1.26\n", "x.go": "package x\n"}, map[string]string{"GO_INSTALL_PACKAGE_SPEC": "."}, "x is not a program: its package is not called main."},
		{"does not compile", map[string]string{"go.mod": "module x\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() { nonsense() }\n"}, nil, "undefined: nonsense"},
	} {
		t.Run(c.name, func(t *testing.T) {
			result := y.stage(t, source{files: c.files, environment: c.environment, cache: cache})
			expect(t, result.log, c.want)
			if result.phase != "builder" || result.code != 51 {
				t.Errorf("the %s ended with status %d, want the builder with 51", result.phase, result.code)
			}
		})
	}
}

func expect(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("missing %q in:\n%s", want, text)
		}
	}
}
