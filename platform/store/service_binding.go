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

// ofPlan selects the instances of plans (p, with their offering o).
const ofPlan = `t.instance_guid in (select x.guid from service_instances x join service_plans p on p.guid = x.plan_guid join service_offerings o on o.guid = p.offering_guid where `

var serviceBindings = noun[platform.ServiceBinding]{
	name: "Service credential binding", from: `service_bindings t join spaces s on s.guid = t.space_guid`, space: `t.space_guid`, org: `s.org_guid`,
	columns: `t.guid, t.type, t.name, t.instance_guid, coalesce(t.app_guid, ''), t.space_guid, s.org_guid,
		t.op_type, t.op_state, t.op_description, t.op_created_at, t.op_updated_at, t.labels, t.annotations, t.created_at, t.updated_at`,
	into: func(b *platform.ServiceBinding) []any {
		return append([]any{&b.GUID, &b.Type, &b.Name, &b.InstanceGUID, &b.AppGUID, &b.SpaceGUID, &b.OrgGUID},
			append(intoOperation(&b.LastOperation), &b.Metadata.Labels, &b.Metadata.Annotations, &b.CreatedAt, &b.UpdatedAt)...)
	},
	filters: map[string]string{"type": `t.type`, "names": `t.name`, "service_instance_guids": `t.instance_guid`, "app_guids": `t.app_guid`},
	narrow: map[string]string{
		"service_instance_names": `t.instance_guid in (select x.guid from service_instances x where x.name = any(%s))`,
		"app_names":              `t.app_guid in (select x.guid from apps x where x.name = any(%s))`,
		"service_plan_guids":     ofPlan + `p.guid = any(%s))`,
		"service_plan_names":     ofPlan + `p.name = any(%s))`,
		"service_offering_guids": ofPlan + `o.guid = any(%s))`,
		"service_offering_names": ofPlan + `o.name = any(%s))`,
	},
	order: map[string]string{"name": `t.name`}, labels: `t.labels`,
}

func bindingTarget(b platform.ServiceBinding) platform.Actor {
	if b.Type == platform.BindingKey {
		return platform.Actor{GUID: b.GUID, Type: "service_key", Name: b.Name}
	}
	return platform.Actor{GUID: b.GUID, Type: "service_binding", Name: b.Name}
}

// recordBinding writes an event that says what is bound to what, and no credentials.
func recordBinding(ctx context.Context, tx pgx.Tx, who platform.Who, kind string, b platform.ServiceBinding) error {
	target := bindingTarget(b)
	data := map[string]any{"service_instance_guid": b.InstanceGUID}
	if b.AppGUID != "" {
		data["app_guid"] = b.AppGUID
	}
	return record(ctx, tx, who, platform.On("audit."+target.Type+"."+kind, target, b.OrgGUID, b.SpaceGUID).With(data))
}

// ServiceBindings lists bindings, without what they give.
func (s *Store) ServiceBindings(ctx context.Context, who platform.Who, l platform.List) (platform.Page[platform.ServiceBinding], error) {
	return serviceBindings.list(ctx, s.pool, who, l)
}

// ServiceBinding reads one binding, without what it gives.
func (s *Store) ServiceBinding(ctx context.Context, who platform.Who, guid string) (platform.ServiceBinding, error) {
	return serviceBindings.find(ctx, s.pool, who, platform.Read, guid)
}

// CreateBinding binds an app, or makes a key. Parameters are for the broker; again lets an app have several bindings.
func (s *Store) CreateBinding(ctx context.Context, who platform.Who, b platform.ServiceBinding, parameters json.RawMessage, again bool) (Asked[platform.ServiceBinding], error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (Asked[platform.ServiceBinding], error) {
		var job platform.Job
		if b.Type == platform.BindingKey {
			made, err := s.createKey(ctx, tx, who, b, parameters, &job)
			return asked(made, job), err
		}
		a, err := apps.named(ctx, tx, who, platform.Develop, b.AppGUID)
		if err != nil {
			return asked(b, job), err
		}
		made, err := s.bind(ctx, tx, who, a, b, again, parameters, &job)
		return asked(made, job), err
	})
}

func asked[T any](made T, job platform.Job) Asked[T] {
	if job.GUID == "" {
		return Asked[T]{Record: made}
	}
	return Asked[T]{Record: made, Job: &job}
}

