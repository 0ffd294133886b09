package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

// keptExits is how many exits of one instance are remembered.
const keptExits = 10

// Run is a run of an instance as it was recorded last, and the last exit of that instance in the same release.
type Run struct {
	Release  string
	Instance platform.Instance // LastExit, Crashes and NextTry are those of the last exit
	Ended    bool              // the exit of this run is recorded
	LastPod  string            // whose exit was the last
}

// Runs lists the runs in a cluster that were recorded last. Exits tells which of some exits are recorded.
func (s *Store) Runs(ctx context.Context, cluster string, ids []string) (runs []Run, exits map[string]bool, err error) {
	rows, err := s.pool.Query(ctx, `select i.release_guid, i.index, i.pod, coalesce(i.pod_uid, ''), coalesce(i.run, ''), i.node, i.state, i.since,
			exists (select from exits x where x.id = i.run), coalesce(e.id, ''), coalesce(e.pod_uid, ''), coalesce(e.description, ''), e.at, coalesce(e.crashes, 0), e.next_try
		from instances i join processes p on p.guid = i.process_guid join apps a on a.guid = p.app_guid join spaces s on s.guid = a.space_guid and s.cluster_id = $1
		left join lateral (select * from exits x where x.process_guid = i.process_guid and x.index = i.index and x.release_guid = i.release_guid order by x.created_at desc limit 1) e on true`, cluster)
	if err != nil {
		return nil, nil, fmt.Errorf("list runs: %w", err)
	}
	if runs, err = pgx.CollectRows(rows, readRun); err != nil {
		return nil, nil, fmt.Errorf("list runs: %w", err)
	}
	exits = map[string]bool{}
	if len(ids) == 0 {
		return runs, exits, nil
	}
	rows, err = s.pool.Query(ctx, `select id from exits where id = any($1)`, ids)
	if err != nil {
		return nil, nil, fmt.Errorf("list exits: %w", err)
	}
	var id string
	if _, err := pgx.ForEachRow(rows, []any{&id}, func() error { exits[id] = true; return nil }); err != nil {
		return nil, nil, fmt.Errorf("list exits: %w", err)
	}
	return runs, exits, nil
}

func readRun(row pgx.CollectableRow) (Run, error) {
	var r Run
	var e platform.Exit
	var at, next *time.Time
	i := &r.Instance
	err := row.Scan(&r.Release, &i.Index, &i.Pod, &i.PodUID, &i.Run, &i.Node, &i.State, &i.Since, &r.Ended, &e.ID, &r.LastPod, &e.Description, &at, &i.Crashes, &next)
	setExit(i, e, at, next)
	return r, err
}

// setExit fills in the last exit, if there is one.
func setExit(i *platform.Instance, e platform.Exit, at, next *time.Time) {
	i.LastExit, i.NextTry = nil, time.Time{}
	if at != nil {
		e.Time, i.LastExit = *at, &e
	}
	if next != nil {
		i.NextTry = *next
	}
}

// RecordCrash writes the exit of a run once, with all that belongs to it: its number, the exit record and what was printed last in the
// app's stream, and the events. A second time it changes nothing. It gives the crash as it is recorded.
func (s *Store) RecordCrash(ctx context.Context, c platform.Crash) (platform.Crash, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Crash, error) {
		var app, space, org, kind string
		err := tx.QueryRow(ctx, `select a.name, s.guid, s.org_guid, p.type from processes p join apps a on a.guid = p.app_guid join spaces s on s.guid = a.space_guid
			where p.guid = $1 for no key update of a`, c.Process).Scan(&app, &space, &org, &kind)
		if errors.Is(err, pgx.ErrNoRows) {
			return c, nil // there is nobody left to tell
		}
		if err != nil {
			return c, fmt.Errorf("record crash: %w", err)
		}
		c, fresh, err := insertExit(ctx, tx, c)
		if err != nil || !fresh {
			return c, err
		}
		if err := tellCrash(ctx, tx, c); err != nil {
			return c, err
		}
		if err := s.tellOfCrash(ctx, tx, c); err != nil {
			return c, err
		}
		target := platform.Actor{GUID: c.App, Type: "app", Name: app}
		for _, told := range []struct {
			event string
			by    platform.Actor
		}{{"app.crash", target}, {"audit.app.process.crash", platform.Actor{GUID: c.Process, Type: "process", Name: kind}}} {
			e := platform.On(told.event, target, org, space).With(c.Data())
			e.Actor = told.by
			if err := insertEvent(ctx, tx, e, ""); err != nil {
				return c, err
			}
		}
		return c, forgetExits(ctx, tx, c)
	})
}

