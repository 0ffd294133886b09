package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

// keptReleases is how many releases of a process are remembered.
const keptReleases = 20

// Settings are what a release takes from the platform itself.
type Settings struct {
	API     string               // where the API is
	Builder []platform.Buildpack // what the builder has
	Stacks  []string             // that apps can run on, the default first
	Notices bool                 // there is a notification service, so developers can be told when an app breaks

	Domain   platform.Domain   // that apps get routes under by themselves
	TCP      TCP               // where routes of tcp stand
	Reserved platform.Reserved // hosts that nobody gets
}

// TCP is a domain whose routes are ports, and which of them there are. Without a domain there are none.
type TCP struct {
	Domain platform.Domain
	Ports  platform.Ports
}

// of is the ports of a domain: one that was for tcp before has none.
func (t TCP) of(d platform.Domain) platform.Ports {
	if d.GUID != t.Domain.GUID {
		return platform.Ports{}
	}
	return t.Ports
}

// StartApp asks for an app to run. One that was stopped gets a new release; one that runs is left alone.
func (s *Store) StartApp(ctx context.Context, who platform.Who, guid string, set Settings) (platform.App, error) {
	return s.switchApp(ctx, who, guid, "start", set, func(a *platform.App) (bool, error) {
		fresh := a.State != platform.Started
		return fresh, a.Start()
	})
}

// RestartApp gives an app a new release, and so everything that has changed since the last.
func (s *Store) RestartApp(ctx context.Context, who platform.Who, guid string, set Settings) (platform.App, error) {
	return s.switchApp(ctx, who, guid, "restart", set, func(a *platform.App) (bool, error) { return true, a.Start() })
}

// StopApp asks for an app not to run.
func (s *Store) StopApp(ctx context.Context, who platform.Who, guid string) (platform.App, error) {
	return s.switchApp(ctx, who, guid, "stop", Settings{}, func(a *platform.App) (bool, error) {
		a.Stop()
		return false, nil
	})
}

func (s *Store) switchApp(ctx context.Context, who platform.Who, guid, event string, set Settings, change func(*platform.App) (bool, error)) (platform.App, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.App, error) {
		release := false
		a, err := s.changeApp(ctx, tx, who, platform.Support, guid, func(a *platform.App) (err error) {
			if release, err = change(a); release {
				a.Releases++
			}
			return err
		})
		if err != nil {
			return a, err
		}
		if err := s.switched(ctx, tx, who, a, set, release); err != nil {
			return a, err
		}
		if err := s.recordApp(ctx, tx, who, event, a, nil); err != nil {
			return a, err
		}
		return apps.read(ctx, tx, guid)
	})
}

// switched gives an app its next release, or takes what it runs down. Either ends a deployment that was under way.
func (s *Store) switched(ctx context.Context, tx pgx.Tx, who platform.Who, a platform.App, set Settings, release bool) error {
	if a.State == platform.Stopped {
		return endDeployment(ctx, tx, a.GUID, platform.Canceled)
	}
	if !release {
		return nil
	}
	if err := endDeployment(ctx, tx, a.GUID, platform.Superseded); err != nil {
		return err
	}
	if err := s.release(ctx, tx, a, set); err != nil {
		return err
	}
	_, err := s.revise(ctx, tx, who, a, nil)
	return err
}

// release makes the next release of every process of an app that is locked.
func (s *Store) release(ctx context.Context, tx pgx.Tx, a platform.App, set Settings) error {
	shot, err := s.snapshot(ctx, tx, a, set)
	if err != nil {
		return err
	}
	if shot.Droplet, err = droplets.read(ctx, tx, a.Droplet); err != nil {
		return err
	}
	if shot.Sidecars, err = sidecarsOf(ctx, tx, a.GUID); err != nil {
		return err
	}
	if shot.Reached, err = reached(ctx, tx, a.GUID); err != nil {
		return err
	}
	procs, err := processesOf(ctx, tx, a.GUID)
	if err != nil {
		return err
	}
	for _, p := range procs {
		r, err := shot.Release(p)
		if err != nil {
			return err
		}
		if err := s.insertRelease(ctx, tx, r); err != nil {
			return err
		}
	}
	return nil
}

