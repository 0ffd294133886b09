package pg

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// Followed is migrations that bring along what no file of them says, such as the tables of a queue. Follow comes after the files, each time.
type Followed interface {
	fs.FS
	Follow(ctx context.Context, pool *pgxpool.Pool) error
}

// DefaultTable is where Migrate keeps the versions when no table is named.
const DefaultTable = "schema_version"

// Migrate applies the migrations at the root of fsys (goose SQL files, such as 00001_start.sql) that
// the database does not have yet, and notes them in table. Any number of processes may call it at
// once: an advisory lock lets one work while the others wait. A database that is newer than fsys is
// left as it is, so that the previous release keeps running beside the next one. Migrations that are
// Followed bring the rest along.
//
// It uses connections of its own, made like those of the pool but without statement timeouts:
// building an index may take its time.
func Migrate(ctx context.Context, pool *pgxpool.Pool, fsys fs.FS, table string) error {
	if table == "" {
		table = DefaultTable
	}
	cfg := pool.Config()
	cfg.MinConns, cfg.MinIdleConns, cfg.MaxConns = 0, 0, 2
	cfg.ConnConfig.RuntimeParams["statement_timeout"] = "0"
	cfg.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "0"
	own, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	defer own.Close()
	db := stdlib.OpenDBFromPool(own)
	defer func() { _ = db.Close() }() // it holds nothing: the connections are the pool's

	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 600)) // ask each second for ten minutes
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, fsys,
		goose.WithTableName(table), goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if more, ok := fsys.(Followed); ok {
		return more.Follow(ctx, pool)
	}
	return nil
}
