package notify

// UnsubscribeContext is what the tokens of unsubscribe links are sealed for.
const UnsubscribeContext = "notify/unsubscribe"

// Preference is whether a person wants one kind of notification.
type Preference struct {
	ClientID          string
	KindID            string
	Email             bool
	KindDescription   string
	SourceDescription string
	Critical          bool
}

// Preferences is all that a person has decided, and could decide.
type Preferences struct {
	GlobalUnsubscribe bool
	Kinds             []Preference
}
