package platform

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Question is what a broker was asked, as far as it decides what its answer means.
type Question struct {
	Kind        OperationKind
	Stage       Stage
	Again       bool // it was asked before, and nobody knows what became of that
	Late        bool // the time that the operation had is over
	Polls       int  // before this one
	Retrievable bool // bindings can be fetched: only then may making one take longer

	FirstWait time.Duration // before the first poll, where the broker does not say; 0: a second
}

// Next is what an answer leaves to do.
type Next string

// The last two end the operation.
const (
	NextAsk   Next = "ask" // the same once more
	NextPoll  Next = "poll"
	NextFetch Next = "fetch"
	NextDone  Next = "done"
	NextFail  Next = "fail"
)

// Verdict is what an answer means.
type Verdict struct {
	Next   Next
	Orphan bool          // of a failure: the broker may have made what nobody will use
	Wait   time.Duration // before the next request
	Words  string        // a sentence for people: what went wrong and the next step, or how far it is in the broker's words
}

// The statuses that mean something of their own.
const (
	saysDone      = 200
	saysMade      = 201
	saysLater     = 202
	saysMalformed = 400
	saysUnknown   = 401
	saysForbidden = 403
	saysTimeout   = 408
	saysConflict  = 409
	saysGone      = 410
	saysNo        = 422
	saysTooMany   = 429
)

// Judge says what the answer of a broker means, by the rules of the Open Service Broker API 2.17.
func Judge(q Question, a Answer) Verdict {
	switch q.Stage {
	case StagePoll:
		return q.polled(a)
	case StageFetch:
		return q.fetched(a)
	}
	return q.asked(a)
}

func (q Question) asked(a Answer) Verdict {
	wellSaid := !a.Malformed
	switch {
	case q.Kind.Deletes() && (a.Status == saysDone || a.Status == saysGone):
		return Verdict{Next: NextDone} // the status says it all
	case wellSaid && (a.Status == saysDone || a.Status == saysMade && q.Kind.Creates()):
		return Verdict{Next: NextDone}
	case q.Kind.OfBroker():
		return q.failed(a)
	case wellSaid && a.Status == saysLater && q.Kind == BindingCreate && !q.Retrievable:
		return q.fail(true, "The service broker takes longer for the binding, but says that bindings cannot be fetched from it. Ask its operator.")
	case wellSaid && a.Status == saysLater:
		return Verdict{Next: NextPoll, Wait: q.wait(0, a), Words: brokerWords(a.Description)}
	case q.Again && !q.Late && a.concurrency():
		return Verdict{Next: NextAsk, Wait: q.wait(q.Polls, a)} // it may be our own first request that it works on
	}
	return q.failed(a)
}

func (q Question) polled(a Answer) Verdict {
	known := a.Status == saysDone && !a.Malformed
	switch {
	case q.Kind.Deletes() && a.Status == saysGone:
		return Verdict{Next: NextDone}
	case known && a.State == OperationSucceeded && q.Kind == BindingCreate:
		return Verdict{Next: NextFetch}
	case known && a.State == OperationSucceeded:
		return Verdict{Next: NextDone, Words: brokerWords(a.Description)}
	case known && a.State == OperationFailed:
		return q.fail(q.Kind.Creates(), "The service broker could not do it"+said(a)) // a change that failed is none
	case a.Status == saysMalformed: // asking the same again gets no other answer
		return q.failed(a)
	case q.Late:
		return q.late()
	}
	v := Verdict{Next: NextPoll, Wait: q.wait(q.Polls, a)}
	if known {
		v.Words = brokerWords(a.Description)
	}
	return v
}

// fetched is about the credentials of a binding whose making took longer.
func (q Question) fetched(a Answer) Verdict {
	passing := a.Status == 0 || a.Status >= 500 || a.Status == saysTimeout || a.Status == saysTooMany || a.concurrency()
	switch {
	case a.Status == saysDone && !a.Malformed:
		return Verdict{Next: NextDone}
	case passing && q.Late:
		return q.late()
	case passing:
		return Verdict{Next: NextFetch, Wait: q.wait(q.Polls, a)}
	}
	return q.fail(true, "The service broker made the binding, but did not give its credentials: "+lowerFirst(a.sentence())+said(a))
}

func (q Question) late() Verdict {
	return q.fail(true, "The service broker did not finish in the time that it has for this.")
}

