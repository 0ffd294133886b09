// Command notify is the notification service.
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
	"strings"
	"time"

	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/env"
	"github.com/proa-dev/proa/kit/run"
	"github.com/proa-dev/proa/kit/seal"
	"github.com/proa-dev/proa/kit/token"
	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/notify"
	"github.com/proa-dev/proa/notify/api"
	"github.com/proa-dev/proa/notify/bounce"
	"github.com/proa-dev/proa/notify/deliver"
	"github.com/proa-dev/proa/notify/directory"
	"github.com/proa-dev/proa/notify/store"
)

type config struct {
	Listen   string         `env:"PROA_NOTIFY_LISTEN" default:"127.0.0.1:8082" help:"Address to serve on."`
	Metrics  string         `env:"PROA_NOTIFY_METRICS_LISTEN" default:"127.0.0.1:9082" help:"Address for /metrics; keep it away from users."`
	URL      *url.URL       `env:"PROA_NOTIFY_URL" required:"true" help:"Address at which people and clients reach this service; it stands in the links of mails."`
	Database env.Secret     `env:"PROA_NOTIFY_DATABASE_URL" required:"true" help:"PostgreSQL database, as postgres://user:password@host/name."`
	Keyset   env.Secret     `env:"PROA_NOTIFY_KEYSET" required:"true" help:"Keyset that seals unsubscribe links; make one with: auth keyset new."`
	Auth     *url.URL       `env:"PROA_AUTH_URL" required:"true" help:"Authorization server: it issues the tokens we accept and knows the people."`
	Issuer   string         `env:"PROA_NOTIFY_TOKEN_ISSUER" help:"Issuer of those tokens, if it is not PROA_AUTH_URL itself, as with a UAA."`
	ClientID string         `env:"PROA_NOTIFY_CLIENT_ID" default:"notifications" help:"Our own client there; it needs scim.read, and cloud_controller.global_auditor for spaces and organizations."`
	Secret   env.Secret     `env:"PROA_NOTIFY_CLIENT_SECRET" required:"true" help:"Its secret."`
	Platform *url.URL       `env:"PROA_NOTIFY_PLATFORM_URL" help:"Platform API that knows spaces and organizations; without it they cannot be reached."`
	Relays   []string       `env:"PROA_NOTIFY_RELAYS" required:"true" help:"Mail servers in order of preference, such as smtp://user:password@mail.example.org:587?tls=starttls."`
	From     string         `env:"PROA_NOTIFY_FROM" required:"true" help:"Sender of the mails, such as Proa <notifications@example.org>."`
	Domain   string         `env:"PROA_NOTIFY_DOMAIN" required:"true" help:"Domain of Message-IDs."`
	Conns    int            `env:"PROA_NOTIFY_CONNECTIONS" default:"8" help:"Connections to a mail server for each of the lanes critical, normal and bulk."`
	Bounces  string         `env:"PROA_NOTIFY_BOUNCE_LISTEN" help:"Address for LMTP, where your mail server hands over bounces; without it there are none."`
	BounceTo string         `env:"PROA_NOTIFY_BOUNCE_DOMAIN" help:"Domain of the return paths; your mail server must hand its mail to PROA_NOTIFY_BOUNCE_LISTEN."`
	BounceBy env.Secret     `env:"PROA_NOTIFY_BOUNCE_KEY" help:"At least 32 characters of chance that sign the return paths."`
	DKIMFor  string         `env:"PROA_NOTIFY_DKIM_DOMAIN" help:"Domain to sign mails for with DKIM; without it they are not signed."`
	DKIMName string         `env:"PROA_NOTIFY_DKIM_SELECTOR" default:"proa" help:"Selector of the DKIM key."`
	DKIMKey  env.Secret     `env:"PROA_NOTIFY_DKIM_KEY" help:"Private key for DKIM, in PEM."`
	Keep     time.Duration  `env:"PROA_NOTIFY_KEEP" default:"720h" help:"How long messages and deliveries are remembered."`
	Rate     int            `env:"PROA_NOTIFY_RATE" default:"50" help:"Sends a second of one client, for each process."`
	Burst    int            `env:"PROA_NOTIFY_BURST" default:"200" help:"Sends of one client at once, for each process."`
	CORS     string         `env:"PROA_NOTIFY_CORS_ORIGIN" help:"Origin of a page that may ask for preferences from a browser."`
	Proxies  []netip.Prefix `env:"PROA_NOTIFY_TRUSTED_PROXIES" help:"Networks of proxies whose X-Forwarded-For is believed."`
	Level    slog.Level     `env:"PROA_LOG_LEVEL" default:"info" help:"Least level of log lines: debug, info, warn, error."`
}

