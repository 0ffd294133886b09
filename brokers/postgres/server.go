package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
)

// Server is the PostgreSQL that the databases stand on, as the broker's account there: it needs CREATEDB and CREATEROLE, and for
// the limit of temporary files SET on temp_file_limit. It need not be a superuser.
type Server struct {
	pool *pgxpool.Pool
}

// OpenServer connects. It must reach the server itself, not a pooler: locks belong to a connection.
func OpenServer(ctx context.Context, url string) (*Server, error) {
	pool, err := pg.Open(ctx, url, func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["statement_timeout"] = "5min"  // making a database may take its time
		c.ConnConfig.RuntimeParams["search_path"] = "pg_catalog"  // nothing of a tenant's is ever called
		c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // each statement is another one: none is worth preparing
		c.ConnConfig.StatementCacheCapacity, c.MaxConns = 0, max(8, c.MaxConns)
	})
	if err != nil {
		return nil, err
	}
	return &Server{pool: pool}, nil
}

// Close lets the connections go.
func (s *Server) Close() { s.pool.Close() }

// Guard closes the databases that everybody may connect to and that are not a tenant's: the server's own and the one we are connected
// to. Where it may not, it says what the operator has to do: a tenant there would be held by no limit.
func (s *Server) Guard(ctx context.Context, log *slog.Logger) error {
	return s.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error { return guard(ctx, c.Conn(), log) })
}

func guard(ctx context.Context, conn *pgx.Conn, log *slog.Logger) error {
	if _, err := conn.Exec(ctx, `select pg_advisory_lock($1)`, lockKey("")); err != nil { // processes that start together must not do it together
		return fmt.Errorf("lock: %w", err)
	}
	defer func() { _, _ = conn.Exec(context.WithoutCancel(ctx), `select pg_advisory_unlock_all()`) }()
	rows, err := conn.Query(ctx, `select datname, datname in ('postgres', 'template1', current_database()) and pg_has_role(datdba, 'usage')
		from pg_database where datallowconn and has_database_privilege('public', oid, 'connect') order by datname`)
	if err != nil {
		return fmt.Errorf("look for open databases: %w", err)
	}
	type database struct {
		Name string
		Ours bool
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[database])
	if err != nil {
		return fmt.Errorf("look for open databases: %w", err)
	}
	var open []string
	for _, d := range all {
		if !d.Ours {
			open = append(open, quote(d.Name))
		} else if err := do(ctx, conn, `revoke connect, temporary on database `+quote(d.Name)+` from public`); err != nil {
			return err
		}
	}
	if len(open) > 0 {
		log.Warn("every login may connect to databases that are no instance", "count", len(open),
			"next", "as the server's superuser: REVOKE CONNECT, TEMPORARY ON DATABASE "+strings.Join(open[:min(len(open), 10)], ", ")+" FROM PUBLIC")
	}
	if ok, err := mayLimitFiles(ctx, conn); err != nil || !ok {
		log.Warn("temporary files are not limited", "error", err, "next", "as the server's superuser: GRANT SET ON PARAMETER temp_file_limit TO the broker's account")
	}
	return warnOfPromises(ctx, conn, log)
}

// spare is how many connections the server should have beyond those of tenants, for us and for its operator.
const spare = 16

// warnOfPromises tells when tenants together may use every connection of the server, and shut us out.
func warnOfPromises(ctx context.Context, conn *pgx.Conn, log *slog.Logger) error {
	var promised, has int
	err := conn.QueryRow(ctx, `select (select coalesce(sum(datconnlimit), 0) from pg_database where datname like 'db\_%' and datconnlimit > 0 and pg_has_role(datdba, 'usage')),
		current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int - coalesce(current_setting('reserved_connections', true)::int, 0)`).
		Scan(&promised, &has)
	if err != nil {
		return fmt.Errorf("count connections: %w", err)
	}
	if promised+spare > has {
		log.Warn("instances may use more connections than the server has", "promised", promised, "server", has,
			"next", "raise max_connections, or keep some for the broker with reserved_connections (PostgreSQL 16 and later)")
	}
	return nil
}

// keepWaits bounds how long we wait for a lock that a tenant's session may have.
const keepWaits = `set lock_timeout = '5s'`

