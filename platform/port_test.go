package platform

import (
	"slices"
	"testing"

	"github.com/proa-dev/proa/kit/fault"
)

func TestParsePorts(t *testing.T) {
	for text, want := range map[string]Ports{
		"20000-20009": {20000, 20009}, "1024": {1024, 1024}, " 1 - 60 ": {1, 60}, "65535-65535": {65535, 65535},
		"": {}, "-": {}, "0-5": {}, "-1": {}, "20009-20000": {}, "1-61": {}, "65530-65536": {}, "a-b": {}, "1-2-3": {}, "99999999999999999999": {},
	} {
		if got, err := ParsePorts(text); got != want || (err == nil) != (want != Ports{}) {
			t.Errorf("%q is read as %v: %v", text, got, err)
		}
	}
}

func TestChoosePort(t *testing.T) {
	ports := Ports{20000, 20003}
	seen := map[int]bool{}
	for range 200 {
		port := ports.Choose([]int{20001, 1})
		if !ports.Hold(port) || port == 20001 {
			t.Fatalf("%d was chosen", port)
		}
		seen[port] = true
	}
	if len(seen) != 3 {
		t.Errorf("of three ports only these were chosen: %v", seen)
	}
	for name, none := range map[string]int{"all are taken": ports.Choose([]int{20003, 20002, 20001, 20000}), "there are none": Ports{}.Choose(nil)} {
		if none != 0 {
			t.Errorf("%s, and %d was chosen", name, none)
		}
	}
	if (Ports{}).Hold(0) {
		t.Error("no ports hold port 0")
	}
}

// TestTCPRoute is what a route of tcp may be: the port that is asked for, or why not.
func TestTCPRoute(t *testing.T) {
	const mine, other = "mine", "other"
	taken := []Route{{Port: 20000, SpaceGUID: mine, DomainGUID: "tcp"}, {Port: 20001, SpaceGUID: other, DomainGUID: "tcp"}, {Port: 20002, SpaceGUID: mine, DomainGUID: "old"}}
	all := append(slices.Clone(taken), Route{Port: 20003, SpaceGUID: other, DomainGUID: "tcp"})
	const free = " Choose another, or leave it out and get one that is free."
	for _, test := range []struct {
		name  string
		route Route
		ports Ports
		taken []Route
		want  int
		says  string
	}{
		{"a free port", Route{Port: 20003}, Ports{20000, 20003}, taken, 20003, ""},
		{"any port", Route{}, Ports{20000, 20003}, taken, 20003, ""},
		{"its own again", Route{Port: 20000}, Ports{20000, 20003}, taken, 0, "Route already exists with port '20000' for domain 'tcp.example.org'."},
		{"another space's", Route{Port: 20001}, Ports{20000, 20003}, taken, 0, "Port 20001 is not available on domain 'tcp.example.org': another route has it." + free},
		{"its own under another domain", Route{Port: 20002}, Ports{20000, 20003}, taken, 0, "Port 20002 is not available on domain 'tcp.example.org': another route has it." + free},
		{"below", Route{Port: 19999}, Ports{20000, 20003}, taken, 0, "Port 19999 is not available on domain 'tcp.example.org': it has the ports 20000-20003. Choose one of those, or leave it out and get one that is free."},
		{"negative", Route{Port: -1}, Ports{20000, 20003}, taken, 0, "Port -1 is not available on domain 'tcp.example.org': it has the ports 20000-20003. Choose one of those, or leave it out and get one that is free."},
		{"any, and none is left", Route{}, Ports{20000, 20003}, all, 0, "No port of domain 'tcp.example.org' is free: routes have all of 20000-20003. Delete a route that nobody needs, or ask an administrator for more ports."},
		{"no ports", Route{Port: 20003}, Ports{}, taken, 0, "Domain 'tcp.example.org' is for tcp, and no ports are set aside for it now. Use another domain, or ask an administrator to set PROA_TCP_DOMAIN and PROA_TCP_PORTS."},
		{"a host", Route{Host: "a", Port: 20003}, Ports{20000, 20003}, nil, 0, "Hosts are not supported for TCP routes: those of domain 'tcp.example.org' are told apart by their ports. Leave the host out."},
		{"a wildcard", Route{Host: AnyHost}, Ports{20000, 20003}, nil, 0, "Hosts are not supported for TCP routes: those of domain 'tcp.example.org' are told apart by their ports. Leave the host out."},
		{"a path", Route{Path: "/a", Port: 20003}, Ports{20000, 20003}, nil, 0, "Paths are not supported for TCP routes: those of domain 'tcp.example.org' are told apart by their ports. Leave the path out."},
	} {
		r := test.route
		r.SpaceGUID, r.DomainGUID, r.DomainName, r.Protocol = mine, "tcp", "tcp.example.org", ProtocolTCP
		err := r.Check()
		if err == nil {
			err = r.TakePort(test.ports, test.taken)
		}
		switch {
		case err == nil && (test.says != "" || r.Port != test.want || (Who{}).MayTake(r, Domain{}, nil) != nil):
			t.Errorf("%s: port %d, want %d %s", test.name, r.Port, test.want, test.says)
		case err != nil && fault.From(err).Detail != test.says:
			t.Errorf("%s: %v, want %s", test.name, err, test.says)
		}
	}
	if r := (Route{DomainName: "tcp.example.org", Port: 20000, Protocol: ProtocolTCP}); r.URL() != "tcp.example.org:20000" {
		t.Errorf("it is written %s", r.URL())
	}
}

func TestTCPDestinations(t *testing.T) {
	port := Route{Protocol: ProtocolTCP}
	spoken := port.Spoken([]Destination{{AppGUID: "a", ProcessType: WebProcess}, {AppGUID: "a", ProcessType: WebProcess, Port: 9000, Protocol: ProtocolHTTP1}})
	if spoken[0].Protocol != ProtocolTCP || spoken[1].Protocol != ProtocolHTTP1 || port.CheckDestinations(spoken[:1]) != nil {
		t.Errorf("it speaks %+v", spoken)
	}
	if err := port.CheckDestinations(spoken); err == nil || fault.From(err).Detail != "Protocol must be tcp for a route of tcp, not 'http1'. Leave it out." {
		t.Errorf("a destination of http: %v", err)
	}
	if err := (Route{}).CheckDestinations(spoken); err == nil || fault.From(err).Detail != "Protocol must be http1 or http2 for a route of http, not 'tcp'." {
		t.Errorf("a destination of tcp: %v", err)
	}
	speak := func(protocols ...string) (all []Destination) {
		for _, p := range protocols {
			all = append(all, Destination{AppGUID: "a", ProcessType: WebProcess, Protocol: p})
		}
		return all
	}
	for _, fine := range [][]string{{ProtocolTCP, ProtocolHTTP1}, {ProtocolHTTP2, ProtocolTCP, ProtocolHTTP2}, {ProtocolTCP, ProtocolTCP}} {
		if err := CheckReach(speak(fine...)); err != nil {
			t.Errorf("%v at one port: %v", fine, err)
		}
	}
	if CheckReach(speak(ProtocolTCP, ProtocolHTTP1, ProtocolHTTP2)) == nil {
		t.Error("one port speaks http1 and http2, behind one of tcp")
	}
}
