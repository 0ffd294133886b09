package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

// keptDeployments is how many deployments of an app are remembered.
const keptDeployments = 100

// failureNow is why the new instance that failed last is not ready, while a deployment t is under way: how it ended, or what the cluster says.
const failureNow = `coalesce(case when t.status_value = 'ACTIVE' and t.status_reason <> 'CANCELING' then (select f.why from (
	select i.since, coalesce((select x.description from exits x where x.process_guid = i.process_guid and x.index = i.index and x.release_guid = i.release_guid order by x.created_at desc limit 1), i.details) as why
	from processes p join releases r on r.process_guid = p.guid and r.version = t.version join instances i on i.process_guid = p.guid and i.release_guid = r.guid
	where p.app_guid = t.app_guid and not i.ready) f where f.why <> '' order by f.since desc limit 1) end, '')`

var deployments = noun[platform.Deployment]{
	name: "Deployment", from: `deployments t` + inApp, space: `a.space_guid`, org: `s.org_guid`,
	columns: `t.guid, t.app_guid, t.strategy, t.status_value, t.status_reason, t.max_in_flight, t.steps, t.step, t.scale, t.droplet_guid, t.previous_droplet_guid,
		t.revision_guid, coalesce((select v.version from revisions v where v.guid = t.revision_guid), 0), t.version, t.previous_version, t.ready, ` + failureNow + `,
		t.labels, t.annotations, t.changed_at, t.healthy_at, t.created_at, t.updated_at`,
	into: func(d *platform.Deployment) []any {
		return []any{&d.GUID, &d.AppGUID, &d.Strategy, &d.Value, &d.Reason, &d.MaxInFlight, &d.Steps, &d.Step, &d.Scale, &d.Droplet, &d.PreviousDroplet,
			&d.RevisionGUID, &d.RevisionVersion, &d.Version, &d.PreviousVersion, &d.Ready, &d.Error,
			&d.Metadata.Labels, &d.Metadata.Annotations, &d.ChangedAt, &d.HealthyAt, &d.CreatedAt, &d.UpdatedAt}
	},
	filters: map[string]string{"app_guids": `t.app_guid`, "states": `t.status_reason`, "status_values": `t.status_value`, "status_reasons": `t.status_reason`},
	labels:  `t.labels`,
}

// Deployments lists deployments.
func (s *Store) Deployments(ctx context.Context, who platform.Who, l platform.List) (platform.Page[platform.Deployment], error) {
	return deployments.list(ctx, s.pool, who, l)
}

// Deployment reads one deployment.
func (s *Store) Deployment(ctx context.Context, who platform.Who, guid string) (platform.Deployment, error) {
	return deployments.find(ctx, s.pool, who, platform.Read, guid)
}

// shape is what of an app a deployment may change, beside its droplet.
type shape struct {
	Setup platform.Setup
	Scale platform.ProcessScale // of the web process; nothing without one
}

// beforehand is what a cancel needs to know: how an app was, and what the deployment has made of it.
type beforehand struct {
	Was, Made *shape `json:",omitempty"`
}

// without is a shape that is no longer as a deployment has made it. What people have changed since stays.
func (s shape) without(b beforehand) shape {
	if b.Was == nil || b.Made == nil {
		return s
	}
	return shape{Setup: s.Setup.Undo(b.Made.Setup, b.Was.Setup), Scale: s.Scale.Undo(b.Made.Scale, b.Was.Scale)}
}

// shapeOf is the shape of a locked app.
func shapeOf(ctx context.Context, tx pgx.Tx, a platform.App) (*shape, error) {
	procs, err := processesOf(ctx, tx, a.GUID)
	if err != nil {
		return nil, err
	}
	beside, err := sidecarsOf(ctx, tx, a.GUID)
	if err != nil {
		return nil, err
	}
	now := shape{Setup: platform.SetupOf(a, procs, beside)}
	for _, p := range procs {
		if p.Type == platform.WebProcess {
			now.Scale = platform.ProcessScale{Instances: &p.Instances, MemoryMB: &p.MemoryMB, DiskMB: &p.DiskMB, LogRateBytes: &p.LogRateBytes}
		}
	}
	return &now, nil
}

