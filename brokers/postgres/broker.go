package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"code.cloudfoundry.org/brokerapi/v13/domain"
	"code.cloudfoundry.org/brokerapi/v13/domain/apiresponses"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/pg"
	"github.com/proa-dev/proa/kit/web"
)

// Broker answers platforms and works on what they ask for. Fill the fields; any number of processes may share one state.
type Broker struct {
	State    *State
	Server   *Server
	Plans    []Plan
	Host     string // where apps reach the server
	Port     int
	SSLMode  string // of libpq, for the credentials
	Log      *slog.Logger
	Workers  int                     // operations at once; 4 when zero
	Lease    time.Duration           // after which the operation of a process that died is taken up; 5 s when zero
	Patience time.Duration           // how long an operation is tried again; an hour when zero
	Sweep    time.Duration           // how often to look for roles that could not be dropped; a minute when zero
	Step     func(name string) error // called before each step of an operation, so that tests can stop there; may be nil

	wake chan struct{}
}

// lockWait is how long a request waits for somebody else who works on its instance.
const lockWait = 10 * time.Second

// Provision queues the making of a database.
func (b *Broker) Provision(ctx context.Context, id string, d domain.ProvisionDetails, async bool) (domain.ProvisionedServiceSpec, error) {
	i, err := b.provision(ctx, id, d, async)
	return domain.ProvisionedServiceSpec{IsAsync: i.busy(), AlreadyExists: !i.busy(), OperationData: i.OpID}, b.answer(ctx, err)
}

func (b *Broker) provision(ctx context.Context, id string, d domain.ProvisionDetails, async bool) (instance, error) {
	p, err := readParameters(d.RawParameters)
	asked := instance{ID: id, Plan: d.PlanID, Extensions: p.Extensions, Organization: d.OrganizationGUID, Space: d.SpaceGUID, OpID: rand.Text()}
	if err := errors.Join(checkIDs(id), err, b.check(d.ServiceID, d.PlanID, d.MaintenanceInfo, async), short(d.OrganizationGUID, d.SpaceGUID)); err != nil {
		return asked, err
	}
	i, err := b.State.add(ctx, asked)
	if err != nil {
		return i, err
	}
	same := i.Plan == asked.Plan && slices.Equal(i.Extensions, asked.Extensions) && i.Organization == asked.Organization && i.Space == asked.Space
	switch {
	case !same:
		return i, fault.Conflict("There is an instance with this id and other attributes. Choose another id.")
	case i.Op != create && i.busy():
		return i, concurrent()
	case i.Op == remove:
		return i, halfDeleted()
	case i.Op == create && i.OpState == failed: // asked for again
		i, err = b.State.change(ctx, id, func(i *instance) error {
			if i.Op == create && i.OpState == failed {
				i.OpID = asked.OpID
			}
			return nil
		})
	}
	b.nudge()
	return i, err
}

// Update queues a change of plan or parameters.
func (b *Broker) Update(ctx context.Context, id string, d domain.UpdateDetails, async bool) (domain.UpdateServiceSpec, error) {
	i, err := b.update(ctx, id, d, async)
	return domain.UpdateServiceSpec{IsAsync: i.busy(), OperationData: i.OpID}, b.answer(ctx, err)
}

func (b *Broker) update(ctx context.Context, id string, d domain.UpdateDetails, async bool) (instance, error) {
	p, err := readParameters(d.RawParameters)
	if err := errors.Join(checkIDs(id), err, b.check(d.ServiceID, d.PlanID, d.MaintenanceInfo, async)); err != nil {
		return instance{}, err
	}
	i, err := b.State.change(ctx, id, func(i *instance) error {
		plan, with := i.Plan, append(append([]string{}, i.Extensions...), p.Extensions...)
		if d.PlanID != "" {
			plan = d.PlanID
		}
		slices.Sort(with)
		with = slices.Compact(with)
		switch {
		case i.Op == update && i.busy() && i.ToPlan == plan && slices.Equal(i.ToExtensions, with):
			return nil // the same, sent again
		case i.busy():
			return concurrent()
		case !i.usable():
			return halfDeleted()
		case i.Plan == plan && slices.Equal(i.Extensions, with) && i.OpState == succeeded:
			return nil // nothing to do
		}
		i.Op, i.OpID, i.ToPlan, i.ToExtensions = update, rand.Text(), plan, with
		return nil
	})
	b.nudge()
	return i, err
}

