package v3

import "encoding/json"

// ServiceBroker is who provides services.
type ServiceBroker struct {
	Resource
	Name          string           `json:"name"`
	URL           string           `json:"url"`
	State         string           `json:"state,omitempty"`
	Relationships map[string]ToOne `json:"relationships"` // space, if it is only for one
	Metadata      Metadata         `json:"metadata"`
	Links         Links            `json:"links"`
}

// ServiceBrokerCreate is a request to register one.
type ServiceBrokerCreate struct {
	Name           string                `json:"name"`
	URL            string                `json:"url"`
	Authentication *BrokerAuthentication `json:"authentication"`
	Relationships  *BrokerRelationships  `json:"relationships,omitempty"`
	Metadata       MetadataChange        `json:"metadata,omitzero"`
}

// ServiceBrokerChange is a request to change one. What is not there stays.
type ServiceBrokerChange struct {
	Name           *string               `json:"name,omitempty"`
	URL            *string               `json:"url,omitempty"`
	Authentication *BrokerAuthentication `json:"authentication,omitempty"`
	Metadata       MetadataChange        `json:"metadata,omitzero"`
}

// BrokerAuthentication is how to log in to a broker. The only type is basic.
type BrokerAuthentication struct {
	Type        string            `json:"type"`
	Credentials BrokerCredentials `json:"credentials"`
}

// BrokerCredentials are never sent back.
type BrokerCredentials struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

// BrokerRelationships name the only space that a broker is for.
type BrokerRelationships struct {
	Space ToOne `json:"space"`
}

// ServiceOffering is a kind of service.
type ServiceOffering struct {
	Resource
	Name             string           `json:"name"`
	Description      string           `json:"description"`
	Available        bool             `json:"available"`
	Bindable         bool             `json:"bindable"`
	Shareable        bool             `json:"shareable"`
	Tags             []string         `json:"tags"`
	Requires         []string         `json:"requires"`
	DocumentationURL string           `json:"documentation_url"`
	BrokerCatalog    OfferingCatalog  `json:"broker_catalog"`
	Relationships    map[string]ToOne `json:"relationships"` // service_broker
	Metadata         Metadata         `json:"metadata"`
	Links            Links            `json:"links"`
}

// OfferingCatalog is what the broker says of an offering.
type OfferingCatalog struct {
	ID       string           `json:"id"`
	Metadata json.RawMessage  `json:"metadata"`
	Features OfferingFeatures `json:"features"`
}

// OfferingFeatures are what can be done with its instances.
type OfferingFeatures struct {
	PlanUpdateable       bool `json:"plan_updateable"`
	Bindable             bool `json:"bindable"`
	InstancesRetrievable bool `json:"instances_retrievable"`
	BindingsRetrievable  bool `json:"bindings_retrievable"`
	AllowContextUpdates  bool `json:"allow_context_updates"`
}

// ServicePlan is a way to have a service.
type ServicePlan struct {
	Resource
	Name           string           `json:"name"`
	Description    string           `json:"description"`
	Free           bool             `json:"free"`
	Available      bool             `json:"available"`
	VisibilityType string           `json:"visibility_type"`
	Costs          []Cost           `json:"costs"`
	Maintenance    *MaintenanceInfo `json:"maintenance_info"` // an empty object when there is none
	BrokerCatalog  PlanCatalog      `json:"broker_catalog"`
	Schemas        json.RawMessage  `json:"schemas"`
	Relationships  map[string]ToOne `json:"relationships"` // service_offering, and space for one of a broker of a space
	Metadata       Metadata         `json:"metadata"`
	Links          Links            `json:"links"`
}

// Cost is an amount that is due in each unit of time.
type Cost struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
	Unit     string  `json:"unit"`
}

// MaintenanceInfo is the version of what is behind a plan or an instance.
type MaintenanceInfo struct {
	Version     string `json:"version,omitempty"`
	Description string `json:"description,omitempty"`
}

// PlanCatalog is what the broker says of a plan.
type PlanCatalog struct {
	ID             string          `json:"id"`
	Metadata       json.RawMessage `json:"metadata"`
	MaxPolling     *int            `json:"maximum_polling_duration"`
	Features       PlanFeatures    `json:"features"`
	PlanUpdateable *bool           `json:"plan_updateable,omitempty"`
}

// PlanFeatures are what can be done with instances of the plan.
type PlanFeatures struct {
	Bindable       bool `json:"bindable"`
	PlanUpdateable bool `json:"plan_updateable"`
}

// PlanVisibility is who can have a plan.
type PlanVisibility struct {
	Type          string  `json:"type"`
	Organizations []Named `json:"organizations,omitempty"`
	Space         *Named  `json:"space,omitempty"`
}

// Named is a record by its guid and its name.
type Named struct {
	GUID string `json:"guid"`
	Name string `json:"name,omitempty"`
}

