package kube

import (
	"encoding/json"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/apis/v1alpha2"

	"github.com/proa-dev/proa/platform"
)

var (
	aRoute = platform.WantedRoute{GUID: "0b4ef7a1-2f0f-4d8d-8c0a-5f6de3f9f4a1", Namespace: "space-1", Hostname: "shop.apps.example.org", Path: "/cart", Protocol: platform.ProtocolHTTP,
		Backends: []platform.Backend{{ProcessGUID: "process-1", Port: 8080, Weight: 3}, {ProcessGUID: "process-2", Port: 9090, Weight: 1}}}
	anEntry = platform.Entry{Namespace: "space-1", ProcessGUID: "process-1", Ports: []platform.EntryPort{{Port: 8080, Protocol: platform.ProtocolHTTP1}, {Port: 50051, Protocol: platform.ProtocolHTTP2}}}
	aPort   = platform.WantedRoute{GUID: "4c1f3e6a-0d51-4f2b-9a57-0c2f3f0f6b11", Namespace: "space-1", Port: 20000, Protocol: platform.ProtocolTCP,
		Backends: []platform.Backend{{ProcessGUID: "process-1", Port: 1883, Weight: 1}, {ProcessGUID: "process-2", Port: 1883, Weight: 2}}}
	aBroker = platform.Entry{Namespace: "space-1", ProcessGUID: "process-1", Ports: []platform.EntryPort{{Port: 1883, Protocol: platform.ProtocolTCP}, {Port: 8080, Protocol: platform.ProtocolHTTP1}}}
)

func TestRouteObjects(t *testing.T) {
	route, err := settings.RouteObject(aRoute)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "route.yaml", []runtime.Object{settings.EntryObject(anEntry), route})
	if _, err := settings.RouteObject(platform.WantedRoute{GUID: "x", Backends: make([]platform.Backend, 17)}); err == nil {
		t.Error("a route with 17 backends was made")
	}
	closed := aRoute
	closed.Backends = nil
	if route, err = settings.RouteObject(closed); err != nil {
		t.Fatal(err)
	}
	var back gatewayv1.HTTPRoute
	through(t, route, &back)
	if seen := settings.readRoute(&back); len(route.Spec.Rules) != 1 || seen.Altered || !reflect.DeepEqual(seen.WantedRoute, closed) {
		t.Errorf("a route that leads nowhere is read as %+v", seen)
	}
}

func TestTCPRouteObjects(t *testing.T) {
	named := aPort
	named.Hostname = "tcp.apps.example.org" // which is none of the cluster's business
	route, err := settings.TCPRouteObject(named)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "route_tcp.yaml", []runtime.Object{settings.EntryObject(aBroker), route})
	if _, err := settings.TCPRouteObject(platform.WantedRoute{GUID: "x", Backends: make([]platform.Backend, 17)}); err == nil {
		t.Error("a route with 17 backends was made")
	}
	read := func(change func(*v1alpha2.TCPRoute)) platform.SeenRoute {
		var back v1alpha2.TCPRoute
		through(t, route, &back)
		change(&back)
		return settings.readTCPRoute(&back)
	}
	if got := read(func(*v1alpha2.TCPRoute) {}); !reflect.DeepEqual(got, platform.SeenRoute{WantedRoute: aPort, Name: "t-" + aPort.GUID}) {
		t.Errorf("a route is read as %+v", got)
	}
	if got := read(func(o *v1alpha2.TCPRoute) { o.Name = "other" }); got.GUID != "" {
		t.Errorf("a route of another name is %q", got.GUID)
	}
	for name, change := range map[string]func(*v1alpha2.TCPRoute){
		"gateway":     func(o *v1alpha2.TCPRoute) { o.Spec.ParentRefs[0].Name = "other" },
		"no listener": func(o *v1alpha2.TCPRoute) { o.Spec.ParentRefs[0].SectionName = nil }, // it would take all ports
		"listener":    func(o *v1alpha2.TCPRoute) { o.Spec.ParentRefs[0].SectionName = new(gatewayv1.SectionName("https")) },
		"no port":     func(o *v1alpha2.TCPRoute) { o.Spec.ParentRefs[0].SectionName = new(gatewayv1.SectionName("tcp-x")) },
		"port": func(o *v1alpha2.TCPRoute) {
			o.Spec.ParentRefs[0].SectionName = new(gatewayv1.SectionName("tcp-020000"))
		},
		"parents":   func(o *v1alpha2.TCPRoute) { o.Spec.ParentRefs = append(o.Spec.ParentRefs, o.Spec.ParentRefs[0]) },
		"no rule":   func(o *v1alpha2.TCPRoute) { o.Spec.Rules = nil },
		"rules":     func(o *v1alpha2.TCPRoute) { o.Spec.Rules = append(o.Spec.Rules, o.Spec.Rules[0]) },
		"namespace": func(o *v1alpha2.TCPRoute) { o.Spec.Rules[0].BackendRefs[0].Namespace = new(gatewayv1.Namespace("x")) },
		"no weight": func(o *v1alpha2.TCPRoute) { o.Spec.Rules[0].BackendRefs[0].Weight = nil },
	} {
		if !read(change).Altered {
			t.Errorf("a change of %s is not noticed", name)
		}
	}
	var back corev1.Service
	through(t, settings.EntryObject(aBroker), &back)
	if got := settings.readEntry(&back); got.Altered || !reflect.DeepEqual(got.Entry, aBroker) {
		t.Errorf("its entry is read as %+v", got)
	}
}

