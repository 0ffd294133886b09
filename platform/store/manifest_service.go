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

// applyServices binds an app, which is locked, to the services that a manifest names. What it is bound to already stays as it is, named or
// not. What brokers have to be asked becomes part of the job.
func (s *Store) applyServices(ctx context.Context, tx pgx.Tx, who platform.Who, a platform.App, wanted []platform.ManifestService, job *platform.Job) error {
	named := map[string]bool{}
	for _, m := range wanted {
		if named[m.Name] {
			continue
		}
		named[m.Name] = true
		if err := s.applyService(ctx, tx, who, a, m, job); err != nil {
			return about("services", err)
		}
	}
	return nil
}

func (s *Store) applyService(ctx context.Context, tx pgx.Tx, who platform.Who, a platform.App, m platform.ManifestService, job *platform.Job) error {
	i, err := instanceNamed(ctx, tx, a.SpaceGUID, m.Name)
	if err != nil {
		return err
	}
	var bound bool
	if err := tx.QueryRow(ctx, `select exists(select from service_bindings b where b.app_guid = $1 and b.instance_guid = $2 and `+isBound+`)`, a.GUID, i.GUID).Scan(&bound); err != nil {
		return fmt.Errorf("find binding: %w", err)
	}
	if bound {
		return nil
	}
	var parameters json.RawMessage
	if m.Parameters != nil {
		if parameters, err = json.Marshal(m.Parameters); err != nil {
			return fmt.Errorf("encode parameters: %w", err)
		}
	}
	_, err = s.bindApp(ctx, tx, who, a, i, m.BindingName, parameters, job)
	switch broken := fault.From(err); broken.Code {
	case "CF-AsyncServiceInstanceOperationInProgress", "CF-AsyncServiceBindingOperationInProgress":
		return fault.Unprocessable("%s Wait until it has ended (proa service %s), and apply the manifest again.", broken.Detail, m.Name)
	}
	return err
}

// instanceNamed finds the service of this name that the apps of a space can be bound to: its own, or one that is shared with it.
func instanceNamed(ctx context.Context, tx pgx.Tx, space, name string) (platform.ServiceInstance, error) {
	i, err := serviceInstances.collect(ctx, tx, `select `+serviceInstances.columns+` from `+serviceInstances.from+` where t.name = $2
		and (t.space_guid = $1 or t.guid in (select x.instance_guid from service_instance_shares x where x.space_guid = $1)) order by t.space_guid = $1 desc, t.guid limit 1`, []any{space, name})
	if pg.NoRows(err) {
		return i, fault.Unprocessable("there is no service instance '%s' in this space. Create it with: proa create-service OFFERING PLAN %s", name, name)
	}
	if err != nil {
		return i, fmt.Errorf("find service instance: %w", err)
	}
	return i, nil
}

// doneUnlessAsked completes a job that has asked no broker anything. Whoever asks them ends any other.
func doneUnlessAsked(ctx context.Context, tx pgx.Tx, job platform.Job) (platform.Job, error) {
	var asked bool
	if err := tx.QueryRow(ctx, `select exists(select from service_operations where job_guid = $1)`, job.GUID).Scan(&asked); err != nil {
		return job, fmt.Errorf("find operations: %w", err)
	}
	if asked {
		return job, nil
	}
	job.State = platform.JobComplete
	return job, saveJob(ctx, tx, job)
}