const usage = `The notification service.

  notify         serve until stopped
  notify help    show this

Settings come from the environment; each NAME may also be NAME_FILE, the path of a file that holds the value.

`

func main() {
	run.Program{Name: "notify", Usage: usage, Config: &config{}, Serve: serve}.Main()
}

func serve(ctx context.Context) error {
	var c config
	if err := env.Load(&c, os.Getenv); err != nil {
		return fmt.Errorf("%w\nRun: notify help", err)
	}
	if err := c.check(); err != nil {
		return fmt.Errorf("%w\nRun: notify help", err)
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: c.Level}))
	slog.SetDefault(log)
	box, err := seal.New([]byte(c.Keyset.Reveal()))
	if err != nil {
		return fmt.Errorf("PROA_NOTIFY_KEYSET: %w", err)
	}
	pools, err := c.pools(log)
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, c.Database.Reveal(), time.Now)
	if err != nil {
		return err
	}
	defer s.Close()
	metrics := web.NewMetrics()
	worker := &deliver.Service{Store: s, Directory: c.directory(), Pools: pools, Box: box, From: c.From, Domain: c.Domain, URL: c.URL, Keep: c.Keep,
		Metrics: deliver.NewMetrics(metrics.Registry), Log: log, Now: time.Now}
	parts, err := c.bounces(ctx, s, worker, log)
	if err != nil {
		return err
	}
	keys := &token.Remote{URL: c.Auth.JoinPath("token_keys").String(), Client: client(), Now: time.Now}
	server := &api.Server{Store: s, Box: box, URL: c.URL, From: c.From, Domain: c.Domain, Log: log, Metrics: metrics, Proxies: c.Proxies,
		Rate: api.Rate{PerSecond: c.Rate, Burst: c.Burst}, CORS: c.CORS, Now: time.Now,
		Verifier: &token.Verifier{Issuer: c.issuer(), Audience: api.Audience, Key: keys.Key, Now: time.Now}}
	public, err := web.Listen(ctx, "the notification service", c.Listen)
	if err != nil {
		return err
	}
	inner, err := web.Listen(ctx, "its metrics", c.Metrics)
	if err != nil {
		return err
	}
	parts = append(parts, worker.Part(), web.Part("metrics", inner, metrics.Handler(), log), web.Part("notify", public, server.Handler(), log))
	return run.Until(ctx, log, parts...)
}

// check refuses settings with which every mail would fail later, or none would be sent.
func (c *config) check() error {
	var problems []error
	refuse := func(wrong bool, sentence string) {
		if wrong {
			problems = append(problems, errors.New(sentence))
		}
	}
	c.URL.Path = strings.TrimSuffix(c.URL.Path, "/")
	refuse(c.URL.Path != "" || c.URL.RawQuery != "" || c.URL.Host == "", "PROA_NOTIFY_URL must be an address without a path, such as https://notify.example.org")
	refuse(c.Conns < 1, "PROA_NOTIFY_CONNECTIONS must be at least 1")
	refuse(c.Rate < 1 || c.Burst < 1, "PROA_NOTIFY_RATE and PROA_NOTIFY_BURST must be at least 1")
	refuse(c.Keep < 48*time.Hour, "PROA_NOTIFY_KEEP must be at least 48h: a mail may be tried for hours")
	refuse(c.DKIMFor == "" && c.DKIMKey.Reveal() != "", "PROA_NOTIFY_DKIM_KEY needs PROA_NOTIFY_DKIM_DOMAIN")
	refuse(c.Bounces == "" && (c.BounceTo != "" || c.BounceBy.Reveal() != ""), "PROA_NOTIFY_BOUNCE_DOMAIN and PROA_NOTIFY_BOUNCE_KEY need PROA_NOTIFY_BOUNCE_LISTEN")
	template, err := notify.Default().Parse()
	if err != nil {
		return err
	}
	letter := notify.Letter{Message: notify.Message{Text: "x", Audience: notify.Audience{Kind: notify.ToUser, ID: "x"}}, Template: template, Person: notify.Person{Address: "ann@example.org"},
		DeliveryID: notify.NewID(time.Now()), From: c.From, Domain: c.Domain, Now: time.Now(), UnsubscribeURL: c.URL.String() + "/unsubscribe"}
	if c.BounceTo != "" {
		letter.ReturnPath = "b@" + c.BounceTo
	}
	if _, err := notify.Compose(letter); err != nil {
		problems = append(problems, fmt.Errorf("no mail can be written with PROA_NOTIFY_FROM, PROA_NOTIFY_DOMAIN, PROA_NOTIFY_URL and PROA_NOTIFY_BOUNCE_DOMAIN as they are: %w", err))
	}
	return errors.Join(problems...)
}

