package cli

import (
	"errors"

	"go.yaml.in/yaml/v3"
)

// A manifest is kept as the nodes of its YAML, so that what the platform reads is what was written: 1.10 stays 1.10, and keys that
// this program does not know go through.

// valueOf is what a key of a mapping holds, or nil.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func textOf(n *yaml.Node, key string) string {
	if v := valueOf(n, key); v != nil && v.Kind == yaml.ScalarNode && v.Tag != "!!null" {
		return v.Value
	}
	return ""
}

func isTrue(n *yaml.Node, key string) bool {
	var b bool
	v := valueOf(n, key)
	return v != nil && v.Decode(&b) == nil && b
}

// setValue puts a value under a key of a mapping, in place of an older one.
func setValue(n *yaml.Node, key string, value any) error {
	var v yaml.Node
	if err := v.Encode(value); err != nil {
		return err
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content[i+1] = &v
			return nil
		}
	}
	n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, &v)
	return nil
}

func dropKey(n *yaml.Node, key string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content = append(n.Content[:i:i], n.Content[i+2:]...)
			return
		}
	}
}

func copyNode(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		c.Content[i] = copyNode(child)
	}
	return &c
}

// maxNodes is far beyond any manifest; aliases of aliases could stand for more than there is memory.
const maxNodes = 100_000

// expand writes out anchors, aliases and merges: what they refer to may stand at a place that is not sent.
func expand(n *yaml.Node, left *int) (*yaml.Node, error) {
	if *left--; *left < 0 {
		return nil, errors.New("its aliases stand for too much")
	}
	if n.Kind == yaml.AliasNode {
		return expand(n.Alias, left)
	}
	c := *n
	c.Anchor, c.Alias, c.Content = "", nil, nil
	var merged []*yaml.Node
	for i, child := range n.Content {
		e, err := expand(child, left)
		if err != nil {
			return nil, err
		}
		if n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i-1].Tag == "!!merge" {
			c.Content = c.Content[:len(c.Content)-1]
			merged = append(merged, e)
			continue
		}
		c.Content = append(c.Content, e)
	}
	for _, m := range merged {
		mergeInto(&c, m)
	}
	return &c, nil
}

// mergeInto adds the keys that are not there; of a list of mappings the first that has a key wins.
func mergeInto(n, from *yaml.Node) {
	if from.Kind == yaml.SequenceNode {
		for _, one := range from.Content {
			mergeInto(n, one)
		}
		return
	}
	for i := 0; i+1 < len(from.Content); i += 2 {
		if valueOf(n, from.Content[i].Value) == nil {
			n.Content = append(n.Content, from.Content[i], from.Content[i+1])
		}
	}
}
