package token_test

import (
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/proa-dev/proa/kit/fault"
	"github.com/proa-dev/proa/kit/token"
)

const issuer = "https://auth.example.org"

var start = time.Unix(1_750_000_000, 0)

// Two keys of the server and one of a stranger, made once.
var ours, next, foreign = sync.OnceValue(newKey), sync.OnceValue(newKey), sync.OnceValue(newKey)

func newKey() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
}

func public(kid string, key *rsa.PrivateKey) jose.JSONWebKey {
	return jose.JSONWebKey{Key: key.Public(), KeyID: kid, Algorithm: "RS256", Use: "sig"}
}

type object = map[string]any

// with is a copy with some members changed, and without those that are nil.
func with(o, changes object) object {
	o = maps.Clone(o)
	maps.Copy(o, changes)
	maps.DeleteFunc(o, func(_ string, v any) bool { return v == nil })
	return o
}

func encode(v any) string {
	raw, ok := v.(string)
	if !ok {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		raw = string(b)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(raw))
}

func rs256(key *rsa.PrivateKey) func(string) []byte {
	return func(input string) []byte {
		sum := sha256.Sum256([]byte(input))
		signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
		if err != nil {
			panic(err)
		}
		return signature
	}
}

func rs512(input string) []byte {
	sum := sha512.Sum512([]byte(input))
	signature, err := rsa.SignPKCS1v15(nil, ours(), crypto.SHA512, sum[:])
	if err != nil {
		panic(err)
	}
	return signature
}

// hs256 signs as one who takes the public key, in the form servers publish it in, for a secret.
func hs256(input string) []byte {
	der, err := x509.MarshalPKIXPublicKey(ours().Public())
	if err != nil {
		panic(err)
	}
	mac := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	mac.Write([]byte(input))
	return mac.Sum(nil)
}

func unsigned(string) []byte { return nil }

// sign writes a token by hand, so that its header can say anything.
func sign(header, claims any, by func(string) []byte) string {
	input := encode(header) + "." + encode(claims)
	return input + "." + base64.RawURLEncoding.EncodeToString(by(input))
}

var (
	goodHeader = object{"alg": "RS256", "typ": "JWT", "kid": "key-1"}
	goodClaims = object{
		"jti": "id-1", "iss": issuer, "sub": "u-1", "aud": []string{"openid", "notifications"}, "client_id": "app", "user_id": "u-1",
		"scope": []string{"notifications.write", "critical_notifications.write"}, "iat": start.Unix(), "exp": start.Add(time.Hour).Unix(),
	}
)

func good(changes object) string { return sign(goodHeader, with(goodClaims, changes), rs256(ours())) }

// newVerifier checks tokens for the service "notifications" at a given time, with keys from a real key server.
func newVerifier(t *testing.T, now time.Time) *token.Verifier {
	t.Helper()
	keys := newKeyServer(t, public("key-0", next()), public("key-1", ours()))
	clock := func() time.Time { return now }
	remote := &token.Remote{URL: keys.URL, Client: keys.Client(), Now: clock}
	return &token.Verifier{Issuer: issuer, Audience: []string{"other", "notifications"}, Key: remote.Key, Now: clock}
}

func show(v *token.Verifier, authorization string) (token.Claims, error) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	return v.FromRequest(r)
}

// refusal is what a caller is told.
type refusal struct{ code, detail string }

var (
	missing   = refusal{"unauthorized", "An access token is needed. Send it as the header: Authorization: bearer TOKEN"}
	malformed = refusal{"invalid_token", "The token is not a JWT that can be read. Get a new one and try again."}
	algorithm = refusal{"invalid_token", "The token is not signed with RS256, the only algorithm accepted. Get a token from the authorization server."}
	unknown   = refusal{"invalid_token", "The token is signed with a key that is not known here. Get a new token and try again."}
	mismatch  = refusal{"invalid_token", "The token's signature does not match. Get a new token and try again."}
	expired   = refusal{"invalid_token", "The token has expired. Get a new one and try again."}
	early     = refusal{"invalid_token", "The token is not valid yet. Check the clock of the machine that issued it."}
	badIssuer = refusal{"invalid_token", "The token comes from another issuer. Get one from the authorization server that this service trusts."}
	badAud    = refusal{"invalid_token", "The token is meant for another service. Ask for one with a scope of this service."}
	revoked   = refusal{"invalid_token", "The token has been revoked. Log in again."}
)

