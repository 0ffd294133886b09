package contract

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/proa-dev/proa/notify"
	"github.com/proa-dev/proa/notify/api"
)

// TestRoutesAreDescribed holds the table of routes and openapi.yaml against each other.
func TestRoutesAreDescribed(t *testing.T) {
	table := map[string][]string{"GET /healthz": nil, "GET /readyz": nil} // these two stand in kit/web
	for _, r := range api.Routes() {
		table[r.Pattern] = r.Scopes
		if r.Open == (len(r.Scopes) > 0) {
			t.Errorf("%s: a route is open or has scopes, and never both", r.Pattern)
		}
	}
	ids := map[string]bool{}
	for _, op := range Load(t).operations {
		name := op.method + " " + op.path
		scopes, ok := table[name]
		if !ok {
			t.Errorf("%s is described, but there is no such route", name)
		}
		delete(table, name)
		if !slices.Equal(slices.Sorted(slices.Values(scopes)), slices.Sorted(slices.Values(op.scopes))) {
			t.Errorf("%s takes the scopes %q, but %q are described", name, scopes, op.scopes)
		}
		if op.id == "" || ids[op.id] || op.at.get("summary").text() == "" {
			t.Errorf("%s needs a summary, and an operationId of its own", name)
		}
		ids[op.id] = true
	}
	for name := range table {
		t.Errorf("%s is a route, but openapi.yaml does not describe it", name)
	}
}

// TestScopesAreExplained looks for a word on each scope where people look for it.
func TestScopesAreExplained(t *testing.T) {
	flows := Load(t).root.get("components").get("securitySchemes").get("oauth").get("flows")
	for _, flow := range flows.keys() {
		for _, r := range api.Routes() {
			for _, scope := range r.Scopes {
				if flows.get(flow).get("scopes").get(scope).text() == "" {
					t.Errorf("%s: %s is not explained", flow, scope)
				}
			}
		}
	}
}

// TestExamplesFit keeps the examples true: there is one for every body and parameter, and each fits its schema.
func TestExamplesFit(t *testing.T) {
	for _, op := range Load(t).operations {
		bodies := []node{op.at.get("requestBody").get("content")}
		for _, status := range op.at.get("responses").keys() {
			bodies = append(bodies, op.at.get("responses").get(status).get("content"))
		}
		for _, body := range bodies {
			for _, media := range body.keys() {
				wantExample(t, op.id, body.get(media))
			}
		}
		for _, p := range op.params {
			wantExample(t, op.id, p.at)
		}
	}
}

func wantExample(t *testing.T, id string, n node) {
	t.Helper()
	example := n.get("example").value
	if example == nil {
		t.Errorf("%s: %s has no example", id, n.pointer)
		return
	}
	if err := n.schema().Validate(example); err != nil {
		t.Errorf("%s: the example at %s does not fit: %s", id, n.pointer, why(err))
	}
}

// TestRepliesAreClosed sees to it that no reply can have a field that is not described.
func TestRepliesAreClosed(t *testing.T) {
	for _, op := range Load(t).operations {
		for status, r := range op.responses {
			if s := r.content["application/json"]; s != nil {
				wantClosed(t, fmt.Sprintf("%s %d", op.id, status), s)
			}
		}
	}
}

func wantClosed(t *testing.T, where string, s *jsonschema.Schema) {
	t.Helper()
	if s.Ref != nil {
		wantClosed(t, where, s.Ref)
	}
	if s.Types != nil && slices.Contains(s.Types.ToStrings(), "object") && s.AdditionalProperties == nil {
		t.Errorf("%s: %s does not say which other fields there may be", where, s.Location)
	}
	for name, p := range s.Properties {
		wantClosed(t, where+"."+name, p)
	}
	if more, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		wantClosed(t, where+".*", more)
	}
	if s.Items2020 != nil {
		wantClosed(t, where+"[]", s.Items2020)
	}
}