// A failure is a deployment under way that has brought no ready instance yet: it is nothing to come back to.
type failure struct {
	platform.Deployment
	before beforehand
}

// failing is the deployment of a locked app that is such a failure, or nil. One that is being canceled has already given back what it had changed.
func (s *Store) failing(ctx context.Context, tx pgx.Tx, app string) (*failure, error) {
	d, err := deployments.collect(ctx, tx, `select `+deployments.columns+` from `+deployments.from+` where t.app_guid = $1 and t.status_value = $2 and t.status_reason <> $3
		and t.healthy_at = t.created_at`, []any{app, platform.DeploymentActive, platform.Canceling})
	if pg.NoRows(err) {
		return nil, nil //nolint:nilnil // there may be none
	}
	if err != nil {
		return nil, fmt.Errorf("find deployment: %w", err)
	}
	before, err := s.readBefore(ctx, tx, d.GUID)
	return &failure{d, before}, err
}

func (s *Store) readBefore(ctx context.Context, tx pgx.Tx, guid string) (before beforehand, err error) {
	var sealed []byte
	if err := tx.QueryRow(ctx, `select before from deployments where guid = $1`, guid).Scan(&sealed); err != nil {
		return before, fmt.Errorf("read deployment: %w", err)
	}
	err = s.open(sealed, "deployment "+guid, &before)
	return before, err
}

// CreateDeployment gives an app a new release of each process, which takes the place of what runs step by step: of a droplet, of a
// revision, or of the app as it is. A deployment that was under way is superseded; if it has brought nothing that works, what was before it
// is also what was before this one. A stopped app is merely started.
func (s *Store) CreateDeployment(ctx context.Context, who platform.Who, d platform.Deployment, set Settings) (platform.Deployment, error) {
	if err := d.Begin(); err != nil {
		return d, err
	}
	do := platform.Support
	if d.Droplet != "" || d.RevisionGUID != "" {
		do = platform.Develop
	}
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Deployment, error) {
		if _, err := apps.named(ctx, tx, who, do, d.AppGUID); err != nil {
			return d, err
		}
		running, before := false, beforehand{}
		var back *platform.Revision
		var failed *failure
		a, err := s.changeApp(ctx, tx, who, do, d.AppGUID, func(a *platform.App) (err error) {
			running, d.PreviousDroplet = a.State == platform.Started, a.Droplet
			if failed, err = s.failing(ctx, tx, a.GUID); err != nil {
				return err
			}
			if failed != nil && a.Droplet == failed.Droplet {
				d.PreviousDroplet = failed.PreviousDroplet
			}
			if back, before, err = s.prepare(ctx, tx, who, a, d, failed); err != nil {
				return err
			}
			if a.Droplet == "" {
				return platform.ErrNoDroplet
			}
			a.Releases++
			return a.Start()
		})
		if err != nil {
			return d, err
		}
		if d.PreviousVersion, err = s.makeWay(ctx, tx, a.GUID, running); err != nil {
			return d, err
		}
		if failed != nil {
			d.PreviousVersion = failed.PreviousVersion
		}
		if err := s.release(ctx, tx, a, set); err != nil {
			return d, err
		}
		rev, err := s.revise(ctx, tx, who, a, back)
		if err != nil {
			return d, err
		}
		d.Droplet, d.Version, d.RevisionGUID = a.Droplet, a.Releases, rev.GUID
		if !running {
			d.End(platform.Deployed)
		}
		if d.GUID, err = s.insertDeployment(ctx, tx, d, before); err != nil {
			return d, err
		}
		if err := s.recordDeployment(ctx, tx, who, "create", a, d); err != nil {
			return d, err
		}
		return deployments.read(ctx, tx, d.GUID)
	})
}

