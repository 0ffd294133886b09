package platform

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"strings"
)

// NewGUID names a new record: a random UUID.
func NewGUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: the runtime ends the program first
	return uuid(b, 4)
}

// GUIDOf names what is not created but given, such as a stack, the same way in every process.
func GUIDOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return uuid([16]byte(sum[:16]), 8)
}

func uuid(b [16]byte, version byte) string {
	b[6] = b[6]&0x0f | version<<4
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
