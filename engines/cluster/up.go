package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// upTimeout is far above what it takes, so that a slow machine is not mistaken for a broken one.
const upTimeout = 5 * time.Minute

func pauseFor(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(100 * time.Millisecond):
		return nil
	}
}

// up brings the cluster up. What it started stays if it fails, so that its logs can be read and down can clear it.
func up(ctx context.Context, root, dir, run string, nodes int) error {
	since := time.Now()
	ctx, cancel := context.WithTimeout(ctx, upTimeout)
	defer cancel()
	c, err := load(dir)
	if err != nil {
		return err
	}
	if c != nil && !linked(c.Bridge()) {
		say("The machine was started anew since the cluster was up; starting afresh.")
		if err := down(ctx, dir); err != nil {
			return err
		}
		if err := makeOurs(dir); err != nil {
			return err
		}
		c = nil
	}
	if c == nil {
		if c, err = create(ctx, root, dir, run); err != nil {
			return errors.Join(err, discard(context.WithoutCancel(ctx), dir))
		}
	} else if err := c.sameAddresses(); err != nil {
		return err
	}
	c.Nodes = max(c.Nodes, nodes)
	if err := c.save(); err != nil {
		return err
	}
	if err := c.bring(ctx, root); err != nil {
		return fmt.Errorf("%w\nThe logs are in %s. Mend the cause and run make cluster-up again, or clear what was started: make cluster-down", err, c.at("log"))
	}
	if err := c.writeEnv(); err != nil {
		return err
	}
	say("The cluster is up after %.1f s, with %d node(s).", time.Since(since).Seconds(), c.Nodes)
	say("  apps      http://NAME.%s, at %s and %s", appsDomain, c.HTTP, c.HTTPS)
	if len(c.TCP) > 0 {
		say("  tcp       %s, ports %s", tcpDomain, c.ports())
	}
	say("  registry  %s", c.Registry())
	say("Use it from your shell: . %s && kubectl get pods -A", c.Run+"/cluster.env")
	return nil
}

// discard removes what is there of a cluster that could not be prepared.
func discard(ctx context.Context, dir string) error {
	if c, err := load(dir); err == nil && c != nil {
		return down(ctx, dir)
	}
	return os.RemoveAll(dir)
}

// gatewayAddresses is where the gateway is to listen.
func gatewayAddresses() (http, https string) {
	return setting("PROA_GATEWAY_HTTP", "127.0.0.1:80"), setting("PROA_GATEWAY_HTTPS", "127.0.0.1:443")
}

const maxPorts = 60 // of tcp: a Gateway has 64 listeners

// gatewayPorts is where it is to take connections of tcp.
func gatewayPorts() (all []int, err error) {
	text := setting("PROA_TCP_PORTS", "20000-20009")
	var first, last int
	if _, err := fmt.Sscanf(text, "%d-%d", &first, &last); err != nil || first < 1 || last > 65535 || last < first || last-first >= maxPorts {
		return nil, fmt.Errorf("PROA_TCP_PORTS is %q, but must be a range of at most %d ports, such as 20000-20009. Set it so, then run this again", text, maxPorts)
	}
	for port := first; port <= last; port++ {
		all = append(all, port)
	}
	return all, nil
}

// ports is the range of them; empty for a cluster that was brought up before there were any.
func (c *Cluster) ports() string {
	if len(c.TCP) == 0 {
		return ""
	}
	return fmt.Sprintf("%d-%d", c.TCP[0], c.TCP[len(c.TCP)-1])
}

// sameAddresses refuses to pass over an address that somebody has set since.
func (c *Cluster) sameAddresses() error {
	for name, has := range map[string]string{"PROA_GATEWAY_HTTP": c.HTTP, "PROA_GATEWAY_HTTPS": c.HTTPS, "PROA_TCP_PORTS": c.ports()} {
		if wants := os.Getenv(name); wants != "" && wants != has {
			return fmt.Errorf("the gateway listens on %s, and %s says %s. Run make cluster-down first to move it", has, name, wants)
		}
	}
	return nil
}

