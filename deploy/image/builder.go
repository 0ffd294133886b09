package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// lifecycleVersion is that of engines/lifecycle, and the APIs are those it speaks. It has no command that tells them.
const lifecycleVersion = "0.20.11"

var lifecycleAPIs = map[string]apis{
	"buildpack": {Deprecated: []string{}, Supported: []string{"0.7", "0.8", "0.9", "0.10", "0.11"}},
	"platform":  {Deprecated: []string{}, Supported: []string{"0.7", "0.8", "0.9", "0.10", "0.11", "0.12", "0.13", "0.14"}},
}

type apis struct {
	Deprecated []string `json:"deprecated"`
	Supported  []string `json:"supported"`
}

// order is what detection tries, the first group that fits wins. A question mark makes a buildpack optional. A Procfile
// beside an app of another kind adds to its processes, and replaces those of the same type.
var order = [][]string{
	{"proa/java", "proa/procfile?"},
	{"proa/go", "proa/procfile?"},
	{"proa/procfile"},
}

// runImage is the run image's name in the builder. A registry's address is only known where the images are pushed to, so
// this name has none: the platform tells the lifecycle which image it means (-run-image).
const runImage = "proa/run"

func lifecycleLayer(ctx context.Context, house string) (layer, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(house, "engines", "build.sh"), "lifecycle") //nolint:gosec // a script of this checkout
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return layer{}, fmt.Errorf("engines/build.sh lifecycle: %w", err)
	}
	place := strings.TrimSpace(string(out))
	built := filepath.Base(place)
	if !strings.HasPrefix(built, "lifecycle-v"+lifecycleVersion+"-") {
		return layer{}, fmt.Errorf("engines/lifecycle is %s, but the builder's labels describe %s. See which APIs it supports, and write them into deploy/image/builder.go.", built, lifecycleVersion)
	}
	return layer{
		name: "lifecycle", about: "CNB lifecycle " + lifecycleVersion, from: []string{built, source("builder.go")},
		write: func(_ context.Context, a *archive) error {
			const home = "cnb/lifecycle/"
			for _, phase := range []string{"analyzer", "builder", "creator", "detector", "exporter", "extender"} {
				if err := a.link(home+phase, "lifecycle"); err != nil {
					return err
				}
			}
			for _, program := range []string{"launcher", "lifecycle"} {
				if err := a.file(home+program, filepath.Join(place, program), 0o755); err != nil {
					return err
				}
			}
			for _, phase := range []string{"rebaser", "restorer"} {
				if err := a.link(home+phase, "lifecycle"); err != nil {
					return err
				}
			}
			return nil
		},
	}, nil
}

// A buildpack is a directory with a buildpack.toml.
type buildpack struct {
	API, ID, Version, Name, Homepage string

	dir   string
	files []string
}

func readBuildpacks(dir string) ([]buildpack, error) {
	found, err := filepath.Glob(filepath.Join(dir, "*", "buildpack.toml"))
	if err != nil {
		return nil, err
	}
	packs := make([]buildpack, len(found))
	for n, description := range found {
		if packs[n], err = readBuildpack(description); err != nil {
			return nil, err
		}
	}
	return packs, nil
}

// readBuildpack reads the lines of the form `key = "value"` that the labels repeat. Ours have no other form for them.
func readBuildpack(description string) (buildpack, error) {
	p := buildpack{dir: filepath.Dir(description)}
	text, err := os.ReadFile(description)
	if err != nil {
		return p, err
	}
	section, fields := "", map[string]*string{
		"api": &p.API, "buildpack.id": &p.ID, "buildpack.version": &p.Version, "buildpack.name": &p.Name, "buildpack.homepage": &p.Homepage,
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[]") + "."
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		if field := fields[section+strings.TrimSpace(key)]; field != nil {
			if *field, err = strconv.Unquote(strings.TrimSpace(value)); err != nil {
				return p, fmt.Errorf("%s: %s must be one quoted text", description, key)
			}
		}
	}
	if p.API == "" || p.ID == "" || p.Version == "" {
		return p, fmt.Errorf("%s must say api, and id and version in [buildpack]", description)
	}
	p.files, err = files(p.dir)
	return p, err
}

func (p buildpack) layer() layer {
	l := layer{name: "buildpack-" + filepath.Base(p.dir), about: p.ID + " " + p.Version, from: []string{p.ID, p.Version, source("builder.go")}}
	modes := make([]int64, len(p.files))
	for n, name := range p.files {
		info, err := os.Stat(filepath.Join(p.dir, name))
		text, readErr := os.ReadFile(filepath.Join(p.dir, name))
		if err != nil || readErr != nil {
			continue // writing the layer says what is wrong
		}
		modes[n] = 0o644 | int64(info.Mode().Perm()&0o111)
		l.from = append(l.from, name, strconv.FormatInt(modes[n], 8), string(text))
	}
	l.write = func(_ context.Context, a *archive) error {
		home := "cnb/buildpacks/" + strings.ReplaceAll(p.ID, "/", "_") + "/" + p.Version + "/"
		for n, name := range p.files {
			if err := a.file(home+name, filepath.Join(p.dir, name), modes[n]); err != nil {
				return err
			}
		}
		return nil
	}
	return l
}

