package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/pg"
)

// garbage is a role that nobody can use any more, and that the server did not let us drop. Names of roles are public: any tenant can
// grant something in its own database to another's role, which keeps the role there, or hold a lock on it. So a binding or an instance is
// gone without waiting for its roles to be.
type garbage struct {
	Role, Instance string
	Tries          int
}

// discard keeps the name of a role, to be dropped later.
func (s *State) discard(ctx context.Context, instance, role string) error {
	_, err := s.pool.Exec(ctx, `insert into garbage (role, instance) values ($1, $2) on conflict do nothing`, role, instance)
	if err != nil {
		return fmt.Errorf("discard role: %w", err)
	}
	return nil
}

// forget takes a role off the list: it is gone, or about to be used again.
func (s *State) forget(ctx context.Context, role string) error {
	if _, err := s.pool.Exec(ctx, `delete from garbage where role = $1`, role); err != nil {
		return fmt.Errorf("forget role: %w", err)
	}
	return nil
}

func (s *State) discarded(ctx context.Context, role string) (yes bool, err error) {
	err = s.pool.QueryRow(ctx, `select exists (select from garbage where role = $1)`, role).Scan(&yes)
	return yes, err
}

// claimGarbage takes the role that is due longest; false when there is none. It is due again after a time that doubles, up to 512 times
// the first, so nothing has to be said when it could not be dropped.
func (s *State) claimGarbage(ctx context.Context, every time.Duration) (g garbage, found bool, err error) {
	err = s.pool.QueryRow(ctx, `update garbage set tries = tries + 1, due = now() + $1::interval * (1 << least(tries, 9)) where role = (
		select role from garbage where due <= now() order by due limit 1 for update skip locked)
		returning role, instance, tries`, every).Scan(&g.Role, &g.Instance, &g.Tries)
	if pg.NoRows(err) {
		return g, false, nil
	}
	return g, err == nil, err
}

// sweep drops what could not be dropped before, a few roles at each turn.
func (b *Broker) sweep(ctx context.Context) {
	every := cmp.Or(b.Sweep, time.Minute)
	for turn := time.NewTicker(every); ; {
		select {
		case <-ctx.Done():
			turn.Stop()
			return
		case <-turn.C:
		}
		for range 20 {
			g, found, err := b.State.claimGarbage(ctx, every)
			if err == nil && found {
				err = b.collect(ctx, g)
			}
			if err != nil && ctx.Err() == nil {
				b.Log.WarnContext(ctx, "a role cannot be dropped yet", "role", g.Role, "instance", g.Instance, "tries", g.Tries, "error", err)
			}
			if !found {
				break
			}
		}
	}
}

// collect takes away what hangs on a role, wherever that is, and drops it, unless it is needed again.
func (b *Broker) collect(ctx context.Context, g garbage) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	away := b.Server.releaseElsewhere(ctx, g) // without the lock, because it may have to wait for others
	err := b.Server.locked(ctx, g.Instance, time.Second, func(conn *pgx.Conn) error {
		if still, err := b.State.discarded(ctx, g.Role); err != nil || !still {
			return err
		}
		if err := b.Server.releaseAtHome(ctx, conn, g); err != nil {
			return err
		}
		if err := dropRole(ctx, conn, g.Role); err != nil {
			return err
		}
		return b.State.forget(ctx, g.Role)
	})
	if err == nil {
		return nil
	}
	return errors.Join(err, away)
}

// dropOrDiscard drops a role that nobody can use any more. One that the server keeps, because something of another tenant's hangs on it or
// locks it, is left for the sweep.
func (b *Broker) dropOrDiscard(ctx context.Context, conn *pgx.Conn, instance, role string) error {
	err := dropRole(ctx, conn, role)
	if !kept(err) {
		return err
	}
	b.Log.WarnContext(ctx, "a role is left to be dropped later", "role", role, "instance", instance, "error", err)
	return b.State.discard(ctx, instance, role)
}

// kept tells whether err means that something depends on a role, or that somebody has it locked.
func kept(err error) bool { return code(err) == "2BP01" || code(err) == "55P03" }

// dropRole waits a moment only: what locks a role that nobody uses is somebody who wants it kept.
func dropRole(ctx context.Context, conn *pgx.Conn, name string) error {
	if err := do(ctx, conn, `set lock_timeout = '1s'`); err != nil {
		return err
	}
	return errors.Join(do(ctx, conn, `drop role if exists `+quote(name)), do(ctx, conn, keepWaits))
}

// hangs finds the databases in which something hangs on a role, in an order of chance: none of them can hold up the others for ever.
const hangs = `select d.datname from pg_database d where d.datallowconn and pg_has_role(d.datdba, 'usage') and d.oid in (
	select s.dbid from pg_shdepend s join pg_roles r on r.oid = s.refobjid where s.refclassid = 'pg_authid'::regclass and r.rolname = $1) order by random()`

// releaseElsewhere takes rights away from a role in the databases of others. It never owned anything there.
func (s *Server) releaseElsewhere(ctx context.Context, g garbage) error {
	rows, err := s.pool.Query(ctx, hangs, g.Role)
	if err != nil {
		return fmt.Errorf("look for what hangs on a role: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("look for what hangs on a role: %w", err)
	}
	var problems []error
	for _, name := range names {
		if name == databaseName(g.Instance) {
			continue
		}
		problems = append(problems, s.visit(ctx, name, keepWaits, `drop owned by `+quote(g.Role)))
	}
	return errors.Join(problems...)
}

// releaseAtHome does so in the role's own database, if that is still there. The instance must be locked: the role may be a login's again.
func (s *Server) releaseAtHome(ctx context.Context, conn *pgx.Conn, g garbage) error {
	home, role := databaseName(g.Instance), quote(g.Role)
	there, err := exists(ctx, conn, `select from (`+hangs+`) d where datname = '`+home+`'`, g.Role)
	if err != nil || !there {
		return err
	}
	if g.Role == ownerName(g.Instance) {
		return fmt.Errorf("the owner of %s is not garbage", home)
	}
	return s.visit(ctx, home, keepWaits, `reassign owned by `+role+` to `+quote(ownerName(g.Instance)), `drop owned by `+role)
}

// visit runs statements in a tenant's database, if there is a connection left there.
func (s *Server) visit(ctx context.Context, name string, statements ...string) error {
	conn, err := s.connect(ctx, name)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, statement := range statements {
		if err := do(ctx, conn, statement); err != nil {
			return fmt.Errorf("in %s: %w", name, err)
		}
	}
	return nil
}
