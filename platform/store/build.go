package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

var builds = noun[platform.Build]{
	name: "Build", from: `builds t` + inApp, space: `a.space_guid`, org: `s.org_guid`,
	columns: `t.guid, t.app_guid, t.package_guid, t.droplet_guid, t.state, t.error, t.lifecycle, t.buildpacks, t.stack, t.memory_mb, t.disk_mb,
		t.actor_guid, t.actor_type, t.actor_name, t.labels, t.annotations, t.created_at, t.updated_at`,
	into: func(b *platform.Build) []any {
		return []any{&b.GUID, &b.AppGUID, &b.PackageGUID, &b.DropletGUID, &b.State, &b.Error, &b.Lifecycle.Type, &b.Lifecycle.Buildpacks, &b.Lifecycle.Stack, &b.MemoryMB, &b.DiskMB,
			&b.CreatedBy.GUID, &b.CreatedBy.Type, &b.CreatedBy.Name, &b.Metadata.Labels, &b.Metadata.Annotations, &b.CreatedAt, &b.UpdatedAt}
	},
	filters: map[string]string{"states": `t.state`, "app_guids": `t.app_guid`, "package_guids": `t.package_guid`},
	labels:  `t.labels`,
}

// Builds lists builds.
func (s *Store) Builds(ctx context.Context, who platform.Who, l platform.List) (platform.Page[platform.Build], error) {
	return builds.list(ctx, s.pool, who, l)
}

// Build reads one build.
func (s *Store) Build(ctx context.Context, who platform.Who, guid string) (platform.Build, error) {
	return builds.find(ctx, s.pool, who, platform.Read, guid)
}

