package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
)

// Keys lists the signing keys that are published now, the newest first.
func (s *Store) Keys(ctx context.Context, now time.Time) ([]auth.SigningKey, error) {
	rows, err := s.pool.Query(ctx, `select kid, public, sealed, created_at, signs_from, gone_at from signing_keys
		where gone_at is null or gone_at > $1 order by signs_from desc, kid`, now)
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[auth.SigningKey])
}

// FirstKey adds the key unless there is one already: of many processes that start at once, one does it.
func (s *Store) FirstKey(ctx context.Context, who auth.Who, key auth.SigningKey) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		var any bool
		if _, err := tx.Exec(ctx, `lock table signing_keys in exclusive mode`); err != nil {
			return fmt.Errorf("lock keys: %w", err)
		}
		if err := tx.QueryRow(ctx, `select exists (select from signing_keys where gone_at is null)`).Scan(&any); err != nil || any {
			return err
		}
		return addKey(ctx, tx, who, key, "key.create")
	})
}

// RotateKey adds a key; those before it are published until every token they signed has expired.
func (s *Store) RotateKey(ctx context.Context, who auth.Who, key auth.SigningKey) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		// One that was to sign later has signed nothing yet: it would take over from this one.
		if _, err := tx.Exec(ctx, `delete from signing_keys where signs_from > $1`, key.SignsFrom); err != nil {
			return fmt.Errorf("withdraw pending keys: %w", err)
		}
		if _, err := tx.Exec(ctx, `update signing_keys set gone_at = $1 where gone_at is null`, key.SignsFrom.Add(auth.MaxAccess+time.Hour)); err != nil {
			return fmt.Errorf("retire keys: %w", err)
		}
		return addKey(ctx, tx, who, key, "key.rotate")
	})
}

func addKey(ctx context.Context, tx pgx.Tx, who auth.Who, key auth.SigningKey, action string) error {
	if _, err := tx.Exec(ctx, `insert into signing_keys (kid, public, sealed, signs_from) values ($1, $2, $3, $4)`, key.ID, key.Public, key.Sealed, key.SignsFrom); err != nil {
		return fmt.Errorf("add key: %w", err)
	}
	return audit(ctx, tx, who, action, "key", key.ID, map[string]any{"signs_from": key.SignsFrom})
}

// RemoveKey withdraws a key at once, as after a theft. What it signed is refused from then on.
func (s *Store) RemoveKey(ctx context.Context, who auth.Who, kid string, now time.Time) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		var others int
		if _, err := tx.Exec(ctx, `lock table signing_keys in exclusive mode`); err != nil {
			return fmt.Errorf("lock keys: %w", err)
		}
		if err := tx.QueryRow(ctx, `select count(*) from signing_keys where kid <> $1 and signs_from <= $2 and gone_at is null`, kid, now).Scan(&others); err != nil {
			return fmt.Errorf("count keys: %w", err)
		}
		if others == 0 {
			return fault.Conflict("The key %s is the newest, and no other would sign for long. Run `auth keys rotate --now` first.", kid)
		}
		tag, err := tx.Exec(ctx, `delete from signing_keys where kid = $1`, kid)
		if err != nil {
			return fmt.Errorf("remove key: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return fault.NotFound("There is no key %s. Run `auth keys list` to see them.", kid)
		}
		return audit(ctx, tx, who, "key.remove", "key", kid, nil)
	})
}
