package v3

// Domain is a name under which routes stand.
type Domain struct {
	Resource
	Name               string              `json:"name"`
	Internal           bool                `json:"internal"`
	RouterGroup        *Ref                `json:"router_group"`
	SupportedProtocols []string            `json:"supported_protocols"`
	Metadata           Metadata            `json:"metadata"`
	Relationships      DomainRelationships `json:"relationships"`
	Links              Links               `json:"links"`
}

// DomainRelationships say whose domain it is.
type DomainRelationships struct {
	Organization        ToOne  `json:"organization"`
	SharedOrganizations ToMany `json:"shared_organizations"`
}

// DomainCreate is a request for a new domain: an organization's own, or a shared one when none is named.
type DomainCreate struct {
	Name          string         `json:"name"`
	Internal      *bool          `json:"internal,omitempty"`
	RouterGroup   *Ref           `json:"router_group,omitempty"`
	Metadata      MetadataChange `json:"metadata,omitzero"`
	Relationships struct {
		Organization        ToOne  `json:"organization,omitzero"`
		SharedOrganizations ToMany `json:"shared_organizations,omitzero"`
	} `json:"relationships,omitzero"`
}

// DomainChange is a request to change what is noted on one.
type DomainChange struct {
	Metadata MetadataChange `json:"metadata,omitzero"`
}
