package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

// ApplyManifest makes the apps of a space what a manifest says, all of them or none. A rule that it breaks is told by the job, which
// has failed then. It goes on until brokers have made the bindings that are missing; nothing else waits for them.
func (s *Store) ApplyManifest(ctx context.Context, who platform.Who, space string, m platform.Manifest, set Settings) (platform.Job, error) {
	const operation = "space.apply_manifest"
	job, err := pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Job, error) {
		sp, err := spaces.find(ctx, tx, who, platform.Develop, space)
		if err != nil {
			return platform.Job{}, err
		}
		// One at a time in a space: two that name the same apps in different orders would wait for each other.
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('manifest ' || $1::text, 0))`, space); err != nil {
			return platform.Job{}, fmt.Errorf("lock manifest: %w", err)
		}
		job, err := insertJob(ctx, tx, who, operation, platform.JobProcessing)
		if err != nil {
			return job, err
		}
		for _, app := range m.Applications {
			if err := s.applyApp(ctx, tx, who, sp, app, set, &job); err != nil {
				return platform.Job{}, about("For application '"+app.Name+"'", err)
			}
		}
		return doneUnlessAsked(ctx, tx, job)
	})
	var broken *fault.Error
	if !errors.As(err, &broken) || broken.Kind != fault.KindUnprocessable {
		return job, err
	}
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Job, error) {
		job, err := insertJob(ctx, tx, who, operation, platform.JobProcessing)
		if err != nil {
			return job, err
		}
		job.Fail(platform.JobError{Code: 10008, Title: "CF-UnprocessableEntity", Detail: broken.Detail})
		return job, saveJob(ctx, tx, job)
	})
}

// about says what a broken rule is about. Other errors stay as they are.
func about(what string, err error) error {
	if fault.Is(err, fault.KindUnprocessable) {
		return fault.Unprocessable("%s: %s", what, fault.From(err).Detail)
	}
	return err
}

// applyApp finds or makes the app, and then what belongs to it. What the rules say of all of it together is asked at the end, because
// a process and its sidecars may change at once.
func (s *Store) applyApp(ctx context.Context, tx pgx.Tx, who platform.Who, sp platform.Space, m platform.ManifestApp, set Settings, job *platform.Job) error {
	a, found, err := s.appNamed(ctx, tx, sp.GUID, m.Name, " for update of t")
	if err != nil {
		return err
	}
	if !found {
		a = platform.NewApp(sp.GUID, m.Name)
	}
	if err := a.ApplyManifest(m, set.Stacks); err != nil {
		return err
	}
	if m.Features[platform.FeatureNotices] && !set.Notices {
		return platform.ErrNoNotices
	}
	if found {
		err = s.saveApp(ctx, tx, a)
	} else {
		a, err = s.createApp(ctx, tx, who, a)
	}
	if err != nil {
		return err
	}
	if err := applyProcesses(ctx, tx, a.GUID, m.EveryProcess()); err != nil {
		return err
	}
	if err := applySidecars(ctx, tx, a.GUID, m.Sidecars); err != nil {
		return err
	}
	if err := s.applyServices(ctx, tx, who, a, m.Services, job); err != nil {
		return err
	}
	if err := s.applyRoutes(ctx, tx, who, sp, a, m, set); err != nil {
		return err
	}
	if err := checkSidecars(ctx, tx, a.GUID); err != nil {
		return err
	}
	return s.recordApp(ctx, tx, who, "apply_manifest", a, nil)
}

// appNamed reads, and may lock, the app of this name with its environment, if it is there. Who may was asked of the space.
func (s *Store) appNamed(ctx context.Context, tx pgx.Tx, space, name, lock string) (a platform.App, found bool, err error) {
	a, err = apps.collect(ctx, tx, `select `+apps.columns+` from `+apps.from+` where t.space_guid = $1 and t.name = $2`+lock, []any{space, name})
	if pg.NoRows(err) {
		return a, false, nil
	}
	if err != nil {
		return a, false, fmt.Errorf("find app: %w", err)
	}
	err = s.readEnv(ctx, tx, &a)
	return a, true, err
}

func applyProcesses(ctx context.Context, tx pgx.Tx, app string, wanted []platform.ManifestProcess) error {
	for _, m := range wanted {
		if err := applyProcess(ctx, tx, app, m); err != nil {
			return about("process '"+m.Type+"'", err)
		}
	}
	return nil
}

func applyProcess(ctx context.Context, tx pgx.Tx, app string, m platform.ManifestProcess) error {
	if err := ensureProcess(ctx, tx, app, m.Type); err != nil {
		return err
	}
	guid, err := processGUID(ctx, tx, app, m.Type)
	if err != nil {
		return err
	}
	p, err := processes.read(ctx, tx, guid)
	if err != nil {
		return err
	}
	if err := p.Scale(m.Scale); err != nil {
		return err
	}
	if err := p.Update(m.Change); err != nil {
		return err
	}
	return saveProcess(ctx, tx, p)
}

// applySidecars leaves those alone that the manifest does not name.
func applySidecars(ctx context.Context, tx pgx.Tx, app string, wanted []platform.ManifestSidecar) error {
	if len(wanted) == 0 {
		return nil
	}
	there, err := sidecarsOf(ctx, tx, app)
	if err != nil {
		return err
	}
	byName := map[string]platform.Sidecar{}
	for _, c := range there {
		byName[c.Name] = c
	}
	for _, m := range wanted {
		c, found := byName[m.Name]
		if !found {
			c = platform.Sidecar{GUID: platform.NewGUID(), AppGUID: app, Name: m.Name, Origin: platform.SidecarOfUser}
		}
		if err := c.Update(m.Change()); err != nil {
			return about("sidecar '"+m.Name+"'", err)
		}
		if err := writeSidecar(ctx, tx, c); err != nil {
			return err
		}
	}
	return nil
}

// DiffManifest tells what ApplyManifest would change. It shows environment variables, to who could set them.
func (s *Store) DiffManifest(ctx context.Context, who platform.Who, space string, sent platform.Manifest) ([]platform.Difference, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) ([]platform.Difference, error) {
		if _, err := spaces.find(ctx, tx, who, platform.Develop, space); err != nil {
			return nil, err
		}
		var current platform.Manifest
		for _, m := range sent.Applications {
			a, found, err := s.appNamed(ctx, tx, space, m.Name, "")
			if err != nil {
				return nil, err
			}
			if !found {
				continue
			}
			app, err := manifestOf(ctx, tx, a)
			if err != nil {
				return nil, err
			}
			current.Applications = append(current.Applications, app)
		}
		return platform.DiffManifest(current, sent), nil
	})
}

// AppManifest reads the manifest that would make an app what it is.
func (s *Store) AppManifest(ctx context.Context, who platform.Who, guid string) (platform.Manifest, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Manifest, error) {
		a, err := apps.find(ctx, tx, who, platform.ReadSecrets, guid)
		if err != nil {
			return platform.Manifest{}, err
		}
		if err := s.readEnv(ctx, tx, &a); err != nil {
			return platform.Manifest{}, err
		}
		app, err := manifestOf(ctx, tx, a)
		return platform.Manifest{Applications: []platform.ManifestApp{app}}, err
	})
}

func manifestOf(ctx context.Context, tx pgx.Tx, a platform.App) (platform.ManifestApp, error) {
	procs, err := processesOf(ctx, tx, a.GUID)
	if err != nil {
		return platform.ManifestApp{}, err
	}
	beside, err := sidecarsOf(ctx, tx, a.GUID)
	if err != nil {
		return platform.ManifestApp{}, err
	}
	var image platform.DockerSource
	if a.Lifecycle.Type == platform.LifecycleDocker {
		err := tx.QueryRow(ctx, `select docker_image, docker_username from packages where app_guid = $1 order by created_at desc, guid desc limit 1`, a.GUID).Scan(&image.Image, &image.Username)
		if err != nil && !pg.NoRows(err) {
			return platform.ManifestApp{}, fmt.Errorf("read image: %w", err)
		}
	}
	its, err := routesOf(ctx, tx, a.GUID)
	if err != nil {
		return platform.ManifestApp{}, err
	}
	m := platform.ManifestOf(a, image, procs, beside, its)
	m.Services, err = manifestServices(ctx, tx, a.GUID)
	return m, err
}
