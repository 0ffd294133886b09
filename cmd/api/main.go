// Command api is the platform's API.
package main

import (
	"context"
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
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/api"
	"github.com/proa-dev/proa/platform/bits"
	"github.com/proa-dev/proa/platform/kube"
	"github.com/proa-dev/proa/platform/store"
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
	ClientID string         `env:"PROA_API_CLIENT_ID" default:"cloud_controller" help:"Our own client there; it needs scim.read and clients.read."`
	Secret   env.Secret     `env:"PROA_API_CLIENT_SECRET" required:"true" help:"Its secret."`
	Cluster  string         `env:"PROA_CLUSTER" default:"default" help:"Cluster that KUBECONFIG leads to, as the records name it."`
	Install  string         `env:"PROA_INSTALLATION" default:"proa" help:"Name of this installation on that cluster."`
	Kubeconf string         `env:"KUBECONFIG" help:"File that says how to reach the cluster, where logs and usage are read; without it, the pod we run in does."`
	Domain   string         `env:"PROA_APPS_DOMAIN" default:"apps.proa.localhost" help:"Domain that all apps share."`
	Reach    *url.URL       `env:"PROA_APPS_URL" help:"Scheme and port at which clients reach apps, such as https://apps.example.org:8443; without it, the scheme of PROA_API_URL."`
	Reserved []string       `env:"PROA_RESERVED_HOSTS" default:"api,login,uaa,auth,notify,ssh,doppler,log-cache" help:"Hosts that no app gets: in full, or the first label on the apps domain and beside the API and the authorization server; those of PROA_API_URL and PROA_AUTH_URL are added."`
	Stack    string         `env:"PROA_STACK" default:"proa" help:"What to call the builder's stack."`
	SSH      string         `env:"PROA_SSH_ADDRESS" help:"Where the ssh server is reached, as host:port; without it there is none."`
	SSHKey   string         `env:"PROA_SSH_FINGERPRINT" help:"Fingerprint of its host key: SHA-256 in base64, without padding."`
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
	metrics := web.NewMetrics()
	keys := &token.Remote{URL: c.Auth.JoinPath("token_keys").String(), Client: client(), Now: time.Now}
	server := &api.Server{Store: s, URL: c.URL, Auth: c.Auth, Log: log, Metrics: metrics, Proxies: c.Proxies, Directory: c.directory(), Offer: c.offer(domain, builder),
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
	return run.Until(ctx, log, web.Part("metrics", inner, metrics.Handler(), log), web.Part("api", public, server.Handler(), log),
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
	refuse((c.SSH == "") != (c.SSHKey == ""), "PROA_SSH_ADDRESS and PROA_SSH_FINGERPRINT need each other")
	problems = append(problems, c.Complete())
	return errors.Join(problems...)
}

// client is how we ask other servers.
func client() *http.Client { return &http.Client{Timeout: 30 * time.Second} }

func (c *config) issuer() string {
	if c.Issuer != "" {
		return c.Issuer
	}
	return c.Auth.String()
}

func (c *config) directory() *api.Directory {
	conn := &uaa.Conn{URL: c.Auth.String(), HTTP: client()}
	conn.Token = conn.ClientCredentials(c.ClientID, c.Secret.Reveal())
	return &api.Directory{Conn: conn}
}

// reserved are the hosts at which this installation answers itself.
func (c *config) reserved(domain platform.Domain) platform.Reserved {
	return platform.ReserveHosts(domain.Name, append(slices.Clone(c.Reserved), c.URL.Hostname(), c.Auth.Hostname())...).
		Beside(c.URL.Hostname(), c.Reserved...).Beside(c.Auth.Hostname(), c.Reserved...)
}

// offer is what apps can be built and reached with.
func (c *config) offer(domain platform.Domain, builder bits.Builder) api.Offer {
	o := api.Offer{Domain: domain, Reach: c.Reach, Reserved: c.reserved(domain), SSH: api.SSH{Address: c.SSH, Fingerprint: c.SSHKey}, Since: domain.CreatedAt,
		Stacks: []platform.Stack{{Name: c.Stack, Description: "Cloud Native Buildpacks stack", BuildImage: builder.Image, RunImage: c.RunImage, Default: true}}}
	for _, b := range builder.Buildpacks {
		o.Buildpacks = append(o.Buildpacks, platform.Buildpack{Name: b.ID, Version: b.Version, Stack: c.Stack})
	}
	return o
}
