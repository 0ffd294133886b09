package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func testEnv(t *testing.T, dir string) *Env {
	t.Helper()
	return &Env{Dir: dir, Getenv: func(string) string { return "" }}
}

func TestVars(t *testing.T) {
	dir := files(t, map[string]string{"a.yml": "host: one\ndb: {name: main, ports: [1, 2]}\n", "b.yml": "host: two\n"})
	v, err := testEnv(t, dir).loadVars([]string{"a.yml", "b.yml"}, []string{"n=3", "on=true", "text=a: b: c", "empty="})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "m.yml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("applications:\n- name: x-((host))\n  instances: ((n))\n  ports: ((db.ports))\n  env: {DB: ((db.name)), ((host)): ((on)), T: ((text)), E: ((empty))}\n")
	m, err := readManifest(file, v)
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.bytes()
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(got), "name: x-two\n", "instances: 3\n", "ports: [1, 2]\n", "DB: main", "two: true", `T: "a: b: c"`, `E: ""`)

	write("applications:\n- name: ((gone))((lost))\n")
	_, err = readManifest(file, v)
	if err == nil || !strings.Contains(err.Error(), "gone, lost") {
		t.Errorf("got %v", err)
	}
	for _, bad := range [][]string{{"novalue"}, {"=x"}} {
		if _, err := testEnv(t, dir).loadVars(nil, bad); err == nil {
			t.Errorf("%q was taken as a variable", bad)
		}
	}
}

func TestManifestsThatCannotBeRead(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for i, name := range "bcdefg" {
		before := string("abcdef"[i])
		bomb += string(name) + ": &" + string(name) + " [" + strings.TrimSuffix(strings.Repeat("*"+before+",", 10), ",") + "]\n"
	}
	for _, text := range []string{"", "[]", "applications: 3", "applications: []", "applications: [name]", "a: [", bomb + "applications: [{name: *g}]"} {
		dir := files(t, map[string]string{"manifest.yml": text})
		if _, err := readManifest(filepath.Join(dir, "manifest.yml"), vars{}); err == nil {
			t.Errorf("%.40q was read", text)
		} else if p := problemOf(err); p.code != ExitUsage {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

// The options of push, and what the manifest becomes of them.
func TestOverrides(t *testing.T) {
	for _, c := range []struct {
		manifest string
		args     []string
		want     string
		refused  string
	}{
		{manifest: "- {name: a}", args: []string{"-m", "1G", "-k", "2G", "-c", "run it", "-b", "x", "-b", "z"},
			want: "- {name: a, command: run it, buildpacks: [x, z], default-route: true, memory: 1G, disk-quota: 2G}"},
		{manifest: "- {name: a}", args: []string{"b"}, want: "- {name: b, default-route: true}"},
		{manifest: "- {name: a, command: x}", args: []string{"-c", "null", "-b", "default"}, want: "- {name: a, command: null, buildpacks: [], default-route: true}"},
		{manifest: "- {name: a, processes: [{type: worker}, {type: web, disk-quota: 1G}]}", args: []string{"-i", "0", "-k", "2G"},
			want: "- {name: a, processes: [{type: worker}, {type: web, disk_quota: 2G, instances: 0}], default-route: true}"},
		{manifest: "- {name: a, no-route: true}", want: "- {name: a, no-route: true}"},
		{manifest: "- {name: a}\n- {name: b, path: x}", args: []string{"b", "--random-route"}, want: "- {name: b, random-route: true}"},
		{manifest: "- {name: a}\n- {name: b}", want: "- {name: a, default-route: true}\n  - {name: b, default-route: true}"},
		{manifest: "- {name: a}\n- {name: b}", args: []string{"-m", "1G"}, refused: "2 apps"},
		{manifest: "- {name: a}\n- {name: b}", args: []string{"c"}, refused: `no app "c"`},
		{manifest: "- {memory: 1G}", refused: "has no name"},
		{manifest: "- {name: a}", args: []string{"-o", "nginx", "-p", "."}, refused: "leave out -p"},
		{manifest: "- {name: a}", args: []string{"-o", "nginx", "--docker-username", "me"}, want: "- {name: a, docker: {image: nginx, username: me}, default-route: true}"},
	} {
		f := newFlags("push")
		o := pushFlags(f)
		args, err := f.parse(c.args, 0)
		if err != nil {
			t.Fatal(err)
		}
		dir := files(t, map[string]string{"manifest.yml": "applications:\n" + c.manifest})
		m, err := o.manifest(&session{Env: testEnv(t, dir)}, strings.Join(args, ""))
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s with %q: %v", c.manifest, c.args, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s with %q: %v", c.manifest, c.args, err)
			continue
		}
		got, err := m.bytes()
		if want := "applications:\n  " + c.want + "\n"; err != nil || string(got) != want {
			t.Errorf("%s with %q became\n%s%v, want\n%s", c.manifest, c.args, got, err, want)
		}
	}
}

func TestWhereTheContentIs(t *testing.T) {
	root := files(t, map[string]string{"deploy/manifest.yaml": "applications:\n- {name: a, path: ../code}\n- {name: b}\n- {name: c, path: /abs}\n"})
	e := testEnv(t, filepath.Join(root, "elsewhere"))
	file, err := e.findManifest("../deploy")
	if err != nil {
		t.Fatal(err)
	}
	m, err := readManifest(file, vars{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{filepath.Join(root, "code"), filepath.Join(root, "elsewhere"), "/abs"} {
		if got := m.place(e, m.apps[i]); got != want {
			t.Errorf("app %d is at %s, want %s", i, got, want)
		}
	}
}
