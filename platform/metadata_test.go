package platform

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseSelector(t *testing.T) {
	for text, want := range map[string][]Requirement{
		"a":                          {{Key: "a"}},
		"!a":                         {{Key: "a", Not: true}},
		"a=b":                        {{Key: "a", Values: []string{"b"}}},
		"a==b":                       {{Key: "a", Values: []string{"b"}}},
		"a!=b":                       {{Key: "a", Not: true, Values: []string{"b"}}},
		"a=":                         {{Key: "a", Values: []string{""}}},
		"a in (b,c)":                 {{Key: "a", Values: []string{"b", "c"}}},
		"a notin (b, c)":             {{Key: "a", Not: true, Values: []string{"b", "c"}}},
		"example.org/a=b,!c,d in(e)": {{Key: "example.org/a", Values: []string{"b"}}, {Key: "c", Not: true}, {Key: "d", Values: []string{"e"}}},
		"in":                         {{Key: "in"}},
	} {
		got, err := ParseSelector(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", ",", "a,", "a b", "a in b", "a in (b", "a=b=c", "!a=b", "!", "!!a", "a in ((b))", "-a", "a/b/c", "é"} {
		if got, err := ParseSelector(text); err == nil {
			t.Errorf("%q is taken for %+v", text, got)
		}
	}
}

func FuzzParseSelector(f *testing.F) {
	for _, seed := range []string{"a", "!a", "a=b,c!=d", "a in (b,c)", "a notin (b)", "a in (", ")("} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, err := ParseSelector(text)
		if err != nil {
			return
		}
		for _, r := range all {
			if r.Key == "" || strings.ContainsAny(r.Key, "=!,() ") {
				t.Errorf("%q gives the key %q", text, r.Key)
			}
		}
	})
}

func TestMetadata(t *testing.T) {
	long := strings.Repeat("x", 64)
	value, gone := "v", (*string)(nil)
	m := Metadata{Labels: map[string]string{"a": "b"}}
	m.Apply(MetadataChange{Labels: map[string]*string{"a": gone, "c": &value}})
	if !reflect.DeepEqual(m, Metadata{Labels: map[string]string{"c": "v"}, Annotations: map[string]string{}}) || m.Check() != nil {
		t.Errorf("got %+v, %v", m, m.Check())
	}
	for _, bad := range []Metadata{
		{Labels: map[string]string{long: "v"}}, {Labels: map[string]string{"a": long}}, {Labels: map[string]string{"a b": "v"}}, {Labels: map[string]string{"-a": "v"}},
		{Labels: map[string]string{"a": "b/c"}}, {Labels: map[string]string{"nodots/a": "v"}}, {Labels: map[string]string{"cloudfoundry.org/a": "v"}}, {Labels: map[string]string{"": "v"}},
		{Annotations: map[string]string{"a b": "v"}}, {Annotations: map[string]string{"a": strings.Repeat("x", 5001)}},
	} {
		if bad.Check() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
	good := Metadata{Labels: map[string]string{"example.org/a.b_c-d": "", "A1": "v.1"}, Annotations: map[string]string{"contacts": "Ann & Bob <a@b>"}}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
}
