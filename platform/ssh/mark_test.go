package ssh

import (
	"strings"
	"testing"
)

// TestMark cuts the same text everywhere.
func TestMark(t *testing.T) {
	const mark = "\x00\x00ID 00000000000000000003\n"
	for text, want := range map[string]struct {
		out  string
		seen bool
	}{
		"":                                  {"", false},
		"plain\n":                           {"plain\n", false},
		mark:                                {"", true},
		"before\n" + mark:                   {"before\n", true},
		"before" + mark + "after":           {"beforeafter", true},
		"zero\x00" + mark:                   {"zero\x00", true},
		"almost\x00\x00ID":                  {"almost\x00\x00ID", false},
		"cut " + mark[:len(mark)-1]:         {"cut " + mark[:len(mark)-1], false},
		"\x00\x00I" + mark + "rest\x00\x00": {"\x00\x00Irest\x00\x00", true},
	} {
		for at := range len(text) + 1 {
			var out, errs strings.Builder
			taken := 0
			o := newOutput(&out, &errs, "ID", func() { taken++ })
			for _, part := range []string{text[:at], text[at:]} {
				if n, err := (*outputErrs)(o).Write([]byte(part)); n != len(part) || err != nil {
					t.Errorf("%q: wrote %d, %v", part, n, err)
				}
			}
			o.flush()
			seen, complete := o.whole()
			if errs.String() != want.out || seen != want.seen || complete || taken != 0 {
				t.Errorf("%q cut at %d: got %q, %v, %v, %d", text, at, errs.String(), seen, complete, taken)
			}
			if _, err := o.Write([]byte("abc")); err != nil || out.String() != "abc" {
				t.Errorf("got %q, %v", out.String(), err)
			}
			if _, complete := o.whole(); complete != want.seen || (taken == 1) != want.seen {
				t.Errorf("%q cut at %d: then it is %v, %d", text, at, complete, taken)
			}
		}
	}
}
