package notify

import (
	"encoding/binary"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/proa-dev/proa/kit/fault"
)

// Unsubscribe is what the link in a mail stands for: a person, and the kind the mail was of. In the link it is sealed, so that it
// can be neither read nor made up.
type Unsubscribe struct {
	UserID   string
	ClientID string
	KindID   string
	Issued   time.Time // to the second
}

const unsubscribeV1 = 1

// ErrUnsubscribe refuses a link that did not come from us, or not whole.
var ErrUnsubscribe = fault.Invalid("This link is not complete. Copy all of it from the mail, or change what you get in your preferences.")

// MarshalBinary writes the version, the time, and each id behind its length.
func (u Unsubscribe) MarshalBinary() ([]byte, error) {
	seconds := u.Issued.Unix()
	if !u.whole() || seconds < 0 || seconds > 1<<32-1 {
		return nil, ErrUnsubscribe
	}
	b := make([]byte, 0, 8+len(u.UserID)+len(u.ClientID)+len(u.KindID))
	b = binary.BigEndian.AppendUint32(append(b, unsubscribeV1), uint32(seconds))
	for _, id := range []string{u.UserID, u.ClientID, u.KindID} {
		b = append(append(b, byte(len(id))), id...)
	}
	return b, nil
}

// UnmarshalBinary reads what MarshalBinary wrote, and nothing else.
func (u *Unsubscribe) UnmarshalBinary(b []byte) error {
	if len(b) < 5 || b[0] != unsubscribeV1 {
		return ErrUnsubscribe
	}
	read := Unsubscribe{Issued: time.Unix(int64(binary.BigEndian.Uint32(b[1:5])), 0).UTC()}
	b = b[5:]
	for _, id := range []*string{&read.UserID, &read.ClientID, &read.KindID} {
		if len(b) == 0 || len(b) < 1+int(b[0]) {
			return ErrUnsubscribe
		}
		end := 1 + int(b[0])
		*id, b = string(b[1:end]), b[end:]
	}
	if len(b) > 0 || !read.whole() {
		return ErrUnsubscribe
	}
	*u = read
	return nil
}

func (u *Unsubscribe) whole() bool {
	for _, id := range []string{u.UserID, u.ClientID, u.KindID} {
		if id == "" || len(id) > maxID || !utf8.ValidString(id) || strings.ContainsRune(id, 0) {
			return false
		}
	}
	return true
}