// TestLimitsAreDescribed holds the limits and names in openapi.yaml against those in the code.
func TestLimitsAreDescribed(t *testing.T) {
	schemas := Load(t).root.get("components").get("schemas")
	for _, c := range []struct {
		place string
		want  any
	}{
		{"Message/properties/subject/maxLength", notify.MaxSubject},
		{"Message/properties/text/maxLength", notify.MaxText},
		{"Message/properties/html/maxLength", notify.MaxHTML},
		{"TemplatePart/maxLength", notify.MaxTemplate},
		{"Preview/properties/subject/maxLength", notify.MaxSubject},
		{"Preview/properties/text/maxLength", notify.MaxRendered},
		{"Preview/properties/html/maxLength", notify.MaxRendered},
		{"State/enum", []any{notify.Queued, notify.Delivered, notify.Failed, notify.Undeliverable}},
		{"Reason/enum", []any{notify.NoAddress, notify.Suppressed, notify.Unsubscribed, notify.NoMail, notify.UnknownPerson, notify.Inactive, notify.Erased}},
		{"MessageStatus/properties/audience/enum",
			[]any{notify.ToUser, notify.ToSpace, notify.ToOrganization, notify.ToEveryone, notify.ToScope, notify.ToEmail}},
	} {
		if got := schemas.at(schemas.pointer + "/" + c.place).value; fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s is %v, but the code has %v", c.place, got, c.want)
		}
	}
	for of, known := range map[string]map[string]string{"OrganizationMessage": notify.Roles, "SpaceMessage": notify.SpaceRoles} {
		roles, _ := schemas.at(schemas.pointer + "/" + of + "/properties/role/enum").value.([]any)
		for role := range known {
			if !slices.Contains(roles, any(role)) || len(roles) != len(known)+1 {
				t.Errorf("the roles are %v and none, but %q are described", known, roles)
			}
		}
	}
}

// small is a description with one of everything.
const small = `
paths:
  /boats/{id}:
    parameters:
      - {name: id, in: path, required: true, schema: {type: string, pattern: "^[a-z]+$"}}
    put:
      operationId: launch
      security: [{oauth: [boats.write]}, {oauth: [boats.admin]}]
      parameters:
        - {name: crew, in: query, schema: {type: integer, minimum: 1}}
        - {name: Sail, in: header, required: true, schema: {enum: [lateen, crab-claw]}}
      requestBody:
        required: true
        content:
          application/json: {schema: {$ref: "#/components/schemas/Boat"}}
      responses:
        "200":
          headers:
            Speed: {required: true, schema: {type: integer, minimum: 1}}
          content:
            application/json: {schema: {$ref: "#/components/schemas/Boat"}}
        "204": {$ref: "#/components/responses/Gone"}
        "422": {$ref: "#/components/responses/NoRoute"}
    get:
      operationId: look
      security: []
      responses:
        "200": {content: {text/html: {schema: {type: string, pattern: "<p>"}}}}
  /boats/first:
    get:
      operationId: first
      security: []
      responses: {"204": {$ref: "#/components/responses/Gone"}}
  /form:
    post:
      operationId: form
      security: []
      requestBody:
        content:
          application/x-www-form-urlencoded: &sign {schema: {type: object, required: [sign], properties: {sign: {const: "yes"}}}}
          multipart/form-data: *sign
      responses: {"204": {$ref: "#/components/responses/Gone"}}
components:
  responses:
    Gone: {description: nothing}
    NoRoute: {content: {application/json: {schema: {$ref: "#/components/schemas/Refusal"}}}}
    WrongMethod: {content: {application/json: {schema: {$ref: "#/components/schemas/Refusal"}}}}
  schemas:
    Refusal: {type: object, required: [errors]}
    Boat:
      type: object
      additionalProperties: false
      required: [name]
      properties:
        name: {type: string}
        built: {type: string, format: date-time}
`

// said is a test that only notes what it is failed for.
type said struct {
	testing.TB
	all []string
}

func (s *said) Helper()                        {}
func (s *said) Errorf(format string, a ...any) { s.all = append(s.all, fmt.Sprintf(format, a...)) }

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// claiming is a token that says what it is told to. Nobody signed it.
func claiming(scope string) string {
	return "bearer e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"scope":["`+scope+`"]}`)) + ".e30"
}

