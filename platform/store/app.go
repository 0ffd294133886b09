package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

var apps = noun[platform.App]{
	name: "App", from: `apps t join spaces s on s.guid = t.space_guid`, space: `t.space_guid`, org: `s.org_guid`,
	columns: `t.guid, t.space_guid, s.org_guid, t.name, t.state, t.lifecycle, t.buildpacks, t.stack, coalesce(t.droplet_guid, ''), t.allow_ssh, t.binding_files, t.notices, t.releases,
		t.labels, t.annotations, t.created_at, t.updated_at`,
	into: func(a *platform.App) []any {
		return []any{&a.GUID, &a.SpaceGUID, &a.OrgGUID, &a.Name, &a.State, &a.Lifecycle.Type, &a.Lifecycle.Buildpacks, &a.Lifecycle.Stack, &a.Droplet, &a.SSH, &a.BindingFiles, &a.Notices, &a.Releases,
			&a.Metadata.Labels, &a.Metadata.Annotations, &a.CreatedAt, &a.UpdatedAt}
	},
	filters: map[string]string{"names": `t.name`, "space_guids": `t.space_guid`, "organization_guids": `s.org_guid`, "stacks": `t.stack`, "lifecycle_type": `t.lifecycle`},
	order:   map[string]string{"name": `t.name`, "state": `t.state`}, labels: `t.labels`,
}

func appTarget(a platform.App) platform.Actor {
	return platform.Actor{GUID: a.GUID, Type: "app", Name: a.Name}
}

func (s *Store) recordApp(ctx context.Context, tx pgx.Tx, who platform.Who, kind string, a platform.App, data map[string]any) error {
	e := platform.On("audit.app."+kind, appTarget(a), a.OrgGUID, a.SpaceGUID)
	if data != nil {
		e = e.With(data)
	}
	if err := record(ctx, tx, who, e); err != nil {
		return err
	}
	if text := platform.AppChange(kind, a.Name, data); text != "" {
		return say(ctx, tx, a.GUID, text)
	}
	return nil
}

// Apps lists apps.
func (s *Store) Apps(ctx context.Context, who platform.Who, l platform.List) (platform.Page[platform.App], error) {
	return apps.list(ctx, s.pool, who, l)
}

// App reads one app, without its environment.
func (s *Store) App(ctx context.Context, who platform.Who, guid string) (platform.App, error) {
	return apps.find(ctx, s.pool, who, platform.Read, guid)
}

// AppWithEnv reads one app with its environment variables, which not everybody may see.
func (s *Store) AppWithEnv(ctx context.Context, who platform.Who, guid string) (platform.App, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.App, error) {
		a, err := apps.find(ctx, tx, who, platform.ReadSecrets, guid)
		if err != nil {
			return a, err
		}
		err = s.readEnv(ctx, tx, &a)
		return a, err
	})
}

// SeesSecrets tells whether somebody who sees an app also sees what is secret about it.
func (s *Store) SeesSecrets(ctx context.Context, who platform.Who, app string) (bool, error) {
	_, err := apps.find(ctx, s.pool, who, platform.ReadSecrets, app)
	if fault.Is(err, fault.KindForbidden) {
		return false, nil
	}
	return err == nil, err
}

// AppEnvironment reads what an app's environment would be made of if it were started now.
func (s *Store) AppEnvironment(ctx context.Context, who platform.Who, guid string, set Settings) (platform.Snapshot, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Snapshot, error) {
		a, err := apps.find(ctx, tx, who, platform.ReadSecrets, guid)
		if err != nil {
			return platform.Snapshot{}, err
		}
		if err := s.readEnv(ctx, tx, &a); err != nil {
			return platform.Snapshot{}, err
		}
		return s.snapshot(ctx, tx, a, set)
	})
}

func (s *Store) readEnv(ctx context.Context, tx pgx.Tx, a *platform.App) error {
	var sealed []byte
	if err := tx.QueryRow(ctx, `select env from apps where guid = $1`, a.GUID).Scan(&sealed); err != nil {
		return fmt.Errorf("read env: %w", err)
	}
	return s.open(sealed, "app env "+a.GUID, &a.Env)
}

// seal is a value as it may be stored; the context ties it to its row.
func (s *Store) seal(value any, context string) ([]byte, error) {
	plain, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", context, err)
	}
	return s.box.Seal(plain, []byte(context))
}

// open is the reverse of seal. Nothing was never sealed.
func (s *Store) open(sealed []byte, context string, into any) error {
	if len(sealed) == 0 {
		return nil
	}
	plain, err := s.box.Open(sealed, []byte(context))
	if err != nil {
		return fmt.Errorf("open %s: %w", context, err)
	}
	return json.Unmarshal(plain, into)
}

