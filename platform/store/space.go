package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

var spaces = noun[platform.Space]{
	name: "Space", from: `spaces t`, space: `t.guid`, org: `t.org_guid`,
	columns: `t.guid, t.org_guid, t.name, t.cluster_id, t.allow_ssh, t.labels, t.annotations, t.created_at, t.updated_at`,
	into: func(s *platform.Space) []any {
		return []any{&s.GUID, &s.OrgGUID, &s.Name, &s.Cluster, &s.AllowSSH, &s.Metadata.Labels, &s.Metadata.Annotations, &s.CreatedAt, &s.UpdatedAt}
	},
	filters: map[string]string{"names": `t.name`, "organization_guids": `t.org_guid`, "space_guids": `t.guid`},
	order:   map[string]string{"name": `t.name`}, labels: `t.labels`,
}

func spaceTarget(s platform.Space) platform.Actor {
	return platform.Actor{GUID: s.GUID, Type: "space", Name: s.Name}
}

// Spaces lists spaces.
func (s *Store) Spaces(ctx context.Context, who platform.Who, l platform.List) (platform.Page[platform.Space], error) {
	return spaces.list(ctx, s.pool, who, l)
}

// Space reads one space.
func (s *Store) Space(ctx context.Context, who platform.Who, guid string) (platform.Space, error) {
	return spaces.find(ctx, s.pool, who, platform.Read, guid)
}

// CreateSpace adds a space to an organization.
func (s *Store) CreateSpace(ctx context.Context, who platform.Who, sp platform.Space) (platform.Space, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Space, error) {
		if _, err := orgs.named(ctx, tx, who, platform.ManageOrg, sp.OrgGUID); err != nil {
			return sp, err
		}
		if err := sp.Check(); err != nil {
			return sp, err
		}
		sp.GUID = platform.NewGUID()
		_, err := tx.Exec(ctx, `insert into spaces (guid, org_guid, name, cluster_id, labels, annotations)
			select $1, $2, $3, id, $4, $5 from clusters order by (select count(*) from spaces where cluster_id = id), id limit 1`,
			sp.GUID, sp.OrgGUID, sp.Name, sp.Metadata.Labels, sp.Metadata.Annotations)
		if err != nil {
			return sp, spaceConflict(err)
		}
		if err := record(ctx, tx, who, platform.On("audit.space.create", spaceTarget(sp), sp.OrgGUID, sp.GUID)); err != nil {
			return sp, err
		}
		return spaces.read(ctx, tx, sp.GUID)
	})
}

func spaceConflict(err error) error {
	switch name, _ := pg.Conflict(err); name {
	case "space_name":
		return platform.ErrSpaceExists
	case "space_org":
		return invalid("Organization") // it went while we looked
	}
	return fmt.Errorf("write space: %w", err)
}

// UpdateSpace changes a space under its lock.
func (s *Store) UpdateSpace(ctx context.Context, who platform.Who, guid string, change func(*platform.Space) error) (platform.Space, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Space, error) {
		sp, err := spaces.lock(ctx, tx, who, platform.ManageSpace, guid)
		if err != nil {
			return sp, err
		}
		if err := change(&sp); err != nil {
			return sp, err
		}
		if err := sp.Check(); err != nil {
			return sp, err
		}
		_, err = tx.Exec(ctx, `update spaces set name = $2, allow_ssh = $3, labels = $4, annotations = $5, updated_at = now() where guid = $1`,
			guid, sp.Name, sp.AllowSSH, sp.Metadata.Labels, sp.Metadata.Annotations)
		if err != nil {
			return sp, spaceConflict(err)
		}
		if err := record(ctx, tx, who, platform.On("audit.space.update", spaceTarget(sp), sp.OrgGUID, sp.GUID)); err != nil {
			return sp, err
		}
		return spaces.read(ctx, tx, guid)
	})
}

// DeleteSpace removes a space with all that is in it. What its apps run on a cluster is taken down by the cluster's controller, which
// looks for namespaces that no space has: that they have gone here is all it needs to know.
func (s *Store) DeleteSpace(ctx context.Context, who platform.Who, guid string) (platform.Job, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Job, error) {
		sp, err := spaces.lock(ctx, tx, who, platform.ManageOrg, guid)
		if err != nil {
			return platform.Job{}, err
		}
		if _, err := tx.Exec(ctx, `delete from spaces where guid = $1`, guid); err != nil {
			return platform.Job{}, fmt.Errorf("delete space: %w", err)
		}
		if err := record(ctx, tx, who, platform.On("audit.space.delete-request", spaceTarget(sp), sp.OrgGUID, sp.GUID)); err != nil {
			return platform.Job{}, err
		}
		return insertJob(ctx, tx, who, "space.delete", platform.JobComplete)
	})
}
