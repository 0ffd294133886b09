// Command pgbroker is a service broker that provides PostgreSQL databases.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/proa-dev/proa/brokers/postgres"
	"github.com/proa-dev/proa/kit/env"
	"github.com/proa-dev/proa/kit/run"
	"github.com/proa-dev/proa/kit/seal"
	"github.com/proa-dev/proa/kit/web"
)

type config struct {
	Listen    string        `env:"PROA_PGBROKER_LISTEN" default:"127.0.0.1:8085" help:"Address to serve on."`
	Metrics   string        `env:"PROA_PGBROKER_METRICS_LISTEN" default:"127.0.0.1:9085" help:"Address for /metrics; keep it away from users."`
	Username  string        `env:"PROA_PGBROKER_USERNAME" default:"platform" help:"Name by which the platform logs in."`
	Password  env.Secret    `env:"PROA_PGBROKER_PASSWORD" required:"true" help:"Its password: at least 16 characters of chance."`
	Database  env.Secret    `env:"PROA_PGBROKER_DATABASE_URL" required:"true" help:"PostgreSQL database for what was asked for, as postgres://user:password@host/name."`
	Keyset    env.Secret    `env:"PROA_PGBROKER_KEYSET" required:"true" help:"Keyset that seals the passwords of bindings; make one with: auth keyset new."`
	Server    env.Secret    `env:"PROA_PGBROKER_SERVER_URL" required:"true" help:"PostgreSQL server that gets the databases, as an account with CREATEDB and CREATEROLE; directly, not through a pooler."`
	Host      string        `env:"PROA_PGBROKER_HOST" required:"true" help:"Host at which apps reach that server."`
	Port      int           `env:"PROA_PGBROKER_PORT" default:"5432" help:"Its port there."`
	SSLMode   string        `env:"PROA_PGBROKER_SSLMODE" default:"require" help:"How apps are told to connect: disable, prefer, require, verify-ca or verify-full."`
	Workers   int           `env:"PROA_PGBROKER_WORKERS" default:"4" help:"Databases to make or drop at once, for each process."`
	FreeConns int           `env:"PROA_PGBROKER_FREE_CONNECTIONS" default:"5" help:"Connections to a database of the plan free."`
	FreeTime  time.Duration `env:"PROA_PGBROKER_FREE_STATEMENT_TIME" default:"30s" help:"Time of a statement there, unless the app sets another."`
	FreeFiles env.Bytes     `env:"PROA_PGBROKER_FREE_TEMP_FILES" default:"256MiB" help:"Temporary files of a session there."`
	Conns     int           `env:"PROA_PGBROKER_STANDARD_CONNECTIONS" default:"50" help:"Connections to a database of the plan standard."`
	Time      time.Duration `env:"PROA_PGBROKER_STANDARD_STATEMENT_TIME" default:"10m" help:"Time of a statement there, unless the app sets another."`
	Files     env.Bytes     `env:"PROA_PGBROKER_STANDARD_TEMP_FILES" default:"4GiB" help:"Temporary files of a session there."`
	Price     int           `env:"PROA_PGBROKER_STANDARD_PRICE" default:"10" help:"Euros a month that the catalog names for the plan standard."`
	Level     slog.Level    `env:"PROA_LOG_LEVEL" default:"info" help:"Least level of log lines: debug, info, warn, error."`
}

const usage = `A service broker that provides PostgreSQL databases.

  pgbroker         serve until stopped
  pgbroker help    show this

Settings come from the environment; each NAME may also be NAME_FILE, the path of a file that holds the value.

`

func main() {
	run.Program{Name: "pgbroker", Usage: usage, Config: &config{}, Serve: serve}.Main()
}

func serve(ctx context.Context) error {
	var c config
	if err := env.Load(&c, os.Getenv); err != nil {
		return fmt.Errorf("%w\nRun: pgbroker help", err)
	}
	if err := c.check(); err != nil {
		return fmt.Errorf("%w\nRun: pgbroker help", err)
	}
	plans, err := postgres.Plans(postgres.Limits{Connections: c.FreeConns, Statement: c.FreeTime, TempFiles: int64(c.FreeFiles)},
		postgres.Limits{Connections: c.Conns, Statement: c.Time, TempFiles: int64(c.Files)}, c.Price)
	if err != nil {
		return fmt.Errorf("%w\nRun: pgbroker help", err)
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: c.Level}))
	slog.SetDefault(log)
	box, err := seal.New([]byte(c.Keyset.Reveal()))
	if err != nil {
		return fmt.Errorf("PROA_PGBROKER_KEYSET: %w", err)
	}
	state, err := postgres.OpenState(ctx, c.Database.Reveal(), box)
	if err != nil {
		return fmt.Errorf("PROA_PGBROKER_DATABASE_URL: %w", err)
	}
	defer state.Close()
	server, err := postgres.OpenServer(ctx, c.Server.Reveal())
	if err != nil {
		return fmt.Errorf("PROA_PGBROKER_SERVER_URL: %w", err)
	}
	defer server.Close()
	if err := server.Guard(ctx, log); err != nil {
		return fmt.Errorf("PROA_PGBROKER_SERVER_URL: %w", err)
	}
	broker := &postgres.Broker{State: state, Server: server, Plans: plans, Host: c.Host, Port: c.Port, SSLMode: c.SSLMode, Workers: c.Workers, Log: log}
	work, metrics := broker.Part(), web.NewMetrics()
	public, err := web.Listen(ctx, "the broker", c.Listen)
	if err != nil {
		return err
	}
	inner, err := web.Listen(ctx, "its metrics", c.Metrics)
	if err != nil {
		return err
	}
	door := broker.Handler(postgres.Account{Username: c.Username, Password: c.Password.Reveal()}, metrics)
	return run.Until(ctx, log, work, web.Part("metrics", inner, metrics.Handler(), log), web.Part("pgbroker", public, door, log))
}

// check refuses settings that would fail later, or that would be a hole.
func (c *config) check() error {
	var problems []error
	refuse := func(wrong bool, sentence string) {
		if wrong {
			problems = append(problems, errors.New(sentence))
		}
	}
	modes := []string{"disable", "prefer", "require", "verify-ca", "verify-full"}
	refuse(!slices.Contains(modes, c.SSLMode), "PROA_PGBROKER_SSLMODE must be disable, prefer, require, verify-ca or verify-full")
	refuse(c.Port < 1 || c.Port > 65535, "PROA_PGBROKER_PORT must be from 1 to 65535")
	refuse(len(c.Password.Reveal()) < 16, "PROA_PGBROKER_PASSWORD must have at least 16 characters")
	refuse(c.Workers < 1 || c.Workers > 64, "PROA_PGBROKER_WORKERS must be from 1 to 64")
	return errors.Join(problems...)
}
