package cli

import (
	"context"
	"errors"
	"time"

	"github.com/proa-dev/proa/kit/fault"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// following is how a person follows what a broker does for them.
type following struct {
	service string                       // the name of the service instance that it is about
	wait    bool                         // to the end
	words   func(context.Context) string // what the broker says meanwhile; nil: nothing
	mend    string                       // the command that takes away what failed to be made; empty: there is none
}

// follow follows a job to its end or, unless the person waits, until the broker takes its time. It tells whether all is done.
func (s *session) follow(ctx context.Context, job string, how following) (done bool, err error) {
	done = true
	began, view := s.Now(), live{e: s.Env}
	err = s.api.Follow(ctx, job, func(j v3.Job) bool {
		if j.State == "POLLING" && !how.wait {
			done = false
			return true
		}
		if how.wait {
			said := ""
			if j.State == "POLLING" && how.words != nil {
				said = how.words(ctx)
			}
			view.show([]string{"  in progress for " + age(s.Now().Sub(began)) + after(": ", said)}, "Waiting for the broker..."+after(" ", said))
		}
		return false
	})
	watch := "proa service " + shell(how.service)
	var f *fault.Error
	switch {
	case ctx.Err() != nil:
		s.say("\nThe platform goes on with it. Watch it with: %s", watch)
	case errors.As(err, &f) && f.Kind == fault.KindUnprocessable:
		next := watch + "    # shows how it stands"
		if how.mend != "" {
			next = how.mend + "    # then create it again"
		}
		return done, &problem{says: f.Detail, next: next, code: ExitFailed, cause: err}
	}
	return done, err
}

// after is a text with what stands before it, or nothing at all.
func after(lead, text string) string {
	if text == "" {
		return ""
	}
	return lead + text
}

// inProgress tells where to look for the end of what goes on.
func (s *session) inProgress(what, service string) {
	s.say("\n%s in progress. Watch it with: proa service %s", what, shell(service))
}

// brokerWords gives what the broker says about an instance. Nothing depends on it, so a failure is nothing.
func (s *session) brokerWords(name string) func(context.Context) string {
	return func(ctx context.Context) string {
		i, err := v3.First[v3.ServiceInstance](ctx, s.api, s.servicePath(name))
		if err != nil || i == nil {
			return ""
		}
		return clean(i.LastOperation.Description)
	}
}

// status is an operation in two words, or three: create in progress, update failed.
func status(op v3.LastOperation) string {
	switch {
	case op.Type == "":
		return "-"
	case op.State == "initial":
		return op.Type + " in progress"
	}
	return clean(op.Type + " " + op.State)
}

func (e *Env) ofOperation(op v3.LastOperation) string {
	switch op.State {
	case "succeeded":
		return e.green(status(op))
	case "failed":
		return e.red(status(op))
	}
	return e.yellow(status(op))
}

// pending tells whether an operation has not ended.
func pending(op v3.LastOperation) bool { return op.State == "initial" || op.State == "in progress" }

// times say when an operation began and when it was last heard of.
func (s *session) times(op v3.LastOperation) [][2]string {
	return [][2]string{{"started", s.ago(time.Time(op.CreatedAt))}, {"updated", s.ago(time.Time(op.UpdatedAt))}}
}