// ServiceInstance is a service that somebody has.
type ServiceInstance struct {
	Resource
	Name             string           `json:"name"`
	Type             string           `json:"type"` // managed, user-provided
	Tags             []string         `json:"tags"`
	SyslogDrainURL   *string          `json:"syslog_drain_url,omitempty"`
	RouteServiceURL  *string          `json:"route_service_url,omitempty"`
	DashboardURL     *string          `json:"dashboard_url,omitempty"`
	MaintenanceInfo  *MaintenanceInfo `json:"maintenance_info,omitempty"`
	UpgradeAvailable *bool            `json:"upgrade_available,omitempty"`
	LastOperation    LastOperation    `json:"last_operation"`
	Relationships    map[string]ToOne `json:"relationships"` // space, service_plan
	Metadata         Metadata         `json:"metadata"`
	Links            Links            `json:"links"`
}

// The types of instances.
const (
	ManagedInstance      = "managed"
	UserProvidedInstance = "user-provided"
)

// LastOperation is what was last asked of a broker.
type LastOperation struct {
	Type        string `json:"type"`
	State       string `json:"state"`
	Description string `json:"description"`
	CreatedAt   Time   `json:"created_at"`
	UpdatedAt   Time   `json:"updated_at"`
}

// ServiceInstanceCreate is a request for a new one.
type ServiceInstanceCreate struct {
	Type            string                `json:"type"`
	Name            string                `json:"name"`
	Tags            []string              `json:"tags,omitempty"`
	Parameters      json.RawMessage       `json:"parameters,omitempty"`
	Credentials     json.RawMessage       `json:"credentials,omitempty"`
	SyslogDrainURL  *string               `json:"syslog_drain_url,omitempty"`
	RouteServiceURL *string               `json:"route_service_url,omitempty"`
	Relationships   InstanceRelationships `json:"relationships"`
	Metadata        MetadataChange        `json:"metadata,omitzero"`
}

// InstanceRelationships say where an instance lives and what it is of.
type InstanceRelationships struct {
	Space ToOne  `json:"space,omitzero"`
	Plan  *ToOne `json:"service_plan,omitempty"`
}

// ServiceInstanceChange is a request to change one. What is not there stays.
type ServiceInstanceChange struct {
	Name            *string                `json:"name,omitempty"`
	Tags            *[]string              `json:"tags,omitempty"`
	Parameters      json.RawMessage        `json:"parameters,omitempty"`
	Credentials     json.RawMessage        `json:"credentials,omitempty"`
	SyslogDrainURL  *string                `json:"syslog_drain_url,omitempty"`
	RouteServiceURL *string                `json:"route_service_url,omitempty"`
	MaintenanceInfo *MaintenanceInfo       `json:"maintenance_info,omitempty"`
	Relationships   *InstanceRelationships `json:"relationships,omitempty"`
	Metadata        MetadataChange         `json:"metadata,omitzero"`
}

// InstancePermissions are what somebody may do with an instance.
type InstancePermissions struct {
	Read   bool `json:"read"`
	Manage bool `json:"manage"`
}

// ServiceBinding is a set of credentials of an instance; what they are stands in its details.
type ServiceBinding struct {
	Resource
	Name          *string          `json:"name"`
	Type          string           `json:"type"` // app, key
	LastOperation LastOperation    `json:"last_operation"`
	Relationships map[string]ToOne `json:"relationships"` // service_instance, app
	Metadata      Metadata         `json:"metadata"`
	Links         Links            `json:"links"`
}

// ServiceBindingCreate is a request for a new one.
type ServiceBindingCreate struct {
	Type          string               `json:"type"`
	Name          *string              `json:"name,omitempty"`
	Parameters    json.RawMessage      `json:"parameters,omitempty"`
	Strategy      string               `json:"strategy,omitempty"` // single, multiple
	Relationships BindingRelationships `json:"relationships"`
	Metadata      MetadataChange       `json:"metadata,omitzero"`
}

// ServiceBindingChange is a request to change what is noted on one.
type ServiceBindingChange struct {
	Metadata MetadataChange `json:"metadata,omitzero"`
}

// BindingRelationships say what is bound to what.
type BindingRelationships struct {
	Instance ToOne  `json:"service_instance"`
	App      *ToOne `json:"app,omitempty"`
}

// BindingDetails are what a binding gives.
type BindingDetails struct {
	Credentials    json.RawMessage `json:"credentials"`
	SyslogDrainURL *string         `json:"syslog_drain_url,omitempty"`
	VolumeMounts   json.RawMessage `json:"volume_mounts,omitempty"`
}

// SharedSpaces is where else an instance can be used.
type SharedSpaces struct {
	Data     []Ref     `json:"data"`
	Included *Included `json:"included,omitempty"`
	Links    Links     `json:"links,omitempty"`
}

// SharedUsage is how many apps of each such space use it.
type SharedUsage struct {
	UsageSummary []SpaceUsage `json:"usage_summary"`
	Links        Links        `json:"links,omitempty"`
}

// SpaceUsage is how many apps of a space are bound.
type SpaceUsage struct {
	Space         Ref `json:"space"`
	BoundAppCount int `json:"bound_app_count"`
}
