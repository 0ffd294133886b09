package work

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"

	"github.com/proa-dev/proa/kit/fault"
	v1 "github.com/proa-dev/proa/notify/v1"
	"github.com/proa-dev/proa/platform"
	"github.com/proa-dev/proa/platform/store"
)

const (
	// What happened half a day ago is no news any more. The notification service keeps the keys of what it was given for a day, and is given
	// nothing that is older than this: it takes nothing twice.
	tellFor = 12 * time.Hour
	// The longest wait between two tries to be known to the notification service.
	introduceEvery = 5 * time.Minute
	tellers        = 5
	source         = "Proa" // what people read as the sender
	reach          = "SpaceDeveloper"
)

// teller hands notices to the notification service.
type teller struct {
	river.WorkerDefaults[store.Tell]
	s          *Service
	registered atomic.Bool // the service has heard of our kinds, since this process was started
}

// Timeout is what one try may take, whatever brokers may take. It is less than a turn, so that who waits for a turn to end waits for this too.
func (w *teller) Timeout(*river.Job[store.Tell]) time.Duration { return w.s.margin() }

// Work hands over one. Only what the service says of the notice itself ends it; what is wrong with the way there, an operator can mend.
func (w *teller) Work(ctx context.Context, job *river.Job[store.Tell]) error {
	s, args := w.s, job.Args
	log := s.Log.With("kind", args.Notice.Kind, "space", args.Space, "key", args.Key)
	if s.Notify == nil {
		log.WarnContext(ctx, "developers cannot be told of something: PROA_NOTIFY_URL is not set")
		s.Metrics.told(args.Notice.Kind, "dropped")
		return nil
	}
	age := s.Now().Sub(job.CreatedAt)
	if age > tellFor {
		log.ErrorContext(ctx, "a notice could not be handed to the notification service for half a day, and is dropped")
		s.Metrics.told(args.Notice.Kind, "dropped")
		return nil
	}
	taken, err := w.tell(ctx, args)
	switch {
	case err == nil:
		log.InfoContext(ctx, "the developers of a space are told of something", "message", taken.ID)
		s.Metrics.told(args.Notice.Kind, "sent")
		return nil
	case fault.Is(err, fault.KindUnprocessable), fault.Is(err, fault.KindConflict), fault.Is(err, fault.KindTooLarge):
		log.ErrorContext(ctx, "the notification service refuses a notice, and is not given it again", "error", err)
		s.Metrics.told(args.Notice.Kind, "refused")
		return nil
	}
	log.WarnContext(ctx, "a notice could not be handed to the notification service; trying again", "error", err)
	return river.JobSnooze(jitter(min(max(age/4, time.Second), 5*time.Minute)))
}

// tell registers what we send where that has not been done, and sends. A service that has lost our kinds is told them again.
func (w *teller) tell(ctx context.Context, t store.Tell) (v1.Accepted, error) {
	m := v1.Message{KindID: string(t.Notice.Kind), Subject: t.Notice.Subject, Text: t.Notice.Text, HTML: t.Notice.HTML, Role: reach}
	known := w.registered.Load()
	if !known {
		if err := w.register(ctx); err != nil {
			return v1.Accepted{}, err
		}
	}
	taken, err := w.s.Notify.Send(ctx, v1.ToSpace(t.Space), m, t.Key)
	if !known || !fault.Is(err, fault.KindNotFound) {
		return taken, err
	}
	if err := w.register(ctx); err != nil {
		return v1.Accepted{}, err
	}
	return w.s.Notify.Send(ctx, v1.ToSpace(t.Space), m, t.Key)
}

// introduce registers what we send when we start, so that people can unsubscribe from it before the first notice. It tries until that is
// done, or its context ends.
func (w *teller) introduce(ctx context.Context) {
	for wait := time.Second; w.s.Notify != nil && !w.registered.Load(); wait = min(2*wait, introduceEvery) {
		err := w.register(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		w.s.Log.WarnContext(ctx, "we are not known to the notification service yet; trying again", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(jitter(wait)):
		}
	}
}

func (w *teller) register(ctx context.Context) error {
	w.registered.Store(false)
	all := map[string]v1.Kind{}
	for kind, about := range platform.NoticeKinds {
		all[string(kind)] = v1.Kind{Description: about}
	}
	if err := w.s.Notify.Call(ctx, http.MethodPut, v1.Kinds, v1.Registration{SourceName: source, Notifications: all}, nil); err != nil {
		return fault.Unavailable("Our kinds cannot be registered with the notification service.").Because(err) // whatever it says, it is not about a notice
	}
	w.registered.Store(true)
	return nil
}
