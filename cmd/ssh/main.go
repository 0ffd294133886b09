// Command ssh lets developers into the containers of their apps.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/proa-dev/proa/kit/env"
	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/run"
	"github.com/proa-dev/proa/kit/token"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform/kube"
	"github.com/proa-dev/proa/platform/ssh"
	"github.com/proa-dev/proa/platform/store"
)

type config struct {
	Listen       string        `env:"PROA_SSH_LISTEN" default:"127.0.0.1:2222" help:"Address to serve on."`
	Metrics      string        `env:"PROA_SSH_METRICS_LISTEN" default:"127.0.0.1:9084" help:"Address for /metrics, /healthz and /readyz; keep it away from users."`
	HostKey      env.Secret    `env:"PROA_SSH_HOST_KEY" required:"true" help:"Private key that clients know this server by, as PEM; make one with: bin/proa-ssh key."`
	Database     env.Secret    `env:"PROA_SSH_DATABASE_URL" required:"true" help:"PostgreSQL database of the API, as postgres://user:password@host/name."`
	Auth         *url.URL      `env:"PROA_AUTH_URL" required:"true" help:"Authorization server: it says whose a one-time code is."`
	Issuer       string        `env:"PROA_SSH_TOKEN_ISSUER" help:"Issuer of its tokens, if it is not PROA_AUTH_URL itself, as with a UAA."`
	Secret       env.Secret    `env:"PROA_SSH_CLIENT_SECRET" required:"true" help:"Secret of the client ssh-proxy there."`
	Cluster      string        `env:"PROA_CLUSTER" default:"default" help:"Cluster that KUBECONFIG leads to, as the API's records name it."`
	Installation string        `env:"PROA_INSTALLATION" default:"proa" help:"Name of this installation on that cluster."`
	Kubeconfig   string        `env:"KUBECONFIG" help:"File that says how to reach the cluster; without it, the pod we run in does."`
	Connections  int           `env:"PROA_SSH_CONNECTIONS" default:"500" help:"Most connections at a time."`
	Idle         time.Duration `env:"PROA_SSH_IDLE" default:"15m" help:"How long nothing may move on a connection before it is ended."`
	Level        slog.Level    `env:"PROA_LOG_LEVEL" default:"info" help:"Least level of log lines: debug, info, warn, error."`
}

// The program is called proa-ssh where it is installed: there is another ssh on every machine.
const usage = `Lets developers into the containers of their apps.

  proa-ssh                serve until stopped
  proa-ssh key            make a host key
  proa-ssh fingerprint    show the fingerprint of the host key, for PROA_SSH_FINGERPRINT of the API
  proa-ssh help           show this

Settings come from the environment; each NAME may also be NAME_FILE, the path of a file that holds the value.

`

func main() {
	run.Program{Name: "proa-ssh", Usage: usage, Config: &config{}, Serve: serve, Other: other}.Main()
}

func serve(ctx context.Context) error {
	var c config
	if err := env.Load(&c, os.Getenv); err != nil {
		return fmt.Errorf("%w\nRun: proa-ssh help", err)
	}
	if err := c.check(); err != nil {
		return fmt.Errorf("%w\nRun: proa-ssh help", err)
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: c.Level}))
	slog.SetDefault(log)
	key, err := ssh.ReadKey([]byte(c.HostKey.Reveal()))
	if err != nil {
		return fmt.Errorf("PROA_SSH_HOST_KEY: %w", err)
	}
	cluster, err := kube.Connect(c.Kubeconfig, kube.Settings{Installation: c.Installation})
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, c.Database.Reveal(), nil) // nothing that is sealed is needed here, so nothing can be opened
	if err != nil {
		return err
	}
	defer s.Close()
	metrics := web.NewMetrics()
	keys := &token.Remote{URL: c.Auth.JoinPath("token_keys").String(), Client: &http.Client{Timeout: 10 * time.Second}, Now: time.Now}
	server := &ssh.Server{Store: s, Clusters: map[string]*kube.Cluster{c.Cluster: cluster}, HostKey: key, Log: log, Now: time.Now,
		Exchange: ssh.Exchange(c.Auth, c.Secret.Reveal()), Metrics: ssh.NewMetrics(metrics.Registry),
		Verifier: &token.Verifier{Issuer: c.issuer(), Audience: ssh.Audience, Key: keys.Key, Now: time.Now},
		Limits:   ssh.Limits{Connections: c.Connections, Idle: c.Idle}}
	public, err := web.Listen(ctx, "the ssh server", c.Listen)
	if err != nil {
		return err
	}
	inner, err := web.Listen(ctx, "its metrics", c.Metrics)
	if err != nil {
		return err
	}
	return run.Until(ctx, log, web.Part("metrics", inner, inside(s, metrics), log), server.Part(public))
}

// check refuses settings that would fail later.
func (c *config) check() error {
	var problems []error
	refuse := func(wrong bool, sentence string) {
		if wrong {
			problems = append(problems, errors.New(sentence))
		}
	}
	c.Auth.Path = strings.TrimSuffix(c.Auth.Path, "/")
	refuse(c.Auth.Host == "", "PROA_AUTH_URL must be an address, such as https://auth.example.org")
	refuse(c.Connections < 1, "PROA_SSH_CONNECTIONS must be at least 1")
	refuse(c.Idle < time.Minute, "PROA_SSH_IDLE must be at least 1m")
	return errors.Join(problems...)
}

func (c *config) issuer() string {
	if c.Issuer != "" {
		return c.Issuer
	}
	return c.Auth.String()
}

// inside is what operators ask.
func inside(s *store.Store, metrics *web.Metrics) http.Handler {
	health := &web.App{Log: slog.New(slog.DiscardHandler), Ready: s.Ping, Fault: func(w http.ResponseWriter, _ *http.Request, f *fault.Error) {
		http.Error(w, f.Detail, f.Status())
	}}
	health.Health()
	mux := http.NewServeMux()
	mux.Handle("/", health)
	mux.Handle("GET /metrics", metrics.Handler())
	return mux
}

// other are the commands for keys.
func other(_ context.Context, args []string) (known bool, err error) {
	switch strings.Join(args, " ") {
	case "key":
		key, err := ssh.NewKey()
		if err == nil {
			_, err = os.Stdout.Write(key)
		}
		return true, err
	case "fingerprint":
		var c struct {
			HostKey env.Secret `env:"PROA_SSH_HOST_KEY" required:"true"`
		}
		if err := env.Load(&c, os.Getenv); err != nil {
			return true, err
		}
		key, err := ssh.ReadKey([]byte(c.HostKey.Reveal()))
		if err != nil {
			return true, fmt.Errorf("PROA_SSH_HOST_KEY: %w", err)
		}
		fmt.Println(ssh.Fingerprint(key))
		return true, nil
	}
	return false, nil
}