// prepare makes an app what is to be deployed, and remembers what it was before that, and before what has failed.
func (s *Store) prepare(ctx context.Context, tx pgx.Tx, who platform.Who, a *platform.App, d platform.Deployment, failed *failure) (back *platform.Revision, before beforehand, err error) {
	if before.Was, err = shapeOf(ctx, tx, *a); err != nil {
		return nil, before, err
	}
	if failed != nil {
		was := before.Was.without(failed.before)
		before.Was = &was
	}
	switch {
	case d.RevisionGUID != "":
		r, err := s.goBack(ctx, tx, who, a, d.RevisionGUID)
		if err != nil {
			return nil, before, err
		}
		back = &r
	case d.Droplet != "":
		if err := takeDroplet(ctx, tx, who, a, d.Droplet); err != nil {
			return nil, before, err
		}
	}
	if d.Scale != (platform.ProcessScale{}) {
		if err := scaleWeb(ctx, tx, a.GUID, d.Scale); err != nil {
			return nil, before, err
		}
	}
	before.Made, err = shapeOf(ctx, tx, *a)
	return back, before, err
}

// scaleWeb changes the size of an app's web process. The app is locked.
func scaleWeb(ctx context.Context, tx pgx.Tx, app string, scale platform.ProcessScale) error {
	guid, err := processGUID(ctx, tx, app, platform.WebProcess)
	if err != nil {
		return err
	}
	p, err := processes.read(ctx, tx, guid)
	if err != nil {
		return err
	}
	if err := p.Scale(scale); err != nil {
		return err
	}
	if err := saveProcess(ctx, tx, p); err != nil {
		return err
	}
	return checkSidecars(ctx, tx, app)
}

// makeWay ends what was under way and lets what runs drain, so that a new release can take its place. It tells the version that runs.
func (s *Store) makeWay(ctx context.Context, tx pgx.Tx, app string, running bool) (version int, err error) {
	if !running {
		return 0, endDeployment(ctx, tx, app, platform.Superseded)
	}
	if err := finalize(ctx, tx, app, platform.Superseded); err != nil {
		return 0, err
	}
	if err := drain(ctx, tx, app); err != nil {
		return 0, err
	}
	err = tx.QueryRow(ctx, `select coalesce(max(r.version), 0) from processes p join releases r on r.guid = p.release_guid where p.app_guid = $1`, app).Scan(&version)
	if err != nil {
		return 0, fmt.Errorf("read version: %w", err)
	}
	return version, nil
}

// drain lets what an app's processes run give way to what they are given next.
func drain(ctx context.Context, tx pgx.Tx, app string) error {
	_, err := tx.Exec(ctx, `insert into draining (process_guid, release_guid) select p.guid, r.guid from processes p join releases r on r.guid = p.release_guid
		where p.app_guid = $1 on conflict do nothing`, app)
	if err != nil {
		return fmt.Errorf("drain releases: %w", err)
	}
	return nil
}

// endDeployment ends what is under way at once: what drains is forgotten, and so goes.
func endDeployment(ctx context.Context, tx pgx.Tx, app string, reason platform.DeploymentReason) error {
	if err := finalize(ctx, tx, app, reason); err != nil {
		return err
	}
	return drained(ctx, tx, app)
}

// finalize ends the deployment that is under way, if there is one. One that was being canceled is canceled.
func finalize(ctx context.Context, tx pgx.Tx, app string, reason platform.DeploymentReason) error {
	_, err := tx.Exec(ctx, `update deployments set status_value = $3, status_reason = case when status_reason = $4 then $5 else $2 end, changed_at = now(), updated_at = now()
		where app_guid = $1 and status_value = $6`, app, reason, platform.DeploymentFinalized, platform.Canceling, platform.Canceled, platform.DeploymentActive)
	if err != nil {
		return fmt.Errorf("end deployment: %w", err)
	}
	return nil
}

func drained(ctx context.Context, tx pgx.Tx, app string) error {
	if _, err := tx.Exec(ctx, `delete from draining d using processes p where p.guid = d.process_guid and p.app_guid = $1`, app); err != nil {
		return fmt.Errorf("forget draining: %w", err)
	}
	return nil
}

