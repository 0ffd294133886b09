package platform

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/proa-dev/proa/kit/fault"
)

// readYAML reads one document of YAML whose nodes are few enough to walk, whatever its aliases stand for.
func readYAML(data []byte) (*yaml.Node, error) {
	if len(data) > maxManifest {
		return nil, fault.TooLarge("The manifest has %d bytes; at most %d are allowed.", len(data), maxManifest)
	}
	if comments := countComments(data); comments > maxManifestNotes {
		return nil, fault.TooLarge("The manifest has %d comments; at most %d are allowed.", comments, maxManifestNotes)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	doc, err := nextDocument(decoder)
	switch {
	case errors.Is(err, io.EOF) || err == nil && doc.Content[0].Tag == "!!null":
		return nil, fault.Invalid("The manifest is empty. List at least one application.")
	case err != nil:
		return nil, notYAML(err)
	}
	switch _, err := nextDocument(decoder); {
	case err == nil:
		return nil, fault.Invalid("The manifest has more than one YAML document. Send one, or each by itself.")
	case !errors.Is(err, io.EOF):
		return nil, notYAML(err)
	}
	var size yamlSize
	if err := size.measure(doc.Content[0], 0); err != nil {
		return nil, err
	}
	return doc.Content[0], nil
}

// countComments takes every # after a blank for one: the library needs time in the square of them, seconds for a megabyte.
func countComments(data []byte) int {
	count := 0
	for i, b := range data {
		if b == '#' && (i == 0 || strings.IndexByte(" \t\r\n", data[i-1]) >= 0) {
			count++
		}
	}
	return count
}

// nextDocument turns a panic into an error: the library panics where it finds its own state odd, and the text is a stranger's.
func nextDocument(decoder *yaml.Decoder) (doc *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	doc = &yaml.Node{}
	if err := decoder.Decode(doc); err != nil {
		return nil, err
	}
	if len(doc.Content) != 1 {
		return nil, io.EOF
	}
	return doc, nil
}

func notYAML(err error) error {
	reason := strings.TrimSuffix(strings.TrimPrefix(err.Error(), "yaml: "), ".")
	return fault.Invalid("The manifest is not valid YAML: %s.", clipText(reason)).Because(err)
}

// yamlSize is how much there is once aliases are written out.
type yamlSize struct{ nodes, bytes int }

// measure counts nodes and text as often as aliases bring them up, so that afterwards the tree may be walked as if there were
// none. A node that holds itself is infinitely deep.
func (s *yamlSize) measure(n *yaml.Node, depth int) error {
	s.nodes++
	s.bytes += len(n.Value)
	if s.nodes > maxManifestNodes || s.bytes > maxManifestText {
		return fault.Invalid("The manifest is too large: with all aliases written out it has more than %d values or %d bytes.", maxManifestNodes, maxManifestText)
	}
	if depth > maxManifestDepth {
		return fault.Invalid("The manifest is nested deeper than %d levels, or an alias in it holds itself.", maxManifestDepth)
	}
	if n.Kind == yaml.AliasNode {
		return s.measure(n.Alias, depth+1)
	}
	if strings.ContainsRune(n.Value, 0) {
		return fault.Invalid("Line %d of the manifest holds a NUL character.", n.Line)
	}
	if n.Kind == yaml.MappingNode {
		if err := checkYAMLKeys(n); err != nil {
			return err
		}
	}
	for _, child := range n.Content {
		if err := s.measure(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func checkYAMLKeys(n *yaml.Node) error {
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i < len(n.Content); i += 2 {
		key := behind(n.Content[i])
		switch {
		case key.Kind != yaml.ScalarNode:
			return fault.Invalid("Line %d of the manifest has a key that is not text.", n.Content[i].Line)
		case seen[key.Value]:
			return fault.Invalid("Line %d of the manifest has the key '%s' again.", n.Content[i].Line, clipText(key.Value))
		case key.Tag == mergeTag && !mergeable(n.Content[i+1]):
			return fault.Invalid("Line %d of the manifest merges (<<) something that is not a map.", n.Content[i].Line)
		}
		seen[key.Value] = true
	}
	return nil
}

const mergeTag = "!!merge"

func mergeable(n *yaml.Node) bool {
	n = behind(n)
	if n.Kind != yaml.SequenceNode {
		return n.Kind == yaml.MappingNode
	}
	for _, child := range n.Content {
		if behind(child).Kind != yaml.MappingNode {
			return false
		}
	}
	return true
}

// behind is what an alias stands for.
func behind(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

type yamlPair struct {
	key   string
	value *yaml.Node
}

// pairsOf are the keys and values of a map, with what it merges: its own keys first, and the first of the same name wins.
func pairsOf(n *yaml.Node) []yamlPair {
	var pairs, merged []yamlPair
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i < len(n.Content); i += 2 {
		key, value := behind(n.Content[i]), behind(n.Content[i+1])
		switch {
		case key.Tag != mergeTag:
			seen[key.Value] = true
			pairs = append(pairs, yamlPair{key.Value, value})
		case value.Kind == yaml.MappingNode:
			merged = append(merged, pairsOf(value)...)
		default:
			for _, child := range value.Content {
				merged = append(merged, pairsOf(behind(child))...)
			}
		}
	}
	for _, p := range merged {
		if !seen[p.key] {
			seen[p.key] = true
			pairs = append(pairs, p)
		}
	}
	return pairs
}
