package platform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// keysOfOld are keys that Cloud Foundry once knew and now ignores, with path, which is the client's business.
var keysOfOld = []string{"path", "domain", "domains", "host", "hosts", "no-hostname", "inherit", "app-bits"}

// app reads one application. It ignores keys of old; any other that it does not know is a mistake somebody wants to hear of.
func (w *manifestWalk) app(n *yaml.Node, index int) ManifestApp {
	var a ManifestApp
	w.where = w.appWhere(n, index)
	keys := w.settingsKeys(&a.Web, "disk-quota")
	for key, read := range w.appKeys(&a) {
		keys[key] = read
	}
	w.objectBut(n, "", keys, func(key string) bool { return slices.Contains(keysOfOld, dashed(key)) })
	w.checkApp(&a, n)
	return a
}

func (w *manifestWalk) appWhere(n *yaml.Node, index int) string {
	if n = behind(n); n.Kind == yaml.MappingNode {
		for _, p := range pairsOf(n) {
			if p.key == "name" && p.value.Kind == yaml.ScalarNode && !isNull(p.value) {
				return "For application '" + clipText(p.value.Value) + "': "
			}
		}
	}
	return fmt.Sprintf("For application at index %d: ", index)
}

func (w *manifestWalk) appKeys(a *ManifestApp) manifestKeys {
	return manifestKeys{
		"name":            func(n *yaml.Node, path string) { setIf(&a.Name, w.text(n, path, maxAppName)) },
		"lifecycle":       func(n *yaml.Node, path string) { a.Lifecycle = w.lifecycle(n, path) },
		"buildpacks":      func(n *yaml.Node, path string) { a.Buildpacks = w.buildpacks(n, path) },
		"buildpack":       func(n *yaml.Node, path string) { a.Buildpacks = w.oneBuildpack(n, path) },
		"stack":           func(n *yaml.Node, path string) { a.Stack = w.text(n, path, maxName) },
		"docker":          func(n *yaml.Node, path string) { a.Docker = w.docker(n, path) },
		"env":             func(n *yaml.Node, path string) { a.Env = w.env(n, path) },
		"routes":          func(n *yaml.Node, path string) { a.Routes = w.routes(n, path) },
		"no-route":        func(n *yaml.Node, path string) { a.NoRoute = w.flag(n, path) },
		"random-route":    func(n *yaml.Node, path string) { a.RandomRoute = w.flag(n, path) },
		"default-route":   func(n *yaml.Node, path string) { a.DefaultRoute = w.flag(n, path) },
		"services":        func(n *yaml.Node, path string) { a.Services = w.services(n, path) },
		"sidecars":        func(n *yaml.Node, path string) { a.Sidecars = w.sidecars(n, path) },
		"processes":       func(n *yaml.Node, path string) { a.Processes = w.processes(n, path) },
		"metadata":        func(n *yaml.Node, path string) { a.Metadata = w.metadata(n, path) },
		"features":        func(n *yaml.Node, path string) { a.Features = w.features(n, path) },
		"cnb-credentials": func(n *yaml.Node, path string) { a.CNBCredentials = w.filledMap(n, path) },
	}
}

// checkApp holds the keys against each other.
func (w *manifestWalk) checkApp(a *ManifestApp, n *yaml.Node) {
	if lacks(n, "name") {
		w.wrong("name", "is missing: say which app it is.")
	}
	if hasKey(n, "buildpack") && hasKey(n, "buildpacks") {
		w.wrong("buildpack", "and buildpacks exclude each other: use buildpacks.")
	}
	if a.Docker != nil && a.Buildpacks != nil && len(*a.Buildpacks) > 0 {
		w.wrong("docker", "and buildpacks exclude each other: an app is made of an image or of code.")
	}
	if a.Docker != nil && a.Lifecycle != nil && *a.Lifecycle != LifecycleDocker {
		w.wrong("docker", "needs the lifecycle docker, not %s.", *a.Lifecycle)
	}
}

// hasKey tells whether a map names a key, be it with a wrong value that was told of already.
func hasKey(n *yaml.Node, key string) bool {
	n = behind(n)
	return n.Kind == yaml.MappingNode && slices.ContainsFunc(pairsOf(n), func(p yamlPair) bool { return dashed(p.key) == key })
}

