package bounce_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/proa-dev/proa/notify/bounce"
)

const id = "0189f0c27b7a4c3e8d5e6f7a8b9c0d1e"

var path = bounce.Path{Key: bytes.Repeat([]byte{7}, 32), Domain: "bounces.proa.localhost"}

func TestPath(t *testing.T) {
	address := path.For(id)
	local, domain, _ := strings.Cut(address, "@")
	if domain != "bounces.proa.localhost" || len(local) != 51 || local != strings.ToLower(local) {
		t.Errorf("got %q", address)
	}
	if path.For("0189F0C2-7B7A-4C3E-8D5E-6F7A8B9C0D1E") != address {
		t.Error("dashes and case make another address")
	}
	for _, l := range []string{local, strings.ToUpper(local)} {
		if got, ok := path.Open(l); !ok || got != id {
			t.Errorf("Open(%q) = %q, %v", l, got, ok)
		}
	}
	_, mac, ok := bounce.SplitReturnPath(local)
	if !ok || bounce.ReturnPath(id, mac, "bounces.proa.localhost") != address {
		t.Errorf("%q comes apart as %q, %v", local, mac, ok)
	}
}

func TestPathRefuses(t *testing.T) {
	local, _, _ := strings.Cut(path.For(id), "@")
	for name, l := range map[string]string{
		"nothing":         "",
		"no prefix":       strings.TrimPrefix(local, "b+"),
		"another prefix":  "c" + local[1:],
		"no mac":          "b+" + id,
		"an empty mac":    "b+" + id + ".",
		"half a mac":      local[:len(local)-8],
		"a longer mac":    local + "a",
		"a changed mac":   local[:len(local)-1] + map[bool]string{true: "b", false: "a"}[local[len(local)-1] == 'a'],
		"another id":      strings.Replace(local, "0189", "0188", 1),
		"an id not hex":   strings.Replace(local, "0189", "zzzz", 1),
		"other alphabets": strings.Replace(local, "b+", "b＋", 1),
		"folding letters": strings.Replace(local, "0189f", "0189ﬀ", 1),
		"with the domain": path.For(id),
		"a long one":      "b+" + strings.Repeat("a", 1<<20),
	} {
		if got, ok := path.Open(l); ok || got != "" {
			t.Errorf("%s: Open(%.80q) = %q, %v", name, l, got, ok)
		}
	}
	if _, ok := (bounce.Path{Key: []byte("another")}).Open(local); ok {
		t.Error("another key opens it")
	}
	unsigned := bounce.Path{Domain: "bounces.proa.localhost"}
	l, _, _ := strings.Cut(unsigned.For(id), "@")
	if _, ok := unsigned.Open(l); ok {
		t.Error("without a key everybody can sign")
	}
}
