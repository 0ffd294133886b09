package v3

// Organization is an organization.
type Organization struct {
	Resource
	Name          string           `json:"name"`
	Suspended     bool             `json:"suspended"`
	Relationships map[string]ToOne `json:"relationships"`
	Metadata      Metadata         `json:"metadata"`
	Links         Links            `json:"links"`
}

// OrganizationChange is a request to create or change one. What is left out stays as it is.
type OrganizationChange struct {
	Name      *string        `json:"name,omitempty"`
	Suspended *bool          `json:"suspended,omitempty"`
	Metadata  MetadataChange `json:"metadata,omitzero"`
}

// UsageSummary is how much an organization uses.
type UsageSummary struct {
	Usage map[string]int `json:"usage_summary"`
	Links Links          `json:"links"`
}

// Quota limits an organization. Limits that are null are none.
type Quota struct {
	Resource
	Name          string            `json:"name"`
	Apps          map[string]*int   `json:"apps"`
	Services      map[string]any    `json:"services"`
	Routes        map[string]*int   `json:"routes"`
	Domains       map[string]*int   `json:"domains"`
	Relationships map[string]ToMany `json:"relationships"`
	Links         Links             `json:"links"`
}
