package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

const flagColumns = `name, enabled, message, updated_at`

func scanFlag(row pgx.CollectableRow) (platform.Flag, error) {
	var f platform.Flag
	err := row.Scan(&f.Name, &f.Enabled, &f.Message, &f.UpdatedAt)
	return f, err
}

// Flags lists all flags, as they are now.
func (s *Store) Flags(ctx context.Context) ([]platform.Flag, error) { return setFlags(ctx, s.pool) }

func setFlags(ctx context.Context, on db) ([]platform.Flag, error) {
	rows, err := on.Query(ctx, `select `+flagColumns+` from feature_flags`)
	if err != nil {
		return nil, fmt.Errorf("list feature flags: %w", err)
	}
	set, err := pgx.CollectRows(rows, scanFlag)
	if err != nil {
		return nil, fmt.Errorf("list feature flags: %w", err)
	}
	flags := platform.Flags()
	for i, f := range flags {
		for _, known := range set {
			if known.Name == f.Name {
				flags[i] = known
			}
		}
	}
	return flags, nil
}

// Flag reads one flag.
func (s *Store) Flag(ctx context.Context, name string) (platform.Flag, error) {
	return findFlag(ctx, s.pool, name)
}

func findFlag(ctx context.Context, on db, name string) (platform.Flag, error) {
	flags, err := setFlags(ctx, on)
	if err != nil {
		return platform.Flag{}, err
	}
	for _, f := range flags {
		if f.Name == name {
			return f, nil
		}
	}
	return platform.FlagOf(name)
}

// SetFlag changes a flag.
func (s *Store) SetFlag(ctx context.Context, who platform.Who, name string, change func(*platform.Flag)) (platform.Flag, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Flag, error) {
		f, err := findFlag(ctx, tx, name)
		if err != nil {
			return f, err
		}
		if err := who.MayAdminister(); err != nil {
			return f, err
		}
		change(&f)
		rows, err := tx.Query(ctx, `insert into feature_flags (name, enabled, message) values ($1, $2, $3)
			on conflict (name) do update set enabled = $2, message = $3, updated_at = now() returning `+flagColumns, name, f.Enabled, f.Message)
		if err != nil {
			return f, fmt.Errorf("set feature flag: %w", err)
		}
		if f, err = pgx.CollectExactlyOneRow(rows, scanFlag); err != nil {
			return f, fmt.Errorf("set feature flag: %w", err)
		}
		event := platform.On("audit.feature_flag.update", platform.Actor{GUID: name, Type: "feature_flag", Name: name}, "", "")
		return f, record(ctx, tx, who, event.With(map[string]any{"enabled": f.Enabled}))
	})
}

// allowed asks a flag whether somebody may do what it is about.
func allowed(ctx context.Context, tx pgx.Tx, who platform.Who, name string) error {
	flag, err := findFlag(ctx, tx, name)
	if err != nil {
		return err
	}
	return flag.Allows(who)
}
