package platform

import "time"

// Event is one line of the audit trail.
type Event struct {
	GUID      string
	Type      string // such as audit.space.create
	Actor     Actor
	Target    Actor
	Data      map[string]any
	SpaceGUID string // where it happened, if in a space
	OrgGUID   string
	CreatedAt time.Time
}

// Actor is one side of an event, by the name it had then.
type Actor struct{ GUID, Type, Name string }

// Actor is the sender as the audit trail knows it.
func (w Who) Actor() Actor {
	if w.Human() {
		return Actor{w.GUID, "user", w.Name}
	}
	return Actor{w.GUID, "client", w.Name}
}

// On is an event about a record that lives in an organization, and in a space if that is named.
func On(kind string, target Actor, orgGUID, spaceGUID string) Event {
	return Event{Type: kind, Target: target, OrgGUID: orgGUID, SpaceGUID: spaceGUID, Data: map[string]any{}}
}

// With adds what the event is about in detail, such as the request. No secrets.
func (e Event) With(data map[string]any) Event {
	e.Data = data
	return e
}
