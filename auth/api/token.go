package api

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"slices"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/auth/store"
	"github.com/proa-dev/proa/auth/uaa"
	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/token"
	"github.com/proa-dev/proa/kit/web"
)

func (s *Server) token(w http.ResponseWriter, r *http.Request, _ auth.Who) error {
	reply, err := s.Engine.Token(r)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return web.JSON(w, http.StatusOK, reply)
}

// revokeToken is RFC 7009: the client shows the token that is to end.
func (s *Server) revokeToken(w http.ResponseWriter, r *http.Request, _ auth.Who) error {
	if err := s.Engine.Revoke(r); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// revokeByID ends one token or login of the sender's own, or anyone's with tokens.revoke. An id that is not there is not told
// from one that is somebody else's.
func (s *Server) revokeByID(w http.ResponseWriter, r *http.Request, who auth.Who) error {
	id := r.PathValue("id")
	claims, err := s.verifier.FromRequest(r)
	if err != nil {
		return err
	}
	var by *auth.Who
	own := id == claims.ID || (id == claims.Session && id != "")
	switch {
	case own:
	case who.Is("tokens.revoke"):
		by = &who
	default:
		owner, client, err := s.Store.LoginOwner(r.Context(), id)
		if err != nil && !errors.Is(err, store.ErrNone) {
			return err
		}
		if err != nil || owner != who.UserID || client != who.ClientID {
			return fault.NotFound("There is no token %q of yours.", id)
		}
	}
	if err := s.Store.Revoke(r.Context(), by, id, s.Now()); err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, map[string]string{"status": "revoked"})
}

func (s *Server) revokeUser(w http.ResponseWriter, r *http.Request, who auth.Who) error {
	_, err := s.Store.UpdateUser(r.Context(), who, r.PathValue("id"), "user.revoke", func(*auth.User) (bool, error) { return true, nil })
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, map[string]string{"status": "revoked"})
}

func (s *Server) revokeClient(w http.ResponseWriter, r *http.Request, who auth.Who) error {
	_, err := s.Store.UpdateClient(r.Context(), who, r.PathValue("id"), "client.revoke", func(*auth.Client) (bool, error) { return true, nil })
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, map[string]string{"status": "revoked"})
}

// inspected is what a resource server that may ask learns of a token.
func (s *Server) inspected(r *http.Request) (token.Claims, error) {
	c, err := s.Engine.Client(r)
	if err != nil {
		return token.Claims{}, err
	}
	if !slices.Contains(c.Authorities, "uaa.resource") {
		return token.Claims{}, fault.Forbidden("The client %s may not ask about tokens. Let an administrator give it the authority uaa.resource.", c.ID).WithCode("access_denied")
	}
	return s.Engine.Inspect(r.Context(), r.PostFormValue("token"))
}

// introspect is RFC 7662: a token that is not good is an answer, not an error.
func (s *Server) introspect(w http.ResponseWriter, r *http.Request, _ auth.Who) error {
	claims, err := s.inspected(r)
	w.Header().Set("Cache-Control", "no-store")
	if fault.From(err).Code == token.CodeInvalid {
		return web.JSON(w, http.StatusOK, map[string]bool{"active": false})
	}
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, struct {
		Active bool `json:"active"`
		token.Claims
	}{true, claims})
}

// checkToken is UAA's older form: a token that is not good is 400.
func (s *Server) checkToken(w http.ResponseWriter, r *http.Request, _ auth.Who) error {
	claims, err := s.inspected(r)
	if f := fault.From(err); err != nil && f.Code == token.CodeInvalid {
		return fault.Invalid("%s", f.Detail).WithCode(token.CodeInvalid)
	}
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return web.JSON(w, http.StatusOK, claims)
}

// key is a public key in both forms that UAA gives: a JWK, and PEM in value.
type key struct {
	Type  string `json:"kty"`
	ID    string `json:"kid"`
	Use   string `json:"use"`
	Alg   string `json:"alg"`
	N     string `json:"n"`
	E     string `json:"e"`
	Value string `json:"value"`
}