func (s *Store) insertDeployment(ctx context.Context, tx pgx.Tx, d platform.Deployment, before beforehand) (string, error) {
	d.GUID = platform.NewGUID()
	sealed, err := s.seal(before, "deployment "+d.GUID)
	if err != nil {
		return "", err
	}
	_, err = tx.Exec(ctx, `insert into deployments (guid, app_guid, strategy, status_value, status_reason, max_in_flight, steps, step, scale, droplet_guid, previous_droplet_guid, revision_guid,
			version, previous_version, before, labels, annotations)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`,
		d.GUID, d.AppGUID, d.Strategy, d.Value, d.Reason, d.MaxInFlight, none(d.Steps), d.Step, d.Scale, d.Droplet, d.PreviousDroplet, d.RevisionGUID,
		d.Version, d.PreviousVersion, sealed, none2(d.Metadata.Labels), none2(d.Metadata.Annotations))
	if err != nil {
		return "", fmt.Errorf("write deployment: %w", err)
	}
	if _, err := tx.Exec(ctx, `delete from deployments where app_guid = $1 and status_value = $2 and version <= $3`, d.AppGUID, platform.DeploymentFinalized, d.Version-keptDeployments); err != nil {
		return "", fmt.Errorf("forget deployments: %w", err)
	}
	return d.GUID, nil
}

func (s *Store) recordDeployment(ctx context.Context, tx pgx.Tx, who platform.Who, what string, a platform.App, d platform.Deployment) error {
	return s.recordApp(ctx, tx, who, "deployment."+what, a, map[string]any{"deployment_guid": d.GUID, "droplet_guid": d.Droplet, "strategy": d.Strategy})
}

// UpdateDeployment changes what is noted on a deployment.
func (s *Store) UpdateDeployment(ctx context.Context, who platform.Who, guid string, change platform.MetadataChange) (platform.Deployment, error) {
	return s.changeDeployment(ctx, who, guid, func(_ pgx.Tx, _ platform.App, d *platform.Deployment) error {
		d.Metadata.Apply(change)
		return d.Metadata.Check()
	})
}

// ContinueDeployment lets a canary go on after a pause.
func (s *Store) ContinueDeployment(ctx context.Context, who platform.Who, guid string) (platform.Deployment, error) {
	return s.changeDeployment(ctx, who, guid, func(tx pgx.Tx, a platform.App, d *platform.Deployment) error {
		if err := d.Continue(); err != nil {
			return err
		}
		return s.recordDeployment(ctx, tx, who, "continue", a, *d)
	})
}

// CancelDeployment makes what ran before a deployment what is to run, and what it has brought so far give way.
func (s *Store) CancelDeployment(ctx context.Context, who platform.Who, guid string) (platform.Deployment, error) {
	return s.changeDeployment(ctx, who, guid, func(tx pgx.Tx, a platform.App, d *platform.Deployment) error {
		if d.Reason == platform.Canceling {
			return nil
		}
		if err := d.Cancel(); err != nil {
			return err
		}
		if err := turnBack(ctx, tx, *d); err != nil {
			return err
		}
		if err := s.giveBack(ctx, tx, a, *d); err != nil {
			return err
		}
		return s.recordDeployment(ctx, tx, who, "cancel", a, *d)
	})
}

// changeDeployment locks an app and then its deployment, lets that be changed and writes it.
func (s *Store) changeDeployment(ctx context.Context, who platform.Who, guid string, change func(pgx.Tx, platform.App, *platform.Deployment) error) (platform.Deployment, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Deployment, error) {
		d, err := deployments.find(ctx, tx, who, platform.Support, guid)
		if err != nil {
			return d, err
		}
		a, err := apps.lock(ctx, tx, who, platform.Support, d.AppGUID)
		if err != nil {
			return d, err
		}
		if d, err = deployments.lock(ctx, tx, who, platform.Support, guid); err != nil {
			return d, err
		}
		if err := change(tx, a, &d); err != nil {
			return d, err
		}
		_, err = tx.Exec(ctx, `update deployments set status_reason = $2, step = $3, labels = $4, annotations = $5, updated_at = now(),
			ready = case when $2 = $6 and status_reason <> $6 then 0 else ready end, changed_at = case when status_reason = $2 then changed_at else now() end where guid = $1`,
			guid, d.Reason, d.Step, none2(d.Metadata.Labels), none2(d.Metadata.Annotations), platform.Canceling)
		if err != nil {
			return d, fmt.Errorf("save deployment: %w", err)
		}
		return deployments.read(ctx, tx, guid)
	})
}

