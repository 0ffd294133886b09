package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

// Tell is the job that hands a notice to the notification service. It is queued with the rows of what happened, whole, so that the same is
// said however often it is tried.
type Tell struct {
	Key    string          `json:"key"` // under which it is sent once
	Space  string          `json:"space"`
	Notice platform.Notice `json:"notice"`
}

// Kind names the job.
func (Tell) Kind() string { return "tell" }

// InsertOpts sends it to its own workers: a notification service that is away delays nothing else. They wait by putting it off, which costs
// it no try: those are for workers that died.
func (Tell) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: TellQueue, MaxAttempts: 1000}
}

// TellQueue is where the jobs wait.
const TellQueue = "notices"

func (s *Store) tell(ctx context.Context, tx pgx.Tx, space string, n platform.Notice) error {
	if _, err := s.queue.InsertTx(ctx, tx, Tell{Key: platform.NewGUID(), Space: space, Notice: n}, nil); err != nil {
		return fmt.Errorf("queue notice: %w", err)
	}
	return nil
}

// tellOfCrash tells the developers of an app that asks for it when an instance has crashed so often in a row, unless they have been told of
// this streak, or a short time ago of another instance of the same process: one fault of an app is one mail, not one for each of its
// instances. Each exit says whether they know, because only the last few of a long streak are kept.
func (s *Store) tellOfCrash(ctx context.Context, tx pgx.Tx, c platform.Crash) error {
	if c.Count < platform.CrashesTold {
		return nil
	}
	var app, process, space string
	var in platform.Where
	var known bool
	err := tx.QueryRow(ctx, `select a.name, p.type, s.guid, s.name, o.name, exists (select from exits x where x.process_guid = $1 and x.release_guid = $2 and x.told and (
			x.index <> $3 and x.created_at > clock_timestamp() - $4::interval or
			x.id = (select y.id from exits y where y.process_guid = $1 and y.release_guid = $2 and y.index = $3 and y.id <> $5 order by y.created_at desc limit 1)))
		from processes p join apps a on a.guid = p.app_guid join spaces s on s.guid = a.space_guid join orgs o on o.guid = s.org_guid where p.guid = $1 and a.notices`,
		c.Process, c.Release, c.Index, platform.StreakLasts, c.Exit.ID).Scan(&app, &process, &space, &in.Space, &in.Org, &known)
	switch {
	case pg.NoRows(err):
		return nil
	case err != nil:
		return fmt.Errorf("find who is told of a crash: %w", err)
	}
	if _, err := tx.Exec(ctx, `update exits set told = true where id = $1`, c.Exit.ID); err != nil || known {
		return wrap("note who is told of a crash", err)
	}
	return s.tell(ctx, tx, space, c.Notice(app, process, in))
}

// asking are the spaces in which an app asks to be told of an operation, each once. Of an instance that are its own space and those of the
// apps that are bound to it; of a binding its own.
const asking = `select s.guid, s.name, o.name, i.name, clock_timestamp(), array_agg(a.name order by a.name)
	from service_instances i join apps a on a.notices join spaces s on s.guid = a.space_guid join orgs o on o.guid = s.org_guid `

// tellOfFailure tells the developers of the spaces in which an app asks for it that an operation on a service has failed.
func (s *Store) tellOfFailure(ctx context.Context, tx pgx.Tx, t Errand, title, words string) error {
	sql := asking + `where i.guid = $1 and (a.space_guid = i.space_guid or exists (select from service_bindings b where b.instance_guid = i.guid and b.app_guid = a.guid)) group by 1, 2, 3, 4`
	switch {
	case t.Kind.OfBroker():
		return nil
	case t.Kind.OfBinding():
		sql = asking + `join service_bindings b on b.instance_guid = i.guid and b.space_guid = a.space_guid where b.guid = $1 group by 1, 2, 3, 4`
	}
	rows, err := tx.Query(ctx, sql, t.Subject)
	if err != nil {
		return fmt.Errorf("find who is told of a failure: %w", err)
	}
	type told struct {
		space  string
		notice platform.Notice
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (told, error) {
		var space string
		var in platform.Where
		f := platform.FailedOperation{Kind: t.Kind, Title: title, Words: words}
		if err := row.Scan(&space, &in.Space, &in.Org, &f.Instance, &f.At, &f.Apps); err != nil {
			return told{}, err
		}
		return told{space, f.Notice(in)}, nil
	})
	if err != nil {
		return fmt.Errorf("find who is told of a failure: %w", err)
	}
	for _, one := range all {
		if err := s.tell(ctx, tx, one.space, one.notice); err != nil {
			return err
		}
	}
	return nil
}
