// Package contract holds what tests of the notification service say and hear against its OpenAPI description. Only tests use it.
package contract

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/proa-dev/proa/kit/token"
	"github.com/proa-dev/proa/notify/api"
)

// Contract is an OpenAPI description, ready to hold requests and replies against it.
type Contract struct {
	root        node
	operations  []*operation
	noRoute     response // how a path that is not described may be answered
	wrongMethod response // how a method that is not described may be answered
}

// operation is one method of one path.
type operation struct {
	at        node
	method    string
	path      string
	id        string
	scopes    []string // a good token has one of these; none: the operation is open
	params    []param
	body      content
	needsBody bool
	responses map[int]response
}

type response struct {
	headers []param
	content content
}

// param is a named value of a request or a reply.
type param struct {
	at       node
	name     string
	in       string
	required bool
	schema   *jsonschema.Schema
}

// content is the schemas of a body, by media type. With none there is no body.
type content map[string]*jsonschema.Schema

var ours = sync.OnceValues(func() (*Contract, error) { return readContract(api.Description) })

// Load reads openapi.yaml.
func Load(t testing.TB) *Contract {
	t.Helper()
	c, err := ours()
	if err != nil {
		t.Fatalf("openapi.yaml: %v", err)
	}
	return c
}

// Transport passes requests on to next, and fails the test for each that is not as described, or whose reply is not. A request that
// was refused need not be: trying what is not described is how refusals are tested.
func (c *Contract) Transport(t testing.TB, next http.RoundTripper) http.RoundTripper {
	return &watched{contract: c, t: t, next: next}
}

type watched struct {
	contract *Contract
	t        testing.TB
	next     http.RoundTripper
}

func (w *watched) RoundTrip(r *http.Request) (*http.Response, error) {
	w.t.Helper()
	sent, err := drain(r.Body)
	if err != nil {
		return nil, err
	}
	passed := r.Clone(r.Context())
	if sent != nil {
		passed.Body = io.NopCloser(bytes.NewReader(sent))
	}
	resp, err := w.next.RoundTrip(passed)
	if err != nil {
		return nil, err
	}
	got, err := drain(resp.Body)
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(got))
	for _, breach := range w.contract.check(exchange{r, sent, resp, got}) {
		w.t.Errorf("%s %s was answered with %d, and that is not as described: %s", r.Method, r.URL.EscapedPath(), resp.StatusCode, breach)
	}
	return resp, nil
}

func drain(body io.ReadCloser) ([]byte, error) {
	if body == nil || body == http.NoBody {
		return nil, nil
	}
	defer body.Close()
	return io.ReadAll(body)
}

// exchange is a request and its reply, with both bodies read.
type exchange struct {
	request *http.Request
	sent    []byte
	reply   *http.Response
	got     []byte
}

// check says all that is not as described.
func (c *Contract) check(x exchange) []string {
	op, values, others := c.find(x.request)
	switch status := x.reply.StatusCode; {
	case op != nil:
		return op.check(x, values)
	case len(others) == 0 && status == http.StatusNotFound && len(c.noRoute.content) > 0:
		return c.noRoute.check(x)
	case len(others) > 0 && status == http.StatusMethodNotAllowed && len(c.wrongMethod.content) > 0:
		breaches := c.wrongMethod.check(x)
		if allow := strings.Split(x.reply.Header.Get("Allow"), ", "); !slices.Equal(slices.Sorted(slices.Values(allow)), others) {
			breaches = append(breaches, fmt.Sprintf("the reply's header Allow: it names %q, but %q are described", allow, others))
		}
		return breaches
	}
	return []string{"no such operation is described"}
}

// find looks for the operation of a request, and for the values in its path. Without one, others are the methods that the path has.
func (c *Contract) find(r *http.Request) (found *operation, values map[string]string, others []string) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for _, op := range c.operations {
		v, ok := match(op.path, r.URL.EscapedPath())
		if !ok {
			continue
		}
		others = append(others, op.method)
		if op.method == http.MethodGet {
			others = append(others, http.MethodHead)
		}
		if op.method == method && (found == nil || len(v) < len(values)) { // the path with the fewest variables says it best
			found, values = op, v
		}
	}
	slices.Sort(others)
	return found, values, slices.Compact(others)
}

// match holds a path against a template such as /users/{id}.
func match(template, path string) (map[string]string, bool) {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return nil, false
	}
	values := map[string]string{}
	for i := range want {
		text, err := url.PathUnescape(got[i])
		name, isVariable := strings.CutPrefix(want[i], "{")
		switch {
		case err != nil, isVariable && text == "", !isVariable && text != want[i]:
			return nil, false
		case isVariable:
			values[strings.TrimSuffix(name, "}")] = text
		}
	}
	return values, true
}

func (op *operation) check(x exchange, values map[string]string) []string {
	r, ok := op.responses[x.reply.StatusCode]
	if !ok {
		return []string{fmt.Sprintf("%s is never answered so, but with %d", op.id, slices.Sorted(maps.Keys(op.responses)))}
	}
	breaches := r.check(x)
	if x.reply.StatusCode < 300 {
		breaches = append(breaches, op.checkRequest(x, values)...)
	}
	for i := range breaches {
		breaches[i] = op.id + ": " + breaches[i]
	}
	return breaches
}

