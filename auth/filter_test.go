package auth_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/kit/fault"
)

var filterAttrs = []string{
	"id", "userName", "email", "origin", "name.givenName", "name.familyName", "active", "verified", "externalId",
	"meta.created", "meta.lastModified", "displayName", "groups.display", "groups.value",
}

func TestParseFilterAndItsCanonicalText(t *testing.T) {
	for _, c := range []struct{ name, filter, want string }{
		{"as cf sends it", `userName eq "ann" and origin eq "uaa"`, `userName eq "ann" and origin eq "uaa"`},
		{"a keyset walk", `id gt "6f1b"`, `id gt "6f1b"`},
		{"any case", `USERNAME Eq "Ann" OR Active eQ TRUE`, `userName eq "Ann" or active eq true`},
		{"every operator", `id ne "a" or id ge "a" or id lt "a" or id le "a" or id sw "a" or id co "a" or id pr`,
			`id ne "a" or id ge "a" or id lt "a" or id le "a" or id sw "a" or id co "a" or id pr`},
		{"aliases", `emails.value sw "a" and emails pr and familyname eq "b" and GivenName eq "c" and created gt "d" and lastModified lt "e"`,
			`email sw "a" and email pr and name.familyName eq "b" and name.givenName eq "c" and meta.created gt "d" and meta.lastModified lt "e"`},
		{"single quotes", `userName eq 'say "hi"' or userName eq 'it\'s'`, `userName eq "say \"hi\"" or userName eq "it's"`},
		{"escapes", `id eq "\"\\\/\b\f\n\r\t\u0041\u001f\ud83d\ude00"`, `id eq "\"\\/\b\f\n\r\tA\u001f😀"`},
		{"characters of any script", `userName eq "Zoë 船 �"`, `userName eq "Zoë 船 �"`},
		{"an empty string", `externalId eq ""`, `externalId eq ""`},
		{"numbers", `externalId eq 0 or externalId gt -12 or externalId le 9223372036854775807`,
			`externalId eq 0 or externalId gt -12 or externalId le 9223372036854775807`},
		{"no space where none is needed", `(id eq"a")and(id eq'b'or id pr)`, `id eq "a" and (id eq "b" or id pr)`},
		{"any blank", " id\teq\r\n\"a\" ", `id eq "a"`},
		{"parentheses nobody needs", `((id pr) and ((email pr) and active pr)) or (origin pr)`,
			`id pr and (email pr and active pr) or origin pr`},
		{"deepest nesting", strings.Repeat("(", auth.MaxFilterDepth) + "id pr" + strings.Repeat(")", auth.MaxFilterDepth), `id pr`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := mustParse(t, c.filter)
			if got := f.String(); got != c.want {
				t.Fatalf("canonical text\n got %s\nwant %s", got, c.want)
			}
			if again := mustParse(t, c.want); !reflect.DeepEqual(f, again) {
				t.Fatal("the canonical text does not parse back to an equal filter")
			}
		})
	}
}

func TestParseFilterTree(t *testing.T) {
	is := func(attr, value string) *auth.Filter {
		return &auth.Filter{Op: auth.Eq, Attr: attr, Value: value, Quoted: true}
	}
	join := func(op auth.Op, left, right *auth.Filter) *auth.Filter {
		return &auth.Filter{Op: op, Left: left, Right: right}
	}
	a, b, c := is("id", "a"), is("email", "b"), is("origin", "c")
	for filter, want := range map[string]*auth.Filter{
		"":                               nil,
		" \t\r\n":                        nil,
		`active ne FALSE`:                {Op: auth.Ne, Attr: "active", Value: "false"},
		`active eq "false"`:              {Op: auth.Eq, Attr: "active", Value: "false", Quoted: true},
		`externalId lt -7`:               {Op: auth.Lt, Attr: "externalId", Value: "-7"},
		`email PR`:                       {Op: auth.Present, Attr: "email"},
		`A or B and C`:                   join(auth.Or, a, join(auth.And, b, c)),
		`A and B or C`:                   join(auth.Or, join(auth.And, a, b), c),
		`(A or B) and C`:                 join(auth.And, join(auth.Or, a, b), c),
		`A and (B or C)`:                 join(auth.And, a, join(auth.Or, b, c)),
		`A and B and C`:                  join(auth.And, join(auth.And, a, b), c),
		`A and (B and C)`:                join(auth.And, a, join(auth.And, b, c)),
		`A or B or C`:                    join(auth.Or, join(auth.Or, a, b), c),
		`A or (B or C)`:                  join(auth.Or, a, join(auth.Or, b, c)),
		`A or B and (C or A) and B or C`: join(auth.Or, join(auth.Or, a, join(auth.And, join(auth.And, b, join(auth.Or, c, a)), b)), c),
	} {
		filter = strings.NewReplacer("A ", `id eq "a" `, "A)", `id eq "a")`, "B", `email eq "b"`, "C", `origin eq "c"`).Replace(filter)
		t.Run(filter, func(t *testing.T) {
			got := mustParse(t, filter)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("got %s, want %s", got, want)
			}
			if again := mustParse(t, got.String()); !reflect.DeepEqual(again, want) {
				t.Fatalf("%s does not parse back to an equal filter", got)
			}
		})
	}
}

