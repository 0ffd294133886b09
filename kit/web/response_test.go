package web_test

import (
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/web"
)

// color is a type with a rule of its own.
type color string

func (c *color) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	if s != "red" && s != "blue" {
		return fault.Unprocessable("color must be red or blue.")
	}
	*c = color(s)
	return nil
}

type boat struct {
	Name   string            `json:"name"`
	Crew   int               `json:"crew"`
	Masts  uint8             `json:"masts"`
	Length float64           `json:"length"`
	Afloat *bool             `json:"afloat"`
	Ports  []string          `json:"ports"`
	Labels map[string]string `json:"labels"`
	Color  color             `json:"color"`
	Hull   struct {
		Depth int `json:"depth"`
	} `json:"hull"`
}

func TestReadFaults(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"string", `{"name": 7}`, "name must be a string, not a number."},
		{"string from a list", `{"name": ["a"]}`, "name must be a string, not a list."},
		{"string from an object", `{"name": {"a": 1}}`, "name must be a string, not an object."},
		{"whole number", `{"crew": "two"}`, "crew must be a whole number, not a string."},
		{"fraction", `{"crew": 1.5}`, "crew must be a whole number, not 1.5."},
		{"negative", `{"masts": -1}`, "masts must be a whole number from 0 up, not -1."},
		{"too large", `{"masts": 256}`, "masts must be a whole number from 0 up, not 256."},
		{"much too large", `{"crew": ` + strings.Repeat("9", 1000) + `}`, "crew must be a whole number, not one so long."},
		{"number", `{"length": true}`, "length must be a number, not true or false."},
		{"boolean", `{"afloat": "yes"}`, "afloat must be true or false, not a string."},
		{"list", `{"ports": "a"}`, "ports must be a list, not a string."},
		{"in a list", `{"ports": ["a", 7]}`, "ports must be a string, not a number."},
		{"map", `{"labels": []}`, "labels must be an object, not a list."},
		{"nested", `{"hull": {"depth": "deep"}}`, "hull.depth must be a whole number, not a string."},
		{"nested object", `{"hull": 3}`, "hull must be an object, not a number."},
		{"a type's own reader", `{"color": 3}`, "color must be a string, not a number."},
		{"not an object", `[1]`, "The body must be an object, not a list."},
		{"syntax", `{"name": blue}`, "The body is not valid JSON at byte 10. Check the syntax there."},
		{"a form", `name=blue`, "The body is not valid JSON at byte 2. Check the syntax there."},
		{"empty", ``, "The body is empty. Send a JSON object."},
		{"blank", " \n", "The body is empty. Send a JSON object."},
		{"truncated", `{"name": "bl`, "The body ends in the middle of a JSON value. Send all of it."},
		{"truncated between", `{"name": "blue",`, "The body ends in the middle of a JSON value. Send all of it."},
		{"another value", `{"name": "blue"} {"name": "red"}`, "The body must hold one JSON value and nothing after it."},
		{"rubbish after", `{"name": "blue"}]`, "The body must hold one JSON value and nothing after it."},
		{"rubbish that is no JSON", `{"name": "blue"} &x`, "The body must hold one JSON value and nothing after it."},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b boat
			err := web.Read(httptest.NewRequest(http.MethodPost, "/", strings.NewReader(c.body)), &b)
			if f := fault.From(err); f.Kind != fault.KindInvalid || f.Detail != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestReadKeepsATypesOwnFault(t *testing.T) {
	var b boat
	err := web.Read(httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"color": "mauve"}`)), &b)
	if f := fault.From(err); f.Kind != fault.KindUnprocessable || f.Detail != "color must be red or blue." {
		t.Error(err)
	}
}

func TestReadTakesJSONOfAnyClaimedType(t *testing.T) {
	for _, kind := range []string{"", "application/json", "application/x-www-form-urlencoded", "text/plain"} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"name":"blue","crew":2,"unknown":1}`+"\n\n"))
		r.Header.Set("Content-Type", kind)
		var b boat
		if err := web.Read(r, &b); err != nil || b.Name != "blue" || b.Crew != 2 {
			t.Errorf("%q: %+v %v", kind, b, err)
		}
	}
}

