package v3

// Space is a space.
type Space struct {
	Resource
	Name          string           `json:"name"`
	Relationships map[string]ToOne `json:"relationships"`
	Metadata      Metadata         `json:"metadata"`
	Links         Links            `json:"links"`
}

// SpaceCreate is a request for a new space.
type SpaceCreate struct {
	Name          string         `json:"name"`
	Metadata      MetadataChange `json:"metadata,omitzero"`
	Relationships struct {
		Organization ToOne `json:"organization"`
	} `json:"relationships"`
}

// SpaceChange is a request to change one. What is left out stays as it is.
type SpaceChange struct {
	Name     *string        `json:"name,omitempty"`
	Metadata MetadataChange `json:"metadata,omitzero"`
}

// Feature is a switch of a space or an app.
type Feature struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Enabled     bool   `json:"enabled"`
}

// FeatureChange is a request to set it.
type FeatureChange struct {
	Enabled *bool `json:"enabled"`
}
