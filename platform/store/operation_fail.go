package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

// Fail ends an operation that did not come to its end. What was to be made and may be there is deleted later.
func (s *Store) Fail(ctx context.Context, t Errand, v platform.Verdict) error {
	return s.settle(ctx, t, func(tx pgx.Tx) error {
		if t.Binding != "" {
			if passed, err := passBy(ctx, tx, t); err != nil || passed {
				return err
			}
		}
		return s.fail(ctx, tx, t, v)
	})
}

// Vanish ends an operation whose subject has gone. What the broker has of it was made an orphan when it went.
func (s *Store) Vanish(ctx context.Context, t Errand) error {
	return s.settle(ctx, t, func(tx pgx.Tx) error { return vanished(ctx, tx, t) })
}

// GiveUp ends an operation that could not be worked for reasons of our own, when it is older than it may become. It tells whether it was.
func (s *Store) GiveUp(ctx context.Context, guid string, after time.Duration, words string) (bool, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (bool, error) {
		t, _, err := lockOperation(ctx, tx, guid)
		if err != nil || t.NotDue > 0 {
			return false, err
		}
		var over bool
		if err := tx.QueryRow(ctx, `select coalesce(deadline, created_at + $2) < clock_timestamp() from service_operations where guid = $1`, guid, after).Scan(&over); err != nil || !over {
			return false, err
		}
		return true, s.fail(ctx, tx, t, platform.Verdict{Next: platform.NextFail, Orphan: t.Kind.Creates() && t.Again, Words: words})
	})
}

func (s *Store) fail(ctx context.Context, tx pgx.Tx, t Errand, v platform.Verdict) error {
	words, err := ofBinding(ctx, tx, t, v.Words)
	if err != nil {
		return err
	}
	if v.Orphan {
		if err := orphan(ctx, tx, t); err != nil {
			return err
		}
	}
	there, err := markFailed(ctx, tx, t, words)
	switch {
	case err != nil:
		return err
	case !there:
		return vanished(ctx, tx, t)
	}
	title, err := titleOf(ctx, tx, t)
	if err != nil {
		return err
	}
	if err := s.tellOfFailure(ctx, tx, t, title, words); err != nil {
		return err
	}
	return end(ctx, tx, t, []platform.JobError{t.Kind.Failure(title, words)}, nil)
}

// ofBinding says of which binding the deletion failed that should have made room for that of the instance.
func ofBinding(ctx context.Context, tx pgx.Tx, t Errand, words string) (string, error) {
	if t.Binding == "" {
		return words, nil
	}
	title, err := titleOf(ctx, tx, Errand{Operation: platform.Operation{Kind: platform.BindingDelete, Subject: t.Binding}})
	return "First " + title + " has to go. " + words, err
}

// markFailed writes on the subject how its operation ended, and tells whether it was still there. What was not made is not held.
func markFailed(ctx context.Context, tx pgx.Tx, t Errand, words string) (there bool, err error) {
	var sql string
	args := []any{t.Subject, platform.OperationFailed, words, t.Kind.Creates()}
	switch {
	case t.Kind == platform.BrokerCreate:
		sql, args = `update service_brokers set state = $2, updated_at = now() where guid = $1`, []any{t.Subject, platform.BrokerFailed}
	case t.Kind == platform.BrokerUpdate: // whose catalog we know is as good as before
		sql = `update service_brokers set state = case when exists(select from service_offerings o where o.broker_guid = service_brokers.guid) then $2 else $3 end where guid = $1`
		args = []any{t.Subject, platform.BrokerAvailable, platform.BrokerFailed}
	case t.Kind.OfBinding():
		sql = `update service_bindings set op_state = $2, op_description = $3, op_updated_at = now(), held = held and not $4 where guid = $1`
	default:
		sql = `update service_instances set op_state = $2, op_description = $3, op_updated_at = now(), held = held and not $4 where guid = $1`
	}
	tag, err := tx.Exec(ctx, sql, args...)
	if err != nil {
		return false, fmt.Errorf("write failure: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// vanished ends the operation of a subject that has gone: who wanted it gone has what they wanted.
func vanished(ctx context.Context, tx pgx.Tx, t Errand) error {
	if t.Kind.Deletes() {
		return end(ctx, tx, t, nil, nil)
	}
	title, err := titleOf(ctx, tx, t)
	if err != nil {
		return err
	}
	return end(ctx, tx, t, []platform.JobError{t.Kind.Failure(title, "It was deleted before that was done. What the service broker made of it will be deleted too, unless it was purged.")}, nil)
}

// titleOf is what people call a subject. One that has gone has no name.
func titleOf(ctx context.Context, tx pgx.Tx, t Errand) (string, error) {
	sql, title := `select 'service instance ''' || name || '''' from service_instances where guid = $1`, "the service instance"
	switch {
	case t.Kind.OfBroker():
		sql, title = `select 'service broker ''' || name || '''' from service_brokers where guid = $1`, "the service broker"
	case t.Kind.OfBinding():
		sql, title = `select case b.type when 'key' then 'service key ''' || b.name || ''' of' else 'the binding of app ''' || coalesce(a.name, '') || ''' to' end || ' service instance ''' || i.name || ''''
			from service_bindings b join service_instances i on i.guid = b.instance_guid left join apps a on a.guid = b.app_guid where b.guid = $1`, "the binding"
	}
	err := tx.QueryRow(ctx, sql, t.Subject).Scan(&title)
	if err != nil && !pg.NoRows(err) {
		return "", fmt.Errorf("read name: %w", err)
	}
	return title, nil
}

// end takes an operation out of its job, which ends with its last one.
func end(ctx context.Context, tx pgx.Tx, t Errand, errs []platform.JobError, warnings []string) error {
	if _, err := tx.Exec(ctx, `delete from service_operations where guid = $1`, t.GUID); err != nil {
		return fmt.Errorf("end operation: %w", err)
	}
	rows, err := tx.Query(ctx, `select `+jobColumns+` from jobs where guid = $1 for update`, t.JobGUID) // of two last ones, one sees that the other has ended
	if err != nil {
		return fmt.Errorf("lock job: %w", err)
	}
	job, err := pgx.CollectExactlyOneRow(rows, scanJob)
	switch {
	case pg.NoRows(err):
		return nil // nobody will ask
	case err != nil:
		return fmt.Errorf("lock job: %w", err)
	}
	var left, polling int
	if err := tx.QueryRow(ctx, `select count(*), count(*) filter (where stage <> 'ask') from service_operations where job_guid = $1`, t.JobGUID).Scan(&left, &polling); err != nil {
		return fmt.Errorf("count operations: %w", err)
	}
	job.Go(left, polling, errs, warnings)
	return saveJob(ctx, tx, job)
}
