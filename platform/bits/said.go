package bits

import (
	"context"
	"errors"
	"net/http"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/proa-dev/proa/kit/fault"
)

// said turns what a registry or the way to it answered into a sentence. What it cannot tell apart stays as it is.
func said(err error) error {
	var refused *transport.Error
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return err
	case errors.As(err, new(*fault.Error)):
		return err // one of ours, on its way through the library
	case errors.As(err, &refused):
		return answered(refused.StatusCode).Because(err)
	case errors.Is(err, context.DeadlineExceeded):
		return fault.Unavailable("The registry took too long. Try again; if it stays, tell your operator.").Because(err)
	}
	return fault.Unavailable("The registry could not be reached. Try again in a minute; if it stays, tell your operator.").Because(err)
}

func answered(status int) *fault.Error {
	switch {
	case status == http.StatusNotFound:
		return fault.NotFound("The registry does not have this image.")
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fault.Unavailable("The registry does not accept the platform's account. Tell your operator.")
	case status == http.StatusTooManyRequests:
		return fault.Unavailable("The registry is asked too often. Try again in a minute.")
	case status == http.StatusRequestEntityTooLarge:
		return fault.Unprocessable("The registry takes nothing this large. Push less, or ask your operator to raise its limit.")
	case status >= http.StatusInternalServerError:
		return fault.Unavailable("The registry has a problem of its own. Try again in a minute; if it stays, tell your operator.")
	}
	return fault.Unavailable("The registry refused a request. Tell your operator.")
}
