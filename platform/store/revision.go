package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

// keptRevisions is how many revisions of an app are remembered.
const keptRevisions = 100

// sealedRevision is a revision as its row has it.
type sealedRevision struct {
	platform.Revision
	body []byte
}

var revisions = noun[sealedRevision]{
	name: "Revision", from: `revisions t` + inApp, space: `a.space_guid`, org: `s.org_guid`,
	columns: `t.guid, t.app_guid, t.version, t.droplet_guid, t.description, ` + deployable + `, t.body, t.labels, t.annotations, t.created_at, t.updated_at`,
	into: func(r *sealedRevision) []any {
		return []any{&r.GUID, &r.AppGUID, &r.Version, &r.Droplet, &r.Description, &r.Deployable, &r.body, &r.Metadata.Labels, &r.Metadata.Annotations, &r.CreatedAt, &r.UpdatedAt}
	},
	filters: map[string]string{"app_guids": `t.app_guid`, "versions": `t.version::text`, "deployable": deployable + `::text`},
	holding: map[string]string{"deployed": `select r.revision_guid from releases r join apps x on x.guid = r.app_guid and x.state = 'STARTED' where r.app_guid = any(%s)
		and (exists (select from processes p where p.guid = r.process_guid and p.release_guid = r.guid) or exists (select from draining d where d.process_guid = r.process_guid and d.release_guid = r.guid))`},
	labels: `t.labels`,
}

const deployable = `exists (select from droplets d where d.guid = t.droplet_guid and d.state = 'STAGED')`

// opened is a revision with what its row seals.
func (s *Store) opened(r sealedRevision) (platform.Revision, error) {
	err := s.open(r.body, "revision "+r.GUID, &r.Setup)
	return r.Revision, err
}

// RevisionsOf lists the revisions of an app.
func (s *Store) RevisionsOf(ctx context.Context, who platform.Who, app string, l platform.List) (platform.Page[platform.Revision], error) {
	return s.listRevisions(ctx, who, app, narrowed(l, "app_guids", app))
}

// DeployedRevisions lists those of them that run.
func (s *Store) DeployedRevisions(ctx context.Context, who platform.Who, app string, l platform.List) (platform.Page[platform.Revision], error) {
	return s.listRevisions(ctx, who, app, narrowed(narrowed(l, "app_guids", app), "deployed", app))
}

func (s *Store) listRevisions(ctx context.Context, who platform.Who, app string, l platform.List) (platform.Page[platform.Revision], error) {
	var page platform.Page[platform.Revision]
	if _, err := apps.find(ctx, s.pool, who, platform.Read, app); err != nil {
		return page, err
	}
	found, err := revisions.list(ctx, s.pool, who, l)
	if err != nil {
		return page, err
	}
	page.Total, page.Next = found.Total, found.Next
	for _, sealed := range found.Records {
		r, err := s.opened(sealed)
		if err != nil {
			return page, err
		}
		page.Records = append(page.Records, r)
	}
	return page, nil
}

// Revision reads one revision, for somebody who wants to see it or what is secret of it.
func (s *Store) Revision(ctx context.Context, who platform.Who, do platform.Action, guid string) (platform.Revision, error) {
	r, err := revisions.find(ctx, s.pool, who, do, guid)
	if err != nil {
		return r.Revision, err
	}
	return s.opened(r)
}

// UpdateRevision changes what is noted on a revision.
func (s *Store) UpdateRevision(ctx context.Context, who platform.Who, guid string, change platform.MetadataChange) (platform.Revision, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Revision, error) {
		r, err := revisions.lock(ctx, tx, who, platform.Develop, guid)
		if err != nil {
			return r.Revision, err
		}
		r.Metadata.Apply(change)
		if err := r.Metadata.Check(); err != nil {
			return r.Revision, err
		}
		if _, err := tx.Exec(ctx, `update revisions set labels = $2, annotations = $3, updated_at = now() where guid = $1`, guid, r.Metadata.Labels, r.Metadata.Annotations); err != nil {
			return r.Revision, fmt.Errorf("save revision: %w", err)
		}
		if r, err = revisions.read(ctx, tx, guid); err != nil {
			return r.Revision, err
		}
		return s.opened(r)
	})
}

// revise notes the release that an app has just been given as one of a revision: the last one, or a new one if anything has changed
// since, or if the app goes back to an earlier one. The app is locked.
func (s *Store) revise(ctx context.Context, tx pgx.Tx, who platform.Who, a platform.App, back *platform.Revision) (platform.Revision, error) {
	r, err := revisionNow(ctx, tx, a)
	if err != nil {
		return r, err
	}
	last, err := s.lastRevision(ctx, tx, a.GUID)
	if err != nil {
		return r, err
	}
	r.Version, r.Description = 1, r.Changes(last)
	if last != nil {
		r.Version = last.Version + 1
	}
	switch {
	case back != nil:
		r.Description = joined(r.Description, fmt.Sprintf("Rolled back to revision %d.", back.Version))
	case r.Description == "":
		r = *last
	}
	if last == nil || r.GUID != last.GUID {
		if r, err = s.insertRevision(ctx, tx, who, a, r); err != nil {
			return r, err
		}
	}
	if _, err := tx.Exec(ctx, `update releases set revision_guid = $3 where app_guid = $1 and version = $2`, a.GUID, a.Releases, r.GUID); err != nil {
		return r, fmt.Errorf("note revision: %w", err)
	}
	return r, nil
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + " " + b
}

