package auth_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/kit/fault"
)

func FuzzParseFilter(f *testing.F) {
	for _, seed := range []string{
		"",
		" \t\r\n",
		`id gt "6f1b6e0c-7f0a-4a35-b1ab-95a1f2b6a0c1"`,
		`userName eq "x" and origin eq "y"`,
		`id gt "x" and (active eq true or verified ne FALSE)`,
		`emails.value sw 'a@' OR emails co "@example.org" oR familyName pr`,
		`externalId ge -12 and externalId lt 9223372036854775807`,
		`(id eq"a")and(id eq'b'or(meta.created le "2026-01-02T03:04:05Z"))`,
		`id pr or (id pr or (id pr and (id pr and (id pr or id pr))))`,
		`displayName eq "\"\\\/\b\f\n\r\t\u0041\u001f\ud83d\ude00"`,
		`displayName eq 'it\'s "é船😀�"'`,
		`id eq "\u0000"`,
		`id eq "\ud83d\u0041"`,
		`id eq "\ud83`,
		"id eq \"\x00\xff\"",
		`not (groups.value eq null)`,
		`groups.display eq 007.5e3`,
		`emails[type eq "work"] pr`,
		`uſerName eq "x" and actıve pr`,
		strings.Repeat("(", 17) + "id pr" + strings.Repeat(")", 17),
		strings.Repeat("id pr or ", 64) + "id pr",
		`id eq '` + strings.Repeat(`"`, 2100) + `'`,
		strings.Repeat("created pr or ", 63) + `id eq "` + strings.Repeat("x", 3190) + `"`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		filter, err := auth.ParseFilter(text, filterAttrs...)
		if err != nil {
			checkRefusal(t, filter, err)
			return
		}
		filter.After()
		if comparisons := checkTree(t, filter, 0); comparisons > auth.MaxFilterComparisons {
			t.Fatalf("%d comparisons", comparisons)
		}
		canonical := filter.String()
		again, err := auth.ParseFilter(canonical, filterAttrs...)
		if err != nil {
			t.Fatalf("the canonical text %q does not parse: %v", canonical, err)
		}
		if !reflect.DeepEqual(filter, again) || again.String() != canonical {
			t.Fatalf("%q came back as %q", canonical, again)
		}
	})
}

// checkRefusal holds a refusal to its kind, and to a sentence that is safe to log and to show.
func checkRefusal(t *testing.T, filter *auth.Filter, err error) {
	t.Helper()
	got := fault.From(err)
	if filter != nil || got.Kind != fault.KindInvalid || got.Code != "invalid_filter" {
		t.Fatalf("got %v with %+v", filter, got)
	}
	if !utf8.ValidString(got.Detail) || strings.ContainsFunc(got.Detail, unicode.IsControl) || !strings.HasSuffix(got.Detail, ".") {
		t.Fatalf("not a sentence: %q", got.Detail)
	}
}

// checkTree holds every node to what a store may rely on, and counts the comparisons. Depth is that of the parentheses the
// tree cannot do without.
func checkTree(t *testing.T, f *auth.Filter, depth int) int {
	t.Helper()
	if depth > auth.MaxFilterDepth {
		t.Fatalf("nested %d deep", depth)
	}
	switch {
	case f == nil:
		return 0
	case f.Op == auth.And || f.Op == auth.Or:
		if f.Left == nil || f.Right == nil || f.Attr != "" || f.Value != "" || f.Quoted {
			t.Fatalf("half a join: %+v", f)
		}
		left, right := depth, depth
		if f.Op == auth.And && f.Left.Op == auth.Or {
			left++
		}
		if f.Right.Op == auth.Or || f.Right.Op == f.Op {
			right++
		}
		return checkTree(t, f.Left, left) + checkTree(t, f.Right, right)
	}
	checkComparison(t, f)
	return 1
}

func checkComparison(t *testing.T, f *auth.Filter) {
	t.Helper()
	if !slices.Contains(filterAttrs, f.Attr) || f.Left != nil || f.Right != nil {
		t.Fatalf("not a comparison of a known attribute: %+v", f)
	}
	if !utf8.ValidString(f.Value) || strings.ContainsRune(f.Value, 0) {
		t.Fatalf("%q cannot be stored", f.Value)
	}
	if f.Op == auth.Present && (f.Value != "" || f.Quoted) {
		t.Fatalf("pr with a value: %+v", f)
	}
}