func (s *Server) keys(r *http.Request) ([]key, error) {
	set, err := s.Engine.Keys.Published(r.Context())
	if err != nil {
		return nil, err
	}
	keys := []key{}
	for _, jwk := range set.Keys {
		der, err := x509.MarshalPKIXPublicKey(jwk.Key)
		if err != nil {
			return nil, err
		}
		body, err := jwk.MarshalJSON()
		if err != nil {
			return nil, err
		}
		k := key{Value: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))}
		if err := json.Unmarshal(body, &k); err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, nil
}

func (s *Server) tokenKeys(w http.ResponseWriter, r *http.Request, _ auth.Who) error {
	keys, err := s.keys(r)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, map[string]any{"keys": keys})
}

// tokenKey is the key that signs now, for clients that know only one.
func (s *Server) tokenKey(w http.ResponseWriter, r *http.Request, _ auth.Who) error {
	keys, err := s.keys(r)
	if err != nil {
		return err
	}
	signing := s.Engine.Keys.Signing()
	for _, k := range keys {
		if k.ID == signing {
			return web.JSON(w, http.StatusOK, k)
		}
	}
	return fault.Unavailable("No signing key is in force. Try again in a moment.")
}

func (s *Server) discovery(w http.ResponseWriter, _ *http.Request, _ auth.Who) error {
	at := func(path string) string { return s.URL.String() + path }
	return web.JSON(w, http.StatusOK, map[string]any{
		"issuer": s.URL.String(), "authorization_endpoint": at("/oauth/authorize"), "token_endpoint": at("/oauth/token"),
		"userinfo_endpoint": at("/userinfo"), "jwks_uri": at("/token_keys"), "revocation_endpoint": at("/oauth/revoke"),
		"introspection_endpoint": at("/introspect"), "response_types_supported": []string{"code"}, "response_modes_supported": []string{"query"},
		"grant_types_supported": auth.Grants, "subject_types_supported": []string{"public"}, "scopes_supported": []string{"openid"},
		"id_token_signing_alg_values_supported": []string{"RS256"}, "code_challenge_methods_supported": []string{"S256"},
		"token_endpoint_auth_methods_supported": []string{"client_secret_basic", "client_secret_post", "none"},
		"claims_supported":                      []string{"sub", "iss", "aud", "exp", "iat", "auth_time", "nonce", "user_id", "user_name", "email", "origin"},
	})
}

func (s *Server) userinfo(w http.ResponseWriter, r *http.Request, who auth.Who) error {
	if who.UserID == "" {
		return fault.Forbidden("This token belongs to a client, not to a person. Log in as a person.").WithCode(token.CodeScope)
	}
	u, err := s.Store.User(r.Context(), who.UserID)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, map[string]any{"sub": u.ID, "user_id": u.ID, "user_name": u.UserName, "email": u.Email, "email_verified": u.Verified,
		"given_name": u.GivenName, "family_name": u.FamilyName, "name": displayName(u), "origin": u.Origin})
}

func displayName(u auth.User) string {
	if u.GivenName == "" && u.FamilyName == "" {
		return u.UserName
	}
	return u.GivenName + " " + u.FamilyName
}

// info tells what a client needs before it can log in: which fields to ask the person for.
func (s *Server) info(w http.ResponseWriter, _ *http.Request, _ auth.Who) error {
	return web.JSON(w, http.StatusOK, map[string]any{
		"app":   map[string]string{"version": uaa.Version},
		"links": map[string]string{"uaa": s.URL.String(), "login": s.URL.String(), "passwd": "/passcode"},
		"prompts": map[string][]string{
			"username": {"text", "User name"}, "password": {"password", "Password"},
			"passcode": {"password", "One-time passcode (get one at " + s.URL.String() + "/passcode)"},
		},
		"zone_name": "uaa", "entityID": s.URL.Host, "commit_id": "proa",
	})
}
