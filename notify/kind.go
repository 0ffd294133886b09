// Package notify is the domain of the notification service: kinds, templates, messages, people and what they prefer, and the two
// decisions that matter: whether a mail is sent, and what it says. It does no I/O.
package notify

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/proa-dev/proa/kit/fault"
)

// Source is a client that sends notifications.
type Source struct {
	ClientID   string
	Name       string
	TemplateID string // empty: the default
	Modified   time.Time
}

// Kind is one sort of notification of a source. People can unsubscribe from it unless it is critical.
type Kind struct {
	ClientID    string
	ID          string
	Description string
	Critical    bool
	TemplateID  string // empty: the source's, or else the default
	Modified    time.Time
}

// Registration is what a client says of itself and its kinds. Kinds it does not name stay as they are.
type Registration struct {
	SourceName string
	Kinds      []Kind
}

// The limits of names. All limits are documented in docs/notifications.md.
const (
	maxKindID      = 255
	maxDescription = 1000
	maxKinds       = 500
)

// Check says what is wrong with a registration, all of it at once.
func (r *Registration) Check() error {
	var faults []string
	if r.SourceName == "" {
		faults = append(faults, "source_name is missing: say in words where the notifications come from.")
	}
	if tooLong(r.SourceName, maxDescription) {
		faults = append(faults, "source_name has more than 1000 characters.")
	}
	if len(r.Kinds) > maxKinds {
		faults = append(faults, "notifications names more than 500 kinds: register them in several calls.")
	}
	for i := range r.Kinds {
		faults = append(faults, r.Kinds[i].faults()...)
	}
	return unprocessable(faults)
}

// Check says what is wrong with a kind.
func (k *Kind) Check() error { return unprocessable(k.faults()) }

func (k *Kind) faults() []string {
	var faults []string
	if !ValidKindID(k.ID) {
		faults = append(faults, "notifications: the kind "+quote(k.ID)+" must have 1 to 255 of the characters a-z A-Z 0-9 _ . -")
	}
	if k.Description == "" {
		faults = append(faults, "notifications."+k.ID+".description is missing: say in words what the kind is about.")
	}
	if tooLong(k.Description, maxDescription) {
		faults = append(faults, "notifications."+k.ID+".description has more than 1000 characters.")
	}
	return faults
}

// ValidKindID tells whether a kind may be called so.
func ValidKindID(id string) bool {
	return id != "" && len(id) <= maxKindID && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '.' && r != '-'
	})
}

// ErrCritical refuses what only a holder of critical_notifications.write may do.
var ErrCritical = fault.Unprocessable("This kind is critical, and the token has no critical_notifications.write. Ask an administrator for that scope.")

func unprocessable(faults []string) error {
	if len(faults) == 0 {
		return nil
	}
	f := fault.Unprocessable("%s", strings.Join(faults, " "))
	f.Details = faults
	return f
}

// tooLong also refuses what is not text: broken UTF-8 and NUL.
func tooLong(s string, limit int) bool {
	return utf8.RuneCountInString(s) > limit || !utf8.ValidString(s) || strings.ContainsRune(s, 0)
}

func quote(s string) string {
	if len(s) > 60 {
		s = s[:60] + "…"
	}
	return "“" + strings.ToValidUTF8(s, "�") + "”"
}
