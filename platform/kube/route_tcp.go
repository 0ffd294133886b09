package kube

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/apis/v1alpha2"

	"github.com/proa-dev/proa/platform"
)

// listenerPrefix is how the listeners of a Gateway are called that take connections of tcp; the port follows.
const listenerPrefix = "tcp-"

// TCPRouteObject sends connections that come to a port of the gateway to the Services of processes.
func (s Settings) TCPRouteObject(w platform.WantedRoute) (*v1alpha2.TCPRoute, error) {
	backends, err := backendsOf(w)
	if err != nil {
		return nil, err
	}
	parent := s.TCPGateway.parent()
	parent.SectionName = new(gatewayv1.SectionName(fmt.Sprint(listenerPrefix, w.Port)))
	return &v1alpha2.TCPRoute{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha2.SchemeGroupVersion.String(), Kind: "TCPRoute"},
		ObjectMeta: s.routeMeta(w),
		Spec: v1alpha2.TCPRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{parent}},
			Rules:           []v1alpha2.TCPRouteRule{{BackendRefs: backends}},
		},
	}, nil
}

// readTCPRoute is the way back from TCPRouteObject. Under which domain the port is known is none of the cluster's business.
func (s Settings) readTCPRoute(o *v1alpha2.TCPRoute) platform.SeenRoute {
	seen := seenRoute(o.ObjectMeta, platform.ProtocolTCP)
	if parents := o.Spec.ParentRefs; len(parents) == 1 && parents[0].SectionName != nil {
		if text, is := strings.CutPrefix(string(*parents[0].SectionName), listenerPrefix); is {
			seen.Port, _ = strconv.Atoi(text) // what is no port was altered
		}
	}
	if len(o.Spec.Rules) == 1 {
		for _, b := range o.Spec.Rules[0].BackendRefs {
			if one, is := readBackend(b); is {
				seen.Backends = append(seen.Backends, one)
			}
		}
	}
	ours, err := s.TCPRouteObject(seen.WantedRoute)
	seen.Altered = err != nil || !equality.Semantic.DeepEqual(ours.Spec, o.Spec)
	return seen
}