// A member is a buildpack in a group of the order.
type member struct {
	ID       string `json:"id"`
	Version  string `json:"version"`
	Optional bool   `json:"optional,omitempty"`
}

type group struct {
	Group []member `json:"group"`
}

// groups is the order with the versions at hand.
func groups(packs []buildpack) []group {
	all := make([]group, len(order))
	for n, names := range order {
		for _, name := range names {
			id, optional := strings.CutSuffix(name, "?")
			m := member{ID: id, Optional: optional}
			if at := slices.IndexFunc(packs, func(p buildpack) bool { return p.ID == id }); at >= 0 {
				m.Version = packs[at].Version
			}
			all[n].Group = append(all[n].Group, m)
		}
	}
	return all
}

// orderLayer holds what is the builder's own: which order, which run image, and the directories that a build works in.
func orderLayer(packs []buildpack) layer {
	var text strings.Builder
	for _, g := range groups(packs) {
		text.WriteString("[[order]]\n")
		for _, m := range g.Group {
			fmt.Fprintf(&text, "[[order.group]]\nid = %q\nversion = %q\noptional = %t\n", m.ID, m.Version, m.Optional)
		}
	}
	orderFile := text.String()
	runFile := fmt.Sprintf("[[images]]\nimage = %q\n", runImage)
	stackFile := fmt.Sprintf("[run-image]\nimage = %q\n", runImage)
	return layer{
		name: "order", about: "order of the buildpacks", from: []string{orderFile, runFile, stackFile, source("builder.go")},
		write: func(_ context.Context, a *archive) error {
			for name, content := range sorted(map[string]string{"cnb/order.toml": orderFile, "cnb/run.toml": runFile, "cnb/stack.toml": stackFile}) {
				if err := a.text(name, content); err != nil {
					return err
				}
			}
			for _, name := range []string{"layers", "platform", "platform/env", "workspace"} {
				if err := a.dir(name, user); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// builderSettings writes the labels that tools and the platform read a builder by. The layers are those of the
// buildpacks, in their order.
func builderSettings(packs []buildpack, layers []v1.Layer) (v1.Config, error) {
	type named struct {
		ID       string `json:"id"`
		Version  string `json:"version"`
		Homepage string `json:"homepage,omitempty"`
	}
	type where struct {
		API         string              `json:"api"`
		Stacks      []map[string]string `json:"stacks"`
		Targets     []map[string]string `json:"targets"`
		LayerDiffID string              `json:"layerDiffID"`
		Homepage    string              `json:"homepage,omitempty"`
		Name        string              `json:"name,omitempty"`
	}
	list, places := []named{}, map[string]map[string]where{}
	for n, p := range packs {
		diffID, err := layers[n].DiffID()
		if err != nil {
			return v1.Config{}, err
		}
		list = append(list, named{p.ID, p.Version, p.Homepage})
		places[p.ID] = map[string]where{p.Version: {
			API: p.API, Stacks: []map[string]string{{"id": "*"}}, Targets: []map[string]string{{"os": "linux", "arch": "amd64"}},
			LayerDiffID: diffID.String(), Homepage: p.Homepage, Name: p.Name,
		}}
	}
	image := map[string]any{"image": runImage, "mirrors": []string{}}
	labels := map[string]any{
		"io.buildpacks.builder.metadata": map[string]any{
			"description": "Builds Java, Go and Procfile apps without a network",
			"buildpacks":  list,
			"stack":       map[string]any{"runImage": image},
			"images":      []any{image},
			"lifecycle": map[string]any{
				"version": lifecycleVersion,
				"api":     map[string]string{"buildpack": lifecycleAPIs["buildpack"].Supported[0], "platform": lifecycleAPIs["platform"].Supported[0]},
				"apis":    lifecycleAPIs,
			},
			"createdBy": map[string]string{"name": "Proa", "version": ""},
		},
		"io.buildpacks.buildpack.layers": places,
		"io.buildpacks.buildpack.order":  groups(packs),
		"io.buildpacks.lifecycle.apis":   lifecycleAPIs,
	}
	c := buildSettings()
	c.Labels["io.buildpacks.lifecycle.version"] = lifecycleVersion
	for name, value := range labels {
		text, err := json.Marshal(value)
		if err != nil {
			return c, err
		}
		c.Labels[name] = string(text)
	}
	return c, nil
}
