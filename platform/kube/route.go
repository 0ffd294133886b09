package kube

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/proa-dev/proa/platform"
)

// Gateway is the object of the Gateway API that routes are attached to. It takes them from all namespaces.
type Gateway struct{ Namespace, Name string }

// maxBackends is how many the Gateway API lets one rule have.
const maxBackends = 16

// What is spoken to a port, in Kubernetes' words.
const (
	appHTTP = "http"
	appH2C  = "kubernetes.io/h2c"
)

const (
	routePrefix = "t-"
	entryPrefix = "p-"
)

// RouteName is the name of a route's HTTPRoute or TCPRoute.
func RouteName(route string) string { return objectName(routePrefix, route) }

// EntryName is the name of a process's Service.
func EntryName(process string) string { return objectName(entryPrefix, process) }

// RouteObject sends what comes to an address to the Services of processes. Without any the gateway is to say 500, and Traefik says 503.
// Everything that the API server would fill in is said, so that what is read back is what was written.
func (s Settings) RouteObject(w platform.WantedRoute) (*gatewayv1.HTTPRoute, error) {
	backends, err := backendsOf(w)
	if err != nil {
		return nil, err
	}
	path := w.Path
	if path == "" {
		path = "/"
	}
	rule := gatewayv1.HTTPRouteRule{Matches: []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: new(gatewayv1.PathMatchPathPrefix), Value: &path}}}}
	for _, b := range backends {
		rule.BackendRefs = append(rule.BackendRefs, gatewayv1.HTTPBackendRef{BackendRef: b})
	}
	return &gatewayv1.HTTPRoute{
		TypeMeta:   metav1.TypeMeta{APIVersion: gatewayv1.SchemeGroupVersion.String(), Kind: "HTTPRoute"},
		ObjectMeta: s.routeMeta(w),
		Spec: gatewayv1.HTTPRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{s.Gateway.parent()}},
			Hostnames:       []gatewayv1.Hostname{gatewayv1.Hostname(w.Hostname)},
			Rules:           []gatewayv1.HTTPRouteRule{rule},
		},
	}, nil
}

func (s Settings) routeMeta(w platform.WantedRoute) metav1.ObjectMeta {
	return meta(w.Namespace, RouteName(w.GUID), s.labels(roleRoute, map[string]string{LabelRoute: w.GUID}))
}

func backendsOf(w platform.WantedRoute) (all []gatewayv1.BackendRef, err error) {
	if len(w.Backends) > maxBackends {
		return nil, fmt.Errorf("route %s leads to %d ports of processes; a gateway takes at most %d", w.GUID, len(w.Backends), maxBackends)
	}
	for _, b := range w.Backends {
		all = append(all, gatewayv1.BackendRef{
			BackendObjectReference: gatewayv1.BackendObjectReference{
				Group: new(gatewayv1.Group("")), Kind: new(gatewayv1.Kind("Service")),
				Name: gatewayv1.ObjectName(EntryName(b.ProcessGUID)), Port: new(gatewayv1.PortNumber(b.Port)),
			},
			Weight: new(int32(b.Weight)),
		})
	}
	return all, nil
}

// readBackend is the way back from one of those; not if it says too little.
func readBackend(b gatewayv1.BackendRef) (platform.Backend, bool) {
	if b.Port == nil || b.Weight == nil {
		return platform.Backend{}, false
	}
	return platform.Backend{ProcessGUID: strings.TrimPrefix(string(b.Name), entryPrefix), Port: int(*b.Port), Weight: int(*b.Weight)}, true
}

func (g Gateway) parent() gatewayv1.ParentReference {
	return gatewayv1.ParentReference{
		Group: new(gatewayv1.Group(gatewayv1.GroupName)), Kind: new(gatewayv1.Kind("Gateway")),
		Namespace: new(gatewayv1.Namespace(g.Namespace)), Name: gatewayv1.ObjectName(g.Name),
	}
}

// portName is what a port is called in a pod and in a Service.
func portName(port int) string { return fmt.Sprintf("port-%d", port) }

// EntryObject finds the instances of a process that are ready, whatever their release. It asks for ports by name: of two releases
// that run side by side, only the one that has a port is called on it.
func (s Settings) EntryObject(e platform.Entry) *corev1.Service {
	service := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: meta(e.Namespace, EntryName(e.ProcessGUID), s.labels(roleRoute, map[string]string{LabelProcess: e.ProcessGUID})),
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeClusterIP,
			Selector: map[string]string{LabelInstallation: s.Installation, LabelRole: roleApp, LabelProcess: labelValue(e.ProcessGUID)},
		},
	}
	for _, p := range e.Ports {
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{
			Name: portName(p.Port), Protocol: corev1.ProtocolTCP, AppProtocol: appProtocol(p.Protocol),
			Port: int32(p.Port), TargetPort: intstr.FromString(portName(p.Port)),
		})
	}
	return service
}

