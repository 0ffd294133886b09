// Package pg owns how Proa reaches PostgreSQL: the pool and its limits, transactions that roll back
// and retry by themselves, and migrations that many processes can start at once. The statements
// belong to the stores.
package pg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proa-dev/proa/kit/fault"
)

// Open makes a pool and waits until the server answers or ctx ends. What cannot get better by
// waiting, such as a wrong password, is an error at once. No error shows the password.
//
// Settings in the URL win over ours: connect_timeout (5 s), statement_timeout (30 s),
// idle_in_transaction_session_timeout (60 s), application_name (the program's), pool_max_conns
// (four for each processor, at least four) and the other pool_ settings of pgxpool. An option
// changes the configuration last.
func Open(ctx context.Context, url string, opts ...func(*pgxpool.Config)) (*pgxpool.Pool, error) {
	cfg, err := configure(url)
	if err != nil {
		return nil, err
	}
	for _, opt := range opts {
		opt(cfg)
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open pool: %w", err)
	}
	if err := await(ctx, pool); err != nil {
		pool.Close()
		return nil, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	return pool, nil
}

func configure(url string) (*pgxpool.Config, error) {
	if misread(url) {
		return nil, errURL
	}
	asked, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, badURL(url, err)
	}
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, badURL(url, err)
	}
	given := func(name string) bool {
		_, ok := asked.RuntimeParams[name]
		return ok || strings.Contains(asked.RuntimeParams["options"], name)
	}
	for name, value := range map[string]string{
		"application_name":                    filepath.Base(os.Args[0]),
		"statement_timeout":                   "30s",
		"idle_in_transaction_session_timeout": "60s",
	} {
		if !given(name) {
			cfg.ConnConfig.RuntimeParams[name] = value
		}
	}
	if asked.ConnectTimeout == 0 {
		cfg.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	if !given("pool_max_conns") {
		cfg.MaxConns = int32(max(4, 4*runtime.NumCPU()))
	}
	if !given("pool_health_check_period") {
		cfg.HealthCheckPeriod = 30 * time.Second
	}
	if !given("pool_max_conn_lifetime_jitter") { // or all connections of a fleet are renewed together
		cfg.MaxConnLifetimeJitter = cfg.MaxConnLifetime / 10
	}
	if !given("pool_ping_timeout") { // or a request waits for a server that is gone without a word
		cfg.PingTimeout = 5 * time.Second
	}
	return cfg, nil
}

// errURL is for a URL of which it is not certain what part is the password.
var errURL = errors.New("the database URL is not valid: it must look like postgres://user:password@host:5432/name, " +
	"with special characters of the password escaped (/ is %2F, @ is %40)")

// misread tells whether a password that is not escaped has slipped into the host or the name of the
// database, both of which errors show.
func misread(url string) bool {
	_, rest, isURL := strings.Cut(url, "://")
	authority, rest, _ := strings.Cut(rest, "/")
	path, _, _ := strings.Cut(rest, "?")
	n := strings.Count(authority, "@")
	return isURL && (n > 1 || n == 0 && strings.Contains(path, "@"))
}

// badURL keeps the reason, which stands after the quoted URL, where it cannot show a password.
func badURL(url string, err error) error {
	text := err.Error()
	i := strings.LastIndex(text, "`: ")
	if i < 0 || !strings.Contains(url, "://") || strings.Count(url, "@") > 1 || strings.Contains(text[i:], "failed to parse") {
		return errURL
	}
	return fmt.Errorf("the database URL is not valid: %s", text[i+3:])
}

// await asks until the server answers. It logs each new reason for waiting once.
func await(ctx context.Context, pool *pgxpool.Pool) error {
	var last error
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := pool.Ping(ctx)
		if err == nil || final(err) {
			return err
		}
		if ctx.Err() == nil && (last == nil || last.Error() != err.Error()) {
			last = err
			slog.WarnContext(ctx, "waiting for PostgreSQL", "error", err)
		}
		select {
		case <-ctx.Done():
			if last == nil {
				return err
			}
			return fmt.Errorf("%w: %w", context.Cause(ctx), last)
		case <-time.After(wait):
		}
	}
}

// final tells answers of a server that will not change from those of one that is still starting
// (57P03), stopping (57P01, 57P02) or full (53300).
func final(err error) bool {
	switch code(err) {
	case "", "57P01", "57P02", "57P03", "53300":
		return false
	}
	return true
}

// Conflict gives the name of the constraint when err is a unique or foreign key violation, so that
// a store can turn it into a sentence.
func Conflict(err error) (constraint string, ok bool) {
	var e *pgconn.PgError
	if errors.As(err, &e) && (e.Code == "23505" || e.Code == "23503") {
		return e.ConstraintName, true
	}
	return "", false
}

// Fault is what an error of the server means for whoever asked, or nil when that is nobody's fault but ours.
func Fault(err error) *fault.Error {
	switch class := code(err); {
	case class == "22021" || class == "22P05":
		return fault.Invalid("A value holds a character that cannot be kept, such as NUL. Remove it.").Because(err)
	case away(err):
		return fault.Unavailable("The service cannot take this now. Nothing was done; try again in a moment.").Because(err)
	}
	return nil
}

// away tells whether err means that the server cannot be reached or takes no more work, so that trying later may help.
func away(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	switch class := code(err); {
	case class != "":
		return strings.HasPrefix(class, "08") || strings.HasPrefix(class, "53") || strings.HasPrefix(class, "57P") || class == "25006"
	case errors.As(err, &connect), errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), pgconn.SafeToRetry(err):
		return true
	}
	return false
}

// NoRows tells whether err means that a query for one row found none.
func NoRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }

// code is the SQLSTATE in err, or empty when err is not the server's.
func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
