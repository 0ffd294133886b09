package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/kit/fault"
)

// column says how an attribute of the protocol is compared in SQL.
type column struct {
	sql  string
	kind columnKind
}

type columnKind int

const (
	textColumn  columnKind = iota
	foldColumn             // upper and lower case are the same
	boolColumn             //
	timeColumn             //
	groupColumn            // a column of the groups that a person is in
)

type columns map[string]column

func (c columns) names() []string { return slices.Sorted(maps.Keys(c)) }

// listing is a table that can be listed.
type listing struct {
	table   string
	columns string
	attrs   columns
}

// list reads one page and how many records there are. On a keyset walk (filter `id gt`, sorted by id) the number counts only
// this page, plus one when more follow: counting a million rows for each page would cost more than reading them.
func list[T any](ctx context.Context, pool *pgxpool.Pool, l listing, p Page, scan pgx.RowToFunc[T]) ([]T, int, error) {
	var args []any
	where := "true"
	if p.Filter != nil {
		condition, err := compile(p.Filter, l.attrs, &args)
		if err != nil {
			return nil, 0, err
		}
		where = condition
	}
	order, err := l.order(p)
	if err != nil {
		return nil, 0, err
	}
	from := ` from ` + l.table + ` where ` + where
	count := min(max(p.Count, 0), MaxPage)
	start := max(p.Start, 1)
	rows, err := pool.Query(ctx, `select `+l.columns+from+` order by `+order+` limit `+strconv.Itoa(count+1)+` offset `+strconv.Itoa(start-1), args...)
	if err != nil {
		return nil, 0, fmt.Errorf("list %s: %w", l.table, err)
	}
	found, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, 0, fmt.Errorf("list %s: %w", l.table, err)
	}
	total := start - 1 + len(found)
	more := len(found) > count
	if more {
		found = found[:count]
	}
	_, walk := p.Filter.After()
	walk = walk && start == 1 && !p.Down && (p.SortBy == "" || p.SortBy == "id")
	if walk || (!more && len(found) > 0) || (start == 1 && !more) {
		return found, total, nil
	}
	if err := pool.QueryRow(ctx, `select count(*)`+from, args...).Scan(&total); err != nil {
		return nil, 0, fmt.Errorf("count %s: %w", l.table, err)
	}
	return found, total, nil
}

func (l listing) order(p Page) (string, error) {
	by := p.SortBy
	if by == "" {
		by = "id"
	}
	c, ok := l.attrs[by]
	if !ok || c.kind == groupColumn {
		return "", fault.Invalid("sortBy: %q cannot be sorted by. Use one of %s.", by, strings.Join(l.attrs.names(), ", ")).WithCode("invalid_filter")
	}
	direction := " asc"
	if p.Down {
		direction = " desc"
	}
	expression := c.sql
	if c.kind == foldColumn {
		expression = "lower(" + c.sql + ")"
	}
	if by == "id" {
		return expression + direction, nil
	}
	return expression + direction + ", id" + direction, nil
}

// compile turns a filter into a condition. Values become arguments; only names from the attribute table reach the SQL text.
func compile(f *auth.Filter, attrs columns, args *[]any) (string, error) {
	if f.Op == auth.And || f.Op == auth.Or {
		left, err := compile(f.Left, attrs, args)
		if err != nil {
			return "", err
		}
		right, err := compile(f.Right, attrs, args)
		if err != nil {
			return "", err
		}
		return "(" + left + " " + string(f.Op) + " " + right + ")", nil
	}
	c, ok := attrs[f.Attr]
	if !ok {
		return "", badFilter("%s is not known here. Use one of %s.", f.Attr, strings.Join(attrs.names(), ", "))
	}
	if c.kind == groupColumn {
		condition, err := compare(f, column{sql: "g." + c.sql}, args)
		return `exists (select from groups g where ` + condition + ` and (g.everyone or exists (select from members m where m.group_id = g.id and m.user_id = users.id)))`, err
	}
	return compare(f, c, args)
}

func badFilter(format string, args ...any) error {
	return fault.Invalid("filter: "+format, args...).WithCode("invalid_filter")
}

var operators = map[auth.Op]string{auth.Eq: "=", auth.Ne: "<>", auth.Gt: ">", auth.Ge: ">=", auth.Lt: "<", auth.Le: "<="}

func compare(f *auth.Filter, c column, args *[]any) (string, error) {
	value, err := argument(f, c)
	if err != nil {
		return "", err
	}
	sql, placeholder := c.sql, "$"+strconv.Itoa(len(*args)+1)
	if c.kind == foldColumn {
		sql, placeholder = "lower("+sql+")", "lower("+placeholder+")"
	}
	switch f.Op {
	case auth.Present:
		if c.kind == textColumn || c.kind == foldColumn {
			return c.sql + " <> ''", nil
		}
		return c.sql + " is not null", nil
	case auth.StartsWith, auth.Contains:
		if c.kind == boolColumn || c.kind == timeColumn {
			return "", badFilter("%s cannot be compared with %s. Use eq, gt or lt.", f.Attr, f.Op)
		}
		pattern := strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(f.Value) + "%"
		if f.Op == auth.Contains {
			pattern = "%" + pattern
		}
		*args = append(*args, pattern)
		return sql + " like " + placeholder, nil
	}
	operator, ok := operators[f.Op]
	if !ok {
		return "", badFilter("the operator %s is not known here.", f.Op)
	}
	*args = append(*args, value)
	return sql + " " + operator + " " + placeholder, nil
}

// argument gives the value the type that its column has.
func argument(f *auth.Filter, c column) (any, error) {
	switch {
	case f.Op == auth.Present:
		return nil, nil
	case c.kind == boolColumn:
		b, err := strconv.ParseBool(f.Value)
		if err != nil || (f.Op != auth.Eq && f.Op != auth.Ne) {
			return nil, badFilter("%s must be compared as eq true or eq false.", f.Attr)
		}
		return b, nil
	case c.kind == timeColumn:
		t, err := time.Parse(time.RFC3339Nano, f.Value)
		if err != nil {
			return nil, badFilter("%s must be compared with a time such as \"2026-01-31T12:00:00Z\".", f.Attr)
		}
		return t, nil
	}
	return f.Value, nil
}
