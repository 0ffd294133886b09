// Command api is the platform's API.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/env"
	"github.com/proa-dev/proa/kit/run"
	"github.com/proa-dev/proa/kit/seal"
	"github.com/proa-dev/proa/kit/token"
	"github.com/proa-dev/proa/kit/web"
	v1 "github.com/proa-dev/proa/notify/v1"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/api"
	"github.com/proa-dev/proa/platform/bits"
	"github.com/proa-dev/proa/platform/kube"
	"github.com/proa-dev/proa/platform/store"
	"github.com/proa-dev/proa/platform/work"
)

type config struct {
	bits.Settings

	Listen   string         `env:"PROA_API_LISTEN" default:"127.0.0.1:8080" help:"Address to serve on."`
	Metrics  string         `env:"PROA_API_METRICS_LISTEN" default:"127.0.0.1:9080" help:"Address for /metrics; keep it away from users."`
	URL      *url.URL       `env:"PROA_API_URL" required:"true" help:"Address at which clients reach this API, without a path."`
	Database env.Secret     `env:"PROA_API_DATABASE_URL" required:"true" help:"PostgreSQL database, as postgres://user:password@host/name."`
	Keyset   env.Secret     `env:"PROA_API_KEYSET" required:"true" help:"Keyset that seals environment variables and credentials; make one with: auth keyset new."`
	Auth     *url.URL       `env:"PROA_AUTH_URL" required:"true" help:"Authorization server: it issues the tokens we accept and knows the people."`
	Issuer   string         `env:"PROA_API_TOKEN_ISSUER" help:"Issuer of those tokens, if it is not PROA_AUTH_URL itself, as with a UAA."`
	ClientID string         `env:"PROA_API_CLIENT_ID" default:"cloud_controller" help:"Our own client there; it needs scim.read and clients.read, and with PROA_NOTIFY_URL notifications.write and notifications.manage."`
	Secret   env.Secret     `env:"PROA_API_CLIENT_SECRET" required:"true" help:"Its secret."`
	Cluster  string         `env:"PROA_CLUSTER" default:"default" help:"Cluster that KUBECONFIG leads to, as the records name it."`
	Install  string         `env:"PROA_INSTALLATION" default:"proa" help:"Name of this installation on that cluster."`
	Kubeconf string         `env:"KUBECONFIG" help:"File that says how to reach the cluster, where logs and usage are read; without it, the pod we run in does."`
	Domain   string         `env:"PROA_APPS_DOMAIN" default:"apps.proa.localhost" help:"Domain that all apps share."`
	Reach    *url.URL       `env:"PROA_APPS_URL" help:"Scheme and port at which clients reach apps, such as https://apps.example.org:8443; without it, the scheme of PROA_API_URL."`
	TCP      string         `env:"PROA_TCP_DOMAIN" help:"Domain that all apps share for routes of tcp; without it there are none."`
	Ports    string         `env:"PROA_TCP_PORTS" help:"Its ports, such as 20000-20009, at most 60: the Gateway has a listener for each, called tcp- and the port."`
	Reserved []string       `env:"PROA_RESERVED_HOSTS" default:"api,login,uaa,auth,notify,ssh,doppler,log-cache" help:"Hosts that no app gets: in full, or the first label on the apps domain and beside the API and the authorization server; those of PROA_API_URL and PROA_AUTH_URL are added."`
	Stack    string         `env:"PROA_STACK" default:"proa" help:"What to call the builder's stack."`
	SSH      string         `env:"PROA_SSH_ADDRESS" help:"Where the ssh server is reached, as host:port; without it there is none."`
	SSHKey   string         `env:"PROA_SSH_FINGERPRINT" help:"Fingerprint of its host key: SHA-256 in base64, without padding."`
	Timeout  time.Duration  `env:"PROA_BROKER_TIMEOUT" default:"60s" help:"What a service broker may take for one answer."`
	Polling  time.Duration  `env:"PROA_BROKER_POLLING" default:"168h" help:"What a service broker may take for an operation that it does not do at once, unless its plan says less."`
	Trusted  string         `env:"PROA_BROKER_CA" help:"Authorities in PEM of which the certificates of service brokers may be, beside those that everybody knows."`
	Notify   *url.URL       `env:"PROA_NOTIFY_URL" help:"Notification service, as clients reach it: the API names it to them, and has it tell developers when an app breaks that asks for it; without it there is none."`
	Proxies  []netip.Prefix `env:"PROA_API_TRUSTED_PROXIES" help:"Networks of proxies whose X-Forwarded-For is believed."`
	Level    slog.Level     `env:"PROA_LOG_LEVEL" default:"info" help:"Least level of log lines: debug, info, warn, error."`
}