// appProtocol says nothing of what only connections lead to.
func appProtocol(protocol string) *string {
	switch protocol {
	case platform.ProtocolTCP:
		return nil
	case platform.ProtocolHTTP2:
		return new(appH2C)
	}
	return new(appHTTP)
}

// readRoute is the way back from RouteObject. What has another name than we would give it has no guid, so nobody wants it.
func (s Settings) readRoute(o *gatewayv1.HTTPRoute) platform.SeenRoute {
	seen := seenRoute(o.ObjectMeta, platform.ProtocolHTTP)
	if len(o.Spec.Hostnames) == 1 {
		seen.Hostname = string(o.Spec.Hostnames[0])
	}
	if len(o.Spec.Rules) == 1 && len(o.Spec.Rules[0].Matches) == 1 {
		rule := o.Spec.Rules[0]
		if path := rule.Matches[0].Path; path != nil && path.Value != nil {
			seen.Path = *path.Value
		}
		if seen.Path == "/" {
			seen.Path = ""
		}
		for _, b := range rule.BackendRefs {
			if one, is := readBackend(b.BackendRef); is {
				seen.Backends = append(seen.Backends, one)
			}
		}
	}
	ours, err := s.RouteObject(seen.WantedRoute)
	seen.Altered = err != nil || !equality.Semantic.DeepEqual(ours.Spec, o.Spec)
	return seen
}

func seenRoute(o metav1.ObjectMeta, protocol string) platform.SeenRoute {
	seen := platform.SeenRoute{Name: o.Name, Deleting: o.DeletionTimestamp != nil}
	seen.Namespace, seen.Protocol = o.Namespace, protocol
	if guid := o.Labels[LabelRoute]; RouteName(guid) == o.Name {
		seen.GUID = guid
	}
	return seen
}

// readEntry is the way back from EntryObject.
func (s Settings) readEntry(o *corev1.Service) platform.SeenEntry {
	seen := platform.SeenEntry{Name: o.Name, Deleting: o.DeletionTimestamp != nil}
	seen.Namespace = o.Namespace
	if guid := o.Labels[LabelProcess]; EntryName(guid) == o.Name {
		seen.ProcessGUID = guid
	}
	for _, p := range o.Spec.Ports {
		port := platform.EntryPort{Port: int(p.Port), Protocol: platform.ProtocolHTTP1}
		switch {
		case p.AppProtocol == nil:
			port.Protocol = platform.ProtocolTCP
		case *p.AppProtocol == appH2C:
			port.Protocol = platform.ProtocolHTTP2
		}
		seen.Ports = append(seen.Ports, port)
	}
	ours := s.EntryObject(seen.Entry).Spec
	seen.Altered = ours.Type != o.Spec.Type || !equality.Semantic.DeepEqual(ours.Selector, o.Spec.Selector) || !equality.Semantic.DeepEqual(ours.Ports, o.Spec.Ports)
	return seen
}

// ServeRoute makes a route, or makes it what it should be.
func (c *Cluster) ServeRoute(ctx context.Context, w platform.WantedRoute) error {
	var object runtime.Object
	var err error
	if w.TCP() {
		object, err = c.Settings.TCPRouteObject(w)
	} else {
		object, err = c.Settings.RouteObject(w)
	}
	if err != nil {
		return err
	}
	return c.apply(ctx, []runtime.Object{object})
}

// OpenEntry makes the entry of a process, or makes it what it should be.
func (c *Cluster) OpenEntry(ctx context.Context, e platform.Entry) error {
	return c.apply(ctx, []runtime.Object{c.Settings.EntryObject(e)})
}

// DropRoute removes a route.
func (c *Cluster) DropRoute(ctx context.Context, namespace, name string, tcp bool) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	client, resource := c.endpoint("HTTPRoute")
	if tcp {
		client, resource = c.endpoint("TCPRoute")
	}
	return gone("delete route "+name, client.Delete().Namespace(namespace).Resource(resource).Name(name).Do(ctx).Error())
}

// CloseEntry removes the entry of a process.
func (c *Cluster) CloseEntry(ctx context.Context, namespace, name string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return gone("delete entry "+name, c.core.Services(namespace).Delete(ctx, name, metav1.DeleteOptions{}))
}
