package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/platform"
)

// Operate is the job that takes an operation on, until it has ended.
type Operate struct {
	GUID string `json:"guid"` // of the operation
}

// Kind names the job.
func (Operate) Kind() string { return "operate" }

// InsertOpts sends it to the workers of services. They wait by putting it off, which costs it no try: those are for workers that died.
func (Operate) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: OperateQueue, MaxAttempts: 1000}
}

// OperateQueue is where the jobs wait.
const OperateQueue = "services"

// operate begins an operation in the transaction of what it is about. The job ends when all of its operations have.
func (s *Store) operate(ctx context.Context, tx pgx.Tx, who platform.Who, job platform.Job, kind platform.OperationKind, subject string, request platform.Request) error {
	guid := platform.NewGUID()
	request.Who = who.Actor()
	sealed, err := s.seal(request, "service operation "+guid)
	if err != nil {
		return err
	}
	if err := keepPlan(ctx, tx, request.PlanGUID); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `insert into service_operations (guid, job_guid, kind, subject, request, plan_guid) values ($1, $2, $3, $4, $5, $6)`, guid, job.GUID, kind, subject, sealed, request.PlanGUID); err != nil {
		return fmt.Errorf("write operation: %w", err)
	}
	if _, err := s.queue.InsertTx(ctx, tx, Operate{GUID: guid}, nil); err != nil {
		return fmt.Errorf("queue operation: %w", err)
	}
	return nil
}

// keepPlan holds the plan that an operation leads to until the operation says so itself.
func keepPlan(ctx context.Context, tx pgx.Tx, plan string) error {
	if plan == "" {
		return nil
	}
	tag, err := tx.Exec(ctx, `select from service_plans where guid = $1 for key share`, plan)
	switch {
	case err != nil:
		return fmt.Errorf("lock service plan: %w", err)
	case tag.RowsAffected() == 0:
		return platform.ErrInvalidPlan
	}
	return nil
}

// Errand is an operation that a worker has taken on, with all that the broker has to be told.
type Errand struct {
	platform.Operation

	Again   bool          // it was asked before, by somebody who did not live to say what came of it
	NotDue  time.Duration // it is not to be worked before; then nothing below is filled
	Missing bool          // its subject has gone meanwhile
	Idle    bool          // the broker has nothing of it: there is nothing to ask
	Refused string        // why the broker must not be asked; empty: it may

	Broker   platform.ServiceBroker
	Account  platform.BrokerAccount
	Instance platform.ServiceInstance
	Bound    platform.ServiceBinding // the subject, or one that goes with its instance

	ServiceID, PlanID    string // that the instance has at the broker
	NewPlanID            string // that it shall have; as before unless a change says otherwise
	Maintenance          *platform.Maintenance
	OrgName, SpaceName   string // of the subject
	AppName              string
	MaxPolling           time.Duration // as the plan says; 0: it does not
	InstancesRetrievable bool
	BindingsRetrievable  bool

	step int
	held bool
}

// Asks is the kind of what the broker is asked now: with an instance, first its bindings go.
func (t *Errand) Asks() platform.OperationKind {
	if t.Binding != "" {
		return platform.BindingDelete
	}
	return t.Kind
}

// ErrEnded is for an operation that has ended: nothing is left to do.
var ErrEnded = errors.New("the operation has ended")

// Claim takes an operation on for a while. That the broker is going to be asked is written before it is: whoever finds the operation
// after us knows that it may know of it. When the time is over, others count us as dead. Of a broker that is being asked enough already it
// is put off.
func (s *Store) Claim(ctx context.Context, guid string, lease time.Duration) (Errand, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (Errand, error) {
		t, sealed, err := lockOperation(ctx, tx, guid)
		if err != nil || t.NotDue > 0 {
			return t, err
		}
		if err := s.open(sealed, "service operation "+guid, &t.Request); err != nil {
			return t, err
		}
		if err := s.readSubject(ctx, tx, &t); err != nil {
			return t, err
		}
		if t.NotDue, err = crowded(ctx, tx, &t); err != nil || t.NotDue > 0 {
			return t, err
		}
		if err := mark(ctx, tx, &t); err != nil {
			return t, err
		}
		err = take(ctx, tx, &t, lease)
		return t, err
	})
}