// errBusy is a lock that somebody else keeps.
var errBusy = errors.New("somebody else works on this instance")

// locked runs f alone with an instance, on the connection that holds its lock. The lock is the server's own: whoever loses the
// connection loses the lock, and can change nothing more through it.
func (s *Server) locked(ctx context.Context, instance string, wait time.Duration, f func(*pgx.Conn) error) error {
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("connect to the server: %w", err)
	}
	conn := c.Conn()
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if _, err := conn.Exec(end, `select pg_advisory_unlock_all()`); err != nil {
			_ = conn.Close(end) // and with it the lock
		}
		c.Release()
	}()
	if err := do(ctx, conn, `set lock_timeout = `+strconv.FormatInt(wait.Milliseconds(), 10)); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `select pg_advisory_lock($1)`, lockKey(instance)); code(err) == "55P03" {
		return errBusy
	} else if err != nil {
		return fmt.Errorf("lock instance: %w", err)
	}
	if err := do(ctx, conn, keepWaits); err != nil {
		return err
	}
	return f(conn)
}

// makeOwner makes the role that owns what is in the database. We are a member of it, to give it what we make.
func makeOwner(ctx context.Context, conn *pgx.Conn, owner string) error {
	if there, err := exists(ctx, conn, `select from pg_roles where rolname = $1`, owner); err != nil || there {
		return err
	}
	return do(ctx, conn, `create role `+quote(owner)+` nologin`, `grant `+quote(owner)+` to current_user`)
}

// makeDatabase makes it closed to everybody; allow opens it.
func makeDatabase(ctx context.Context, conn *pgx.Conn, name string) error {
	if there, err := exists(ctx, conn, `select from pg_database where datname = $1`, name); err != nil || there {
		return err
	}
	return do(ctx, conn, `create database `+quote(name)+` template template0 encoding 'UTF8' connection limit 0`)
}

// allow opens the database to its owner role alone, within the plan.
func allow(ctx context.Context, conn *pgx.Conn, name, owner string, p Plan) error {
	if err := do(ctx, conn, `revoke all on database `+quote(name)+` from public`,
		`grant connect, create, temporary on database `+quote(name)+` to `+quote(owner)); err != nil {
		return err
	}
	return limit(ctx, conn, name, p)
}

// limit holds the database to the plan. The database belongs to us, so no tenant can lift its connection limit, nor that of temporary files,
// which takes a right that tenants lack. The time of a statement is a default: a session may set another, and a login one for all of its sessions.
func limit(ctx context.Context, conn *pgx.Conn, name string, p Plan) error {
	alter := `alter database ` + quote(name)
	statements := []string{
		fmt.Sprintf(`%s connection limit %d`, alter, p.Connections),
		fmt.Sprintf(`%s set statement_timeout = %d`, alter, p.Statement.Milliseconds()),
	}
	may, err := mayLimitFiles(ctx, conn)
	if err != nil {
		return err
	}
	if may {
		statements = append(statements, fmt.Sprintf(`%s set temp_file_limit = %d`, alter, p.TempFiles>>10))
	}
	return do(ctx, conn, statements...)
}

func mayLimitFiles(ctx context.Context, conn *pgx.Conn) (may bool, err error) {
	err = conn.QueryRow(ctx, `select has_parameter_privilege('temp_file_limit', 'set')`).Scan(&may)
	return may, err
}

