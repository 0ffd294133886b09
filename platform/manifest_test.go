package platform

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proa-dev/proa/kit/fault"
)

// everyKey is a manifest that says all that can be said, as the command-line client would send it.
const everyKey = `---
version: 1
applications:
- name: web app
  path: /home/ann/app
  lifecycle: cnb
  buildpacks: [proa/java, "docker://example.org/extra"]
  stack: proa
  command: java -jar app.jar
  instances: 2
  memory: 1G
  disk-quota: 2048MB
  log-rate-limit-per-second: 16KB
  timeout: 90
  health-check-type: http
  health-check-http-endpoint: /health
  health-check-invocation-timeout: 3
  health-check-interval: 10
  readiness-health-check-type: http
  readiness-health-check-http-endpoint: /ready
  readiness-health-check-invocation-timeout: 2
  readiness-health-check-interval: 5
  env:
    CONFIG_SERVER_PORT: 8082
    DEBUG: true
    RATIO: 1.50
    DAY: 2026-01-02
    GONE: null
    EMPTY: ""
    LINES: |
      one
      two
    OPTIONS: {b: [1, 2.0, null, x<y], a: true}
  routes:
  - route: www.example.org/path
  - route: tcp.example.org:1234
    protocol: tcp
    options: {loadbalancing: round-robin, gone: null}
  no-route: false
  default-route: true
  services:
  - db
  - {name: queue, binding_name: q, parameters: {size: 3, ratio: 1e3, deep: {list: [a, {}, []]}}}
  sidecars:
  - {name: config server, process_types: [web, worker], command: ./config-server, memory: 256MB}
  - {name: debug, process_types: [web], command: "./debug -v"}
  processes:
  - type: web
    disk_quota: 3G
    command: null
  - {type: worker, instances: 0, memory: 512M, health-check-type: none, timeout: 5}
  metadata:
    labels: {team: ferry, old: null}
    annotations: {contact: "ann@example.org"}
  features: {ssh: true, revisions: false}
  cnb-credentials: {registry.example.org: {username: u, password: p}}
- name: image
  docker: {image: example.org/app@sha256:00, username: ann}
  buildpacks: []
  no-route: true
`

func TestParseManifest(t *testing.T) {
	m, err := ParseManifest([]byte(everyKey))
	if err != nil {
		t.Fatal(err)
	}
	want := Manifest{[]ManifestApp{{
		Name:       "web app",
		Lifecycle:  new(LifecycleCNB),
		Buildpacks: &[]string{"proa/java", "docker://example.org/extra"},
		Stack:      new("proa"),
		Web: ManifestSettings{
			ProcessScale{Instances: new(2), MemoryMB: new(1024), DiskMB: new(2048), LogRateBytes: new(int64(16384))},
			ProcessChange{
				new("java -jar app.jar"),
				HealthCheckChange{new(CheckHTTP), new("/health"), new(90), new(3), new(10)},
				HealthCheckChange{new(CheckHTTP), new("/ready"), nil, new(2), new(5)},
			},
		},
		Env: map[string]*string{
			"CONFIG_SERVER_PORT": new("8082"), "DEBUG": new("true"), "RATIO": new("1.50"), "DAY": new("2026-01-02"), "GONE": nil,
			"EMPTY": new(""), "LINES": new("one\ntwo\n"), "OPTIONS": new(`{"a":true,"b":[1,2,null,"x<y"]}`),
		},
		Routes: []ManifestRoute{
			{Route: "www.example.org/path"},
			{"tcp.example.org:1234", "tcp", map[string]*string{"loadbalancing": new("round-robin"), "gone": nil}},
		},
		DefaultRoute: true,
		Services: []ManifestService{
			{Name: "db"},
			{"queue", "q", map[string]any{"size": 3, "ratio": 1000.0, "deep": map[string]any{"list": []any{"a", map[string]any{}, []any{}}}}},
		},
		Sidecars: []ManifestSidecar{
			{"config server", []string{"web", "worker"}, "./config-server", new(256)},
			{"debug", []string{"web"}, "./debug -v", nil},
		},
		Processes: []ManifestProcess{
			{"web", ManifestSettings{ProcessScale{DiskMB: new(3072)}, ProcessChange{Command: new("")}}},
			{"worker", ManifestSettings{
				ProcessScale{Instances: new(0), MemoryMB: new(512)},
				ProcessChange{HealthCheck: HealthCheckChange{Type: new(CheckProcess), Timeout: new(5)}},
			}},
		},
		Metadata:       MetadataChange{map[string]*string{"team": new("ferry"), "old": nil}, map[string]*string{"contact": new("ann@example.org")}},
		Features:       map[string]bool{"ssh": true, "revisions": false},
		CNBCredentials: map[string]any{"registry.example.org": map[string]any{"username": "u", "password": "p"}},
	}, {
		Name:       "image",
		Docker:     &ManifestDocker{"example.org/app@sha256:00", "ann"},
		Buildpacks: &[]string{},
		NoRoute:    true,
	}}}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("read\n%s\nwant\n%s", m.Render(), want.Render())
	}
}

