package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"embed"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"text/template"
	"time"

	"golang.org/x/crypto/bcrypt"
)

//go:embed config
var config embed.FS

var templates = template.Must(template.New("").Option("missingkey=error").ParseFS(config, "config/*"))

// render fills a template of config/ with what it asks of data, a Cluster or a Node.
func render(name string, data any) ([]byte, error) {
	var out bytes.Buffer
	err := templates.ExecuteTemplate(&out, name, data)
	return out.Bytes(), err
}

func renderTo(file, name string, data any) error {
	out, err := render(name, data)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, out, 0o600)
}

func (c *Cluster) engine(name, program string) string { return filepath.Join(c.Engines[name], program) }

// The processes of the control plane. Their addresses are the cluster's alone, so their ports are fixed.

func (c *Cluster) etcd() program {
	pki := c.at("pki")
	client, peer := "https://"+c.Loopback()+":2379", "https://"+c.Loopback()+":2380"
	return program{name: "etcd", args: []string{
		c.engine("etcd", "server"), "--name=proa", "--data-dir=" + c.at("etcd"), "--log-level=warn",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client, "--cert-file=" + pki + "/etcd.crt", "--key-file=" + pki + "/etcd.key",
		"--client-cert-auth", "--trusted-ca-file=" + c.etcdCA(),
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=proa=" + peer,
		"--peer-cert-file=" + pki + "/etcd.crt", "--peer-key-file=" + pki + "/etcd.key", "--peer-client-cert-auth", "--peer-trusted-ca-file=" + c.etcdCA(),
		"--unsafe-no-fsync", // this cluster does not outlive cluster-down, let alone a power cut
	}}
}

func (c *Cluster) apiserver() program {
	pki := c.at("pki")
	return program{name: "kube-apiserver", args: []string{
		c.engine("kubernetes", "kube-apiserver"),
		"--bind-address=" + c.Host(), "--advertise-address=" + c.Host(), "--secure-port=6443",
		"--tls-cert-file=" + pki + "/apiserver.crt", "--tls-private-key-file=" + pki + "/apiserver.key", "--client-ca-file=" + c.CA(),
		"--authorization-mode=Node,RBAC", "--anonymous-auth=false", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
		"--service-cluster-ip-range=" + c.ServicesNet(),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + pki + "/service-accounts.crt",
		"--service-account-signing-key-file=" + pki + "/service-accounts.key",
		"--etcd-servers=https://" + c.Loopback() + ":2379", "--etcd-cafile=" + c.etcdCA(),
		"--etcd-certfile=" + pki + "/apiserver-etcd.crt", "--etcd-keyfile=" + pki + "/apiserver-etcd.key",
		"--kubelet-certificate-authority=" + c.CA(), "--kubelet-preferred-address-types=InternalIP",
		"--kubelet-client-certificate=" + pki + "/apiserver-kubelet.crt", "--kubelet-client-key=" + pki + "/apiserver-kubelet.key",
		"--profiling=false",
	}}
}

func (c *Cluster) controllers() program {
	kubeconfig := c.at("controllers.kubeconfig")
	return program{name: "kube-controller-manager", args: []string{
		c.engine("kubernetes", "kube-controller-manager"), "--bind-address=" + c.Loopback(),
		"--tls-cert-file=" + c.at("pki", "controllers.crt"), "--tls-private-key-file=" + c.at("pki", "controllers.key"),
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--service-account-private-key-file=" + c.at("pki", "service-accounts.key"), "--root-ca-file=" + c.CA(),
		"--use-service-account-credentials", "--leader-elect=false", "--profiling=false",
		"--kube-api-qps=100", "--kube-api-burst=200",
	}}
}

func (c *Cluster) scheduler() program {
	kubeconfig := c.at("scheduler.kubeconfig")
	return program{name: "kube-scheduler", args: []string{
		c.engine("kubernetes", "kube-scheduler"), "--bind-address=" + c.Loopback(),
		"--tls-cert-file=" + c.at("pki", "scheduler.crt"), "--tls-private-key-file=" + c.at("pki", "scheduler.key"),
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--leader-elect=false", "--profiling=false",
	}}
}

func (c *Cluster) registry() program {
	return program{
		name: "registry", env: []string{"OTEL_TRACES_EXPORTER=none"},
		args: []string{c.engine("registry", "registry"), "serve", c.at("registry.yaml")},
	}
}

