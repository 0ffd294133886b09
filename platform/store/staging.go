package store

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/platform"
)

// StagingLog is how far the log of a build is written. A try of the build is an instance of the log.
type StagingLog struct {
	Now   time.Time // the database's clock, which all processes share
	Last  time.Time // of the app's last line, whatever wrote it
	Lines []int     // of each try
}

// StagingLog counts the lines of an app that staging wrote since a build was asked for. An app has one build at a time.
func (s *Store) StagingLog(ctx context.Context, app string, since time.Time) (StagingLog, error) {
	var l StagingLog
	var last int64
	err := s.pool.QueryRow(ctx, `select clock_timestamp(), (select coalesce(max(at), 0) from log_lines where app_guid = $1)`, app).Scan(&l.Now, &last)
	if err != nil {
		return l, fmt.Errorf("read log: %w", err)
	}
	l.Last = time.Unix(0, last)
	rows, err := s.pool.Query(ctx, `select instance, count(*) from log_lines where app_guid = $1 and at >= $2 and source = $3 group by instance`, app, since.UnixNano(), platform.SourceStaging)
	if err != nil {
		return l, fmt.Errorf("count log: %w", err)
	}
	var instance string
	var lines int
	_, err = pgx.ForEachRow(rows, []any{&instance, &lines}, func() error {
		n, err := strconv.Atoi(instance)
		if err != nil || n < 0 || n > 100 {
			return fmt.Errorf("count log: %q is no try of a build", instance)
		}
		for len(l.Lines) <= n {
			l.Lines = append(l.Lines, 0)
		}
		l.Lines[n] = lines
		return nil
	})
	return l, err
}