const usage = `The platform's API.

  api         serve until stopped
  api help    show this

Settings come from the environment; each NAME may also be NAME_FILE, the path of a file that holds the value.

`

func main() {
	run.Program{Name: "api", Usage: usage, Config: &config{}, Serve: serve}.Main()
}

func serve(ctx context.Context) error {
	var c config
	if err := env.Load(&c, os.Getenv); err != nil {
		return fmt.Errorf("%w\nRun: api help", err)
	}
	if err := c.check(); err != nil {
		return fmt.Errorf("%w\nRun: api help", err)
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: c.Level}))
	slog.SetDefault(log)
	box, err := seal.New([]byte(c.Keyset.Reveal()))
	if err != nil {
		return fmt.Errorf("PROA_API_KEYSET: %w", err)
	}
	s, err := store.Open(ctx, c.Database.Reveal(), box)
	if err != nil {
		return err
	}
	defer s.Close()
	domain, err := s.AppsDomain(ctx, c.Domain)
	if err != nil {
		return fmt.Errorf("PROA_APPS_DOMAIN: %w", err)
	}
	tcp, err := c.tcp(ctx, s)
	if err != nil {
		return fmt.Errorf("PROA_TCP_DOMAIN: %w", err)
	}
	registry, _, err := c.Open()
	if err != nil {
		return err
	}
	builder, err := registry.Builder(ctx, c.Builder)
	if err != nil {
		return fmt.Errorf("PROA_BUILDER: %w", err)
	}
	cluster, err := kube.Connect(c.Kubeconf, kube.Settings{Installation: c.Install})
	if err != nil {
		return err
	}
	brokers, err := c.brokers()
	if err != nil {
		return err
	}
	metrics := web.NewMetrics()
	services := &work.Service{Store: s, HTTP: brokers, Notify: c.notify(), Limits: work.Limits{Polling: c.Polling}, Log: log, Metrics: work.NewMetrics(metrics.Registry), Now: time.Now}
	keys := &token.Remote{URL: c.Auth.JoinPath("token_keys").String(), Client: client(), Now: time.Now}
	server := &api.Server{Store: s, URL: c.URL, Auth: c.Auth, Log: log, Metrics: metrics, Proxies: c.Proxies, Directory: c.directory(), Offer: c.offer(domain, tcp, builder),
		Clusters: map[string]*kube.Cluster{c.Cluster: cluster},
		Bits:     &bits.Packer{Registry: registry, Base: c.RunImage},
		Verifier: &token.Verifier{Issuer: c.issuer(), Audience: api.Audience, Key: keys.Key, Now: time.Now}}
	public, err := web.Listen(ctx, "the platform's API", c.Listen)
	if err != nil {
		return err
	}
	inner, err := web.Listen(ctx, "its metrics", c.Metrics)
	if err != nil {
		return err
	}
	return run.Until(ctx, log, web.Part("metrics", inner, metrics.Handler(), log), services.Part(), web.Part("api", public, server.Handler(), log),
		run.Part{Name: "log streams", Run: server.FollowLogs}) // the first to stop: the API waits for its requests, and streams have no end
}

// check refuses settings that would fail later.
func (c *config) check() error {
	var problems []error
	refuse := func(wrong bool, sentence string) {
		if wrong {
			problems = append(problems, errors.New(sentence))
		}
	}
	c.URL.Path, c.Auth.Path = strings.TrimSuffix(c.URL.Path, "/"), strings.TrimSuffix(c.Auth.Path, "/")
	refuse(c.URL.Path != "" || c.URL.RawQuery != "" || c.URL.Host == "", "PROA_API_URL must be an address without a path, such as https://api.example.org")
	refuse(c.Auth.Host == "", "PROA_AUTH_URL must be an address, such as https://auth.example.org")
	refuse(c.Notify != nil && c.Notify.Host == "", "PROA_NOTIFY_URL must be an address, such as https://notify.example.org")
	refuse((c.SSH == "") != (c.SSHKey == ""), "PROA_SSH_ADDRESS and PROA_SSH_FINGERPRINT need each other")
	refuse((c.TCP == "") != (c.Ports == ""), "PROA_TCP_DOMAIN and PROA_TCP_PORTS need each other")
	refuse(c.TCP != "" && strings.EqualFold(c.TCP, c.Domain), "PROA_TCP_DOMAIN must be another domain than PROA_APPS_DOMAIN, such as tcp."+c.Domain)
	if _, err := c.ports(); err != nil {
		problems = append(problems, fmt.Errorf("PROA_TCP_PORTS: %w", err))
	}
	refuse(c.Timeout <= 0 || c.Timeout > time.Hour, "PROA_BROKER_TIMEOUT must be a time between a moment and an hour, such as 60s")
	refuse(c.Polling <= 0, "PROA_BROKER_POLLING must be a time, such as 168h")
	_, err := c.brokers()
	problems = append(problems, err, c.Complete())
	return errors.Join(problems...)
}

