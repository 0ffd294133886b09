package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
)

// Hash is a password or client secret as it is kept: argon2id in the PHC string form, with its own parameters inside.
type Hash string

// argon2id at the strength that OWASP's password storage advice names first for small servers: 19 MiB, two passes, one lane.
const (
	argonMemory = 19 * 1024
	argonTime   = 2
	argonLanes  = 1
	saltLength  = 16
	keyLength   = 32
)

// NewHash hashes a secret with a salt of its own.
func NewHash(secret string) Hash {
	salt := make([]byte, saltLength)
	_, _ = rand.Read(salt) // never fails: the runtime ends the program first
	key := argon2.IDKey([]byte(secret), salt, argonTime, argonMemory, argonLanes, keyLength)
	b64 := base64.RawStdEncoding.EncodeToString
	return Hash(fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonLanes, b64(salt), b64(key)))
}

// nobody is compared when there is no such person, so that the answer takes as long.
var nobody = NewHash("nobody has this password")

// Matches compares at full strength, which costs tens of milliseconds by design. An empty hash matches nothing.
func (h Hash) Matches(secret string) bool {
	known := h != ""
	if !known {
		h = nobody
	}
	var version, memory, passes, lanes int
	parts := strings.Split(string(h), "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return false
	}
	if _, err := fmt.Sscanf(parts[2]+" "+parts[3], "v=%d m=%d,t=%d,p=%d", &version, &memory, &passes, &lanes); err != nil || version != argon2.Version {
		return false
	}
	salt, err1 := base64.RawStdEncoding.DecodeString(parts[4])
	want, err2 := base64.RawStdEncoding.DecodeString(parts[5])
	if err1 != nil || err2 != nil || memory < 8 || memory > 1<<20 || passes < 1 || passes > 64 || lanes < 1 || lanes > 64 || len(want) != keyLength {
		return false
	}
	got := argon2.IDKey([]byte(secret), salt, uint32(passes), uint32(memory), uint8(lanes), uint32(len(want)))
	return subtle.ConstantTimeCompare(got, want) == 1 && known
}

// Random makes a secret of 256 bits for a code, a refresh token, a passcode or a session.
func Random() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// ID names a token. It is hexadecimal: UAA's ids of refresh tokens end in -r, and ours must not look like one.
func ID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

// Digest is how a random secret is kept and found. It has 256 bits already, so one plain hash is enough.
func Digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
