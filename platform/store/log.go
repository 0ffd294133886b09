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
// they saw, and would never see one that came behind it with an older time. Lines that were saved from a pod keep the time that they have
// there: who followed the pod has seen them.
func (s *Store) AppendLog(ctx context.Context, lines []platform.LogLine) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error { return appendLog(ctx, tx, lines) })
}

// appendLog locks the apps, so that the numbers of an app's lines are in the order in which they can be seen.
func appendLog(ctx context.Context, tx pgx.Tx, lines []platform.LogLine) error {
	guids := []string{}
	for _, l := range lines {
		guids = append(guids, l.App)
	}
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
		at := l.At.UnixNano()
		if l.PodUID == "" {
			at = max(at, before+1)
		}
		last[l.App] = max(before, at)
		add = append(add, []any{l.App, at, l.Source, l.Instance, l.Stderr, l.Text, l.PodUID})
	}
	columns := []string{"app_guid", "at", "source", "instance", "stderr", "text", "pod_uid"}
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{"log_lines"}, columns, pgx.CopyFromRows(add)); err != nil {
		return fmt.Errorf("append log: %w", err)
	}
	return nil
}

// say adds a line of the platform's own to the stream of an app, by the clock of the database.
func say(ctx context.Context, tx pgx.Tx, app, text string) error {
	var now time.Time
	if err := tx.QueryRow(ctx, `select clock_timestamp()`).Scan(&now); err != nil {
		return fmt.Errorf("say: %w", err)
	}
	return appendLog(ctx, tx, []platform.LogLine{{App: app, At: now, Source: platform.SourceAPI, Instance: "0", Text: text}})
}

// LogWindow is a part of an app's stream: from a time on and before another, in nanoseconds, oldest first or newest first.
type LogWindow struct {
	From, To   int64
	Limit      int
	Descending bool
	Filter     platform.LogFilter
	Upto       int64            // number of the last line that is asked for; all if zero
	Without    map[string]int64 // saved lines that are left out, because they were read from the pod: its UID, and from which time on
}

// Log reads lines of an app that the records have.
func (s *Store) Log(ctx context.Context, who platform.Who, app string, w LogWindow) ([]platform.LogLine, error) {
	if _, err := apps.find(ctx, s.pool, who, platform.Read, app); err != nil {
		return nil, err
	}
	direction := "asc"
	if w.Descending {
		direction = "desc"
	}
	uids, since := []string{}, []int64{}
	for uid, at := range w.Without {
		uids, since = append(uids, uid), append(since, at)
	}
	process, sidecar := platform.AppSource(w.Filter.Process, ""), platform.AppSource("", w.Filter.Sidecar)[len(platform.AppSource("", "")):]
	rows, err := s.pool.Query(ctx, `select app_guid, at, source, instance, stderr, text, pod_uid from log_lines where app_guid = $1 and at >= $2 and at < $3 and ($14 = 0 or id <= $14)
			and ($5 = '' or source = $5) and ($15 = '' or source <> $15) and ($6 = '' or instance = $6)
			and (not $7 or starts_with(source, $8) and ($9 = '' or starts_with(source || '/', $10)) and ($11 = '' or right(source, length($11)) = $11)
				or source = $16 and starts_with(text, $17) and ($9 = '' or strpos(text, $18 || ':') > 0 or strpos(text, $18 || '/') > 0))
			and not exists (select from unnest($12::text[], $13::bigint[]) w(uid, since) where w.uid = pod_uid and at >= w.since)
		order by at `+direction+`, id `+direction+` limit $4`,
		app, w.From, w.To, w.Limit, w.Filter.Source, w.Filter.Instance, w.Filter.Narrow(), platform.AppSource("", ""), w.Filter.Process, process+"/", sidecar, uids, since, w.Upto,
		w.Filter.Except, platform.SourceAPI, platform.ExitRecord, w.Filter.ExitOf())
	if err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (platform.LogLine, error) {
		var l platform.LogLine
		var at int64
		err := row.Scan(&l.App, &at, &l.Source, &l.Instance, &l.Stderr, &l.Text, &l.PodUID)
		l.At = time.Unix(0, at)
		return l, err
	})
}

const (
	logAge   = 7 * 24 * time.Hour
	logLines = 10_000 // of an app
	logSweep = 10_000 // in one statement
)

// SweepLog forgets lines that are a week old, and those of an app beyond its newest ten thousand. It takes so few at a time that nobody
// waits for it, and tells whether there may be more.
func (s *Store) SweepLog(ctx context.Context, now time.Time) (more bool, err error) {
	old, err := s.pool.Exec(ctx, `delete from log_lines where id in (select id from (select id, at from log_lines order by id limit $1) first where at < $2)`, logSweep, now.Add(-logAge).UnixNano())
	if err != nil {
		return false, fmt.Errorf("sweep log: %w", err)
	}
	beyond, err := s.pool.Exec(ctx, `delete from log_lines where id in (select l.id from (select app_guid from log_lines group by app_guid having count(*) > $1) much
		cross join lateral (select id from log_lines where app_guid = much.app_guid order by at desc, id desc offset $1) l limit $2)`, logLines, logSweep)
	if err != nil {
		return false, fmt.Errorf("sweep log: %w", err)
	}
	return old.RowsAffected() >= logSweep || beyond.RowsAffected() >= logSweep, nil
}