// insertExit counts the crash and writes it down, unless it was before: then it reads what was written. The run that was seen last is
// not missed any more.
func insertExit(ctx context.Context, tx pgx.Tx, c platform.Crash) (platform.Crash, bool, error) {
	var next *time.Time
	err := tx.QueryRow(ctx, `select crashes, next_try, at, description from exits where id = $1`, c.Exit.ID).Scan(&c.Count, &next, &c.Exit.Time, &c.Exit.Description)
	if err == nil && next != nil {
		c.NextTry = *next
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return c, false, wrap("read exit", err)
	}
	before := 0
	err = tx.QueryRow(ctx, `select crashes from exits where process_guid = $1 and index = $2 and release_guid = $3 order by created_at desc limit 1`, c.Process, c.Index, c.Release).Scan(&before)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return c, false, fmt.Errorf("count crashes: %w", err)
	}
	c = c.Counted(before)
	if !c.NextTry.IsZero() {
		next = &c.NextTry
	}
	if _, err := tx.Exec(ctx, `insert into exits (id, app_guid, process_guid, release_guid, index, pod_uid, node, at, description, crashes, next_try, created_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, clock_timestamp())`,
		c.Exit.ID, c.App, c.Process, c.Release, c.Index, c.PodUID, c.Node, c.Exit.Time, c.Exit.Description, c.Count, next); err != nil {
		return c, false, fmt.Errorf("write exit: %w", err)
	}
	if _, err := tx.Exec(ctx, `update instances set pod_uid = null, run = null where process_guid = $1 and index = $2 and pod_uid = $3`, c.Process, c.Index, c.PodUID); err != nil {
		return c, false, fmt.Errorf("forget run: %w", err)
	}
	return c, true, nil
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// tellCrash writes what was printed last, and behind everything else in the stream the exit record: those who follow it have read so far.
func tellCrash(ctx context.Context, tx pgx.Tx, c platform.Crash) error {
	text, err := c.Line()
	if err != nil {
		return err
	}
	lines := slices.Clone(c.Log)
	for i := range lines {
		lines[i].PodUID = c.PodUID
		if i > 0 && !lines[i].At.After(lines[i-1].At) {
			lines[i].At = lines[i-1].At.Add(time.Nanosecond)
		}
	}
	line := platform.LogLine{App: c.App, Source: platform.SourceAPI, Instance: strconv.Itoa(c.Index), Text: text}
	if err := tx.QueryRow(ctx, `select clock_timestamp()`).Scan(&line.At); err != nil {
		return fmt.Errorf("time of exit record: %w", err)
	}
	return appendLog(ctx, tx, append(lines, line))
}

// forgetExits bounds what an instance that crashes for ever leaves behind. One of another release that is still
// known keeps its own, though its index is the same.
func forgetExits(ctx context.Context, tx pgx.Tx, c platform.Crash) error {
	_, err := tx.Exec(ctx, `delete from exits where process_guid = $1 and index = $2 and release_guid <> $3 and not exists (select from releases r where r.guid = release_guid)`, c.Process, c.Index, c.Release)
	if err != nil {
		return fmt.Errorf("forget exits of old releases: %w", err)
	}
	_, err = tx.Exec(ctx, `delete from exits where process_guid = $1 and index = $2 and release_guid = $3 and created_at <= (
		select created_at from exits where process_guid = $1 and index = $2 and release_guid = $3 order by created_at desc offset $4 limit 1)`, c.Process, c.Index, c.Release, keptExits)
	return wrap("forget exits", err)
}