func wantRefusal(t *testing.T, claims token.Claims, err error, want refusal) {
	t.Helper()
	if err == nil {
		t.Fatalf("accepted as %+v", claims)
	}
	f := fault.From(err)
	if got := (refusal{f.Code, f.Detail}); f.Kind != fault.KindUnauthorized || f.Status() != http.StatusUnauthorized || got != want {
		t.Errorf("got  %d %+v (%v)\nwant 401 %+v", f.Status(), got, f.Cause, want)
	}
	if !reflect.DeepEqual(claims, token.Claims{}) {
		t.Errorf("a refused token's claims were returned: %+v", claims)
	}
}

func TestGoodToken(t *testing.T) {
	nbf := token.NumDate(start.Unix())
	for _, scheme := range []string{"bearer ", "Bearer ", "BEARER ", "bearer  "} {
		claims, err := show(newVerifier(t, start), scheme+good(object{"nbf": start.Unix(), "user_name": "ann", "email": "ann@example.org",
			"origin": "uaa", "grant_type": "password", "sid": "s-1", "rev_sig": "g-1", "revocable": true}))
		want := token.Claims{
			ID: "id-1", Issuer: issuer, Subject: "u-1", Audience: []string{"openid", "notifications"}, ClientID: "app", UserID: "u-1",
			Scopes: []string{"notifications.write", "critical_notifications.write"}, Issued: token.NumDate(start.Unix()),
			Expires: token.NumDate(start.Add(time.Hour).Unix()), NotBefore: &nbf, UserName: "ann", Email: "ann@example.org",
			Origin: "uaa", Grant: "password", Session: "s-1", Generation: "g-1", Revocable: true,
		}
		if err != nil || !reflect.DeepEqual(claims, want) {
			t.Errorf("%q: got %+v %v", scheme, claims, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	minutes := func(n int) int64 { return start.Add(time.Duration(n) * time.Minute).Unix() }
	parts := strings.Split(good(nil), ".")
	stranger := jose.JSONWebKey{Key: foreign().Public(), KeyID: "key-1", Algorithm: "RS256", Use: "sig"}
	header := func(changes object, by func(string) []byte) string {
		return "bearer " + sign(with(goodHeader, changes), goodClaims, by)
	}
	for _, c := range []struct {
		name, authorization string
		want                refusal
	}{
		{"no header", "", missing},
		{"scheme only", "bearer", missing},
		{"scheme and a space", "bearer ", missing},
		{"token only", good(nil), missing},
		{"wrong scheme", "basic " + good(nil), missing},
		{"longer scheme", "bearers " + good(nil), missing},

		{"blank", "bearer   ", malformed},
		{"a word", "bearer hunter2", malformed},
		{"two parts", "bearer " + parts[0] + "." + parts[1], malformed},
		{"four parts", "bearer " + good(nil) + "." + parts[2], malformed},
		{"not base64", "bearer " + parts[0] + "." + parts[1] + ".!", malformed},
		{"padded base64", "bearer " + parts[0] + "." + parts[1] + "." + parts[2] + "==", malformed},
		{"two tokens", "bearer " + good(nil) + " " + good(nil), malformed},
		{"header is no JSON", "bearer " + sign("hunter2", goodClaims, rs256(ours())), malformed},
		{"JSON serialization", `bearer {"protected":"` + parts[0] + `","payload":"` + parts[1] + `","signature":"` + parts[2] + `"}`, malformed},
		{"too long", "bearer " + good(object{"pad": strings.Repeat("a", 16<<10)}), malformed},
		{"claims are no JSON", "bearer " + sign(goodHeader, "hunter2", rs256(ours())), malformed},
		{"claims are a list", "bearer " + sign(goodHeader, []string{"a"}, rs256(ours())), malformed},
		{"exp is text", "bearer " + good(object{"exp": "tomorrow"}), malformed},
		{"scope is a number", "bearer " + good(object{"scope": 7}), malformed},

		{"alg none", header(object{"alg": "none"}, unsigned), algorithm},
		{"alg None", header(object{"alg": "None"}, unsigned), algorithm},
		{"alg none, signed all the same", header(object{"alg": "none"}, rs256(ours())), algorithm},
		{"no alg", header(object{"alg": nil}, rs256(ours())), algorithm},
		{"alg rs256", header(object{"alg": "rs256"}, rs256(ours())), algorithm},
		{"HS256 with the public key as the secret", header(object{"alg": "HS256"}, hs256), algorithm},
		{"RS512", header(object{"alg": "RS512"}, rs512), algorithm},

		{"no kid", header(object{"kid": nil}, rs256(ours())), unknown},
		{"unknown kid", header(object{"kid": "key-9"}, rs256(ours())), unknown},
		{"unknown kid that climbs", header(object{"kid": "../../key-1"}, rs256(ours())), unknown},
		{"own jwk, no kid", header(object{"kid": nil, "jwk": stranger}, rs256(foreign())), unknown},
		{"own jwk, unknown kid", header(object{"kid": "key-9", "jwk": stranger}, rs256(foreign())), unknown},

		{"unsigned", header(nil, unsigned), mismatch},
		{"another key behind a known kid", header(nil, rs256(foreign())), mismatch},
		{"our other key behind this kid", header(nil, rs256(next())), mismatch},
		{"HMAC that says RS256", header(nil, hs256), mismatch},
		{"RS512 that says RS256", header(nil, rs512), mismatch},
		{"own jwk, known kid", header(object{"jwk": stranger}, rs256(foreign())), mismatch},
		{"claims altered", "bearer " + parts[0] + "." + encode(with(goodClaims, object{"scope": "uaa.admin"})) + "." + parts[2], mismatch},
		{"header altered", "bearer " + encode(with(goodHeader, object{"b64": false, "crit": []string{"b64"}})) + "." + parts[1] + "." + parts[2], mismatch},
		{"critical header that is not understood", header(object{"crit": []string{"exp2"}, "exp2": 1}, rs256(ours())), mismatch},

		{"wrong iss", "bearer " + good(object{"iss": issuer + "/"}), badIssuer},
		{"no iss", "bearer " + good(object{"iss": nil}), badIssuer},
		{"expired", "bearer " + good(object{"exp": minutes(-1)}), expired},
		{"no exp", "bearer " + good(object{"exp": nil}), expired},
		{"exp 0", "bearer " + good(object{"exp": 0}), expired},
		{"negative exp", "bearer " + good(object{"exp": -minutes(60)}), expired},
		{"nbf to come", "bearer " + good(object{"nbf": minutes(1)}), early},
		{"iat to come", "bearer " + good(object{"iat": minutes(1)}), early},
		{"wrong aud", "bearer " + good(object{"aud": []string{"openid", "notifications2"}}), badAud},
		{"wrong aud as one string", "bearer " + good(object{"aud": "openid"}), badAud},
		{"no aud", "bearer " + good(object{"aud": nil}), badAud},
		{"empty aud", "bearer " + good(object{"aud": []string{}}), badAud},
	} {
		t.Run(c.name, func(t *testing.T) {
			claims, err := show(newVerifier(t, start), c.authorization)
			wantRefusal(t, claims, err, c.want)
			if len(c.authorization) > 100 && strings.Contains(err.Error(), parts[2]) {
				t.Errorf("the token is in the error, and so in the log: %v", err)
			}
		})
	}
}

// A header that brings keys or names where to find them changes nothing: the known key decides, and nobody is asked.
func TestKeysNamedByTheHeaderAreIgnored(t *testing.T) {
	trap := newKeyServer(t, public("key-1", foreign()))
	tricks := object{"jwk": public("key-1", foreign()), "jku": trap.URL, "x5u": trap.URL}
	v := newVerifier(t, start)
	if _, err := v.Verify(t.Context(), sign(with(goodHeader, tricks), goodClaims, rs256(ours()))); err != nil {
		t.Errorf("a token of ours was refused: %v", err)
	}
	claims, err := v.Verify(t.Context(), sign(with(goodHeader, tricks), goodClaims, rs256(foreign())))
	wantRefusal(t, claims, err, mismatch)
	if n := trap.hits.Load(); n != 0 {
		t.Errorf("the header's address was asked %d times", n)
	}
}

func TestLengthLimit(t *testing.T) {
	v := newVerifier(t, start)
	pad := 16<<10 - len(good(object{"pad": ""}))
	raw := good(object{"pad": strings.Repeat("a", pad*3/4-2)})
	if len(raw) > 16<<10 || len(raw) < 16<<10-16 {
		t.Fatalf("%d bytes are not near the limit", len(raw))
	}
	if _, err := v.Verify(t.Context(), raw); err != nil {
		t.Errorf("%d bytes: %v", len(raw), err)
	}
	claims, err := v.Verify(t.Context(), good(object{"pad": strings.Repeat("a", pad*3/4+8)}))
	wantRefusal(t, claims, err, malformed)
}

// Ten seconds of difference between clocks are forgiven, and not a nanosecond more.
func TestLeeway(t *testing.T) {
	hour := start.Add(time.Hour)
	accept := refusal{}
	for _, c := range []struct {
		name   string
		claims object
		now    time.Time
		want   refusal
	}{
		{"exp, at the limit", nil, hour.Add(10 * time.Second), accept},
		{"exp, beyond", nil, hour.Add(10*time.Second + 1), expired},
		{"nbf, at the limit", object{"nbf": hour.Unix(), "exp": hour.Add(time.Hour).Unix()}, hour.Add(-10 * time.Second), accept},
		{"nbf, before", object{"nbf": hour.Unix(), "exp": hour.Add(time.Hour).Unix()}, hour.Add(-10*time.Second - 1), early},
		{"iat, at the limit", nil, start.Add(-10 * time.Second), accept},
		{"iat, before", nil, start.Add(-10*time.Second - 1), early},
	} {
		t.Run(c.name, func(t *testing.T) {
			claims, err := newVerifier(t, c.now).Verify(t.Context(), good(c.claims))
			if c.want != accept {
				wantRefusal(t, claims, err, c.want)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRevocation(t *testing.T) {
	v := newVerifier(t, start)
	var asked []string
	answer, failure := false, error(nil)
	v.Revoked = func(_ context.Context, c token.Claims) (bool, error) {
		asked = append(asked, c.ID)
		return answer, failure
	}
	if _, err := v.Verify(t.Context(), good(nil)); err != nil {
		t.Errorf("not revoked: %v", err)
	}
	answer = true
	claims, err := v.Verify(t.Context(), good(nil))
	wantRefusal(t, claims, err, revoked)

	for _, answer = range []bool{false, true} {
		failure = errors.New("database is away")
		claims, err = v.Verify(t.Context(), good(nil))
		if !errors.Is(err, failure) || fault.From(err).Kind != fault.KindInternal || !reflect.DeepEqual(claims, token.Claims{}) {
			t.Errorf("a lookup that failed must be neither a refusal nor a yes: %+v %v", claims, err)
		}
	}
	if !slices.Equal(asked, []string{"id-1", "id-1", "id-1", "id-1"}) {
		t.Errorf("asked about %q", asked)
	}
	asked, failure, answer = nil, nil, false
	for _, raw := range []string{sign(goodHeader, goodClaims, rs256(foreign())), good(object{"exp": 1}), good(object{"iss": "x"})} {
		if _, err := v.Verify(t.Context(), raw); err == nil {
			t.Error("accepted")
		}
	}
	if len(asked) != 0 {
		t.Errorf("asked about %q, tokens that are bad already", asked)
	}
}

func TestInspectLooksAtEverythingButTheAudience(t *testing.T) {
	v := newVerifier(t, start)
	v.Audience = nil
	if claims, err := v.Inspect(t.Context(), good(nil)); err != nil || claims.ID != "id-1" {
		t.Errorf("%+v %v", claims, err)
	}
	claims, err := v.Inspect(t.Context(), good(object{"exp": 1}))
	wantRefusal(t, claims, err, expired)
	claims, err = v.Verify(t.Context(), good(nil))
	wantRefusal(t, claims, err, badAud) // a verifier that names no audience accepts none
}

func TestScopeIsAListOrAString(t *testing.T) {
	for _, c := range []struct {
		name  string
		scope any
		want  token.Strings
	}{
		{"list", []string{"a.read", "a.write"}, token.Strings{"a.read", "a.write"}},
		{"string", "a.read a.write", token.Strings{"a.read", "a.write"}},
		{"string with many blanks", " a.read   a.write ", token.Strings{"a.read", "a.write"}},
		{"empty list", []string{}, token.Strings{}},
		{"empty string", "", token.Strings{}},
		{"none", nil, nil},
	} {
		claims, err := newVerifier(t, start).Verify(t.Context(), good(object{"scope": c.scope}))
		if err != nil || !reflect.DeepEqual(claims.Scopes, c.want) {
			t.Errorf("%s: %#v %v", c.name, claims.Scopes, err)
		}
		if got := claims.Has("a.write", "else"); got != (len(c.want) > 0) {
			t.Errorf("%s: has one of them: %t", c.name, got)
		}
		if claims.Has() || claims.Has("a") || claims.Has("") || claims.Has("A.READ") {
			t.Errorf("%s: has what it has not", c.name)
		}
	}
}
