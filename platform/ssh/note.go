package ssh

import "github.com/proa-dev/proa/platform/store"

// What people do here, as the audit trail names it. The first two are there only if they were refused.
const (
	loggingIn  = "login"
	opening    = "session"
	typing     = "shell"
	running    = "exec"
	copying    = "sftp"
	forwarding = "forward"
)

// maxNotes bounds what is remembered of a connection: 200 targets are 60 KB. Who has more of them is written down again.
const maxNotes = 200

// A note is something that is written down once for a connection.
type note struct {
	process string
	entry   store.Entry
}

// note tells whether something is to be written down: each session is, and each target of tunnels and each refusal once. A browser
// opens many connections to one target.
func (v *visit) note(n note) bool {
	switch {
	case n.entry.Refused, n.entry.Kind == forwarding:
	case n.entry.Kind == loggingIn, n.entry.Kind == opening:
		return false
	default:
		return true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.noted[n] {
		return false
	}
	if v.noted == nil || len(v.noted) >= maxNotes {
		v.noted = map[note]bool{}
	}
	v.noted[n] = true
	return true
}

// forget is when it could not be written down.
func (v *visit) forget(n note) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.noted, n)
}
