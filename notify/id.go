package notify

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"time"
)

// idTime is how many hexadecimal digits of an id tell its time, in milliseconds.
const idTime = 12

// NewID names a message: its time, then chance. A delivery's id begins with the time of its message.
func NewID(now time.Time) string {
	random := make([]byte, 10)
	_, _ = rand.Read(random) // never fails: the runtime ends the program first
	ms := strconv.FormatInt(now.UnixMilli(), 16)
	for len(ms) < idTime {
		ms = "0" + ms
	}
	return ms + hex.EncodeToString(random)
}

// TimeOf is the time of the message that an id belongs to.
func TimeOf(id string) (time.Time, bool) {
	if len(id) != idTime+20 {
		return time.Time{}, false
	}
	if _, err := hex.DecodeString(id); err != nil {
		return time.Time{}, false
	}
	ms, err := strconv.ParseInt(id[:idTime], 16, 64)
	if err != nil || ms < 0 || ms > 1<<43 {
		return time.Time{}, false
	}
	return time.UnixMilli(ms).UTC(), true
}
