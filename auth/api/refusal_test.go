package api_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/proa-dev/proa/kit/token"
)

const (
	verifier  = "a-code-verifier-that-is-long-enough-for-rfc-7636"
	challenge = "KNczEurq67rF28NySvSIcG9G500QgPaoK2MO-TTWuoc" // BASE64URL(SHA256(verifier))
)

// refusals is the table: what is tried, and exactly what comes back.
var refusals = []struct {
	name   string
	try    func(*world) reply
	status int
	body   string
}{
	{"no token", func(w *world) reply { return w.call(http.MethodGet, "/Users", "", nil) },
		401, `{"error":"unauthorized","error_description":"An access token is needed. Send it as the header: Authorization: bearer TOKEN"}`},
	{"expired", func(w *world) reply {
		return w.show(func(c *token.Claims) { c.Expires = token.NumDate(w.now().Add(-time.Minute).Unix()) })
	}, 401, `{"error":"invalid_token","error_description":"The token has expired. Get a new one and try again."}`},
	{"expired by the clock", func(w *world) reply { w.later(11 * time.Minute); return w.call(http.MethodGet, "/Users", w.admin, nil) },
		401, `{"error":"invalid_token","error_description":"The token has expired. Get a new one and try again."}`},
	{"not yet valid", func(w *world) reply {
		return w.show(func(c *token.Claims) { at := token.NumDate(w.now().Add(time.Minute).Unix()); c.NotBefore = &at })
	}, 401, `{"error":"invalid_token","error_description":"The token is not valid yet. Check the clock of the machine that issued it."}`},
	{"issued in the future", func(w *world) reply {
		return w.show(func(c *token.Claims) { c.Issued = token.NumDate(w.now().Add(time.Minute).Unix()) })
	}, 401, `{"error":"invalid_token","error_description":"The token is not valid yet. Check the clock of the machine that issued it."}`},
	{"unsigned", func(w *world) reply {
		return w.call(http.MethodGet, "/Users", w.admin[:strings.LastIndex(w.admin, ".")+1], nil)
	}, 401, `{"error":"invalid_token","error_description":"The token's signature does not match. Get a new token and try again."}`},
	{"alg none", func(w *world) reply {
		head := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`))
		return w.call(http.MethodGet, "/Users", head+"."+strings.Split(w.admin, ".")[1]+".", nil)
	}, 401, `{"error":"invalid_token","error_description":"The token is not signed with RS256, the only algorithm accepted. Get a token from the authorization server."}`},
	{"HS256 signed with the public key", func(w *world) reply {
		var k struct {
			ID    string `json:"kid"`
			Value string `json:"value"`
		}
		w.call(http.MethodGet, "/token_key", "", nil).json(w.t, &k)
		return w.call(http.MethodGet, "/Users", w.forge(jose.HS256, []byte(k.Value), k.ID), nil)
	}, 401, `{"error":"invalid_token","error_description":"The token is not signed with RS256, the only algorithm accepted. Get a token from the authorization server."}`},
	{"unknown kid", func(w *world) reply {
		return w.call(http.MethodGet, "/Users", w.forge(jose.RS256, w.rsaKey(), "another-key"), nil)
	}, 401, `{"error":"invalid_token","error_description":"The token is signed with a key that is not known here. Get a new token and try again."}`},
	{"known kid, another key", func(w *world) reply {
		return w.call(http.MethodGet, "/Users", w.forge(jose.RS256, w.rsaKey(), w.keys.Signing()), nil)
	}, 401, `{"error":"invalid_token","error_description":"The token's signature does not match. Get a new token and try again."}`},
	{"wrong iss", func(w *world) reply {
		return w.show(func(c *token.Claims) { c.Issuer = "https://elsewhere.example.org" })
	},
		401, `{"error":"invalid_token","error_description":"The token comes from another issuer. Get one from the authorization server that this service trusts."}`},
	{"wrong aud", func(w *world) reply { return w.show(func(c *token.Claims) { c.Audience = []string{"notifications"} }) },
		401, `{"error":"invalid_token","error_description":"The token is meant for another service. Ask for one with a scope of this service."}`},
	{"refresh token of a real UAA, signed with the same key", func(w *world) reply { return w.show(func(c *token.Claims) { c.ID += "-r" }) },
		401, `{"error":"invalid_token","error_description":"The token is not an access token. Send the access token."}`},
	{"id token", func(w *world) reply {
		t := w.token(w.exchange("app", "", w.appCode(), "redirect_uri", "https://app.example.org/callback", "code_verifier", verifier))
		return w.call(http.MethodGet, "/userinfo", t.ID, nil)
	}, 401, `{"error":"invalid_token","error_description":"The token is not an access token. Send the access token."}`},
	{"our own refresh token", func(w *world) reply {
		return w.call(http.MethodGet, "/Users", w.login("admin", adminPassword).Refresh, nil)
	},
		401, `{"error":"invalid_token","error_description":"The token is not signed with RS256, the only algorithm accepted. Get a token from the authorization server."}`},
	{"revoked", func(w *world) reply {
		w.revoke(w.admin)
		return w.call(http.MethodGet, "/Users", w.admin, nil)
	}, 401, `{"error":"invalid_token","error_description":"The token has been revoked. Log in again."}`},
	{"token of a disabled user", func(w *world) reply {
		id := w.person("bob", "bob's password")
		t := w.login("bob", "bob's password")
		w.call(http.MethodPatch, "/Users/"+id, w.admin, map[string]bool{"active": false})
		return w.call(http.MethodGet, "/Users/"+id, t.Access, nil)
	}, 401, `{"error":"invalid_token","error_description":"The token has been revoked. Log in again."}`},
	{"token without the scope", func(w *world) reply {
		w.person("bob", "bob's password")
		return w.call(http.MethodGet, "/Users", w.login("bob", "bob's password").Access, nil)
	}, 403, `{"error":"insufficient_scope","error_description":"This needs one of the scopes scim.read, uaa.admin, and the token has none of them. Ask an administrator for it."}`},

	{"wrong client secret", func(w *world) reply {
		return w.form("/oauth/token", "backend", "guess", "grant_type", "client_credentials")
	}, 401, `{"error":"invalid_client","error_description":"The client's id or secret is wrong. Check both and try again."}`},
	{"wrong client secret in the form", func(w *world) reply {
		return w.form("/oauth/token", "", "", "grant_type", "client_credentials", "client_id", "backend", "client_secret", "guess")
	}, 401, `{"error":"invalid_client","error_description":"The client's id or secret is wrong. Check both and try again."}`},
	{"unknown client", func(w *world) reply {
		return w.form("/oauth/token", "nobody", "guess", "grant_type", "client_credentials")
	}, 401, `{"error":"invalid_client","error_description":"The client's id or secret is wrong. Check both and try again."}`},
	{"public client with a secret", func(w *world) reply {
		return w.form("/oauth/token", "cf", "guess", "grant_type", "password", "username", "admin", "password", adminPassword)
	}, 401, `{"error":"invalid_client","error_description":"The client's id or secret is wrong. Check both and try again."}`},
	{"wrong password", func(w *world) reply {
		return w.form("/oauth/token", "cf", "", "grant_type", "password", "username", "admin", "password", "guess")
	}, 401, `{"error":"unauthorized","error_description":"The user name or the password is wrong. Check both and try again."}`},
	{"unknown user, told as a wrong password", func(w *world) reply {
		return w.form("/oauth/token", "cf", "", "grant_type", "password", "username", "nobody", "password", "guess")
	}, 401, `{"error":"unauthorized","error_description":"The user name or the password is wrong. Check both and try again."}`},
	{"disabled user", func(w *world) reply {
		id := w.person("bob", "bob's password")
		w.call(http.MethodPatch, "/Users/"+id, w.admin, map[string]bool{"active": false})
		return w.form("/oauth/token", "cf", "", "grant_type", "password", "username", "bob", "password", "bob's password")
	}, 401, `{"error":"unauthorized","error_description":"This account is disabled. Ask an administrator to enable it."}`},
	{"locked user, also with the right password", func(w *world) reply {
		for range 5 {
			w.form("/oauth/token", "cf", "", "grant_type", "password", "username", "admin", "password", "guess")
		}
		return w.form("/oauth/token", "cf", "", "grant_type", "password", "username", "ADMIN", "password", adminPassword)
	}, 401, `{"error":"unauthorized","error_description":"Your account has been locked because of too many failed attempts to login."}`},
	{"locked name that nobody has", func(w *world) reply {
		for range 5 {
			w.form("/oauth/token", "cf", "", "grant_type", "password", "username", "nobody", "password", "guess")
		}
		return w.form("/oauth/token", "cf", "", "grant_type", "password", "username", "nobody", "password", "guess")
	}, 401, `{"error":"unauthorized","error_description":"Your account has been locked because of too many failed attempts to login."}`},
	{"too many mistakes from one address", func(w *world) reply {
		w.freeze()
		for i := range 20 {
			w.form("/oauth/token", "cf", "", "grant_type", "password", "username", "name"+string(rune('a'+i)), "password", "guess")
		}
		return w.form("/oauth/token", "cf", "", "grant_type", "password", "username", "admin", "password", adminPassword)
	}, 429, `{"error":"too_many_attempts","error_description":"Too many failed attempts came from this address. Wait as long as the Retry-After header says, then try again."}`},

	{"reused refresh token", func(w *world) reply {
		t := w.login("admin", adminPassword)
		w.token(w.refresh(t.Refresh))
		return w.refresh(t.Refresh)
	}, 401, `{"error":"invalid_token","error_description":"The refresh token has been used already, so its login was ended. Log in again."}`},
	{"refresh token of a login that was ended so", func(w *world) reply {
		t := w.login("admin", adminPassword)
		next := w.token(w.refresh(t.Refresh))
		w.refresh(t.Refresh)
		return w.refresh(next.Refresh)
	}, 401, `{"error":"invalid_token","error_description":"The refresh token is not known or was revoked. Log in again."}`},
	{"access token of a login that was ended so", func(w *world) reply {
		t := w.login("admin", adminPassword)
		next := w.token(w.refresh(t.Refresh))
		w.refresh(t.Refresh)
		return w.call(http.MethodGet, "/Users", next.Access, nil)
	}, 401, `{"error":"invalid_token","error_description":"The token has been revoked. Log in again."}`},
	{"expired refresh token", func(w *world) reply {
		t := w.login("admin", adminPassword)
		w.later(25 * time.Hour)
		return w.refresh(t.Refresh)
	}, 401, `{"error":"invalid_token","error_description":"The refresh token has expired. Log in again."}`},
	{"unknown refresh token", func(w *world) reply { return w.refresh("made-up") },
		401, `{"error":"invalid_token","error_description":"The refresh token is not known or was revoked. Log in again."}`},
	{"refresh token after a new password", func(w *world) reply {
		id := w.person("bob", "bob's password")
		t := w.login("bob", "bob's password")
		w.call(http.MethodPut, "/Users/"+id+"/password", t.Access, map[string]string{"oldPassword": "bob's password", "password": "another password"})
		return w.refresh(t.Refresh)
	}, 401, `{"error":"invalid_token","error_description":"The refresh token is not known or was revoked. Log in again."}`},

	{"reused code", func(w *world) reply {
		code := w.sshCode(w.admin)
		w.token(w.exchange("ssh-proxy", "ssh secret", code))
		return w.exchange("ssh-proxy", "ssh secret", code)
	}, 400, `{"error":"invalid_grant","error_description":"The code has been used already, and what it led to was revoked. Log in again."}`},
	{"token of a code that was used twice", func(w *world) reply {
		code := w.sshCode(w.admin)
		t := w.token(w.exchange("ssh-proxy", "ssh secret", code))
		w.exchange("ssh-proxy", "ssh secret", code)
		return w.call(http.MethodGet, "/Users", t.Access, nil)
	}, 401, `{"error":"invalid_token","error_description":"The token has been revoked. Log in again."}`},
	{"expired code", func(w *world) reply {
		code := w.sshCode(w.admin)
		w.later(6 * time.Minute)
		return w.exchange("ssh-proxy", "ssh secret", code)
	}, 400, `{"error":"invalid_grant","error_description":"The code has expired. Log in again."}`},
	{"unknown code", func(w *world) reply { return w.exchange("ssh-proxy", "ssh secret", "made-up") },
		400, `{"error":"invalid_grant","error_description":"The code is not known. Log in again."}`},
	{"code of another client", func(w *world) reply { return w.exchange("backend", "backend secret", w.sshCode(w.admin)) },
		400, `{"error":"invalid_grant","error_description":"The code was given to another client. Log in again."}`},
	{"wrong PKCE verifier", func(w *world) reply {
		return w.exchange("app", "", w.appCode(), "redirect_uri", "https://app.example.org/callback", "code_verifier", strings.Repeat("x", 43))
	}, 400, `{"error":"invalid_grant","error_description":"The code_verifier does not fit the code_challenge that the code was asked with. Log in again."}`},
	{"no PKCE verifier", func(w *world) reply {
		return w.exchange("app", "", w.appCode(), "redirect_uri", "https://app.example.org/callback")
	}, 400, `{"error":"invalid_grant","error_description":"The code_verifier does not fit the code_challenge that the code was asked with. Log in again."}`},
	{"no PKCE verifier after a wrong one", func(w *world) reply {
		code := w.appCode()
		w.exchange("app", "", code, "redirect_uri", "https://app.example.org/callback", "code_verifier", strings.Repeat("x", 43))
		return w.exchange("app", "", code, "redirect_uri", "https://app.example.org/callback")
	}, 400, `{"error":"invalid_grant","error_description":"The code_verifier does not fit the code_challenge that the code was asked with. Log in again."}`},
	{"another redirect at the exchange", func(w *world) reply {
		return w.exchange("app", "", w.appCode(), "redirect_uri", "https://evil.example.org/", "code_verifier", verifier)
	}, 400, `{"error":"invalid_grant","error_description":"The redirect_uri is not the one that the code was asked with. Send the same."}`},
	{"redirect not registered", func(w *world) reply {
		return w.call(http.MethodGet, "/oauth/authorize?client_id=app&response_type=code&redirect_uri=https://evil.example.org/", "", nil)
	}, 400, `{"error":"invalid_request","error_description":"The application that sent you here gave an address to return to that is not registered for it. Go back and tell its owner."}`},
	{"authorize for an unknown client", func(w *world) reply {
		return w.call(http.MethodGet, "/oauth/authorize?client_id=nobody&response_type=code", "", nil)
	}, 400, `{"error":"invalid_client","error_description":"The application that sent you here is not known. Go back and tell its owner."}`},
	{"code for a client that needs consent, by token", func(w *world) reply {
		return w.call(http.MethodGet, "/oauth/authorize?client_id=backend&response_type=code&redirect_uri=https://backend.example.org/callback", w.admin, nil)
	}, 403, `{"error":"insufficient_scope","error_description":"The application backend needs your consent. Open this address in a browser."}`},

	{"unknown grant", func(w *world) reply { return w.form("/oauth/token", "cf", "", "grant_type", "magic") },
		400, `{"error":"unsupported_grant_type","error_description":"This grant_type is not spoken here. Use client_credentials, password, refresh_token or authorization_code."}`},
	{"no grant", func(w *world) reply { return w.form("/oauth/token", "cf", "") },
		400, `{"error":"invalid_request","error_description":"grant_type is missing. Send one of client_credentials, password, refresh_token, authorization_code."}`},
	{"grant that the client may not use", func(w *world) reply {
		return w.form("/oauth/token", "backend", "backend secret", "grant_type", "password", "username", "admin", "password", adminPassword)
	}, 400, `{"error":"unauthorized_client","error_description":"This client may not use this grant. Let an administrator add it to the client's authorized_grant_types."}`},
	{"client_credentials of a public client", func(w *world) reply { return w.form("/oauth/token", "cf", "", "grant_type", "client_credentials") },
		400, `{"error":"unauthorized_client","error_description":"This client may not use this grant. Let an administrator add it to the client's authorized_grant_types."}`},
	{"scope that the client may not have", func(w *world) reply {
		return w.form("/oauth/token", "backend", "backend secret", "grant_type", "client_credentials", "scope", "uaa.admin")
	}, 400, `{"error":"invalid_scope","error_description":"A scope was asked for that this client may not have. Ask for fewer, or let an administrator add it to the client."}`},
	{"parameter twice", func(w *world) reply {
		return w.form("/oauth/token", "cf", "", "grant_type", "password", "username", "admin", "username", "bob", "password", "x")
	}, 400, `{"error":"invalid_request","error_description":"A parameter is sent twice. Send each once."}`},
	{"passcode that nobody got", func(w *world) reply {
		return w.form("/oauth/token", "cf", "", "grant_type", "password", "passcode", "made-up")
	},
		401, `{"error":"unauthorized","error_description":"The passcode is wrong, used or expired. Get a new one at /passcode."}`},
	{"person of another origin", func(w *world) reply {
		return w.form("/oauth/token?login_hint="+url.QueryEscape(`{"origin":"ldap"}`), "cf", "", "grant_type", "password", "username", "admin", "password", adminPassword)
	}, 401, `{"error":"unauthorized","error_description":"The user name or the password is wrong. Check both and try again."}`},
	{"grant in the address", func(w *world) reply {
		return w.form("/oauth/token?grant_type=client_credentials", "backend", "backend secret")
	}, 400, `{"error":"invalid_request","error_description":"grant_type is missing. Send one of client_credentials, password, refresh_token, authorization_code."}`},
	{"introspection without uaa.resource", func(w *world) reply { return w.form("/introspect", "ssh-proxy", "ssh secret", "token", w.admin) },
		403, `{"error":"access_denied","error_description":"The client ssh-proxy may not ask about tokens. Let an administrator give it the authority uaa.resource."}`},
	{"revoked, introspected", func(w *world) reply {
		w.revoke(w.admin)
		return w.form("/introspect", "backend", "backend secret", "token", w.admin)
	}, 200, `{"active":false}`},
}

func TestRefusals(t *testing.T) {
	for _, r := range refusals {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			got := r.try(newWorld(t))
			if got.status != r.status || got.body != r.body {
				t.Errorf("got  %d %s\nwant %d %s", got.status, got.body, r.status, r.body)
			}
		})
	}
}

func (w *world) refresh(t string) reply {
	return w.form("/oauth/token", "cf", "", "grant_type", "refresh_token", "refresh_token", t)
}

func (w *world) exchange(client, secret, code string, more ...string) reply {
	return w.form("/oauth/token", client, secret, append([]string{"grant_type", "authorization_code", "code", code}, more...)...)
}

// revoke ends a token by its id, as `cf logout` does.
func (w *world) revoke(raw string) {
	w.t.Helper()
	if r := w.call(http.MethodDelete, "/oauth/token/revoke/"+w.claims(raw).ID, raw, nil); r.status != http.StatusOK {
		w.t.Fatalf("revoke: %d %s", r.status, r.body)
	}
}

func (w *world) claims(raw string) token.Claims {
	w.t.Helper()
	body, err := base64.RawURLEncoding.DecodeString(strings.Split(raw, ".")[1])
	must(w.t, err)
	var c token.Claims
	must(w.t, json.Unmarshal(body, &c))
	return c
}

// show signs the administrator's claims anew, with one thing changed, and uses the token.
func (w *world) show(change func(*token.Claims)) reply {
	w.t.Helper()
	c := w.claims(w.admin)
	change(&c)
	raw, err := w.keys.Sign(c)
	must(w.t, err)
	return w.call(http.MethodGet, "/Users", raw, nil)
}

// forge signs the administrator's claims with a key of our own choice.
func (w *world) forge(alg jose.SignatureAlgorithm, key any, kid string) string {
	w.t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: kid}}, nil)
	must(w.t, err)
	raw, err := jwt.Signed(signer).Claims(w.claims(w.admin)).Serialize()
	must(w.t, err)
	return raw
}

func (w *world) rsaKey() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(w.t, err)
	return key
}

// appCode is a code of the public client, got by a person in a browser.
func (w *world) appCode() string {
	w.t.Helper()
	b := w.browser()
	q := url.Values{"client_id": {"app"}, "response_type": {"code"}, "redirect_uri": {"https://app.example.org/callback"}, "state": {"a state"},
		"code_challenge": {challenge}, "code_challenge_method": {"S256"}, "nonce": {"a nonce"}}
	r := w.logInAt(b, "/oauth/authorize?"+q.Encode())
	return w.codeIn(w.submit(b, r.body, "answer", "allow"))
}

func decode(t *testing.T, raw string) string {
	t.Helper()
	body, err := base64.RawURLEncoding.DecodeString(strings.Split(raw, ".")[1])
	must(t, err)
	return string(body)
}
