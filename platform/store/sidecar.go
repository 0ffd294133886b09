package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

var sidecars = noun[platform.Sidecar]{
	name: "Sidecar", from: `sidecars t` + inApp, space: `a.space_guid`, org: `s.org_guid`,
	columns: `t.guid, t.app_guid, t.name, t.command, t.process_types, t.memory_mb, t.origin, t.created_at, t.updated_at`,
	into: func(c *platform.Sidecar) []any {
		return []any{&c.GUID, &c.AppGUID, &c.Name, &c.Command, &c.ProcessTypes, &c.MemoryMB, &c.Origin, &c.CreatedAt, &c.UpdatedAt}
	},
	filters: map[string]string{"app_guids": `t.app_guid`, "names": `t.name`},
	order:   map[string]string{"name": `t.name`},
}

// SidecarsOfApp lists an app's sidecars.
func (s *Store) SidecarsOfApp(ctx context.Context, who platform.Who, app string, l platform.List) (platform.Page[platform.Sidecar], error) {
	if _, err := apps.find(ctx, s.pool, who, platform.Read, app); err != nil {
		return platform.Page[platform.Sidecar]{}, err
	}
	return sidecars.list(ctx, s.pool, who, narrowed(l, "app_guids", app))
}

// SidecarsOfProcess lists the sidecars that run beside a process.
func (s *Store) SidecarsOfProcess(ctx context.Context, who platform.Who, process string, l platform.List) (platform.Page[platform.Sidecar], error) {
	p, err := processes.find(ctx, s.pool, who, platform.Read, process)
	if err != nil {
		return platform.Page[platform.Sidecar]{}, err
	}
	all, err := sidecars.list(ctx, s.pool, who, narrowed(platform.List{Page: 1, PerPage: platform.MaxPerPage, OrderBy: l.OrderBy, Down: l.Down}, "app_guids", p.AppGUID))
	if err != nil {
		return all, err
	}
	its := platform.SidecarsOf(p.Type, all.Records)
	from := min((l.Page-1)*l.PerPage, len(its)) // an app has few
	to := min(from+l.PerPage, len(its))
	page := platform.Page[platform.Sidecar]{Records: its[from:to], Total: len(its)}
	if to < len(its) {
		page.Next = &platform.Cursor{GUID: its[to-1].GUID}
	}
	return page, nil
}

// narrowed is a list of what has one value.
func narrowed(l platform.List, parameter, value string) platform.List {
	values := map[string][]string{parameter: {value}}
	for name, v := range l.Values {
		if name != parameter {
			values[name] = v
		}
	}
	l.Values = values
	return l
}

// Sidecar reads one sidecar.
func (s *Store) Sidecar(ctx context.Context, who platform.Who, guid string) (platform.Sidecar, error) {
	return sidecars.find(ctx, s.pool, who, platform.Read, guid)
}

// CreateSidecar adds a sidecar to an app. It runs from the next release on.
func (s *Store) CreateSidecar(ctx context.Context, who platform.Who, c platform.Sidecar) (platform.Sidecar, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Sidecar, error) {
		a, err := apps.lock(ctx, tx, who, platform.Develop, c.AppGUID)
		if err != nil {
			return c, err
		}
		c.GUID = platform.NewGUID()
		if err := putSidecar(ctx, tx, c); err != nil {
			return c, err
		}
		if err := s.recordApp(ctx, tx, who, "sidecar.create", a, map[string]any{"sidecar": c.Name}); err != nil {
			return c, err
		}
		return sidecars.read(ctx, tx, c.GUID)
	})
}

// UpdateSidecar changes a sidecar from the next release on.
func (s *Store) UpdateSidecar(ctx context.Context, who platform.Who, guid string, change platform.SidecarChange) (platform.Sidecar, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Sidecar, error) {
		c, err := sidecars.find(ctx, tx, who, platform.Develop, guid)
		if err != nil {
			return c, err
		}
		a, err := apps.lock(ctx, tx, who, platform.Develop, c.AppGUID) // sidecars are changed under their app's lock
		if err != nil {
			return c, err
		}
		if c, err = sidecars.find(ctx, tx, who, platform.Develop, guid); err != nil { // it may have gone meanwhile
			return c, err
		}
		if err := c.Update(change); err != nil {
			return c, err
		}
		if err := putSidecar(ctx, tx, c); err != nil {
			return c, err
		}
		if err := s.recordApp(ctx, tx, who, "sidecar.update", a, map[string]any{"sidecar": c.Name}); err != nil {
			return c, err
		}
		return sidecars.read(ctx, tx, guid)
	})
}

// DeleteSidecar takes a sidecar away, from the next release on.
func (s *Store) DeleteSidecar(ctx context.Context, who platform.Who, guid string) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		c, err := sidecars.find(ctx, tx, who, platform.Develop, guid)
		if err != nil {
			return err
		}
		a, err := apps.lock(ctx, tx, who, platform.Develop, c.AppGUID)
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `delete from sidecars where guid = $1`, guid)
		if err != nil {
			return fmt.Errorf("delete sidecar: %w", err)
		}
		if err := exactly(tag.RowsAffected(), "Sidecar"); err != nil {
			return err
		}
		return s.recordApp(ctx, tx, who, "sidecar.delete", a, map[string]any{"sidecar": c.Name})
	})
}

// putSidecar writes a new or changed sidecar, and holds all of the app's against the rules: the app is locked.
func putSidecar(ctx context.Context, tx pgx.Tx, c platform.Sidecar) error {
	if err := writeSidecar(ctx, tx, c); err != nil {
		return err
	}
	return checkSidecars(ctx, tx, c.AppGUID)
}

func writeSidecar(ctx context.Context, tx pgx.Tx, c platform.Sidecar) error {
	if err := c.Check(); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `insert into sidecars (guid, app_guid, name, command, process_types, memory_mb, origin) values ($1, $2, $3, $4, $5, $6, $7)
		on conflict (guid) do update set name = $3, command = $4, process_types = $5, memory_mb = $6, updated_at = now()`,
		c.GUID, c.AppGUID, c.Name, c.Command, c.ProcessTypes, c.MemoryMB, c.Origin)
	if name, _ := pg.Conflict(err); name == "sidecar_name" {
		return platform.ErrSidecarExists(c.Name)
	}
	if err != nil {
		return fmt.Errorf("write sidecar: %w", err)
	}
	return nil
}

// checkSidecars holds the sidecars of an app against each other and against the memory of its processes.
func checkSidecars(ctx context.Context, tx pgx.Tx, app string) error {
	all, err := sidecarsOf(ctx, tx, app)
	if err != nil {
		return err
	}
	if err := platform.CheckSidecars(all); err != nil {
		return err
	}
	procs, err := processesOf(ctx, tx, app)
	if err != nil {
		return err
	}
	for _, p := range procs {
		if err := platform.CheckSidecarMemory(p, all); err != nil {
			return err
		}
	}
	return nil
}

func sidecarsOf(ctx context.Context, tx pgx.Tx, app string) ([]platform.Sidecar, error) {
	rows, err := tx.Query(ctx, `select `+sidecars.columns+` from `+sidecars.from+` where t.app_guid = $1 order by t.created_at, t.name`, app)
	if err != nil {
		return nil, fmt.Errorf("read sidecars: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (platform.Sidecar, error) {
		var c platform.Sidecar
		err := row.Scan(sidecars.into(&c)...)
		return c, err
	})
}