// Deprovision queues the dropping of a database, and of whatever logins it still has.
func (b *Broker) Deprovision(ctx context.Context, id string, d domain.DeprovisionDetails, async bool) (domain.DeprovisionServiceSpec, error) {
	i, err := b.deprovision(ctx, id, d, async)
	return domain.DeprovisionServiceSpec{IsAsync: i.busy(), OperationData: i.OpID}, b.answer(ctx, err)
}

func (b *Broker) deprovision(ctx context.Context, id string, d domain.DeprovisionDetails, async bool) (instance, error) {
	if err := errors.Join(checkIDs(id), b.check(d.ServiceID, "", nil, async)); err != nil {
		return instance{}, err
	}
	i, err := b.State.change(ctx, id, func(i *instance) error {
		switch {
		case i.busy() && i.Op == remove:
			return nil
		case i.busy():
			return concurrent()
		}
		i.Op, i.OpID = remove, rand.Text()
		return nil
	})
	b.nudge()
	return i, err
}

// GetInstance says what an instance is; one that is still being made is not there yet.
func (b *Broker) GetInstance(ctx context.Context, id string, _ domain.FetchInstanceDetails) (domain.GetInstanceDetailsSpec, error) {
	i, err := b.State.instance(ctx, id)
	switch {
	case errors.Is(err, errNoInstance), err == nil && !i.usable():
		err = fault.NotFound("There is no such instance. It may still be under way: ask for its last operation.")
	case err == nil && i.busy():
		err = concurrent()
	}
	return domain.GetInstanceDetailsSpec{ServiceID: offeringID, PlanID: i.Plan, Parameters: parameters{Extensions: i.Extensions}}, b.answer(ctx, err)
}

// LastOperation says how far an operation came. There is one at a time, so whichever is asked for, it is that one.
func (b *Broker) LastOperation(ctx context.Context, id string, _ domain.PollDetails) (domain.LastOperation, error) {
	i, err := b.State.instance(ctx, id)
	said := i.Said
	if i.busy() && i.Tries > 3 {
		said = "This takes longer than usual; it is tried again."
	}
	return domain.LastOperation{State: domain.LastOperationState(i.OpState), Description: said}, b.answer(ctx, err)
}

// check holds what is the same in all requests that change an instance.
func (b *Broker) check(service, plan string, info *domain.MaintenanceInfo, async bool) error {
	_, known := b.plan(plan)
	switch {
	case service != offeringID:
		return fault.Invalid("This broker has no service with that id. Ask for its catalog again.")
	case plan != "" && !known:
		return fault.Invalid("The service has no plan with that id. Ask for the catalog again.")
	case info != nil:
		return apiresponses.ErrMaintenanceInfoNilConflict
	case !async:
		return apiresponses.ErrAsyncRequired
	}
	return nil
}

func short(texts ...string) error {
	if slices.ContainsFunc(texts, func(s string) bool { return len(s) > 200 || strings.ContainsRune(s, 0) }) {
		return fault.Invalid("The id of an organization, a space or an app has at most 200 characters, and no NUL.")
	}
	return nil
}

func concurrent() error {
	return fault.Unprocessable("Another operation on this instance is under way. Wait for its end, then try again.").WithCode("ConcurrencyError")
}

func halfDeleted() error {
	return fault.Unprocessable("This instance was not made, or is half deleted. Delete it and create another.")
}

// answer puts an error into the protocol's shape. What is not a fault stays in the log.
func (b *Broker) answer(ctx context.Context, err error) error {
	var known *apiresponses.FailureResponse
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errNoInstance):
		return apiresponses.ErrInstanceDoesNotExist
	case errors.Is(err, errNoBinding):
		return apiresponses.ErrBindingDoesNotExist
	case errors.Is(err, errBusy):
		err = concurrent()
	case errors.As(err, &known):
		return known
	}
	f := fault.From(err)
	if away := pg.Fault(err); f.Kind == fault.KindInternal && away != nil {
		f = away
	}
	if f.Status() >= http.StatusInternalServerError {
		b.Log.ErrorContext(ctx, "request failed", "request_id", web.RequestID(ctx), "error", err)
	}
	return apiresponses.NewFailureResponseBuilder(errors.New(f.Detail), f.Status(), "refused").WithErrorKey(f.Code).Build()
}
