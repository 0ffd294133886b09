package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

// An instance that is shared with a space counts as one of it in lists. The arrays are made once, so that an index finds what is in them.
var serviceInstances = noun[platform.ServiceInstance]{
	name: "Service instance", from: `service_instances t join spaces s on s.guid = t.space_guid left join service_plans p on p.guid = t.plan_guid`, space: `t.space_guid`, org: `s.org_guid`,
	columns: `t.guid, t.space_guid, s.org_guid, t.name, coalesce(t.plan_guid, ''), t.tags, t.dashboard_url, t.maintenance_info,
		coalesce(p.maintenance_info->>'version' <> coalesce(t.maintenance_info->>'version', ''), false),
		t.op_type, t.op_state, t.op_description, t.op_created_at, t.op_updated_at, t.labels, t.annotations, t.created_at, t.updated_at`,
	into: func(i *platform.ServiceInstance) []any {
		return append([]any{&i.GUID, &i.SpaceGUID, &i.OrgGUID, &i.Name, &i.PlanGUID, &i.Tags, &i.DashboardURL, &i.Maintenance, &i.Upgradable},
			append(intoOperation(&i.LastOperation), &i.Metadata.Labels, &i.Metadata.Annotations, &i.CreatedAt, &i.UpdatedAt)...)
	},
	shared: func(q *query, who platform.Who) string {
		return `t.guid in (select x.instance_guid from service_instance_shares x where x.space_guid in (` + spacesOf(q, who, platform.Read) + `))`
	},
	filters: map[string]string{"names": `t.name`, "type": `case when t.plan_guid is null then 'user-provided' else 'managed' end`, "service_plan_guids": `t.plan_guid`, "service_plan_names": `p.name`},
	narrow: map[string]string{
		"space_guids": `t.space_guid = any(%[1]s) or t.guid = any(array(select x.instance_guid from service_instance_shares x where x.space_guid = any(%[1]s)))`,
		"organization_guids": `s.org_guid = any(%[1]s) or t.guid = any(array(select x.instance_guid from service_instance_shares x join spaces y on y.guid = x.space_guid
			where y.org_guid = any(%[1]s)))`,
	},
	order: map[string]string{"name": `t.name`}, labels: `t.labels`,
}

func intoOperation(o *platform.LastOperation) []any {
	return []any{&o.Type, &o.State, &o.Description, &o.CreatedAt, &o.UpdatedAt}
}

// Asked is a record, and the job of those who go on with it where a broker has to be asked.
type Asked[T any] struct {
	Record T
	Job    *platform.Job
}

func instanceTarget(i platform.ServiceInstance) platform.Actor {
	if i.Managed() {
		return platform.Actor{GUID: i.GUID, Type: "service_instance", Name: i.Name}
	}
	return platform.Actor{GUID: i.GUID, Type: "user_provided_service_instance", Name: i.Name}
}

// recordInstance writes an event: create for what is done, start_create for what a broker is asked.
func recordInstance(ctx context.Context, tx pgx.Tx, who platform.Who, kind string, i platform.ServiceInstance, data map[string]any) error {
	target := instanceTarget(i)
	e := platform.On("audit."+target.Type+"."+kind, target, i.OrgGUID, i.SpaceGUID)
	if data != nil {
		e = e.With(data)
	}
	return record(ctx, tx, who, e)
}

// ServiceInstances lists instances.
func (s *Store) ServiceInstances(ctx context.Context, who platform.Who, l platform.List) (platform.Page[platform.ServiceInstance], error) {
	return serviceInstances.list(ctx, s.pool, who, l)
}

// ServiceInstance reads one instance.
func (s *Store) ServiceInstance(ctx context.Context, who platform.Who, guid string) (platform.ServiceInstance, error) {
	return serviceInstances.find(ctx, s.pool, who, platform.Read, guid)
}

// ManagesInstance tells whether somebody who sees an instance may also change it.
func (s *Store) ManagesInstance(ctx context.Context, who platform.Who, guid string) (bool, error) {
	_, err := serviceInstances.find(ctx, s.pool, who, platform.Develop, guid)
	if fault.Is(err, fault.KindForbidden) {
		return false, nil
	}
	return err == nil, err
}