// revisionNow is what an app would be remembered as.
func revisionNow(ctx context.Context, tx pgx.Tx, a platform.App) (platform.Revision, error) {
	r := platform.Revision{AppGUID: a.GUID, Droplet: a.Droplet}
	procs, err := processesOf(ctx, tx, a.GUID)
	if err != nil {
		return r, err
	}
	beside, err := sidecarsOf(ctx, tx, a.GUID)
	if err != nil {
		return r, err
	}
	r.Setup = platform.SetupOf(a, procs, beside)
	return r, nil
}

func (s *Store) lastRevision(ctx context.Context, tx pgx.Tx, app string) (*platform.Revision, error) {
	return s.oneRevision(ctx, tx, `t.app_guid = $1 order by t.version desc limit 1`, app)
}

// deployedRevision is what an app runs; none if it is stopped.
func (s *Store) deployedRevision(ctx context.Context, tx pgx.Tx, app string) (*platform.Revision, error) {
	return s.oneRevision(ctx, tx, `a.guid = $1 and a.state = 'STARTED' and t.guid = (select r.revision_guid from processes p join releases r on r.guid = p.release_guid where p.guid = a.guid)`, app)
}

func (s *Store) oneRevision(ctx context.Context, tx pgx.Tx, where, app string) (*platform.Revision, error) {
	found, err := revisions.collect(ctx, tx, `select `+revisions.columns+` from `+revisions.from+` where `+where, []any{app})
	if pg.NoRows(err) {
		return nil, nil //nolint:nilnil // there may be none
	}
	if err != nil {
		return nil, fmt.Errorf("find revision: %w", err)
	}
	r, err := s.opened(found)
	return &r, err
}

func (s *Store) insertRevision(ctx context.Context, tx pgx.Tx, who platform.Who, a platform.App, r platform.Revision) (platform.Revision, error) {
	r.GUID = platform.NewGUID()
	body, err := s.seal(r.Setup, "revision "+r.GUID)
	if err != nil {
		return r, err
	}
	if _, err := tx.Exec(ctx, `insert into revisions (guid, app_guid, version, droplet_guid, description, body) values ($1, $2, $3, $4, $5, $6)`,
		r.GUID, r.AppGUID, r.Version, r.Droplet, r.Description, body); err != nil {
		return r, fmt.Errorf("write revision: %w", err)
	}
	if _, err := tx.Exec(ctx, `delete from revisions where app_guid = $1 and version <= $2`, r.AppGUID, r.Version-keptRevisions); err != nil {
		return r, fmt.Errorf("forget revisions: %w", err)
	}
	return r, s.recordApp(ctx, tx, who, "revision.create", a, map[string]any{"revision_guid": r.GUID, "revision_version": r.Version, "droplet_guid": r.Droplet})
}

// goBack makes an app what it was in a revision. It is locked, and still to be saved.
func (s *Store) goBack(ctx context.Context, tx pgx.Tx, who platform.Who, a *platform.App, guid string) (platform.Revision, error) {
	sealed, err := revisions.find(ctx, tx, who, platform.Develop, guid)
	if fault.Is(err, fault.KindNotFound) || err == nil && sealed.AppGUID != a.GUID {
		return sealed.Revision, platform.ErrNoRevision
	}
	if err != nil {
		return sealed.Revision, err
	}
	r, err := s.opened(sealed)
	switch {
	case err != nil:
		return r, err
	case !r.Deployable:
		return r, platform.ErrNotDeployable
	}
	a.Droplet = r.Droplet
	if err := applySetup(ctx, tx, a, r.Setup); err != nil {
		return r, err
	}
	now, err := revisionNow(ctx, tx, *a)
	if err != nil {
		return r, err
	}
	deployed, err := s.deployedRevision(ctx, tx, a.GUID)
	if err == nil && deployed != nil && now.Changes(deployed) == "" {
		err = platform.ErrSameRevision
	}
	return r, err
}

// applySetup gives an app the environment, commands and sidecars of a setup. Processes that it does not know stay as they are.
func applySetup(ctx context.Context, tx pgx.Tx, a *platform.App, setup platform.Setup) error {
	a.Env = setup.Env
	for kind, command := range setup.Commands {
		if err := ensureProcess(ctx, tx, a.GUID, kind); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `update processes set command = $3, updated_at = now() where app_guid = $1 and type = $2 and command is distinct from $3`, a.GUID, kind, command); err != nil {
			return fmt.Errorf("save command: %w", err)
		}
	}
	there, err := sidecarsOf(ctx, tx, a.GUID)
	if err != nil {
		return err
	}
	known := map[string]string{}
	for _, c := range there {
		known[c.Name] = c.GUID
	}
	keep := []string{}
	for _, c := range setup.Sidecars {
		if c.AppGUID, c.GUID = a.GUID, known[c.Name]; c.GUID == "" {
			c.GUID = platform.NewGUID()
		}
		keep = append(keep, c.GUID)
		if err := writeSidecar(ctx, tx, c); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, `delete from sidecars where app_guid = $1 and not guid = any($2)`, a.GUID, keep); err != nil {
		return fmt.Errorf("delete sidecars: %w", err)
	}
	return checkSidecars(ctx, tx, a.GUID)
}
