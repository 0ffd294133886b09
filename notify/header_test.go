package notify

import (
	"bytes"
	"mime"
	"net/mail"
	"strings"
	"testing"
)

func TestHeader(t *testing.T) {
	for value, want := range map[string]string{
		"short":                       "Subject: short\r\n",
		"":                            "Subject:\r\n",
		"a  b\r\nc":                   "Subject: a b c\r\n",
		"é":                           "Subject: =?utf-8?q?=C3=A9?=\r\n",
		"=?x":                         "Subject: =?utf-8?q?=3D=3Fx?=\r\n",
		"1 = ? 2":                     "Subject: 1 = ? 2\r\n",
		strings.Repeat("word ", 20):   "Subject:" + strings.Repeat(" word", 13) + "\r\n" + strings.Repeat(" word", 7) + "\r\n",
		strings.Repeat("x", maxWord):  "Subject:\r\n " + strings.Repeat("x", maxWord) + "\r\n",
		strings.Repeat("x", 71):       "Subject: =?utf-8?q?" + strings.Repeat("x", 40) + "?=\r\n =?utf-8?q?" + strings.Repeat("x", 31) + "?=\r\n",
		strings.Repeat("😀", 4) + " x": "Subject: =?utf-8?q?" + strings.Repeat("=F0=9F=98=80", 3) + "?=\r\n =?utf-8?q?=F0=9F=98=80_x?=\r\n",
	} {
		var b bytes.Buffer
		header(&b, "Subject", unstructured(value))
		if b.String() != want {
			t.Errorf("%q: got %q, want %q", value, &b, want)
		}
	}
}

func FuzzUnstructured(f *testing.F) {
	for _, seed := range []string{"", "a b", "é  \r\n x", "=?utf-8?q?a?=", strings.Repeat("x", 200), "😀\x00\u2028\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		value := unstructured(s)
		got, err := new(mime.WordDecoder).DecodeHeader(value)
		if err != nil || got != oneLine(s) {
			t.Fatalf("%q became %q and was read as %q (%v)", s, value, got, err)
		}
		for word := range strings.SplitSeq(value, " ") {
			if len(word) > maxWord || word == "" && value != "" || !isPlain(strings.ReplaceAll(word, "=?", "")) {
				t.Fatalf("%q became %q", s, value)
			}
		}
	})
}

func TestAddress(t *testing.T) {
	for given, want := range map[string]string{
		"ann@example.org": "ann@example.org", "a.b+c_d=e-1@x.example": "a.b+c_d=e-1@x.example", "Ann <ann@example.org>": "ann@example.org",
		"änn@exämple.org": "änn@exämple.org", `"a@b"@example.org`: "a@b@example.org", "o'neil@example.org": "o'neil@example.org",
		strings.Repeat("a", 64) + "@example.org": strings.Repeat("a", 64) + "@example.org",
	} {
		if got, err := Address(given); err != nil || got != want {
			t.Errorf("%q: got %q, %v; want %q", given, got, err, want)
		}
	}
	for _, given := range []string{
		"", "@", "a", "a@", "@b", "a@b@c", ".a@b.example", "a.@b.example", "a..b@c.example", "a@.b", "a@b.", "a@b..c", "a b@c.example", "a@b.example, c@d.example",
		"a@b.example\r\nBcc: c@d.example", "a\x00@b.example", "a@b.example\n", strings.Repeat("a", 65) + "@b.example", "a@" + strings.Repeat("b", 320),
		"a\u200b@b.example", "\u202ea@b.example", "a\u00a0b@c.example", "a@\u2028b.example", "<a@b.example", "a@b_é.example", "\xff@b.example",
	} {
		if got, err := Address(given); err == nil {
			t.Errorf("%q: taken as %q", given, got)
		}
	}
}

// FuzzAddress: what is taken at a glance is what the full reading takes, and what goes on the wire is read as the same address.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{"ann@example.org", "a.b+c@d-e.example", "Ann <ann@example.org>", `"a\"b"@c.example`, "ä@ö.example", "a@[::1]", "a@b."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if parsed, err := mail.ParseAddress(s); isUsual(s) && (err != nil || parsed.Address != s) {
			t.Fatalf("%q is usual, but %v, %v", s, parsed, err)
		}
		a, err := readAddress(s)
		if err != nil {
			return
		}
		wire := wireAddress(a.Address)
		again, err := mail.ParseAddress(wire)
		if err != nil || again.Name != "" || strings.ContainsAny(wire, "\r\n\x00<>") || len(wire) > 900 {
			t.Fatalf("%q goes out as %q (%v)", s, wire, err)
		}
		if isASCII(a.Address) && again.Address != a.Address {
			t.Fatalf("%q goes out as %q, read as %q", s, wire, again.Address)
		}
	})
}
