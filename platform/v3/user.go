package v3

// User is a person, or a client, which has no name and no origin.
type User struct {
	Resource
	Username         *string  `json:"username"`
	PresentationName string   `json:"presentation_name"`
	Origin           *string  `json:"origin"`
	Metadata         Metadata `json:"metadata"`
	Links            Links    `json:"links"`
}

// UserCreate is a request to know a user, by guid or by name and origin.
type UserCreate struct {
	GUID     string         `json:"guid,omitempty"`
	Username string         `json:"username,omitempty"`
	Origin   string         `json:"origin,omitempty"`
	Metadata MetadataChange `json:"metadata,omitzero"`
}
