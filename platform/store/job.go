package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

const jobColumns = `guid, operation, state, errors, warnings, owner, created_at, updated_at`

func scanJob(row pgx.CollectableRow) (platform.Job, error) {
	var j platform.Job
	err := row.Scan(&j.GUID, &j.Operation, &j.State, &j.Errors, &j.Warnings, &j.Owner, &j.CreatedAt, &j.UpdatedAt)
	return j, err
}

// Job reads a job for whoever asked for it.
func (s *Store) Job(ctx context.Context, who platform.Who, guid string) (platform.Job, error) {
	rows, err := s.pool.Query(ctx, `select `+jobColumns+` from jobs where guid = $1`, guid)
	if err != nil {
		return platform.Job{}, fmt.Errorf("get job: %w", err)
	}
	j, err := pgx.CollectExactlyOneRow(rows, scanJob)
	switch {
	case pg.NoRows(err):
		return j, platform.NotFound("Job")
	case err != nil:
		return j, fmt.Errorf("get job: %w", err)
	}
	if err := j.MaySee(who); err != nil {
		return platform.Job{}, err
	}
	return j, nil
}

// insertJob writes a job in the transaction of what it is about: complete when that is done with it, processing when somebody else
// goes on from here.
func insertJob(ctx context.Context, tx pgx.Tx, who platform.Who, operation string, state platform.JobState) (platform.Job, error) {
	rows, err := tx.Query(ctx, `insert into jobs (guid, operation, state, owner) values ($1, $2, $3, $4) returning `+jobColumns,
		platform.NewGUID(), operation, state, who.GUID)
	if err != nil {
		return platform.Job{}, fmt.Errorf("write job: %w", err)
	}
	return pgx.CollectExactlyOneRow(rows, scanJob)
}

// saveJob writes how far a job is.
func saveJob(ctx context.Context, tx pgx.Tx, j platform.Job) error {
	tag, err := tx.Exec(ctx, `update jobs set state = $2, errors = $3, warnings = $4, updated_at = now() where guid = $1`,
		j.GUID, j.State, none(j.Errors), none(j.Warnings))
	if err != nil {
		return fmt.Errorf("save job: %w", err)
	}
	return exactly(tag.RowsAffected(), "Job")
}

// none makes an empty list of a missing one: columns are not null.
func none[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
