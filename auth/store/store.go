// Package store holds every SQL statement of the authorization server. An exported method is one transaction.
package store

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/kit/pg"
)

//go:embed migrations/*.sql
var embedded embed.FS

// Migrations are the schema's steps, in order.
func Migrations() fs.FS {
	sub, err := fs.Sub(embedded, "migrations")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return sub
}

// Table is where goose notes which migrations were applied.
const Table = "auth_schema"

// Store keeps the records of the authorization server in PostgreSQL.
type Store struct {
	pool *pgxpool.Pool
}

// Open connects, and brings the schema up to date.
func Open(ctx context.Context, url string) (*Store, error) {
	pool, err := pg.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	if err := pg.Migrate(ctx, pool, Migrations(), Table); err != nil {
		pool.Close()
		return nil, err
	}
	return &Store{pool: pool}, nil
}

// New is a store on a pool that is migrated already.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool} }

// Close lets the connections go.
func (s *Store) Close() { s.pool.Close() }

// Ping tells whether the database answers.
func (s *Store) Ping(ctx context.Context) error { return s.pool.Ping(ctx) }

// Page is one request for a list.
type Page struct {
	Filter *auth.Filter
	SortBy string // canonical attribute; the id when empty
	Down   bool
	Start  int // counted from 1
	Count  int
}

// MaxPage is the most records in one page.
const MaxPage = 500

// audit writes who did what to which record, in the transaction that does it.
func audit(ctx context.Context, tx pgx.Tx, who auth.Who, action, kind, target string, detail map[string]any) error {
	if detail == nil {
		detail = map[string]any{}
	}
	body, err := json.Marshal(detail)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `insert into audit_events (action, target_kind, target, actor_client, actor_user, actor_name, address, request_id, detail)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		action, kind, target, who.ClientID, who.UserID, who.Name, who.Address, who.RequestID, body)
	if err != nil {
		return fmt.Errorf("write audit event: %w", err)
	}
	return nil
}

// Event is one line of the audit trail.
type Event struct {
	ID          int64
	At          time.Time
	Action      string
	Kind        string
	Target      string
	ActorClient string
	ActorUser   string
	ActorName   string
	Address     string
	RequestID   string
	Detail      json.RawMessage
}

// Events lists the audit trail from newest to oldest, before an id (0: from the newest), of one target if it is given.
func (s *Store) Events(ctx context.Context, target string, before int64, count int) ([]Event, error) {
	rows, err := s.pool.Query(ctx, `select id, at, action, target_kind, target, actor_client, actor_user, actor_name, address, request_id, detail
		from audit_events where ($1 = '' or target = $1) and ($2 = 0 or id < $2) order by id desc limit $3`, target, before, count)
	if err != nil {
		return nil, fmt.Errorf("list audit events: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Event])
}

// Sweep deletes what has expired: it can matter to nobody any more.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	for _, statement := range []string{
		`delete from codes where expires_at < $1::timestamptz - interval '1 day'`, // kept a while: a code used again revokes its login
		`delete from refresh_tokens where expires_at < $1`,
		`delete from revoked where expires_at < $1`,
		`delete from passcodes where expires_at < $1`,
		`delete from sessions where expires_at < $1`,
		`delete from login_failures where last_at < $1::timestamptz - interval '1 day'`,
		`delete from signing_keys where gone_at < $1`,
	} {
		if _, err := s.pool.Exec(ctx, statement, now); err != nil {
			return fmt.Errorf("sweep (%s): %w", strings.Fields(statement)[2], err)
		}
	}
	return nil
}
