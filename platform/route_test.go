package platform

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestPortsOf(t *testing.T) {
	to := func(kind string, ports ...int) (all []Destination) {
		for _, p := range ports {
			all = append(all, Destination{ProcessType: kind, Port: p})
		}
		return all
	}
	for name, test := range map[string]struct {
		kind string
		all  []Destination
		want []int
	}{
		"web that nothing leads to":      {"web", to("worker", 9000), []int{8080}},
		"a worker that nothing leads to": {"worker", to("web", 0), nil},
		"the default":                    {"web", to("web", 0, 0), []int{8080}},
		"another port only":              {"web", to("web", 9000), []int{9000}},
		"others in ascending order":      {"web", to("web", 9000, 2000, 9000), []int{2000, 9000}},
		"the default comes first":        {"web", to("web", 9000, 2000, 0), []int{8080, 2000, 9000}},
		"the default, said and not said": {"web", to("web", 8080, 2000, 0), []int{8080, 2000}},
		"the default, said":              {"web", to("web", 3000, 8080), []int{8080, 3000}},
		"a worker at its default":        {"worker", to("worker", 0), []int{8080}},
		"each process has its own":       {"worker", slices.Concat(to("web", 0), to("worker", 7000)), []int{7000}},
	} {
		if got := PortsOf(test.kind, test.all); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestHostOf(t *testing.T) {
	for name, want := range map[string]string{
		"shop": "shop", "My Shop!": "my-shop", "a.b_c--d": "a-b-c-d", "-x-": "x", "Übung": "bung", "日本": "app", "": "app",
		strings.Repeat("a", 62) + " b": strings.Repeat("a", 62),
		strings.Repeat("a", 100):       strings.Repeat("a", 63),
	} {
		if got := HostOf(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestRandomHost(t *testing.T) {
	words := regexp.MustCompile(`^my-shop-[a-z]+-[a-z]+$`)
	seen := map[string]bool{}
	for range 100 {
		host := RandomHost("My Shop")
		if r := (Route{Host: host, DomainName: "example.org"}); !words.MatchString(host) || r.Check() != nil {
			t.Fatalf("got %q", host)
		}
		seen[host] = true
	}
	if len(seen) < 50 {
		t.Errorf("of 100 hosts %d are different", len(seen))
	}
	if long := RandomHost(strings.Repeat("a", 300)); len(long) > 63 || !hostLabel.MatchString(long) {
		t.Errorf("got %q", long)
	}
	for name, list := range map[string][]string{"adjectives": adjectives, "nouns": nouns} {
		if distinct := slices.Compact(slices.Sorted(slices.Values(list))); len(distinct) != 64 {
			t.Errorf("there are %d %s", len(distinct), name)
		}
	}
}

func TestParseRoute(t *testing.T) {
	for text, want := range map[string]Route{
		"www.example.org":      {Host: "www", DomainName: "example.org"},
		"WWW.example.org/A/b":  {Host: "www", DomainName: "example.org", Path: "/A/b"},
		"*.example.org":        {Host: "*", DomainName: "example.org"},
		"eu.example.org/x":     {DomainName: "eu.example.org", Path: "/x"}, // the longer domain is meant
		"a.eu.example.org":     {Host: "a", DomainName: "eu.example.org"},
		"a.b.eu.example.org":   {},
		"localhost":            {},
		"example.org:1234":     {DomainName: "example.org", Port: 1234},
		"www.example.org:1234": {Host: "www", DomainName: "example.org", Port: 1234}, // for Check to refuse
		"example.org:":         {},
		"example.org:0":        {},
		"example.org:65536":    {},
		"example.org:+1":       {},
		"example.org:1:2":      {},
		"www.example.org/":     {},
		"www.example.org/a?b":  {},
	} {
		var got Route
		address, err := ParseRoute(text)
		if err == nil {
			for _, name := range address.Domains() {
				if slices.Contains([]string{"example.org", "eu.example.org"}, name) {
					got = address.Of(Domain{Name: name})
					break
				}
			}
		}
		got.Protocol = ""
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v (%v), want %+v", text, got, err, want)
		}
	}
}

func FuzzRouteCheck(f *testing.F) {
	f.Add("www", "/path")
	f.Add("*", "")
	f.Add("a_b", "/a//b")
	f.Fuzz(func(t *testing.T, host, path string) {
		r := Route{Host: host, Path: path, DomainName: "example.org"}
		if r.Check() != nil {
			return
		}
		// What is let through is what the Gateway API takes, and is read back as it was.
		hostname := regexp.MustCompile(`^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
		if !hostname.MatchString(r.Hostname()) || strings.Contains(path, "//") || strings.Contains(path, "/./") || strings.HasSuffix(path, "/..") || strings.ContainsAny(path, "%#? ") {
			t.Fatalf("%q %q is let through", host, path)
		}
		address, err := ParseRoute(r.URL())
		if err != nil || address.Of(Domain{Name: "example.org"}).URL() != r.URL() {
			t.Fatalf("%q is read as %+v: %v", r.URL(), address, err)
		}
	})
}

func TestReserveHosts(t *testing.T) {
	got := ReserveHosts("Apps.example.org", "api", " Login ", "", "uaa.example.com", "api.apps.example.org")
	if want := (Reserved{"api.apps.example.org", "login.apps.example.org", "uaa.example.com"}); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	for host, want := range map[string]string{
		"API.example.com": "[uaa.example.com login.example.com]", "api.sys.corp": "[uaa.example.com login.sys.corp]",
		"api.corp": "[uaa.example.com login.corp]", "localhost": "[uaa.example.com]", "10.0.0.1": "[uaa.example.com]",
		"example.org": "[uaa.example.com]", "example.co.uk": "[uaa.example.com]",
	} {
		if got := fmt.Sprint(ReserveHosts("apps.example.org", "uaa.example.com").Beside(host, "login", "ssh.example.net")); got != want {
			t.Errorf("beside %s: %s, want %s", host, got, want)
		}
	}
}
