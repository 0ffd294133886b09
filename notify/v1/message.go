package v1

import (
	"net/url"
	"time"
)

// Message is what is sent.
type Message struct {
	KindID  string `json:"kind_id,omitempty"`
	To      string `json:"to,omitempty"` // with ToEmail
	Subject string `json:"subject,omitempty"`
	Text    string `json:"text,omitempty"`
	HTML    string `json:"html,omitempty"`
	ReplyTo string `json:"reply_to,omitempty"`
	Role    string `json:"role,omitempty"` // only those who hold it: with ToSpace SpaceDeveloper and the like, with ToOrganization OrgManager and the like
}

// An Audience is where a message for it is sent to.
type Audience string

// Audiences that need no name. The address of ToEmail stands in the message.
const (
	ToEveryone Audience = "/everyone"
	ToEmail    Audience = "/emails"
)

// ToUser is one person.
func ToUser(guid string) Audience { return Audience("/users/" + url.PathEscape(guid)) }

// ToSpace is everybody with a role in a space, or with the role that the message names.
func ToSpace(guid string) Audience { return Audience("/spaces/" + url.PathEscape(guid)) }

// ToOrganization is everybody with a role in an organization, or with the role that the message names.
func ToOrganization(guid string) Audience { return Audience("/organizations/" + url.PathEscape(guid)) }

// ToScope is every holder of a scope.
func ToScope(scope string) Audience { return Audience("/uaa_scopes/" + url.PathEscape(scope)) }

// Accepted says that a message was taken. It does not wait for the audience.
type Accepted struct {
	Status    State  `json:"status"`
	Recipient string `json:"recipient"`
	ID        string `json:"notification_id"`
	RequestID string `json:"vcap_request_id"`
}

// State is how far a message is, or one person's part of it.
type State string

// The states. A message is queued until its audience is known and nobody's mail is on the way any more.
const (
	Queued        State = "queued"
	Delivered     State = "delivered"
	Failed        State = "failed"
	Undeliverable State = "undeliverable"
)

// Status is how far a message is.
type Status struct {
	Status    State          `json:"status"`
	ID        string         `json:"notification_id"`
	Kind      string         `json:"kind_id,omitempty"`
	Audience  string         `json:"audience"`
	Recipient string         `json:"recipient"`
	Received  time.Time      `json:"received_at"`
	Complete  bool           `json:"audience_complete"` // false while people may still be added
	Total     int            `json:"total"`
	Queued    int            `json:"queued"`
	Delivered int            `json:"delivered"`
	Failed    int            `json:"failed"`
	Skipped   map[string]int `json:"skipped"` // by the reason
	Reason    string         `json:"reason,omitempty"`
}

// Recipient is one person of a message.
type Recipient struct {
	ID       string    `json:"delivery_id"`
	User     string    `json:"user_guid,omitempty"`
	Address  string    `json:"address,omitempty"` // only where the sender itself gave it
	Status   State     `json:"status"`
	Reason   string    `json:"reason,omitempty"`
	Attempts int       `json:"attempts"`
	Changed  time.Time `json:"changed_at"`
	Tries    []Attempt `json:"unsuccessful_attempts,omitempty"`
}

// Attempt is a try that did not end well.
type Attempt struct {
	At      time.Time `json:"at"`
	Outcome string    `json:"outcome"` // transient, permanent or bounced
	Code    string    `json:"code,omitempty"`
	Reason  string    `json:"reason,omitempty"`
}

// Recipients is a page of them. Next is there when there are more; it is sent as after.
type Recipients struct {
	Recipients []Recipient `json:"recipients"`
	Next       string      `json:"next,omitempty"`
}

// MaxPage is the longest page of a list.
const MaxPage = 500

// MessagePath is where a message is looked at.
func MessagePath(id string) string { return "/messages/" + url.PathEscape(id) }

// RecipientsPath is where its people are listed. The query may hold count, after and status.
func RecipientsPath(id string, query url.Values) string {
	return MessagePath(id) + "/recipients?" + query.Encode()
}
