package platform

import (
	"slices"
	"strings"
	"time"

	"github.com/proa-dev/proa/kit/fault"
)

// RoleType is what somebody is in an organization or a space. Who may do what is in who.go.
type RoleType string

// The roles.
const (
	OrgUser           RoleType = "organization_user"
	OrgAuditor        RoleType = "organization_auditor"
	OrgManager        RoleType = "organization_manager"
	OrgBillingManager RoleType = "organization_billing_manager"
	SpaceAuditor      RoleType = "space_auditor"
	SpaceDeveloper    RoleType = "space_developer"
	SpaceManager      RoleType = "space_manager"
	SpaceSupporter    RoleType = "space_supporter"
)

// RoleTypes is all of them.
var RoleTypes = []RoleType{OrgUser, OrgAuditor, OrgManager, OrgBillingManager, SpaceAuditor, SpaceDeveloper, SpaceManager, SpaceSupporter}

// InSpace tells whether the role is one in a space.
func (t RoleType) InSpace() bool { return strings.HasPrefix(string(t), "space_") }

// Role is what one person, or client, is in one place.
type Role struct {
	GUID      string
	Type      RoleType
	UserGUID  string
	OrgGUID   string // of the space too
	SpaceGUID string // empty for a role in an organization
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Check says what is wrong with a role that somebody asks for.
func (r *Role) Check() error {
	switch {
	case !slices.Contains(RoleTypes, r.Type):
		names := make([]string, len(RoleTypes))
		for i, t := range RoleTypes {
			names[i] = string(t)
		}
		return fault.Unprocessable("Type must be one of the allowed types %s", strings.Join(names, ", "))
	case r.OrgGUID != "" && r.SpaceGUID != "":
		return fault.Unprocessable("Cannot pass both 'organization' and 'space' in a create role request")
	case r.Type.InSpace() && r.SpaceGUID == "":
		return fault.Unprocessable("Role with type '%s' cannot be associated with an organization.", r.Type)
	case !r.Type.InSpace() && r.OrgGUID == "":
		return fault.Unprocessable("Role with type '%s' cannot be associated with a space.", r.Type)
	}
	return nil
}

// ErrRoleExists is for a role that its holder has already. Clients compare its words.
func ErrRoleExists(user User, r Role, place string) error {
	where := "organization"
	if r.Type.InSpace() {
		where = "space"
	}
	return fault.Unprocessable("User '%s' already has '%s' role in %s '%s'.", user.PresentationName(), r.Type, where, place)
}

// The rules that tie a role in a space to one in its organization.
var (
	ErrNotInOrg      = fault.Unprocessable("Users cannot be assigned roles in a space if they do not have a role in that space's organization.")
	ErrStillInSpaces = fault.Unprocessable("Cannot delete organization_user role while user has roles in spaces in that organization.")
)
