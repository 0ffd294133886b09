package store

import (
	"context"
	"fmt"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

// Home finds where a process runs, and what its release says of the processes in an instance. One that was never started runs nowhere.
func (s *Store) Home(ctx context.Context, who platform.Who, process string) (platform.Home, error) {
	if _, err := processes.find(ctx, s.pool, who, platform.Read, process); err != nil {
		return platform.Home{}, err
	}
	var cluster, guid string
	var body []byte
	err := s.pool.QueryRow(ctx, `select s.cluster_id, r.guid, r.body from processes p join apps a on a.guid = p.app_guid join spaces s on s.guid = a.space_guid
		join releases r on r.guid = p.release_guid where p.guid = $1`, process).Scan(&cluster, &guid, &body)
	if pg.NoRows(err) {
		return platform.Home{}, nil
	}
	if err != nil {
		return platform.Home{}, fmt.Errorf("find home: %w", err)
	}
	var r platform.Release
	if err := s.open(body, "release "+guid, &r); err != nil {
		return platform.Home{}, err
	}
	return platform.HomeOf(cluster, r), nil
}