// create prepares a cluster: engines, addresses, certificates and settings. Nothing runs yet.
func create(ctx context.Context, root, dir, runDir string) (*Cluster, error) {
	c := &Cluster{Dir: dir, Run: runDir, Groups: sharedControllers()}
	c.HTTP, c.HTTPS = gatewayAddresses()
	var err error
	if c.TCP, err = gatewayPorts(); err != nil {
		return nil, err
	}
	if err := c.check(ctx); err != nil {
		return nil, err
	}
	if err := c.findEngines(ctx, root); err != nil {
		return nil, err
	}
	for _, program := range []string{"containerd", "ctr", "runc", "ip", "iptables", "nft"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("%s is not on the PATH. Install what is missing: make engines", program)
		}
	}
	if err := os.MkdirAll(runDir, 0o700); err != nil {
		return nil, err
	}
	if err := c.packImages(ctx, root); err != nil {
		return nil, err
	}
	if err := c.claim(ctx); err != nil {
		return nil, err
	}
	if err := c.save(); err != nil { // from here on there is something to take down
		return nil, errors.Join(err, c.unlay(ctx))
	}
	if err := c.lay(ctx); err != nil {
		return nil, err
	}
	pki, err := c.issueAll()
	if err != nil {
		return nil, err
	}
	for number := 1; number <= maxNodes; number++ {
		if err := c.node(number).configure(pki); err != nil {
			return nil, err
		}
	}
	err = c.configureRegistry()
	return c, err
}

func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

// findEngines learns where the engines are.
func (c *Cluster) findEngines(ctx context.Context, root string) error {
	found, err := output(ctx, nil, filepath.Join(root, "engines", "build.sh"), "find")
	if err != nil {
		return err
	}
	c.Engines = map[string]string{}
	for line := range strings.Lines(found) {
		name, where, _ := strings.Cut(strings.TrimSpace(line), " ")
		c.Engines[name] = where
	}
	c.GatewayAPI, err = gatewayAPI(ctx, filepath.Join(root, "engines", "traefik"))
	return err
}

// gatewayAPI is where the module is that the gateway was built with: definitions that its engine does not bring are there.
func gatewayAPI(ctx context.Context, engine string) (string, error) {
	const name = "sigs.k8s.io/gateway-api"
	env := []string{"GOWORK=off", "GOFLAGS="}
	if _, err := output(ctx, env, "go", "-C", engine, "mod", "download", name); err != nil {
		return "", err
	}
	found, err := output(ctx, env, "go", "-C", engine, "list", "-m", "-f", "{{.Dir}}", name)
	return strings.TrimSpace(found), err
}

// bring starts what does not run and waits until all of it works together.
func (c *Cluster) bring(ctx context.Context, root string) error {
	for _, p := range []program{c.etcd(), c.apiserver(), c.registry()} {
		if err := c.start(p); err != nil {
			return err
		}
	}
	since := map[int]time.Time{} // of the nodes that are turned on now
	for number := 1; number <= c.Nodes; number++ {
		if c.pid(c.node(number).Name()) == 0 {
			since[number] = time.Now()
		}
		if err := c.node(number).start(ctx); err != nil {
			return err
		}
	}
	work, each := errgroup.WithContext(ctx)
	work.Go(func() error { return c.pushImages(each, root) })
	work.Go(func() error {
		if err := c.until(each, "the API server is ready", []string{"etcd", "kube-apiserver"}, func(ctx context.Context) error {
			_, err := c.kubectl(ctx, "get", "--raw", "/readyz")
			return err
		}); err != nil {
			return err
		}
		for _, p := range []program{c.controllers(), c.scheduler()} {
			if err := c.start(p); err != nil {
				return err
			}
		}
		if err := c.apply(each); err != nil {
			return err
		}
		if err := renderTo(c.at("retry.yaml"), "retry.yaml", c); err != nil {
			return err
		}
		return c.start(c.gateway())
	})
	if err := work.Wait(); err != nil {
		return err
	}
	for number := 1; number <= c.Nodes; number++ {
		if err := c.node(number).ready(ctx, since[number]); err != nil {
			return err
		}
	}
	return c.ready(ctx)
}