// furnish gives the owner role what it owns in the database, and the extensions that were asked for.
func (s *Server) furnish(ctx context.Context, conn *pgx.Conn, i instance, p Plan) error {
	return s.inside(ctx, conn, databaseName(i.ID), p, func(in *pgx.Conn) error {
		owner := quote(ownerName(i.ID))
		var first bool
		if err := in.QueryRow(ctx, `select exists (select from pg_namespace where nspname = 'public' and nspowner = 'pg_database_owner'::regrole)`).Scan(&first); err != nil {
			return err
		}
		if first {
			if err := do(ctx, in, `alter schema public owner to `+owner); err != nil {
				return err
			}
		}
		for _, name := range i.ToExtensions {
			err := do(ctx, in, keepWaits, `set role `+owner, `create extension if not exists `+quote(name)+` schema public`, `reset role`)
			if code(err) == "0A000" {
				return fault.Unprocessable("The extension %s is not installed on the database server. Leave it out, or ask the operator of the service for it.", name).Because(err)
			}
			if said, ok := inTheWay(err); ok {
				return fault.Unprocessable("The extension %s cannot be made in this database: %.200s. Change what stands in its way, then try again.", name, said).Because(err)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// inTheWay tells whether a statement can never succeed in a database as its tenant has made it, and what PostgreSQL says of it: a name is
// taken or missing (42), a schema is missing (3F), or something depends on what has to go (2B).
func inTheWay(err error) (said string, ok bool) {
	var e *pgconn.PgError
	if errors.As(err, &e) && slices.Contains([]string{"42", "3F", "2B"}, e.Code[:min(2, len(e.Code))]) {
		return e.Message, true
	}
	return "", false
}

// dropDatabase closes the database, ends the sessions in it, and drops it. It does so without FORCE, which refuses to end an
// autovacuum for anybody but a superuser.
func dropDatabase(ctx context.Context, conn *pgx.Conn, name string) error {
	there, err := exists(ctx, conn, `select from pg_database where datname = $1`, name)
	if err != nil || !there {
		return err
	}
	if err := do(ctx, conn, `alter database `+quote(name)+` allow_connections false`); err != nil {
		return err
	}
	if err := endSessions(ctx, conn, `(datname = $1 or `+locksDatabase+`)`, name); err != nil {
		return err
	}
	return do(ctx, conn, `drop database `+quote(name))
}

// locksDatabase finds those who keep a database locked from elsewhere: any login may have settings of its own for it, and leave that open.
const locksDatabase = `pid in (select l.pid from pg_locks l join pg_database d on d.oid = l.objid
	where l.locktype = 'object' and l.classid = 'pg_database'::regclass and d.datname = $1)`

// endSessions waits until they have gone. Those of superusers are not ours to end.
func endSessions(ctx context.Context, conn *pgx.Conn, which, name string) error {
	var left int
	err := conn.QueryRow(ctx, `select count(*) from (select pg_terminate_backend(pid, 10000) gone from pg_stat_activity
		where `+which+` and usesysid is not null and pg_has_role(usesysid, 'usage') and pid <> pg_backend_pid() offset 0) s where not gone`, name).Scan(&left)
	if err == nil && left > 0 {
		err = fmt.Errorf("%d sessions did not end", left)
	}
	return err
}

// inside runs f connected to a tenant's database. When the tenant uses all connections of the plan, the door is opened a little, for a moment.
func (s *Server) inside(ctx context.Context, admin *pgx.Conn, name string, p Plan, f func(*pgx.Conn) error) error {
	conn, err := s.connect(ctx, name)
	for try := 1; databaseFull(err) && try <= 5; try++ {
		if err := do(ctx, admin, fmt.Sprintf(`alter database %s connection limit %d`, quote(name), p.Connections+try)); err != nil {
			return err
		}
		conn, err = s.connect(ctx, name)
		if err := do(ctx, admin, fmt.Sprintf(`alter database %s connection limit %d`, quote(name), p.Connections)); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return f(conn)
}

// connect opens a connection to a tenant's database.
func (s *Server) connect(ctx context.Context, name string) (*pgx.Conn, error) {
	config := s.pool.Config().ConnConfig
	config.Database = name
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", name, err)
	}
	return conn, nil
}

// databaseFull tells whether the database has no connection left. The same code comes when it is the server, or our account, that has none;
// the texts depend on the server's language, but the function that complains does not.
func databaseFull(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "53300" && e.Routine == "CheckMyDatabase"
}

func exists(ctx context.Context, conn *pgx.Conn, sql, name string) (there bool, err error) {
	err = conn.QueryRow(ctx, `select exists (`+sql+`)`, name).Scan(&there)
	return there, err
}

// do sends statements as one: all of them hold, or none.
func do(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	if _, err := conn.Exec(ctx, strings.Join(statements, "; "), pgx.QueryExecModeSimpleProtocol); err != nil {
		word, _, _ := strings.Cut(statements[0], `"`)
		return fmt.Errorf("%s: %w", strings.TrimSpace(word), err)
	}
	return nil
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// code is the server's own word for an error, or empty.
func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
