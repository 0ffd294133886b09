// Command auth is the authorization server.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"time"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/auth/api"
	"github.com/proa-dev/proa/auth/grant"
	"github.com/proa-dev/proa/auth/store"
	"github.com/proa-dev/proa/kit/env"
	"github.com/proa-dev/proa/kit/run"
	"github.com/proa-dev/proa/kit/seal"
	"github.com/proa-dev/proa/kit/web"
)

type config struct {
	database
	Listen      string         `env:"PROA_AUTH_LISTEN" default:"127.0.0.1:8081" help:"Address to serve on."`
	Metrics     string         `env:"PROA_AUTH_METRICS_LISTEN" default:"127.0.0.1:9081" help:"Address for /metrics; keep it away from users."`
	URL         *url.URL       `env:"PROA_AUTH_URL" required:"true" help:"Address at which people and clients reach this server, without a path; also the issuer of tokens."`
	Start       string         `env:"PROA_AUTH_START_FILE" help:"File with the groups, clients and first administrator to make sure of."`
	Proxies     []netip.Prefix `env:"PROA_AUTH_TRUSTED_PROXIES" help:"Networks of proxies whose X-Forwarded-For is believed."`
	MinPassword int            `env:"PROA_AUTH_PASSWORD_LENGTH" default:"8" help:"Least number of characters of a password."`
	Access      time.Duration  `env:"PROA_AUTH_ACCESS_TOKEN_LIFE" default:"10m" help:"Life of a person's access token, unless the client says otherwise."`
	Client      time.Duration  `env:"PROA_AUTH_CLIENT_TOKEN_LIFE" default:"1h" help:"Life of a client's own access token, unless the client says otherwise."`
	Refresh     time.Duration  `env:"PROA_AUTH_REFRESH_TOKEN_LIFE" default:"720h" help:"Life of a refresh token, unless the client says otherwise."`
	Code        time.Duration  `env:"PROA_AUTH_CODE_LIFE" default:"5m" help:"Life of a one-time code."`
	Level       slog.Level     `env:"PROA_LOG_LEVEL" default:"info" help:"Least level of log lines: debug, info, warn, error."`
}

// database is what the commands beside the server need too.
type database struct {
	Database env.Secret `env:"PROA_AUTH_DATABASE_URL" required:"true" help:"PostgreSQL database, as postgres://user:password@host/name."`
	Keyset   env.Secret `env:"PROA_AUTH_KEYSET" required:"true" help:"Keyset that seals the signing keys; make one with: auth keyset new."`
}

const usage = `The authorization server.

  auth                     serve until stopped
  auth keys list           show the signing keys
  auth keys rotate         publish a new key now, and sign with it two minutes later
  auth keys rotate --now   sign with a new key at once
  auth keys remove KID     withdraw a key at once, as after a theft
  auth keyset new          print a new keyset for PROA_AUTH_KEYSET
  auth keyset rotate       read a keyset, print it with a new key that seals from now on
  auth keyset prune        read a keyset, print it without its old keys
  auth help                show this

Settings come from the environment; each NAME may also be NAME_FILE, the path of a file that holds the value.

`

func main() {
	run.Program{Name: "auth", Usage: usage, Config: &config{}, Serve: serve, Other: others}.Main()
}

func others(ctx context.Context, args []string) (bool, error) {
	switch {
	case len(args) >= 2 && args[0] == "keys":
		return true, keys(ctx, args[1:])
	case len(args) == 2 && args[0] == "keyset":
		return true, keyset(args[1])
	}
	return false, nil
}

func serve(ctx context.Context) error {
	var c config
	if err := env.Load(&c, os.Getenv); err != nil {
		return fmt.Errorf("%w\nRun: auth help", err)
	}
	if c.URL.Path != "" && c.URL.Path != "/" || c.URL.Host == "" {
		return errors.New("PROA_AUTH_URL must be an address without a path, such as https://auth.example.org")
	}
	if c.Access > auth.MaxAccess || c.Client > auth.MaxAccess || c.Refresh > auth.MaxRefresh {
		return fmt.Errorf("an access token may live %s at most and a refresh token %s", auth.MaxAccess, auth.MaxRefresh)
	}
	c.URL.Path = ""
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: c.Level}))
	slog.SetDefault(log)
	s, box, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := begin(ctx, s, c.Start); err != nil {
		return err
	}
	signing := &grant.Keys{Store: s, Box: box, Log: log, Now: time.Now}
	if err := signing.Start(ctx); err != nil {
		return err
	}
	metrics := web.NewMetrics()
	server := &api.Server{
		Store: s, URL: c.URL, Log: log, Metrics: metrics, Proxies: c.Proxies, MinPassword: c.MinPassword, Now: time.Now,
		Engine: grant.New(grant.Engine{Store: s, Keys: signing, Issuer: c.URL.String(), Now: time.Now,
			Lives: grant.Lives{Access: c.Access, Client: c.Client, Refresh: c.Refresh, Code: c.Code}}),
	}
	public, err := web.Listen(ctx, "the authorization server", c.Listen)
	if err != nil {
		return err
	}
	inner, err := web.Listen(ctx, "its metrics", c.Metrics)
	if err != nil {
		return err
	}
	return run.Until(ctx, log, signing.Part(), sweeper(s, log), web.Part("metrics", inner, metrics.Handler(), log), web.Part("auth", public, server.Handler(), log))
}

func (d *database) open(ctx context.Context) (*store.Store, *seal.Box, error) {
	box, err := seal.New([]byte(d.Keyset.Reveal()))
	if err != nil {
		return nil, nil, fmt.Errorf("PROA_AUTH_KEYSET: %w", err)
	}
	s, err := store.Open(ctx, d.Database.Reveal())
	return s, box, err
}

// begin applies the start file.
func begin(ctx context.Context, s *store.Store, path string) error {
	if path == "" {
		return nil
	}
	file, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("PROA_AUTH_START_FILE: %w", err)
	}
	start, err := auth.ParseStart(file, env.Lookup)
	if err != nil {
		return err
	}
	return s.Apply(ctx, start)
}

// sweeper deletes what has expired, every ten minutes. Many processes may do it at once.
func sweeper(s *store.Store, log *slog.Logger) run.Part {
	return run.Part{Name: "sweep", Run: func(ctx context.Context) error {
		for {
			if err := s.Sweep(ctx, time.Now()); err != nil && ctx.Err() == nil {
				log.Warn("sweep", "error", err)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(10 * time.Minute):
			}
		}
	}}
}
