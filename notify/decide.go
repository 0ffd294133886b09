package notify

import "strings"

// Reason is why a person does not get a mail.
type Reason string

// The reasons.
const (
	NoAddress     Reason = "no_address"       // the directory knows no address, or none that can be written to
	Suppressed    Reason = "suppressed"       // mail to the address came back for good
	Unsubscribed  Reason = "unsubscribed"     // from this kind
	NoMail        Reason = "unsubscribed_all" // from everything that is not critical
	UnknownPerson Reason = "unknown_user"     // the directory knows nobody by that guid
	Inactive      Reason = "inactive"         // the account is disabled
	Erased        Reason = "erased"           // the person asked to be forgotten
)

// Person is somebody in an audience, as the directory and the store know them.
type Person struct {
	UserID       string // empty for a bare address
	Address      string
	Unknown      bool
	Inactive     bool
	Suppressed   bool
	Unsubscribed bool // from this kind
	NoMail       bool // from all
	Erased       bool
}

// Decide says why a person does not get a message, or "" when they do. Critical beats what a person prefers; nothing beats a
// missing address or one from which mail came back.
func Decide(critical bool, p Person) Reason {
	address, err := Address(p.Address)
	switch {
	case p.Erased:
		return Erased
	case p.Unknown:
		return UnknownPerson
	case p.Inactive:
		return Inactive
	case err != nil || address == "":
		return NoAddress
	case p.Suppressed:
		return Suppressed
	case critical:
		return ""
	case p.NoMail:
		return NoMail
	case p.Unsubscribed:
		return Unsubscribed
	}
	return ""
}

// Suppresses tells whether an enhanced status says that the address itself is at fault: it does not exist, or is closed. A full
// mailbox or a blocklist is not the address's fault, and would silence many at once.
func Suppresses(status string) bool { return strings.HasPrefix(status, "5.1.") || status == "5.2.1" }
