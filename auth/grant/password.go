package grant

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/ory/fosite"

	"github.com/proa-dev/proa/auth"
)

// passwordGrant is the grant of the cf CLI: a name and a password, or a passcode from a browser. It stands beside fosite's own
// because that one knows no passcode and no scopes that depend on the person.
type passwordGrant struct {
	engine  *Engine
	storage storage
	tokens  strategy
}

// CanSkipClientAuth is never so.
func (*passwordGrant) CanSkipClientAuth(context.Context, fosite.AccessRequester) bool { return false }

// CanHandleTokenEndpointRequest takes grant_type=password.
func (*passwordGrant) CanHandleTokenEndpointRequest(_ context.Context, r fosite.AccessRequester) bool {
	return r.GetGrantTypes().ExactOne(auth.GrantPassword)
}

// HandleTokenEndpointRequest logs the person in and decides the scopes: those asked for (or all of the client's) that the
// person holds.
func (p *passwordGrant) HandleTokenEndpointRequest(ctx context.Context, r fosite.AccessRequester) error {
	c := r.GetClient().(*client)
	for _, scope := range r.GetRequestedScopes() {
		if !slices.Contains(c.scopes, scope) {
			return fosite.ErrInvalidScope
		}
	}
	user, err := p.login(ctx, r)
	if err != nil {
		return err
	}
	want := []string(r.GetRequestedScopes())
	if len(want) == 0 {
		want = c.scopes
	}
	for _, scope := range auth.Both(want, names(user.Groups)) {
		r.GrantScope(scope)
	}
	s := &session{user: user, authAt: p.engine.Now()}
	s.SetExpiresAt(fosite.AccessToken, s.authAt.Add(c.GetEffectiveLifespan(fosite.GrantTypePassword, fosite.AccessToken, p.engine.Lives.Access)))
	r.SetSession(s)
	return nil
}

func (p *passwordGrant) login(ctx context.Context, r fosite.AccessRequester) (auth.User, error) {
	form := r.GetRequestForm()
	if code := form.Get("passcode"); code != "" {
		return p.engine.passcode(ctx, code)
	}
	name, password := form.Get("username"), form.Get("password")
	if name == "" || password == "" {
		return auth.User{}, refuse("invalid_request", "username and password are needed, or a passcode. Send them in the form.")
	}
	var hint struct {
		Origin string `json:"origin"`
	}
	if raw := visitOf(ctx).hint; raw != "" {
		if err := json.Unmarshal([]byte(raw), &hint); err != nil {
			return auth.User{}, refuse("invalid_request", `login_hint must be JSON such as {"origin":"uaa"}.`)
		}
	}
	return p.engine.Login(ctx, name, password, hint.Origin)
}

// PopulateTokenEndpointResponse issues the tokens.
func (p *passwordGrant) PopulateTokenEndpointResponse(ctx context.Context, r fosite.AccessRequester, w fosite.AccessResponder) error {
	if !p.CanHandleTokenEndpointRequest(ctx, r) {
		return fosite.ErrUnknownRequest // fosite asks every grant
	}
	access, _, err := p.tokens.GenerateAccessToken(ctx, r)
	if err != nil {
		return err
	}
	if slices.Contains(r.GetClient().GetGrantTypes(), auth.GrantRefresh) {
		refresh, signature, err := p.tokens.GenerateRefreshToken(ctx, r)
		if err != nil {
			return err
		}
		if err := p.storage.CreateRefreshTokenSession(ctx, signature, "", r); err != nil {
			return err
		}
		if err := p.storage.Commit(ctx); err != nil {
			return err
		}
		w.SetExtra("refresh_token", refresh)
	}
	w.SetAccessToken(access)
	w.SetTokenType("bearer")
	w.SetExpiresIn(r.GetSession().GetExpiresAt(fosite.AccessToken).Sub(p.engine.Now()))
	w.SetScopes(r.GetGrantedScopes())
	return nil
}