// ports are those that routes of tcp can have.
func (c *config) ports() (platform.Ports, error) {
	if c.Ports == "" {
		return platform.Ports{}, nil
	}
	return platform.ParsePorts(c.Ports)
}

// tcp makes sure of the domain for routes of tcp, if there is to be one.
func (c *config) tcp(ctx context.Context, s *store.Store) (store.TCP, error) {
	if c.TCP == "" {
		return store.TCP{}, nil
	}
	named := platform.Domain{Name: strings.ToLower(c.TCP)}
	if err := named.Check(); err != nil {
		return store.TCP{}, err
	}
	ports, err := c.ports()
	if err != nil {
		return store.TCP{}, err
	}
	domain, err := s.TCPDomain(ctx, c.TCP)
	return store.TCP{Domain: domain, Ports: ports}, err
}

// client is how we ask other servers.
func client() *http.Client { return &http.Client{Timeout: 30 * time.Second} }

// brokers is how we ask service brokers.
func (c *config) brokers() (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if c.Trusted != "" {
		authorities, err := x509.SystemCertPool()
		if err != nil {
			authorities = x509.NewCertPool()
		}
		if !authorities.AppendCertsFromPEM([]byte(c.Trusted)) {
			return nil, errors.New("PROA_BROKER_CA must be certificates in PEM")
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Timeout: c.Timeout, Transport: transport}, nil
}

func (c *config) issuer() string {
	if c.Issuer != "" {
		return c.Issuer
	}
	return c.Auth.String()
}

func (c *config) directory() *api.Directory { return &api.Directory{Conn: c.conn()} }

// conn speaks to the authorization server as our own client.
func (c *config) conn() *uaa.Conn {
	conn := &uaa.Conn{URL: c.Auth.String(), HTTP: client()}
	conn.Token = conn.ClientCredentials(c.ClientID, c.Secret.Reveal())
	return conn
}

// notify is how developers are told of something, if there is a notification service.
func (c *config) notify() *v1.Client {
	if c.Notify == nil {
		return nil
	}
	return &v1.Client{URL: strings.TrimSuffix(c.Notify.String(), "/"), HTTP: &http.Client{Timeout: 10 * time.Second}, Token: c.conn().Token, Agent: "proa-api"}
}

// reserved are the hosts at which this installation answers itself.
func (c *config) reserved(domain platform.Domain) platform.Reserved {
	return platform.ReserveHosts(domain.Name, append(slices.Clone(c.Reserved), c.URL.Hostname(), c.Auth.Hostname())...).
		Beside(c.URL.Hostname(), c.Reserved...).Beside(c.Auth.Hostname(), c.Reserved...)
}

// offer is what apps can be built and reached with.
func (c *config) offer(domain platform.Domain, tcp store.TCP, builder bits.Builder) api.Offer {
	o := api.Offer{Domain: domain, TCP: tcp, Reach: c.Reach, Reserved: c.reserved(domain), SSH: api.SSH{Address: c.SSH, Fingerprint: c.SSHKey}, Notify: c.Notify, Since: domain.CreatedAt,
		Stacks: []platform.Stack{{Name: c.Stack, Description: "Cloud Native Buildpacks stack", BuildImage: builder.Image, RunImage: c.RunImage, Default: true}}}
	for _, b := range builder.Buildpacks {
		o.Buildpacks = append(o.Buildpacks, platform.Buildpack{Name: b.ID, Version: b.Version, Stack: c.Stack})
	}
	return o
}
