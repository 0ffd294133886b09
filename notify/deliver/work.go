// Package deliver does what accepting a message leaves to do: it reads audiences and makes deliveries of them, and hands mails to the
// operator's mail servers over connections that it keeps.
package deliver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/run"
	"github.com/proa-dev/proa/kit/seal"
	"github.com/proa-dev/proa/notify"
	"github.com/proa-dev/proa/notify/bounce"
	"github.com/proa-dev/proa/notify/directory"
	"github.com/proa-dev/proa/notify/store"
)

// Service does the work that accepting a message leaves: it reads audiences, and sends mails. Any number of processes share it.
type Service struct {
	Store     *store.Store
	Directory *directory.Directory
	Pools     map[notify.Class]*Pool // one for each lane, so that bulk never holds a connection that something urgent needs
	Box       *seal.Box              // seals the tokens of unsubscribe links
	Path      *bounce.Path           // nil: mails come back to From
	From      string                 // header From, such as Proa <notifications@example.org>
	Domain    string                 // of Message-IDs
	URL       *url.URL               // of the service, for the links in mails
	Keep      time.Duration          // how long messages are remembered
	Metrics   *Metrics
	Log       *slog.Logger
	Now       func() time.Time
}

const (
	pageSize = 500 // people per page of an audience, and so mails per chunk
	// A job works this long and then makes room. It must stay far below rescueAfter, after which a job of a process that died is
	// taken over by another: a mail is only sent twice if its process died before it could say that it had sent it.
	workFor     = 15 * time.Second
	jobTimeout  = 2 * time.Minute // longer than workFor and the slowest mail: see CommandTimeout
	rescueAfter = jobTimeout + 30*time.Second
	// CommandTimeout is what a mail server may take for one answer, and twice that for its verdict on a mail. Three answers and a
	// verdict, begun at the end of workFor, still fit into a job.
	CommandTimeout = 20 * time.Second
	// Results are written this many at a time, or this long after the first: what a dying process has not written yet is sent again.
	recordEach  = 64
	recordAfter = 50 * time.Millisecond
	// How often each process looks for critical jobs that were not announced to it.
	lookForUrgent = 200 * time.Millisecond
)

// Workers of each lane in one process.
var lanes = map[notify.Class]int{notify.Critical: 4, notify.Normal: 4, notify.Bulk: 4}

// Part works until its context ends, and then finishes what is under way.
func (s *Service) Part() run.Part {
	return run.Part{Name: "deliver", Grace: jobTimeout + 10*time.Second, Run: func(ctx context.Context) error {
		client, err := river.NewClient(riverpgxv5.New(s.Store.Pool()), s.queue())
		if err != nil {
			return fmt.Errorf("open the queue: %w", err)
		}
		if err := client.Start(context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("start the queue: %w", err)
		}
		<-ctx.Done()
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), jobTimeout)
		defer cancel()
		if err := client.Stop(stop); err != nil {
			return fmt.Errorf("finish the jobs under way: %w", err)
		}
		for _, p := range s.Pools {
			p.Close()
		}
		return nil
	}}
}

func (s *Service) queue() *river.Config {
	workers := river.NewWorkers()
	river.AddWorker(workers, &expander{s: s})
	river.AddWorker(workers, &deliverer{s: s})
	river.AddWorker(workers, &forgetter{s: s})
	queues := map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1}}
	for class, n := range lanes {
		queues[string(class)] = river.QueueConfig{MaxWorkers: n}
	}
	// The queue announces a new job only if it announced none just before, so the second job of a message, which follows at once on
	// the first, is found by looking. Nobody in a hurry waits a second for that.
	queues[string(notify.Critical)] = river.QueueConfig{MaxWorkers: lanes[notify.Critical], FetchPollInterval: lookForUrgent}
	return &river.Config{
		Queues: queues, Workers: workers, Logger: s.Log, JobTimeout: jobTimeout, RescueStuckJobsAfter: rescueAfter,
		FetchCooldown: 50 * time.Millisecond, FetchPollInterval: time.Second, RetryPolicy: retries{},
		CompletedJobRetentionPeriod: time.Hour,
		PeriodicJobs: []*river.PeriodicJob{river.NewPeriodicJob(river.PeriodicInterval(time.Hour),
			func() (river.JobArgs, *river.InsertOpts) { return forget{}, nil }, &river.PeriodicJobOpts{RunOnStart: true})},
	}
}

// retries spaces the tries of a job that failed as a whole, as when the directory is away: from a second to a minute.
type retries struct{}

func (retries) NextRetry(job *rivertype.JobRow) time.Time {
	wait := min(time.Second<<min(len(job.Errors), 6), time.Minute)
	return time.Now().Add(jitter(wait))
}

