package ssh

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"strings"

	xssh "golang.org/x/crypto/ssh"
)

// NewKey makes a host key, as PEM. There is one of one kind, so that every client is shown the key whose fingerprint is published.
func NewKey() ([]byte, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	block, err := xssh.MarshalPrivateKey(key, "")
	if err != nil {
		return nil, fmt.Errorf("write host key: %w", err)
	}
	return pem.EncodeToMemory(block), nil
}

// ReadKey reads what NewKey made.
func ReadKey(text []byte) (xssh.Signer, error) {
	key, err := xssh.ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("the host key cannot be read: %w", err)
	}
	return key, nil
}

// Fingerprint is how clients know a host key: SHA-256 in base64, without padding and without a word before it.
func Fingerprint(key xssh.Signer) string {
	return strings.TrimPrefix(xssh.FingerprintSHA256(key.PublicKey()), "SHA256:")
}
