package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
)

const userColumns = `id, username, origin, email, given_name, family_name, external_id, password, active, verified, generation, version,
	created_at, modified_at, password_set_at, last_login_at`

func scanUser(row pgx.CollectableRow) (auth.User, error) {
	var u auth.User
	err := row.Scan(&u.ID, &u.UserName, &u.Origin, &u.Email, &u.GivenName, &u.FamilyName, &u.ExternalID, &u.Password, &u.Active, &u.Verified,
		&u.Generation, &u.Version, &u.Created, &u.Modified, &u.PasswordSet, &u.LastLogin)
	return u, err
}

var userAttrs = columns{
	"id": {sql: "id"}, "userName": {sql: "username", kind: foldColumn}, "email": {sql: "email", kind: foldColumn}, "origin": {sql: "origin"},
	"name.givenName": {sql: "given_name", kind: foldColumn}, "name.familyName": {sql: "family_name", kind: foldColumn},
	"externalId": {sql: "external_id"}, "active": {sql: "active", kind: boolColumn}, "verified": {sql: "verified", kind: boolColumn},
	"meta.created": {sql: "created_at", kind: timeColumn}, "meta.lastModified": {sql: "modified_at", kind: timeColumn},
	"groups.display": {sql: "name", kind: groupColumn}, "groups.value": {sql: "id", kind: groupColumn},
}

// UserAttrs are the attributes that a list of people can be filtered by, and sorted by but for the groups.
var UserAttrs = userAttrs.names()

func noUser(id string) error {
	return fault.NotFound("There is no person %q. Look the id up with GET /Users?filter=userName eq \"…\".", id).WithCode("scim_resource_not_found")
}

// User reads one person with the groups they are in.
func (s *Store) User(ctx context.Context, id string) (auth.User, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (auth.User, error) { return getUser(ctx, tx, id, "") })
}

func getUser(ctx context.Context, tx pgx.Tx, id, lock string) (auth.User, error) {
	rows, err := tx.Query(ctx, `select `+userColumns+` from users where id = $1 `+lock, id)
	if err != nil {
		return auth.User{}, fmt.Errorf("get user: %w", err)
	}
	u, err := pgx.CollectExactlyOneRow(rows, scanUser)
	if pg.NoRows(err) {
		return u, noUser(id)
	}
	if err != nil {
		return u, err
	}
	users := []auth.User{u}
	err = fillGroups(ctx, tx, users)
	return users[0], err
}

// UserByName finds a person by the name they log in with. No such person is a fault of kind NotFound.
func (s *Store) UserByName(ctx context.Context, name, origin string) (auth.User, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (auth.User, error) {
		var id string
		err := tx.QueryRow(ctx, `select id from users where lower(username) = lower($1) and origin = $2`, name, origin).Scan(&id)
		if pg.NoRows(err) {
			return auth.User{}, noUser(name)
		}
		if err != nil {
			return auth.User{}, fmt.Errorf("find user: %w", err)
		}
		return getUser(ctx, tx, id, "")
	})
}

// fillGroups reads the groups of many people with one statement.
func fillGroups(ctx context.Context, tx pgx.Tx, users []auth.User) error {
	ids, at := make([]string, len(users)), make(map[string]int, len(users))
	for i, u := range users {
		ids[i], at[u.ID] = u.ID, i
	}
	var everyone []auth.Group
	rows, err := tx.Query(ctx, `select '' as user_id, id, name, description from groups where everyone
		union all select m.user_id, g.id, g.name, g.description from members m join groups g on g.id = m.group_id
		where m.user_id = any($1) and not g.everyone order by 1, 3`, ids)
	if err != nil {
		return fmt.Errorf("read groups of users: %w", err)
	}
	var user string
	var g auth.Group
	_, err = pgx.ForEachRow(rows, []any{&user, &g.ID, &g.Name, &g.Description}, func() error {
		if user == "" {
			everyone = append(everyone, g)
			return nil
		}
		i := at[user]
		users[i].Groups = append(users[i].Groups, g)
		return nil
	})
	for i := range users {
		users[i].Groups = append(append([]auth.Group{}, everyone...), users[i].Groups...)
	}
	return err
}

