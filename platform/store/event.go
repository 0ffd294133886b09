package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/platform"
)

var events = noun[platform.Event]{
	name: "Event", from: `audit_events t`, space: `t.space_guid`, org: `t.org_guid`, sees: platform.Audit,
	columns: `t.guid, t.type, t.actor_guid, t.actor_type, t.actor_name, t.target_guid, t.target_type, t.target_name, t.data,
		coalesce(t.space_guid, ''), coalesce(t.org_guid, ''), t.created_at`,
	into: func(e *platform.Event) []any {
		return []any{&e.GUID, &e.Type, &e.Actor.GUID, &e.Actor.Type, &e.Actor.Name, &e.Target.GUID, &e.Target.Type, &e.Target.Name, &e.Data,
			&e.SpaceGUID, &e.OrgGUID, &e.CreatedAt}
	},
	filters: map[string]string{"types": `t.type`, "target_guids": `t.target_guid`, "space_guids": `t.space_guid`, "organization_guids": `t.org_guid`},
}

// Events lists the audit trail.
func (s *Store) Events(ctx context.Context, who platform.Who, l platform.List) (platform.Page[platform.Event], error) {
	return events.list(ctx, s.pool, who, l)
}

// Event reads one line of it.
func (s *Store) Event(ctx context.Context, who platform.Who, guid string) (platform.Event, error) {
	return events.find(ctx, s.pool, who, platform.Audit, guid)
}

// record writes who did what to which record, in the transaction that does it.
func record(ctx context.Context, tx pgx.Tx, who platform.Who, e platform.Event) error {
	e.Actor = who.Actor()
	return insertEvent(ctx, tx, e, who.RequestID)
}

func insertEvent(ctx context.Context, tx pgx.Tx, e platform.Event, request string) error {
	_, err := tx.Exec(ctx, `insert into audit_events (guid, type, actor_guid, actor_type, actor_name, target_guid, target_type, target_name, space_guid, org_guid, request_id, data)
		values ($1, $2, $3, $4, $5, $6, $7, $8, nullif($9, ''), nullif($10, ''), $11, $12)`,
		platform.NewGUID(), e.Type, e.Actor.GUID, e.Actor.Type, e.Actor.Name, e.Target.GUID, e.Target.Type, e.Target.Name, e.SpaceGUID, e.OrgGUID, request, e.Data)
	if err != nil {
		return fmt.Errorf("record %s: %w", e.Type, err)
	}
	return nil
}