// gateway goes straight to pods, not through the addresses of services, and keeps connections to them for less than app servers do
// (Node's 5 s): a request never meets one that is being closed. It follows changes after 250 ms instead of 2 s, so that an instance
// that is to stop is forgotten before it does, and lets a request last 15 minutes instead of one, as Cloud Foundry does.
//
// Tracing is on for the id that it gives each request, in traceparent. It samples none by itself; what clients ask to be sampled is lost:
// nobody listens where it is sent.
func (c *Cluster) gateway() program {
	args := []string{
		c.engine("traefik", "traefik"), "--global.checknewversion=false", "--global.sendanonymoususage=false", "--log.level=WARN",
		"--entrypoints.web.address=" + c.HTTP, "--entrypoints.websecure.address=" + c.HTTPS,
		"--entrypoints.web.transport.respondingtimeouts.readtimeout=15m", "--entrypoints.websecure.transport.respondingtimeouts.readtimeout=15m",
		"--serverstransport.forwardingtimeouts.dialtimeout=5s", "--serverstransport.forwardingtimeouts.idleconntimeout=4s", "--tcpserverstransport.dialtimeout=5s",
		"--providers.file.filename=" + c.at("retry.yaml"), "--providers.file.watch=false",
		"--entrypoints.web.http.middlewares=next@file", "--entrypoints.websecure.http.middlewares=next@file",
		"--tracing.samplerate=0", "--tracing.otlp.http.endpoint=http://" + c.Loopback() + ":9/v1/traces",
		"--providers.providersthrottleduration=250ms",
		"--providers.kubernetesgateway=true", "--providers.kubernetesgateway.statusaddress.ip=127.0.0.1",
	}
	if len(c.TCP) > 0 {
		args = append(args, "--providers.kubernetesgateway.experimentalchannel=true") // TCPRoute is there
	}
	for _, port := range c.TCP {
		args = append(args, fmt.Sprintf("--entrypoints.tcp-%d.address=%s", port, c.tcp(port)))
	}
	return program{name: "traefik", env: []string{"KUBECONFIG=" + c.at("gateway.kubeconfig")}, args: args}
}

// tcp is the address where the gateway takes connections of a port.
func (c *Cluster) tcp(port int) string {
	host, _, _ := net.SplitHostPort(c.HTTP)
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// configureRegistry writes the registry's settings and its one user. Nodes have no account of their own: whoever runs
// an image says with which.
func (c *Cluster) configureRegistry() error {
	password := rand.Text()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost) // 130 random bits need no stretching
	if err != nil {
		return err
	}
	for file, content := range map[string]string{"htpasswd": "proa:" + string(hash) + "\n", "registry-password": password} {
		if err := os.WriteFile(c.at(file), []byte(content), 0o600); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(c.RegistryDir(), 0o700); err != nil {
		return err
	}
	return renderTo(c.at("registry.yaml"), "registry.yaml", struct {
		*Cluster
		Secret string
	}{c, rand.Text()})
}

func (c *Cluster) kubectl(ctx context.Context, args ...string) (string, error) {
	return output(ctx, []string{"KUBECONFIG=" + c.Run + "/kubeconfig", c.noProxy()}, append([]string{c.engine("kubernetes", "kubectl"), "--request-timeout=30s"}, args...)...)
}

// apply gives the API server the objects that make this a cluster for Proa.
func (c *Cluster) apply(ctx context.Context) error {
	definitions := []string{"-f", c.engine("traefik", "crds")}
	if len(c.TCP) > 0 {
		for _, kind := range []string{"tcproutes", "tlsroutes"} { // Traefik wants both, or follows neither
			definitions = append(definitions, "-f", filepath.Join(c.GatewayAPI, "config", "crd", "experimental", "gateway.networking.k8s.io_"+kind+".yaml"))
		}
	}
	if _, err := c.kubectl(ctx, append([]string{"apply", "--server-side"}, definitions...)...); err != nil {
		return err
	}
	if _, err := c.kubectl(ctx, append([]string{"wait", "--for=condition=Established", "--timeout=30s"}, definitions...)...); err != nil {
		return err
	}
	cert, err := os.ReadFile(c.at("pki", "gateway.crt"))
	if err != nil {
		return err
	}
	key, err := os.ReadFile(c.at("pki", "gateway.key"))
	if err != nil {
		return err
	}
	data := struct {
		*Cluster
		GatewayCert, GatewayKey string
	}{c, base64.StdEncoding.EncodeToString(cert), base64.StdEncoding.EncodeToString(key)}
	args := []string{"apply", "--server-side"}
	for _, name := range []string{"coredns.yaml", "policy.yaml", "gateway.yaml"} {
		if err := renderTo(c.at("objects", name), name, data); err != nil {
			return err
		}
		args = append(args, "-f", c.at("objects", name))
	}
	_, err = c.kubectl(ctx, args...)
	return err
}

// listens fails unless something accepts connections at an address or in a socket file.
func listens(ctx context.Context, address string) error {
	network := "tcp"
	if filepath.IsAbs(address) {
		network = "unix"
	}
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// check refuses addresses that the gateway cannot have, or that others could reach.
func (c *Cluster) check(ctx context.Context) error {
	for name, address := range map[string]string{"PROA_GATEWAY_HTTP": c.HTTP, "PROA_GATEWAY_HTTPS": c.HTTPS} {
		host, port, err := net.SplitHostPort(address)
		if number, bad := strconv.Atoi(port); err != nil || bad != nil || number < 1 || number > 65535 || !net.ParseIP(host).IsLoopback() {
			return fmt.Errorf("%s is %q, but must be a loopback address with a port, such as 127.0.0.1:8080. Set it so, then run this again", name, address)
		}
		if err := available(ctx, name, address); err != nil {
			return err
		}
	}
	for _, port := range c.TCP {
		if err := available(ctx, "PROA_TCP_PORTS", c.tcp(port)); err != nil {
			return err
		}
	}
	return nil
}

// available fails where somebody listens already.
func available(ctx context.Context, name, address string) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("the gateway cannot have %s (%w). Stop what listens there, or choose another address with %s", address, err, name)
	}
	return l.Close()
}
