package platform

import (
	"encoding/json"
	"testing"
)

func mustParse(t *testing.T, text string) Manifest {
	t.Helper()
	m, err := ParseManifest([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// running is an app as the platform renders it: all of it, and processes in their list.
const running = `---
applications:
  - name: shop
    lifecycle: buildpack
    buildpacks:
      - proa/go
    stack: proa
    env:
      A: "1"
      B: two
    routes:
      - route: shop.example.org
        protocol: http1
    services:
      - db
    sidecars:
      - name: config server
        process_types:
          - web
          - worker
        command: ./config
        memory: 64M
    processes:
      - type: web
        instances: 1
        memory: 1G
        disk_quota: 1G
        log-rate-limit-per-second: "-1"
        command: ./shop
        health-check-type: port
      - type: worker
        instances: 0
        memory: 512M
    metadata:
      labels:
        team: ferry
    features:
      ssh: true
`

func TestRender(t *testing.T) {
	if got := string(mustParse(t, running).Render()); got != running {
		t.Errorf("it renders as\n%s", got)
	}
	odd := Manifest{[]ManifestApp{{Name: "yes", Env: map[string]*string{"A": new("on"), "B": new("007"), "C": new("a: b # c"), "D": new("x\ny"), "E": nil}}}}
	want := "---\napplications:\n  - name: \"yes\"\n    env:\n      A: \"on\"\n      B: \"007\"\n      C: 'a: b # c'\n      D: \"x\\ny\"\n      E: null\n"
	if got := string(odd.Render()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestDiffManifest(t *testing.T) {
	current := mustParse(t, running)
	for sent, want := range map[string]string{
		"":                                    `null`,
		"memory: 1024M":                       `null`,
		"memory: 2G":                          `[{"op":"replace","path":"/applications/0/memory","value":"2G","was":"1G"}]`,
		"disk_quota: 1024MB":                  `null`,
		"disk-quota: 2048MB":                  `[{"op":"replace","path":"/applications/0/disk-quota","value":"2G","was":"1G"}]`,
		"instances: 3":                        `[{"op":"replace","path":"/applications/0/instances","value":3,"was":1}]`,
		"timeout: 90":                         `[{"op":"add","path":"/applications/0/timeout","value":90}]`,
		"command: null":                       `[{"op":"replace","path":"/applications/0/command","value":null,"was":"./shop"}]`,
		"log-rate-limit-per-second: -1":       `null`,
		"buildpacks: []":                      `[{"op":"replace","path":"/applications/0/buildpacks","value":[],"was":["proa/go"]}]`,
		"buildpacks: [proa/go]":               `null`,
		"env: {A: 1}":                         `null`,
		"env: {A: 2, C: x, B: null, D: null}": `[{"op":"replace","path":"/applications/0/env/A","value":"2","was":"1"},{"op":"replace","path":"/applications/0/env/B","value":null,"was":"two"},{"op":"add","path":"/applications/0/env/C","value":"x"}]`,
		"env: {a/b~c: x}":                     `[{"op":"add","path":"/applications/0/env/a~1b~0c","value":"x"}]`,
		"routes: [{route: shop.example.org}]": `null`,
		"routes: [{route: a.b}, {route: shop.example.org, protocol: http2}]": `[{"op":"add","path":"/applications/0/routes/0","value":{"route":"a.b"}},{"op":"replace","path":"/applications/0/routes/1/protocol","value":"http2","was":"http1"}]`,
		"no-route: true":      `[{"op":"remove","path":"/applications/0/routes","was":[{"protocol":"http1","route":"shop.example.org"}]},{"op":"add","path":"/applications/0/no-route","value":true}]`,
		"default-route: true": `null`,
		"random-route: true":  `null`,
		"services: [{name: db, parameters: {a: 1}}, cache]":                                                                                        `[{"op":"add","path":"/applications/0/services/1","value":"cache"}]`,
		"sidecars: [{name: config server, command: ./config, process_types: [worker, web]}]":                                                       `null`,
		"sidecars: [{name: new, command: n, process_types: [web]}, {name: config server, command: ./config, process_types: [web], memory: 128MB}]": `[{"op":"add","path":"/applications/0/sidecars/0","value":{"command":"n","name":"new","process_types":["web"]}},{"op":"replace","path":"/applications/0/sidecars/1/process_types","value":["web"],"was":["web","worker"]},{"op":"replace","path":"/applications/0/sidecars/1/memory","value":"128M","was":"64M"}]`,
		"processes: [{type: worker, instances: 2}, {type: web, memory: 1024M}]":                                                                    `[{"op":"replace","path":"/applications/0/processes/0/instances","value":2,"was":0}]`,
		"memory: 7G, processes: [{type: web, memory: 1024M}]":                                                                                      `null`,
		"metadata: {labels: {team: null}}":                                                                                                         `[{"op":"replace","path":"/applications/0/metadata/labels/team","value":null,"was":"ferry"}]`,
		"features: {ssh: false}":                                                                                                                   `[{"op":"replace","path":"/applications/0/features/ssh","value":false,"was":true}]`,
		"cnb-credentials: {r: {password: p}}":                                                                                                      `null`,
		"docker: {image: i}":                                                                                                                       `[{"op":"add","path":"/applications/0/docker","value":{"image":"i"}}]`,
	} {
		got, err := json.Marshal(DiffManifest(current, mustParse(t, "applications: [{name: shop, "+sent+"}]")))
		if err != nil || string(got) != want {
			t.Errorf("{%s}:\n got %s\nwant %s", sent, got, want)
		}
	}
}

func TestDiffOfNewApp(t *testing.T) {
	sent := mustParse(t, "applications: [{name: shop}, {name: new, command: null, memory: 64M, default-route: true}]")
	got, err := json.Marshal(DiffManifest(mustParse(t, running), sent))
	want := `[{"op":"add","path":"/applications/1/name","value":"new"},{"op":"add","path":"/applications/1/memory","value":"64M"},{"op":"add","path":"/applications/1/default-route","value":true}]`
	if err != nil || string(got) != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestDiffWithoutRoutes(t *testing.T) {
	current := mustParse(t, "applications: [{name: a}]")
	for sent, want := range map[string]string{
		"no-route: true":                              `null`,
		"default-route: true":                         `[{"op":"add","path":"/applications/0/default-route","value":true}]`,
		"default-route: true, routes: [{route: a.b}]": `[{"op":"add","path":"/applications/0/routes","value":[{"route":"a.b"}]}]`,
	} {
		got, err := json.Marshal(DiffManifest(current, mustParse(t, "applications: [{name: a, "+sent+"}]")))
		if err != nil || string(got) != want {
			t.Errorf("{%s}:\n got %s\nwant %s", sent, got, want)
		}
	}
}
