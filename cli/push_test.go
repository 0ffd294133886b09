package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// files makes a directory of files; a name that ends in * can be run.
func files(t *testing.T, all map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range all {
		mode := os.FileMode(0o644)
		if bare, executable := strings.CutSuffix(name, "*"); executable {
			name, mode = bare, 0o755
		}
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const shopManifest = `
defaults: &defaults {memory: ((memory))}
applications:
- name: shop
  <<: *defaults
  path: code
  env: {VERSION: 1.10}
  sidecars:
  - {name: config server, process_types: [web], command: ./config}
`

func TestPush(t *testing.T) {
	w := loggedIn(t)
	w.env["DIR"] = files(t, map[string]string{
		"manifest.yml": shopManifest, "vars.yml": "memory: 1G\n",
		"code/index.html": "hello", "code/run.sh*": "#!/bin/sh", "code/debug.log": "x", "code/.proaignore": "*.log\n", "code/.git/config": "x",
	})
	out, errs, code := w.run("push", "-i", "2", "--vars-file", "vars.yml", "--var", "memory=256M")
	if code != ExitOK {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	contains(t, out, "- memory: 1G", "+ memory: 256M", "Uploading", "said by STG", "0 of 2 instances running", "2 of 2 instances running", "config server", "\nOpen: http://shop.example.com\n")
	contains(t, errs, "mind the gap")
	if strings.Contains(out, "default-route") {
		t.Errorf("what push adds by itself is shown:\n%s", out)
	}
	if strings.Contains(out, "said by APP") {
		t.Errorf("a line of the app is shown as one of staging:\n%s", out)
	}
	order := []string{"POST /v3/spaces/s-1/manifest_diff", "POST /v3/spaces/s-1/actions/apply_manifest", "POST /v3/packages", "POST /v3/packages/k-1/upload",
		"POST /v3/builds", "PATCH /v3/apps/a-1/relationships/current_droplet", "POST /v3/apps/a-1/actions/restart"}
	if heard := slices.DeleteFunc(w.heard, func(l string) bool { return strings.HasPrefix(l, "GET ") }); !slices.Equal(heard, order) {
		t.Errorf("changes came in the order %q", heard)
	}
	want := `applications:
  - name: shop
    env: {VERSION: 1.10}
    sidecars:
      - {name: config server, process_types: [web], command: ./config}
    memory: 256M
    default-route: true
    instances: 2
`
	if w.manifest != want {
		t.Errorf("sent\n%s\nwant\n%s", w.manifest, want)
	}
	for _, gone := range []string{"debug.log", ".git/config", ".proaignore"} {
		if w.uploaded[gone] != nil {
			t.Errorf("%s was uploaded", gone)
		}
	}
	if f := w.uploaded["run.sh"]; f == nil || f.Mode().Perm() != 0o755 {
		t.Errorf("run.sh was uploaded as %v", f)
	}
}

func TestPushThatFails(t *testing.T) {
	code := files(t, map[string]string{"index.html": "hello"})
	for name, c := range map[string]struct {
		args  []string
		spoil func(*world)
		code  int
		says  []string
	}{
		"staging":     {[]string{"shop", "-p", code}, func(w *world) { w.fails = "NoAppDetectedError" }, ExitFailed, []string{"Staging failed: NoAppDetectedError.", "proa logs shop --recent"}},
		"all crash":   {[]string{"shop", "-p", code}, func(w *world) { w.states = []string{"CRASHED"} }, ExitFailed, []string{"all of its instances crashed", "[APP/PROC/WEB/0] said by APP/PROC/WEB\nNext:  proa logs shop --recent"}},
		"two at once": {[]string{"shop", "-p", code}, func(w *world) { w.stages = true }, ExitFailed, []string{"Only one build can be STAGING", "proa logs shop    # until", "push again"}},
		"never up":    {[]string{"shop", "-p", code}, func(w *world) { w.states = []string{"STARTING"}; w.env["PROA_STARTUP_TIMEOUT"] = "20ms" }, ExitFailed, []string{"has not started within 20ms"}},
		"no content":  {[]string{"shop", "-p", filepath.Join(code, "gone")}, nil, ExitUsage, []string{"There is nothing at"}},
		"empty":       {[]string{"shop", "-p", t.TempDir()}, nil, ExitUsage, []string{"There is nothing to upload"}},
		"no name":     {nil, nil, ExitUsage, []string{"the app needs a name"}},
		"bad size":    {[]string{"shop", "-p", code, "-m", "lots"}, nil, ExitUsage, []string{"Write it as 512M or 1G."}},
		"both routes": {[]string{"shop", "-p", code, "--no-route", "--random-route"}, nil, ExitUsage, []string{"exclude each other"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := loggedIn(t)
			if c.spoil != nil {
				c.spoil(w)
			}
			out, errs, got := w.run(append([]string{"push"}, c.args...)...)
			if got != c.code {
				t.Errorf("exit %d, want %d\n%s", got, c.code, out)
			}
			contains(t, errs, c.says...)
			if c.code == ExitUsage && slices.ContainsFunc(w.heard, func(l string) bool { return !strings.HasPrefix(l, "GET ") }) {
				t.Errorf("something was changed before the mistake was met: %q", w.heard)
			}
		})
	}
}

func TestPushIsStoppedWhileItStages(t *testing.T) {
	w := loggedIn(t)
	w.endless = true
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	_, errs, code := w.runIn(ctx, func(e *Env) {
		e.Out = writerFunc(func(b []byte) (int, error) {
			if bytes.Contains(b, []byte("said by STG")) {
				go func() {
					until(t, "a look at the build", func() bool { return w.hears("GET /v3/builds/b-1") })
					interrupt()
				}()
			}
			return len(b), nil
		})
	}, "push", "shop", "-p", files(t, map[string]string{"a": "b"}))
	if code != ExitInterrupted {
		t.Errorf("exit %d", code)
	}
	contains(t, errs, "Staging goes on without you. proa logs shop shows how.", "Stopped.")
}

func TestAppID(t *testing.T) {
	w := loggedIn(t)
	w.manifest = "applied"
	for want, args := range map[string][]string{"a-1\n": nil, "p-1\n": {"--process", "web"}} {
		if got := w.ok(append([]string{"app", "shop", "--guid"}, args...)...); got != want {
			t.Errorf("%v: %q", args, got)
		}
	}
	if _, errs, code := w.run("app", "shop", "--guid", "--process", "worker"); code != ExitNotFound {
		t.Errorf("exit %d: %s", code, errs)
	}
}

func TestPushGoesOnWithoutLogs(t *testing.T) {
	w := loggedIn(t)
	w.broken = true
	_, errs, code := w.run("push", "shop", "-p", files(t, map[string]string{"a": "b"}), "--no-route")
	if code != ExitOK {
		t.Errorf("exit %d\n%s", code, errs)
	}
	contains(t, errs, "The output of staging cannot be shown")
	if strings.Contains(w.manifest, "default-route") || !strings.Contains(w.manifest, "no-route: true") {
		t.Errorf("sent\n%s", w.manifest)
	}
}

func TestLogsRecent(t *testing.T) {
	w := loggedIn(t)
	w.manifest = "applied"
	out := w.ok("logs", "shop", "--recent")
	if first, second := strings.Index(out, "[APP/PROC/WEB/0] OUT said by APP"), strings.Index(out, "[STG/0] OUT said by STG"); first < 0 || second < first {
		t.Errorf("got\n%s", out)
	}
}

// hears tells whether a request has come.
func (w *world) hears(line string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.heard, line)
}
