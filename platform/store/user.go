package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

var users = noun[platform.User]{
	name: "User", from: `users t`, columns: `t.guid, t.username, t.origin, t.created_at, t.updated_at`,
	into:    func(u *platform.User) []any { return []any{&u.GUID, &u.Name, &u.Origin, &u.CreatedAt, &u.UpdatedAt} },
	filters: map[string]string{"usernames": `t.username`, "origins": `t.origin`},
	// One sees oneself, and those with whom one shares an organization.
	open: func(q *query, who platform.Who) string {
		me := q.arg(who.GUID)
		return `t.guid = ` + me + ` or t.guid in (select r.user_guid from roles r join roles mine on mine.org_guid = r.org_guid where mine.user_guid = ` + me + `)`
	},
}

func userTarget(u platform.User) platform.Actor {
	return platform.Actor{GUID: u.GUID, Type: "user", Name: u.PresentationName()}
}

// Users lists people and clients.
func (s *Store) Users(ctx context.Context, who platform.Who, l platform.List) (platform.Page[platform.User], error) {
	return users.list(ctx, s.pool, who, l)
}

// User reads one person or client.
func (s *Store) User(ctx context.Context, who platform.Who, guid string) (platform.User, error) {
	return users.find(ctx, s.pool, who, platform.Read, guid)
}

// Meet remembers a person or client that has come by themselves, under the name they have now.
func (s *Store) Meet(ctx context.Context, u platform.User) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error { return keepUser(ctx, tx, u) })
}

// keepUser writes only what has changed.
func keepUser(ctx context.Context, tx pgx.Tx, u platform.User) error {
	_, err := tx.Exec(ctx, `insert into users as t (guid, username, origin) values ($1, $2, $3)
		on conflict (guid) do update set username = $2, origin = $3, updated_at = now() where (t.username, t.origin) is distinct from ($2, $3) and $2 <> ''`,
		u.GUID, u.Name, u.Origin)
	if err != nil {
		return fmt.Errorf("keep user: %w", err)
	}
	return nil
}

// CreateUser makes the platform know somebody whom the authorization server knows.
func (s *Store) CreateUser(ctx context.Context, who platform.Who, u platform.User) (platform.User, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.User, error) {
		if err := who.MayAdminister(); err != nil {
			return u, err
		}
		_, err := tx.Exec(ctx, `insert into users (guid, username, origin) values ($1, $2, $3)`, u.GUID, u.Name, u.Origin)
		if _, taken := pg.Conflict(err); taken {
			return u, platform.ErrUserExists(u.GUID)
		}
		if err != nil {
			return u, fmt.Errorf("create user: %w", err)
		}
		if err := record(ctx, tx, who, platform.On("audit.user.create", userTarget(u), "", "")); err != nil {
			return u, err
		}
		return users.read(ctx, tx, u.GUID)
	})
}

// DeleteUser forgets somebody, with their roles.
func (s *Store) DeleteUser(ctx context.Context, who platform.Who, guid string) (platform.Job, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Job, error) {
		u, err := users.lock(ctx, tx, who, platform.Administer, guid)
		if err != nil {
			return platform.Job{}, err
		}
		if _, err := tx.Exec(ctx, `delete from users where guid = $1`, guid); err != nil {
			return platform.Job{}, fmt.Errorf("delete user: %w", err)
		}
		if err := record(ctx, tx, who, platform.On("audit.user.delete-request", userTarget(u), "", "")); err != nil {
			return platform.Job{}, err
		}
		return insertJob(ctx, tx, who, "user.delete", platform.JobComplete)
	})
}