// TestReadRoutes reads back what was written, and notices what was altered.
func TestReadRoutes(t *testing.T) {
	route := func(change func(*gatewayv1.HTTPRoute)) platform.SeenRoute {
		o, err := settings.RouteObject(aRoute)
		if err != nil {
			t.Fatal(err)
		}
		var back gatewayv1.HTTPRoute
		through(t, o, &back)
		change(&back)
		return settings.readRoute(&back)
	}
	if got := route(func(*gatewayv1.HTTPRoute) {}); !reflect.DeepEqual(got, platform.SeenRoute{WantedRoute: aRoute, Name: "t-" + aRoute.GUID}) {
		t.Errorf("a route is read as %+v", got)
	}
	if got := route(func(o *gatewayv1.HTTPRoute) { o.Name = "other" }); got.GUID != "" {
		t.Errorf("a route of another name is %q", got.GUID)
	}
	for name, change := range map[string]func(*gatewayv1.HTTPRoute){
		"gateway":   func(o *gatewayv1.HTTPRoute) { o.Spec.ParentRefs[0].Name = "other" },
		"no parent": func(o *gatewayv1.HTTPRoute) { o.Spec.ParentRefs = nil },
		"hostnames": func(o *gatewayv1.HTTPRoute) { o.Spec.Hostnames = append(o.Spec.Hostnames, "x") },
		"no rule":   func(o *gatewayv1.HTTPRoute) { o.Spec.Rules = nil },
		"match":     func(o *gatewayv1.HTTPRoute) { o.Spec.Rules[0].Matches[0].Path.Type = new(gatewayv1.PathMatchExact) },
		"no path":   func(o *gatewayv1.HTTPRoute) { o.Spec.Rules[0].Matches[0].Path = nil },
		"filter": func(o *gatewayv1.HTTPRoute) {
			o.Spec.Rules[0].Filters = []gatewayv1.HTTPRouteFilter{{Type: gatewayv1.HTTPRouteFilterRequestMirror}}
		},
		"namespace": func(o *gatewayv1.HTTPRoute) { o.Spec.Rules[0].BackendRefs[0].Namespace = new(gatewayv1.Namespace("x")) },
		"no port":   func(o *gatewayv1.HTTPRoute) { o.Spec.Rules[0].BackendRefs[0].Port = nil },
	} {
		if !route(change).Altered {
			t.Errorf("a change of %s is not noticed", name)
		}
	}

	entry := func(change func(*corev1.Service)) platform.SeenEntry {
		var back corev1.Service
		through(t, settings.EntryObject(anEntry), &back)
		back.Spec.ClusterIP, back.Spec.SessionAffinity = "10.0.0.1", corev1.ServiceAffinityNone // the cluster's own
		change(&back)
		return settings.readEntry(&back)
	}
	if got := entry(func(*corev1.Service) {}); !reflect.DeepEqual(got, platform.SeenEntry{Entry: anEntry, Name: "p-process-1"}) {
		t.Errorf("an entry is read as %+v", got)
	}
	if got := entry(func(o *corev1.Service) { o.Name = "other" }); got.ProcessGUID != "" {
		t.Errorf("an entry of another name is %q", got.ProcessGUID)
	}
	for name, change := range map[string]func(*corev1.Service){
		"selector": func(o *corev1.Service) { o.Spec.Selector[LabelProcess] = "other" },
		"type":     func(o *corev1.Service) { o.Spec.Type = corev1.ServiceTypeNodePort },
		"target":   func(o *corev1.Service) { o.Spec.Ports[0].TargetPort.StrVal = "other" },
		"protocol": func(o *corev1.Service) { o.Spec.Ports[0].AppProtocol = nil }, // as it would be for a route of tcp
		"words":    func(o *corev1.Service) { o.Spec.Ports[0].AppProtocol = new("https") },
	} {
		if got := entry(change); !got.Altered && reflect.DeepEqual(got.Entry, anEntry) {
			t.Errorf("a change of %s is not noticed", name)
		}
	}
}

// through writes an object as it travels, and reads it.
func through(t *testing.T, from, into any) {
	t.Helper()
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}