func TestEveryProcess(t *testing.T) {
	m, err := ParseManifest([]byte(everyKey))
	if err != nil {
		t.Fatal(err)
	}
	all := m.Applications[0].EveryProcess()
	if web := all[0]; len(all) != 2 || web.Type != "web" || *web.Scale.DiskMB != 3072 || *web.Scale.MemoryMB != 1024 || *web.Change.Command != "" || *web.Change.HealthCheck.Timeout != 90 {
		t.Errorf("the processes are %+v", all)
	}
	if m.Applications[0].Processes[0].Scale.MemoryMB != nil {
		t.Error("asking for the processes changed the manifest")
	}
	if all := m.Applications[1].EveryProcess(); len(all) != 0 {
		t.Errorf("an app without process keys has %+v", all)
	}
	one := ManifestApp{Web: ManifestSettings{Scale: ProcessScale{Instances: new(4)}}}
	if all := one.EveryProcess(); len(all) != 1 || all[0].Type != "web" || *all[0].Scale.Instances != 4 {
		t.Errorf("the keys of the app make %+v", all)
	}
}

func TestManifestSpellings(t *testing.T) {
	for _, text := range []string{
		"applications: [{name: a, disk_quota: 1G}]",
		"applications: [{name: a, disk-quota: 1024M}]",
		"applications: [{name: a, disk_quota: 1g, hosts: [x], domain: y, no_hostname: true, path: ., memory: }]",
		"anchors: &x {disk_quota: 1G}\napplications: [{<<: *x, name: a}]",
		"x: &x {disk_quota: 2G, name: b}\ny: &y {disk_quota: 1G}\napplications: [{name: a, <<: [*y, *x]}]",
	} {
		m, err := ParseManifest([]byte(text))
		if err != nil || len(m.Applications) != 1 || *m.Applications[0].Web.Scale.DiskMB != 1024 || m.Applications[0].Name != "a" {
			t.Errorf("%s\nis read as %s: %v", text, m.Render(), err)
		}
	}
}

func TestManifestResets(t *testing.T) {
	for text, want := range map[string]ManifestApp{
		"command: null":            {Web: ManifestSettings{Change: ProcessChange{Command: new("")}}},
		"command:":                 {Web: ManifestSettings{Change: ProcessChange{Command: new("")}}},
		"buildpacks: []":           {Buildpacks: &[]string{}},
		"buildpacks: null":         {Buildpacks: &[]string{}},
		"buildpack: default":       {Buildpacks: &[]string{}},
		"buildpack: proa/go":       {Buildpacks: &[]string{"proa/go"}},
		"env: {}":                  {},
		"sidecars: []":             {},
		"memory: null":             {},
		"metadata: {labels: null}": {},
		"services: null":           {},
	} {
		want.Name = "a"
		m, err := ParseManifest([]byte("applications:\n- name: a\n  " + text))
		if err != nil || !reflect.DeepEqual(m.Applications, []ManifestApp{want}) {
			t.Errorf("%s is read as %s: %v", text, m.Render(), err)
		}
	}
}