// CreateBuild asks for a droplet. The controller of the app's cluster stages it; an image that somebody else built is a droplet as it is.
func (s *Store) CreateBuild(ctx context.Context, who platform.Who, b platform.Build) (platform.Build, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Build, error) {
		p, err := packages.named(ctx, tx, who, platform.Develop, b.PackageGUID)
		if err != nil {
			return b, err
		}
		a, err := apps.lock(ctx, tx, who, platform.Develop, p.AppGUID)
		if err != nil {
			return b, err
		}
		if p, err = packages.named(ctx, tx, who, platform.Develop, b.PackageGUID); err != nil { // it may have gone meanwhile
			return b, err
		}
		if err := s.readEnv(ctx, tx, &a); err != nil {
			return b, err
		}
		if err := b.Begin(a, p); err != nil {
			return b, err
		}
		var staging int
		if err := tx.QueryRow(ctx, `select count(*) from builds where app_guid = $1 and state = $2`, a.GUID, platform.BuildStaging).Scan(&staging); err != nil {
			return b, fmt.Errorf("count builds: %w", err)
		}
		if staging > 0 {
			return b, platform.ErrStagingInProgress
		}
		b.GUID = platform.NewGUID()
		b.CreatedBy = who.Actor()
		env, err := s.seal(a.Env, "build env "+b.GUID)
		if err != nil {
			return b, err
		}
		_, err = tx.Exec(ctx, `insert into builds (guid, app_guid, package_guid, state, lifecycle, buildpacks, stack, memory_mb, disk_mb, actor_guid, actor_type, actor_name, env, labels, annotations)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
			b.GUID, b.AppGUID, b.PackageGUID, b.State, b.Lifecycle.Type, none(b.Lifecycle.Buildpacks), b.Lifecycle.Stack, b.MemoryMB, b.DiskMB,
			b.CreatedBy.GUID, b.CreatedBy.Type, b.CreatedBy.Name, env, none2(b.Metadata.Labels), none2(b.Metadata.Annotations))
		if err != nil {
			return b, fmt.Errorf("write build: %w", err)
		}
		if err := s.recordApp(ctx, tx, who, "build.create", a, map[string]any{"build_guid": b.GUID, "package_guid": p.GUID}); err != nil {
			return b, err
		}
		return builds.read(ctx, tx, b.GUID)
	})
}

// UpdateBuild changes what is noted on a build.
func (s *Store) UpdateBuild(ctx context.Context, who platform.Who, guid string, change platform.MetadataChange) (platform.Build, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Build, error) {
		b, err := builds.lock(ctx, tx, who, platform.Develop, guid)
		if err != nil {
			return b, err
		}
		b.Metadata.Apply(change)
		if err := b.Metadata.Check(); err != nil {
			return b, err
		}
		_, err = tx.Exec(ctx, `update builds set labels = $2, annotations = $3, updated_at = now() where guid = $1`, guid, b.Metadata.Labels, b.Metadata.Annotations)
		if err != nil {
			return b, fmt.Errorf("save build: %w", err)
		}
		return builds.read(ctx, tx, guid)
	})
}

// A Task is a build that is to be staged, with what only its staging may see.
type Task struct {
	Build   platform.Build
	Package platform.Package // with its password
	Space   platform.Space
	Env     map[string]string
}

// Stagings lists the builds of a cluster that are under way, oldest first.
func (s *Store) Stagings(ctx context.Context, cluster string) ([]Task, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) ([]Task, error) {
		rows, err := tx.Query(ctx, `select `+builds.columns+`, t.env, s.guid, s.org_guid, s.name, s.cluster_id from `+builds.from+`
			where t.state = $1 and s.cluster_id = $2 order by t.created_at, t.guid`, platform.BuildStaging, cluster)
		if err != nil {
			return nil, fmt.Errorf("list stagings: %w", err)
		}
		tasks, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Task, error) {
			var t Task
			var env []byte
			if err := row.Scan(append(builds.into(&t.Build), &env, &t.Space.GUID, &t.Space.OrgGUID, &t.Space.Name, &t.Space.Cluster)...); err != nil {
				return t, err
			}
			err := s.open(env, "build env "+t.Build.GUID, &t.Env)
			return t, err
		})
		if err != nil {
			return nil, err
		}
		kept := tasks[:0]
		for _, t := range tasks {
			t.Package, err = s.packageWithPassword(ctx, tx, t.Build.PackageGUID)
			if pg.NoRows(err) {
				continue // its app is being deleted
			}
			if err != nil {
				return nil, err
			}
			kept = append(kept, t)
		}
		return kept, nil
	})
}

func (s *Store) packageWithPassword(ctx context.Context, tx pgx.Tx, guid string) (platform.Package, error) {
	p, err := packages.read(ctx, tx, guid)
	if err != nil {
		return p, err
	}
	var sealed []byte
	if err := tx.QueryRow(ctx, `select docker_password from packages where guid = $1`, guid).Scan(&sealed); err != nil {
		return p, fmt.Errorf("read password: %w", err)
	}
	err = s.open(sealed, "package password "+guid, &p.Docker.Password)
	return p, err
}

// FinishBuild ends a build: with a droplet, or with the reason why there is none. A build that has ended already stays as it ended.
func (s *Store) FinishBuild(ctx context.Context, guid string, d *platform.Droplet, failure string) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select `+builds.columns+` from `+builds.from+` where t.guid = $1 and t.state = $2 for update of t`, guid, platform.BuildStaging)
		if err != nil {
			return fmt.Errorf("lock build: %w", err)
		}
		b, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (platform.Build, error) {
			var b platform.Build
			err := row.Scan(builds.into(&b)...)
			return b, err
		})
		if pg.NoRows(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("lock build: %w", err)
		}
		state, droplet := platform.BuildFailed, ""
		if d != nil {
			d.AppGUID, d.PackageGUID, d.BuildGUID, d.Lifecycle = b.AppGUID, b.PackageGUID, b.GUID, b.Lifecycle
			if err := insertDroplet(ctx, tx, d); err != nil {
				return err
			}
			state, droplet = platform.BuildStaged, d.GUID
		}
		_, err = tx.Exec(ctx, `update builds set state = $2, error = $3, droplet_guid = $4, env = null, updated_at = now() where guid = $1`, guid, state, failure, droplet)
		if err != nil {
			return fmt.Errorf("finish build: %w", err)
		}
		return nil
	})
}
