package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/platform"
)

// list reads one page of what the sender may see. It begins behind a cursor, or at a page by its number; the number costs more the
// higher it is, the cursor does not. The whole is counted only when the page itself does not tell.
func (n *noun[T]) list(ctx context.Context, on db, who platform.Who, l platform.List) (platform.Page[T], error) {
	var page platform.Page[T]
	q := &query{}
	where, err := n.where(q, who, l)
	if err != nil {
		return page, err
	}
	from := n.from
	if where == "" { // each record is there with what it is joined with: counting a hundred thousand need not look for it
		from, _, _ = strings.Cut(from, " join ")
	}
	counting, counted := `select count(*) from `+from+where, slices.Clone(q.args)
	order, kind := n.ordered(l.OrderBy)
	direction, beyond, skip := "asc", ">", 0
	if l.Down {
		direction, beyond = "desc", "<"
	}
	shown := order // as a cursor writes it
	if kind == "timestamptz" {
		shown = `to_char(` + order + ` at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
		if l.After != nil && !isTime(l.After.Value) {
			return page, fault.Invalid("The query parameter is invalid: cursor belongs to another order. Follow pagination.next.href as it is").WithCode("CF-BadQueryParameter")
		}
	}
	if l.After != nil {
		where = and(where, fmt.Sprintf(`(%s, t.guid) %s (%s::text::%s, %s)`, order, beyond, q.arg(l.After.Value), kind, q.arg(l.After.GUID)))
	} else {
		skip = max(l.Page-1, 0) * l.PerPage
	}
	rows, err := on.Query(ctx, fmt.Sprintf(`select %s, %s, t.guid from %s%s order by %s %s, t.guid %s limit %d offset %d`,
		n.columns, shown, n.from, where, order, direction, direction, l.PerPage+1, skip), q.args...)
	if err != nil {
		return page, fmt.Errorf("list %s: %w", n.name, err)
	}
	var last, end platform.Cursor
	page.Records, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (T, error) {
		var record T
		last = end
		err := row.Scan(append(n.into(&record), &end.Value, &end.GUID)...)
		return record, err
	})
	if err != nil {
		return page, fmt.Errorf("list %s: %w", n.name, err)
	}
	if len(page.Records) > l.PerPage {
		page.Records, page.Next = page.Records[:l.PerPage], &last
	} else if l.After == nil && (len(page.Records) > 0 || skip == 0) {
		page.Total = skip + len(page.Records)
		return page, nil
	}
	page.Total, err = n.count(ctx, on, counting, counted)
	return page, err
}

func (n *noun[T]) count(ctx context.Context, on db, sql string, args []any) (int, error) {
	rows, err := on.Query(ctx, sql, args...)
	if err != nil {
		return 0, fmt.Errorf("count %s: %w", n.name, err)
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
}

func isTime(text string) bool {
	_, err := time.Parse(time.RFC3339Nano, text)
	return err == nil
}

func and(where, condition string) string {
	if where == "" {
		return ` where ` + condition
	}
	return where + ` and ` + condition
}

// ordered is the expression that a list is ordered by, and its type. The api has refused what cannot be ordered by.
func (n *noun[T]) ordered(by string) (expression, kind string) {
	if column, ok := n.order[by]; ok {
		return column, "text"
	}
	if by == "updated_at" && n.sees != platform.Audit { // what happened does not change
		return "t.updated_at", "timestamptz"
	}
	return "t.created_at", "timestamptz"
}

// where is everything that narrows the list. Only names from the noun reach the SQL text; values become arguments.
func (n *noun[T]) where(q *query, who platform.Who, l platform.List) (string, error) {
	where := ""
	if visible := n.visible(q, who); visible != "" {
		where = and(where, `(`+visible+`)`)
	}
	for parameter, values := range l.Values {
		column, ok := n.filters[parameter]
		if holding, is := n.holding[parameter]; is {
			where = and(where, `t.guid in (`+fmt.Sprintf(holding, q.arg(values))+`)`)
			continue
		}
		if narrow, is := n.narrow[parameter]; is {
			where = and(where, `(`+fmt.Sprintf(narrow, q.arg(values))+`)`)
			continue
		}
		switch {
		case parameter == "guids":
			column = "t.guid"
		case !ok:
			return "", fmt.Errorf("list %s: no column for the parameter %s", n.name, parameter)
		}
		where = and(where, column+` = any(`+q.arg(values)+`)`)
	}
	for _, r := range l.Labels {
		if n.labels == "" {
			return "", fmt.Errorf("list %s: there are no labels", n.name)
		}
		where = and(where, n.labelled(q, r))
	}
	for _, t := range l.Times {
		if !slices.Contains([]string{"=", "<", ">", "<=", ">="}, t.Op) || len(t.Times) == 0 {
			return "", fmt.Errorf("list %s: bad bound of time", n.name)
		}
		column, _ := n.ordered(t.Column)
		seconds := `date_trunc('second', ` + column + `)` // what clients are shown
		if t.Op == "=" {
			where = and(where, seconds+` = any(`+q.arg(t.Times)+`)`)
		} else {
			where = and(where, seconds+` `+t.Op+` `+q.arg(t.Times[0]))
		}
	}
	return where, nil
}

// labelled is one condition on labels. A label that is missing is none of the values.
func (n *noun[T]) labelled(q *query, r platform.Requirement) string {
	var condition string
	if len(r.Values) == 0 {
		condition = n.labels + ` ? ` + q.arg(r.Key)
	} else {
		var any []string
		for _, v := range r.Values {
			pair, _ := json.Marshal(map[string]string{r.Key: v}) // strings only
			any = append(any, n.labels+` @> `+q.arg(string(pair))+`::jsonb`)
		}
		condition = strings.Join(any, ` or `)
	}
	if r.Not {
		return `not (` + condition + `)`
	}
	return `(` + condition + `)`
}
