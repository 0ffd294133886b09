package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
)

const groupColumns = `id, name, description, everyone, version, created_at, modified_at`

func scanGroup(row pgx.CollectableRow) (auth.Group, error) {
	var g auth.Group
	err := row.Scan(&g.ID, &g.Name, &g.Description, &g.Everyone, &g.Version, &g.Created, &g.Modified)
	return g, err
}

var groupAttrs = columns{"id": {sql: "id"}, "displayName": {sql: "name", kind: foldColumn}, "meta.created": {sql: "created_at", kind: timeColumn}, "meta.lastModified": {sql: "modified_at", kind: timeColumn}}

// GroupAttrs are the attributes that a list of groups can be filtered and sorted by.
var GroupAttrs = groupAttrs.names()

func noGroup(id string) error {
	return fault.NotFound("There is no group %q. Look the id up with GET /Groups?filter=displayName eq \"…\".", id).WithCode("scim_resource_not_found")
}

func getGroup(ctx context.Context, tx pgx.Tx, id, lock string) (auth.Group, error) {
	rows, err := tx.Query(ctx, `select `+groupColumns+` from groups where id = $1 `+lock, id)
	if err != nil {
		return auth.Group{}, fmt.Errorf("get group: %w", err)
	}
	g, err := pgx.CollectExactlyOneRow(rows, scanGroup)
	if pg.NoRows(err) {
		return g, noGroup(id)
	}
	return g, err
}

// Group reads one group.
func (s *Store) Group(ctx context.Context, id string) (auth.Group, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (auth.Group, error) { return getGroup(ctx, tx, id, "") })
}

// Groups lists groups, without their members.
func (s *Store) Groups(ctx context.Context, p Page) ([]auth.Group, int, error) {
	return list(ctx, s.pool, listing{table: "groups", columns: groupColumns, attrs: groupAttrs}, p, scanGroup)
}

// Members lists the ids of a group's members after an id, in their order.
func (s *Store) Members(ctx context.Context, group, after string, count int) ([]string, error) {
	rows, err := s.pool.Query(ctx, `select user_id from members where group_id = $1 and user_id > $2 order by user_id limit $3`, group, after, count)
	if err != nil {
		return nil, fmt.Errorf("list members: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// CreateGroup adds a group with its first members.
func (s *Store) CreateGroup(ctx context.Context, who auth.Who, g auth.Group, members []string) (auth.Group, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (auth.Group, error) {
		if err := who.MayGrant(g.Name); err != nil {
			return g, err
		}
		rows, err := tx.Query(ctx, `insert into groups (name, description, everyone) values ($1, $2, $3) returning `+groupColumns, g.Name, g.Description, g.Everyone)
		name := g.Name
		if err == nil {
			g, err = pgx.CollectExactlyOneRow(rows, scanGroup)
		}
		if err != nil {
			return g, takenGroup(err, name)
		}
		if err := addMembers(ctx, tx, g.ID, members); err != nil {
			return g, err
		}
		return g, audit(ctx, tx, who, "group.create", "group", g.ID, map[string]any{"name": g.Name, "members": members})
	})
}

func takenGroup(err error, name string) error {
	if _, taken := pg.Conflict(err); taken {
		return fault.Conflict("A group named %q exists already. Use that one.", name).WithCode("scim_resource_already_exists").Because(err)
	}
	return fmt.Errorf("save group: %w", err)
}

func addMembers(ctx context.Context, tx pgx.Tx, group string, users []string) error {
	if len(users) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `insert into members (group_id, user_id) select $1, unnest($2::text[]) on conflict do nothing`, group, users)
	if _, missing := pg.Conflict(err); missing {
		return fault.Invalid("members: at least one id is not a person's. Only people can be members; check the ids.").WithCode("invalid_scim_resource").Because(err)
	}
	if err != nil {
		return fmt.Errorf("add members: %w", err)
	}
	return nil
}

// UpdateGroup changes a group under its lock. Members, unless nil, replace those it has.
func (s *Store) UpdateGroup(ctx context.Context, who auth.Who, id string, members []string, change func(*auth.Group) error) (auth.Group, error) {
	return s.changeGroup(ctx, who, id, "group.update", func(tx pgx.Tx, g *auth.Group) (map[string]any, error) {
		if err := change(g); err != nil {
			return nil, err
		}
		if members != nil {
			if _, err := tx.Exec(ctx, `delete from members where group_id = $1 and not user_id = any($2)`, id, members); err != nil {
				return nil, fmt.Errorf("replace members: %w", err)
			}
			return map[string]any{"name": g.Name, "members": members}, addMembers(ctx, tx, id, members)
		}
		return map[string]any{"name": g.Name}, nil
	})
}

// AddMember puts a person into a group. Doing it twice is doing it once.
func (s *Store) AddMember(ctx context.Context, who auth.Who, group, user string) (auth.Group, error) {
	return s.changeGroup(ctx, who, group, "group.member.add", func(tx pgx.Tx, g *auth.Group) (map[string]any, error) {
		return map[string]any{"name": g.Name, "user": user}, addMembers(ctx, tx, group, []string{user})
	})
}

// RemoveMember takes a person out of a group.
func (s *Store) RemoveMember(ctx context.Context, who auth.Who, group, user string) (auth.Group, error) {
	return s.changeGroup(ctx, who, group, "group.member.remove", func(tx pgx.Tx, g *auth.Group) (map[string]any, error) {
		tag, err := tx.Exec(ctx, `delete from members where group_id = $1 and user_id = $2`, group, user)
		if err != nil {
			return nil, fmt.Errorf("remove member: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return nil, fault.NotFound("The person %q is not a member of this group.", user).WithCode("member_not_found")
		}
		return map[string]any{"name": g.Name, "user": user}, nil
	})
}

// changeGroup is the one path on which a group changes: nobody touches a power they do not hold.
func (s *Store) changeGroup(ctx context.Context, who auth.Who, id, action string, change func(pgx.Tx, *auth.Group) (map[string]any, error)) (auth.Group, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (auth.Group, error) {
		g, err := getGroup(ctx, tx, id, "for update")
		if err != nil {
			return g, err
		}
		name := g.Name
		detail, err := change(tx, &g)
		if err != nil {
			return g, err
		}
		if err := who.MayGrant(name, g.Name); err != nil {
			return g, err
		}
		rows, err := tx.Query(ctx, `update groups set name = $2, description = $3, everyone = $4, version = version + 1, modified_at = now()
			where id = $1 returning `+groupColumns, id, g.Name, g.Description, g.Everyone)
		if err != nil {
			return g, takenGroup(err, g.Name)
		}
		saved, err := pgx.CollectExactlyOneRow(rows, scanGroup)
		if err != nil {
			return g, takenGroup(err, g.Name)
		}
		return saved, audit(ctx, tx, who, action, "group", id, detail)
	})
}

// DeleteGroup removes a group; nobody holds that scope any more.
func (s *Store) DeleteGroup(ctx context.Context, who auth.Who, id string) (auth.Group, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (auth.Group, error) {
		g, err := getGroup(ctx, tx, id, "for update")
		if err != nil {
			return g, err
		}
		if err := who.MayGrant(g.Name); err != nil {
			return g, err
		}
		if _, err := tx.Exec(ctx, `delete from groups where id = $1`, id); err != nil {
			return g, fmt.Errorf("delete group: %w", err)
		}
		return g, audit(ctx, tx, who, "group.delete", "group", id, map[string]any{"name": g.Name})
	})
}