// lacks tells whether a map has no value for a key. Of what is no map at all it was told already.
func lacks(n *yaml.Node, key string) bool {
	if n = behind(n); n.Kind != yaml.MappingNode {
		return isNull(n)
	}
	return !slices.ContainsFunc(pairsOf(n), func(p yamlPair) bool { return dashed(p.key) == key && !isNull(p.value) })
}

func (w *manifestWalk) lifecycle(n *yaml.Node, path string) *LifecycleType {
	s := w.choice(n, path, string(LifecycleBuildpack), string(LifecycleCNB), string(LifecycleDocker))
	return (*LifecycleType)(s)
}

func (w *manifestWalk) buildpacks(n *yaml.Node, path string) *[]string {
	names := w.texts(n, path, maxReference)
	return &names
}

// oneBuildpack reads the key of old.
func (w *manifestWalk) oneBuildpack(n *yaml.Node, path string) *[]string {
	names := []string{}
	if name := w.text(n, path, maxReference); name != nil && *name != "default" && *name != "null" {
		names = append(names, *name)
	}
	return &names
}

// texts is a list of texts, empty when there are none.
func (w *manifestWalk) texts(n *yaml.Node, path string, limit int) []string {
	all := []string{}
	for i, child := range w.list(n, path, maxManifestList) {
		at := fmt.Sprintf("%s[%d]", path, i)
		if s := w.text(child, at, limit); s != nil {
			all = append(all, *s)
		} else if isNull(behind(child)) {
			w.wrong(at, "must not be blank.")
		}
	}
	return all
}

func (w *manifestWalk) docker(n *yaml.Node, path string) *ManifestDocker {
	if isNull(behind(n)) {
		return nil
	}
	var d ManifestDocker
	w.object(n, path, manifestKeys{
		"image":    func(n *yaml.Node, path string) { setIf(&d.Image, w.text(n, path, maxReference)) },
		"username": func(n *yaml.Node, path string) { setIf(&d.Username, w.text(n, path, maxReference)) },
	})
	if lacks(n, "image") {
		w.wrong(path+".image", "is missing: say which image the app is made of.")
	}
	return &d
}

// env makes text of everything, as Cloud Foundry does: of a list or a map it makes JSON.
func (w *manifestWalk) env(n *yaml.Node, path string) map[string]*string {
	env := map[string]*string{}
	for _, p := range w.pairs(n, path) {
		at := under(path, clipText(p.key))
		w.said(at, checkEnvName(p.key))
		if p.value.Kind == yaml.ScalarNode {
			env[p.key] = w.scalar(p.value, at)
			continue
		}
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(w.value(p.value, at)); err == nil { // otherwise value said why
			s := strings.TrimSuffix(text.String(), "\n")
			env[p.key] = &s
		}
	}
	return filled(env)
}

func (w *manifestWalk) metadata(n *yaml.Node, path string) MetadataChange {
	var m MetadataChange
	w.object(n, path, manifestKeys{
		"labels":      func(n *yaml.Node, path string) { m.Labels = w.textMap(n, path) },
		"annotations": func(n *yaml.Node, path string) { m.Annotations = w.textMap(n, path) },
	})
	return m
}

func (w *manifestWalk) features(n *yaml.Node, path string) map[string]bool {
	all := map[string]bool{}
	for _, p := range w.pairs(n, path) {
		all[p.key] = w.flag(p.value, under(path, clipText(p.key)))
	}
	return filled(all)
}

func (w *manifestWalk) textMap(n *yaml.Node, path string) map[string]*string {
	all := map[string]*string{}
	for _, p := range w.pairs(n, path) {
		all[p.key] = w.scalar(p.value, under(path, clipText(p.key)))
	}
	return filled(all)
}

func (w *manifestWalk) filledMap(n *yaml.Node, path string) map[string]any {
	return filled(w.anyMap(n, path))
}

// filled is nil for an empty map: nothing is named in it.
func filled[M ~map[string]V, V any](m M) M {
	if len(m) == 0 {
		return nil
	}
	return m
}
