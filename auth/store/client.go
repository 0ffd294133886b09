package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
)

const clientColumns = `id, name, secrets, scopes, authorities, grants, redirect_uris, autoapprove, access_seconds, refresh_seconds, generation, version, created_at, modified_at`

func scanClient(row pgx.CollectableRow) (auth.Client, error) {
	var c auth.Client
	var access, refresh int
	err := row.Scan(&c.ID, &c.Name, &c.Secrets, &c.Scopes, &c.Authorities, &c.Grants, &c.RedirectURIs, &c.AutoApprove,
		&access, &refresh, &c.Generation, &c.Version, &c.Created, &c.Modified)
	c.AccessFor, c.RefreshFor = time.Duration(access)*time.Second, time.Duration(refresh)*time.Second
	return c, err
}

var clientAttrs = columns{"id": {sql: "id"}, "client_id": {sql: "id"}, "name": {sql: "name"}, "meta.created": {sql: "created_at", kind: timeColumn}, "meta.lastModified": {sql: "modified_at", kind: timeColumn}}

// ClientAttrs are the attributes that a list of clients can be filtered and sorted by.
var ClientAttrs = clientAttrs.names()

func noClient(id string) error {
	return fault.NotFound("There is no client %q. List the clients to see their names.", id).WithCode("not_found")
}

// lockClient finds a client that somebody wants to change. Whoever changes a client's secret or address can act as it, and gets
// the tokens of those who use it: so they must hold every power that it has or can be given.
func lockClient(ctx context.Context, tx pgx.Tx, who auth.Who, id string) (auth.Client, error) {
	rows, err := tx.Query(ctx, `select `+clientColumns+` from clients where id = $1 for update`, id)
	if err != nil {
		return auth.Client{}, fmt.Errorf("lock client: %w", err)
	}
	c, err := pgx.CollectExactlyOneRow(rows, scanClient)
	if pg.NoRows(err) {
		return c, noClient(id)
	}
	if err != nil {
		return c, err
	}
	return c, who.MayGrant(slices.Concat(c.Authorities, c.Scopes)...)
}

// Client reads one client.
func (s *Store) Client(ctx context.Context, id string) (auth.Client, error) {
	rows, err := s.pool.Query(ctx, `select `+clientColumns+` from clients where id = $1`, id)
	if err != nil {
		return auth.Client{}, fmt.Errorf("get client: %w", err)
	}
	c, err := pgx.CollectExactlyOneRow(rows, scanClient)
	if pg.NoRows(err) {
		return c, noClient(id)
	}
	return c, err
}

// Clients lists clients.
func (s *Store) Clients(ctx context.Context, p Page) ([]auth.Client, int, error) {
	return list(ctx, s.pool, listing{table: "clients", columns: clientColumns, attrs: clientAttrs}, p, scanClient)
}

// CreateClient adds a client.
func (s *Store) CreateClient(ctx context.Context, who auth.Who, c auth.Client) (auth.Client, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (auth.Client, error) {
		if err := who.MayGrant(slices.Concat(c.Authorities, c.Scopes)...); err != nil {
			return c, err
		}
		if err := c.Check(); err != nil {
			return c, err
		}
		c, err := insertClient(ctx, tx, c)
		if err != nil {
			return c, err
		}
		return c, audit(ctx, tx, who, "client.create", "client", c.ID, map[string]any{"authorities": c.Authorities, "scope": c.Scopes, "grants": c.Grants})
	})
}

func insertClient(ctx context.Context, tx pgx.Tx, c auth.Client) (auth.Client, error) {
	rows, err := tx.Query(ctx, `insert into clients (id, name, secrets, scopes, authorities, grants, redirect_uris, autoapprove, access_seconds, refresh_seconds)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) returning `+clientColumns,
		c.ID, c.Name, none(c.Secrets), none(c.Scopes), none(c.Authorities), none(c.Grants), none(c.RedirectURIs), none(c.AutoApprove),
		int(c.AccessFor.Seconds()), int(c.RefreshFor.Seconds()))
	var made auth.Client
	if err == nil {
		made, err = pgx.CollectExactlyOneRow(rows, scanClient)
	}
	if _, taken := pg.Conflict(err); taken {
		return c, fault.Conflict("The client %q exists already. Update it, or choose another client_id.", c.ID).WithCode("client_exists")
	}
	return made, err
}

// none makes an empty list of a missing one: columns are not null.
func none[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// UpdateClient changes a client under its lock. When end is true its tokens end too.
func (s *Store) UpdateClient(ctx context.Context, who auth.Who, id, action string, change func(*auth.Client) (end bool, err error)) (auth.Client, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (auth.Client, error) {
		c, err := lockClient(ctx, tx, who, id)
		if err != nil {
			return c, err
		}
		end, err := change(&c)
		if err != nil {
			return c, err
		}
		if err := who.MayGrant(slices.Concat(c.Authorities, c.Scopes)...); err != nil {
			return c, err
		}
		if err := c.Check(); err != nil {
			return c, err
		}
		c, err = saveClient(ctx, tx, c, end)
		if err != nil {
			return c, err
		}
		return c, audit(ctx, tx, who, action, "client", c.ID, map[string]any{"authorities": c.Authorities, "scope": c.Scopes, "grants": c.Grants})
	})
}

func saveClient(ctx context.Context, tx pgx.Tx, c auth.Client, end bool) (auth.Client, error) {
	rows, err := tx.Query(ctx, `update clients set name = $2, secrets = $3, scopes = $4, authorities = $5, grants = $6, redirect_uris = $7, autoapprove = $8,
			access_seconds = $9, refresh_seconds = $10, version = version + 1, modified_at = now(),
			generation = case when $11 then substr(md5(gen_random_uuid()::text), 1, 12) else generation end
		where id = $1 returning `+clientColumns,
		c.ID, c.Name, none(c.Secrets), none(c.Scopes), none(c.Authorities), none(c.Grants), none(c.RedirectURIs), none(c.AutoApprove),
		int(c.AccessFor.Seconds()), int(c.RefreshFor.Seconds()), end)
	if err != nil {
		return c, fmt.Errorf("save client: %w", err)
	}
	return pgx.CollectExactlyOneRow(rows, scanClient)
}

// DeleteClient removes a client; what it holds for people goes with it.
func (s *Store) DeleteClient(ctx context.Context, who auth.Who, id string) (auth.Client, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (auth.Client, error) {
		c, err := lockClient(ctx, tx, who, id)
		if err != nil {
			return c, err
		}
		if _, err := tx.Exec(ctx, `delete from clients where id = $1`, id); err != nil {
			return c, fmt.Errorf("delete client: %w", err)
		}
		return c, audit(ctx, tx, who, "client.delete", "client", id, nil)
	})
}
