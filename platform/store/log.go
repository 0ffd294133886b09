package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

// AppendLog adds lines to the streams of apps, in the order given. Lines of an app that has gone meanwhile are dropped. Each line of an app
// gets a later time than the one before, if only by a nanosecond: whoever follows a stream asks for what is later than the last line
// they saw, and would never see one that came behind it with an older time.
func (s *Store) AppendLog(ctx context.Context, lines []platform.LogLine) error {
	guids := []string{}
	for _, l := range lines {
		guids = append(guids, l.App)
	}
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		last := map[string]int64{}
		rows, err := tx.Query(ctx, `select a.guid, coalesce((select max(l.at) from log_lines l where l.app_guid = a.guid), 0) from apps a
			where a.guid = any($1) order by a.guid for no key update of a`, guids)
		if err != nil {
			return fmt.Errorf("append log: %w", err)
		}
		var app string
		var at int64
		if _, err := pgx.ForEachRow(rows, []any{&app, &at}, func() error { last[app] = at; return nil }); err != nil {
			return fmt.Errorf("append log: %w", err)
		}
		var add [][]any
		for _, l := range lines {
			before, there := last[l.App]
			if !there {
				continue
			}
			last[l.App] = max(l.At.UnixNano(), before+1)
			add = append(add, []any{l.App, last[l.App], l.Source, l.Instance, l.Stderr, l.Text})
		}
		columns := []string{"app_guid", "at", "source", "instance", "stderr", "text"}
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{"log_lines"}, columns, pgx.CopyFromRows(add)); err != nil {
			return fmt.Errorf("append log: %w", err)
		}
		return nil
	})
}

// Log reads lines of an app from a time on and before another, oldest first or newest first.
func (s *Store) Log(ctx context.Context, who platform.Who, app string, from, to int64, limit int, descending bool) ([]platform.LogLine, error) {
	if _, err := apps.find(ctx, s.pool, who, platform.Read, app); err != nil {
		return nil, err
	}
	direction := "asc"
	if descending {
		direction = "desc"
	}
	rows, err := s.pool.Query(ctx, `select app_guid, at, source, instance, stderr, text from log_lines where app_guid = $1 and at >= $2 and at < $3 order by at `+direction+` limit $4`,
		app, from, to, limit)
	if err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (platform.LogLine, error) {
		var l platform.LogLine
		var at int64
		err := row.Scan(&l.App, &at, &l.Source, &l.Instance, &l.Stderr, &l.Text)
		l.At = time.Unix(0, at)
		return l, err
	})
}
