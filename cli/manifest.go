package cli

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// manifest is what the platform is told about apps.
type manifest struct {
	file    string // where it was read; empty if it was made of options alone
	root    *yaml.Node
	apps    []*yaml.Node
	applied *manifest // what is applied of it, if that is not all: the rest is for a deployment to do
	unasked []string  // paths of what was written into it and nobody has asked for
}

// findManifest is the file that was named, or the one in a directory, or none.
func (e *Env) findManifest(named string) (string, error) {
	place := e.Dir
	if named != "" {
		place = e.path(named)
		info, err := os.Stat(place)
		if err != nil {
			return "", usage("The manifest cannot be read: %v.", err)
		}
		if !info.IsDir() {
			return place, nil
		}
	}
	for _, name := range []string{"manifest.yml", "manifest.yaml"} {
		file := filepath.Join(place, name)
		if _, err := os.Stat(file); err == nil {
			return file, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	if named != "" {
		return "", usage("There is no manifest.yml in %s.", place)
	}
	return "", nil
}

func readManifest(file string, v vars) (*manifest, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	bad := func(why string) error {
		return usage("%s is not a manifest: %s.", file, strings.TrimPrefix(why, "yaml: "))
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, bad(err.Error())
	}
	if len(doc.Content) == 0 {
		return nil, bad("it is empty")
	}
	left := maxNodes
	root, err := expand(doc.Content[0], &left)
	if err != nil {
		return nil, bad(err.Error())
	}
	if err := v.fill(root); err != nil {
		return nil, err
	}
	m := &manifest{file: file, root: &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}}
	for _, key := range []string{"version", "applications"} { // anything else at the top holds anchors, or is of an older kind
		if value := valueOf(root, key); value != nil {
			m.root.Content = append(m.root.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, value)
		}
	}
	if apps := valueOf(root, "applications"); apps != nil && apps.Kind == yaml.SequenceNode {
		m.apps = apps.Content
	}
	if len(m.apps) == 0 {
		return nil, bad("it needs a list applications with at least one app")
	}
	for _, a := range m.apps {
		if a.Kind != yaml.MappingNode {
			return nil, bad("each of its applications must have keys, such as name")
		}
	}
	return m, nil
}

// madeUp is the manifest of an app that has none.
func madeUp() *manifest {
	a := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	m := &manifest{root: &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}}
	m.setApps([]*yaml.Node{a})
	return m
}

func (m *manifest) setApps(apps []*yaml.Node) {
	m.apps = apps
	dropKey(m.root, "applications")
	m.root.Content = append(m.root.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "applications"},
		&yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: apps})
}

// choose keeps the app of that name. The only app of a manifest is renamed.
func (m *manifest) choose(name string) error {
	if name == "" {
		for _, a := range m.apps {
			if textOf(a, "name") == "" {
				return usage("An app has no name. Give it one in the manifest, or name it: proa push APP.")
			}
		}
		return nil
	}
	if len(m.apps) == 1 {
		return setValue(m.apps[0], "name", name)
	}
	for _, a := range m.apps {
		if textOf(a, "name") == name {
			m.setApps([]*yaml.Node{a})
			return nil
		}
	}
	return usage("The manifest has no app %q.", name)
}

// place is where the content of an app is: as the manifest says, from where the manifest is, or else where the person stands.
func (m *manifest) place(e *Env, a *yaml.Node) string {
	named := textOf(a, "path")
	switch {
	case named == "":
		return e.Dir
	case filepath.IsAbs(named):
		return filepath.Clean(named)
	}
	return filepath.Join(filepath.Dir(m.file), named)
}

// label names a place in the manifest for people: /applications/0/memory is memory, with the name of the app if there are several.
func (m *manifest) label(path string) string {
	index, key, _ := strings.Cut(strings.TrimPrefix(path, "/applications/"), "/")
	key = strings.ReplaceAll(key, "/", ".")
	if n, err := strconv.Atoi(index); err == nil && n >= 0 && n < len(m.apps) && (len(m.apps) > 1 || key == "") {
		return strings.TrimSpace(textOf(m.apps[n], "name") + " " + key)
	}
	return key
}

// bytes is the manifest as it is sent. Where things are on this machine is nobody else's business.
func (m *manifest) bytes() ([]byte, error) {
	sent := copyNode(m.root)
	for _, a := range valueOf(sent, "applications").Content {
		dropKey(a, "path")
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(sent); err != nil {
		return nil, err
	}
	return b.Bytes(), enc.Close()
}