// bindApp binds an app, in which the sender may develop, to an instance. What a broker has to be asked for becomes an operation of the job;
// a job that is empty is made when there is one. What a user provides is bound at once: its last operation is not running.
func (s *Store) bindApp(ctx context.Context, tx pgx.Tx, who platform.Who, a platform.App, i platform.ServiceInstance, name string, parameters json.RawMessage, job *platform.Job) (platform.ServiceBinding, error) {
	return s.bind(ctx, tx, who, a, platform.ServiceBinding{Type: platform.BindingApp, Name: name, InstanceGUID: i.GUID}, false, parameters, job)
}

func (s *Store) bind(ctx context.Context, tx pgx.Tx, who platform.Who, a platform.App, b platform.ServiceBinding, again bool, parameters json.RawMessage, job *platform.Job) (platform.ServiceBinding, error) {
	b.AppGUID, b.SpaceGUID, b.OrgGUID = a.GUID, a.SpaceGUID, a.OrgGUID
	i, err := lockNamed(ctx, tx, who, platform.Read, b.InstanceGUID) // of two who bind at once, the second sees the first
	if err != nil {
		return b, err
	}
	if i.SpaceGUID != a.SpaceGUID {
		shared, err := isSharedWith(ctx, tx, i.GUID, a.SpaceGUID)
		switch {
		case err != nil:
			return b, err
		case !shared:
			return b, platform.ErrNotShared
		}
	}
	if err := s.mayBind(ctx, tx, i, b, parameters); err != nil {
		return b, err
	}
	if err := bindingsFree(ctx, tx, i, `b.instance_guid = $1 and b.app_guid = $2`, i.GUID, a.GUID); err != nil {
		return b, err
	}
	has, err := bindingsOf(ctx, tx, a.GUID)
	if err != nil {
		return b, err
	}
	if err := i.MayBind(b, again, has); err != nil {
		return b, err
	}
	if _, err := tx.Exec(ctx, `delete from service_bindings where instance_guid = $1 and app_guid = $2 and op_type = 'create' and op_state = 'failed'`, i.GUID, a.GUID); err != nil {
		return b, fmt.Errorf("forget failed bindings: %w", err)
	}
	return s.insertBinding(ctx, tx, who, i, b, parameters, job)
}

// lockNamed locks an instance that a request names.
func lockNamed(ctx context.Context, tx pgx.Tx, who platform.Who, do platform.Action, guid string) (platform.ServiceInstance, error) {
	i, err := serviceInstances.lock(ctx, tx, who, do, guid)
	if fault.Is(err, fault.KindNotFound) {
		return i, invalid(serviceInstances.name)
	}
	return i, err
}

// mayBind holds against the rules what is the same for apps and keys.
func (s *Store) mayBind(ctx context.Context, tx pgx.Tx, i platform.ServiceInstance, b platform.ServiceBinding, parameters json.RawMessage) error {
	if err := b.Check(); err != nil {
		return err
	}
	if err := i.Usable(); err != nil {
		return err
	}
	if !i.Managed() {
		if parameters != nil {
			return fault.Unprocessable("Binding parameters are not supported for user-provided service instances.")
		}
		return nil
	}
	o, err := readOffered(ctx, tx, i.PlanGUID, i.SpaceGUID)
	switch {
	case err != nil:
		return err
	case !o.bindable:
		return platform.ErrNotBindable
	}
	return nil
}

// bindingsOf reads the bindings that an app has.
func bindingsOf(ctx context.Context, tx pgx.Tx, app string) ([]platform.ServiceBinding, error) {
	rows, err := tx.Query(ctx, `select `+serviceBindings.columns+` from `+serviceBindings.from+` where t.app_guid = $1`, app)
	if err != nil {
		return nil, fmt.Errorf("read bindings: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (platform.ServiceBinding, error) {
		var b platform.ServiceBinding
		err := row.Scan(serviceBindings.into(&b)...)
		return b, err
	})
}

// bindingsFree refuses while a broker is being asked about one of the bindings b of an instance that fit a condition.
func bindingsFree(ctx context.Context, tx pgx.Tx, i platform.ServiceInstance, fit string, args ...any) error {
	var app string
	err := tx.QueryRow(ctx, `select coalesce(a.name, '') from service_bindings b left join apps a on a.guid = b.app_guid where `+fit+` and b.op_state in ('initial', 'in progress') limit 1`, args...).Scan(&app)
	switch {
	case pg.NoRows(err):
		return nil
	case err != nil:
		return fmt.Errorf("look at bindings: %w", err)
	}
	return platform.ErrBindingBusy(app, i.Name)
}

