package grant

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/ory/fosite"
	fjwt "github.com/ory/fosite/token/jwt"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/kit/token"
)

// session is what fosite carries for us from one step to the next: who it is about, and until when.
type session struct {
	user    auth.User // zero: the client acts for itself
	authAt  time.Time
	expires map[fosite.TokenType]time.Time
	idToken *fjwt.IDTokenClaims
}

func (s *session) SetExpiresAt(key fosite.TokenType, at time.Time) {
	if s.expires == nil {
		s.expires = map[fosite.TokenType]time.Time{}
	}
	s.expires[key] = at
}

func (s *session) GetExpiresAt(key fosite.TokenType) time.Time { return s.expires[key] }
func (s *session) GetUsername() string                         { return s.user.UserName }
func (s *session) GetSubject() string                          { return s.user.ID }

func (s *session) Clone() fosite.Session {
	return &session{user: s.user, authAt: s.authAt}
}

// IDTokenClaims is the same value each time, because fosite writes the token's hash into it.
func (s *session) IDTokenClaims() *fjwt.IDTokenClaims {
	if s.idToken == nil {
		s.idToken = &fjwt.IDTokenClaims{Subject: s.user.ID, AuthTime: s.authAt, RequestedAt: s.authAt}
	}
	return s.idToken
}

func (s *session) IDTokenHeaders() *fjwt.Headers { return &fjwt.Headers{} }

// client is a client as fosite sees it for one grant.
type client struct {
	auth.Client
	scopes []string
	lives  Lives
}

func (e *Engine) client(c auth.Client, grant string) *client {
	made := &client{Client: c, scopes: c.Scopes, lives: e.Lives}
	if grant == auth.GrantClientCredentials {
		made.scopes = c.Authorities
	}
	return made
}

func (c *client) GetID() string                      { return c.ID }
func (c *client) GetHashedSecret() []byte            { return nil } // checked by Engine.Client
func (c *client) GetRedirectURIs() []string          { return c.RedirectURIs }
func (c *client) GetGrantTypes() fosite.Arguments    { return c.Grants }
func (c *client) GetResponseTypes() fosite.Arguments { return fosite.Arguments{"code"} }
func (c *client) GetScopes() fosite.Arguments        { return c.scopes }
func (c *client) IsPublic() bool                     { return c.Public() }
func (c *client) GetAudience() fosite.Arguments      { return nil }

func (c *client) GetEffectiveLifespan(grant fosite.GrantType, kind fosite.TokenType, fallback time.Duration) time.Duration {
	switch {
	case kind == fosite.RefreshToken && c.RefreshFor > 0:
		return c.RefreshFor
	case kind == fosite.AccessToken && c.AccessFor > 0:
		return c.AccessFor
	case kind == fosite.AccessToken && grant == fosite.GrantTypeClientCredentials:
		return c.lives.Client
	}
	return fallback
}

// strategy makes tokens and codes. The signature by which fosite files one is its hash.
type strategy struct{ engine *Engine }

// AccessTokenSignature is the token itself: access tokens are not filed, they are verified.
func (strategy) AccessTokenSignature(_ context.Context, raw string) string { return raw }

// GenerateAccessToken signs a JWT in UAA's shape.
func (t strategy) GenerateAccessToken(ctx context.Context, r fosite.Requester) (raw, signature string, err error) {
	s, c := r.GetSession().(*session), r.GetClient().(*client)
	now := t.engine.Now()
	expires := s.GetExpiresAt(fosite.AccessToken)
	if expires.IsZero() {
		expires = now.Add(t.engine.Lives.Access)
	}
	claims := token.Claims{
		ID: auth.ID(), Issuer: t.engine.Issuer, Subject: c.ID, ClientID: c.ID, Revocable: true,
		Audience: auth.Audience(c.ID, r.GetGrantedScopes()), Scopes: append([]string{}, r.GetGrantedScopes()...),
		Issued: token.NumDate(now.Unix()), Expires: token.NumDate(expires.Unix()),
		Generation: auth.Generation(s.user.Generation, c.Generation),
	}
	if form := r.GetRequestForm(); form != nil {
		claims.Grant = form.Get("grant_type")
	}
	if s.user.ID != "" {
		claims.Subject, claims.UserID, claims.UserName = s.user.ID, s.user.ID, s.user.UserName
		claims.Email, claims.Origin, claims.Session = s.user.Email, s.user.Origin, r.GetID()
	}
	visitOf(ctx).jti = claims.ID
	raw, err = t.engine.Keys.Sign(claims)
	return raw, raw, err
}

// ValidateAccessToken is not asked: storage verifies before it answers.
func (strategy) ValidateAccessToken(context.Context, fosite.Requester, string) error { return nil }

// RefreshTokenSignature is the token's hash.
func (strategy) RefreshTokenSignature(_ context.Context, raw string) string { return auth.Digest(raw) }

// GenerateRefreshToken makes 256 random bits that look like a JWT, because the cf CLI reads the jti of a refresh token when it
// logs out. Its strength is the random part and the hash on file, not a signature, so no key is needed.
func (t strategy) GenerateRefreshToken(_ context.Context, r fosite.Requester) (raw, signature string, err error) {
	body, err := json.Marshal(map[string]any{"jti": r.GetID(), "client_id": r.GetClient().GetID(), "iat": jwt.NewNumericDate(t.engine.Now())})
	if err != nil {
		return "", "", err
	}
	b64 := base64.RawURLEncoding.EncodeToString
	raw = b64([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + b64(body) + "." + auth.Random()
	return raw, auth.Digest(raw), nil
}

// ValidateRefreshToken looks at the clock; storage has looked at everything else.
func (t strategy) ValidateRefreshToken(ctx context.Context, r fosite.Requester, _ string) error {
	if !t.engine.Now().Before(r.GetSession().GetExpiresAt(fosite.RefreshToken)) {
		visitOf(ctx).refusal = errRefreshExpired
		return fosite.ErrTokenExpired
	}
	return nil
}

// AuthorizeCodeSignature is the code's hash.
func (strategy) AuthorizeCodeSignature(_ context.Context, raw string) string { return auth.Digest(raw) }

// GenerateAuthorizeCode makes a code.
func (strategy) GenerateAuthorizeCode(context.Context, fosite.Requester) (raw, signature string, err error) {
	raw = auth.Random()
	return raw, auth.Digest(raw), nil
}

// ValidateAuthorizeCode is not asked about time: storage has the code's own expiry.
func (strategy) ValidateAuthorizeCode(context.Context, fosite.Requester, string) error { return nil }

// GenerateIDToken signs an OpenID Connect id token.
func (t strategy) GenerateIDToken(_ context.Context, lifespan time.Duration, r fosite.Requester) (string, error) {
	s := r.GetSession().(*session)
	now := t.engine.Now()
	claims := map[string]any{
		"iss": t.engine.Issuer, "sub": s.user.ID, "aud": []string{r.GetClient().GetID()}, "azp": r.GetClient().GetID(),
		"iat": now.Unix(), "exp": now.Add(lifespan).Unix(), "auth_time": s.authAt.Unix(), "at_hash": s.IDTokenClaims().AccessTokenHash,
		"jti": auth.ID(), "user_id": s.user.ID, "user_name": s.user.UserName, "email": s.user.Email, "origin": s.user.Origin,
	}
	if nonce := r.GetRequestForm().Get("nonce"); nonce != "" {
		claims["nonce"] = nonce
	}
	return t.engine.Keys.Sign(claims)
}
