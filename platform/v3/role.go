package v3

// Role is what somebody is in an organization or a space.
type Role struct {
	Resource
	Type          string           `json:"type"`
	Relationships map[string]ToOne `json:"relationships"`
	Links         Links            `json:"links"`
}

// RoleCreate is a request to give a role.
type RoleCreate struct {
	Type          string `json:"type"`
	Relationships struct {
		User         UserRef `json:"user"`
		Organization ToOne   `json:"organization,omitzero"`
		Space        ToOne   `json:"space,omitzero"`
	} `json:"relationships"`
}

// UserRef names a user, by guid or by name and origin.
type UserRef struct {
	Data struct {
		GUID     string `json:"guid,omitempty"`
		Username string `json:"username,omitempty"`
		Origin   string `json:"origin,omitempty"`
	} `json:"data"`
}