func TestContractCanFail(t *testing.T) {
	c, err := readContract([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	type header = map[string]string
	good := header{"Authorization": claiming("boats.admin"), "Sail": "lateen", "Content-Type": "application/json"}
	with := func(base header, name, value string) header {
		h := header{name: value}
		for k, v := range base {
			if k != name {
				h[k] = v
			}
		}
		if value == "" {
			delete(h, name)
		}
		return h
	}
	fast := header{"Content-Type": "application/json", "Speed": "9"}
	page := header{"Content-Type": "text/html; charset=utf-8"}
	form := header{"Content-Type": "application/x-www-form-urlencoded"}
	parts := header{"Content-Type": "multipart/form-data; boundary=b"}
	const put, boat = "PUT /boats/proa?crew=3", `{"name":"proa","built":"2026-01-02T03:04:05Z"}`
	const wrong = `{"errors":["no"]}`
	for _, x := range []struct {
		name, request string
		sent          header
		body          string
		status        int
		got           header
		reply         string
		want          string // a part of the one breach; empty: there must be none
	}{
		{"all is well", put, good, boat, 200, fast, boat, ""},
		{"a refusal of what does not fit", "PUT /boats/UP?x=1", nil, "{", 422, fast, wrong, ""},
		{"no type is said, and only one is described", put, with(good, "Content-Type", ""), boat, 200, fast, boat, ""},
		{"a page", "GET /boats/proa", nil, "", 200, page, "<p>Proa</p>", ""},
		{"only the head of a page", "HEAD /boats/proa", nil, "", 200, page, "", ""},
		{"the path without variables is meant", "GET /boats/first", nil, "", 204, nil, "", ""},
		{"a form", "POST /form", form, "sign=yes", 204, nil, "", ""},
		{"a form in parts", "POST /form", parts, "--b\r\nContent-Disposition: form-data; name=sign\r\n\r\nyes\r\n--b--\r\n", 204, nil, "", ""},
		{"a form that may be left out", "POST /form", nil, "", 204, nil, "", ""},
		{"no such path, and the server says so", "GET /ships", nil, "", 404, fast, wrong, ""},
		{"no such method, and the server says so", "PATCH /boats/proa", nil, "", 405, with(fast, "Allow", "GET, HEAD, PUT"), wrong, ""},

		{"unknown status", put, good, boat, 202, fast, boat, "launch is never answered so, but with [200 204 422]"},
		{"an error of the server", put, good, boat, 500, fast, wrong, "launch is never answered so"},
		{"extra field", put, good, boat, 200, fast, `{"name":"proa","mast":1}`, "launch: the reply's body: at '': additional properties 'mast' not allowed"},
		{"missing field", put, good, boat, 200, fast, `{}`, "launch: the reply's body: at '': missing property 'name'"},
		{"wrong type", put, good, boat, 200, fast, `{"name":7}`, "launch: the reply's body: at '/name': got number, want string"},
		{"wrong format", put, good, boat, 200, fast, `{"name":"p","built":"today"}`, "launch: the reply's body: at '/built': 'today' is not valid date-time"},
		{"a refusal of another shape", put, good, boat, 422, fast, `{"error":"no"}`, "launch: the reply's body: at '': missing property 'errors'"},
		{"not JSON", put, good, boat, 200, fast, `proa`, "launch: the reply's body: invalid character 'p'"},
		{"two values", put, good, boat, 200, fast, boat + boat, "launch: the reply's body: invalid character after top-level value"},
		{"wrong content type", put, good, boat, 200, with(fast, "Content-Type", "text/plain"), boat, `launch: the reply's body: its type is "text/plain"`},
		{"no content type", put, good, boat, 200, with(fast, "Content-Type", ""), boat, `launch: the reply's body: its type is ""`},
		{"a body where none is described", put, good, boat, 204, nil, boat, "launch: the reply's body: there must be none"},
		{"a page that is another", "GET /boats/proa", nil, "", 200, page, "Proa", "look: the reply's body: at '': 'Proa' does not match"},
		{"a header of the reply is missing", put, good, boat, 200, with(fast, "Speed", ""), boat, "launch: the reply's header Speed: it is missing"},
		{"a header of the reply is no number", put, good, boat, 200, with(fast, "Speed", "fast"), boat, "launch: the reply's header Speed: at '': got string, want integer"},
		{"a header of the reply is too small", put, good, boat, 200, with(fast, "Speed", "0"), boat, "launch: the reply's header Speed: at '': minimum: got 0, want 1"},

		{"unknown path", "GET /ships", nil, "", 200, fast, wrong, "no such operation is described"},
		{"unknown path with a slash", "GET /boats/", nil, "", 200, fast, wrong, "no such operation is described"},
		{"unknown method", "PATCH /boats/proa", nil, "", 200, fast, wrong, "no such operation is described"},
		{"unknown path, refused in another shape", "GET /ships", nil, "", 404, page, "no", `the reply's body: its type is "text/html`},
		{"wrong method, and one too few is allowed", "PATCH /boats/proa", nil, "", 405, with(fast, "Allow", "GET, HEAD"), wrong, `the reply's header Allow: it names ["GET" "HEAD"]`},

		{"taken without a token", put, with(good, "Authorization", ""), boat, 200, fast, boat, "launch: the token: it is missing"},
		{"taken without the scope", put, with(good, "Authorization", claiming("boats.read")), boat, 200, fast, boat, `launch: the token: it has the scopes ["boats.read"]`},
		{"taken without a body", put, good, "", 200, fast, boat, "launch: the request's body: it is missing"},
		{"taken with a body that does not fit", put, good, `{"name":"proa","mast":1}`, 200, fast, boat, "launch: the request's body: at '': additional properties 'mast'"},
		{"taken with a body of another type", put, with(good, "Content-Type", "text/plain"), boat, 200, fast, boat, `launch: the request's body: its type is "text/plain"`},
		{"taken with a body where none is described", "GET /boats/first", nil, "x", 204, nil, "", "first: the request's body: there must be none"},
		{"taken with a form that does not fit", "POST /form", form, "sign=no", 204, nil, "", "form: the request's body: at '/sign': value must be 'yes'"},
		{"taken without a header", put, with(good, "Sail", ""), boat, 200, fast, boat, "launch: the header parameter Sail: it is missing"},
		{"taken with another header", put, with(good, "Sail", "square"), boat, 200, fast, boat, "launch: the header parameter Sail: at '': value must be one of"},
		{"taken with another path", "PUT /boats/%41", good, boat, 200, fast, boat, "launch: the path parameter id: at '': 'A' does not match"},
		{"taken with another query", "PUT /boats/proa?crew=0", good, boat, 200, fast, boat, "launch: the query parameter crew: at '': minimum: got 0, want 1"},
		{"taken with an unknown query", "PUT /boats/proa?captain=ann", good, boat, 200, fast, boat, "launch: the query parameter captain: it is not described"},
	} {
		t.Run(x.name, func(t *testing.T) {
			method, target, _ := strings.Cut(x.request, " ")
			r, err := http.NewRequestWithContext(t.Context(), method, "http://boats"+target, strings.NewReader(x.body))
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range x.sent {
				r.Header.Set(name, value)
			}
			s := &said{TB: t}
			resp, err := c.Transport(s, roundTrip(func(r *http.Request) (*http.Response, error) {
				if got, err := io.ReadAll(r.Body); err != nil || string(got) != x.body {
					t.Errorf("the server saw %q (%v), want %q", got, err, x.body)
				}
				w := httptest.NewRecorder()
				w.Header()["Content-Type"] = nil // the recorder would guess
				for name, value := range x.got {
					w.Header().Set(name, value)
				}
				w.WriteHeader(x.status)
				_, _ = io.WriteString(w, x.reply)
				return w.Result(), nil
			})).RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if got, err := io.ReadAll(resp.Body); err != nil || string(got) != x.reply {
				t.Errorf("the caller saw %q (%v), want %q", got, err, x.reply)
			}
			switch {
			case x.want == "" && len(s.all) > 0:
				t.Errorf("failed for %q", s.all)
			case x.want != "" && (len(s.all) != 1 || !strings.Contains(s.all[0], x.want)):
				t.Errorf("failed for %q, want one that says %q", s.all, x.want)
			}
		})
	}
}

func TestContractMustBeUsable(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"not YAML", "paths:", "\tpaths", "yaml"},
		{"nothing in it", "paths:", "roads:", "it describes no operation"},
		{"a reference that leads nowhere", `"204": {$ref: "#/components/responses/Gone"}`, `"204": {$ref: "#/components/responses/Lost"}`, "#/components/responses/Lost leads nowhere"},
		{"a reference that leads to itself", "Gone: {description: nothing}", `Gone: {$ref: "#/components/responses/Gone"}`, "in a circle"},
		{"a reference to another file", "Gone: {description: nothing}", `Gone: {$ref: "other.yaml#/Gone"}`, "other.yaml#/Gone leads nowhere"},
		{"a schema that leads nowhere", "#/components/schemas/Refusal", "#/components/schemas/Lost", "/components/schemas/Lost"},
		{"a schema that is none", "name: {type: string}", "name: {type: text}", "at '/properties/name/type': value must be one of"},
		{"a body without a schema", "text/html: {schema: {type: string, pattern: \"<p>\"}}", "text/html: {}", "there is no schema"},
		{"a parameter of the path is missing", "{name: id, in: path,", "{name: ident, in: path,", "the parameter id of the path is not described"},
		{"a status that is none", `"422":`, `"4XX":`, `"4XX" is not a status`},
		{"security is left out", "      security: []\n", "", "security is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(small, c.from, c.to, 1)
			if text == small {
				t.Fatalf("%q is not in the description", c.from)
			}
			_, err := readContract([]byte(text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
