package bounce

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// The shape of a local part: b+<id>.<mac>. With 2+32+1+16 = 51 characters it stays below the 64 that RFC 5321 allows.
const (
	pathPrefix = "b+"
	idLength   = 32 // a uuid in hex, without dashes
	macLength  = 16 // 80 bits in base32
)

// lowerBase32 has no upper case, because a mail server may fold the case of a local part.
var lowerBase32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// ReturnPath is the address to which a delivery comes back.
func ReturnPath(deliveryID, mac, domain string) string {
	return pathPrefix + deliveryID + "." + mac + "@" + domain
}

// SplitReturnPath takes the local part of a return path apart, in lower case. It checks the shape and not the MAC.
func SplitReturnPath(localpart string) (deliveryID, mac string, ok bool) {
	rest, ok := strings.CutPrefix(strings.ToLower(localpart), pathPrefix)
	if !ok || len(rest) != idLength+1+macLength || rest[idLength] != '.' {
		return "", "", false
	}
	deliveryID, mac = rest[:idLength], rest[idLength+1:]
	if strings.Trim(deliveryID, "0123456789abcdef") != "" {
		return "", "", false
	}
	return deliveryID, mac, true
}

// Path makes and opens signed return paths, so that nobody can report a bounce of a mail they never saw.
type Path struct {
	Key    []byte // at least 32 random bytes
	Domain string // where the mail server hands over bounces
}

// For is the return path of a delivery. The id is a uuid; its dashes, if it has any, are left out.
func (p Path) For(deliveryID string) string {
	id := strings.ToLower(strings.ReplaceAll(deliveryID, "-", ""))
	return ReturnPath(id, p.mac(id), p.Domain)
}

// Open gives the delivery that a local part of ours is about, as 32 hex digits. A local part that we did not sign is not ok.
func (p Path) Open(localpart string) (deliveryID string, ok bool) {
	deliveryID, mac, ok := SplitReturnPath(localpart)
	if !ok || len(p.Key) == 0 || !hmac.Equal([]byte(mac), []byte(p.mac(deliveryID))) {
		return "", false
	}
	return deliveryID, true
}

// mac is cut to 80 bits: it is guessed online only, against a server that answers each guess with a refusal.
func (p Path) mac(deliveryID string) string {
	h := hmac.New(sha256.New, p.Key)
	h.Write([]byte("return path of " + deliveryID)) // a purpose, so that no other use of the key makes the same MAC
	return lowerBase32.EncodeToString(h.Sum(nil)[:macLength*5/8])
}
