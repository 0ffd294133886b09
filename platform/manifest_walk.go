package platform

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/proa-dev/proa/kit/fault"
)

// manifestWalk reads nodes into values and collects what is wrong. Readers return nil for what is not there: null is not there.
type manifestWalk struct {
	where  string // which application, in words that begin a sentence
	faults []string
	more   int // faults beyond those kept
}

func (w *manifestWalk) wrong(path, format string, args ...any) {
	if len(w.faults) == maxManifestTold {
		w.more++
		return
	}
	w.faults = append(w.faults, strings.TrimSpace(w.where+path)+" "+fmt.Sprintf(format, args...))
}

// said passes on the sentence of a rule.
func (w *manifestWalk) said(path string, err error) {
	if err != nil {
		w.wrong(path+":", "%s", fault.From(err).Detail)
	}
}

func (w *manifestWalk) err() error {
	if w.more > 0 {
		return faultOf(append(w.faults, fmt.Sprintf("There are %d more problems in this manifest.", w.more)))
	}
	return faultOf(w.faults)
}

// manifestKeys are the keys of a map, as they are documented, with what reads each.
type manifestKeys map[string]func(n *yaml.Node, path string)

// object reads a map. A key may be spelled with - or _, as in Cloud Foundry.
func (w *manifestWalk) object(n *yaml.Node, path string, keys manifestKeys) {
	w.objectBut(n, path, keys, func(string) bool { return false })
}

// objectBut leaves it to other to deal with a key, or not.
func (w *manifestWalk) objectBut(n *yaml.Node, path string, keys manifestKeys, other func(key string) bool) {
	canonical := make(map[string]func(*yaml.Node, string), len(keys))
	for key, read := range keys {
		canonical[dashed(key)] = read
	}
	seen := map[string]bool{}
	for _, p := range w.pairs(n, path) {
		read, known := canonical[dashed(p.key)]
		switch {
		case known && seen[dashed(p.key)]:
			w.wrong(under(path, p.key), "is there twice, spelled with - and with _.")
		case known:
			seen[dashed(p.key)] = true
			read(p.value, under(path, p.key))
		case !other(p.key):
			w.wrong(under(path, clipText(p.key)), "is not a key that is known here. Known are %s.", strings.Join(slices.Sorted(maps.Keys(keys)), ", "))
		}
	}
}

func (w *manifestWalk) pairs(n *yaml.Node, path string) []yamlPair {
	n = behind(n)
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		w.wrong(path, "must be a map of keys and values.")
		return nil
	}
	return pairsOf(n)
}

func (w *manifestWalk) list(n *yaml.Node, path string, limit int) []*yaml.Node {
	n = behind(n)
	switch {
	case isNull(n):
		return nil
	case n.Kind != yaml.SequenceNode:
		w.wrong(path, "must be a list.")
		return nil
	case len(n.Content) > limit:
		w.wrong(path, "has %d entries; at most %d are allowed.", len(n.Content), limit)
		return nil
	}
	return n.Content
}

// scalar is the text of a value as it was written: a number or a date is what it looks like.
func (w *manifestWalk) scalar(n *yaml.Node, path string) *string {
	n = behind(n)
	switch {
	case isNull(n):
		return nil
	case n.Kind != yaml.ScalarNode:
		w.wrong(path, "must be text.")
		return nil
	case !slices.Contains([]string{"!!str", "!!int", "!!float", "!!bool", "!!timestamp", mergeTag}, n.Tag):
		w.wrong(path, "has the tag %s, which is not supported.", clipText(n.Tag))
		return nil
	}
	return &n.Value
}

// text is a scalar of one line.
func (w *manifestWalk) text(n *yaml.Node, path string, limit int) *string {
	s := w.scalar(n, path)
	switch {
	case s == nil:
		return nil
	case strings.TrimSpace(*s) == "":
		w.wrong(path, "must not be blank.")
	case len(*s) > limit:
		w.wrong(path, "is too long (maximum is %d characters).", limit)
	case strings.ContainsFunc(*s, notOneLine):
		w.wrong(path, "must not hold line breaks or control characters.")
	default:
		return s
	}
	return nil
}

// choice is a text that is one of a few.
func (w *manifestWalk) choice(n *yaml.Node, path string, of ...string) *string {
	s := w.scalar(n, path)
	if s != nil && !slices.Contains(of, *s) {
		w.wrong(path, "must be one of %s.", strings.Join(of, ", "))
		return nil
	}
	return s
}

func (w *manifestWalk) whole(n *yaml.Node, path string, least, most int) *int {
	s := w.scalar(n, path)
	if s == nil {
		return nil
	}
	i, err := strconv.Atoi(*s)
	if err != nil || i < least || i > most {
		w.wrong(path, "must be a whole number from %d to %d.", least, most)
		return nil
	}
	return &i
}

func (w *manifestWalk) flag(n *yaml.Node, path string) bool {
	n = behind(n)
	var yes bool
	if !isNull(n) && (n.Kind != yaml.ScalarNode || n.Decode(&yes) != nil) {
		w.wrong(path, "must be true or false.")
	}
	return yes
}

func (w *manifestWalk) megabytes(n *yaml.Node, path string) *int {
	s := w.scalar(n, path)
	if s == nil {
		return nil
	}
	mb, wrong := megabytes(*s)
	if wrong != "" {
		w.wrong(path, "%s", wrong)
		return nil
	}
	return &mb
}

// value is anything that JSON can say.
func (w *manifestWalk) value(n *yaml.Node, path string) any {
	n = behind(n)
	switch n.Kind {
	case yaml.MappingNode:
		return w.anyMap(n, path)
	case yaml.SequenceNode:
		all := []any{}
		for i, child := range n.Content {
			all = append(all, w.value(child, fmt.Sprintf("%s[%d]", path, i)))
		}
		return all
	}
	s := w.scalar(n, path)
	if s == nil {
		return nil
	}
	var v any
	switch n.Tag {
	case "!!int", "!!float", "!!bool":
		if n.Decode(&v) != nil {
			w.wrong(path, "is not what its tag %s says.", n.Tag)
		}
	default:
		return *s
	}
	if f, is := v.(float64); is && (math.IsNaN(f) || math.IsInf(f, 0)) {
		w.wrong(path, "must be a number that JSON can hold.")
	}
	return v
}

func (w *manifestWalk) anyMap(n *yaml.Node, path string) map[string]any {
	all := map[string]any{}
	for _, p := range w.pairs(n, path) {
		all[p.key] = w.value(p.value, under(path, clipText(p.key)))
	}
	return all
}

func isNull(n *yaml.Node) bool {
	return n.Kind == 0 || n.Kind == yaml.ScalarNode && n.Tag == "!!null"
}

func notOneLine(r rune) bool {
	return r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029'
}

func dashed(key string) string { return strings.ReplaceAll(key, "_", "-") }

func under(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
