package platform

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// Render writes a manifest as YAML, always in the same order of keys. ParseManifest reads it back as it was.
func (m Manifest) Render() []byte {
	apps := []any{}
	for i := range m.Applications {
		apps = append(apps, m.Applications[i].tree())
	}
	var text bytes.Buffer
	text.WriteString("---\n")
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	_ = encoder.Encode(yamlNode(manifestObject{{"applications", apps}})) // a buffer takes everything, and the nodes are our own
	_ = encoder.Close()
	return text.Bytes()
}

// manifestObject is a map that keeps its order. A tree is made of these, []any, text, numbers, booleans and nil: what
// manifests and JSON have in common.
type manifestObject []manifestField

type manifestField struct {
	key   string
	value any
}

func (o manifestObject) get(key string) (any, bool) {
	for _, f := range o {
		if f.key == key {
			return f.value, true
		}
	}
	return nil, false
}

func (o *manifestObject) add(key string, value any) { *o = append(*o, manifestField{key, value}) }

// addText, addList and addMap leave out what is empty.
func (o *manifestObject) addText(key, value string) {
	if value != "" {
		o.add(key, value)
	}
}

func (o *manifestObject) addList(key string, list []any) {
	if len(list) > 0 {
		o.add(key, list)
	}
}

func (o *manifestObject) addMap(key string, m manifestObject) {
	if len(m) > 0 {
		o.add(key, m)
	}
}

func (o *manifestObject) addFlag(key string, yes bool) {
	if yes {
		o.add(key, true)
	}
}

func addSet[T any](o *manifestObject, key string, value *T, say func(T) any) {
	if value != nil {
		o.add(key, say(*value))
	}
}

func itself[T any](v T) any { return v }

func (a *ManifestApp) tree() manifestObject {
	o := manifestObject{{"name", a.Name}}
	addSet(&o, "lifecycle", a.Lifecycle, func(t LifecycleType) any { return string(t) })
	addSet(&o, "buildpacks", a.Buildpacks, func(names []string) any { return anyList(names) })
	addSet(&o, "stack", a.Stack, itself)
	addSet(&o, "docker", a.Docker, ManifestDocker.tree)
	a.Web.addTo(&o, "disk-quota")
	o.addMap("env", optionalTexts(a.Env))
	o.addList("routes", each(a.Routes, ManifestRoute.tree))
	o.addFlag("no-route", a.NoRoute)
	o.addFlag("random-route", a.RandomRoute)
	o.addFlag("default-route", a.DefaultRoute)
	o.addList("services", each(a.Services, ManifestService.tree))
	o.addList("sidecars", each(a.Sidecars, ManifestSidecar.tree))
	o.addList("processes", each(a.Processes, ManifestProcess.tree))
	var metadata manifestObject
	metadata.addMap("labels", optionalTexts(a.Metadata.Labels))
	metadata.addMap("annotations", optionalTexts(a.Metadata.Annotations))
	o.addMap("metadata", metadata)
	o.addMap("features", sortedTree(a.Features))
	o.addMap("cnb-credentials", sortedTree(a.CNBCredentials))
	return o
}

func (s *ManifestSettings) addTo(o *manifestObject, disk string) {
	size := func(mb int) any { return FormatMegabytes(mb) }
	addSet(o, "instances", s.Scale.Instances, itself)
	addSet(o, "memory", s.Scale.MemoryMB, size)
	addSet(o, disk, s.Scale.DiskMB, size)
	addSet(o, "log-rate-limit-per-second", s.Scale.LogRateBytes, func(rate int64) any { return FormatLogRate(rate) })
	addSet(o, "command", s.Change.Command, func(command string) any {
		if command == "" {
			return nil
		}
		return command
	})
	addSet(o, "timeout", s.Change.HealthCheck.Timeout, itself)
	s.Change.HealthCheck.addTo(o, "health-check-")
	s.Change.Readiness.addTo(o, "readiness-health-check-")
}

func (c *HealthCheckChange) addTo(o *manifestObject, prefix string) {
	addSet(o, prefix+"type", c.Type, func(t CheckType) any { return string(t) })
	addSet(o, prefix+"http-endpoint", c.Endpoint, itself)
	addSet(o, prefix+"invocation-timeout", c.InvocationTimeout, itself)
	addSet(o, prefix+"interval", c.Interval, itself)
}

func (d ManifestDocker) tree() any {
	o := manifestObject{{"image", d.Image}}
	o.addText("username", d.Username)
	return o
}

func (r ManifestRoute) tree() any {
	o := manifestObject{{"route", r.Route}}
	o.addText("protocol", r.Protocol)
	o.addMap("options", optionalTexts(r.Options))
	return o
}

func (s ManifestService) tree() any {
	if s.BindingName == "" && len(s.Parameters) == 0 {
		return s.Name
	}
	o := manifestObject{{"name", s.Name}}
	o.addText("binding_name", s.BindingName)
	o.addMap("parameters", sortedTree(s.Parameters))
	return o
}

func (s ManifestSidecar) tree() any {
	o := manifestObject{{"name", s.Name}, {"process_types", anyList(s.ProcessTypes)}, {"command", s.Command}}
	addSet(&o, "memory", s.MemoryMB, func(mb int) any { return FormatMegabytes(mb) })
	return o
}

func (p ManifestProcess) tree() any {
	o := manifestObject{{"type", p.Type}}
	p.addTo(&o, "disk_quota")
	return o
}

func each[T any](all []T, tree func(T) any) []any {
	var trees []any
	for _, v := range all {
		trees = append(trees, tree(v))
	}
	return trees
}

func anyList(texts []string) []any {
	all := []any{}
	for _, s := range texts {
		all = append(all, s)
	}
	return all
}

func optionalTexts(m map[string]*string) manifestObject {
	var o manifestObject
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if m[key] == nil {
			o.add(key, nil)
		} else {
			o.add(key, *m[key])
		}
	}
	return o
}

func sortedTree[V any](m map[string]V) manifestObject {
	o := manifestObject{}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		o.add(key, treeOf(m[key]))
	}
	return o
}

// treeOf orders what a developer wrote freely.
func treeOf(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return sortedTree(v)
	case []any:
		return append([]any{}, each(v, treeOf)...)
	}
	return v
}

func yamlNode(v any) *yaml.Node {
	switch v := v.(type) {
	case manifestObject:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, f := range v {
			n.Content = append(n.Content, yamlText(f.key), yamlNode(f.value))
		}
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, child := range v {
			n.Content = append(n.Content, yamlNode(child))
		}
		return n
	case string:
		return yamlText(v)
	case float64:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: floatText(v)}
	}
	n := &yaml.Node{}
	_ = n.Encode(v) // an integer, a boolean or nil
	return n
}

// floatText keeps a whole number a float.
func floatText(f float64) string {
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

// yamlText quotes what older readers of YAML take for a boolean, and what has more than one line. The encoder quotes the rest.
func yamlText(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	old := slices.Contains([]string{"y", "n", "yes", "no", "on", "off"}, strings.ToLower(s))
	if old || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}
