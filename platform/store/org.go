package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

var orgs = noun[platform.Org]{
	name: "Organization", from: `orgs t`, org: `t.guid`,
	columns: `t.guid, t.name, t.suspended, t.labels, t.annotations, t.created_at, t.updated_at`,
	into: func(o *platform.Org) []any {
		return []any{&o.GUID, &o.Name, &o.Suspended, &o.Metadata.Labels, &o.Metadata.Annotations, &o.CreatedAt, &o.UpdatedAt}
	},
	filters: map[string]string{"names": `t.name`, "organization_guids": `t.guid`}, order: map[string]string{"name": `t.name`}, labels: `t.labels`,
}

func orgTarget(o platform.Org) platform.Actor {
	return platform.Actor{GUID: o.GUID, Type: "organization", Name: o.Name}
}

// Orgs lists organizations.
func (s *Store) Orgs(ctx context.Context, who platform.Who, l platform.List) (platform.Page[platform.Org], error) {
	return orgs.list(ctx, s.pool, who, l)
}

// Org reads one organization.
func (s *Store) Org(ctx context.Context, who platform.Who, guid string) (platform.Org, error) {
	return orgs.find(ctx, s.pool, who, platform.Read, guid)
}

// OrgUsage counts what an organization uses: of its apps what those that are started ask for.
func (s *Store) OrgUsage(ctx context.Context, who platform.Who, guid string) (platform.OrgUsage, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.OrgUsage, error) {
		var u platform.OrgUsage
		if _, err := orgs.find(ctx, tx, who, platform.Read, guid); err != nil {
			return u, err
		}
		err := tx.QueryRow(ctx, `with s as (select guid from spaces where org_guid = $1),
			p as (select coalesce(sum(p.instances), 0) as instances, coalesce(sum(p.instances::bigint * p.memory_mb), 0) as memory
				from processes p join apps a on a.guid = p.app_guid where a.state = $2 and a.space_guid in (select guid from s))
			select p.instances, p.memory, (select count(*) from routes where space_guid in (select guid from s)), (select count(*) from domains where org_guid = $1),
				(select count(*) from service_instances where space_guid in (select guid from s)), (select count(*) from service_bindings where type = 'key' and space_guid in (select guid from s)) from p`,
			guid, platform.Started).Scan(&u.Instances, &u.MemoryMB, &u.Routes, &u.Domains, &u.ServiceInstances, &u.ServiceKeys)
		if err != nil {
			return u, fmt.Errorf("count usage: %w", err)
		}
		return u, nil
	})
}

// CreateOrg adds an organization. Whoever is not an administrator needs the flag for it, and becomes its manager.
func (s *Store) CreateOrg(ctx context.Context, who platform.Who, o platform.Org) (platform.Org, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Org, error) {
		admin := who.Everywhere(platform.Administer)
		if flag, err := findFlag(ctx, tx, platform.FlagUserOrgCreation); err != nil {
			return o, err
		} else if !admin && (!flag.Enabled || o.Suspended) {
			return o, platform.ErrForbidden
		}
		if err := o.Check(); err != nil {
			return o, err
		}
		o, err := insertOrg(ctx, tx, o)
		if err != nil {
			return o, err
		}
		if err := record(ctx, tx, who, platform.On("audit.organization.create", orgTarget(o), o.GUID, "")); err != nil || admin {
			return o, err
		}
		if err := keepUser(ctx, tx, who.User()); err != nil {
			return o, err
		}
		for _, t := range []platform.RoleType{platform.OrgUser, platform.OrgManager} {
			if _, err := insertRole(ctx, tx, platform.Role{Type: t, UserGUID: who.GUID, OrgGUID: o.GUID}); err != nil {
				return o, err
			}
		}
		return o, nil
	})
}

func insertOrg(ctx context.Context, tx pgx.Tx, o platform.Org) (platform.Org, error) {
	o.GUID = platform.NewGUID()
	_, err := tx.Exec(ctx, `insert into orgs (guid, name, suspended, labels, annotations) values ($1, $2, $3, $4, $5)`,
		o.GUID, o.Name, o.Suspended, o.Metadata.Labels, o.Metadata.Annotations)
	if err != nil {
		return o, orgConflict(err, o)
	}
	return orgs.read(ctx, tx, o.GUID)
}

func orgConflict(err error, o platform.Org) error {
	if name, ok := pg.Conflict(err); ok && name == "org_name" {
		return platform.ErrOrgExists(o.Name)
	}
	return fmt.Errorf("write organization: %w", err)
}

// UpdateOrg changes an organization under its lock. Only administrators suspend.
func (s *Store) UpdateOrg(ctx context.Context, who platform.Who, guid string, change func(*platform.Org) error) (platform.Org, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Org, error) {
		o, err := orgs.lock(ctx, tx, who, platform.ManageOrg, guid)
		if err != nil {
			return o, err
		}
		suspended := o.Suspended
		if err := change(&o); err != nil {
			return o, err
		}
		if o.Suspended != suspended {
			if err := who.MayAdminister(); err != nil {
				return o, err
			}
		}
		if err := o.Check(); err != nil {
			return o, err
		}
		_, err = tx.Exec(ctx, `update orgs set name = $2, suspended = $3, labels = $4, annotations = $5, updated_at = now() where guid = $1`,
			guid, o.Name, o.Suspended, o.Metadata.Labels, o.Metadata.Annotations)
		if err != nil {
			return o, orgConflict(err, o)
		}
		if err := record(ctx, tx, who, platform.On("audit.organization.update", orgTarget(o), o.GUID, "")); err != nil {
			return o, err
		}
		return orgs.read(ctx, tx, guid)
	})
}

// DeleteOrg removes an organization with all that is in it.
func (s *Store) DeleteOrg(ctx context.Context, who platform.Who, guid string) (platform.Job, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Job, error) {
		o, err := orgs.lock(ctx, tx, who, platform.Administer, guid)
		if err != nil {
			return platform.Job{}, err
		}
		if _, err := tx.Exec(ctx, `delete from orgs where guid = $1`, guid); err != nil {
			return platform.Job{}, fmt.Errorf("delete organization: %w", err)
		}
		if err := record(ctx, tx, who, platform.On("audit.organization.delete-request", orgTarget(o), o.GUID, "")); err != nil {
			return platform.Job{}, err
		}
		return insertJob(ctx, tx, who, "organization.delete", platform.JobComplete)
	})
}