// pushImages gives the registry the images that apps are built with and run on.
func (c *Cluster) pushImages(ctx context.Context, root string) error {
	if err := c.until(ctx, "the registry answers", []string{"registry"}, func(ctx context.Context) error {
		return listens(ctx, c.Registry())
	}); err != nil {
		return err
	}
	env, err := c.registryEnv()
	if err != nil {
		return err
	}
	_, err = output(ctx, append(env, c.noProxy()), "go", "run", "-C", root, "./deploy/image", "push", c.Registry())
	return err
}

func (c *Cluster) registryEnv() ([]string, error) {
	password, err := os.ReadFile(c.at("registry-password"))
	return []string{
		"PROA_REGISTRY=" + c.Registry(), "PROA_REGISTRY_CA_FILE=" + c.CA(),
		"PROA_REGISTRY_USERNAME=proa", "PROA_REGISTRY_PASSWORD=" + string(password),
	}, err
}

// writeEnv writes what a shell needs to use the cluster.
func (c *Cluster) writeEnv() error {
	env, err := c.registryEnv()
	if err != nil {
		return err
	}
	env = append(env, "KUBECONFIG="+c.Run+"/kubeconfig", "PROA_APPS_DOMAIN="+appsDomain, "PROA_GATEWAY_HTTP="+c.HTTP, "PROA_GATEWAY_HTTPS="+c.HTTPS)
	if len(c.TCP) > 0 {
		env = append(env, "PROA_TCP_GATEWAY=proa-gateway/tcp", "PROA_TCP_DOMAIN="+tcpDomain, "PROA_TCP_PORTS="+c.ports())
	}
	var text strings.Builder
	for _, line := range env {
		name, value, _ := strings.Cut(line, "=")
		fmt.Fprintf(&text, "export %s='%s'\n", name, value)
	}
	fmt.Fprintf(&text, "export %s\nPATH='%s':$PATH\n", c.noProxy(), c.Engines["kubernetes"])
	return os.WriteFile(c.Run+"/cluster.env", []byte(text.String()), 0o600)
}

// ready waits until the objects say that everything works.
func (c *Cluster) ready(ctx context.Context) error {
	for _, wait := range []struct {
		what string
		args []string
	}{
		{"names are resolved", []string{"rollout", "status", "--timeout=1s", "-n", "kube-system", "deployment/coredns"}},
		{"network policies are enforced", []string{"rollout", "status", "--timeout=1s", "-n", "kube-system", "daemonset/network-policies"}},
		{"the gateway has its listeners", []string{"wait", "--for=condition=Programmed", "--timeout=1s", "-n", "proa-gateway", "gateway", "--all"}},
	} {
		if err := c.until(ctx, wait.what, c.mains(), func(ctx context.Context) error {
			_, err := c.kubectl(ctx, wait.args...)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// controlPlane lists the processes of the host.
func controlPlane() []string {
	return []string{"etcd", "kube-apiserver", "registry", "kube-controller-manager", "kube-scheduler", "traefik"}
}

// mains lists the processes that a cluster is made of.
func (c *Cluster) mains() []string {
	names := controlPlane()
	for number := 1; number <= c.Nodes; number++ {
		names = append(names, c.node(number).Name())
	}
	return names
}

// down ends every process, and removes what the kernel keeps of the cluster and everything on disk but the registry's
// content.
func down(ctx context.Context, dir string) error {
	c, err := load(dir)
	if err != nil {
		return err
	}
	if c == nil { // it never came far enough to start anything
		say("The cluster is not up.")
		return os.RemoveAll(dir)
	}
	since := time.Now()
	for number := 1; number <= maxNodes; number++ {
		if err := c.node(number).halt(ctx); err != nil {
			return err
		}
	}
	if err := c.stop(syscall.SIGTERM, 2*time.Second, c.known()...); err != nil {
		return err
	}
	for _, root := range cgroupRoots() {
		if err := removeCgroup(filepath.Join(root, c.Bridge())); err != nil {
			return err
		}
	}
	if err := c.unlay(ctx); err != nil {
		return err
	}
	if err := unshareControllers(c.Groups); err != nil {
		return err
	}
	for _, file := range []string{"kubeconfig", "cluster.env"} {
		_ = os.Remove(filepath.Join(c.Run, file))
	}
	if err := os.RemoveAll(c.Dir); err != nil {
		return err
	}
	say("The cluster is down after %.1f s.", time.Since(since).Seconds())
	return nil
}