// CreateServiceInstance adds an instance that a broker is asked to make.
func (s *Store) CreateServiceInstance(ctx context.Context, who platform.Who, i platform.ServiceInstance, parameters json.RawMessage) (platform.Job, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.Job, error) {
		i, err := mayCreateInstance(ctx, tx, who, i)
		if err != nil {
			return platform.Job{}, err
		}
		o, err := readOffered(ctx, tx, i.PlanGUID, i.SpaceGUID)
		switch {
		case err != nil:
			return platform.Job{}, err
		case !o.usable:
			return platform.Job{}, platform.ErrInvalidPlan
		}
		_, err = tx.Exec(ctx, `insert into service_instances (guid, space_guid, name, plan_guid, service_id, plan_id, tags, op_state, labels, annotations)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
			i.GUID, i.SpaceGUID, i.Name, i.PlanGUID, o.serviceID, o.planID, none(i.Tags), platform.OperationInitial, none2(i.Metadata.Labels), none2(i.Metadata.Annotations))
		if err != nil {
			return platform.Job{}, instanceConflict(err, i.Name)
		}
		if err := recordInstance(ctx, tx, who, "start_create", i, map[string]any{"service_plan_guid": i.PlanGUID}); err != nil {
			return platform.Job{}, err
		}
		return s.ask(ctx, tx, who, platform.InstanceCreate, i.GUID, platform.Request{Parameters: parameters})
	})
}

// ask begins an operation with a job of its own.
func (s *Store) ask(ctx context.Context, tx pgx.Tx, who platform.Who, kind platform.OperationKind, subject string, request platform.Request) (platform.Job, error) {
	job, err := insertJob(ctx, tx, who, string(kind), platform.JobProcessing)
	if err != nil {
		return job, err
	}
	return job, s.operate(ctx, tx, who, job, kind, subject, request)
}

// CreateUserProvided adds an instance that its user provides.
func (s *Store) CreateUserProvided(ctx context.Context, who platform.Who, i platform.ServiceInstance, credentials json.RawMessage) (platform.ServiceInstance, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.ServiceInstance, error) {
		i, err := mayCreateInstance(ctx, tx, who, i)
		if err != nil {
			return i, err
		}
		sealed, err := s.seal(object(credentials), "service instance "+i.GUID)
		if err != nil {
			return i, err
		}
		_, err = tx.Exec(ctx, `insert into service_instances (guid, space_guid, name, tags, credentials, labels, annotations) values ($1, $2, $3, $4, $5, $6, $7)`,
			i.GUID, i.SpaceGUID, i.Name, none(i.Tags), sealed, none2(i.Metadata.Labels), none2(i.Metadata.Annotations))
		if err != nil {
			return i, instanceConflict(err, i.Name)
		}
		if err := recordInstance(ctx, tx, who, "create", i, nil); err != nil {
			return i, err
		}
		return serviceInstances.read(ctx, tx, i.GUID)
	})
}

// object is a JSON object that is there.
func object(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage(`{}`)
	}
	return raw
}

// mayCreateInstance holds against the rules what is the same for all instances, and names it.
func mayCreateInstance(ctx context.Context, tx pgx.Tx, who platform.Who, i platform.ServiceInstance) (platform.ServiceInstance, error) {
	sp, err := spaces.named(ctx, tx, who, platform.Develop, i.SpaceGUID)
	if err != nil {
		return i, err
	}
	if i.GUID, i.OrgGUID = platform.NewGUID(), sp.OrgGUID; i.Managed() { // what users provide themselves costs nobody anything
		if err := allowed(ctx, tx, who, platform.FlagServiceCreation); err != nil {
			return i, err
		}
	}
	if err := i.Check(); err != nil {
		return i, err
	}
	return i, nameFree(ctx, tx, i.SpaceGUID, i.Name)
}

// nameFree refuses a name that an instance has in a space, its own or one that is shared with it. Others who ask for the name there wait
// until the transaction ends.
func nameFree(ctx context.Context, tx pgx.Tx, space, name string) error {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('service instance ' || $1::text || $2::text, 0))`, space, name); err != nil {
		return fmt.Errorf("lock name: %w", err)
	}
	var taken bool
	err := tx.QueryRow(ctx, `select exists(select from service_instances where space_guid = $1 and name = $2)
		or exists(select from service_instance_shares x join service_instances i on i.guid = x.instance_guid where x.space_guid = $1 and i.name = $2)`, space, name).Scan(&taken)
	switch {
	case err != nil:
		return fmt.Errorf("find name: %w", err)
	case taken:
		return platform.ErrInstanceExists(name)
	}
	return nil
}

func instanceConflict(err error, name string) error {
	switch constraint, _ := pg.Conflict(err); constraint {
	case "service_instance_name":
		return platform.ErrInstanceExists(name)
	case "service_instance_space":
		return invalid("Space") // it went while we looked
	case "service_instance_plan":
		return platform.ErrInvalidPlan
	}
	return fmt.Errorf("write service instance: %w", err)
}

// DeleteServiceInstance removes an instance with its bindings. There is no job for what a user provides: it has gone.
func (s *Store) DeleteServiceInstance(ctx context.Context, who platform.Who, guid string) (*platform.Job, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (*platform.Job, error) {
		i, err := serviceInstances.lock(ctx, tx, who, platform.Develop, guid)
		if err != nil {
			return nil, err
		}
		switch {
		case i.BeingMade(): // what the broker has of it becomes an orphan
			if err := dropInstance(ctx, tx, who, "delete", i); err != nil {
				return nil, err
			}
			job, err := insertJob(ctx, tx, who, string(platform.InstanceDelete), platform.JobComplete)
			return &job, err
		case !i.Managed():
			return nil, dropInstance(ctx, tx, who, "delete", i)
		}
		if err := i.Free(); err != nil {
			return nil, err
		}
		if err := mayDelete(ctx, tx, i); err != nil {
			return nil, err
		}
		if err := begin(ctx, tx, `service_instances`, guid, "delete"); err != nil {
			return nil, err
		}
		if err := recordInstance(ctx, tx, who, "start_delete", i, nil); err != nil {
			return nil, err
		}
		job, err := s.ask(ctx, tx, who, platform.InstanceDelete, guid, platform.Request{})
		return &job, err
	})
}

