// Package grant owns how tokens come about: the OAuth 2.0 rules of fosite, joined to our people, clients, keys and store.
// Nothing outside this package knows fosite.
package grant

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/ory/fosite"
	"github.com/ory/fosite/compose"
	"github.com/ory/fosite/handler/openid"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/auth/store"
	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/token"
)

// Engine issues, refreshes and revokes tokens.
type Engine struct {
	Store  *store.Store
	Keys   *Keys
	Issuer string
	Lives  Lives
	Now    func() time.Time

	gate     gate
	proofs   *proofs
	provider fosite.OAuth2Provider
	verifier *token.Verifier
}

// Lives says how long what is issued holds, where the client does not say otherwise.
type Lives struct {
	Access  time.Duration // an access token of a person
	Client  time.Duration // an access token of a client itself
	Refresh time.Duration
	Code    time.Duration
}

// New makes the engine ready.
func New(e Engine) *Engine {
	e.gate, e.proofs = newGate(), newProofs()
	engine := &e
	engine.verifier = &token.Verifier{Issuer: e.Issuer, Key: e.Keys.Key, Now: e.Now, Revoked: engine.revoked}
	config := &fosite.Config{
		AccessTokenLifespan: e.Lives.Access, RefreshTokenLifespan: e.Lives.Refresh, AuthorizeCodeLifespan: e.Lives.Code, IDTokenLifespan: e.Lives.Access,
		ScopeStrategy:               fosite.ExactScopeStrategy,
		EnforcePKCEForPublicClients: true,
		RefreshTokenScopes:          []string{}, // every login may be refreshed if its client may
		MinParameterEntropy:         1,          // the state is the client's own; PKCE and the exact redirect address protect ours
		OmitRedirectScopeParam:      true,
		SanitationWhiteList:         []string{"redirect_uri", "code_challenge", "code_challenge_method", "nonce"},
		ClientAuthenticationStrategy: func(_ context.Context, r *http.Request, form url.Values) (fosite.Client, error) {
			c, err := engine.Client(r)
			if err != nil {
				return nil, err
			}
			grant := form.Get("grant_type")
			if grant != "" && !slices.Contains(c.Grants, grant) {
				return nil, fosite.ErrUnauthorizedClient
			}
			return engine.client(c, grant), nil
		},
	}
	// These fosite would fill in when they are first asked for, which many requests do at once.
	config.AudienceMatchingStrategy = fosite.DefaultAudienceMatchingStrategy
	config.JWKSFetcherStrategy = fosite.NewDefaultJWKSFetcherStrategy()
	config.ClientSecretsHasher = &fosite.BCrypt{Config: config}
	s, tokens := storage{engine}, strategy{engine}
	engine.provider = compose.Compose(config, s, tokens,
		compose.OAuth2ClientCredentialsGrantFactory,
		compose.OAuth2AuthorizeExplicitFactory,
		compose.OAuth2PKCEFactory,
		func(config fosite.Configurator, _, _ any) any {
			return &openid.OpenIDConnectExplicitHandler{OpenIDConnectRequestStorage: s, Config: config,
				IDTokenHandleHelper:           &openid.IDTokenHandleHelper{IDTokenStrategy: tokens},
				OpenIDConnectRequestValidator: openid.NewOpenIDConnectRequestValidator(nil, config)} // nil: Ask takes no id_token_hint
		},
		compose.OAuth2RefreshTokenGrantFactory,
		compose.OAuth2TokenRevocationFactory,
		func(fosite.Configurator, any, any) any {
			return &passwordGrant{engine: engine, storage: s, tokens: tokens}
		},
	)
	return engine
}

// visit is what our parts learn and gather while fosite works on one request. fosite hands its context to all of them.
type visit struct {
	form    url.Values
	hint    string         // login_hint, which the cf CLI sends in the address
	pending store.Exchange // written together at the end
	refusal *fault.Error   // why, if fosite should refuse: our part knows it better
	login   string         // that the code or refresh token belongs to
	jti     string
}

type visitKey struct{}

func visitOf(ctx context.Context) *visit {
	v, ok := ctx.Value(visitKey{}).(*visit)
	if !ok {
		return &visit{}
	}
	return v
}

// Token answers a request to the token endpoint.
func (e *Engine) Token(r *http.Request) (map[string]any, error) {
	if err := r.ParseForm(); err != nil {
		return nil, refuse("invalid_request", "The body must be a form. Send it as application/x-www-form-urlencoded.").Because(err)
	}
	v := &visit{form: r.PostForm, hint: r.Form.Get("login_hint")}
	ctx := context.WithValue(r.Context(), visitKey{}, v)
	grant := r.PostForm.Get("grant_type")
	if !slices.Contains(auth.Grants, grant) {
		if grant == "" {
			return nil, refuse("invalid_request", "grant_type is missing. Send one of client_credentials, password, refresh_token, authorization_code.")
		}
		return nil, refuse("unsupported_grant_type", "This grant_type is not spoken here. Use client_credentials, password, refresh_token or authorization_code.")
	}
	for name, values := range r.PostForm {
		if len(values) > 1 {
			return nil, refuse("invalid_request", "A parameter is sent twice. Send each once.").Because(errors.New(name))
		}
	}
	request, err := e.provider.NewAccessRequest(ctx, r.WithContext(ctx), &session{})
	if err != nil {
		return nil, explain(v, grant, err)
	}
	if grant == auth.GrantClientCredentials {
		want := request.GetRequestedScopes()
		if len(want) == 0 {
			want = request.GetClient().GetScopes()
		}
		for _, scope := range want {
			request.GrantScope(scope)
		}
	}
	response, err := e.provider.NewAccessResponse(ctx, request)
	if errors.Is(err, store.ErrUsed) { // two used it at once: one of them has stolen it
		if err := e.Store.Revoke(ctx, nil, v.login, e.Now()); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, explain(v, grant, err)
	}
	reply := response.ToMap()
	reply["jti"] = v.jti
	return reply, nil
}

// Revoke ends a token for the client that holds it (RFC 7009). A token that is not good is no fault: it is as good as revoked.
func (e *Engine) Revoke(r *http.Request) error {
	err := e.provider.NewRevocationRequest(r.Context(), r)
	if err != nil && !errors.Is(err, fosite.ErrInvalidRequest) {
		return explain(&visit{}, "", err)
	}
	if err != nil {
		return refuse("invalid_request", "token is missing. Send the token that is to end.")
	}
	return nil
}

// Inspect verifies a token as a resource server would, for any audience.
func (e *Engine) Inspect(ctx context.Context, raw string) (token.Claims, error) {
	return e.verifier.Inspect(ctx, raw)
}

// Verifier checks the tokens that this server's own resources are asked with.
func (e *Engine) Verifier(audience ...string) *token.Verifier {
	v := *e.verifier
	v.Audience = audience
	return &v
}

func (e *Engine) revoked(ctx context.Context, c token.Claims) (bool, error) {
	return e.Store.Revoked(ctx, c.ID, c.Session, c.UserID, c.ClientID, c.Generation)
}
