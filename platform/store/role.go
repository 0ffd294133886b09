package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

var roles = noun[platform.Role]{
	name: "Role", from: `roles t`, space: `t.space_guid`, org: `t.org_guid`,
	columns: `t.guid, t.type, t.user_guid, t.org_guid, coalesce(t.space_guid, ''), t.created_at, t.updated_at`,
	into: func(r *platform.Role) []any {
		return []any{&r.GUID, &r.Type, &r.UserGUID, &r.OrgGUID, &r.SpaceGUID, &r.CreatedAt, &r.UpdatedAt}
	},
	filters: map[string]string{"types": `t.type`, "user_guids": `t.user_guid`, "space_guids": `t.space_guid`,
		"organization_guids": `case when t.space_guid is null then t.org_guid end`}, // roles in its spaces are not the organization's
}

// Roles lists roles.
func (s *Store) Roles(ctx context.Context, who platform.Who, l platform.List) (platform.Page[platform.Role], error) {
	return roles.list(ctx, s.pool, who, l)
}

// Role reads one role.
func (s *Store) Role(ctx context.Context, who platform.Who, guid string) (platform.Role, error) {
	return roles.find(ctx, s.pool, who, platform.Read, guid)
}

// manages is what one must be allowed to give or take a role.
func manages(t platform.RoleType) platform.Action {
	if t.InSpace() {
		return platform.ManageSpace
	}
	return platform.ManageOrg
}

// CreateRole gives somebody, who is known to the authorization server, a role.
func (s *Store) CreateRole(ctx context.Context, who platform.Who, r platform.Role, user platform.User) (platform.Role, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Role, error) {
		if err := r.Check(); err != nil {
			return r, err
		}
		place, err := rolePlace(ctx, tx, who, &r)
		if err != nil {
			return r, err
		}
		if err := keepUser(ctx, tx, user); err != nil {
			return r, err
		}
		r.UserGUID = user.GUID
		if r.Type.InSpace() {
			if err := inOrg(ctx, tx, r); err != nil {
				return r, err
			}
		}
		r, err := insertRole(ctx, tx, r)
		switch name, _ := pg.Conflict(err); {
		case name == "role_held":
			return r, platform.ErrRoleExists(user, r, place)
		case err != nil:
			return r, err
		}
		return r, record(ctx, tx, who, roleEvent(r, user, "add"))
	})
}

// MayGive tells whether somebody may give a role, before its holder is looked up elsewhere.
func (s *Store) MayGive(ctx context.Context, who platform.Who, r platform.Role) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		_, err := rolePlace(ctx, tx, who, &r)
		return err
	})
}

// rolePlace finds where a role is to be given, and fills in the organization of a space. It answers with the name of the place.
func rolePlace(ctx context.Context, tx pgx.Tx, who platform.Who, r *platform.Role) (string, error) {
	if !r.Type.InSpace() {
		o, err := orgs.named(ctx, tx, who, platform.ManageOrg, r.OrgGUID)
		return o.Name, err
	}
	sp, err := spaces.named(ctx, tx, who, platform.ManageSpace, r.SpaceGUID)
	r.OrgGUID = sp.OrgGUID
	return sp.Name, err
}

// inOrg refuses a role in a space to whoever has none in its organization, and keeps that from being taken away meanwhile.
func inOrg(ctx context.Context, tx pgx.Tx, r platform.Role) error {
	tag, err := tx.Exec(ctx, `select from roles where user_guid = $1 and org_guid = $2 and space_guid is null for share`, r.UserGUID, r.OrgGUID)
	if err != nil {
		return fmt.Errorf("look for a role in the organization: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return platform.ErrNotInOrg
	}
	return nil
}

func insertRole(ctx context.Context, tx pgx.Tx, r platform.Role) (platform.Role, error) {
	r.GUID = platform.NewGUID()
	_, err := tx.Exec(ctx, `insert into roles (guid, type, user_guid, org_guid, space_guid) values ($1, $2, $3, $4, nullif($5, ''))`,
		r.GUID, r.Type, r.UserGUID, r.OrgGUID, r.SpaceGUID)
	if err != nil {
		return r, fmt.Errorf("write role: %w", err)
	}
	return roles.read(ctx, tx, r.GUID)
}

func roleEvent(r platform.Role, user platform.User, what string) platform.Event {
	return platform.On("audit.user."+string(r.Type)+"_"+what, userTarget(user), r.OrgGUID, r.SpaceGUID)
}

// DeleteRole takes a role away. Whoever still has roles in spaces keeps the last one in the organization.
func (s *Store) DeleteRole(ctx context.Context, who platform.Who, guid string) (platform.Job, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Job, error) {
		var none platform.Job
		r, err := roles.find(ctx, tx, who, platform.Read, guid)
		if err != nil {
			return none, err
		}
		if r, err = roles.lock(ctx, tx, who, manages(r.Type), guid); err != nil {
			return none, err
		}
		user, err := users.read(ctx, tx, r.UserGUID)
		if err != nil {
			return none, err
		}
		if _, err := tx.Exec(ctx, `delete from roles where guid = $1`, guid); err != nil {
			return none, fmt.Errorf("delete role: %w", err)
		}
		if !r.Type.InSpace() {
			if err := noneInSpaces(ctx, tx, r); err != nil {
				return none, err
			}
		}
		if err := record(ctx, tx, who, roleEvent(r, user, "remove")); err != nil {
			return none, err
		}
		return insertJob(ctx, tx, who, "role.delete", platform.JobComplete)
	})
}

// noneInSpaces refuses to leave somebody with roles in spaces and none in their organization.
func noneInSpaces(ctx context.Context, tx pgx.Tx, r platform.Role) error {
	var stranded bool
	err := tx.QueryRow(ctx, `select count(*) filter (where space_guid is null) = 0 and count(*) > 0 from roles where user_guid = $1 and org_guid = $2`,
		r.UserGUID, r.OrgGUID).Scan(&stranded)
	if err != nil {
		return fmt.Errorf("look for roles in spaces: %w", err)
	}
	if stranded {
		return platform.ErrStillInSpaces
	}
	return nil
}
