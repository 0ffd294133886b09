package notify

import (
	"errors"
	"fmt"
	"net/mail"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// AudienceKind says who a message is for.
type AudienceKind string

// The six audiences.
const (
	ToUser         AudienceKind = "user"
	ToSpace        AudienceKind = "space"
	ToOrganization AudienceKind = "organization"
	ToEveryone     AudienceKind = "everyone"
	ToScope        AudienceKind = "scope"
	ToEmail        AudienceKind = "email"
)

// Audience is who a message is for: the guid of a user, space or organization, a scope, or an address.
type Audience struct {
	Kind AudienceKind
	ID   string
	Role string // of a space or organization: only those who hold it; empty: everyone in it
}

// RoleType is what the platform calls the role; it is empty when there is none of that name.
func (a Audience) RoleType() string {
	if a.Kind == ToSpace {
		return SpaceRoles[a.Role]
	}
	return Roles[a.Role]
}

// Class is the lane of a message that is not critical: one person does not wait behind many.
func (a Audience) Class() Class {
	if a.Kind == ToUser || a.Kind == ToEmail {
		return Normal
	}
	return Bulk
}

// Class is the lane in which a message travels. Bulk never delays the others.
type Class string

// The lanes, the most urgent first.
const (
	Critical Class = "critical"
	Normal   Class = "normal"
	Bulk     Class = "bulk"
)

// Message is one send: what is said, to whom, by which client.
type Message struct {
	ID        string
	ClientID  string
	KindID    string // empty only for an address
	Critical  bool
	Audience  Audience
	Subject   string
	Text      string
	HTML      string
	ReplyTo   string
	Class     Class
	RequestID string
	Received  time.Time
	State     State
	Reason    string // why it failed, when the whole of it did
	Counts    Counts
}

// State is how far a message is.
type State string

// The states of a message, and of each delivery of it. A message is queued until its audience is known, and then what its
// deliveries are: delivered when all that could be are.
const (
	Queued        State = "queued"
	Delivered     State = "delivered"
	Failed        State = "failed"        // given up
	Undeliverable State = "undeliverable" // skipped, with a reason
)

// Counts tells how many people a message is for and how far each is.
type Counts struct {
	Total     int
	Queued    int
	Delivered int
	Failed    int
	Skipped   map[Reason]int
}

// The limits of what a message may hold.
const (
	MaxSubject = 1000    // characters
	MaxText    = 1 << 18 // bytes: 256 KiB
	MaxHTML    = 1 << 19 // bytes: 512 KiB
	maxAddress = 320
	maxLocal   = 64 // before the @
	maxID      = 255
)

// Check says what is wrong with a message, all of it at once. The kind's existence is the store's to know.
func (m *Message) Check() error {
	var faults []string
	say := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if m.KindID == "" && m.Audience.Kind != ToEmail {
		say("kind_id is missing: name a kind that you registered with PUT /notifications.")
	} else if m.KindID != "" && !ValidKindID(m.KindID) {
		say("kind_id must have 1 to 255 of the characters a-z A-Z 0-9 _ . -")
	}
	readable := true
	for _, f := range []struct {
		field, value string
		limit        int
	}{{"text", m.Text, MaxText}, {"html", m.HTML, MaxHTML}} {
		if len(f.value) > f.limit {
			say("%s has more than %d bytes.", f.field, f.limit)
			readable = false
		}
		if !utf8.ValidString(f.value) || strings.ContainsRune(f.value, 0) {
			say("%s must be UTF-8 text without NUL.", f.field)
			readable = false
		}
	}
	if readable {
		if html, err := SplitHTML(m.HTML); err != nil {
			say("html %v.", err)
		} else if strings.TrimSpace(m.Text) == "" && !html.shows {
			say("text or html is missing: say something, in at least one of them.")
		}
	}
	if tooLong(m.Subject, MaxSubject) || strings.ContainsFunc(m.Subject, unicode.IsControl) {
		say("subject must be one line of at most %d characters.", MaxSubject)
	}
	if m.ReplyTo != "" {
		if _, err := Address(m.ReplyTo); err != nil {
			say("reply_to %v", err)
		}
	}
	faults = append(faults, m.Audience.faults()...)
	return unprocessable(faults)
}

func (a *Audience) faults() []string {
	switch a.Kind {
	case ToEmail:
		if _, err := Address(a.ID); err != nil {
			return []string{"to " + err.Error()}
		}
		return nil
	case ToEveryone:
		return nil
	}
	var faults []string
	if a.ID == "" || len(a.ID) > maxID || !utf8.ValidString(a.ID) || strings.ContainsFunc(a.ID, unicode.IsControl) {
		faults = append(faults, "the recipient in the path must be 1 to 255 printable characters.")
	}
	if a.Role != "" && a.RoleType() == "" {
		names := "OrgManager, OrgAuditor or BillingManager"
		if a.Kind == ToSpace {
			names = "SpaceDeveloper, SpaceManager or SpaceAuditor"
		}
		faults = append(faults, "role must be "+names+", or be left out.")
	}
	return faults
}

// Roles and SpaceRoles map the names of roles in this protocol, of an organization and of a space, to those of the platform's.
var (
	Roles      = map[string]string{"OrgManager": "organization_manager", "OrgAuditor": "organization_auditor", "BillingManager": "organization_billing_manager"}
	SpaceRoles = map[string]string{"SpaceDeveloper": "space_developer", "SpaceManager": "space_manager", "SpaceAuditor": "space_auditor"}
)

var errAddress = errors.New("must be one e-mail address, such as ann@example.org")

func unseen(r rune) bool { return !unicode.IsPrint(r) || unicode.IsSpace(r) }

// Address reads one address, alone or as Name <address>, and returns the bare address. Everything that could become a second
// header or a second recipient is refused.
func Address(s string) (string, error) {
	a, err := readAddress(s)
	return a.Address, err
}

func readAddress(s string) (mail.Address, error) {
	if isUsual(s) {
		return mail.Address{Address: s}, nil
	}
	if len(s) > maxAddress || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return mail.Address{}, errAddress
	}
	a, err := mail.ParseAddress(s)
	if err != nil || strings.ContainsAny(a.Address, "<>,;") || strings.ContainsFunc(a.Address, unseen) {
		return mail.Address{}, errAddress
	}
	at := strings.LastIndexByte(a.Address, '@')
	if at < 1 || at > maxLocal {
		return mail.Address{}, errAddress
	}
	domain := a.Address[at+1:]
	if domain == "" || strings.HasPrefix(domain, ".") || strings.HasSuffix(domain, ".") || strings.Contains(domain, "..") {
		return mail.Address{}, errAddress
	}
	if _, err := asciiDomain(domain); err != nil {
		return mail.Address{}, err
	}
	return *a, nil
}

