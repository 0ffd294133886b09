package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/proa-dev/proa/auth/uaa"
)

// FuzzTokenForm sends anything as the form of the token endpoint, as any client. Whatever comes, the answer is JSON, it is never the
// server's fault, and a token comes only for what the one client whose secret is known here may have.
func FuzzTokenForm(f *testing.F) {
	for _, seed := range []string{
		"grant_type=client_credentials", "grant_type=client_credentials&scope=uaa.resource", "grant_type=client_credentials&scope=uaa.admin",
		"grant_type=password&username=admin&password=x", "grant_type=password&passcode=x", `grant_type=password&username=a&password=b&login_hint={"origin":"ldap"}`,
		"grant_type=refresh_token&refresh_token=a.b.c", "grant_type=authorization_code&code=x&redirect_uri=https://backend.example.org/callback&code_verifier=y",
		"grant_type=client_credentials+password", "grant_type=", "", "%", "grant_type=%00", "a=b;c=d", "grant_type=client_credentials&client_id=cf&client_secret=",
		"grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer&assertion=x", "grant_type=client_credentials&audience=a&audience=b", strings.Repeat("a=b&", 2000),
		"grant_type=client_credentials&client_assertion=x&client_assertion_type=urn:ietf:params:oauth:client-assertion-type:jwt-bearer", "grant_type=password&username=\xff&password=\x00",
	} {
		f.Add(seed, "application/x-www-form-urlencoded", "backend", "backend secret")
		f.Add(seed, "application/x-www-form-urlencoded", "cf", "")
	}
	f.Add("grant_type=client_credentials", "application/x-www-form-urlencoded", "\xff", "%00")
	f.Add("--x\r\nContent-Disposition: form-data; name=\"grant_type\"\r\n\r\nclient_credentials\r\n--x--\r\n", "multipart/form-data; boundary=x", "backend", "backend secret")
	f.Add(`{"grant_type":"client_credentials"}`, "application/json", "backend", "backend secret")
	w := newWorld(f)
	n := 0
	f.Fuzz(func(t *testing.T, body, contentType, client, secret string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/oauth/token", strings.NewReader(body))
		r.Header.Set("Content-Type", contentType)
		r.SetBasicAuth(client, secret)
		n++
		r.RemoteAddr = fmt.Sprintf("10.%d.%d.%d:1", n>>16&255, n>>8&255, n&255) // so that the limit per address does not hide the rest
		got := httptest.NewRecorder()
		w.handler.ServeHTTP(got, r)
		if got.Code >= 500 {
			t.Fatalf("%d %s", got.Code, got.Body)
		}
		var reply struct {
			uaa.Token
			uaa.Error
		}
		if err := json.Unmarshal(got.Body.Bytes(), &reply); err != nil {
			t.Fatalf("%d %q: %v", got.Code, got.Body, err)
		}
		switch {
		case got.Code == http.StatusOK && (reply.Access == "" || reply.Scope != "uaa.resource"):
			t.Fatalf("a token that backend may not have: %s", got.Body)
		case got.Code != http.StatusOK && (reply.Access != "" || reply.Code == "" || reply.Description == ""):
			t.Fatalf("a refusal without a reason: %d %s", got.Code, got.Body)
		}
	})
}