// turnBack gives the processes of an app the releases that they had before a deployment.
func turnBack(ctx context.Context, tx pgx.Tx, d platform.Deployment) error {
	if err := drain(ctx, tx, d.AppGUID); err != nil {
		return err
	}
	for _, statement := range []string{
		`update processes p set release_guid = (select r.guid from releases r where r.process_guid = p.guid and r.version = $2) where p.app_guid = $1`,
		`delete from draining d using processes p where p.guid = d.process_guid and p.release_guid = d.release_guid and p.app_guid = $1 and $2::int is not null`,
	} {
		if _, err := tx.Exec(ctx, statement, d.AppGUID, d.PreviousVersion); err != nil {
			return fmt.Errorf("turn back: %w", err)
		}
	}
	return nil
}

// giveBack makes an app what it was before a deployment, as far as that has changed it and nobody has since.
func (s *Store) giveBack(ctx context.Context, tx pgx.Tx, a platform.App, d platform.Deployment) error {
	before, err := s.readBefore(ctx, tx, d.GUID)
	if err != nil {
		return err
	}
	if err := s.readEnv(ctx, tx, &a); err != nil {
		return err
	}
	if a.Droplet == d.Droplet {
		if err := tx.QueryRow(ctx, `select coalesce((select guid from droplets where guid = $1), $2)`, d.PreviousDroplet, a.Droplet).Scan(&a.Droplet); err != nil {
			return fmt.Errorf("read droplet: %w", err)
		}
	}
	now, err := shapeOf(ctx, tx, a)
	if err != nil {
		return err
	}
	was := now.without(before)
	if was.Scale != (platform.ProcessScale{}) {
		if err := ifAllowed(ctx, tx, func(tx pgx.Tx) error { return scaleWeb(ctx, tx, a.GUID, was.Scale) }); err != nil {
			return err
		}
	}
	changed := a
	if err := ifAllowed(ctx, tx, func(tx pgx.Tx) error {
		err := applySetup(ctx, tx, &changed, was.Setup)
		if err == nil {
			a.Env = changed.Env
		}
		return err
	}); err != nil {
		return err
	}
	return s.saveApp(ctx, tx, a)
}

// ifAllowed does something unless it breaks a rule, because the app has been changed meanwhile: then it is left. A cancel is never refused.
func ifAllowed(ctx context.Context, tx pgx.Tx, do func(pgx.Tx) error) error {
	err := pgx.BeginFunc(ctx, tx, do)
	if fault.Is(err, fault.KindUnprocessable) {
		return nil
	}
	return err
}

// AdvanceDeployment writes how far a deployment has come, unless somebody has changed it since it was looked at.
func (s *Store) AdvanceDeployment(ctx context.Context, p platform.Progress) error {
	was, now := p.Deployment, p.Deployment
	if p.Reached {
		now.Reach()
	}
	if now.Reason == was.Reason && p.Ready == was.Ready {
		return nil
	}
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `update deployments set status_value = $4, status_reason = $5, ready = $6, updated_at = now(),
				changed_at = case when status_reason = $5 then changed_at else now() end, healthy_at = case when ready < $6 then now() else healthy_at end
			where guid = $1 and status_value = $7 and status_reason = $2 and step = $3`, was.GUID, was.Reason, was.Step, now.Value, now.Reason, p.Ready, platform.DeploymentActive)
		if err != nil {
			return fmt.Errorf("advance deployment: %w", err)
		}
		if tag.RowsAffected() == 0 || now.Value == platform.DeploymentActive {
			return nil
		}
		return drained(ctx, tx, was.AppGUID)
	})
}
