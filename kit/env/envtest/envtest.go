// Package envtest holds the tables of settings in the documentation against the programs they describe.
package envtest

import (
	"os"
	"strings"
	"testing"

	"github.com/proa-dev/proa/kit/env"
)

// Reference fails when the table of a program's settings on a page is not what its configuration says. With UPDATE set in
// the environment it writes the table.
func Reference(t testing.TB, page, program string, config any) {
	t.Helper()
	begin, end := "<!-- configuration: "+program+" -->\n", "<!-- end "+program+" -->"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the settings of %s", page, program)
	}
	var table strings.Builder
	env.Markdown(&table, config)
	want := before + begin + table.String() + end + after
	switch {
	case string(text) == want:
	case os.Getenv("UPDATE") == "":
		t.Errorf("%s is out of date. Run: UPDATE=1 go test ./cmd/%s -run TestConfigurationReference", page, program)
	default:
		if err := os.WriteFile(page, []byte(want), 0o600); err != nil { //nolint:gosec // a page of the checkout
			t.Fatal(err)
		}
	}
}
