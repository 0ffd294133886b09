package deliver

import (
	"bufio"
	"bytes"
	"io"
	"net/textproto"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzWireLines holds what goes over the wire against another reader of dots: the same lines come out, and nothing after them.
func FuzzWireLines(f *testing.F) {
	for _, seed := range []string{"", ".", "a\r\n.\r\nb", "\n.\n", "\r.\r", "..\r\r\n.\n\r", "a\r\n\r\n.b\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		l, no := newLetter(Envelope{To: "ann@example.org", Raw: raw}, nil)
		if no != nil {
			t.Fatal(no)
		}
		lines := l.raw
		rest := bytes.ReplaceAll(lines, []byte("\r\n"), nil)
		if bytes.ContainsAny(rest, "\r\n") || !bytes.HasSuffix(lines, []byte("\r\n")) {
			t.Fatalf("%q became %q: a line does not end with CR LF", raw, lines)
		}
		if again, _ := wireLines(lines); !bytes.Equal(again, lines) {
			t.Fatalf("%q is not stable: %q", lines, again)
		}
		r := textproto.NewReader(bufio.NewReader(bytes.NewReader(append(l.appendData(nil), "next"...))))
		got, err := io.ReadAll(r.DotReader())
		if want := bytes.ReplaceAll(lines, []byte("\r\n"), []byte("\n")); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%q arrived as %q: %v", lines, got, err)
		}
		if after, _ := io.ReadAll(r.R); string(after) != "next" {
			t.Fatalf("%q left %q", lines, after)
		}
	})
}

// FuzzReply reads whatever a relay may say.
func FuzzReply(f *testing.F) {
	f.Add(550, "5.1.1 <ann@example.org>: no\n5.1.1 really", "ann@example.org")
	f.Add(421, "4.4.2 \"ann b\"@example.org\x00\u2028", "a.b@example.org")
	f.Add(552, "ann@example.organn@example.org", "ann@example.org")
	f.Fuzz(func(t *testing.T, code int, text, to string) {
		l, no := newLetter(Envelope{From: "b@example.com", To: to, Raw: []byte("A: b")}, nil)
		if no != nil {
			if !no.Permanent || no.Reason == "" {
				t.Fatalf("%q: %+v", to, no)
			}
			return
		}
		got := refusal(code, text, l)
		if !utf8.ValidString(got.Reason) || utf8.RuneCountInString(got.Reason) > maxReason || strings.ContainsFunc(got.Reason, unicode.IsControl) {
			t.Fatalf("%q became %q", text, got.Reason)
		}
		if strings.Contains(got.Reason, l.to) {
			t.Fatalf("%q became %q, which names %s", text, got.Reason, l.to)
		}
		if got.Permanent && code < 500 {
			t.Fatalf("%d is permanent", code)
		}
	})
}
