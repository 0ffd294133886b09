package main

import (
	"context"
	"errors"
	"fmt"
	"os"
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
	if c != nil && !c.whole() {
		say("The cluster that was up is not whole any more; starting afresh.")
		if err := down(ctx, dir); err != nil {
			return err
		}
		c = nil
	}
	if c == nil {
		if c, err = create(ctx, root, dir, run); err != nil {
			return err
		}
	}
	c.Nodes = max(c.Nodes, nodes)
	if err := c.save(); err != nil {
		return err
	}
	if err := c.bring(ctx, root); err != nil {
		return fmt.Errorf("%w\nThe logs are in %s. make cluster-down clears what was started", err, c.at("log"))
	}
	if err := c.writeEnv(); err != nil {
		return err
	}
	say("The cluster is up after %.1f s, with %d node(s).", time.Since(since).Seconds(), c.Nodes)
	say("  apps      http://NAME.%s, at %s and %s", appsDomain, c.HTTP, c.HTTPS)
	say("  registry  %s", c.Registry())
	say("Use it from your shell: . %s && kubectl get pods -A", c.Run+"/cluster.env")
	return nil
}

// create prepares a cluster: engines, addresses, certificates and settings. Nothing runs yet.
func create(ctx context.Context, root, dir, runDir string) (*Cluster, error) {
	if err := run(ctx, filepath.Join(root, "engines", "apt.sh"), "containerd", "runc", "containernetworking-plugins", "iptables", "nftables", "iproute2"); err != nil {
		return nil, err
	}
	for _, d := range []string{dir, runDir} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	c := &Cluster{Dir: dir, Run: runDir, Sysctls: readSysctls(), HTTP: setting("PROA_GATEWAY_HTTP", "127.0.0.1:80"), HTTPS: setting("PROA_GATEWAY_HTTPS", "127.0.0.1:443")}
	if err := c.free(ctx); err != nil {
		return nil, err
	}
	if err := c.findEngines(ctx, root); err != nil {
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
	return nil
}

// bring starts what does not run and waits until all of it works together.
func (c *Cluster) bring(ctx context.Context, root string) error {
	for _, p := range []program{c.etcd(), c.apiserver(), c.registry()} {
		if err := c.start(p); err != nil {
			return err
		}
	}
	work, each := errgroup.WithContext(ctx)
	work.Go(func() error {
		for number := 1; number <= c.Nodes; number++ {
			if err := c.node(number).start(each); err != nil {
				return err
			}
		}
		return nil
	})
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
		return c.start(c.gateway())
	})
	if err := work.Wait(); err != nil {
		return err
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
	_, err = output(ctx, env, "go", "run", "-C", root, "./deploy/image", "push", c.Registry())
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
	var text strings.Builder
	for _, line := range env {
		name, value, _ := strings.Cut(line, "=")
		fmt.Fprintf(&text, "export %s='%s'\n", name, value)
	}
	fmt.Fprintf(&text, "PATH='%s':$PATH\n", c.Engines["kubernetes"])
	return os.WriteFile(c.Run+"/cluster.env", []byte(text.String()), 0o600)
}

// ready waits until the objects say that everything works.
func (c *Cluster) ready(ctx context.Context) error {
	needs := append([]string{}, c.mains()...)
	for _, wait := range []struct {
		what string
		args []string
	}{
		{"every node is ready", []string{"wait", "--for=condition=Ready", "--timeout=1s", "nodes", "--all"}},
		{"names are resolved", []string{"rollout", "status", "--timeout=1s", "-n", "kube-system", "deployment/coredns"}},
		{"network policies are enforced", []string{"rollout", "status", "--timeout=1s", "-n", "kube-system", "daemonset/network-policies"}},
		{"the gateway has its listeners", []string{"wait", "--for=condition=Programmed", "--timeout=1s", "-n", "proa-gateway", "gateway/apps"}},
	} {
		if err := c.until(ctx, wait.what, needs, func(ctx context.Context) error {
			_, err := c.kubectl(ctx, wait.args...)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// mains lists the processes of the host that a cluster is made of.
func (c *Cluster) mains() []string {
	names := []string{"etcd", "kube-apiserver", "registry", "kube-controller-manager", "kube-scheduler", "traefik"}
	for number := 1; number <= c.Nodes; number++ {
		names = append(names, c.node(number).Name())
	}
	return names
}

// whole tells whether everything that was started still runs.
func (c *Cluster) whole() bool {
	for _, name := range c.known() {
		if c.pid(name) == 0 {
			return false
		}
	}
	return len(c.known()) > 0
}

// down ends every process, and removes what the kernel keeps of the cluster and everything on disk but the registry's
// content.
func down(ctx context.Context, dir string) error {
	c, err := load(dir)
	if err != nil {
		return err
	}
	if c == nil {
		say("The cluster is not up.")
		return nil
	}
	since := time.Now()
	for number := 1; number <= maxNodes; number++ {
		if err := c.node(number).halt(); err != nil {
			return err
		}
	}
	c.stop(syscall.SIGTERM, 2*time.Second, c.known()...)
	for _, root := range cgroupRoots() {
		if err := removeCgroup(filepath.Join(root, c.Bridge())); err != nil {
			return err
		}
	}
	if err := c.unlay(ctx); err != nil {
		return err
	}
	if err := writeSysctls(c.Sysctls); err != nil {
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
