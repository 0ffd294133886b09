package notify

import (
	"errors"
	"fmt"
	htmltemplate "html/template"
	"reflect"
	"slices"
	"strings"
	"text/template/parse"
	"unicode/utf8"

	"github.com/proa-dev/proa/kit/fault"
)

// The limits of what stands in the parts of a template.
const (
	maxDepth    = 10  // conditions in conditions
	maxActions  = 500 // placeholders and conditions in one part
	maxContents = 10  // uses of .Text and .HTML in one part: each may be large
	maxFaults   = 10  // told of one part
)

// placeholders are the names a template may use.
var placeholders = func() []string {
	var names []string
	for i := range reflect.TypeFor[view]().NumField() {
		names = append(names, reflect.TypeFor[view]().Field(i).Name)
	}
	return names
}()

// conditions are the functions a template may use, with the fewest and the most arguments. None of them can fail on strings, and
// none makes something large from something small.
var conditions = map[string]struct{ least, most int }{
	"eq":  {2, maxActions},
	"ne":  {2, 2},
	"and": {1, maxActions},
	"or":  {1, maxActions},
	"not": {1, 1},
}

// readPart parses a part of a template and walks it: only text, known placeholders and conditions on them may stand in it.
func readPart(field, source, otherwise string) (*parse.Tree, []string) {
	if source == "" {
		source = otherwise
	}
	if !utf8.ValidString(source) || strings.ContainsRune(source, 0) {
		return nil, []string{field + " must be UTF-8 text without NUL."}
	}
	tree, all := parse.New(field), map[string]*parse.Tree{}
	tree.Mode = parse.SkipFuncCheck
	if _, err := tree.Parse(source, "", "", all); err != nil {
		return nil, []string{reason(err)}
	}
	w := walk{field: field}
	for _, other := range all {
		if other != tree {
			w.say("define and block are not allowed: write the text where it belongs.")
		}
	}
	w.list(tree.Root, 0)
	if w.actions > maxActions {
		w.say("there are more than %d placeholders and conditions.", maxActions)
	}
	if w.contents > maxContents {
		w.say(".Text and .HTML stand in it more than %d times.", maxContents)
	}
	return tree, w.faults
}

type walk struct {
	field    string
	faults   []string
	actions  int
	contents int
}

func (w *walk) say(format string, args ...any) {
	if len(w.faults) < maxFaults {
		w.faults = append(w.faults, w.field+": "+fmt.Sprintf(format, args...))
	}
}

func (w *walk) refuse(n parse.Node) {
	w.say("%s is not allowed. Only placeholders such as {{.Subject}}, and if with eq, ne, and, or, not may be used.", quote(n.String()))
}

func (w *walk) list(l *parse.ListNode, depth int) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.TextNode, *parse.CommentNode:
		case *parse.ActionNode:
			w.pipe(n.Pipe, 0)
		case *parse.IfNode:
			w.branch(n, depth)
		case *parse.RangeNode:
			w.say("range is not allowed: every placeholder is one text.")
		case *parse.WithNode:
			w.say("with is not allowed: use if.")
		case *parse.TemplateNode:
			w.say("template and block are not allowed: write the text where it belongs.")
		default:
			w.refuse(n)
		}
		if w.actions > maxActions {
			return
		}
	}
}

func (w *walk) branch(n *parse.IfNode, depth int) {
	if depth == maxDepth {
		w.say("there are more than %d conditions inside each other.", maxDepth)
		return
	}
	w.pipe(n.Pipe, 0)
	w.list(n.List, depth+1)
	if n.ElseList != nil && len(n.ElseList.Nodes) == 1 && n.ElseList.Nodes[0].Type() == parse.NodeIf {
		depth-- // else if is no deeper
	}
	w.list(n.ElseList, depth+1)
}

func (w *walk) pipe(p *parse.PipeNode, depth int) {
	w.actions++
	if w.actions > maxActions {
		return
	}
	if len(p.Decl) > 0 || len(p.Cmds) != 1 || depth > maxDepth {
		w.refuse(p)
		return
	}
	args := p.Cmds[0].Args
	function, isFunction := args[0].(*parse.IdentifierNode)
	switch {
	case isFunction:
		w.call(p, function.Ident, args[1:], depth)
	case len(args) == 1:
		w.operand(args[0], depth, true)
	default:
		w.refuse(p)
	}
}

func (w *walk) call(p *parse.PipeNode, name string, args []parse.Node, depth int) {
	rule, known := conditions[name]
	switch {
	case !known:
		w.say("the function %s is not known. Known are eq, ne, and, or, not.", quote(name))
	case len(args) < rule.least || len(args) > rule.most:
		w.say("%s: %s takes another number of values.", quote(p.String()), name)
	default:
		for _, a := range args {
			w.operand(a, depth, name != "eq" && name != "ne")
		}
	}
}

// operand is a placeholder, a quoted text or, where either truth or text will do, a condition in parentheses.
func (w *walk) operand(n parse.Node, depth int, condition bool) {
	switch n := n.(type) {
	case *parse.FieldNode:
		w.placeholder(n)
	case *parse.StringNode:
	case *parse.PipeNode:
		if !condition {
			w.say("%s: eq and ne compare placeholders and quoted texts only.", quote(n.String()))
			return
		}
		w.pipe(n, depth+1)
	default:
		w.refuse(n)
	}
}

func (w *walk) placeholder(n *parse.FieldNode) {
	if len(n.Ident) != 1 || !slices.Contains(placeholders, n.Ident[0]) {
		w.say("the placeholder %s is not known. Known are .%s.", quote(n.String()), strings.Join(placeholders, ", ."))
		return
	}
	if n.Ident[0] == "Text" || n.Ident[0] == "HTML" {
		w.contents++
	}
}

// reason makes a sentence of what the template engine says. It begins with the field.
func reason(err error) string {
	var f *fault.Error
	if errors.As(err, &f) {
		return f.Detail
	}
	var h *htmltemplate.Error
	said := err.Error()
	if errors.As(err, &h) {
		said = h.Error()
	}
	said = strings.TrimPrefix(strings.TrimPrefix(said, "html/template:"), "template: ")
	if len(said) > 300 {
		said = said[:300] + "…"
	}
	return strings.ToValidUTF8(said, "�") + ": this is not a template that can be filled in."
}