func TestManifestProblems(t *testing.T) {
	known := "Known are command, memory, name, process_types."
	for app, want := range map[string][]string{
		"name: w, sidecars: [{name: s, process_types: [web], command: c, memory: 256}]": {"For application 'w': sidecars[0].memory must be a number with a unit such as 256MB."},
		"name: w, sidecars: [{}]": {"For application 'w': sidecars[0].name is missing: a sidecar needs a name.", "For application 'w': sidecars[0].process_types is missing: list the processes the sidecar runs beside, such as [web].", "For application 'w': sidecars[0].command is missing: say how to start the sidecar."},
		"name: w, sidecars: [{name: s, process_types: [], command: c}]":                                             {"For application 'w': sidecars[0].process_types must have at least 1 process_type"},
		"name: w, sidecars: [{name: s, process_types: web, command: c}]":                                            {"For application 'w': sidecars[0].process_types must be a list."},
		"name: w, sidecars: [{name: s, process_types: [web], command: c, foo: 1}]":                                  {"For application 'w': sidecars[0].foo is not a key that is known here. " + known},
		"name: w, sidecars: [{name: s, process_types: [web], command: c, instances: 2}]":                            {"For application 'w': sidecars[0].instances: Sidecars cannot be scaled on their own: there is one in each instance of the process. Set instances on the process instead."},
		"name: w, sidecars: [{name: s, process_types: [web], command: c, health-check-type: http}]":                 {"For application 'w': sidecars[0].health-check-type: Sidecars support only process health checks: a sidecar is healthy while it runs. Take the key away, or check an endpoint of the main process."},
		"name: w, sidecars: [{name: s, process_types: [a], command: c}, {name: s, process_types: [b], command: c}]": {"For application 'w': sidecars[1]: Sidecar with name 's' already exists for given app"},
		"name: w, sidecars: {name: s}":                   {"For application 'w': sidecars must be a list."},
		"memory: 1G":                                     {"For application at index 0: name is missing: say which app it is."},
		"name: ' '":                                      {"For application ' ': name must not be blank."},
		"name: [a]":                                      {"For application at index 0: name must be text."},
		"name: w, instances: -1":                         {"For application 'w': instances must be a whole number from 0 to 10000."},
		"name: w, instances: two, memory: 12":            {"For application 'w': instances must be a whole number from 0 to 10000.", "For application 'w': memory must be a number with a unit such as 256MB."},
		"name: w, timeout: 0":                            {"For application 'w': timeout must be a whole number from 1 to 600."},
		"name: w, health-check-type: ping":               {"For application 'w': health-check-type must be one of http, port, process."},
		"name: w, health-check-http-endpoint: up":        {"For application 'w': health-check-http-endpoint must be the path of a URL such as /health."},
		"name: w, log-rate-limit-per-second: fast":       {"For application 'w': log-rate-limit-per-second must be a number with a unit such as 16KB, or -1 for no limit."},
		"name: w, no-route: maybe":                       {"For application 'w': no-route must be true or false."},
		"name: w, env: [A]":                              {"For application 'w': env must be a map of keys and values."},
		"name: w, env: {PORT: 1}":                        {"For application 'w': env.PORT: The platform sets PORT to where requests arrive. Read it in the app instead of setting it."},
		"name: w, env: {A: !!binary aGk=}":               {"For application 'w': env.A has the tag !!binary, which is not supported."},
		"name: w, env: {A: [.nan]}":                      {"For application 'w': env.A[0] must be a number that JSON can hold."},
		"name: w, routes: [{route: 'https://a.b'}]":      {"For application 'w': routes[0].route must be a host with an optional port and path, such as www.example.org/path, without http://."},
		"name: w, routes: [{protocol: quic}]":            {"For application 'w': routes[0].protocol must be one of http1, http2, tcp.", "For application 'w': routes[0].route is missing: write the route such as www.example.org/path."},
		"name: w, services: [{}]":                        {"For application 'w': services[0].name is missing: say which service instance to bind."},
		"name: w, processes: [{type: web}, {type: web}]": {"For application 'w': processes[1].type must not be 'web' again: each process is named once."},
		"name: w, processes: [{memory: 1G}]":             {"For application 'w': processes[0].type is missing: say which process it is, such as web."},
		"name: w, processes: [{type: 'a b'}]":            {"For application 'w': processes[0].type must be 1 to 63 of the characters a-z A-Z 0-9 . _ and -."},
		"name: w, docker: {image: i}, buildpacks: [b]":   {"For application 'w': docker and buildpacks exclude each other: an app is made of an image or of code."},
		"name: w, docker: {image: i}, lifecycle: cnb":    {"For application 'w': docker needs the lifecycle docker, not cnb."},
		"name: w, docker: {username: u}":                 {"For application 'w': docker.image is missing: say which image the app is made of."},
		"name: w, disk_quota: 1G, disk-quota: 1G":        {"For application 'w': disk-quota is there twice, spelled with - and with _."},
		"name: w, buildpacks: [b], buildpack: b":         {"For application 'w': buildpack and buildpacks exclude each other: use buildpacks."},
		"name: w, buildpack: b, buildpacks: [b]":         {"For application 'w': buildpack and buildpacks exclude each other: use buildpacks."},
		"name: w, metadata: {label: {a: b}}":             {"For application 'w': metadata.label is not a key that is known here. Known are annotations, labels."},
		"name: w}, {name: w":                             {"applications[1].name must not be 'w' again: each application is named once."},
	} {
		_, err := ParseManifest([]byte("applications: [{" + app + "}]"))
		if got := told(err); !slices.Equal(got, want) {
			t.Errorf("{%s}:\n got %q\nwant %q", app, got, want)
		}
	}
	_, err := ParseManifest([]byte("applications: [{name: w, memry: 1G}]"))
	if got := told(err); len(got) != 1 || !strings.HasPrefix(got[0], "For application 'w': memry is not a key that is known here. Known are buildpack, buildpacks, cnb-credentials, command, ") {
		t.Errorf("an unknown key is told of as %q", got)
	}
}