func (r response) check(x exchange) []string {
	var breaches []string
	for _, h := range r.headers {
		breaches = append(breaches, h.check("the reply's header", x.reply.Header.Values(h.name))...)
	}
	if x.request.Method == http.MethodHead {
		return breaches
	}
	return append(breaches, r.content.check("the reply's body", x.reply.Header.Get("Content-Type"), x.got)...)
}

// checkRequest is for a request that was taken: it must have had all that is needed, and nothing that is not described.
func (op *operation) checkRequest(x exchange, path map[string]string) []string {
	query := x.request.URL.Query()
	breaches := op.checkToken(x.request)
	for _, p := range op.params {
		var given []string
		switch p.in {
		case "path":
			given = []string{path[p.name]}
		case "query":
			given = query[p.name]
			delete(query, p.name)
		case "header":
			given = x.request.Header.Values(p.name)
		}
		breaches = append(breaches, p.check("the "+p.in+" parameter", given)...)
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		breaches = append(breaches, "the query parameter "+name+": it is not described")
	}
	media := x.request.Header.Get("Content-Type")
	if media == "" && len(op.body) == 1 {
		media = slices.Collect(maps.Keys(op.body))[0] // what else could it be
	}
	switch {
	case len(x.sent) > 0:
		return append(breaches, op.body.check("the request's body", media, x.sent)...)
	case op.needsBody:
		return append(breaches, "the request's body: it is missing")
	}
	return breaches
}

// checkToken tells whether the token has one of the scopes. Whether it is genuine was for the server to see.
func (op *operation) checkToken(r *http.Request) []string {
	if len(op.scopes) == 0 {
		return nil
	}
	parts := strings.Split(r.Header.Get("Authorization"), ".")
	if len(parts) != 3 {
		return []string{"the token: it is missing"}
	}
	var claims token.Claims
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(body, &claims)
	}
	switch {
	case err != nil:
		return []string{"the token: " + err.Error()}
	case !claims.Has(op.scopes...):
		return []string{fmt.Sprintf("the token: it has the scopes %q, but one of %q is needed", claims.Scopes, op.scopes)}
	}
	return nil
}

func (p param) check(where string, given []string) []string {
	where += " " + p.name + ": "
	if len(given) == 0 && p.required {
		return []string{where + "it is missing"}
	}
	var breaches []string
	for _, text := range given {
		if err := p.fits(text); err != nil {
			breaches = append(breaches, where+why(err))
		}
	}
	return breaches
}

// fits takes the text as it is, or else as the number or truth value that it may stand for.
func (p param) fits(text string) error {
	err := p.schema.Validate(text)
	if err == nil {
		return nil
	}
	value, notJSON := jsonschema.UnmarshalJSON(strings.NewReader(text))
	switch value.(type) {
	case json.Number, bool:
		if notJSON == nil {
			return p.schema.Validate(value)
		}
	}
	return err
}

func (c content) check(where, contentType string, body []byte) []string {
	if len(c) == 0 {
		if len(body) > 0 || contentType != "" {
			return []string{fmt.Sprintf("%s: there must be none, but there is %q of type %q", where, clip(body), contentType)}
		}
		return nil
	}
	media, params, err := mime.ParseMediaType(contentType)
	schema := c[media]
	if err != nil || schema == nil {
		return []string{fmt.Sprintf("%s: its type is %q, but only %q are described", where, contentType, slices.Sorted(maps.Keys(c)))}
	}
	value, err := decode(media, params["boundary"], body)
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		return []string{fmt.Sprintf("%s: %s, in %s", where, why(err), clip(body))}
	}
	return nil
}

func decode(media, boundary string, body []byte) (any, error) {
	switch media {
	case "application/json":
		return jsonschema.UnmarshalJSON(bytes.NewReader(body))
	case "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(body))
		return fields(form), err
	case "multipart/form-data":
		form, err := multipart.NewReader(bytes.NewReader(body), boundary).ReadForm(1 << 20)
		if err != nil {
			return nil, err
		}
		return fields(form.Value), nil
	}
	return string(body), nil
}

// fields are those of a form, the first of each name, as forms are read.
func fields(form map[string][]string) map[string]any {
	all := map[string]any{}
	for name, values := range form {
		all[name] = values[0]
	}
	return all
}

// why is what a schema says, on one line and without the name of the schema.
func why(err error) string {
	lines := strings.Split(err.Error(), "\n")
	if len(lines) > 1 {
		lines = lines[1:]
	}
	for i := range lines {
		lines[i] = strings.TrimPrefix(strings.TrimSpace(lines[i]), "- ")
	}
	return strings.Join(lines, "; ")
}

func clip(body []byte) string {
	text := strings.TrimSpace(string(body))
	if len(text) > 500 {
		text = text[:500] + "…"
	}
	return text
}
