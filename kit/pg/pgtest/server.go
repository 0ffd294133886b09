package pgtest

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proa-dev/proa/kit/pg"
)

// server is one session on the maintenance database.
type server struct {
	base *url.URL
	pool *pgxpool.Pool
	conn *pgxpool.Conn
}

func connect(t testing.TB) server {
	t.Helper()
	given := os.Getenv(variable)
	if given == "" {
		t.Fatalf("%s is not set: run `make test`, or run `make test-db` and export what it prints.", variable)
	}
	base, err := url.Parse(given)
	if err != nil || base.Host == "" {
		t.Fatalf("%s must be a URL such as postgres://postgres@127.0.0.1:5432/postgres", variable)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	pool, err := pg.Open(ctx, given, func(c *pgxpool.Config) {
		c.MaxConns = 1
		c.ConnConfig.RuntimeParams["statement_timeout"] = "0" // the lock may be long in coming
	})
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		pool.Close()
		t.Fatalf("pgtest: %v", err)
	}
	return server{base: base, pool: pool, conn: conn}
}

func (s server) close() {
	s.conn.Release()
	s.pool.Close() // which also gives back any lock
}

func (s server) url(database string) string {
	u := *s.base
	u.Path = "/" + database
	u.RawQuery = strings.TrimPrefix(u.RawQuery+"&pool_max_conns="+maxConns, "&") // of two settings the last counts
	return u.String()
}

func (s server) exec(ctx context.Context, sql string, args ...any) error {
	if _, err := s.conn.Exec(ctx, sql, args...); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

func (s server) drop(ctx context.Context, name, how string) error {
	return s.exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" "+how)
}

// database makes a new database for a test.
func (s server) database(ctx context.Context, fsys fs.FS, table string) (string, error) {
	name := stamp() + strings.ToLower(rand.Text()[:16])
	if fsys == nil {
		return name, s.exec(ctx, "CREATE DATABASE "+name+" TEMPLATE template0")
	}
	hash, err := fingerprint(fsys, table)
	if err != nil {
		return "", fmt.Errorf("read migrations: %w", err)
	}
	for {
		copied, err := s.copyTemplate(ctx, hash, name)
		if err != nil || copied {
			return name, err
		}
		if err := s.makeTemplate(ctx, hash, fsys, table); err != nil {
			return "", err
		}
	}
}

// copyTemplate says false when there is no template yet.
func (s server) copyTemplate(ctx context.Context, hash, name string) (copied bool, err error) {
	if err := s.exec(ctx, "SELECT pg_advisory_lock_shared($1)", lockKey); err != nil {
		return false, err
	}
	defer func() { err = cmp.Or(err, s.exec(ctx, "SELECT pg_advisory_unlock_shared($1)", lockKey)) }()
	template, err := s.template(ctx, hash)
	if err != nil || template == "" {
		return false, err
	}
	return true, s.exec(ctx, "CREATE DATABASE "+name+" TEMPLATE "+template)
}

// makeTemplate makes the template unless another process was faster. One that can be connected to
// is not finished, so a process that dies in the middle leaves nothing that would be copied.
func (s server) makeTemplate(ctx context.Context, hash string, fsys fs.FS, table string) (err error) {
	if err := s.exec(ctx, "SELECT pg_advisory_lock($1)", lockKey); err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, s.exec(ctx, "SELECT pg_advisory_unlock($1)", lockKey)) }()
	if template, err := s.template(ctx, hash); err != nil || template != "" {
		return err
	}
	if err := s.sweep(ctx); err != nil {
		return err
	}
	name := stamp() + "template_" + hash
	if err := s.drop(ctx, name, "WITH (FORCE)"); err != nil {
		return err
	}
	if err := s.exec(ctx, "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		return err
	}
	if err := migrate(ctx, s.url(name), fsys, table); err != nil {
		return cmp.Or(err, s.drop(ctx, name, "WITH (FORCE)"))
	}
	return s.exec(ctx, "ALTER DATABASE "+name+" ALLOW_CONNECTIONS false")
}

func migrate(ctx context.Context, url string, fsys fs.FS, table string) error {
	pool, err := pg.Open(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	return pg.Migrate(ctx, pool, fsys, table)
}

// template finds the finished template that is young enough to be there for a while.
func (s server) template(ctx context.Context, hash string) (string, error) {
	names, err := s.list(ctx, `SELECT datname FROM pg_database WHERE NOT datallowconn
		AND datname ~ ('^proa_test_[0-9]+_template_' || $1 || '$')
		AND split_part(datname, '_', 3)::bigint > $2`, hash, horizon())
	if err != nil || len(names) == 0 {
		return "", err
	}
	return names[0], nil
}

// sweep drops what is too old. What is still in use stays.
func (s server) sweep(ctx context.Context) error {
	names, err := s.list(ctx, `SELECT datname FROM pg_database WHERE datname ~ '^proa_test_[0-9]+_'
		AND split_part(datname, '_', 3)::bigint <= $1
		AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.datname = pg_database.datname)`, horizon())
	if err != nil {
		return err
	}
	for _, name := range names {
		_ = s.drop(ctx, name, "") // someone came back to it: then it is not left over
	}
	return nil
}

func (s server) list(ctx context.Context, sql string, args ...any) ([]string, error) {
	rows, err := s.conn.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("list databases: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func stamp() string { return fmt.Sprintf("proa_test_%d_", time.Now().Unix()) }

func horizon() int64 { return time.Now().Add(-maxAge).Unix() }

// fingerprint is the same for the same migrations noted in the same table.
func fingerprint(fsys fs.FS, table string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", table)
	err := fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(fsys, path)
		fmt.Fprintf(h, "%q %d\n%s\n", path, len(content), content)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)[:8]), err
}
