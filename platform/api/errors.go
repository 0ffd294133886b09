package api

import (
	"errors"
	"net/http"
	"strings"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/token"
	"github.com/proa-dev/proa/kit/web"
	v3 "github.com/proa-dev/proa/platform/v3"
)

// fault renders a refusal. Clients compare some of its words, and count the errors: there is one, unless the fault brings several.
func (s *Server) fault(w http.ResponseWriter, _ *http.Request, f *fault.Error) {
	switch f.Code {
	case web.CodeRoute, web.CodeMethod:
		w.Header().Del("Allow")
		f = fault.NotFound("Unknown request").WithCode(v3.UnknownRequest)
	case token.CodeMissing:
		f = f.WithCode(v3.NotAuthenticated)
	case token.CodeInvalid:
		f = f.WithCode(v3.InvalidAuthToken)
	}
	switch f.Kind {
	case fault.KindUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="proa"`)
	case fault.KindUnavailable:
		w.Header().Set("Retry-After", "5")
	}
	_ = web.JSON(w, f.Status(), v3.ErrorsOf(f))
}

// read decodes a request's JSON body. A field that is not known, or is of the wrong type, breaks a rule; what is no JSON at all cannot
// be understood.
func read(r *http.Request, into any) error {
	err := web.ReadStrict(r, into)
	var f *fault.Error
	if err == nil || !errors.As(err, &f) {
		return err
	}
	cause := ""
	if f.Cause != nil {
		cause = f.Cause.Error()
	}
	if name, unknown := strings.CutPrefix(cause, "json: unknown field "); unknown {
		return fault.Unprocessable("Unknown field(s): '%s'", strings.Trim(name, `"`)).Because(f.Cause)
	}
	if strings.HasPrefix(cause, "json: cannot unmarshal") {
		return fault.Unprocessable("%s", f.Detail).Because(f.Cause)
	}
	return fault.Invalid("Request invalid due to parse error: invalid request body").WithCode(v3.MessageParseError).Because(err)
}
