package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/fault"
)

// makeLogin makes the login of a binding, or gives it its password anew. What it creates belongs to the owner role, and so outlives it.
func makeLogin(ctx context.Context, conn *pgx.Conn, login, owner, password string) error {
	secret, err := verifier(password)
	if err != nil {
		return err
	}
	there, err := exists(ctx, conn, `select from pg_roles where rolname = $1`, login)
	if err != nil {
		return err
	}
	verb := `create role `
	if there {
		verb = `alter role `
	}
	return do(ctx, conn,
		verb+quote(login)+` login inherit nocreatedb nocreaterole password '`+secret+`'`,
		`grant `+quote(owner)+` to `+quote(login),
		`alter role `+quote(login)+` set role to `+quote(owner),
		`grant `+quote(login)+` to current_user`) // to end its sessions and take over what it owns
}

// clearLogin shuts a login out and gives what it owns to the owner role; then it may be dropped.
func (s *Server) clearLogin(ctx context.Context, conn *pgx.Conn, i instance, p Plan, login string) error {
	there, err := exists(ctx, conn, `select from pg_roles where rolname = $1`, login)
	if err != nil || !there {
		return err
	}
	if err := retire(ctx, conn, login, ownerName(i.ID)); err != nil {
		return err
	}
	err = s.inside(ctx, conn, databaseName(i.ID), p, func(in *pgx.Conn) error {
		return do(ctx, in, keepWaits, `reassign owned by `+quote(login)+` to `+quote(ownerName(i.ID)), `drop owned by `+quote(login))
	})
	if code(err) == "55P03" {
		return fault.Unavailable("Another session of this database keeps a lock on what the login owns. Try again when it has ended.").Because(err)
	}
	if err != nil {
		return err
	}
	return endSessions(ctx, conn, `usename = $1`, login) // one that was let in just before, and could not be seen then
}

// retire shuts a login out for good, and takes the owner role from it. Its sessions end before, because they may have it locked, and after.
func retire(ctx context.Context, conn *pgx.Conn, login, owner string) error {
	if there, err := exists(ctx, conn, `select from pg_roles where rolname = $1`, login); err != nil || !there {
		return err
	}
	if err := endSessions(ctx, conn, `usename = $1`, login); err != nil {
		return err
	}
	statements := []string{`alter role ` + quote(login) + ` nologin`}
	if there, err := exists(ctx, conn, `select from pg_roles where rolname = $1`, owner); err != nil {
		return err
	} else if there {
		statements = append(statements, `revoke `+quote(owner)+` from `+quote(login))
	}
	if err := do(ctx, conn, statements...); err != nil {
		return err
	}
	return endSessions(ctx, conn, `usename = $1`, login)
}
