package auth

import "time"

// Failures counts failed logins with one name, whether or not somebody has it, so that the lock tells nothing.
type Failures struct {
	Count int
	Last  time.Time
}

// After this many failures a name is locked for LockFor, counted from the last one.
const (
	MaxFailures = 5
	LockFor     = 5 * time.Minute
)

// Locked tells whether the name may not be tried now.
func (f Failures) Locked(now time.Time) bool {
	return f.Count >= MaxFailures && now.Sub(f.Last) < LockFor
}
