package platform

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// A Difference is one change that a manifest would make.
type Difference struct {
	Op    string // add, replace or remove
	Path  string // in the manifest that was sent
	Was   any    // nothing for add
	Value any    // nothing for remove
}

// The operations of a difference.
const (
	DifferenceAdd     = "add"
	DifferenceReplace = "replace"
	DifferenceRemove  = "remove"
)

// MarshalJSON writes what belongs to the operation: a value of null is written, none is not.
func (d Difference) MarshalJSON() ([]byte, error) {
	fields := map[string]any{"op": d.Op, "path": d.Path}
	if d.Op != DifferenceAdd {
		fields["was"] = d.Was
	}
	if d.Op != DifferenceRemove {
		fields["value"] = d.Value
	}
	return json.Marshal(fields)
}

// DiffManifest tells what applying a manifest would change. What it does not name stays, so it is not in the answer; the entries
// of routes, services, sidecars and processes are told by their names, not by their places. Credentials are never shown.
func DiffManifest(current, sent Manifest) []Difference {
	d := manifestDiff{}
	for i := range sent.Applications {
		app := &sent.Applications[i]
		path := fmt.Sprintf("/applications/%d", i)
		j := slices.IndexFunc(current.Applications, func(c ManifestApp) bool { return c.Name == app.Name })
		if j < 0 {
			d.object(path, shown(*app), nil)
			continue
		}
		d.app(path, *app, current.Applications[j])
	}
	return d.found
}

type manifestDiff struct{ found []Difference }

func (d *manifestDiff) app(path string, sent, current ManifestApp) {
	if sent.NoRoute && len(current.Routes) > 0 {
		d.found = append(d.found, Difference{Op: DifferenceRemove, Path: path + "/routes", Was: plain(each(current.Routes, ManifestRoute.tree))})
	}
	if sent.NoRoute {
		sent.Routes = nil
		current.NoRoute = len(current.Routes) == 0
	}
	if len(current.Routes) > 0 || len(sent.Routes) > 0 { // then they do nothing
		sent.RandomRoute, sent.DefaultRoute = false, false
	}
	d.object(path, overruled(sent), shown(bothPlaces(current)))
}

// overruled leaves out the process keys of an app that its list of processes has another word on.
func overruled(a ManifestApp) manifestObject {
	o := shown(a)
	for _, p := range a.Processes {
		if web, _ := p.tree().(manifestObject); p.Type == WebProcess {
			o = slices.DeleteFunc(o, func(f manifestField) bool {
				_, there := web.get(strings.Replace(f.key, "disk-quota", "disk_quota", 1))
				return there
			})
		}
	}
	return o
}

// bothPlaces says of web in the app and in its list of processes what is known of it: either may be compared.
func bothPlaces(a ManifestApp) ManifestApp {
	a.Processes = a.EveryProcess()
	for _, p := range a.Processes {
		if p.Type == WebProcess {
			a.Web = p.ManifestSettings
		}
	}
	return a
}

func shown(a ManifestApp) manifestObject {
	a.CNBCredentials = nil
	return a.tree()
}

func (d *manifestDiff) object(path string, sent, current manifestObject) {
	for _, f := range sent {
		was, there := current.get(f.key)
		d.value(path+"/"+pointerStep(f.key), f.value, was, there)
	}
}

func (d *manifestDiff) value(path string, sent, current any, there bool) {
	if !there {
		if !isNothing(sent) {
			d.found = append(d.found, Difference{Op: DifferenceAdd, Path: path, Value: plain(sent)})
		}
		return
	}
	switch sent := sent.(type) {
	case manifestObject:
		if was, is := current.(manifestObject); is {
			d.object(path, sent, was)
			return
		}
	case []any:
		if was, is := current.([]any); is && named(path) {
			d.entries(path, sent, was)
			return
		}
	}
	if !sameValue(path, sent, current) {
		d.found = append(d.found, Difference{Op: DifferenceReplace, Path: path, Was: plain(current), Value: plain(sent)})
	}
}

// entries compares lists whose entries have names. A service that is bound stays bound as it is.
func (d *manifestDiff) entries(path string, sent, current []any) {
	for i, entry := range sent {
		j := slices.IndexFunc(current, func(c any) bool { return entryName(c) == entryName(entry) })
		switch at := fmt.Sprintf("%s/%d", path, i); {
		case j < 0:
			d.value(at, entry, nil, false)
		case !strings.HasSuffix(path, "/services"):
			d.value(at, entry, current[j], true)
		}
	}
}

// named tells the lists of an app whose entries have names: /applications/0/sidecars, but nothing that a developer named so.
func named(path string) bool {
	steps := strings.Split(path, "/")
	return len(steps) == 4 && slices.Contains([]string{"routes", "services", "sidecars", "processes"}, steps[3])
}

func entryName(entry any) string {
	switch entry := entry.(type) {
	case string:
		return entry
	case manifestObject: // the name comes first
		name, _ := entry[0].value.(string)
		return name
	}
	return ""
}

// sameValue does not mind the order of a sidecar's process types.
func sameValue(path string, sent, current any) bool {
	a, aList := sent.([]any)
	b, bList := current.([]any)
	if !aList || !bList || !strings.HasSuffix(path, "/process_types") {
		return reflect.DeepEqual(sent, current)
	}
	return len(a) == len(b) && !slices.ContainsFunc(a, func(v any) bool { return !slices.Contains(b, v) })
}

// isNothing is true of what takes away something that is not there.
func isNothing(v any) bool {
	list, is := v.([]any)
	return v == nil || is && len(list) == 0
}

func pointerStep(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// plain is a tree as JSON knows it.
func plain(v any) any {
	switch v := v.(type) {
	case manifestObject:
		m := make(map[string]any, len(v))
		for _, f := range v {
			m[f.key] = plain(f.value)
		}
		return m
	case []any:
		return append([]any{}, each(v, plain)...)
	}
	return v
}
