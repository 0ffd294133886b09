package launch

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestDecode(t *testing.T) {
	c, err := Decode([]byte(`{"process":"web","main":{"command":"run"},"sidecars":[{"name":"config server","command":"serve","memory":1024}],"from_the_future":1}`))
	if err != nil {
		t.Fatal(err)
	}
	if c.grace() != DefaultGrace || c.TerminationLog != DefaultTerminationLog || c.Socket != DefaultSocket || c.IndexFrom != DefaultIndexFrom {
		t.Errorf("got %+v", c)
	}
	for text, want := range map[string]string{
		``:                                     "not the JSON",
		`[]`:                                   "not the JSON",
		`{}`:                                   "process type",
		`{"process":"we\u0003b"}`:              "control characters",
		`{"process":"web"}`:                    "no command",
		`{"process":"web","main":{"args":[]}}`: "no command",
		`{"process":"web","launcher":"/l","main":{"args":[""]}}`:                                                                               "no command",
		`{"process":"web","main":{"command":"a","args":["b"]}}`:                                                                                "both",
		`{"process":"web","main":{"command":"a\u0000b"}}`:                                                                                      "NUL",
		`{"process":"web","main":{"command":"a","name":"b"}}`:                                                                                  "take the name",
		`{"process":"web","main":{"command":"a","memory":-1}}`:                                                                                 "negative",
		`{"process":"web","main":{"command":"a","env":{"A=B":"c"}}}`:                                                                           "environment variable",
		`{"process":"web","main":{"command":"a"},"grace_seconds":-1}`:                                                                          "grace period",
		`{"process":"web","main":{"command":"a"},"sidecars":[{"command":"b"}]}`:                                                                "name of its own",
		`{"process":"web","main":{"command":"a"},"sidecars":[{"name":"\u001e","command":"b"}]}`:                                                "name of its own",
		`{"process":"web","main":{"command":"a"},"sidecars":[{"name":"s","command":"b"},{"name":"s","command":"c"}]}`:                          "name of its own",
		`{"process":"web","launcher":"/l","main":{},"sidecars":[{"name":"s"}]}`:                                                                "no command",
		`{"process":"web","main":{"command":"a"},"sidecars":[` + strings.Repeat(`{"name":"s"},`, maxSidecars) + `{"name":"s","command":"b"}]}`: "sidecars",
		strings.Repeat(" ", maxConfig+1):                                                                                                       "longer",
	} {
		if _, err := Decode([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.200s: got %v, want %q in it", text, err, want)
		}
	}
}

func TestLoad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "launch.json")
	if err := os.WriteFile(file, []byte(`{"process":"worker","main":{"command":"a"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := Load(file); err != nil || c.Process != "worker" {
		t.Errorf("got %+v, %v", c, err)
	}
	if _, err := Load(file + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	t.Setenv(EnvConfig, `{"process":"web","main":{"command":"a"}}`)
	if c, err := Load(""); err != nil || c.Process != "web" {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestArgv(t *testing.T) {
	const cnb = "/cnb/lifecycle/launcher"
	for _, test := range []struct {
		launcher string
		process  Process
		program  string
		argv     []string
	}{
		{cnb, Process{Command: "a b | c"}, cnb, []string{cnb, "a b | c"}},
		{cnb, Process{Args: []string{"a", "b c"}}, cnb, []string{cnb, "--", "a", "b c"}},
		{cnb, Process{}, cnb, []string{"web"}},
		{"", Process{Command: "a b | c"}, "/bin/sh", []string{"sh", "-c", "a b | c"}},
		{"", Process{Args: []string{"/bin/sh", "x"}}, "/bin/sh", []string{"/bin/sh", "x"}},
	} {
		c := Config{Process: "web", Launcher: test.launcher}
		program, argv, err := c.argv(test.process)
		if err != nil || program != test.program || !slices.Equal(argv, test.argv) {
			t.Errorf("%+v: got %s %q, %v", test.process, program, argv, err)
		}
	}
}

func TestEnviron(t *testing.T) {
	got := environ([]string{"A=1", "B=2", EnvConfig + "={}", "AB=3"}, map[string]string{"A": "x=y", "C": ""})
	slices.Sort(got)
	if want := []string{"A=x=y", "AB=3", "B=2", "C="}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"process":"web","main":{"command":"run"},"sidecars":[{"name":"s","args":["a"],"env":{"A":"b"}}],"grace_seconds":0.5}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Decode(text)
		if err != nil {
			return
		}
		if g := c.grace(); g < 0 || g > maxGrace {
			t.Errorf("a grace period of %v", g)
		}
		for _, p := range append([]Process{c.Main}, c.Sidecars...) {
			if name, _ := Parse([]byte(Mark(p.Name) + "x")); name != p.Name {
				t.Errorf("the mark of %q is read as %q", p.Name, name)
			}
			if _, argv, err := c.argv(p); err == nil && len(argv) == 0 {
				t.Errorf("nothing to run for %+v", p)
			}
		}
		again, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		d, err := Decode(again)
		if err != nil || d.Process != c.Process || len(d.Sidecars) != len(c.Sidecars) || d.grace() != c.grace() || !maps.Equal(d.Main.Env, c.Main.Env) {
			t.Errorf("got %+v and %v, before %+v", d, err, c)
		}
	})
}
