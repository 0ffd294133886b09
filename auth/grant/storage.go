package grant

import (
	"context"
	"errors"
	"time"

	"github.com/ory/fosite"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/auth/store"
	"github.com/proa-dev/proa/kit/fault"
)

// storage answers fosite from our store. Access tokens are not kept: they are signed, and ended by id. What one exchange writes
// is gathered in the visit and written in one transaction, on Commit.
type storage struct{ engine *Engine }

// GetClient is asked by the authorization endpoint.
func (s storage) GetClient(ctx context.Context, id string) (fosite.Client, error) {
	c, err := s.engine.Store.Client(ctx, id)
	if fault.Is(err, fault.KindNotFound) {
		return nil, fosite.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return s.engine.client(c, auth.GrantCode), nil
}

var errNoAssertions = errors.New("client assertions are not spoken here")

// ClientAssertionJWTValid is part of fosite's storage; Engine.Client never asks it.
func (storage) ClientAssertionJWTValid(context.Context, string) error { return errNoAssertions }

// SetClientAssertionJWT is part of fosite's storage; Engine.Client never asks it.
func (storage) SetClientAssertionJWT(context.Context, string, time.Time) error {
	return errNoAssertions
}

// CreateAuthorizeCodeSession keeps a code.
func (s storage) CreateAuthorizeCodeSession(ctx context.Context, signature string, r fosite.Requester) error {
	about, c := r.GetSession().(*session), r.GetClient().(*client)
	return s.engine.Store.AddCode(ctx, auth.Code{Hash: signature, LoginID: r.GetID(), ClientID: c.ID, UserID: about.user.ID, Scopes: r.GetGrantedScopes(),
		Form: r.GetRequestForm(), AuthAt: about.authAt, Generation: auth.Generation(about.user.Generation, c.Generation), Expires: s.engine.Now().Add(s.engine.Lives.Code)})
}

// GetAuthorizeCodeSession finds a code that may be exchanged.
func (s storage) GetAuthorizeCodeSession(ctx context.Context, signature string, _ fosite.Session) (fosite.Requester, error) {
	code, r, err := s.code(ctx, signature)
	v := visitOf(ctx)
	v.login = code.LoginID
	switch {
	case errors.Is(err, store.ErrNone):
		v.refusal = errCodeUnknown
		return nil, fosite.ErrNotFound
	case err != nil:
		return nil, err
	case code.Used:
		v.refusal = errCodeUsed
		return r, fosite.ErrInvalidatedAuthorizeCode
	case !s.engine.Now().Before(code.Expires):
		v.refusal = errCodeExpired
		return nil, fosite.ErrNotFound
	case !r.GetSession().(*session).user.Active:
		v.refusal = errDisabled
		return nil, fosite.ErrNotFound
	case code.Generation != auth.Generation(r.GetSession().(*session).user.Generation, r.GetClient().(*client).Generation):
		v.refusal = errCodeUnknown
		return nil, fosite.ErrNotFound
	case code.Form.Get("redirect_uri") != v.form.Get("redirect_uri"):
		v.refusal = errCodeRedirect // fosite refuses both of these
	default:
		v.refusal = errCodeClient
	}
	return r, nil
}

func (s storage) code(ctx context.Context, signature string) (auth.Code, *fosite.Request, error) {
	code, err := s.engine.Store.Code(ctx, signature)
	if err != nil {
		return code, nil, err
	}
	r, err := s.request(ctx, code.LoginID, code.ClientID, code.UserID, code.AuthAt, code.Scopes)
	if err != nil {
		return code, nil, err
	}
	r.Form = code.Form
	return code, r, nil
}

// request rebuilds a request from what was kept, with the person, the client and the scopes as they are now: who has lost a
// scope since does not get it back by an old code or refresh token.
func (s storage) request(ctx context.Context, login, clientID, userID string, authAt time.Time, scopes []string) (*fosite.Request, error) {
	c, err := s.engine.Store.Client(ctx, clientID)
	if err != nil {
		return nil, missing(err)
	}
	user, err := s.engine.Store.User(ctx, userID)
	if err != nil {
		return nil, missing(err)
	}
	r := fosite.NewRequest()
	r.ID, r.Client, r.Session = login, s.engine.client(c, auth.GrantCode), &session{user: user, authAt: authAt}
	r.GrantedScope = auth.Both(auth.Both(scopes, c.Scopes), names(user.Groups))
	r.RequestedScope = r.GrantedScope
	return r, nil
}

func missing(err error) error {
	if fault.Is(err, fault.KindNotFound) {
		return store.ErrNone
	}
	return err
}

func names(groups []auth.Group) []string {
	list := make([]string, len(groups))
	for i, g := range groups {
		list[i] = g.Name
	}
	return list
}

// InvalidateAuthorizeCodeSession notes that the code is used up.
func (s storage) InvalidateAuthorizeCodeSession(ctx context.Context, signature string) error {
	visitOf(ctx).pending.UseCode = signature
	return nil
}

// CreatePKCERequestSession has nothing to do: the challenge is kept with the code.
func (storage) CreatePKCERequestSession(context.Context, string, fosite.Requester) error { return nil }

// GetPKCERequestSession finds the challenge of a code.
func (s storage) GetPKCERequestSession(ctx context.Context, signature string, _ fosite.Session) (fosite.Requester, error) {
	_, r, err := s.code(ctx, signature)
	if errors.Is(err, store.ErrNone) || (err == nil && r.Form.Get("code_challenge") == "") {
		return nil, fosite.ErrNotFound
	}
	visitOf(ctx).refusal = errCodeVerifier
	return r, err
}

// DeletePKCERequestSession keeps the challenge: a wrong verifier must not open the way for a try without one.
func (storage) DeletePKCERequestSession(context.Context, string) error { return nil }

// CreateOpenIDConnectSession has nothing to do: the nonce is kept with the code.
func (storage) CreateOpenIDConnectSession(context.Context, string, fosite.Requester) error {
	return nil
}

// GetOpenIDConnectSession finds what the id token is about.
func (s storage) GetOpenIDConnectSession(ctx context.Context, code string, _ fosite.Requester) (fosite.Requester, error) {
	_, r, err := s.code(ctx, auth.Digest(code))
	if errors.Is(err, store.ErrNone) || (err == nil && !r.GrantedScope.Has("openid")) {
		return nil, fosite.ErrNotFound
	}
	return r, err
}

// DeleteOpenIDConnectSession has nothing to do: the code is used up.
func (storage) DeleteOpenIDConnectSession(context.Context, string) error { return nil }

// CreateAccessTokenSession keeps nothing.
func (storage) CreateAccessTokenSession(context.Context, string, fosite.Requester) error { return nil }

// GetAccessTokenSession verifies an access token that somebody wants to revoke.
func (s storage) GetAccessTokenSession(ctx context.Context, raw string, _ fosite.Session) (fosite.Requester, error) {
	claims, err := s.engine.Inspect(ctx, raw)
	if fault.Is(err, fault.KindUnauthorized) {
		return nil, fosite.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	r := fosite.NewRequest()
	r.ID, r.Client = claims.ID, &client{Client: auth.Client{ID: claims.ClientID}}
	if claims.Session != "" {
		r.ID = claims.Session
	}
	return r, nil
}

// DeleteAccessTokenSession has nothing to do.
func (storage) DeleteAccessTokenSession(context.Context, string) error { return nil }

// CreateRefreshTokenSession notes a new refresh token, or writes it when no exchange is under way.
func (s storage) CreateRefreshTokenSession(ctx context.Context, signature, _ string, r fosite.Requester) error {
	about, c := r.GetSession().(*session), r.GetClient().(*client)
	visitOf(ctx).pending.Add = &auth.Refresh{Hash: signature, LoginID: r.GetID(), ClientID: c.ID, UserID: about.user.ID, Scopes: r.GetGrantedScopes(),
		AuthAt: about.authAt, Generation: auth.Generation(about.user.Generation, c.Generation), Expires: s.refreshExpiry(c)}
	return nil
}

func (s storage) refreshExpiry(c *client) time.Time {
	return s.engine.Now().Add(c.GetEffectiveLifespan(fosite.GrantTypeRefreshToken, fosite.RefreshToken, s.engine.Lives.Refresh))
}

// GetRefreshTokenSession finds a refresh token that may be used. One that was used before comes with ErrInactiveToken, and
// fosite then ends its login.
func (s storage) GetRefreshTokenSession(ctx context.Context, signature string, _ fosite.Session) (fosite.Requester, error) {
	v := visitOf(ctx)
	unknown := func() (fosite.Requester, error) {
		v.refusal = errRefreshUnknown
		return nil, fosite.ErrNotFound
	}
	t, err := s.engine.Store.Refresh(ctx, signature)
	if errors.Is(err, store.ErrNone) {
		return unknown()
	}
	if err != nil {
		return nil, err
	}
	v.login = t.LoginID
	r, err := s.request(ctx, t.LoginID, t.ClientID, t.UserID, t.AuthAt, t.Scopes)
	if errors.Is(err, store.ErrNone) {
		return unknown()
	}
	if err != nil {
		return nil, err
	}
	about := r.Session.(*session)
	about.SetExpiresAt(fosite.RefreshToken, t.Expires)
	switch {
	case t.Revoked:
		return unknown()
	case t.Used:
		v.refusal = errRefreshUsed
		return r, fosite.ErrInactiveToken
	case !about.user.Active:
		v.refusal = refuseRefresh(errDisabled.Detail)
		return nil, fosite.ErrNotFound
	case t.Generation != auth.Generation(about.user.Generation, r.Client.(*client).Generation):
		return unknown()
	}
	return r, nil
}

// DeleteRefreshTokenSession has nothing to do: a used token is remembered, so that its next use is seen.
func (storage) DeleteRefreshTokenSession(context.Context, string) error { return nil }

// RotateRefreshToken notes that the refresh token is used up.
func (s storage) RotateRefreshToken(ctx context.Context, _, signature string) error {
	visitOf(ctx).pending.UseRefresh = signature
	return nil
}

// RevokeRefreshToken ends a login, or an access token that has none.
func (s storage) RevokeRefreshToken(ctx context.Context, id string) error {
	return s.engine.Store.Revoke(ctx, nil, id, s.engine.Now())
}

// RevokeAccessToken does the same: the id ends both kinds.
func (s storage) RevokeAccessToken(ctx context.Context, id string) error {
	return s.engine.Store.Revoke(ctx, nil, id, s.engine.Now())
}

// BeginTX is fosite's; the visit gathers.
func (storage) BeginTX(ctx context.Context) (context.Context, error) { return ctx, nil }

// Commit writes what was gathered.
func (s storage) Commit(ctx context.Context) error {
	v := visitOf(ctx)
	if v.pending == (store.Exchange{}) {
		return nil
	}
	defer func() { v.pending = store.Exchange{} }()
	return s.engine.Store.Exchange(ctx, v.pending)
}

// Rollback forgets what was gathered.
func (storage) Rollback(ctx context.Context) error {
	visitOf(ctx).pending = store.Exchange{}
	return nil
}