// createKey makes a key, for those who may develop where the instance lives.
func (s *Store) createKey(ctx context.Context, tx pgx.Tx, who platform.Who, b platform.ServiceBinding, parameters json.RawMessage, job *platform.Job) (platform.ServiceBinding, error) {
	i, err := lockNamed(ctx, tx, who, platform.Develop, b.InstanceGUID)
	if err != nil {
		return b, err
	}
	if !i.Managed() {
		return b, platform.ErrKeyProvided
	}
	b.SpaceGUID, b.OrgGUID = i.SpaceGUID, i.OrgGUID
	if err := s.mayBind(ctx, tx, i, b, parameters); err != nil {
		return b, err
	}
	_, err = tx.Exec(ctx, `delete from service_bindings where instance_guid = $1 and type = 'key' and name = $2 and op_type = 'create' and op_state = 'failed'`, i.GUID, b.Name)
	if err != nil {
		return b, fmt.Errorf("forget failed key: %w", err)
	}
	return s.insertBinding(ctx, tx, who, i, b, parameters, job)
}

// insertBinding writes a binding, and asks the broker for it if there is one.
func (s *Store) insertBinding(ctx context.Context, tx pgx.Tx, who platform.Who, i platform.ServiceInstance, b platform.ServiceBinding, parameters json.RawMessage, job *platform.Job) (platform.ServiceBinding, error) {
	b.GUID = platform.NewGUID() // never one that was used before: the broker may be told to delete that
	state, event := platform.OperationSucceeded, "create"
	if i.Managed() {
		state, event = platform.OperationInitial, "start_create"
	}
	_, err := tx.Exec(ctx, `insert into service_bindings (guid, type, name, instance_guid, app_guid, space_guid, op_state, labels, annotations) values ($1, $2, $3, $4, nullif($5, ''), $6, $7, $8, $9)`,
		b.GUID, b.Type, b.Name, b.InstanceGUID, b.AppGUID, b.SpaceGUID, state, none2(b.Metadata.Labels), none2(b.Metadata.Annotations))
	if err != nil {
		return b, bindingConflict(err, b)
	}
	if err := recordBinding(ctx, tx, who, event, b); err != nil {
		return b, err
	}
	if i.Managed() {
		if job.GUID == "" {
			if *job, err = insertJob(ctx, tx, who, string(platform.BindingCreate), platform.JobProcessing); err != nil {
				return b, err
			}
		}
		if err := s.operate(ctx, tx, who, *job, platform.BindingCreate, b.GUID, platform.Request{Parameters: parameters}); err != nil {
			return b, err
		}
	}
	return serviceBindings.read(ctx, tx, b.GUID)
}

func bindingConflict(err error, b platform.ServiceBinding) error {
	switch constraint, _ := pg.Conflict(err); constraint {
	case "service_key_name":
		return platform.ErrKeyExists(b.Name)
	case "service_binding_app":
		return invalid("App") // it went while we looked
	case "service_binding_space":
		return invalid("Space")
	}
	return fmt.Errorf("write binding: %w", err)
}

// UpdateBinding changes what is noted on a binding.
func (s *Store) UpdateBinding(ctx context.Context, who platform.Who, guid string, change platform.MetadataChange) (platform.ServiceBinding, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.ServiceBinding, error) {
		b, err := serviceBindings.lock(ctx, tx, who, platform.Develop, guid)
		if err != nil {
			return b, err
		}
		b.Metadata.Apply(change)
		if err := b.Metadata.Check(); err != nil {
			return b, err
		}
		if _, err := tx.Exec(ctx, `update service_bindings set labels = $2, annotations = $3, updated_at = now() where guid = $1`, guid, b.Metadata.Labels, b.Metadata.Annotations); err != nil {
			return b, fmt.Errorf("save binding: %w", err)
		}
		if err := recordBinding(ctx, tx, who, "update", b); err != nil {
			return b, err
		}
		return serviceBindings.read(ctx, tx, guid)
	})
}

