package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/proa-dev/proa/kit/fault"
)

// Exit codes. Scripts may rely on them; `proa help exit-codes` shows them.
const (
	ExitOK          = 0   // done
	ExitFailed      = 1   // the platform refused, or what was asked for did not work out
	ExitUsage       = 2   // the command line cannot be understood
	ExitLogin       = 3   // log in first, or again
	ExitTarget      = 4   // choose an organization or a space first
	ExitNotFound    = 5   // what was named does not exist, or may not be seen
	ExitUnavailable = 6   // the API or the authorization server cannot be reached
	ExitRefused     = 22  // curl --fail: the reply has a status of 400 or above
	ExitInterrupted = 130 // stopped by Ctrl-C
)

const exitCodes = `  0    done
  1    the platform refused, or what was asked for did not work out
  2    the command line cannot be understood
  3    log in first, or again
  4    choose an organization or a space first
  5    what was named does not exist, or may not be seen by you
  6    the API or the authorization server cannot be reached
  22   curl --fail: the reply has a status of 400 or above
  130  stopped by Ctrl-C`

// A problem is a failure as a person reads it: a sentence, and what to do next.
type problem struct {
	says  string
	below []string // lines that show what is meant
	next  string   // a command or a hint; may be empty
	code  int
	cause error
}

func (p *problem) Error() string { return p.says }
func (p *problem) Unwrap() error { return p.cause }

func usage(format string, args ...any) *problem {
	return &problem{says: fmt.Sprintf(format, args...), code: ExitUsage}
}

func failed(next, format string, args ...any) *problem {
	return &problem{says: fmt.Sprintf(format, args...), next: next, code: ExitFailed}
}

func missing(next, format string, args ...any) *problem {
	return &problem{says: fmt.Sprintf(format, args...), next: next, code: ExitNotFound}
}

// quiet is an exit code without a word: everything has been said.
type quiet int

func (q quiet) Error() string { return fmt.Sprintf("exit with %d", int(q)) }

// report says what went wrong and gives the exit code.
func (e *Env) report(ctx context.Context, err error) int {
	var q quiet
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &q):
		return int(q)
	case ctx.Err() != nil:
		fmt.Fprintln(e.Err, "\nStopped.")
		return ExitInterrupted
	}
	p := problemOf(err)
	lead := e.red("Error:") + " "
	for text := range strings.SplitSeq(p.says, "\n") {
		text = clean(text)
		limit := max(1, width(text))
		if room := e.room() - width(lead); room >= narrowed {
			limit = room
		}
		for _, line := range wrap(text, limit) {
			fmt.Fprintln(e.Err, lead+line)
			lead = "       "
		}
	}
	for _, line := range p.below {
		fmt.Fprintln(e.Err, line)
	}
	if p.next != "" {
		fmt.Fprintf(e.Err, "%s %s\n", e.bold("Next: "), p.next)
	}
	return p.code
}

// problemOf adds to a fault of a server what helps against its kind. Other errors are of this machine and are shown as they are.
func problemOf(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	var f *fault.Error
	if !errors.As(err, &f) {
		return &problem{says: err.Error(), code: ExitFailed}
	}
	p = &problem{says: f.Detail, code: ExitFailed, cause: err}
	switch f.Kind {
	case fault.KindUnauthorized:
		p.code, p.next = ExitLogin, "proa login"
	case fault.KindNotFound:
		p.code = ExitNotFound
	case fault.KindForbidden:
		p.next = "proa target    # are you who, and where, you mean to be? Otherwise ask for a role."
	case fault.KindUnavailable:
		p.code = ExitUnavailable
	}
	if strings.HasPrefix(f.Code, "CF-AsyncService") {
		p.next = "proa services    # shows when it has ended"
	}
	if f.Cause != nil {
		p.says += "\n(" + f.Cause.Error() + ")"
	}
	return p
}