func (q Question) failed(a Answer) Verdict {
	changed := q.Kind == InstanceUpdate && a.Status == saysDone // though it is malformed
	return q.fail(q.Stage != StageAsk || q.Again || a.leaves() || changed, a.sentence()+said(a))
}

// fail ends the operation, of which the broker may have done something. Only what was to be made can be an orphan.
func (q Question) fail(done bool, why string) Verdict {
	return Verdict{Next: NextFail, Orphan: done && q.Kind.Creates(), Words: sentence(why) + " " + q.Kind.step(done)}
}

// sentence ends what may have no end: part of it is a broker's.
func sentence(s string) string {
	if strings.HasSuffix(s, ".") || strings.HasSuffix(s, "!") || strings.HasSuffix(s, "?") || strings.HasSuffix(s, "…") {
		return s
	}
	return s + "."
}

// leaves tells whether a broker that was asked for something may have made it although its answer is no success.
func (a Answer) leaves() bool {
	switch {
	case a.Unsent:
		return false
	case a.Status == 0, a.Status == saysTimeout, a.Status >= 500:
		return true
	}
	return a.Status > 200 && a.Status <= 299
}

func (a Answer) concurrency() bool {
	return a.Status == saysNo && a.Code == "ConcurrencyError"
}

// sentence is what went wrong, in our words.
func (a Answer) sentence() string {
	switch {
	case a.Unsent:
		return "The service broker could not be reached"
	case a.Status == 0:
		return "The service broker did not answer in time, or the connection broke"
	case a.Malformed:
		return fmt.Sprintf("The service broker answered with status %d and a body that is not in the protocol", a.Status)
	case a.Status == saysUnknown || a.Status == saysForbidden:
		return "The service broker refused our account. Whoever registered it has to correct the user name and the password"
	case a.Status == saysConflict:
		return "The service broker has something else under the same id"
	case a.Status == saysNo && codes[a.Code] != "":
		return codes[a.Code]
	case a.Status >= 500:
		return fmt.Sprintf("The service broker failed with status %d", a.Status)
	case a.Status >= 400:
		return fmt.Sprintf("The service broker refused it with status %d", a.Status)
	}
	return fmt.Sprintf("The service broker answered with status %d, which means nothing here", a.Status)
}

var codes = map[string]string{
	"ConcurrencyError":        "The service broker is busy with another operation on this service instance",
	"AsyncRequired":           "The service broker says that it needs more time than we give it, though we give it all it needs. Ask its operator",
	"RequiresApp":             "This service can only be bound to an app, not to a key",
	"MaintenanceInfoConflict": "The service broker has another version of this plan by now. An administrator has to read its catalog again with update-service-broker",
}

func said(a Answer) string {
	if words := brokerWords(a.Description); words != "" {
		return ": " + words
	}
	return ""
}

// step is what to do after a failure, of which the broker may have done something.
func (k OperationKind) step(done bool) string {
	switch {
	case k == BrokerCreate:
		return "Correct that, and update the service broker."
	case k == BrokerUpdate:
		return "The service broker stays as it was."
	case k == InstanceCreate:
		return "Delete the service instance, and create it again."
	case k == InstanceUpdate && done:
		return "The service instance may have been changed. Update it again."
	case k == InstanceUpdate:
		return "The service instance stays as it was."
	case k == BindingCreate:
		return "Delete the binding, and bind again."
	}
	return "Try to delete it again."
}

// wait is how long to wait before the next request: as long as the broker says, or from a second on twice as long each time, to a minute.
func (q Question) wait(polls int, a Answer) time.Duration {
	switch {
	case a.RetryAfter > 0:
		return a.RetryAfter
	case q.FirstWait > 0:
		return min(q.FirstWait<<min(polls, 6), time.Minute)
	}
	return min(time.Second<<min(polls, 6), time.Minute)
}

// Clipped is what can be written to a log: a broker may say anything, and as much of it as it likes.
func (a Answer) Clipped() Answer {
	a.Code, a.Cause = brokerWords(a.Code), brokerWords(a.Cause)
	return a
}

const maxWords = 300

// brokerWords makes a line of what a broker says, which may be anything.
func brokerWords(s string) string {
	line := strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, " "), func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if runes := []rune(line); len(runes) > maxWords {
		return string(runes[:maxWords]) + "…"
	}
	return line
}
