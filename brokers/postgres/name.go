package postgres

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"regexp"

	"github.com/proa-dev/proa/kit/fault"
)

// An id is the platform's word. It goes into logs and into the state, never into a statement: names on the server are hashes of it.
var plainID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~-]{0,99}$`)

func checkIDs(ids ...string) error {
	for _, id := range ids {
		if !plainID.MatchString(id) {
			return fault.Invalid("An id must be 1 to 100 letters, digits, dots, dashes, underscores or tildes, and begin with a letter or digit. Use a GUID.")
		}
	}
	return nil
}

// The names on the server: 128 bits of a hash, so that they fit into 63 bytes whatever the id is, and tell tenants nothing.
func databaseName(instance string) string { return "db_" + digest(instance) }

func ownerName(instance string) string { return "owner_" + digest(instance) }

func loginName(instance, binding string) string { return "login_" + digest(instance+"/"+binding) }

func digest(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:16])
}

// lockKey is the instance's advisory lock on the server.
func lockKey(instance string) int64 {
	sum := sha256.Sum256([]byte("lock/" + instance))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

func newPassword() string { return rand.Text() + rand.Text() }

// verifier is what PostgreSQL keeps of a password for SCRAM-SHA-256 (RFC 5803). The server never hears the password itself, so it
// cannot stand in its log, and its setting password_encryption does not matter.
func verifier(password string) (string, error) {
	const rounds = 4096
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // it does not fail
	salted, err := pbkdf2.Key(sha256.New, password, salt, rounds, sha256.Size)
	if err != nil {
		return "", fmt.Errorf("derive key: %w", err)
	}
	stored := sha256.Sum256(sign(salted, "Client Key"))
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", rounds, b64(salt), b64(stored[:]), b64(sign(salted, "Server Key"))), nil
}

func sign(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
