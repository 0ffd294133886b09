package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

const inApp = ` join apps a on a.guid = t.app_guid join spaces s on s.guid = a.space_guid`

var processes = noun[platform.Process]{
	name: "Process", from: `processes t` + inApp, space: `a.space_guid`, org: `s.org_guid`,
	columns: `t.guid, t.app_guid, t.type, t.command, t.instances, t.memory_mb, t.disk_mb, t.log_rate, t.health, t.readiness, coalesce(t.release_guid, ''),
		t.labels, t.annotations, t.created_at, t.updated_at`,
	into: func(p *platform.Process) []any {
		return []any{&p.GUID, &p.AppGUID, &p.Type, &p.Command, &p.Instances, &p.MemoryMB, &p.DiskMB, &p.LogRateBytes, &p.HealthCheck, &p.Readiness, &p.Version,
			&p.Metadata.Labels, &p.Metadata.Annotations, &p.CreatedAt, &p.UpdatedAt}
	},
	filters: map[string]string{"types": `t.type`, "app_guids": `t.app_guid`, "space_guids": `a.space_guid`, "organization_guids": `s.org_guid`},
	labels:  `t.labels`,
}

// Processes lists processes.
func (s *Store) Processes(ctx context.Context, who platform.Who, l platform.List) (platform.Page[platform.Process], error) {
	return processes.list(ctx, s.pool, who, l)
}

// Process reads one process.
func (s *Store) Process(ctx context.Context, who platform.Who, guid string) (platform.Process, error) {
	return processes.find(ctx, s.pool, who, platform.Read, guid)
}

// ProcessOf finds an app's process by its type.
func (s *Store) ProcessOf(ctx context.Context, who platform.Who, app, kind string) (platform.Process, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Process, error) {
		if _, err := apps.find(ctx, tx, who, platform.Read, app); err != nil {
			return platform.Process{}, err
		}
		guid, err := processGUID(ctx, tx, app, kind)
		if err != nil {
			return platform.Process{}, err
		}
		return processes.read(ctx, tx, guid)
	})
}

func processGUID(ctx context.Context, tx pgx.Tx, app, kind string) (string, error) {
	var guid string
	err := tx.QueryRow(ctx, `select guid from processes where app_guid = $1 and type = $2`, app, kind).Scan(&guid)
	if pg.NoRows(err) {
		return "", platform.NotFound("Process")
	}
	if err != nil {
		return "", fmt.Errorf("find process: %w", err)
	}
	return guid, nil
}

func insertProcess(ctx context.Context, tx pgx.Tx, p platform.Process) error {
	_, err := tx.Exec(ctx, `insert into processes (guid, app_guid, type, command, instances, memory_mb, disk_mb, log_rate, health, readiness)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) on conflict (app_guid, type) do nothing`,
		p.GUID, p.AppGUID, p.Type, p.Command, p.Instances, p.MemoryMB, p.DiskMB, p.LogRateBytes, p.HealthCheck, p.Readiness)
	if err != nil {
		return fmt.Errorf("write process: %w", err)
	}
	return nil
}

// ensureProcess makes an app's process of a type, unless it is there.
func ensureProcess(ctx context.Context, tx pgx.Tx, app, kind string) error {
	if err := platform.CheckProcessType(kind); err != nil {
		return err
	}
	p := platform.NewProcess(app, kind)
	p.GUID = platform.NewGUID()
	if kind == platform.WebProcess {
		p.GUID = app
	}
	return insertProcess(ctx, tx, p)
}

// UpdateProcess changes how a process is started and watched, which holds from its next release on.
func (s *Store) UpdateProcess(ctx context.Context, who platform.Who, guid string, change func(*platform.Process) error) (platform.Process, error) {
	return s.changeProcess(ctx, who, platform.Develop, guid, "process.update", change)
}

// ScaleProcess changes how many instances there are, at once, and how large they are, from the next release on.
func (s *Store) ScaleProcess(ctx context.Context, who platform.Who, guid string, scale platform.ProcessScale) (platform.Process, error) {
	return s.changeProcess(ctx, who, platform.Support, guid, "process.scale", func(p *platform.Process) error { return p.Scale(scale) })
}

func (s *Store) changeProcess(ctx context.Context, who platform.Who, do platform.Action, guid, event string, change func(*platform.Process) error) (platform.Process, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Process, error) {
		p, err := processes.find(ctx, tx, who, do, guid)
		if err != nil {
			return p, err
		}
		a, err := apps.lock(ctx, tx, who, do, p.AppGUID) // so that no sidecar grows while its process shrinks
		if err != nil {
			return p, err
		}
		if p, err = processes.lock(ctx, tx, who, do, guid); err != nil {
			return p, err
		}
		if err := change(&p); err != nil {
			return p, err
		}
		its, err := sidecarsOf(ctx, tx, p.AppGUID)
		if err != nil {
			return p, err
		}
		if err := platform.CheckSidecarMemory(p, its); err != nil {
			return p, err
		}
		if err := saveProcess(ctx, tx, p); err != nil {
			return p, err
		}
		if err := s.recordApp(ctx, tx, who, event, a, map[string]any{"process_guid": p.GUID, "process_type": p.Type, "request": map[string]any{
			"instances": p.Instances, "memory_in_mb": p.MemoryMB, "disk_in_mb": p.DiskMB,
		}}); err != nil {
			return p, err
		}
		return processes.read(ctx, tx, guid)
	})
}

func saveProcess(ctx context.Context, tx pgx.Tx, p platform.Process) error {
	_, err := tx.Exec(ctx, `update processes set command = $2, instances = $3, memory_mb = $4, disk_mb = $5, log_rate = $6, health = $7, readiness = $8,
		labels = $9, annotations = $10, updated_at = now() where guid = $1`,
		p.GUID, p.Command, p.Instances, p.MemoryMB, p.DiskMB, p.LogRateBytes, p.HealthCheck, p.Readiness, none2(p.Metadata.Labels), none2(p.Metadata.Annotations))
	if err != nil {
		return fmt.Errorf("save process: %w", err)
	}
	return nil
}

// processesOf reads all processes of an app, web first.
func processesOf(ctx context.Context, tx pgx.Tx, app string) ([]platform.Process, error) {
	rows, err := tx.Query(ctx, `select `+processes.columns+` from `+processes.from+` where t.app_guid = $1 order by t.type <> 'web', t.type`, app)
	if err != nil {
		return nil, fmt.Errorf("read processes: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (platform.Process, error) {
		var p platform.Process
		err := row.Scan(processes.into(&p)...)
		return p, err
	})
}