// jitter spreads a wait by a quarter to either side, so that what failed together does not come back together.
func jitter(d time.Duration) time.Duration {
	return d - d/4 + rand.N(d/2+1) //nolint:gosec // chance, not a secret
}

// Backoff is how long a mail waits after so many failed tries, and whether it is tried again at all.
func Backoff(tries int) (time.Duration, bool) {
	if tries >= maxTries {
		return 0, false
	}
	return min(30*time.Second<<(tries-1), time.Hour), true
}

// With the waits above, twelve tries take about five hours.
const maxTries = 12

// forget is the job that drops what is old and makes room for what comes.
type forget struct{}

func (forget) Kind() string { return "forget" }

type forgetter struct {
	river.WorkerDefaults[forget]
	s *Service
}

func (w *forgetter) Work(ctx context.Context, _ *river.Job[forget]) error {
	if err := w.s.Store.Partitions(ctx); err != nil {
		return err
	}
	n, err := w.s.Store.Forget(ctx, w.s.Keep)
	if n > 0 {
		w.s.Log.Info("forgot", "partitions", n)
	}
	return err
}

// expander reads audiences.
type expander struct {
	river.WorkerDefaults[store.Expand]
	s *Service
}

// Work reads pages until the audience ends or its time is up, and then leaves the rest to the next turn. Where it stopped is kept
// with each page, so a process that dies loses nothing and repeats nothing.
func (w *expander) Work(ctx context.Context, job *river.Job[store.Expand]) error {
	m, err := w.s.Store.Message(ctx, "", job.Args.MessageID)
	if fault.Is(err, fault.KindNotFound) || (err == nil && m.Expanded != nil) {
		return nil // forgotten, or done
	}
	if err != nil {
		return err
	}
	if m.Chunks == 0 {
		if err := w.name(ctx, &m); err != nil {
			return w.giveUp(ctx, m, err)
		}
	}
	for until := w.s.Now().Add(workFor); w.s.Now().Before(until); {
		page, err := w.s.Directory.Members(ctx, m.Audience, m.Cursor, pageSize)
		if err != nil {
			return w.giveUp(ctx, m, err)
		}
		if err := w.s.Store.Standing(ctx, m.Message, page.People); err != nil {
			return err
		}
		err = w.s.Store.AddPeople(ctx, m, page.People, page.Next, page.Done)
		if errors.Is(err, store.ErrMoved) {
			return river.JobSnooze(time.Second) // look again: whoever moved it may not live to finish
		}
		if err != nil {
			return err
		}
		w.s.Metrics.expanded(m.Class, len(page.People))
		if page.Done {
			return nil
		}
		m.Cursor, m.Chunks = page.Next, m.Chunks+1
	}
	return river.JobSnooze(0)
}

func (w *expander) name(ctx context.Context, m *store.Sending) error {
	n, err := w.s.Directory.Names(ctx, m.Audience)
	if err != nil || n == (directory.Names{}) {
		return err
	}
	m.Names = store.Names{Space: n.Space, Organization: n.Organization, OrganizationGUID: n.OrganizationGUID}
	return w.s.Store.SetNames(ctx, m.ID, m.Names)
}

// giveUp ends a message whose audience does not exist; any other fault is tried again.
func (w *expander) giveUp(ctx context.Context, m store.Sending, err error) error {
	if reason, ok := directory.Gone(err); ok {
		return w.s.Store.FailMessage(ctx, m.ID, reason)
	}
	return err
}

// deliverer sends mails.
type deliverer struct {
	river.WorkerDefaults[store.Deliver]
	s *Service
}

// Work sends the mails of a job that are still to be sent.
func (w *deliverer) Work(ctx context.Context, job *river.Job[store.Deliver]) error {
	m, err := w.s.Store.Message(ctx, "", job.Args.MessageID)
	if fault.Is(err, fault.KindNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	waiting, err := w.s.Store.Waiting(ctx, job.Args)
	if err != nil || len(waiting) == 0 {
		return err
	}
	people := make([]notify.Person, len(waiting))
	for i, d := range waiting {
		people[i] = notify.Person{UserID: d.UserID, Address: d.Address}
	}
	// Asked again, because somebody may have unsubscribed since the audience was read.
	if err := w.s.Store.Standing(ctx, m.Message, people); err != nil {
		return err
	}
	look, err := w.s.Store.Look(ctx, m.ClientID, m.KindID)
	if err != nil {
		return err
	}
	template, err := look.Template.Parse()
	if err != nil {
		return err
	}
	document, err := notify.SplitHTML(m.HTML)
	if err != nil {
		return err
	}
	b := &batch{s: w.s, m: m, look: look, template: template, document: &document, until: w.s.Now().Add(workFor)}
	return b.run(ctx, waiting, people)
}
