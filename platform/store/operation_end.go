package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

// ErrOvertaken is for a worker that took longer than it had: somebody else has gone on with the operation.
var ErrOvertaken = errors.New("somebody else has gone on with the operation")

// settle writes what became of a task, unless somebody else has gone on with it.
func (s *Store) settle(ctx context.Context, t Errand, write func(pgx.Tx) error) error {
	return pg.Do(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `update service_operations set step = step + 1, working = false where guid = $1 and step = $2`, t.GUID, t.step)
		switch {
		case err != nil:
			return fmt.Errorf("lock operation: %w", err)
		case tag.RowsAffected() == 0:
			return ErrOvertaken
		}
		return write(tx)
	})
}

// Pause is where an operation waits.
type Pause struct {
	Stage        platform.Stage
	Token        string
	Polls        int
	Wait         time.Duration
	Deadline     time.Time // zero: none yet
	Words        string    // how far it is; empty stays
	DashboardURL string    // empty stays
}

// Park puts an operation off.
func (s *Store) Park(ctx context.Context, t Errand, p Pause) error {
	var deadline *time.Time
	if !p.Deadline.IsZero() {
		deadline = &p.Deadline
	}
	return s.settle(ctx, t, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `update service_operations set stage = $2, token = $3, polls = $4, deadline = $5, due_at = clock_timestamp() + $6 where guid = $1`,
			t.GUID, p.Stage, p.Token, p.Polls, deadline, p.Wait)
		if err != nil {
			return fmt.Errorf("park operation: %w", err)
		}
		if err := progress(ctx, tx, t, p); err != nil || p.Stage == platform.StageAsk {
			return err
		}
		if _, err := tx.Exec(ctx, `update jobs set state = $2, updated_at = now() where guid = $1 and state = $3`, t.JobGUID, platform.JobPolling, platform.JobProcessing); err != nil {
			return fmt.Errorf("save job: %w", err)
		}
		return nil
	})
}

func progress(ctx context.Context, tx pgx.Tx, t Errand, p Pause) error {
	var err error
	switch {
	case t.Kind.OfBinding():
		_, err = tx.Exec(ctx, `update service_bindings set op_description = coalesce(nullif($2, ''), op_description), op_updated_at = now() where guid = $1`, t.Subject, p.Words)
	case t.Binding == "":
		_, err = tx.Exec(ctx, `update service_instances set op_description = coalesce(nullif($2, ''), op_description), dashboard_url = coalesce(nullif($3, ''), dashboard_url),
			op_updated_at = now() where guid = $1`, t.Subject, p.Words, p.DashboardURL)
	}
	if err != nil {
		return fmt.Errorf("write progress: %w", err)
	}
	return nil
}

// Result is what a broker gave.
type Result struct {
	Words        string
	DashboardURL string
	Details      platform.BindingDetails
	Parameters   json.RawMessage
	Catalog      platform.Catalog
}

// Succeed ends an operation as it was meant. A catalog that cannot be used is a fault, and changes nothing.
func (s *Store) Succeed(ctx context.Context, t Errand, r Result) error {
	return s.settle(ctx, t, func(tx pgx.Tx) error {
		if t.Binding != "" {
			return bindingWent(ctx, tx, t)
		}
		there, warnings, err := s.write(ctx, tx, t, r)
		if err != nil {
			return err
		}
		if !there && !t.Kind.Deletes() {
			return vanished(ctx, tx, t)
		}
		return end(ctx, tx, t, nil, warnings)
	})
}

// write makes the subject what the operation was for, and tells whether it was still there.
func (s *Store) write(ctx context.Context, tx pgx.Tx, t Errand, r Result) (there bool, warnings []string, err error) {
	switch t.Kind {
	case platform.InstanceCreate, platform.InstanceUpdate:
		return s.writeInstance(ctx, tx, t, r)
	case platform.BindingCreate:
		there, err = s.writeBinding(ctx, tx, t, r)
	case platform.InstanceDelete:
		there, err = deleteInstance(ctx, tx, t)
	case platform.BindingDelete:
		there, err = deleteBinding(ctx, tx, t, t.Subject)
	default:
		return s.writeBroker(ctx, tx, t, r.Catalog)
	}
	return there, nil, err
}

