package v1

// Preferences are what a person wants to get: kinds by their ids, in clients by theirs. Sent with PATCH, what is left out stays.
type Preferences struct {
	GlobalUnsubscribe *bool                            `json:"global_unsubscribe,omitempty"`
	Clients           map[string]map[string]Preference `json:"clients,omitempty"`
}

// Preference is about one kind. Its descriptions are told and not taken.
type Preference struct {
	Email  bool   `json:"email"`
	Kind   string `json:"kind_description,omitempty"`
	Source string `json:"source_description,omitempty"`
}

// MyPreferences is where a person reads and changes their own, with their own token.
const MyPreferences = "/user_preferences"
