// Package token owns the check of a bearer token: a JWT signed with RS256 by a key that the authorization server publishes
// and replaces from time to time. Every server of the house asks it, and none decides for itself what a good token is.
package token

import (
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/proa-dev/proa/kit/fault"
)

// Claims is what a token says, in the names that UAA gives its claims.
type Claims struct {
	ID         string   `json:"jti"`
	Issuer     string   `json:"iss"`
	Subject    string   `json:"sub"`
	Audience   Strings  `json:"aud"`
	ClientID   string   `json:"client_id"`
	Scopes     Strings  `json:"scope"`
	Grant      string   `json:"grant_type,omitempty"`
	UserID     string   `json:"user_id,omitempty"`
	UserName   string   `json:"user_name,omitempty"`
	Email      string   `json:"email,omitempty"`
	Origin     string   `json:"origin,omitempty"`
	Session    string   `json:"sid,omitempty"`       // the login that this token and its refresh tokens come from
	Generation string   `json:"rev_sig,omitempty"`   // changes when all tokens of a person or client are revoked
	Revocable  bool     `json:"revocable,omitempty"` // cf logout revokes only tokens that say so
	Issued     NumDate  `json:"iat"`
	Expires    NumDate  `json:"exp"`
	NotBefore  *NumDate `json:"nbf,omitempty"`
}

// NumDate is a time in whole seconds since 1970, as JWTs write it.
type NumDate = jwt.NumericDate

// Strings reads a list that some servers write as one string.
type Strings []string

// UnmarshalJSON takes a list or a space-separated string.
func (s *Strings) UnmarshalJSON(b []byte) error {
	var list []string
	if err := json.Unmarshal(b, &list); err == nil {
		*s = list
		return nil
	}
	var one string
	if err := json.Unmarshal(b, &one); err != nil {
		return err
	}
	*s = strings.Fields(one)
	return nil
}

// Has tells whether the token carries one of the scopes.
func (c Claims) Has(scopes ...string) bool {
	return slices.ContainsFunc(scopes, func(scope string) bool { return slices.Contains(c.Scopes, scope) })
}

// Verifier decides whether a token is good.
type Verifier struct {
	Issuer   string
	Audience []string                                                        // the token must name one of these
	Key      func(ctx context.Context, kid string) (crypto.PublicKey, error) // ErrUnknownKey when there is none
	Revoked  func(ctx context.Context, c Claims) (bool, error)               // nil: the token's lifetime is the bound
	Now      func() time.Time
}

// ErrUnknownKey says that no key has this id, now and after asking again.
var ErrUnknownKey = errors.New("unknown key id")

const (
	leeway    = 10 * time.Second // clocks differ
	maxLength = 16 << 10         // bytes of a token; ours have about a thousand
)

// The codes of RFC 6750.
const (
	CodeMissing = "unauthorized"
	CodeInvalid = "invalid_token"
	CodeScope   = "insufficient_scope"
)

func refuse(sentence string) *fault.Error {
	return fault.Unauthorized("%s", sentence).WithCode(CodeInvalid)
}

// The refusals, so that tests and clients can rely on their words.
var (
	ErrMissing   = fault.Unauthorized("An access token is needed. Send it as the header: Authorization: bearer TOKEN").WithCode(CodeMissing)
	errMalformed = refuse("The token is not a JWT that can be read. Get a new one and try again.")
	errAlgorithm = refuse("The token is not signed with RS256, the only algorithm accepted. Get a token from the authorization server.")
	errKey       = refuse("The token is signed with a key that is not known here. Get a new token and try again.")
	errSignature = refuse("The token's signature does not match. Get a new token and try again.")
	errExpired   = refuse("The token has expired. Get a new one and try again.")
	errEarly     = refuse("The token is not valid yet. Check the clock of the machine that issued it.")
	errIssuer    = refuse("The token comes from another issuer. Get one from the authorization server that this service trusts.")
	errAudience  = refuse("The token is meant for another service. Ask for one with a scope of this service.")
	errKind      = refuse("The token is not an access token. Send the access token.")
	errRevoked   = refuse("The token has been revoked. Log in again.")
)

// FromRequest finds the bearer token of a request and verifies it.
func (v *Verifier) FromRequest(r *http.Request) (Claims, error) {
	scheme, raw, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") || raw == "" {
		return Claims{}, ErrMissing
	}
	return v.Verify(r.Context(), strings.TrimSpace(raw))
}

// Verify returns what a good token says, or a fault that tells why it is not good.
func (v *Verifier) Verify(ctx context.Context, raw string) (Claims, error) {
	claims, err := v.Inspect(ctx, raw)
	if err != nil {
		return Claims{}, err
	}
	if !slices.ContainsFunc(v.Audience, func(a string) bool { return slices.Contains(claims.Audience, a) }) {
		return Claims{}, errAudience
	}
	return claims, nil
}

// Inspect is Verify for whomever the token is meant: what the authorization server says of a token that another service shows it.
func (v *Verifier) Inspect(ctx context.Context, raw string) (Claims, error) {
	claims, err := v.signed(ctx, raw)
	if err != nil {
		return Claims{}, err
	}
	now := v.Now()
	switch {
	case claims.Issuer != v.Issuer:
		return Claims{}, errIssuer
	case claims.ClientID == "" || strings.HasSuffix(claims.ID, "-r"): // an id token has no client_id; UAA's refresh tokens end so
		return Claims{}, errKind
	case claims.Expires == 0 || now.Add(-leeway).After(claims.Expires.Time()):
		return Claims{}, errExpired
	case claims.NotBefore != nil && now.Add(leeway).Before(claims.NotBefore.Time()), now.Add(leeway).Before(claims.Issued.Time()):
		return Claims{}, errEarly
	}
	if v.Revoked == nil {
		return claims, nil
	}
	revoked, err := v.Revoked(ctx, claims)
	if err != nil {
		return Claims{}, err
	}
	if revoked {
		return Claims{}, errRevoked
	}
	return claims, nil
}

// signed checks form, algorithm, key and signature, in that order, before a claim is believed.
func (v *Verifier) signed(ctx context.Context, raw string) (Claims, error) {
	if len(raw) > maxLength {
		return Claims{}, errMalformed
	}
	parsed, err := jose.ParseSignedCompact(raw, []jose.SignatureAlgorithm{jose.RS256})
	var algorithm *jose.ErrUnexpectedSignatureAlgorithm
	switch {
	case errors.As(err, &algorithm):
		return Claims{}, errAlgorithm.Because(err)
	case err != nil:
		return Claims{}, errMalformed.Because(err)
	}
	key, err := v.Key(ctx, parsed.Signatures[0].Protected.KeyID)
	switch {
	case errors.Is(err, ErrUnknownKey):
		return Claims{}, errKey
	case err != nil:
		return Claims{}, err
	}
	body, err := parsed.Verify(key)
	if err != nil {
		return Claims{}, errSignature.Because(err)
	}
	var claims Claims
	if err := json.Unmarshal(body, &claims); err != nil {
		return Claims{}, errMalformed.Because(err)
	}
	return claims, nil
}
