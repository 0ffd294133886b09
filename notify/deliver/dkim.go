package deliver

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/emersion/go-msgauth/dkim"
)

// Signer signs mails with DKIM (RFC 6376), in the name of a domain.
type Signer struct {
	options dkim.SignOptions
}

var signedHeaders = []string{
	"From", "To", "Subject", "Date", "Message-ID", "Reply-To", "MIME-Version", "Content-Type",
	"List-Unsubscribe", "List-Unsubscribe-Post",
}

var dnsName = regexp.MustCompile(`^([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)(\.[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*$`)

// NewSigner makes a signer for the domain, whose public key is in DNS at selector._domainkey.domain. The key is an RSA key
// (rsa-sha256) or an Ed25519 key (ed25519-sha256), in PEM.
func NewSigner(domain, selector string, keyPEM []byte) (*Signer, error) {
	if !dnsName.MatchString(domain) || !dnsName.MatchString(selector) {
		return nil, errors.New("The DKIM domain and selector must be DNS names, such as example.org and mail2026.")
	}
	key, err := readKey(keyPEM)
	if err != nil {
		return nil, err
	}
	return &Signer{options: dkim.SignOptions{
		Domain: domain, Selector: selector, Signer: key, Hash: crypto.SHA256,
		HeaderCanonicalization: dkim.CanonicalizationRelaxed, BodyCanonicalization: dkim.CanonicalizationRelaxed,
		// Each header is signed once more than it occurs, so that none can be added (RFC 6376, 8.15).
		HeaderKeys: slices.Concat(signedHeaders, signedHeaders),
	}}, nil
}

const minRSA = 1024 // bits: verifiers do not take less (RFC 8301)

func readKey(keyPEM []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(keyPEM)
	if block == nil {
		return nil, errors.New("The DKIM key must be a PEM file with a PRIVATE KEY: make one with openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048.")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	}
	if err != nil {
		return nil, errors.New("The DKIM key cannot be read: it must be an RSA or Ed25519 private key without a passphrase, in PKCS #8 or PKCS #1.")
	}
	switch key := key.(type) {
	case *rsa.PrivateKey:
		if key.N.BitLen() < minRSA {
			return nil, fmt.Errorf("The DKIM key has %d bits: verifiers ignore less than %d, use 2048.", key.N.BitLen(), minRSA)
		}
		return key, nil
	case ed25519.PrivateKey:
		return key, nil
	}
	return nil, errors.New("The DKIM key must be an RSA or Ed25519 key.")
}

// Sign returns the mail with a DKIM-Signature before it. The same mail and second give the same signature.
func (s *Signer) Sign(raw []byte) ([]byte, error) {
	signer, err := dkim.NewSigner(&s.options)
	if err != nil {
		return nil, fmt.Errorf("sign mail: %w", err)
	}
	_, err = signer.Write(raw)
	if err = errors.Join(err, signer.Close()); err != nil {
		return nil, fmt.Errorf("sign mail: %w", err)
	}
	return slices.Concat([]byte(signer.Signature()), raw), nil
}
