package deliver_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"github.com/emersion/go-msgauth/dkim"

	"github.com/proa-dev/proa/notify/deliver"
	"github.com/proa-dev/proa/notify/deliver/smtptest"
)

func pkcs8(t testing.TB, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func newRSA(t testing.TB) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newEd25519(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// record is what DNS says about a key.
func record(t *testing.T, key crypto.Signer) string {
	t.Helper()
	if public, ok := key.Public().(ed25519.PublicKey); ok {
		return "v=DKIM1; k=ed25519; p=" + base64.StdEncoding.EncodeToString(public)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return "v=DKIM1; k=rsa; p=" + base64.StdEncoding.EncodeToString(der)
}

func verify(t *testing.T, key crypto.Signer, raw []byte) error {
	t.Helper()
	all, err := dkim.VerifyWithOptions(bytes.NewReader(raw), &dkim.VerifyOptions{LookupTXT: func(name string) ([]string, error) {
		if name != "mail2026._domainkey.example.org" {
			return nil, fmt.Errorf("asked for %s", name)
		}
		return []string{record(t, key)}, nil
	}})
	if err != nil || len(all) != 1 {
		t.Fatalf("%d signatures: %v", len(all), err)
	}
	return all[0].Err
}

func TestDKIM(t *testing.T) {
	keyRSA, keyEd := newRSA(t), newEd25519(t)
	pkcs1 := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(keyRSA)})
	for name, c := range map[string]struct {
		key crypto.Signer
		pem []byte
	}{
		"rsa-sha256": {keyRSA, pkcs8(t, keyRSA)}, "rsa-sha256 in PKCS 1": {keyRSA, pkcs1}, "ed25519-sha256": {keyEd, pkcs8(t, keyEd)},
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, smtptest.Options{Keep: true})
			w := newWorld(t, clear(s))
			var err error
			if w.DKIM, err = deliver.NewSigner("example.org", "mail2026", c.pem); err != nil {
				t.Fatal(err)
			}
			mail := envelope("ann@example.org")
			mail.Raw = bytes.ReplaceAll(mail.Raw, []byte("\r\n"), []byte("\n")) // signed as it travels, not as it was given
			if err := w.Send(t.Context(), mail); err != nil {
				t.Fatal(err)
			}
			raw := s.Mails()[0].Raw
			if err := verify(t, c.key, raw); err != nil {
				t.Fatalf("%v:\n%s", err, raw)
			}
			field, rest, _ := bytes.Cut(raw, []byte("\r\nFrom:"))
			algorithm, _, _ := strings.Cut(name, " ")
			for _, tag := range []string{"a=" + algorithm + ";", "c=relaxed/relaxed;", "d=example.org;", "s=mail2026;"} {
				if !bytes.Contains(field, []byte(tag)) {
					t.Errorf("no %s in %s", tag, field)
				}
			}
			relaxed := bytes.Replace(raw, []byte("Subject: Hello"), []byte("subject:  Hello"), 1)
			if err := verify(t, c.key, relaxed); err != nil {
				t.Errorf("white space and case of a header name broke the signature: %v", err)
			}
			for what, changed := range map[string][]byte{
				"the subject":          bytes.Replace(raw, []byte("Subject: Hello"), []byte("Subject: Hullo"), 1),
				"the body":             bytes.Replace(raw, []byte("Hello.\r\n"), []byte("Hullo.\r\n"), 1),
				"a second From":        append([]byte("From: eve@example.com\r\n"), raw...),
				"a second Subject":     append([]byte("Subject: Win\r\n"), raw...),
				"a Reply-To":           append([]byte("Reply-To: eve@example.com\r\n"), raw...),
				"a way to unsubscribe": append([]byte("List-Unsubscribe: <https://eve.example.com>\r\n"), raw...),
			} {
				if verify(t, c.key, changed) == nil {
					t.Errorf("%s was changed, and the signature still holds", what)
				}
			}
			if !bytes.HasPrefix(rest, []byte(" Proa <proa@example.org>")) {
				t.Errorf("the mail is not as it was: %s", raw)
			}
		})
	}
}

func TestDKIMSettings(t *testing.T) {
	good := pkcs8(t, newRSA(t))
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		domain, selector string
		key              []byte
	}{
		"no domain":        {"", "mail", good},
		"domain with line": {"example.org\r\nX: y", "mail", good},
		"no selector":      {"example.org", "", good},
		"selector":         {"example.org", "a;b", good},
		"no key":           {"example.org", "mail", nil},
		"not a key":        {"example.org", "mail", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")})},
		"wrong kind":       {"example.org", "mail", pkcs8(t, ec)},
	} {
		if _, err := deliver.NewSigner(c.domain, c.selector, c.key); err == nil || !strings.HasSuffix(err.Error(), ".") {
			t.Errorf("%s: got %v, want a sentence", name, err)
		}
	}
}
