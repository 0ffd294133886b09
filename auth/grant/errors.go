package grant

import (
	"errors"
	"net/http"

	"github.com/ory/fosite"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/auth/store"
	"github.com/proa-dev/proa/kit/fault"
)

func refuse(code, sentence string) *fault.Error { return fault.Invalid("%s", sentence).WithCode(code) }

// UAA answers a refresh that fails with 401 invalid_token, and the cf CLI then says to log in again; RFC 6749 would say 400.
func refuseRefresh(sentence string) *fault.Error {
	return fault.Unauthorized("%s", sentence).WithCode("invalid_token")
}

var (
	errCodeUsed       = refuse("invalid_grant", "The code has been used already, and what it led to was revoked. Log in again.")
	errCodeExpired    = refuse("invalid_grant", "The code has expired. Log in again.")
	errCodeClient     = refuse("invalid_grant", "The code was given to another client. Log in again.")
	errCodeRedirect   = refuse("invalid_grant", "The redirect_uri is not the one that the code was asked with. Send the same.")
	errCodeVerifier   = refuse("invalid_grant", "The code_verifier does not fit the code_challenge that the code was asked with. Log in again.")
	errCodeUnknown    = refuse("invalid_grant", "The code is not known. Log in again.")
	errRefreshUsed    = refuseRefresh("The refresh token has been used already, so its login was ended. Log in again.")
	errRefreshExpired = refuseRefresh("The refresh token has expired. Log in again.")
	errRefreshUnknown = refuseRefresh("The refresh token is not known or was revoked. Log in again.")
)

// sentences for the faults that fosite finds by itself.
var sentences = map[string]string{
	"invalid_client":            errClient.Detail,
	"invalid_scope":             "A scope was asked for that this client may not have. Ask for fewer, or let an administrator add it to the client.",
	"unauthorized_client":       "This client may not use this grant. Let an administrator add it to the client's authorized_grant_types.",
	"unsupported_response_type": "This response_type is not spoken here. Use response_type=code.",
}

// explain turns fosite's error into a fault of ours, with the reason our own part noted when there is one.
func explain(v *visit, grant string, err error) error {
	var known *fault.Error
	oauth := fosite.ErrorToRFC6749Error(err)
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, store.ErrUsed) && grant == auth.GrantRefresh:
		return errRefreshUsed.Because(err)
	case errors.Is(err, store.ErrUsed):
		return errCodeUsed.Because(err)
	case oauth.CodeField >= http.StatusInternalServerError:
		return err // internal: the edge says so without its text
	case v.refusal != nil:
		return v.refusal.Because(err)
	}
	detail := sentences[oauth.ErrorField]
	if detail == "" {
		detail = oauth.HintField
	}
	if detail == "" {
		detail = oauth.DescriptionField
	}
	f := refuse(oauth.ErrorField, detail)
	switch {
	case oauth.CodeField == http.StatusUnauthorized:
		f.Kind = fault.KindUnauthorized
	case grant == auth.GrantRefresh && oauth.ErrorField == "invalid_grant":
		f = refuseRefresh(detail)
	}
	return f.Because(err)
}
