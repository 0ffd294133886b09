package kube

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/apis/v1alpha2"

	"github.com/proa-dev/proa/platform"
)

// A routeWatch follows the routes of a cluster and the entries that they lead to. It hints at nothing: what we did ourselves is
// known, what others did waits for the next full pass, and the gateway writes what it thinks of each route into it.
type routeWatch struct {
	routes, entries cache.Store
	tcp             cache.Store // nil: the cluster does not have those
	noTCP           error       // why not
}

type watchedRoute struct {
	metav1.ObjectMeta
	seen platform.SeenRoute
}

type watchedEntry struct {
	metav1.ObjectMeta
	seen platform.SeenEntry
}

var errNoGatewayAPI = errors.New("the cluster does not have the Gateway API (HTTPRoute, v1). Install its definitions and a gateway, see docs/operators.md")

var errNoTCPRoutes = errors.New("the cluster does not have the definition of TCPRoute (v1alpha2, of the Gateway API's experimental channel), or does not let us use it. " +
	"Install it, see docs/operators.md, and start the controller again")

func (c *Cluster) watchRoutes(ctx context.Context) (w routeWatch, err error) {
	err = c.gateway.Get().Resource("httproutes").Param("limit", "1").Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		err = errNoGatewayAPI
	}
	if err != nil {
		return w, fmt.Errorf("watch routes: %w", err)
	}
	err = c.gatewayTCP.Get().Resource("tcproutes").Param("limit", "1").Do(ctx).Error()
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsForbidden(err):
		w.noTCP = fmt.Errorf("%w (%w)", errNoTCPRoutes, err)
	case err != nil:
		return w, fmt.Errorf("watch routes: %w", err)
	}
	var routes, entries cache.Controller
	w.routes, routes = c.routeInformer(c.gateway, "httproutes", &gatewayv1.HTTPRoute{})
	w.entries, entries = c.routeInformer(c.core.RESTClient(), "services", &corev1.Service{})
	go routes.RunWithContext(ctx)
	go entries.RunWithContext(ctx)
	synced := []cache.InformerSynced{routes.HasSynced, entries.HasSynced}
	if w.noTCP == nil {
		var tcp cache.Controller
		w.tcp, tcp = c.routeInformer(c.gatewayTCP, "tcproutes", &v1alpha2.TCPRoute{})
		go tcp.RunWithContext(ctx)
		synced = append(synced, tcp.HasSynced)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return w, fmt.Errorf("watch routes: %w", errors.Join(ctx.Err(), errors.New("the cluster did not list them")))
	}
	return w, nil
}

func (c *Cluster) routeInformer(client rest.Interface, resource string, kind runtime.Object) (cache.Store, cache.Controller) {
	return cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewFilteredListWatchFromClient(client, resource, metav1.NamespaceAll, func(o *metav1.ListOptions) { o.LabelSelector = c.ours(roleRoute) }),
		ObjectType:    kind,
		Transform:     c.Settings.digestRoute,
		Handler:       cache.ResourceEventHandlerFuncs{},
	})
}

// digestRoute turns what the cluster tells into what is kept, as digest does.
func (s Settings) digestRoute(o any) (any, error) {
	switch o := o.(type) {
	case *gatewayv1.HTTPRoute:
		return &watchedRoute{ObjectMeta: nameOf(o.ObjectMeta), seen: s.readRoute(o)}, nil
	case *v1alpha2.TCPRoute:
		return &watchedRoute{ObjectMeta: nameOf(o.ObjectMeta), seen: s.readTCPRoute(o)}, nil
	case *corev1.Service:
		return &watchedEntry{ObjectMeta: nameOf(o.ObjectMeta), seen: s.readEntry(o)}, nil
	}
	return o, nil
}

// WhyNoTCP says why the cluster cannot have routes of tcp; nil if it can.
func (w *Watch) WhyNoTCP() error { return w.routing.noTCP }

// Routes is every route that the cluster has, and every entry, in no order.
func (w *Watch) Routes() ([]platform.SeenRoute, []platform.SeenEntry) {
	routes, entries := w.routing.routes.List(), w.routing.entries.List()
	if w.routing.tcp != nil {
		routes = append(routes, w.routing.tcp.List()...)
	}
	allRoutes, allEntries := make([]platform.SeenRoute, 0, len(routes)), make([]platform.SeenEntry, 0, len(entries))
	for _, o := range routes {
		allRoutes = append(allRoutes, o.(*watchedRoute).seen)
	}
	for _, o := range entries {
		allEntries = append(allEntries, o.(*watchedEntry).seen)
	}
	return allRoutes, allEntries
}
