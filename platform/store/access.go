package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

// noun says how records of one kind are found, listed and shown to those who may see them. Who may do what is the domain's business
// (platform/who.go); this turns it into SQL, in one place for all nouns.
type noun[T any] struct {
	name    string            // as a refusal calls it: "Space not found"
	from    string            // its table as t, and what that is joined with
	columns string            // of t and the joined tables
	into    func(*T) []any    // where the columns go, in their order
	space   string            // the column with the guid of its space; empty when it lives in none
	org     string            // the column with the guid of its organization; empty when it lives in none
	sees    platform.Action   // what one must be allowed to see it in a list; Read when left out
	open    visibility        // for what is seen by other means than a role where it lives; only administrators change it
	shared  visibility        // for what others than those where it lives see, too; they read it, and no more
	filters map[string]string // parameters of a list, and the columns they compare; guids is always one
	holding map[string]string // parameters that other tables answer: what selects the guids of records, with %s for the values
	narrow  map[string]string // parameters that a whole condition answers, with %s for the values
	order   map[string]string // what a list can be ordered by, beside created_at and updated_at
	labels  string            // the column with its labels; empty when it has none
}

// visibility is the condition under which a sender who does not see everything sees a record.
type visibility func(q *query, who platform.Who) string

// db is a pool or a transaction.
type db interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// query collects the arguments of a statement.
type query struct{ args []any }

// arg is the placeholder of a value.
func (q *query) arg(v any) string {
	q.args = append(q.args, v)
	return fmt.Sprintf("$%d", len(q.args))
}

// find reads a record for somebody who wants to do something.
func (n *noun[T]) find(ctx context.Context, on db, who platform.Who, do platform.Action, guid string) (T, error) {
	return n.one(ctx, on, who, do, guid, "")
}

// lock is find, and keeps others from changing the record until the transaction ends.
func (n *noun[T]) lock(ctx context.Context, tx pgx.Tx, who platform.Who, do platform.Action, guid string) (T, error) {
	return n.one(ctx, tx, who, do, guid, " for update of t")
}

// named is find for a record that a request names beside the one it is about. That it is not there is the request's fault.
func (n *noun[T]) named(ctx context.Context, on db, who platform.Who, do platform.Action, guid string) (T, error) {
	record, err := n.find(ctx, on, who, do, guid)
	if fault.Is(err, fault.KindNotFound) {
		return record, invalid(n.name)
	}
	return record, err
}

func (n *noun[T]) one(ctx context.Context, on db, who platform.Who, do platform.Action, guid, lock string) (T, error) {
	q := &query{}
	sql := `select ` + n.columns + `, ` + n.place(q, who) + ` from ` + n.from + ` where t.guid = ` + q.arg(guid) + lock
	var seen, inSpace bool
	var place platform.Place
	record, err := n.collect(ctx, on, sql, q.args, &seen, &inSpace, &place.Held, &place.Suspended)
	switch {
	case pg.NoRows(err):
		return record, platform.NotFound(n.name)
	case err != nil:
		return record, fmt.Errorf("find %s: %w", n.name, err)
	}
	if n.open != nil {
		err = n.mayOpen(who, do, seen)
	} else {
		if inSpace {
			place.Level = platform.OnSpace
		}
		err = n.mayShared(do, seen, who.May(do, n.name, place))
	}
	if err != nil {
		var none T
		return none, err
	}
	return record, nil
}

func (n *noun[T]) mayOpen(who platform.Who, do platform.Action, seen bool) error {
	switch {
	case !seen && !who.Everywhere(platform.Read):
		return platform.NotFound(n.name)
	case do != platform.Read:
		return who.MayAdminister()
	}
	return nil
}

// mayShared lets those read a record who see it because it is shared with them.
func (n *noun[T]) mayShared(do platform.Action, seen bool, err error) error {
	switch {
	case !seen || !fault.Is(err, fault.KindNotFound):
		return err
	case do != platform.Read:
		return platform.ErrForbidden
	}
	return nil
}

