package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

func isShared(ctx context.Context, tx pgx.Tx, instance string) (shared bool, err error) {
	if err = tx.QueryRow(ctx, `select exists(select from service_instance_shares where instance_guid = $1)`, instance).Scan(&shared); err != nil {
		return false, fmt.Errorf("look at shares: %w", err)
	}
	return shared, nil
}

func isSharedWith(ctx context.Context, tx pgx.Tx, instance, space string) (shared bool, err error) {
	if err = tx.QueryRow(ctx, `select exists(select from service_instance_shares where instance_guid = $1 and space_guid = $2)`, instance, space).Scan(&shared); err != nil {
		return false, fmt.Errorf("look at shares: %w", err)
	}
	return shared, nil
}

// Share is a space that an instance is shared with, by its name and its organization's.
type Share struct {
	Space     platform.Space
	OrgName   string
	BoundApps int
}

// Shares lists the spaces that an instance is shared with: all for those who see where it lives, and to others those that they see.
func (s *Store) Shares(ctx context.Context, who platform.Who, guid string) ([]Share, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) ([]Share, error) {
		i, err := serviceInstances.find(ctx, tx, who, platform.Read, guid)
		if err != nil {
			return nil, err
		}
		q := &query{}
		sql := `select s.guid, s.name, o.guid, o.name, (select count(distinct b.app_guid) from service_bindings b where b.instance_guid = x.instance_guid and b.space_guid = x.space_guid)
			from service_instance_shares x join spaces s on s.guid = x.space_guid join orgs o on o.guid = s.org_guid where x.instance_guid = ` + q.arg(guid)
		if !who.Everywhere(platform.Read) {
			sees := spacesOf(q, who, platform.Read)
			sql += ` and (` + q.arg(i.SpaceGUID) + ` in (` + sees + `) or x.space_guid in (` + sees + `))`
		}
		rows, err := tx.Query(ctx, sql+` order by x.created_at, s.guid`, q.args...)
		if err != nil {
			return nil, fmt.Errorf("list shares: %w", err)
		}
		return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Share, error) {
			var one Share
			err := row.Scan(&one.Space.GUID, &one.Space.Name, &one.Space.OrgGUID, &one.OrgName, &one.BoundApps)
			return one, err
		})
	})
}

// ShareServiceInstance lets other spaces use an instance. The sender may develop in all of them, and all get it or none.
func (s *Store) ShareServiceInstance(ctx context.Context, who platform.Who, guid string, with []string) ([]Share, error) {
	_, err := pg.InTx(ctx, s.pool, func(tx pgx.Tx) (struct{}, error) {
		i, err := serviceInstances.lock(ctx, tx, who, platform.Develop, guid)
		if err != nil {
			return struct{}{}, err
		}
		if err := mayShare(ctx, tx, who, i); err != nil {
			return struct{}{}, err
		}
		slices.Sort(with) // so that two who share at once take their locks in one order
		for _, space := range slices.Compact(with) {
			if err := shareWith(ctx, tx, who, i, space); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, recordInstance(ctx, tx, who, "share", i, map[string]any{"target_space_guids": with})
	})
	if err != nil {
		return nil, err
	}
	return s.Shares(ctx, who, guid)
}

func mayShare(ctx context.Context, tx pgx.Tx, who platform.Who, i platform.ServiceInstance) error {
	if !i.Managed() {
		return fault.Unprocessable("User-provided services cannot be shared.")
	}
	if err := allowed(ctx, tx, who, platform.FlagServiceSharing); err != nil {
		return err
	}
	if err := i.Usable(); err != nil {
		return err
	}
	o, err := readOffered(ctx, tx, i.PlanGUID, i.SpaceGUID)
	switch {
	case err != nil:
		return err
	case !o.shareable:
		return fault.Unprocessable("The %s service does not support service instance sharing.", o.offeringName)
	}
	return nil
}

// shareWith shares an instance with one space, where its plan can be had and its name is free.
func shareWith(ctx context.Context, tx pgx.Tx, who platform.Who, i platform.ServiceInstance, space string) error {
	sp, err := spaces.find(ctx, tx, who, platform.Develop, space)
	switch {
	case fault.Is(err, fault.KindNotFound):
		return fault.Unprocessable("Unable to share service instance %s with spaces ['%s']. Ensure the spaces exist and that you have access to them.", i.Name, space)
	case fault.Is(err, fault.KindForbidden):
		return fault.Unprocessable("Unable to share service instance %s with spaces ['%s']. Write permission is required in order to share a service instance with a space, and its organization must not be suspended.", i.Name, space)
	case err != nil:
		return err
	case space == i.SpaceGUID:
		return fault.Unprocessable("Unable to share service instance '%s' with space '%s'. Service instances cannot be shared into the space where they were created.", i.Name, sp.Name)
	}
	o, err := readOffered(ctx, tx, i.PlanGUID, space)
	switch {
	case err != nil:
		return err
	case !o.usable:
		return fault.Unprocessable("Access to service %s and plan %s is not enabled in space %s. Ask whoever offers the service to enable it there.", o.offeringName, o.planName, sp.Name)
	}
	already, err := isSharedWith(ctx, tx, i.GUID, space)
	switch {
	case err != nil:
		return err
	case already: // clients compare these words
		return fault.Unprocessable("A service instance called %s has already been shared with %s.", i.Name, sp.Name)
	}
	if err := nameFree(ctx, tx, space, i.Name); err != nil {
		if fault.Is(err, fault.KindUnprocessable) {
			return fault.Unprocessable("A service instance called %s already exists in %s.", i.Name, sp.Name)
		}
		return err
	}
	if _, err := tx.Exec(ctx, `insert into service_instance_shares (instance_guid, space_guid) values ($1, $2)`, i.GUID, space); err != nil {
		return fmt.Errorf("share service instance: %w", err)
	}
	return nil
}

// UnshareServiceInstance takes an instance back from a space. The bindings of its apps go, and the broker is asked to delete them.
func (s *Store) UnshareServiceInstance(ctx context.Context, who platform.Who, guid, space string) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		i, err := serviceInstances.lock(ctx, tx, who, platform.Develop, guid)
		if err != nil {
			return err
		}
		if err := i.Free(); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `delete from service_instance_shares where instance_guid = $1 and space_guid = $2`, guid, space)
		switch {
		case err != nil:
			return fmt.Errorf("unshare service instance: %w", err)
		case tag.RowsAffected() == 0:
			return fault.Unprocessable("Unable to unshare service instance from space %s. Ensure the space exists and the service instance has been shared to this space.", space)
		}
		if err := bindingsFree(ctx, tx, i, `b.instance_guid = $1 and b.space_guid = $2`, guid, space); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `delete from service_bindings where instance_guid = $1 and space_guid = $2`, guid, space); err != nil {
			return fmt.Errorf("delete bindings: %w", err)
		}
		return recordInstance(ctx, tx, who, "unshare", i, map[string]any{"target_space_guid": space})
	})
}
