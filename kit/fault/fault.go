// Package fault owns the one error that people meet: its kind, a sentence they may read, and the cause that stays inside.
//
// Rules return faults; everything else returns plain errors. The edge (an HTTP handler, a command) renders a fault with its
// sentence and treats any other error as Internal, whose text never leaves the process.
package fault

import (
	"errors"
	"fmt"
	"net/http"
)

// Kind says what sort of fault it is. Protocols map kinds to their own codes; HTTP has Status.
type Kind int

// The kinds, in the order of their HTTP status.
const (
	KindInternal Kind = iota
	KindInvalid
	KindUnauthorized
	KindForbidden
	KindNotFound
	KindConflict
	KindStale
	KindTooLarge
	KindUnprocessable
	KindTooMany
	KindUnavailable
)

var status = map[Kind]int{
	KindInternal:      http.StatusInternalServerError,
	KindInvalid:       http.StatusBadRequest,
	KindUnauthorized:  http.StatusUnauthorized,
	KindForbidden:     http.StatusForbidden,
	KindNotFound:      http.StatusNotFound,
	KindConflict:      http.StatusConflict,
	KindStale:         http.StatusPreconditionFailed,
	KindTooLarge:      http.StatusRequestEntityTooLarge,
	KindUnprocessable: http.StatusUnprocessableEntity,
	KindTooMany:       http.StatusTooManyRequests,
	KindUnavailable:   http.StatusServiceUnavailable,
}

// Error is a fault.
type Error struct {
	Kind    Kind
	Code    string   // the name a protocol gives this fault, where the kind alone does not decide it; may be empty
	Detail  string   // a sentence for the person who met it, with the next step
	Details []string // each fault by itself, when there are several; may be nil
	Cause   error    // logged, never shown
}

func (e *Error) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%s (%v)", e.Detail, e.Cause)
	}
	return e.Detail
}

func (e *Error) Unwrap() error { return e.Cause }

// Status is the HTTP status of the fault's kind.
func (e *Error) Status() int { return status[e.Kind] }

// WithCode returns a copy that carries a protocol's name for the fault.
func (e *Error) WithCode(code string) *Error {
	c := *e
	c.Code = code
	return &c
}

// Because returns a copy that carries a cause for the log.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.Cause = cause
	return &c
}

// From finds the fault in err. An error without one is Internal: its text stays in the log.
func From(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Kind: KindInternal, Detail: "Something went wrong on our side. Try again, and give the request id to your operator if it stays.", Cause: err}
}

// Is tells whether err is a fault of this kind.
func Is(err error, kind Kind) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == kind
}

func build(kind Kind, format string, args []any) *Error {
	return &Error{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// Invalid is a request that cannot be understood.
func Invalid(format string, args ...any) *Error { return build(KindInvalid, format, args) }

// Unauthorized is a request without acceptable credentials.
func Unauthorized(format string, args ...any) *Error { return build(KindUnauthorized, format, args) }

// Forbidden is a request whose sender is known and may not.
func Forbidden(format string, args ...any) *Error { return build(KindForbidden, format, args) }

// NotFound is a thing that is not there, or that the sender must not learn of.
func NotFound(format string, args ...any) *Error { return build(KindNotFound, format, args) }

// Conflict is a clash with what exists.
func Conflict(format string, args ...any) *Error { return build(KindConflict, format, args) }

// Stale is a change made to an older version than the present one.
func Stale(format string, args ...any) *Error { return build(KindStale, format, args) }

// TooLarge is a request beyond a size limit.
func TooLarge(format string, args ...any) *Error { return build(KindTooLarge, format, args) }

// Unprocessable is a request that is understood and breaks a rule.
func Unprocessable(format string, args ...any) *Error { return build(KindUnprocessable, format, args) }

// TooMany is a sender beyond its rate.
func TooMany(format string, args ...any) *Error { return build(KindTooMany, format, args) }

// Unavailable is a server that cannot take the request now.
func Unavailable(format string, args ...any) *Error { return build(KindUnavailable, format, args) }

// OfStatus is the kind that an HTTP status of another server stands for.
func OfStatus(code int) Kind {
	for kind, s := range status {
		if s == code {
			return kind
		}
	}
	if code >= http.StatusInternalServerError {
		return KindUnavailable
	}
	return KindInvalid
}
