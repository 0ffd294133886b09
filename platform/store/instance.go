package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

// places is how many instances of its release a process p of an app a should have now.
const places = `case when exists (select from deployments d where d.app_guid = a.guid and d.status_value = 'ACTIVE')
	then least(p.instances, greatest(1, (select count(*) from instances x where x.process_guid = p.guid and x.release_guid = p.release_guid))) else p.instances end`

// Instances lists the instances that some processes should have, as they were seen last. One that was not seen yet is starting, or down if
// its process came after the last start; a stopped app has none. Instances of an older release are on their way out, and left out; while a
// deployment is under way there are as many as it has come to.
func (s *Store) Instances(ctx context.Context, guids []string) (map[string][]platform.Instance, error) {
	rows, err := s.pool.Query(ctx, `select p.guid, n.index, coalesce(i.pod, ''), coalesce(i.pod_uid, ''), coalesce(i.node, ''), coalesce(i.address, ''),
			coalesce(i.state, case when p.release_guid is null then 'DOWN' else 'STARTING' end), coalesce(i.since, now()), coalesce(i.ready, false), coalesce(i.restarts, 0), coalesce(i.details, ''),
			coalesce(e.description, ''), e.at, case when i.state = $3 and now() - i.since >= $4 then 0 else coalesce(e.crashes, 0) end, case when e.next_try > now() and i.state <> $3 then e.next_try end
		from processes p join apps a on a.guid = p.app_guid and a.state = $2 cross join lateral generate_series(0, `+places+` - 1) n(index)
		left join instances i on i.process_guid = p.guid and i.index = n.index and i.release_guid = p.release_guid
		left join lateral (select x.description, x.at, x.crashes, x.next_try from exits x where x.process_guid = p.guid and x.index = n.index and x.release_guid = p.release_guid
			order by x.created_at desc limit 1) e on true
		where p.guid = any($1) order by p.guid, n.index`, guids, platform.Started, platform.InstanceRunning, platform.ForgetAfter)
	if err != nil {
		return nil, fmt.Errorf("list instances: %w", err)
	}
	all := map[string][]platform.Instance{}
	var process string
	var i platform.Instance
	var e platform.Exit
	var at, next *time.Time
	_, err = pgx.ForEachRow(rows, []any{&process, &i.Index, &i.Pod, &i.PodUID, &i.Node, &i.Address, &i.State, &i.Since, &i.Ready, &i.Restarts, &i.Details, &e.Description, &at, &i.Crashes, &next}, func() error {
		setExit(&i, e, at, next)
		all[process] = append(all[process], i)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list instances: %w", err)
	}
	return all, nil
}

// RecordSeen writes what a cluster was seen to run. Rows that did not change are not written.
func (s *Store) RecordSeen(ctx context.Context, cluster string, seen []platform.Seen) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `create temporary table now_seen (like instances including defaults) on commit drop`); err != nil {
			return fmt.Errorf("record seen: %w", err)
		}
		var rows [][]any
		taken := map[string]bool{}
		for _, set := range seen {
			for _, i := range set.Instances {
				key := fmt.Sprint(set.Process, " ", i.Index, " ", set.Release)
				if taken[key] || i.Index >= set.Count {
					continue
				}
				taken[key] = true
				rows = append(rows, []any{set.Process, i.Index, set.Release, i.Pod, i.Node, i.Address, i.State, i.Since.UTC().Truncate(time.Microsecond), i.Ready, i.Restarts, i.Details, i.PodUID, i.Run})
			}
		}
		columns := []string{"process_guid", "index", "release_guid", "pod", "node", "address", "state", "since", "ready", "restarts", "details", "pod_uid", "run"}
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{"now_seen"}, columns, pgx.CopyFromRows(rows)); err != nil {
			return fmt.Errorf("record seen: %w", err)
		}
		if _, err := tx.Exec(ctx, `delete from now_seen n where not exists (select from processes p where p.guid = n.process_guid and p.release_guid = n.release_guid)
			and not exists (select from draining d where d.process_guid = n.process_guid and d.release_guid = n.release_guid)`); err != nil {
			return fmt.Errorf("leave out old releases: %w", err)
		}
		if _, err := tx.Exec(ctx, `delete from instances i using processes p, apps a, spaces s where p.guid = i.process_guid and a.guid = p.app_guid and s.guid = a.space_guid and s.cluster_id = $1
			and not exists (select from now_seen n where n.process_guid = i.process_guid and n.index = i.index and n.release_guid = i.release_guid)`, cluster); err != nil {
			return fmt.Errorf("forget instances: %w", err)
		}
		_, err := tx.Exec(ctx, `insert into instances as i (process_guid, index, release_guid, pod, node, address, state, since, ready, restarts, details, pod_uid, run)
			select process_guid, index, release_guid, pod, node, address, state, since, ready, restarts, details, pod_uid, run from now_seen
			on conflict (process_guid, release_guid, index) do update set pod = excluded.pod, node = excluded.node, address = excluded.address, state = excluded.state,
				since = excluded.since, ready = excluded.ready, restarts = excluded.restarts, details = excluded.details, pod_uid = excluded.pod_uid, run = excluded.run
			where i is distinct from excluded`)
		return wrap("record seen", err)
	})
}
