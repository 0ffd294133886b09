// Command controller makes a cluster run what it should.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/proa-dev/proa/kit/env"
	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/run"
	"github.com/proa-dev/proa/kit/seal"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform/bits"
	"github.com/proa-dev/proa/platform/controller"
	"github.com/proa-dev/proa/platform/kube"
	"github.com/proa-dev/proa/platform/store"
)

type config struct {
	bits.Settings

	Metrics      string         `env:"PROA_CONTROLLER_METRICS_LISTEN" default:"127.0.0.1:9083" help:"Address for /metrics, /healthz and /readyz; keep it away from users."`
	Database     env.Secret     `env:"PROA_CONTROLLER_DATABASE_URL" required:"true" help:"PostgreSQL database of the API, as postgres://user:password@host/name."`
	Keyset       env.Secret     `env:"PROA_CONTROLLER_KEYSET" required:"true" help:"Keyset of the API: it opens environment variables and credentials."`
	Cluster      string         `env:"PROA_CLUSTER" default:"default" help:"Cluster to act for, as the API's records name it."`
	Installation string         `env:"PROA_INSTALLATION" default:"proa" help:"Tells two installations on one cluster apart. What carries another one's name is not touched."`
	Kubeconfig   string         `env:"KUBECONFIG" help:"File that says how to reach the cluster; without it, the pod we run in does."`
	RegistryAt   []netip.Prefix `env:"PROA_REGISTRY_CIDRS" help:"Networks where stagings reach the registry; without them, its address, or none if it is a name."`
	Launcher     string         `env:"PROA_LAUNCHER_FILE" required:"true" help:"The program launcher, built without cgo: pid 1 of every app container."`
	SFTP         string         `env:"PROA_SFTP_FILE" required:"true" help:"The program sftp, built without cgo: copies files for those who log in to a container."`
	Staging      time.Duration  `env:"PROA_STAGING_TIMEOUT" default:"15m" help:"How long staging an app may take."`
	Gateway      string         `env:"PROA_GATEWAY" default:"proa-gateway/apps" help:"Gateway that serves routes, as namespace/name."`
	TCPGateway   string         `env:"PROA_TCP_GATEWAY" help:"Gateway that has a listener for each port of tcp, as namespace/name; without it, PROA_GATEWAY."`
	GatewayAt    []netip.Prefix `env:"PROA_GATEWAY_CIDRS" help:"Networks from which requests reach the ports of apps; without them nobody does."`
	Blocked      []netip.Prefix `env:"PROA_BLOCKED_CIDRS" help:"Networks that apps do not reach; without them, all private and link-local ones."`
	Allowed      []netip.Prefix `env:"PROA_ALLOWED_CIDRS" help:"Networks that apps reach nevertheless, such as those of databases."`
	Level        slog.Level     `env:"PROA_LOG_LEVEL" default:"info" help:"Least level of log lines: debug, info, warn, error."`
}

const usage = `Makes a cluster run what it should. Of several that are started for one cluster, one acts and the others stand by.

  controller         run until stopped
  controller help    show this

Settings come from the environment; each NAME may also be NAME_FILE, the path of a file that holds the value.

`

func main() {
	run.Program{Name: "controller", Usage: usage, Config: &config{}, Serve: serve}.Main()
}

func serve(ctx context.Context) error {
	var c config
	if err := env.Load(&c, os.Getenv); err != nil {
		return fmt.Errorf("%w\nRun: controller help", err)
	}
	if err := c.check(); err != nil {
		return fmt.Errorf("%w\nRun: controller help", err)
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: c.Level}))
	slog.SetDefault(log)
	box, err := seal.New([]byte(c.Keyset.Reveal()))
	if err != nil {
		return fmt.Errorf("PROA_CONTROLLER_KEYSET: %w", err)
	}
	registry, cluster, err := c.connect()
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, c.Database.Reveal(), box)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.JoinCluster(ctx, c.Cluster); err != nil {
		return err
	}
	metrics := web.NewMetrics()
	worker := &controller.Controller{ID: c.Cluster, Store: s, Cluster: cluster, Registry: registry, Builder: c.Builder, RunImage: c.RunImage, Programs: bits.Programs{Launcher: c.Launcher, SFTP: c.SFTP},
		Timeout: c.Staging, Log: log, Metrics: controller.NewMetrics(metrics.Registry), Now: time.Now}
	inner, err := web.Listen(ctx, "the controller's metrics", c.Metrics)
	if err != nil {
		return err
	}
	return run.Until(ctx, log, worker.Part(), web.Part("metrics", inner, inside(worker, metrics), log))
}

