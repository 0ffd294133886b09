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
