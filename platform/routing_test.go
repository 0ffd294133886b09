package platform_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/proa-dev/proa/platform"
)

// text is a step as a line.
func text(s platform.RouteStep) string {
	about := s.Name
	switch {
	case s.Route != nil:
		about = s.Route.GUID + " " + s.Route.Hostname + s.Route.Path
		if s.Route.Port != 0 {
			about += fmt.Sprint(":", s.Route.Port)
		}
		for _, b := range s.Route.Backends {
			about += fmt.Sprintf(" %s:%d*%d", b.ProcessGUID, b.Port, b.Weight)
		}
	case s.Entry != nil:
		about = s.Entry.ProcessGUID
		for _, p := range s.Entry.Ports {
			about += fmt.Sprintf(" %d/%s", p.Port, p.Protocol)
		}
	}
	if s.TCP && s.Route == nil {
		about += " (tcp)"
	}
	return s.Kind.String() + " " + s.Namespace + " " + about + ": " + s.Reason
}

func TestPlanRoutes(t *testing.T) {
	to := func(process string, port int) platform.Backend {
		return platform.Backend{ProcessGUID: process, Port: port, Protocol: platform.ProtocolHTTP1}
	}
	want := func(guid string, backends ...platform.Backend) platform.WantedRoute {
		return platform.WantedRoute{GUID: guid, Namespace: "n", Hostname: guid + ".x", Protocol: platform.ProtocolHTTP, Backends: backends}
	}
	has := func(w platform.WantedRoute) platform.SeenRoute {
		return platform.SeenRoute{WantedRoute: w.Normal(), Name: "t-" + w.GUID}
	}
	entry := func(process string, ports ...int) platform.SeenEntry {
		e := platform.SeenEntry{Name: "p-" + process, Entry: platform.Entry{Namespace: "n", ProcessGUID: process}}
		for _, p := range ports {
			e.Ports = append(e.Ports, platform.EntryPort{Port: p, Protocol: platform.ProtocolHTTP1})
		}
		return e
	}
	port := func(guid string, port int, backends ...platform.Backend) platform.WantedRoute {
		return platform.WantedRoute{GUID: guid, Namespace: "n", Port: port, Protocol: platform.ProtocolTCP, Backends: backends}
	}
	over := func(process string, port int) platform.Backend {
		return platform.Backend{ProcessGUID: process, Port: port, Protocol: platform.ProtocolTCP}
	}
	named := func(w platform.WantedRoute) platform.WantedRoute { w.Hostname = "tcp.x"; return w }
	speaks := func(process string, port int, protocol string) platform.SeenEntry {
		e := entry(process)
		e.Ports = []platform.EntryPort{{Port: port, Protocol: protocol}}
		return e
	}
	type (
		wanted  = []platform.WantedRoute
		routes  = []platform.SeenRoute
		entries = []platform.SeenEntry
	)
	altered := func(s platform.SeenRoute) platform.SeenRoute { s.Altered = true; return s }
	deleting := func(s platform.SeenRoute) platform.SeenRoute { s.Deleting = true; return s }
	const nowhere = "It leads nowhere: the route was deleted or unmapped, its app was stopped, or it was never ours."

	for _, c := range []struct {
		name    string
		wanted  wanted
		routes  routes
		entries entries
		steps   []string
	}{
		{"nothing", nil, nil, nil, nil},
		{"as it should be", wanted{want("a", to("p", 8080))}, routes{has(want("a", to("p", 8080)))}, entries{entry("p", 8080)}, nil},
		{"new: the entry comes first", wanted{want("a", to("p", 8080))}, nil, nil, []string{
			"open-entry n p 8080/http1: Routes lead to this process.",
			"serve-route n a a.x p:8080*1: The cluster does not have it.",
		}},
		{"two routes to a process have one entry", wanted{want("b", to("p", 9090)), want("a", to("p", 8080))}, nil, nil, []string{
			"open-entry n p 8080/http1 9090/http1: Routes lead to this process.",
			"serve-route n a a.x p:8080*1: The cluster does not have it.",
			"serve-route n b b.x p:9090*1: The cluster does not have it.",
		}},
		{"gone: the entry goes last", nil, routes{has(want("a", to("p", 8080)))}, entries{entry("p", 8080)}, []string{
			"drop-route n t-a: " + nowhere,
			"close-entry n p-p: No route leads to it.",
		}},
		{"nothing runs that it leads to, and another would catch its requests", wanted{want("a")}, routes{has(want("a", to("p", 8080)))}, entries{entry("p", 8080)}, []string{
			"serve-route n a a.x: It is to lead elsewhere.",
			"close-entry n p-p: No route leads to it.",
		}},
		{"another port: given before it is taken", wanted{want("a", to("p", 9090))}, routes{has(want("a", to("p", 8080)))}, entries{entry("p", 8080)}, []string{
			"open-entry n p 8080/http1 9090/http1: Routes lead to other ports: 9090.",
			"serve-route n a a.x p:9090*1: It is to lead elsewhere.",
			"narrow-entry n p 9090/http1: No route leads to other ports than 9090.",
		}},
		{"a port that nobody needs", wanted{want("a", to("p", 8080))}, routes{has(want("a", to("p", 8080)))}, entries{entry("p", 8080, 9090)}, []string{
			"narrow-entry n p 8080/http1: No route leads to other ports than 8080.",
		}},
		{"another app takes over", wanted{want("a", to("q", 8080))}, routes{has(want("a", to("p", 8080)))}, entries{entry("p", 8080)}, []string{
			"open-entry n q 8080/http1: Routes lead to this process.",
			"serve-route n a a.x q:8080*1: It is to lead elsewhere.",
			"close-entry n p-p: No route leads to it.",
		}},
		{"another protocol", wanted{want("a", platform.Backend{ProcessGUID: "p", Port: 8080, Protocol: platform.ProtocolHTTP2})}, routes{has(want("a", to("p", 8080)))}, entries{entry("p", 8080)}, []string{
			"open-entry n p 8080/http2: Routes lead to other ports: 8080.",
		}},
		{"the same backend twice, in any order", wanted{want("a", to("q", 1), to("p", 8080), to("q", 1))}, nil, entries{entry("p", 8080), entry("q", 1)}, []string{
			"serve-route n a a.x p:8080*1 q:1*2: The cluster does not have it.",
		}},
		{"altered by hand", wanted{want("a", to("p", 8080))}, routes{altered(has(want("a", to("p", 8080))))}, entries{{Name: "p-p", Altered: true, Entry: entry("p", 8080).Entry}}, []string{
			"open-entry n p 8080/http1: It was altered, or our settings were.",
			"serve-route n a a.x p:8080*1: It was altered, or our settings were.",
		}},
		{"on their way out", nil, routes{deleting(has(want("a", to("p", 8080))))}, entries{{Name: "p-p", Deleting: true, Entry: entry("p", 8080).Entry}}, nil},
		{"on their way out, and wanted", wanted{want("a", to("p", 8080))}, routes{deleting(has(want("a", to("p", 8080))))}, entries{{Name: "p-p", Deleting: true, Entry: entry("p", 8080).Entry}}, nil},
		{"never ours, under our labels", wanted{want("a", to("p", 8080))}, routes{has(want("a", to("p", 8080))), {Name: "stray", WantedRoute: platform.WantedRoute{Namespace: "n"}}}, entries{entry("p", 8080), {Name: "stray", Entry: platform.Entry{Namespace: "n"}}}, []string{
			"drop-route n stray: " + nowhere,
			"close-entry n stray: No route leads to it.",
		}},
		{"a port", wanted{port("a", 1024, over("p", 9000))}, nil, nil, []string{
			"open-entry n p 9000/tcp: Routes lead to this process.",
			"serve-route n a :1024 p:9000*1: The cluster does not have it.",
		}},
		{"a port that is as it should be: the cluster knows no name of it", wanted{named(port("a", 1024, over("p", 9000)))}, routes{has(port("a", 1024, over("p", 9000)))}, entries{speaks("p", 9000, platform.ProtocolTCP)}, nil},
		{"a port that leads elsewhere", wanted{port("a", 1024, over("p", 9000))}, routes{has(port("a", 1025, over("p", 9000)))}, entries{speaks("p", 9000, platform.ProtocolTCP)}, []string{
			"serve-route n a :1024 p:9000*1: It is to lead elsewhere.",
		}},
		{"http and a port at one place: it speaks http", wanted{port("a", 1024, over("p", 8080)), want("b", to("p", 8080))}, routes{has(port("a", 1024, over("p", 8080)))}, entries{speaks("p", 8080, platform.ProtocolTCP)}, []string{
			"open-entry n p 8080/http1: Routes lead to other ports: 8080.",
			"serve-route n b b.x p:8080*1: The cluster does not have it.",
		}},
		{"a port that another has now: the old one goes first", wanted{port("b", 1024, over("q", 9000))}, routes{has(port("a", 1024, over("p", 9000)))}, entries{speaks("p", 9000, platform.ProtocolTCP), speaks("q", 9000, platform.ProtocolTCP)}, []string{
			"yield-route n t-a (tcp): Another route has its port now.",
			"serve-route n b :1024 q:9000*1: The cluster does not have it.",
			"close-entry n p-p: No route leads to it.",
		}},
		{"a port that is gone", nil, routes{has(port("a", 1024, over("p", 9000)))}, nil, []string{"drop-route n t-a (tcp): " + nowhere}},
		{"of the same name, and the other kind", wanted{want("a", to("p", 8080))}, routes{has(want("a", to("p", 8080))), has(port("a", 1024, over("p", 9000)))}, entries{entry("p", 8080)}, []string{
			"drop-route n t-a (tcp): " + nowhere,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 5 {
				rand.Shuffle(len(c.wanted), func(i, j int) { c.wanted[i], c.wanted[j] = c.wanted[j], c.wanted[i] })
				rand.Shuffle(len(c.routes), func(i, j int) { c.routes[i], c.routes[j] = c.routes[j], c.routes[i] })
				var got []string
				for _, s := range platform.PlanRoutes(c.wanted, c.routes, c.entries) {
					got = append(got, text(s))
				}
				if !slices.Equal(got, c.steps) {
					t.Fatalf("the steps are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.steps, "\n"))
				}
			}
		})
	}
}

// BenchmarkPlanRoutes is a pass in which nothing has changed.
func BenchmarkPlanRoutes(b *testing.B) {
	for _, n := range []int{10, 1000, 10000} {
		var wanted []platform.WantedRoute
		var routes []platform.SeenRoute
		var entries []platform.SeenEntry
		for i := range n {
			process := fmt.Sprintf("process-%d", i)
			w := platform.WantedRoute{GUID: fmt.Sprintf("route-%d", i), Namespace: "n", Hostname: fmt.Sprintf("h%d.x", i), Protocol: platform.ProtocolHTTP,
				Backends: []platform.Backend{{ProcessGUID: process, Port: 8080, Protocol: platform.ProtocolHTTP1}}}
			wanted, routes = append(wanted, w), append(routes, platform.SeenRoute{WantedRoute: w.Normal()})
			entries = append(entries, platform.SeenEntry{Entry: platform.Entry{Namespace: "n", ProcessGUID: process, Ports: []platform.EntryPort{{Port: 8080, Protocol: platform.ProtocolHTTP1}}}})
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if steps := platform.PlanRoutes(wanted, routes, entries); len(steps) > 0 {
					b.Fatal(text(steps[0]))
				}
			}
		})
	}
}