// check refuses settings that would fail later, and fills in what follows from others.
func (c *config) check() error {
	var problems []error
	refuse := func(wrong bool, sentence string) {
		if wrong {
			problems = append(problems, errors.New(sentence))
		}
	}
	problems = append(problems, c.Complete())
	refuse(c.Staging < time.Minute, "PROA_STAGING_TIMEOUT must be at least 1m")
	refuse(!whole(gateway(c.Gateway)), "PROA_GATEWAY must be namespace/name of a Gateway, such as proa-gateway/apps")
	refuse(c.TCPGateway != "" && !whole(gateway(c.TCPGateway)), "PROA_TCP_GATEWAY must be namespace/name of a Gateway, such as proa-gateway/tcp")
	refuse(!isProgram(c.Launcher), "PROA_LAUNCHER_FILE must be a program: build it with CGO_ENABLED=0 go build ./cmd/launcher")
	refuse(!isProgram(c.SFTP), "PROA_SFTP_FILE must be a program: build it with CGO_ENABLED=0 go build ./cmd/sftp")
	return errors.Join(problems...)
}

func isProgram(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// connect makes the ways to the registry and to the cluster. Nothing is asked of them yet.
func (c *config) connect() (*bits.Registry, *kube.Cluster, error) {
	registry, authority, err := c.Open()
	if err != nil {
		return nil, nil, err
	}
	server := c.Host()
	account := kube.Account{Username: c.Username, Password: c.Password.Reveal()}
	cluster, err := kube.Connect(c.Kubeconfig, kube.Settings{
		Installation: c.Installation,
		Registry:     kube.Registry{Server: server, Pull: account, Push: account, CA: authority},
		Gateway:      gateway(c.Gateway),
		TCPGateway:   gateway(c.TCPGateway),
		Network:      kube.Network{Gateway: peers(c.GatewayAt), Registry: c.registryPeers(server), Blocked: texts(c.Blocked), Allowed: peers(c.Allowed)},
	})
	return registry, cluster, err
}

func whole(g kube.Gateway) bool {
	return g.Namespace != "" && g.Name != "" && !strings.Contains(g.Name, "/")
}

func gateway(text string) (g kube.Gateway) {
	g.Namespace, g.Name, _ = strings.Cut(text, "/")
	return g
}

// registryPeers are where stagings find the registry, on the port that its name has.
func (c *config) registryPeers(server string) []kube.Peer {
	host, text, err := net.SplitHostPort(server)
	if err != nil {
		host, text = server, "443"
	}
	at := c.RegistryAt
	if address, err := netip.ParseAddr(host); err == nil && len(at) == 0 {
		at = []netip.Prefix{netip.PrefixFrom(address, address.BitLen())}
	}
	all := peers(at)
	for i := range all {
		if port, err := strconv.ParseUint(text, 10, 16); err == nil {
			all[i].Ports = []int32{int32(port)}
		}
	}
	return all
}

func peers(networks []netip.Prefix) []kube.Peer {
	var all []kube.Peer
	for _, n := range networks {
		all = append(all, kube.Peer{CIDR: n.Masked().String()})
	}
	return all
}

func texts(networks []netip.Prefix) []string {
	var all []string
	for _, n := range networks {
		all = append(all, n.Masked().String())
	}
	return all
}

// inside is what operators ask.
func inside(c *controller.Controller, metrics *web.Metrics) http.Handler {
	health := &web.App{Log: slog.New(slog.DiscardHandler), Ready: c.Ready, Fault: func(w http.ResponseWriter, _ *http.Request, f *fault.Error) {
		http.Error(w, f.Detail, f.Status())
	}}
	health.Health()
	mux := http.NewServeMux()
	mux.Handle("/", health)
	mux.Handle("GET /metrics", metrics.Handler())
	return mux
}
