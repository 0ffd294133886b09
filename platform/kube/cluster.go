package kube

import (
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	networkingclient "k8s.io/client-go/kubernetes/typed/networking/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/apis/v1alpha2"
)

// Cluster is one Kubernetes cluster.
type Cluster struct {
	Settings Settings

	config     *rest.Config
	core       *coreclient.CoreV1Client
	logs       *coreclient.CoreV1Client // for what people read: it does not take turns with what makes apps run
	apps       *appsclient.AppsV1Client
	networking *networkingclient.NetworkingV1Client
	gateway    rest.Interface
	gatewayTCP rest.Interface
}

// Connect makes a Cluster from a kubeconfig file, or from the pod that we run in where none is named. It does not ask
// the cluster for anything yet.
func Connect(kubeconfig string, settings Settings) (*Cluster, error) {
	config, err := load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read cluster configuration: %w", err)
	}
	config.UserAgent = "proa"
	config.ContentType = "application/vnd.kubernetes.protobuf" // a list of 10,000 pods is a tenth of its JSON's work
	config.AcceptContentTypes = config.ContentType + ",application/json"
	config.QPS, config.Burst = 100, 200 // the default of 5 would take half an hour for 10,000 releases
	config.Timeout = 0                  // watches and logs stay open; every other call has a deadline of its own
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("read cluster configuration: %w", err)
	}
	c := &Cluster{Settings: settings.Defaults(), config: config}
	if c.core, err = coreclient.NewForConfigAndClient(config, client); err != nil {
		return nil, fmt.Errorf("core client: %w", err)
	}
	often := rest.CopyConfig(config)
	often.QPS, often.Burst = 500, 1000 // many may follow logs at once, and the API server takes turns by itself
	if c.logs, err = coreclient.NewForConfigAndClient(often, client); err != nil {
		return nil, fmt.Errorf("log client: %w", err)
	}
	if c.apps, err = appsclient.NewForConfigAndClient(config, client); err != nil {
		return nil, fmt.Errorf("apps client: %w", err)
	}
	if c.networking, err = networkingclient.NewForConfigAndClient(config, client); err != nil {
		return nil, fmt.Errorf("networking client: %w", err)
	}
	if c.gateway, err = gatewayClient(config, client, gatewayv1.SchemeGroupVersion, gatewayv1.Install); err != nil {
		return nil, fmt.Errorf("gateway client: %w", err)
	}
	if c.gatewayTCP, err = gatewayClient(config, client, v1alpha2.SchemeGroupVersion, v1alpha2.Install); err != nil {
		return nil, fmt.Errorf("gateway client: %w", err)
	}
	return c, nil
}

func load(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", kubeconfig)
}

// gatewayClient is for kinds that are not Kubernetes' own: those travel as JSON only.
func gatewayClient(config *rest.Config, client *http.Client, version schema.GroupVersion, install func(*runtime.Scheme) error) (rest.Interface, error) {
	kinds := runtime.NewScheme()
	if err := install(kinds); err != nil {
		return nil, err
	}
	c := rest.CopyConfig(config)
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	c.GroupVersion, c.APIPath = &version, "/apis"
	c.NegotiatedSerializer = serializer.NewCodecFactory(kinds).WithoutConversion()
	return rest.RESTClientForConfigAndClient(c, client)
}

// callTimeout is how long the API server may take for one call.
const callTimeout = 30 * time.Second