func TestParseFilterRefusals(t *testing.T) {
	const (
		value   = `a value was expected. Put text in double quotes, or write true, false or a whole number.`
		quote   = `a value was expected. Put text in double quotes; only true, false and whole numbers stand without them.`
		ops     = `an operator was expected. Use eq, ne, gt, ge, lt, le, sw, co or pr.`
		escape  = `has an unknown escape. Use \" \\ \/ \b \f \n \r \t or \u with four hexadecimal digits.`
		pair    = `has half of a surrogate pair. Write both halves, as in \ud83d\ude00, or the character itself.`
		noOrder = `True and false have no order; compare them with eq or ne.`
	)
	for _, c := range []struct{ filter, want string }{
		{`shoe eq "x"`, `At character 1 the filter has "shoe", where an attribute was expected. Use one of: id, userName, email, origin, ` +
			`name.givenName, name.familyName, active, verified, externalId, meta.created, meta.lastModified, displayName, groups.display, groups.value.`},
		{`userName`, `At character 9 the filter ends, where ` + ops},
		{`userName like "x"`, `At character 10 the filter has "like", where ` + ops},
		{`userName "eq" "x"`, `At character 10 the filter has the string "eq", where ` + ops},
		{`userName and "x"`, `At character 10 the filter has "and", where ` + ops},
		{`userName eq`, `At character 12 the filter ends, where ` + value},
		{`userName eq )`, `At character 13 the filter has ), where ` + value},
		{`userName eq fred`, `At character 13 the filter has "fred", where ` + quote},
		{`userName eq 007`, `At character 13 the filter has "007", where ` + quote},
		{`userName eq +1`, `At character 13 the filter has "+1", where ` + quote},
		{`userName eq -`, `At character 13 the filter has "-", where ` + quote},
		{`userName eq 1.5`, `At character 13 the filter has "1.5", where ` + quote},
		{`userName eq nULL`, `At character 13 the filter has "nULL", where a value was expected. ` +
			`Null cannot be compared; write pr to find what has a value.`},
		{`externalId eq 9223372036854775808`, `At character 15 the filter has "9223372036854775808", where a smaller number was expected. ` +
			`Whole numbers have at most 64 bits.`},
		{`userName sw 12`, `At character 13 the filter has "12", where a string after sw was expected. Put text in double quotes.`},
		{`userName co`, `At character 12 the filter ends, where a string after co was expected. Put text in double quotes.`},
		{`active gt true`, `At character 11 the filter has "true", where a string or a number after gt was expected. ` + noOrder},
		{`not (id pr)`, `At character 1 the filter has "not", where a comparison was expected. ` +
			`Negation is not supported; compare with ne instead.`},
		{`"id" eq "x"`, `At character 1 the filter has the string "id", where an attribute or ( was expected.`},
		{`(id pr`, `At character 7 the filter ends, where and, or or ) was expected.`},
		{`id pr)`, `At character 6 the filter has ), where and, or or the end of the filter was expected.`},
		{`()`, `At character 2 the filter has ), where an attribute or ( was expected.`},
		{`id pr and`, `At character 10 the filter ends, where an attribute or ( was expected.`},
		{`id pr email pr`, `At character 7 the filter has "email", where and, or or the end of the filter was expected.`},
		{`id pr "x"`, `At character 7 the filter has the string "x", where and, or or the end of the filter was expected.`},
		{`userName eq "é船😀" shoe`, `At character 19 the filter has "shoe", where and, or or the end of the filter was expected.`},
		{`userName eq ` + strings.Repeat("ż", 50), `At character 13 the filter has "` + strings.Repeat("ż", 40) + `…", where ` + quote},
		{"shoe\x1b[2J pr or id pr", `At character 1 the filter has "shoe\x1b[2J", where an attribute was expected. Use one of: ` +
			strings.Join(filterAttrs, ", ") + `.`},
		{`id eq "x`, `At character 7 the filter opens a string that never ends. Close it with ".`},
		{`id eq 'x"`, `At character 7 the filter opens a string that never ends. Close it with '.`},
		{`id eq "x\"`, `At character 7 the filter opens a string that never ends. Close it with ".`},
		{"id eq \"a\tb\"", `At character 9 the filter has a control character in a string. Write it as \u0009.`},
		{`id eq "\x41"`, `At character 8 the filter ` + escape},
		{`id eq "\'"`, `At character 8 the filter ` + escape},
		{`id eq "\u00g0"`, `At character 8 the filter ` + escape},
		{`id eq "\u00`, `At character 8 the filter ` + escape},
		{`id eq "\`, `At character 8 the filter ` + escape},
		{`id eq "\ud83d"`, `At character 8 the filter ` + pair},
		{`id eq "\ud83dx"`, `At character 8 the filter ` + pair},
		{`id eq "\ud83d\u0041"`, `At character 8 the filter ` + pair},
		{`id eq "\ude00\ud83d"`, `At character 8 the filter ` + pair},
		{`id eq "a\u0000"`, `At character 9 the filter has a NUL character. Leave it out.`},
		{"id eq \"a\x00\"", `At character 9 the filter has a NUL character. Leave it out.`},
		{"id eq \"é\xff\"", `At character 9 the filter has a byte that is not UTF-8. Send it as UTF-8.`},
		{strings.Repeat("(", 17) + `id pr`, `At character 17 the filter has (, where a comparison after 16 nested parentheses was expected. ` +
			`Group less deeply.`},
		{strings.Repeat("id pr or ", 64) + `id pr`, `At character 577 the filter has "id", where the end after 64 comparisons was expected. ` +
			`Ask in several requests.`},
		{strings.Repeat(" ", 4097), `The filter takes 4097 bytes, and at most 4096 are taken. Ask in several requests.`},
		{`id eq '` + strings.Repeat(`"`, 4000) + `'`, `The filter takes 8008 bytes, and at most 4096 are taken. Ask in several requests.`},
	} {
		t.Run(c.filter, func(t *testing.T) {
			f, err := auth.ParseFilter(c.filter, filterAttrs...)
			if err == nil {
				t.Fatalf("parsed as %s", f)
			}
			got := fault.From(err)
			if f != nil || got.Kind != fault.KindInvalid || got.Code != "invalid_filter" || got.Detail != c.want {
				t.Fatalf("got %v with %+v\nwant %s", f, got, c.want)
			}
		})
	}
}

func TestParseFilterTakesOnlyTheAttributesOfThePlace(t *testing.T) {
	for _, filter := range []string{`emails pr`, `userName pr`, `created pr`} {
		if f, err := auth.ParseFilter(filter, "id", "displayName"); err == nil {
			t.Errorf("%s was taken as %s, though neither it nor what it stands for is filtered there", filter, f)
		}
	}
	if f, err := auth.ParseFilter(`Created pr`, "created", "meta.created"); err != nil || f.Attr != "created" {
		t.Errorf("an attribute must win over an alias: %v, %v", f, err)
	}
	const want = `At character 1 the filter has "id", where the end of the filter was expected. Nothing can be filtered here.`
	if _, err := auth.ParseFilter(`id pr`); err == nil || err.Error() != want {
		t.Errorf("without attributes: %v", err)
	}
}

func TestFilterLimitsAreInclusive(t *testing.T) {
	mustParse(t, strings.Repeat("id pr or ", auth.MaxFilterComparisons-1)+"id pr")
	mustParse(t, `id eq "`+strings.Repeat("x", auth.MaxFilterBytes-len(`id eq ""`))+`"`)
	// Groups beside each other are not groups within each other.
	mustParse(t, strings.Repeat("(id pr) or ", auth.MaxFilterDepth+1)+"(id pr)")
}

func TestFilterAfter(t *testing.T) {
	for filter, want := range map[string]string{
		`id gt "x"`:                    "x",
		`ID GT ''`:                     "",
		`id gt "x" and active eq true`: "x",
		`origin eq "uaa" and (active pr and id gt "x")`: "x",
		`id gt "x" and (email pr or id gt "y")`:         "x",
		`id gt "x" and id lt "z"`:                       "x",
		``:                                              "-",
		`id ge "x"`:                                     "-",
		`id gt 5`:                                       "-",
		`externalId gt "x"`:                             "-",
		`id gt "x" or active eq true`:                   "-",
		`id gt "x" and id gt "y"`:                       "-",
		`active pr and (id gt "x" or id gt "y")`:        "-",
		`(id gt "x" and email pr) or origin eq "uaa"`:   "-",
		`id gt "x" and (email pr and id gt "x")`:        "-",
	} {
		id, ok := mustParse(t, filter).After()
		if ok != (want != "-") || ok && id != want {
			t.Errorf("%s: got %q, %t; want %q", filter, id, ok, want)
		}
	}
}

func mustParse(t *testing.T, filter string) *auth.Filter {
	t.Helper()
	f, err := auth.ParseFilter(filter, filterAttrs...)
	if err != nil {
		t.Fatalf("%s: %v", filter, err)
	}
	return f
}