// isUsual tells an address of the usual form at a glance: there may be a million of them in a send.
func isUsual(s string) bool {
	at, last := -1, byte('.') // neither side begins or ends with a dot, or has two together
	for i := range len(s) {
		switch c := s[i]; {
		case c == '@' && at < 0 && last != '.':
			at, last = i, '.'
			continue
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '.' && last != '.':
		case (c == '+' || c == '_' || c == '=') && at < 0:
		default:
			return false
		}
		last = s[i]
	}
	return at > 0 && at <= maxLocal && last != '.' && len(s) <= maxAddress
}

// Overall is how far a message is as a whole.
func (m *Message) Overall(expanded bool) State {
	switch {
	case m.Reason != "":
		return Failed
	case !expanded || m.Counts.Queued > 0:
		return Queued
	case m.Counts.Delivered > 0 || m.Counts.Total == 0:
		return Delivered
	case m.Counts.Failed > 0:
		return Failed
	}
	return Undeliverable
}

// Mask hides most of an address, for logs.
func Mask(address string) string {
	at := strings.LastIndexByte(address, '@')
	if at < 1 {
		return "…"
	}
	first, _ := utf8.DecodeRuneInString(address)
	return string(first) + "…" + address[at:]
}

var addressLike = regexp.MustCompile(`[^\s<>"']+@[^\s<>"',;]+`)

// MaskAll hides most of every address in a text.
func MaskAll(text string) string { return addressLike.ReplaceAllStringFunc(text, Mask) }