func (s *Store) writeInstance(ctx context.Context, tx pgx.Tx, t Errand, r Result) (there bool, warnings []string, err error) {
	sealed, err := s.sealParameters(r.Parameters, "service instance parameters "+t.Subject)
	if err != nil {
		return false, nil, err
	}
	var named bool
	err = tx.QueryRow(ctx, `update service_instances i set op_state = $2, op_description = $3, op_updated_at = now(), updated_at = now(),
			dashboard_url = coalesce(nullif($4, ''), dashboard_url), parameters = coalesce($5, parameters), maintenance_info = coalesce($6, maintenance_info),
			plan_guid = coalesce(nullif($7, ''), plan_guid), plan_id = $8, tags = coalesce($9, tags),
			name = case when exists(select from service_instances x where x.space_guid = i.space_guid and x.name = $10 and x.guid <> i.guid) then name else coalesce($10, name) end
		where guid = $1 returning $10::text is null or name = $10`,
		t.Subject, platform.OperationSucceeded, r.Words, r.DashboardURL, sealed, t.Maintenance, t.Request.PlanGUID, t.NewPlanID, t.Request.Tags, t.Request.Name).Scan(&named)
	switch {
	case pg.NoRows(err):
		return false, nil, nil
	case err != nil:
		return false, nil, instanceConflict(err, t.Instance.Name) // the plan may have left the catalog meanwhile
	}
	if !named {
		warnings = []string{fmt.Sprintf("The service instance keeps its name: another one took the name '%s' meanwhile.", *t.Request.Name)}
	}
	i, err := serviceInstances.read(ctx, tx, t.Subject)
	if err != nil {
		return true, nil, err
	}
	kind := map[platform.OperationKind]string{platform.InstanceCreate: "create", platform.InstanceUpdate: "update"}[t.Kind]
	return true, warnings, recordFor(ctx, tx, t, kind, instanceTarget(i), i.OrgGUID, i.SpaceGUID)
}

// sealParameters is nil for what the broker did not tell.
func (s *Store) sealParameters(parameters json.RawMessage, context string) ([]byte, error) {
	if parameters == nil {
		return nil, nil
	}
	return s.seal(parameters, context)
}

func (s *Store) writeBinding(ctx context.Context, tx pgx.Tx, t Errand, r Result) (there bool, err error) {
	details, err := s.seal(r.Details, "service binding "+t.Subject)
	if err != nil {
		return false, err
	}
	parameters, err := s.sealParameters(r.Parameters, "service binding parameters "+t.Subject)
	if err != nil {
		return false, err
	}
	tag, err := tx.Exec(ctx, `update service_bindings set op_state = $2, op_description = $3, op_updated_at = now(), updated_at = now(), credentials = $4, parameters = $5 where guid = $1`,
		t.Subject, platform.OperationSucceeded, r.Words, details, parameters)
	switch {
	case err != nil:
		return false, fmt.Errorf("write binding: %w", err)
	case tag.RowsAffected() == 0:
		return false, nil
	}
	return true, recordFor(ctx, tx, t, "create", bindingTarget(t.Bound), t.Bound.OrgGUID, t.Bound.SpaceGUID)
}

// recordFor writes an event in the name of whoever asked for the operation.
func recordFor(ctx context.Context, tx pgx.Tx, t Errand, kind string, target platform.Actor, org, space string) error {
	e := platform.On("audit."+target.Type+"."+kind, target, org, space)
	e.Actor = t.Request.Who
	return insertEvent(ctx, tx, e, "")
}

