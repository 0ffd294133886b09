package cli

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// vars are what stands for ((name)) in a manifest.
type vars map[string]*yaml.Node

// loadVars reads files, of which a later one wins, and then pairs such as name=value, whose values are YAML: 3 is a number.
func (e *Env) loadVars(files, pairs []string) (vars, error) {
	all := vars{}
	for _, file := range files {
		text, err := os.ReadFile(e.path(file))
		if err != nil {
			return nil, usage("The file of variables cannot be read: %v.", err)
		}
		var values map[string]yaml.Node
		if err := yaml.Unmarshal(text, &values); err != nil {
			return nil, usage("%s does not hold variables: %v. Write them as name: value.", file, err)
		}
		for name, value := range values {
			all[name] = &value
		}
	}
	for _, pair := range pairs {
		name, text, found := strings.Cut(pair, "=")
		if !found || name == "" {
			return nil, usage("%q is not a variable. Write it as --var name=value.", pair)
		}
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil || len(doc.Content) == 0 {
			doc = yaml.Node{Content: []*yaml.Node{textNode(text)}} // not YAML, or empty: taken as it is
		}
		all[name] = doc.Content[0]
	}
	return all, nil
}

func textNode(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Style: yaml.DoubleQuotedStyle}
}

var placeholder = regexp.MustCompile(`\(\(([-\w/.]+)\)\)`)

// fill puts variables in place, and names those that are not there.
func (v vars) fill(n *yaml.Node) error {
	lacking := map[string]bool{}
	v.walk(n, lacking)
	if len(lacking) > 0 {
		names := slices.Sorted(maps.Keys(lacking))
		p := usage("The manifest needs a value for %s.", strings.Join(names, ", "))
		p.next = fmt.Sprintf("repeat the command with --var %s=VALUE or --vars-file FILE", names[0])
		return p
	}
	return nil
}

func (v vars) walk(n *yaml.Node, lacking map[string]bool) {
	if n.Kind != yaml.ScalarNode {
		for _, child := range n.Content {
			v.walk(child, lacking)
		}
		return
	}
	if m := placeholder.FindStringSubmatch(n.Value); len(m) == 2 && m[0] == n.Value {
		if value := v.find(m[1]); value != nil {
			*n = *copyNode(value)
		} else {
			lacking[m[1]] = true
		}
		return
	}
	n.Value = placeholder.ReplaceAllStringFunc(n.Value, func(match string) string {
		name := strings.Trim(match, "()")
		value := v.find(name)
		if value == nil || value.Kind != yaml.ScalarNode {
			lacking[name] = true
			return match
		}
		return value.Value
	})
}

// find is the variable of that name, or the part of one that a name such as db.password leads to.
func (v vars) find(name string) *yaml.Node {
	if value, ok := v[name]; ok {
		return value
	}
	for at := range len(name) {
		if name[at] != '.' {
			continue
		}
		value := v[name[:at]]
		for key := range strings.SplitSeq(name[at+1:], ".") {
			value = valueOf(value, key)
		}
		if value != nil {
			return value
		}
	}
	return nil
}