// client is how we ask other servers.
func client() *http.Client { return &http.Client{Timeout: 30 * time.Second} }

func (c *config) issuer() string {
	if c.Issuer != "" {
		return c.Issuer
	}
	return strings.TrimSuffix(c.Auth.String(), "/")
}

func (c *config) directory() *directory.Directory {
	auth := &uaa.Conn{URL: strings.TrimSuffix(c.Auth.String(), "/"), HTTP: client()}
	auth.Token = auth.ClientCredentials(c.ClientID, c.Secret.Reveal())
	d := &directory.Directory{Auth: auth}
	if c.Platform != nil {
		d.Platform = &uaa.Conn{URL: strings.TrimSuffix(c.Platform.String(), "/"), HTTP: client(), Token: auth.Token}
	}
	return d
}

// pools are one for each lane.
func (c *config) pools(log *slog.Logger) (map[notify.Class]*deliver.Pool, error) {
	var relays []deliver.Relay
	for _, text := range c.Relays {
		r, err := deliver.ParseRelay(text)
		if err != nil {
			return nil, fmt.Errorf("PROA_NOTIFY_RELAYS: %w", err)
		}
		relays = append(relays, r)
	}
	var signer *deliver.Signer
	if c.DKIMFor != "" {
		var err error
		if signer, err = deliver.NewSigner(c.DKIMFor, c.DKIMName, []byte(c.DKIMKey.Reveal())); err != nil {
			return nil, fmt.Errorf("PROA_NOTIFY_DKIM_KEY: %w", err)
		}
	}
	pools := map[notify.Class]*deliver.Pool{}
	for _, class := range []notify.Class{notify.Critical, notify.Normal, notify.Bulk} {
		pools[class] = &deliver.Pool{Relays: relays, PerRelay: c.Conns, MaxPerConn: 1000, CommandTimeout: deliver.CommandTimeout, Now: time.Now, DKIM: signer, Log: log}
	}
	return pools, nil
}

// bounces makes the part that takes mails that come back, if the operator has set it up.
func (c *config) bounces(ctx context.Context, s *store.Store, worker *deliver.Service, log *slog.Logger) ([]run.Part, error) {
	if c.Bounces == "" {
		return nil, nil
	}
	if c.BounceTo == "" || len(c.BounceBy.Reveal()) < 32 {
		return nil, errors.New("PROA_NOTIFY_BOUNCE_LISTEN needs PROA_NOTIFY_BOUNCE_DOMAIN, and PROA_NOTIFY_BOUNCE_KEY with at least 32 characters")
	}
	worker.Path = &bounce.Path{Key: []byte(c.BounceBy.Reveal()), Domain: c.BounceTo}
	l, err := web.Listen(ctx, "bounces", c.Bounces)
	if err != nil {
		return nil, err
	}
	server := &bounce.Server{Domain: c.BounceTo, Open: worker.Path.Open, Log: log, Take: func(ctx context.Context, r bounce.Report) error {
		err := s.Bounced(ctx, r.DeliveryID, r.Status, notify.MaskAll(r.Diagnostic), r.Hard)
		if err == nil {
			worker.Metrics.Bounced(r.Hard)
		}
		return err
	}}
	return []run.Part{server.Part(l)}, nil
}