// mayDelete refuses an instance that is shared, and one with a binding about which the broker is being asked.
func mayDelete(ctx context.Context, tx pgx.Tx, i platform.ServiceInstance) error {
	shared, err := isShared(ctx, tx, i.GUID)
	switch {
	case err != nil:
		return err
	case shared:
		return platform.ErrSharedDelete(i.Name)
	}
	return bindingsFree(ctx, tx, i, `b.instance_guid = $1`, i.GUID)
}

// begin writes that a broker is being asked about a record.
func begin(ctx context.Context, tx pgx.Tx, table, guid, operation string) error {
	_, err := tx.Exec(ctx, `update `+table+` set op_type = $2, op_state = $3, op_description = '', op_created_at = now(), op_updated_at = now() where guid = $1`,
		guid, operation, platform.OperationInitial)
	if err != nil {
		return fmt.Errorf("begin %s: %w", operation, err)
	}
	return nil
}

// PurgeServiceInstance forgets an instance and its bindings without asking the broker, for one that no longer answers. Whoever runs the
// broker may: administrators, and developers of the space that it is for.
func (s *Store) PurgeServiceInstance(ctx context.Context, who platform.Who, guid string) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		i, err := serviceInstances.lock(ctx, tx, who, platform.Develop, guid)
		if err != nil {
			return err
		}
		if i.Managed() && !who.Admin() {
			o, err := readOffered(ctx, tx, i.PlanGUID, i.SpaceGUID)
			if err != nil {
				return err
			}
			if o.brokerSpace != i.SpaceGUID {
				return platform.ErrForbidden
			}
		}
		if _, err := tx.Exec(ctx, `update service_bindings set held = false where instance_guid = $1 and held`, guid); err != nil {
			return fmt.Errorf("let bindings go: %w", err)
		}
		if _, err := tx.Exec(ctx, `update service_instances set held = false where guid = $1`, guid); err != nil {
			return fmt.Errorf("let service instance go: %w", err)
		}
		return dropInstance(ctx, tx, who, "purge", i)
	})
}

func dropInstance(ctx context.Context, tx pgx.Tx, who platform.Who, kind string, i platform.ServiceInstance) error {
	if _, err := tx.Exec(ctx, `delete from service_instances where guid = $1`, i.GUID); err != nil {
		return fmt.Errorf("%s service instance: %w", kind, err)
	}
	return recordInstance(ctx, tx, who, kind, i, nil)
}

// InstanceParameters reads what the broker said that an instance has. They may hold secrets.
func (s *Store) InstanceParameters(ctx context.Context, who platform.Who, guid string) (json.RawMessage, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (json.RawMessage, error) {
		i, err := serviceInstances.find(ctx, tx, who, platform.ReadSecrets, guid)
		if err != nil {
			return nil, err
		}
		if !i.Managed() {
			return nil, platform.ErrNoParameters
		}
		o, err := readOffered(ctx, tx, i.PlanGUID, i.SpaceGUID)
		switch {
		case err != nil:
			return nil, err
		case !o.instancesRetrievable:
			return nil, platform.ErrNoParameters
		}
		if err := i.Usable(); err != nil {
			return nil, err
		}
		return s.unsealed(ctx, tx, `select parameters from service_instances where guid = $1`, guid, "service instance parameters "+guid)
	})
}

// InstanceCredentials reads what the user of an instance provides.
func (s *Store) InstanceCredentials(ctx context.Context, who platform.Who, guid string) (json.RawMessage, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (json.RawMessage, error) {
		i, err := serviceInstances.find(ctx, tx, who, platform.ReadSecrets, guid)
		switch {
		case err != nil:
			return nil, err
		case i.Managed():
			return nil, fault.NotFound("Service instance '%s' has no credentials of its own: a broker gives them to each of its bindings.", i.Name)
		}
		if err := recordInstance(ctx, tx, who, "show", i, nil); err != nil {
			return nil, err
		}
		return s.unsealed(ctx, tx, `select credentials from service_instances where guid = $1`, guid, "service instance "+guid)
	})
}

// unsealed reads an object that was sealed; one that was never told is empty.
func (s *Store) unsealed(ctx context.Context, tx pgx.Tx, sql, guid, context string) (json.RawMessage, error) {
	var sealed []byte
	if err := tx.QueryRow(ctx, sql, guid).Scan(&sealed); err != nil {
		return nil, fmt.Errorf("read %s: %w", context, err)
	}
	var raw json.RawMessage
	if err := s.open(sealed, context, &raw); err != nil {
		return nil, err
	}
	return object(raw), nil
}