// snapshot is an app in its place with the services that it is bound to, without what it runs.
func (s *Store) snapshot(ctx context.Context, tx pgx.Tx, a platform.App, set Settings) (platform.Snapshot, error) {
	shot := platform.Snapshot{App: a, API: set.API, Builder: set.Builder}
	var err error
	if shot.Space, err = spaces.read(ctx, tx, a.SpaceGUID); err != nil {
		return shot, err
	}
	if err := tx.QueryRow(ctx, `select name from orgs where guid = $1`, a.OrgGUID).Scan(&shot.OrgName); err != nil {
		return shot, fmt.Errorf("read organization: %w", err)
	}
	if shot.URIs, err = uris(ctx, tx, a.GUID); err != nil {
		return shot, err
	}
	shot.Services, err = s.boundServices(ctx, tx, a.GUID)
	return shot, err
}

func (s *Store) insertRelease(ctx context.Context, tx pgx.Tx, r platform.Release) error {
	body, err := s.seal(r, "release "+r.GUID)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `insert into releases (guid, app_guid, process_guid, version, body, ports) values ($1, $2, $3, $4, $5, $6)`, r.GUID, r.AppGUID, r.ProcessGUID, r.Version, body, none(r.Ports)); err != nil {
		return fmt.Errorf("write release: %w", err)
	}
	if _, err := tx.Exec(ctx, `update processes set release_guid = $2 where guid = $1`, r.ProcessGUID, r.GUID); err != nil {
		return fmt.Errorf("set release: %w", err)
	}
	// Each holds a whole environment, and restarting is free: those that nobody goes back to are forgotten.
	if _, err := tx.Exec(ctx, `delete from releases r where process_guid = $1 and version <= $2 and not exists (select from draining d where d.process_guid = $1 and d.release_guid = r.guid)`,
		r.ProcessGUID, r.Version-keptReleases); err != nil {
		return fmt.Errorf("forget releases: %w", err)
	}
	return nil
}

// Wanted lists what a cluster should run: the releases of started apps, with how many instances there should be. Where a deployment is
// under way also those that give way, and the counts are platform.Roll's to say. It is one statement, because half of a deployment
// would take an app down.
func (s *Store) Wanted(ctx context.Context, cluster string) ([]platform.Wanted, error) {
	rows, err := s.pool.Query(ctx, `select r.guid, r.body, p.instances, w.draining, coalesce(d.guid, ''), coalesce(d.strategy, ''), coalesce(d.status_value, ''), coalesce(d.status_reason, ''),
			coalesce(d.max_in_flight, 0), coalesce(d.steps, '{}'), coalesce(d.step, 0), coalesce(d.ready, 0)
		from (select guid as process_guid, release_guid, false as draining from processes union all select process_guid, release_guid, true from draining) w
		join processes p on p.guid = w.process_guid join apps a on a.guid = p.app_guid join spaces s on s.guid = a.space_guid join releases r on r.guid = w.release_guid
		left join deployments d on d.app_guid = a.guid and d.status_value = 'ACTIVE'
		where a.state = $1 and s.cluster_id = $2 and (d.guid is not null or p.instances > 0 and not w.draining) order by r.guid`, platform.Started, cluster)
	if err != nil {
		return nil, fmt.Errorf("list wanted: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (platform.Wanted, error) {
		var w platform.Wanted
		var d platform.Deployment
		var guid string
		var body []byte
		if err := row.Scan(&guid, &body, &w.Instances, &w.Draining, &d.GUID, &d.Strategy, &d.Value, &d.Reason, &d.MaxInFlight, &d.Steps, &d.Step, &d.Ready); err != nil {
			return w, err
		}
		err := s.open(body, "release "+guid, &w.Release)
		if d.GUID != "" {
			d.AppGUID, w.Deployment = w.Release.AppGUID, &d
		}
		return w, err
	})
}

// SpacesOf lists the spaces of a cluster: their namespaces are wanted, others are not.
func (s *Store) SpacesOf(ctx context.Context, cluster string) ([]platform.Space, error) {
	rows, err := s.pool.Query(ctx, `select `+spaces.columns+` from `+spaces.from+` where t.cluster_id = $1 order by t.guid`, cluster)
	if err != nil {
		return nil, fmt.Errorf("list spaces: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (platform.Space, error) {
		var sp platform.Space
		err := row.Scan(spaces.into(&sp)...)
		return sp, err
	})
}