// CreateApp adds an app to a space, with its web process.
func (s *Store) CreateApp(ctx context.Context, who platform.Who, a platform.App) (platform.App, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.App, error) {
		if _, err := spaces.named(ctx, tx, who, platform.Develop, a.SpaceGUID); err != nil {
			return a, err
		}
		return s.createApp(ctx, tx, who, a)
	})
}

func (s *Store) createApp(ctx context.Context, tx pgx.Tx, who platform.Who, a platform.App) (platform.App, error) {
	if err := a.Check(); err != nil {
		return a, err
	}
	a.GUID = platform.NewGUID()
	env, err := s.seal(a.Env, "app env "+a.GUID)
	if err != nil {
		return a, err
	}
	_, err = tx.Exec(ctx, `insert into apps (guid, space_guid, name, lifecycle, buildpacks, stack, env, allow_ssh, binding_files, notices, labels, annotations) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		a.GUID, a.SpaceGUID, a.Name, a.Lifecycle.Type, none(a.Lifecycle.Buildpacks), a.Lifecycle.Stack, env, a.SSH, a.BindingFiles, a.Notices, none2(a.Metadata.Labels), none2(a.Metadata.Annotations))
	if err != nil {
		return a, appConflict(err, a.Name)
	}
	web := platform.NewProcess(a.GUID, platform.WebProcess)
	web.GUID = a.GUID // as clients of Cloud Foundry have come to expect
	if err := insertProcess(ctx, tx, web); err != nil {
		return a, err
	}
	created, err := apps.read(ctx, tx, a.GUID)
	if err != nil {
		return a, err
	}
	created.Env = a.Env
	return created, s.recordApp(ctx, tx, who, "create", created, nil)
}

// none2 is a map that is there.
func none2(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

func appConflict(err error, name string) error {
	switch constraint, _ := pg.Conflict(err); constraint {
	case "app_name":
		return platform.ErrAppExists(name)
	case "app_space":
		return invalid("Space")
	}
	return fmt.Errorf("write app: %w", err)
}

// changeApp locks an app with its environment, lets it be changed and writes it.
func (s *Store) changeApp(ctx context.Context, tx pgx.Tx, who platform.Who, do platform.Action, guid string, change func(*platform.App) error) (platform.App, error) {
	a, err := apps.lock(ctx, tx, who, do, guid)
	if err != nil {
		return a, err
	}
	if err := s.readEnv(ctx, tx, &a); err != nil {
		return a, err
	}
	if err := change(&a); err != nil {
		return a, err
	}
	return a, s.saveApp(ctx, tx, a)
}

func (s *Store) saveApp(ctx context.Context, tx pgx.Tx, a platform.App) error {
	if err := a.Check(); err != nil {
		return err
	}
	env, err := s.seal(a.Env, "app env "+a.GUID)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `update apps set name = $2, state = $3, lifecycle = $4, buildpacks = $5, stack = $6, droplet_guid = nullif($7, ''), env = $8, allow_ssh = $9,
		releases = $10, labels = $11, annotations = $12, binding_files = $13, notices = $14, updated_at = now() where guid = $1`,
		a.GUID, a.Name, a.State, a.Lifecycle.Type, none(a.Lifecycle.Buildpacks), a.Lifecycle.Stack, a.Droplet, env, a.SSH, a.Releases, none2(a.Metadata.Labels), none2(a.Metadata.Annotations), a.BindingFiles, a.Notices)
	if err != nil {
		return appConflict(err, a.Name)
	}
	return nil
}

// UpdateApp changes an app. What runs stays as it is until the next start.
func (s *Store) UpdateApp(ctx context.Context, who platform.Who, guid string, change func(*platform.App) error) (platform.App, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.App, error) {
		a, err := s.changeApp(ctx, tx, who, platform.Develop, guid, change)
		if err != nil {
			return a, err
		}
		if err := s.recordApp(ctx, tx, who, "update", a, nil); err != nil {
			return a, err
		}
		env := a.Env
		a, err = apps.read(ctx, tx, guid)
		a.Env = env
		return a, err
	})
}

// DeleteApp removes an app with all that belongs to it. What it runs is taken down by its cluster's controller, and what it left in the
// registry by the sweep.
func (s *Store) DeleteApp(ctx context.Context, who platform.Who, guid string) (platform.Job, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Job, error) {
		a, err := apps.lock(ctx, tx, who, platform.Develop, guid)
		if err != nil {
			return platform.Job{}, err
		}
		if _, err := tx.Exec(ctx, `delete from apps where guid = $1`, guid); err != nil {
			return platform.Job{}, fmt.Errorf("delete app: %w", err)
		}
		if err := s.recordApp(ctx, tx, who, "delete-request", a, nil); err != nil {
			return platform.Job{}, err
		}
		return insertJob(ctx, tx, who, "app.delete", platform.JobComplete)
	})
}
