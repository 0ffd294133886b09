package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

var droplets = noun[platform.Droplet]{
	name: "Droplet", from: `droplets t` + inApp, space: `a.space_guid`, org: `s.org_guid`,
	columns: `t.guid, t.app_guid, t.package_guid, t.build_guid, t.state, t.image, t.lifecycle,
		coalesce((select b.buildpacks from builds b where b.guid = t.build_guid), '{}'), t.stack, t.processes, t.buildpacks, t.labels, t.annotations, t.created_at, t.updated_at`,
	into: func(d *platform.Droplet) []any {
		return []any{&d.GUID, &d.AppGUID, &d.PackageGUID, &d.BuildGUID, &d.State, &d.Image, &d.Lifecycle.Type, &d.Lifecycle.Buildpacks, &d.Stack, &d.Processes, &d.Buildpacks,
			&d.Metadata.Labels, &d.Metadata.Annotations, &d.CreatedAt, &d.UpdatedAt}
	},
	filters: map[string]string{"states": `t.state`, "app_guids": `t.app_guid`, "package_guids": `t.package_guid`, "space_guids": `a.space_guid`, "organization_guids": `s.org_guid`},
	labels:  `t.labels`,
}

// Droplets lists droplets.
func (s *Store) Droplets(ctx context.Context, who platform.Who, l platform.List) (platform.Page[platform.Droplet], error) {
	return droplets.list(ctx, s.pool, who, l)
}

// Droplet reads one droplet.
func (s *Store) Droplet(ctx context.Context, who platform.Who, guid string) (platform.Droplet, error) {
	return droplets.find(ctx, s.pool, who, platform.Read, guid)
}

// CurrentDroplet reads the droplet that an app would start with.
func (s *Store) CurrentDroplet(ctx context.Context, who platform.Who, app string) (platform.Droplet, error) {
	a, err := apps.find(ctx, s.pool, who, platform.Read, app)
	if err != nil {
		return platform.Droplet{}, err
	}
	if a.Droplet == "" {
		return platform.Droplet{}, platform.NotFound("Droplet")
	}
	return droplets.find(ctx, s.pool, who, platform.Read, a.Droplet)
}

// AssignDroplet makes a droplet the one an app starts with next, and gives the app a process for each type the droplet knows.
func (s *Store) AssignDroplet(ctx context.Context, who platform.Who, app, droplet string) (platform.App, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.App, error) {
		a, err := s.changeApp(ctx, tx, who, platform.Develop, app, func(a *platform.App) error { return takeDroplet(ctx, tx, who, a, droplet) })
		if err != nil {
			return a, err
		}
		return a, s.recordApp(ctx, tx, who, "droplet.mapped", a, map[string]any{"request": map[string]any{"droplet_guid": droplet}})
	})
}

// takeDroplet makes a droplet the one that an app starts with. The app is locked, and still to be saved.
func takeDroplet(ctx context.Context, tx pgx.Tx, who platform.Who, a *platform.App, droplet string) error {
	d, err := droplets.find(ctx, tx, who, platform.Develop, droplet)
	if fault.Is(err, fault.KindNotFound) || fault.Is(err, fault.KindForbidden) { // of another app, then
		return platform.ErrDropletOfApp
	}
	if err != nil {
		return err
	}
	if err := d.MayRun(a.GUID); err != nil {
		return err
	}
	for _, p := range d.Processes {
		if err := ensureProcess(ctx, tx, a.GUID, p.Type); err != nil {
			return err
		}
	}
	a.Droplet = droplet
	return nil
}

func insertDroplet(ctx context.Context, tx pgx.Tx, d *platform.Droplet) error {
	d.GUID, d.State = platform.NewGUID(), platform.DropletStaged
	_, err := tx.Exec(ctx, `insert into droplets (guid, app_guid, package_guid, build_guid, state, image, lifecycle, stack, processes, buildpacks) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		d.GUID, d.AppGUID, d.PackageGUID, d.BuildGUID, d.State, d.Image, d.Lifecycle.Type, d.Stack, none(d.Processes), none(d.Buildpacks))
	if err != nil {
		return fmt.Errorf("write droplet: %w", err)
	}
	return nil
}

// UpdateDroplet changes what is noted on a droplet.
func (s *Store) UpdateDroplet(ctx context.Context, who platform.Who, guid string, change platform.MetadataChange) (platform.Droplet, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Droplet, error) {
		d, err := droplets.lock(ctx, tx, who, platform.Develop, guid)
		if err != nil {
			return d, err
		}
		d.Metadata.Apply(change)
		if err := d.Metadata.Check(); err != nil {
			return d, err
		}
		_, err = tx.Exec(ctx, `update droplets set labels = $2, annotations = $3, updated_at = now() where guid = $1`, guid, d.Metadata.Labels, d.Metadata.Annotations)
		if err != nil {
			return d, fmt.Errorf("save droplet: %w", err)
		}
		return droplets.read(ctx, tx, guid)
	})
}

// DeleteDroplet forgets a droplet that no app starts with.
func (s *Store) DeleteDroplet(ctx context.Context, who platform.Who, guid string) (platform.Job, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Job, error) {
		d, err := droplets.find(ctx, tx, who, platform.Develop, guid)
		if err != nil {
			return platform.Job{}, err
		}
		a, err := apps.lock(ctx, tx, who, platform.Develop, d.AppGUID)
		if err != nil {
			return platform.Job{}, err
		}
		if a.Droplet == guid {
			return platform.Job{}, platform.ErrDropletInUse
		}
		tag, err := tx.Exec(ctx, `delete from droplets where guid = $1`, guid)
		if err != nil {
			return platform.Job{}, fmt.Errorf("delete droplet: %w", err)
		}
		if err := exactly(tag.RowsAffected(), "Droplet"); err != nil {
			return platform.Job{}, err
		}
		return insertJob(ctx, tx, who, "droplet.delete", platform.JobComplete)
	})
}