// atOnce is how many requests a broker is sent at once, by all workers together: one that is slow should not keep the others waiting.
const atOnce = 10

// crowded puts an operation off while its broker is being asked enough. Whoever claims one of the same broker waits for us, and counts us.
func crowded(ctx context.Context, tx pgx.Tx, t *Errand) (time.Duration, error) {
	if !t.asks() {
		return 0, nil
	}
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('service broker ' || $1::text, 0))`, t.Broker.GUID); err != nil {
		return 0, fmt.Errorf("lock service broker: %w", err)
	}
	tag, err := tx.Exec(ctx, `update service_operations set due_at = clock_timestamp() + $2 where guid = $1
		and (select count(*) from service_operations where broker_guid = $3 and working and due_at > clock_timestamp()) >= $4`, t.GUID, time.Second, t.Broker.GUID, atOnce)
	switch {
	case err != nil:
		return 0, fmt.Errorf("count requests: %w", err)
	case tag.RowsAffected() == 0:
		return 0, nil
	}
	return time.Second, nil
}

// asks tells whether the broker is going to be asked.
func (t *Errand) asks() bool { return !t.Missing && !t.Idle && t.Refused == "" }

func lockOperation(ctx context.Context, tx pgx.Tx, guid string) (Errand, []byte, error) {
	t := Errand{Operation: platform.Operation{GUID: guid}}
	var sealed []byte
	var asked, deadline *time.Time
	var wait float64
	err := tx.QueryRow(ctx, `select job_guid, kind, subject, request, stage, asked_at, token, polls, binding, deadline, created_at, step,
			extract(epoch from due_at - clock_timestamp())::float8 from service_operations where guid = $1 for update`, guid).
		Scan(&t.JobGUID, &t.Kind, &t.Subject, &sealed, &t.Stage, &asked, &t.Token, &t.Polls, &t.Binding, &deadline, &t.CreatedAt, &t.step, &wait)
	switch {
	case pg.NoRows(err):
		return t, nil, ErrEnded
	case err != nil:
		return t, nil, fmt.Errorf("lock operation: %w", err)
	}
	if asked != nil {
		t.AskedAt, t.Again = *asked, true
	}
	if deadline != nil {
		t.Deadline = *deadline
	}
	t.NotDue = max(time.Duration(wait*float64(time.Second)), 0)
	return t, sealed, nil
}

// readSubject fills what the broker is told.
func (s *Store) readSubject(ctx context.Context, tx pgx.Tx, t *Errand) error {
	switch {
	case t.Kind.OfBroker():
		return s.readBroker(ctx, tx, t)
	case t.Kind.OfBinding():
		return s.readBinding(ctx, tx, t)
	}
	if err := s.readInstance(ctx, tx, t, t.Subject); err != nil || t.Missing {
		return err
	}
	t.Idle = t.Kind == platform.InstanceDelete && !t.held
	if t.Kind == platform.InstanceDelete {
		return nextBinding(ctx, tx, t)
	}
	return readPlan(ctx, tx, t)
}

func (s *Store) readBroker(ctx context.Context, tx pgx.Tx, t *Errand) error {
	var sealed []byte
	b := &t.Broker
	err := tx.QueryRow(ctx, `select guid, name, url, coalesce(space_guid, ''), state, credentials from service_brokers where guid = $1 for update`, t.Subject).
		Scan(&b.GUID, &b.Name, &b.URL, &b.SpaceGUID, &b.State, &sealed)
	switch {
	case pg.NoRows(err):
		t.Missing = true
		return nil
	case err != nil:
		return fmt.Errorf("lock service broker: %w", err)
	}
	if t.Request.URL != "" {
		b.URL = t.Request.URL
	}
	if t.Request.Account != nil {
		t.Account = *t.Request.Account
		return nil
	}
	return s.open(sealed, "service broker "+b.GUID, &t.Account)
}

func (s *Store) readInstance(ctx context.Context, tx pgx.Tx, t *Errand, guid string) error {
	var sealed []byte
	var polling int
	i, b := &t.Instance, &t.Broker
	err := tx.QueryRow(ctx, `select i.guid, i.name, i.plan_guid, i.maintenance_info, i.held, i.service_id, i.plan_id, s.guid, s.name, s.org_guid, r.name,
			p.max_polling, o.instances_retrievable, o.bindings_retrievable, b.guid, b.name, b.url, b.credentials
		from service_instances i join spaces s on s.guid = i.space_guid join orgs r on r.guid = s.org_guid join service_plans p on p.guid = i.plan_guid
		join service_offerings o on o.guid = p.offering_guid join service_brokers b on b.guid = o.broker_guid where i.guid = $1 for update of i`, guid).
		Scan(&i.GUID, &i.Name, &i.PlanGUID, &i.Maintenance, &t.held, &t.ServiceID, &t.PlanID, &i.SpaceGUID, &t.SpaceName, &i.OrgGUID, &t.OrgName,
			&polling, &t.InstancesRetrievable, &t.BindingsRetrievable, &b.GUID, &b.Name, &b.URL, &sealed)
	switch {
	case pg.NoRows(err):
		t.Missing = true
		return nil
	case err != nil:
		return fmt.Errorf("lock service instance: %w", err)
	}
	t.NewPlanID, t.MaxPolling = t.PlanID, time.Duration(polling)*time.Second
	return s.open(sealed, "service broker "+b.GUID, &t.Account)
}

// readPlan reads the plan that an instance is to have, as it is now. Nobody begins to change to one that has left the catalog; whoever has
// begun goes on.
func readPlan(ctx context.Context, tx pgx.Tx, t *Errand) error {
	plan := t.Instance.PlanGUID
	if t.Request.PlanGUID != "" {
		plan = t.Request.PlanGUID
	}
	var polling int
	var newest *platform.Maintenance
	var active bool
	err := tx.QueryRow(ctx, `select unique_id, max_polling, maintenance_info, active from service_plans where guid = $1`, plan).Scan(&t.NewPlanID, &polling, &newest, &active)
	switch begun := t.Stage != platform.StageAsk || t.Again; {
	case err != nil && !pg.NoRows(err):
		return fmt.Errorf("read service plan: %w", err)
	case err != nil && t.Stage == platform.StageAsk, !active && !begun && t.Request.PlanGUID != "":
		t.Refused = "The service plan is no longer in the catalog of the service broker. Choose another one."
		return nil
	}
	t.MaxPolling = time.Duration(polling) * time.Second
	switch {
	case t.Request.Maintenance != nil:
		t.Maintenance = t.Request.Maintenance
	case t.Kind == platform.InstanceCreate || t.Request.PlanGUID != "":
		t.Maintenance = newest
	}
	return nil
}

// nextBinding finds what has to go before the instance: its bindings, and those that the broker may have though we do not, once. One that is
// being deleted stays the next until it has gone.
func nextBinding(ctx context.Context, tx pgx.Tx, t *Errand) error {
	if t.Stage != platform.StageAsk {
		return nil
	}
	var guid string
	err := tx.QueryRow(ctx, `select guid from (select guid, created_at from service_bindings where instance_guid = $1 and held
		union all select binding_guid, created_at from service_orphans where instance_guid = $1 and binding_guid <> '' and refused_to <> $3) b
		order by guid = $2 desc, created_at, guid limit 1`, t.Subject, t.Binding, t.GUID).Scan(&guid)
	if err != nil && !pg.NoRows(err) {
		return fmt.Errorf("find bindings: %w", err)
	}
	if t.Binding != guid {
		t.Binding, t.Again = guid, false
	}
	t.Idle = t.Idle && guid == ""
	return nil
}

func (s *Store) readBinding(ctx context.Context, tx pgx.Tx, t *Errand) error {
	b := &t.Bound
	err := tx.QueryRow(ctx, `select instance_guid from service_bindings where guid = $1`, t.Subject).Scan(&b.InstanceGUID)
	switch {
	case pg.NoRows(err):
		t.Missing = true
		return nil
	case err != nil:
		return fmt.Errorf("find binding: %w", err)
	}
	if err := s.readInstance(ctx, tx, t, b.InstanceGUID); err != nil || t.Missing { // first, as all do
		return err
	}
	err = tx.QueryRow(ctx, `select b.guid, b.type, b.name, b.instance_guid, coalesce(b.app_guid, ''), coalesce(a.name, ''), b.space_guid, s.name, s.org_guid, r.name, b.held
		from service_bindings b join spaces s on s.guid = b.space_guid join orgs r on r.guid = s.org_guid left join apps a on a.guid = b.app_guid where b.guid = $1 for update of b`, t.Subject).
		Scan(&b.GUID, &b.Type, &b.Name, &b.InstanceGUID, &b.AppGUID, &t.AppName, &b.SpaceGUID, &t.SpaceName, &b.OrgGUID, &t.OrgName, &t.held)
	switch {
	case pg.NoRows(err):
		t.Missing = true
		return nil
	case err != nil:
		return fmt.Errorf("lock binding: %w", err)
	}
	t.Idle = t.Kind == platform.BindingDelete && !t.held
	return nil
}

// mark writes on the subject that the broker is being asked, and with what is to be made that the broker may have it.
func mark(ctx context.Context, tx pgx.Tx, t *Errand) error {
	if !t.asks() || t.Stage != platform.StageAsk || t.Kind.OfBroker() {
		return nil
	}
	sql := `update service_instances set held = held or $2, op_state = $3, op_updated_at = now() where guid = $1`
	if t.Kind.OfBinding() {
		sql = `update service_bindings set held = held or $2, op_state = $3, op_updated_at = now() where guid = $1`
	}
	if _, err := tx.Exec(ctx, sql, t.Subject, t.Kind.Creates(), platform.OperationRunning); err != nil {
		return fmt.Errorf("mark as asked: %w", err)
	}
	return nil
}

// take writes who works on the operation, by its number, and until when.
func take(ctx context.Context, tx pgx.Tx, t *Errand, lease time.Duration) error {
	first := t.Stage == platform.StageAsk && t.asks()
	err := tx.QueryRow(ctx, `update service_operations set step = step + 1, due_at = clock_timestamp() + $2, binding = $3, broker_guid = $6, working = $7,
			asked_at = case when not $4 then asked_at when $5 then coalesce(asked_at, clock_timestamp()) else clock_timestamp() end where guid = $1 returning step`,
		t.GUID, lease, t.Binding, first, t.Again, t.Broker.GUID, t.asks()).Scan(&t.step)
	if err != nil {
		return fmt.Errorf("take operation: %w", err)
	}
	return nil
}

// Requeue queues jobs for operations that should have been worked long ago and have none that waits: their worker has died, or somebody
// deleted the job. It says how many.
func (s *Store) Requeue(ctx context.Context, late time.Duration) (int, error) {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) (int, error) {
		rows, err := tx.Query(ctx, `update service_operations set due_at = clock_timestamp() where guid in (select o.guid from service_operations o where o.due_at < clock_timestamp() - $1::interval
			and not exists (select from river_job j where j.kind = $2 and j.args @> jsonb_build_object('guid', o.guid) and j.state in ('available', 'pending', 'retryable', 'scheduled'))
			order by o.due_at limit 100 for update skip locked) returning guid`, late, Operate{}.Kind())
		if err != nil {
			return 0, fmt.Errorf("find lost operations: %w", err)
		}
		lost, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return 0, fmt.Errorf("find lost operations: %w", err)
		}
		for _, guid := range lost {
			if _, err := s.queue.InsertTx(ctx, tx, Operate{GUID: guid}, nil); err != nil {
				return 0, fmt.Errorf("queue operation: %w", err)
			}
		}
		return len(lost), nil
	})
}