// DeleteBinding takes a binding away. There is no job for one to what a user provides: it has gone. An app that runs has what it was
// started with until it is started again.
func (s *Store) DeleteBinding(ctx context.Context, who platform.Who, guid string) (*platform.Job, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (*platform.Job, error) {
		b, err := serviceBindings.find(ctx, tx, who, platform.Develop, guid)
		if err != nil {
			return nil, err
		}
		i, err := lockInstanceOf(ctx, tx, b) // first, as whoever binds does
		if err != nil {
			return nil, err
		}
		if err := i.Free(); err != nil {
			return nil, err
		}
		if b, err = serviceBindings.lock(ctx, tx, who, platform.Develop, guid); err != nil {
			return nil, err
		}
		if err := bindingsFree(ctx, tx, i, `b.guid = $1`, guid); err != nil {
			return nil, err
		}
		if !i.Managed() {
			if _, err := tx.Exec(ctx, `delete from service_bindings where guid = $1`, guid); err != nil {
				return nil, fmt.Errorf("delete binding: %w", err)
			}
			return nil, recordBinding(ctx, tx, who, "delete", b)
		}
		if err := begin(ctx, tx, `service_bindings`, guid, "delete"); err != nil {
			return nil, err
		}
		if err := recordBinding(ctx, tx, who, "start_delete", b); err != nil {
			return nil, err
		}
		job, err := s.ask(ctx, tx, who, platform.BindingDelete, guid, platform.Request{})
		return &job, err
	})
}

// lockInstanceOf locks the instance of a binding that was found.
func lockInstanceOf(ctx context.Context, tx pgx.Tx, b platform.ServiceBinding) (platform.ServiceInstance, error) {
	i, err := serviceInstances.collect(ctx, tx, `select `+serviceInstances.columns+` from `+serviceInstances.from+` where t.guid = $1 for update of t`, []any{b.InstanceGUID})
	switch {
	case pg.NoRows(err):
		return i, platform.NotFound(serviceBindings.name) // both have gone
	case err != nil:
		return i, fmt.Errorf("lock service instance: %w", err)
	}
	return i, nil
}

// BindingDetails reads what a binding gives, which not everybody may see.
func (s *Store) BindingDetails(ctx context.Context, who platform.Who, guid string) (platform.BindingDetails, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (platform.BindingDetails, error) {
		var details platform.BindingDetails
		b, err := foundMade(ctx, tx, who, guid)
		if err != nil {
			return details, err
		}
		var given, provided []byte
		err = tx.QueryRow(ctx, `select b.credentials, i.credentials from service_bindings b join service_instances i on i.guid = b.instance_guid where b.guid = $1`, guid).Scan(&given, &provided)
		if err != nil {
			return details, fmt.Errorf("read binding: %w", err)
		}
		if provided != nil {
			err = s.open(provided, "service instance "+b.InstanceGUID, &details.Credentials)
		} else {
			err = s.open(given, "service binding "+guid, &details)
		}
		if err != nil {
			return details, err
		}
		details.Credentials = object(details.Credentials)
		return details, recordBinding(ctx, tx, who, "show", b)
	})
}

// foundMade finds a binding for somebody who wants to know its secrets. One that was not made has none.
func foundMade(ctx context.Context, tx pgx.Tx, who platform.Who, guid string) (platform.ServiceBinding, error) {
	b, err := serviceBindings.find(ctx, tx, who, platform.ReadSecrets, guid)
	switch o := b.LastOperation; {
	case err != nil:
		return b, err
	case o.Failed():
		return b, fault.NotFound("The creation of the service credential binding has failed: it has no credentials. Delete it, and bind again.")
	case o.Type == "create" && o.Running():
		return b, fault.NotFound("The service credential binding is being created. Ask again when its last operation has succeeded.")
	}
	return b, nil
}

// BindingParameters reads what the broker said that a binding has.
func (s *Store) BindingParameters(ctx context.Context, who platform.Who, guid string) (json.RawMessage, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (json.RawMessage, error) {
		b, err := foundMade(ctx, tx, who, guid)
		if err != nil {
			return nil, err
		}
		i, err := serviceInstances.read(ctx, tx, b.InstanceGUID)
		if err != nil {
			return nil, err
		}
		if !i.Managed() {
			return nil, platform.ErrNoBindingSettings
		}
		o, err := readOffered(ctx, tx, i.PlanGUID, i.SpaceGUID)
		switch {
		case err != nil:
			return nil, err
		case !o.bindingsRetrievable:
			return nil, platform.ErrNoBindingSettings
		}
		return s.unsealed(ctx, tx, `select parameters from service_bindings where guid = $1`, guid, "service binding parameters "+guid)
	})
}