func TestManifestThatIsNone(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "The manifest is empty. List at least one application.",
		"---\n":                                 "The manifest is empty. List at least one application.",
		"# nothing":                             "The manifest is empty. List at least one application.",
		"a: [":                                  "The manifest is not valid YAML: line 1: did not find expected node content.",
		"a: *b":                                 "The manifest is not valid YAML: unknown anchor 'b' referenced.",
		"applications: [{name: a}]\n---\na: b":  "The manifest has more than one YAML document. Send one, or each by itself.",
		"applications:\n- name: a\n  name: b":   "Line 3 of the manifest has the key 'name' again.",
		"? [a]\n: b":                            "Line 1 of the manifest has a key that is not text.",
		"<<: 1":                                 "Line 1 of the manifest merges (<<) something that is not a map.",
		"a: \"\\0\"":                            "Line 1 of the manifest holds a NUL character.",
		"a: &a [*a]":                            "The manifest is nested deeper than 32 levels, or an alias in it holds itself.",
		"applications: []":                      "applications must be a list of at least one application.",
		"version: 1":                            "applications must be a list of at least one application.",
		"version: 2\napplications: [{name: a}]": "version must be 1: there is no other version of manifests.",
		"- a":                                   "The manifest must be a map of keys and values.",
		"applications: {a: b}":                  "applications must be a list.",
	} {
		_, err := ParseManifest([]byte(text))
		if err == nil || fault.From(err).Detail != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func TestHostileManifests(t *testing.T) {
	laughs := "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n"
	for i := range 9 {
		laughs += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 8), i)
	}
	app := "applications:\n- name: w\n  "
	sidecars := app + "sidecars:\n" + strings.Repeat("  - {name: s, process_types: [web], command: c, memory: 64M}\n", 10_000)
	merges := "m0: &m0 {a: b}\n"
	for i := range 40 {
		merges += fmt.Sprintf("m%d: &m%d {<<: [*m%d, *m%d], k%d: v}\n", i+1, i+1, i, i, i)
	}
	for name, test := range map[string]struct{ text, want string }{
		"billion laughs":     {laughs + app + "env: {A: *a9}", "The manifest is too large: with all aliases written out it has more than 250000 values or 4194304 bytes."},
		"long laughs":        {"a: &a " + strings.Repeat("ha", 50_000) + "\n" + app + "env: {A: [" + strings.Repeat("*a,", 50) + "]}", "The manifest is too large: with all aliases written out it has more than 250000 values or 4194304 bytes."},
		"merged laughs":      {merges + app + "<<: *m40", "The manifest is nested deeper than 32 levels, or an alias in it holds itself."},
		"wide cycle":         {"a: &a [*a, *a, *a, *a]", "The manifest is nested deeper than 32 levels, or an alias in it holds itself."},
		"10,000 sidecars":    {sidecars, "For application 'w': sidecars has 10000 entries; at most 64 are allowed."},
		"101 apps":           {"applications: [" + strings.Repeat("{name: a},", 101) + "]", "applications has 101 entries; at most 100 are allowed."},
		"a list too long":    {app + "services: [" + strings.Repeat("a,", 1001) + "]", "For application 'w': services has 1001 entries; at most 1000 are allowed."},
		"two megabytes":      {strings.Repeat("#", 2<<20), "The manifest has 2097152 bytes; at most 1048576 are allowed."},
		"many comments":      {strings.Repeat("- a\n  #b\n\n", 100_000), "The manifest has 100000 comments; at most 5000 are allowed."},
		"deep lists":         {"a: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "The manifest is nested deeper than 32 levels, or an alias in it holds itself."},
		"deeper lists":       {strings.Repeat("[", 500_000), "The manifest is not valid YAML: exceeded max depth of 10000."},
		"a long list":        {"[" + strings.Repeat("a,", 500_000) + "]", "The manifest is too large: with all aliases written out it has more than 250000 values or 4194304 bytes."},
		"an odd, long name":  {app + "? " + strings.Repeat("k", 200) + "\n  : v", ""},
		"a name of controls": {"applications: [{name: \"a\\e[31m\\n\"}]", "For application 'a�[31m�': name must not hold line breaks or control characters."},
	} {
		start := time.Now()
		_, err := ParseManifest([]byte(test.text))
		if took := time.Since(start); took > 20*time.Second || strings.HasSuffix(name, "laughs") && took > time.Second {
			t.Errorf("%s: it took %v", name, took)
		}
		if err == nil || test.want != "" && fault.From(err).Detail != test.want || len(err.Error()) > 4000 {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
	many := app + "env:\n"
	for i := range 1000 {
		many += fmt.Sprintf("    VCAP_%d: x\n", i)
	}
	_, err := ParseManifest([]byte(many))
	if got := told(err); len(got) != 21 || got[20] != "There are 980 more problems in this manifest." {
		t.Errorf("of 1000 problems it tells %d: %q", len(got), got)
	}
}

func FuzzParseManifest(f *testing.F) {
	for _, text := range []string{
		everyKey, "applications: [{name: a}]", "a: &a [*a]", "x: &x {memory: 1G}\napplications: [{<<: *x, name: \"\\u2028\"}]",
		"applications: [{name: a, env: {\"\\x85\": ' x', B: \"\\n y\", C: \"\\uFEFF\", yes: no}}]", "a: !!binary x", "? - a\n: b", "a: |+\n\n  b\n\n# c",
		"applications: [{name: a, services: [{name: b, parameters: {a: 0x10, b: 1e400, c: 18446744073709551615, d: -0.0, e: 0o7, f: !!float 3, g: !!int 2.5}}]}]",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		start := time.Now()
		m, err := ParseManifest(data)
		if took := time.Since(start); took > 20*time.Second {
			t.Fatalf("it took %v", took)
		}
		if err != nil {
			if fault.From(err).Kind == fault.KindInternal {
				t.Fatalf("not a sentence for people: %v", err)
			}
			return
		}
		text := m.Render()
		again, err := ParseManifest(text)
		if err != nil || !reflect.DeepEqual(m, again) {
			t.Fatalf("%q\nrenders as\n%s\nand then as\n%s\n%v", data, text, again.Render(), err)
		}
		if d := DiffManifest(m, m); len(d) != 0 {
			t.Fatalf("%q differs from itself: %v", data, d)
		}
	})
}
