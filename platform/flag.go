package platform

import (
	"slices"
	"time"

	"github.com/proa-dev/proa/kit/fault"
)

// Flag is a switch that an administrator can set for everybody.
type Flag struct {
	Name      string
	Enabled   bool
	Message   string    // what people read when it stops them; may be empty
	UpdatedAt time.Time // zero: never set
}

// The flags that this platform asks.
const (
	FlagUserOrgCreation       = "user_org_creation"                    // everybody creates organizations
	FlagRouteCreation         = "route_creation"                       // developers create routes
	FlagPrivateDomainCreation = "private_domain_creation"              // managers of an organization create domains of it
	FlagServiceCreation       = "service_instance_creation"            // developers create service instances
	FlagServiceSharing        = "service_instance_sharing"             // developers share them with other spaces
	FlagSpaceBrokers          = "space_scoped_private_broker_creation" // developers register brokers for their space
)

// Allows refuses whoever is not an administrator what the flag does not let everybody do.
func (f Flag) Allows(w Who) error {
	switch {
	case f.Enabled || w.Admin():
		return nil
	case f.Message != "":
		return fault.Forbidden("Feature Disabled: %s", f.Message).WithCode("CF-FeatureDisabled")
	}
	return fault.Forbidden("Feature Disabled: %s. Ask an administrator to enable it.", f.Name).WithCode("CF-FeatureDisabled")
}

// Flags are all there are, as they are until somebody sets them.
func Flags() []Flag {
	return []Flag{
		{Name: "app_bits_upload", Enabled: true}, {Name: "app_scaling", Enabled: true}, {Name: "diego_cnb", Enabled: true}, {Name: "diego_docker"},
		{Name: "env_var_visibility", Enabled: true}, {Name: "hide_marketplace_from_unauthenticated_users"}, {Name: FlagPrivateDomainCreation, Enabled: true},
		{Name: "resource_matching", Enabled: true}, {Name: FlagRouteCreation, Enabled: true}, {Name: "route_sharing"},
		{Name: FlagServiceCreation, Enabled: true}, {Name: FlagServiceSharing}, {Name: "set_roles_by_username", Enabled: true},
		{Name: "space_developer_env_var_visibility", Enabled: true}, {Name: FlagSpaceBrokers},
		{Name: "task_creation", Enabled: true}, {Name: "unset_roles_by_username", Enabled: true}, {Name: FlagUserOrgCreation},
	}
}

// FlagOf is a flag as it is until somebody sets it.
func FlagOf(name string) (Flag, error) {
	flags := Flags()
	i := slices.IndexFunc(flags, func(f Flag) bool { return f.Name == name })
	if i < 0 {
		return Flag{}, NotFound("Feature flag")
	}
	return flags[i], nil
}