func TestJSONThatCannotBeEncodedIsAFaultNotHalfAReply(t *testing.T) {
	app, _ := newApp()
	app.Handle("GET /", func(w http.ResponseWriter, _ *http.Request) error {
		return web.JSON(w, http.StatusCreated, map[string]float64{"n": math.NaN()})
	})
	wantFault(t, get(app, "/"), http.StatusInternalServerError, rendered{"", internal})
}

func TestAddr(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:f::/48")}
	for _, c := range []struct {
		name, peer string
		forwarded  []string
		want       string
	}{
		{"direct", "203.0.113.7:1234", nil, "203.0.113.7"},
		{"direct, IPv6", "[2001:db8::7]:1234", nil, "2001:db8::7"},
		{"direct, IPv4 in IPv6", "[::ffff:203.0.113.7]:1234", nil, "203.0.113.7"},
		{"direct, and lies", "203.0.113.7:1234", []string{"198.51.100.1"}, "203.0.113.7"},
		{"direct, and names a proxy", "203.0.113.7:1234", []string{"198.51.100.1, 10.0.0.1"}, "203.0.113.7"},
		{"one proxy", "10.0.0.1:1234", []string{"203.0.113.7"}, "203.0.113.7"},
		{"one proxy that says nothing", "10.0.0.1:1234", nil, "10.0.0.1"},
		{"one proxy, and the caller lies", "10.0.0.1:1234", []string{"198.51.100.1, 203.0.113.7"}, "203.0.113.7"},
		{"one proxy, and the caller names a proxy", "10.0.0.1:1234", []string{"198.51.100.1, 10.0.0.9, 203.0.113.7"}, "203.0.113.7"},
		{"one proxy, and the caller lies in a header of its own", "10.0.0.1:1234", []string{"198.51.100.1", "203.0.113.7"}, "203.0.113.7"},
		{"two proxies", "10.0.0.1:1234", []string{"203.0.113.7, 10.0.0.2"}, "203.0.113.7"},
		{"two proxies, a header each", "10.0.0.1:1234", []string{"198.51.100.1, 203.0.113.7", "10.0.0.2"}, "203.0.113.7"},
		{"proxies only", "10.0.0.1:1234", []string{"10.0.0.3,10.0.0.2"}, "10.0.0.3"},
		{"IPv6 throughout", "[2001:db8:f::1]:1234", []string{"2001:db8::7"}, "2001:db8::7"},
		{"IPv6 neighbour that is no proxy", "[2001:db8:e::1]:1234", []string{"2001:db8::7"}, "2001:db8:e::1"},
		{"proxy as IPv4 in IPv6", "[::ffff:10.0.0.1]:1234", []string{"::ffff:203.0.113.7"}, "203.0.113.7"},
		{"second proxy as IPv4 in IPv6", "10.0.0.1:1234", []string{"203.0.113.7, ::ffff:10.0.0.2"}, "203.0.113.7"},
		{"no spaces and many", "10.0.0.1:1234", []string{"198.51.100.1,  203.0.113.7  ,10.0.0.2"}, "203.0.113.7"},
		{"garbage", "10.0.0.1:1234", []string{"unknown"}, "10.0.0.1"},
		{"garbage left of the caller", "10.0.0.1:1234", []string{"'; DROP TABLE, 203.0.113.7"}, "203.0.113.7"},
		{"garbage left of a proxy", "10.0.0.1:1234", []string{"203.0.113.7, garbage, 10.0.0.2"}, "10.0.0.2"},
		{"empty", "10.0.0.1:1234", []string{""}, "10.0.0.1"},
		{"ends with a comma", "10.0.0.1:1234", []string{"203.0.113.7,"}, "10.0.0.1"},
		{"peer without a port", "203.0.113.7", []string{"198.51.100.1"}, "invalid IP"},
		{"peer unknown", "@", []string{"198.51.100.1"}, "invalid IP"},
	} {
		t.Run(c.name, func(t *testing.T) {
			app := &web.App{Proxies: proxies}
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr = c.peer
			r.Header["X-Forwarded-For"] = c.forwarded
			if got := app.Addr(r).String(); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	t.Run("nobody is trusted unless named", func(t *testing.T) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = "127.0.0.1:1234"
		r.Header.Set("X-Forwarded-For", "203.0.113.7")
		if got := new(web.App).Addr(r).String(); got != "127.0.0.1" {
			t.Error(got)
		}
	})
}
