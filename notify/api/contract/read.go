package contract

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// readContract reads an OpenAPI description. Whatever in it the checks could not be relied on with is an error.
func readContract(text []byte) (*Contract, error) {
	var parsed any
	if err := yaml.Unmarshal(text, &parsed); err != nil {
		return nil, err
	}
	plain, err := json.Marshal(parsed) // schemas are made of what JSON has, not of what YAML has
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(plain))
	if err != nil {
		return nil, err
	}
	b := &book{doc: doc, compiler: jsonschema.NewCompiler()}
	b.compiler.DefaultDraft(jsonschema.Draft2020)
	b.compiler.AssertFormat()
	if err := b.compiler.AddResource(bookURL, doc); err != nil {
		return nil, err
	}
	c := newContract(node{book: b, value: doc})
	return c, errors.Join(b.faults...)
}

// book is a description while it is read.
type book struct {
	doc      any
	compiler *jsonschema.Compiler
	faults   []error
}

const bookURL = "https://description/" // a name only; nothing is fetched

// node is a place in a book. References are followed before anything is read, but for those of schemas: the compiler does that.
type node struct {
	*book
	pointer string
	value   any
}

func (n node) wrong(format string, args ...any) {
	n.faults = append(n.faults, fmt.Errorf(cmp.Or(n.pointer, "/")+": "+format, args...))
}

var (
	escape   = strings.NewReplacer("~", "~0", "/", "~1")
	unescape = strings.NewReplacer("~1", "/", "~0", "~")
)

func (n node) get(key string) node { return n.at(n.pointer + "/" + escape.Replace(key)) }

// at goes to a place, and on from there while it is a reference. Where there is nothing, the value is nil.
func (n node) at(pointer string) node {
	for range 10 {
		n.pointer, n.value = pointer, n.lookUp(pointer)
		ref, isRef := child(n.value, "$ref").(string)
		if !isRef || strings.HasSuffix(pointer, "/schema") || strings.HasPrefix(pointer, "/components/schemas/") {
			return n
		}
		local, here := strings.CutPrefix(ref, "#")
		if !here || n.lookUp(local) == nil {
			n.wrong("%s leads nowhere", ref)
			return n
		}
		pointer = local
	}
	n.wrong("its references lead in a circle")
	return n
}

func (b *book) lookUp(pointer string) any {
	value := b.doc
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		value = child(value, unescape.Replace(step))
	}
	return value
}

func child(value any, step string) any {
	switch v := value.(type) {
	case map[string]any:
		return v[step]
	case []any:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(v) {
			return v[i]
		}
	}
	return nil
}

func (n node) keys() []string {
	m, _ := n.value.(map[string]any)
	return slices.Sorted(maps.Keys(m))
}

func (n node) items() []node {
	list, _ := n.value.([]any)
	all := make([]node, len(list))
	for i := range list {
		all[i] = n.get(strconv.Itoa(i))
	}
	return all
}

func (n node) text() string {
	s, _ := n.value.(string)
	return s
}

func (n node) yes() bool { return n.value == true }

func (n node) schema() *jsonschema.Schema {
	n = n.get("schema")
	if n.value == nil {
		n.wrong("there is no schema")
		return nil
	}
	s, err := n.compiler.Compile(bookURL + "#" + (&url.URL{Fragment: n.pointer}).EscapedFragment())
	if err != nil {
		n.wrong("%w", err)
	}
	return s
}

func (n node) content() content {
	c := content{}
	for _, media := range n.keys() {
		c[media] = n.get(media).schema()
	}
	return c
}

func (n node) response() response {
	r := response{content: n.get("content").content()}
	headers := n.get("headers")
	for _, name := range headers.keys() {
		h := headers.get(name)
		r.headers = append(r.headers, param{at: h, name: name, in: "header", required: h.get("required").yes(), schema: h.schema()})
	}
	return r
}

var methods = []string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete, http.MethodOptions, http.MethodHead, http.MethodPatch, http.MethodTrace}

func newContract(root node) *Contract {
	c := &Contract{root: root}
	paths := root.get("paths")
	for _, path := range paths.keys() {
		for _, method := range methods {
			if n := paths.get(path).get(strings.ToLower(method)); n.value != nil {
				c.operations = append(c.operations, newOperation(paths.get(path), n, method, path))
			}
		}
	}
	if len(c.operations) == 0 {
		root.wrong("it describes no operation")
	}
	responses := root.get("components").get("responses")
	c.noRoute, c.wrongMethod = responses.get("NoRoute").response(), responses.get("WrongMethod").response()
	return c
}

var variable = regexp.MustCompile(`\{([^{}]*)\}`)

func newOperation(item, n node, method, path string) *operation {
	op := &operation{at: n, method: method, path: path, id: n.get("operationId").text(), responses: map[int]response{},
		body: n.get("requestBody").get("content").content(), needsBody: n.get("requestBody").get("required").yes()}
	if n.get("security").value == nil {
		n.wrong("security is missing: say [] where no token is needed")
	}
	for _, way := range n.get("security").items() {
		for _, scheme := range way.keys() {
			for _, scope := range way.get(scheme).items() {
				op.scopes = append(op.scopes, scope.text())
			}
		}
	}
	for _, p := range append(item.get("parameters").items(), n.get("parameters").items()...) {
		op.params = append(op.params, param{at: p, name: p.get("name").text(), in: p.get("in").text(), required: p.get("required").yes(), schema: p.schema()})
	}
	for _, v := range variable.FindAllStringSubmatch(path, -1) {
		if !slices.ContainsFunc(op.params, func(p param) bool { return p.in == "path" && p.name == v[1] }) {
			n.wrong("the parameter %s of the path is not described", v[1])
		}
	}
	for _, code := range n.get("responses").keys() {
		status, err := strconv.Atoi(code)
		if err != nil {
			n.wrong("%q is not a status", code)
		}
		op.responses[status] = n.get("responses").get(code).response()
	}
	return op
}
