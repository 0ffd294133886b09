package store

import (
	"context"
	"fmt"
	"reflect"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/kit/pg"
)

// startLock keeps processes that start at the same time from applying the start state at the same time.
const startLock = 0x70726f61

// Apply makes the start state true. Doing it again changes nothing.
func (s *Store) Apply(ctx context.Context, start auth.Start) error {
	who := auth.Who{Name: "start file", Scopes: []string{auth.Admin}}
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, startLock); err != nil {
			return fmt.Errorf("lock start state: %w", err)
		}
		for _, g := range start.Groups {
			if _, err := tx.Exec(ctx, `insert into groups (name, description, everyone) values ($1, $2, $3) on conflict (name)
				do update set description = $2, everyone = $3 where groups.description <> $2 or groups.everyone <> $3`, g.Name, g.Description, g.Everyone); err != nil {
				return fmt.Errorf("start group %s: %w", g.Name, err)
			}
		}
		for _, c := range start.Clients {
			if err := applyClient(ctx, tx, who, c); err != nil {
				return fmt.Errorf("start client %s: %w", c.ID, err)
			}
		}
		return applyAdmin(ctx, tx, who, start.Administrator)
	})
}

func applyClient(ctx context.Context, tx pgx.Tx, who auth.Who, want auth.StartClient) error {
	rows, err := tx.Query(ctx, `select `+clientColumns+` from clients where id = $1 for update`, want.ID)
	if err != nil {
		return err
	}
	now, err := pgx.CollectExactlyOneRow(rows, scanClient)
	if err != nil && !pg.NoRows(err) {
		return err
	}
	known := err == nil
	c := want.Client(now.Secrets)
	if err := c.Check(); err != nil {
		return err
	}
	if !known {
		if _, err := insertClient(ctx, tx, c); err != nil {
			return err
		}
		return audit(ctx, tx, who, "client.create", "client", c.ID, nil)
	}
	c.Generation, c.Version, c.Created, c.Modified = now.Generation, now.Version, now.Created, now.Modified
	c.Secrets, c.Scopes, c.Authorities = none(c.Secrets), none(c.Scopes), none(c.Authorities)
	c.Grants, c.RedirectURIs, c.AutoApprove = none(c.Grants), none(c.RedirectURIs), none(c.AutoApprove)
	if reflect.DeepEqual(c, now) {
		return nil
	}
	if _, err := saveClient(ctx, tx, c, !reflect.DeepEqual(c.Secrets, now.Secrets)); err != nil {
		return err
	}
	return audit(ctx, tx, who, "client.update", "client", c.ID, nil)
}

// applyAdmin creates the first administrator. One who is there keeps their password: it may have been changed since.
func applyAdmin(ctx context.Context, tx pgx.Tx, who auth.Who, want auth.StartAdmin) error {
	if want.Name == "" {
		return nil
	}
	var id string
	err := tx.QueryRow(ctx, `select id from users where lower(username) = lower($1) and origin = $2`, want.Name, auth.Internal).Scan(&id)
	if pg.NoRows(err) {
		u := auth.User{UserName: want.Name, Email: want.Email, Password: auth.NewHash(want.Password), Active: true, Verified: true}
		if err := u.Check(); err != nil {
			return fmt.Errorf("administrator: %w", err)
		}
		if u, err = insertUser(ctx, tx, u); err != nil {
			return err
		}
		id = u.ID
		if err := audit(ctx, tx, who, "user.create", "user", id, map[string]any{"user_name": want.Name, "groups": want.Groups}); err != nil {
			return err
		}
		return adminGroups(ctx, tx, id, want.Groups)
	}
	if err != nil {
		return fmt.Errorf("administrator: %w", err)
	}
	return nil
}

// adminGroups puts the first administrator into groups, once: what is taken from them later stays taken.
func adminGroups(ctx context.Context, tx pgx.Tx, id string, groups []string) error {
	for _, name := range groups {
		_, err := tx.Exec(ctx, `insert into groups (name) values ($1) on conflict (name) do nothing`, name)
		if err != nil {
			return fmt.Errorf("administrator's group %s: %w", name, err)
		}
	}
	_, err := tx.Exec(ctx, `insert into members (group_id, user_id) select id, $1 from groups where name = any($2) on conflict do nothing`, id, none(groups))
	if err != nil {
		return fmt.Errorf("administrator's groups: %w", err)
	}
	return nil
}