// deleteInstance removes an instance. What the broker was not asked for may be an orphan, and stays one.
func deleteInstance(ctx context.Context, tx pgx.Tx, t Errand) (there bool, err error) {
	if !t.Idle {
		if err := unorphan(ctx, tx, t.Subject, ""); err != nil {
			return false, err
		}
	}
	tag, err := tx.Exec(ctx, `update service_instances set held = false where guid = $1`, t.Subject)
	if err != nil {
		return false, fmt.Errorf("let service instance go: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return false, nil
	}
	if _, err := tx.Exec(ctx, `delete from service_instances where guid = $1`, t.Subject); err != nil {
		return false, fmt.Errorf("delete service instance: %w", err)
	}
	return true, recordFor(ctx, tx, t, "delete", instanceTarget(t.Instance), t.Instance.OrgGUID, t.Instance.SpaceGUID)
}

// deleteBinding removes a binding. What the broker was not asked for may be an orphan, and stays one.
func deleteBinding(ctx context.Context, tx pgx.Tx, t Errand, guid string) (there bool, err error) {
	if !t.Idle {
		if err := unorphan(ctx, tx, t.Instance.GUID, guid); err != nil {
			return false, err
		}
	}
	tag, err := tx.Exec(ctx, `update service_bindings set held = false where guid = $1`, guid)
	if err != nil {
		return false, fmt.Errorf("let binding go: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return false, nil
	}
	b, err := serviceBindings.read(ctx, tx, guid)
	if err != nil {
		return false, err
	}
	if _, err := tx.Exec(ctx, `delete from service_bindings where guid = $1`, guid); err != nil {
		return false, fmt.Errorf("delete binding: %w", err)
	}
	return true, recordFor(ctx, tx, t, "delete", bindingTarget(b), b.OrgGUID, b.SpaceGUID)
}

// bindingWent goes on with the deletion of an instance when the broker has deleted one of its bindings.
func bindingWent(ctx context.Context, tx pgx.Tx, t Errand) error {
	if _, err := deleteBinding(ctx, tx, t, t.Binding); err != nil {
		return err
	}
	return goOn(ctx, tx, t)
}

// passBy goes on with the deletion of an instance when the broker has not deleted a binding that nobody has: it may not have it either, and
// if it has it says so when it is asked for the instance. It tells whether it was such a one.
func passBy(ctx context.Context, tx pgx.Tx, t Errand) (bool, error) {
	var had bool
	if err := tx.QueryRow(ctx, `select exists(select from service_bindings where guid = $1 and held)`, t.Binding).Scan(&had); err != nil || had {
		return false, err
	}
	if _, err := tx.Exec(ctx, `update service_orphans set refused_to = $3 where instance_guid = $1 and binding_guid = $2`, t.Subject, t.Binding, t.GUID); err != nil {
		return false, fmt.Errorf("pass by orphan: %w", err)
	}
	return true, goOn(ctx, tx, t)
}

// goOn takes the deletion of an instance from one of its bindings to what comes next.
func goOn(ctx context.Context, tx pgx.Tx, t Errand) error {
	_, err := tx.Exec(ctx, `update service_operations set stage = $2, binding = '', token = '', asked_at = null, polls = 0, deadline = null, due_at = clock_timestamp() where guid = $1`, t.GUID, platform.StageAsk)
	if err != nil {
		return fmt.Errorf("go on with operation: %w", err)
	}
	return nil
}

// writeBroker takes over what a broker was to become, and what it offers.
func (s *Store) writeBroker(ctx context.Context, tx pgx.Tx, t Errand, c platform.Catalog) (there bool, warnings []string, err error) {
	var sealed []byte
	if t.Request.Account != nil {
		if sealed, err = s.seal(t.Request.Account, "service broker "+t.Subject); err != nil {
			return false, nil, err
		}
	}
	tag, err := tx.Exec(ctx, `update service_brokers set state = $2, url = coalesce(nullif($3, ''), url), name = coalesce($4, name), credentials = coalesce($5, credentials), updated_at = now() where guid = $1`,
		t.Subject, platform.BrokerAvailable, t.Request.URL, t.Request.Name, sealed)
	switch name, _ := pg.Conflict(err); {
	case name == "service_broker_name":
		return false, nil, platform.ErrBrokerExists
	case err != nil:
		return false, nil, fmt.Errorf("write service broker: %w", err)
	case tag.RowsAffected() == 0:
		return false, nil, nil
	}
	warnings, err = applyCatalog(ctx, tx, t.Broker, c)
	return true, warnings, err
}
