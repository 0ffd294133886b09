package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

// UpdateServiceInstance changes an instance. What its broker has to agree to becomes an operation, and is as it was until then.
func (s *Store) UpdateServiceInstance(ctx context.Context, who platform.Who, guid string, c platform.InstanceChange) (Asked[platform.ServiceInstance], error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (Asked[platform.ServiceInstance], error) {
		var changed Asked[platform.ServiceInstance]
		i, err := serviceInstances.lock(ctx, tx, who, platform.Develop, guid)
		if err != nil {
			return changed, err
		}
		if !c.OnlyNotes() {
			if err := i.Free(); err != nil {
				return changed, err
			}
		}
		if err := mayRename(ctx, tx, i, &c); err != nil {
			return changed, err
		}
		if i.Managed() {
			changed.Job, err = s.changeManaged(ctx, tx, who, i, c)
		} else {
			err = s.changeProvided(ctx, tx, who, i, c)
		}
		if err != nil {
			return changed, err
		}
		changed.Record, err = serviceInstances.read(ctx, tx, guid)
		return changed, err
	})
}

// mayRename refuses a name that is taken, and another name for what others know by this one. A name that stays is no change.
func mayRename(ctx context.Context, tx pgx.Tx, i platform.ServiceInstance, c *platform.InstanceChange) error {
	if c.Name != nil && *c.Name == i.Name {
		c.Name = nil
	}
	if c.Name == nil {
		return nil
	}
	if wanted := (platform.ServiceInstance{Name: *c.Name}); wanted.Check() != nil { // before it reaches a statement
		return wanted.Check()
	}
	shared, err := isShared(ctx, tx, i.GUID)
	switch {
	case err != nil:
		return err
	case shared:
		return fault.Unprocessable("Shared service instances cannot be renamed. Unshare %s first.", i.Name)
	}
	return nameFree(ctx, tx, i.SpaceGUID, *c.Name)
}

func (s *Store) changeProvided(ctx context.Context, tx pgx.Tx, who platform.Who, i platform.ServiceInstance, c platform.InstanceChange) error {
	if c.PlanGUID != "" || c.Parameters != nil || c.Maintenance != nil {
		return fault.Unprocessable("A user-provided service instance has no plan, parameters or maintenance_info: nobody makes it but its user.")
	}
	if err := i.Apply(c); err != nil {
		return err
	}
	if c.Credentials != nil {
		sealed, err := s.seal(c.Credentials, "service instance "+i.GUID)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `update service_instances set credentials = $2 where guid = $1`, i.GUID, sealed); err != nil {
			return fmt.Errorf("save credentials: %w", err)
		}
	}
	if err := begun(ctx, tx, i.GUID, c); err != nil {
		return err
	}
	return saveInstance(ctx, tx, who, i)
}

// begun writes that something was updated at once. Notes are no operation.
func begun(ctx context.Context, tx pgx.Tx, guid string, c platform.InstanceChange) error {
	if c.OnlyNotes() {
		return nil
	}
	_, err := tx.Exec(ctx, `update service_instances set op_type = 'update', op_state = $2, op_description = '', op_created_at = now(), op_updated_at = now() where guid = $1`, guid, platform.OperationSucceeded)
	if err != nil {
		return fmt.Errorf("save operation: %w", err)
	}
	return nil
}

func saveInstance(ctx context.Context, tx pgx.Tx, who platform.Who, i platform.ServiceInstance) error {
	_, err := tx.Exec(ctx, `update service_instances set name = $2, tags = $3, labels = $4, annotations = $5, updated_at = now() where guid = $1`,
		i.GUID, i.Name, none(i.Tags), none2(i.Metadata.Labels), none2(i.Metadata.Annotations))
	if err != nil {
		return instanceConflict(err, i.Name)
	}
	return recordInstance(ctx, tx, who, "update", i, nil)
}

// changeManaged changes what a broker made: names, tags and notes at once, the rest when the broker has agreed, and then all together.
func (s *Store) changeManaged(ctx context.Context, tx pgx.Tx, who platform.Who, i platform.ServiceInstance, c platform.InstanceChange) (*platform.Job, error) {
	if c.Credentials != nil {
		return nil, fault.Unprocessable("Credentials can only be set on a user-provided service instance: those of '%s' come from its broker.", i.Name)
	}
	if c.PlanGUID == i.PlanGUID {
		c.PlanGUID = ""
	}
	if c.Maintenance != nil && i.Maintenance != nil && c.Maintenance.Version == i.Maintenance.Version {
		c.Maintenance = nil
	}
	wanted := i
	if err := wanted.Apply(c); err != nil {
		return nil, err
	}
	o, err := readOffered(ctx, tx, i.PlanGUID, i.SpaceGUID)
	if err != nil {
		return nil, err
	}
	if c.PlanGUID == "" && c.Parameters == nil && c.Maintenance == nil && (c.Name == nil || !o.contextUpdates || i.LastOperation.Failed()) {
		return nil, saveInstance(ctx, tx, who, wanted)
	}
	if err := i.Usable(); err != nil {
		return nil, err
	}
	request, err := requestUpdate(ctx, tx, i, c, o)
	if err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, `update service_instances set labels = $2, annotations = $3 where guid = $1`, i.GUID, wanted.Metadata.Labels, wanted.Metadata.Annotations); err != nil {
		return nil, fmt.Errorf("save notes: %w", err)
	}
	if err := begin(ctx, tx, `service_instances`, i.GUID, "update"); err != nil {
		return nil, err
	}
	if err := recordInstance(ctx, tx, who, "start_update", i, nil); err != nil {
		return nil, err
	}
	job, err := s.ask(ctx, tx, who, platform.InstanceUpdate, i.GUID, request)
	return &job, err
}

// requestUpdate is what a broker is asked, if the plans allow it.
func requestUpdate(ctx context.Context, tx pgx.Tx, i platform.ServiceInstance, c platform.InstanceChange, has offered) (platform.Request, error) {
	request := platform.Request{Parameters: c.Parameters, Name: c.Name, Tags: c.Tags, PlanGUID: c.PlanGUID}
	if c.PlanGUID != "" {
		wants, err := readOffered(ctx, tx, c.PlanGUID, i.SpaceGUID)
		switch {
		case err != nil:
			return request, err
		case !wants.usable:
			return request, platform.ErrInvalidPlan
		case wants.offeringGUID != has.offeringGUID:
			return request, platform.ErrPlanOfOther
		case !has.updateable:
			return request, platform.ErrPlanFixed
		case c.Maintenance != nil:
			return request, platform.ErrUpgradeAndPlan
		}
	} else if c.Parameters != nil && !has.usable {
		return request, fault.Unprocessable("Cannot update parameters of a service instance that belongs to inaccessible plan")
	}
	if c.Maintenance != nil {
		switch {
		case has.maintenance == nil:
			return request, platform.ErrNoUpgrades
		case has.maintenance.Version != c.Maintenance.Version:
			return request, platform.ErrUnknownUpgrade
		}
		request.Maintenance = has.maintenance
	}
	return request, nil
}