// Users lists people, with their groups if they are asked for.
func (s *Store) Users(ctx context.Context, p Page, groups bool) ([]auth.User, int, error) {
	users, total, err := list(ctx, s.pool, listing{table: "users", columns: userColumns, attrs: userAttrs}, p, scanUser)
	if err != nil || len(users) == 0 || !groups {
		return users, total, err
	}
	return users, total, pg.Do(ctx, s.pool, func(tx pgx.Tx) error { return fillGroups(ctx, tx, users) })
}

// CreateUser adds a person. The record and its password have been checked.
func (s *Store) CreateUser(ctx context.Context, who auth.Who, u auth.User) (auth.User, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (auth.User, error) {
		u, err := insertUser(ctx, tx, u)
		if err != nil {
			return u, err
		}
		return u, audit(ctx, tx, who, "user.create", "user", u.ID, map[string]any{"user_name": u.UserName, "origin": u.Origin})
	})
}

func insertUser(ctx context.Context, tx pgx.Tx, u auth.User) (auth.User, error) {
	var id string
	err := tx.QueryRow(ctx, `insert into users (username, origin, email, given_name, family_name, external_id, password, active, verified)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9) returning id`,
		u.UserName, u.Origin, u.Email, u.GivenName, u.FamilyName, u.ExternalID, u.Password, u.Active, u.Verified).Scan(&id)
	if err != nil {
		return u, takenName(err, u)
	}
	return getUser(ctx, tx, id, "")
}

func takenName(err error, u auth.User) error {
	if _, taken := pg.Conflict(err); taken {
		return fault.Conflict("The user name %q is taken in origin %q. Choose another one.", u.UserName, u.Origin).WithCode("scim_resource_already_exists").Because(err)
	}
	return fmt.Errorf("save user: %w", err)
}

// UpdateUser changes a person under their lock. When end is true every token and session of theirs ends.
func (s *Store) UpdateUser(ctx context.Context, who auth.Who, id, action string, change func(*auth.User) (end bool, err error)) (auth.User, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (auth.User, error) {
		u, err := getUser(ctx, tx, id, "for update")
		if err != nil {
			return u, err
		}
		if err := who.MayManage(u); err != nil {
			return u, err
		}
		password := u.Password
		end, err := change(&u)
		if err != nil {
			return u, err
		}
		_, err = tx.Exec(ctx, `update users set username = $2, origin = $3, email = $4, given_name = $5, family_name = $6, external_id = $7, password = $8,
				active = $9, verified = $10, version = version + 1, modified_at = now(),
				password_set_at = case when $11 then now() else password_set_at end,
				generation = case when $12 then substr(md5(gen_random_uuid()::text), 1, 12) else generation end
			where id = $1`, u.ID, u.UserName, u.Origin, u.Email, u.GivenName, u.FamilyName, u.ExternalID, u.Password, u.Active, u.Verified,
			u.Password != password, end)
		if err != nil {
			return u, takenName(err, u)
		}
		if err := audit(ctx, tx, who, action, "user", u.ID, map[string]any{"user_name": u.UserName, "active": u.Active}); err != nil {
			return u, err
		}
		return getUser(ctx, tx, id, "")
	})
}

// DeleteUser removes a person and all that hangs on them.
func (s *Store) DeleteUser(ctx context.Context, who auth.Who, id string) (auth.User, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (auth.User, error) {
		u, err := getUser(ctx, tx, id, "for update")
		if err != nil {
			return u, err
		}
		if err := who.MayManage(u); err != nil {
			return u, err
		}
		if _, err := tx.Exec(ctx, `delete from users where id = $1`, id); err != nil {
			return u, fmt.Errorf("delete user: %w", err)
		}
		return u, audit(ctx, tx, who, "user.delete", "user", id, map[string]any{"user_name": u.UserName, "origin": u.Origin})
	})
}