// place selects what platform.Place is made of, for one record.
func (n *noun[T]) place(q *query, who platform.Who) string {
	if n.open != nil {
		return `coalesce(` + n.open(q, who) + `, false), false, '{}'::text[], false`
	}
	space, org, seen := column(n.space), column(n.org), `false`
	if n.shared != nil {
		seen = `(` + n.shared(q, who) + `)`
	}
	return seen + `, ` + space + ` is not null, array(select r.type from roles r where r.user_guid = ` + q.arg(who.GUID) + ` and r.org_guid = ` + org +
		` and (r.space_guid is null or r.space_guid = ` + space + `)), coalesce((select x.suspended from orgs x where x.guid = ` + org + `), false)`
}

func column(name string) string {
	if name == "" {
		return "null::text"
	}
	return name
}

// read reads a record for a caller who has found or made it already.
func (n *noun[T]) read(ctx context.Context, on db, guid string) (T, error) {
	record, err := n.collect(ctx, on, `select `+n.columns+` from `+n.from+` where t.guid = $1`, []any{guid})
	if err != nil {
		return record, fmt.Errorf("read %s: %w", n.name, err)
	}
	return record, nil
}

// collect reads one record, and what was selected beside it.
func (n *noun[T]) collect(ctx context.Context, on db, sql string, args []any, more ...any) (T, error) {
	rows, err := on.Query(ctx, sql, args...)
	if err != nil {
		var none T
		return none, err
	}
	return pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (T, error) {
		var record T
		err := row.Scan(append(n.into(&record), more...)...)
		return record, err
	})
}

// visible is the condition for a list. The roles are looked up once for the statement, not once for each record.
func (n *noun[T]) visible(q *query, who platform.Who) string {
	switch {
	case who.Everywhere(n.sees):
		return ""
	case n.open != nil:
		return n.open(q, who)
	case n.space == "":
		return seesOrg(q, who, n.sees, n.org)
	case n.mixed():
		return `coalesce(t.space_guid, t.org_guid) in (` + spacesOf(q, who, n.sees) + ` union all ` + orgsOf(q, who, n.sees) + `)` // both are guids, and there is an index on it
	}
	visible := n.space + ` in (` + spacesOf(q, who, n.sees) + `)`
	if n.shared != nil {
		visible += ` or ` + n.shared(q, who)
	}
	return visible
}

// mixed tells whether some records live in a space and others only in an organization: then both columns are the record's own.
func (n *noun[T]) mixed() bool { return n.space == "t.space_guid" && n.org == "t.org_guid" }

func seesOrg(q *query, who platform.Who, do platform.Action, org string) string {
	return org + ` in (` + orgsOf(q, who, do) + `)`
}

// orgsOf selects the organizations in which somebody may do something.
func orgsOf(q *query, who platform.Who, do platform.Action) string {
	return `select r.org_guid from roles r where r.user_guid = ` + q.arg(who.GUID) + ` and r.space_guid is null and r.type = any(` + q.arg(platform.RolesFor(do, platform.OnOrg)) + `)`
}

// spacesOf selects the spaces in which somebody may do something, by a role in the space or in its organization.
func spacesOf(q *query, who platform.Who, do platform.Action) string {
	inOrg, inSpace := []string{}, []string{}
	for _, r := range platform.RolesFor(do, platform.OnSpace) {
		if platform.RoleType(r).InSpace() {
			inSpace = append(inSpace, r)
		} else {
			inOrg = append(inOrg, r)
		}
	}
	me := q.arg(who.GUID)
	return `select r.space_guid from roles r where r.user_guid = ` + me + ` and r.space_guid is not null and r.type = any(` + q.arg(inSpace) + `)
		union all select x.guid from roles r join spaces x on x.org_guid = r.org_guid where r.user_guid = ` + me + ` and r.type = any(` + q.arg(inOrg) + `)`
}

// invalid is for a record that a request names and its sender does not see.
func invalid(name string) error {
	lower := strings.ToLower(name)
	return fault.Unprocessable("Invalid %s. Ensure that the %s exists and you have access to it.", lower, lower)
}

// exactly tells whether a statement touched one row, and else that the record has gone meanwhile.
func exactly(rows int64, name string) error {
	if rows != 1 {
		return platform.NotFound(name)
	}
	return nil
}
