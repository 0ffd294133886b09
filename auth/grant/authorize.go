package grant

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ory/fosite"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/kit/fault"
)

// Ask is a client's request for a code on a person's behalf.
type Ask struct {
	Client   auth.Client
	Redirect *url.URL
	request  fosite.AuthorizeRequester
	err      error
}

// Ask reads a request to the authorization endpoint. An error means that nobody may be redirected: it is for the person to read.
// A request that is wrong in another way comes back as an Ask that can only be refused.
func (e *Engine) Ask(r *http.Request) (*Ask, error) {
	if err := r.ParseForm(); err != nil {
		return nil, refuse("invalid_request", "The address cannot be read. Go back and try again.").Because(err)
	}
	if r.Form.Has("request") || r.Form.Has("request_uri") {
		return nil, refuse("request_not_supported", "Request objects are not spoken here. Send the parameters themselves.")
	}
	if mode := r.Form.Get("response_mode"); mode != "" && mode != "query" {
		return nil, refuse("invalid_request", "This response_mode is not spoken here. Leave it out.")
	}
	r.Form.Del("id_token_hint") // a hint may be passed over
	stateless := r.Form.Get("state") == ""
	if stateless {
		r.Form.Set("state", "-") // fosite insists on one; cf ssh-code sends none
	}
	ar, err := e.provider.NewAuthorizeRequest(r.Context(), r)
	if request, ok := ar.(*fosite.AuthorizeRequest); ok && stateless {
		request.State = ""
	}
	c, ok := ar.GetClient().(*client)
	if !ok || !ar.IsRedirectURIValid() {
		if err == nil {
			err = fosite.ErrInvalidRequest
		}
		if !ok {
			return nil, refuse("invalid_client", "The application that sent you here is not known. Go back and tell its owner.").Because(err)
		}
		return nil, refuse("invalid_request", "The application that sent you here gave an address to return to that is not registered for it. Go back and tell its owner.").Because(err)
	}
	ask := &Ask{Client: c.Client, Redirect: ar.GetRedirectURI(), request: ar, err: err}
	if err == nil && !slices.Contains(c.Grants, auth.GrantCode) {
		ask.err = fosite.ErrUnauthorizedClient
	}
	return ask, nil
}

// Wrong tells whether the request can only be refused.
func (a *Ask) Wrong() bool { return a.err != nil }

// Prompt tells whether the client asks this of us before it takes an answer: none, login, consent.
func (a *Ask) Prompt(what string) bool {
	return slices.Contains(strings.Fields(a.request.GetRequestForm().Get("prompt")), what)
}

// Scopes are those asked for, or all of the client's, that the person holds.
func (a *Ask) Scopes(user auth.User) []string {
	want := []string(a.request.GetRequestedScopes())
	if len(want) == 0 {
		want = a.Client.Scopes
	}
	return auth.Both(want, names(user.Groups))
}

// Consent is what a person allows.
type Consent struct {
	User   auth.User
	AuthAt time.Time // when they logged in
	Scopes []string
}

// Grant issues a code and sends the browser back with it.
func (e *Engine) Grant(ctx context.Context, w http.ResponseWriter, a *Ask, c Consent) error {
	if a.Wrong() {
		e.Refuse(ctx, w, a, nil)
		return nil
	}
	for _, s := range c.Scopes {
		if s == "openid" && a.request.GetRequestForm().Get("redirect_uri") == "" {
			continue // OpenID Connect asks for the address; cf ssh-code sends none and wants no id token
		}
		a.request.GrantScope(s)
	}
	response, err := e.provider.NewAuthorizeResponse(ctx, a.request, &session{user: c.User, authAt: c.AuthAt})
	switch {
	case err == nil:
		e.provider.WriteAuthorizeResponse(ctx, w, a.request, response)
	case fosite.ErrorToRFC6749Error(err).CodeField >= http.StatusInternalServerError:
		return err
	default:
		e.Refuse(ctx, w, a, err)
	}
	return nil
}

// Refuse sends the browser back without a code.
func (e *Engine) Refuse(ctx context.Context, w http.ResponseWriter, a *Ask, err error) {
	if err == nil {
		err = a.err
	}
	if fault.Is(err, fault.KindForbidden) {
		err = fosite.ErrAccessDenied.WithHint("The person did not allow it.")
	}
	if fault.Is(err, fault.KindUnauthorized) {
		err = fosite.ErrLoginRequired
	}
	e.provider.WriteAuthorizeError(ctx, w, a.request, err)
}
