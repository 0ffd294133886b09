// Package platform is the domain of the application platform: organizations, spaces, apps and what belongs to them, and the rules
// about them. It does no I/O.
package platform

import (
	"slices"

	"github.com/proa-dev/proa/kit/fault"
)

// Who is the sender of a request, as the rules and the audit trail know it.
type Who struct {
	GUID      string // of the person; a client that acts for itself is known by its id
	Name      string
	Origin    string // where the person logs in; empty for a client
	ClientID  string
	Scopes    []string
	RequestID string
}

// The scopes that this platform knows. The first two say what a token is for, the others reach everywhere.
const (
	ScopeRead          = "cloud_controller.read"
	ScopeWrite         = "cloud_controller.write"
	ScopeAdmin         = "cloud_controller.admin"
	ScopeAdminReadOnly = "cloud_controller.admin_read_only"
	ScopeGlobalAuditor = "cloud_controller.global_auditor"
)

// Is tells whether the sender holds the scope.
func (w Who) Is(scope string) bool { return slices.Contains(w.Scopes, scope) }

// Admin tells whether the sender may do everything.
func (w Who) Admin() bool { return w.Is(ScopeAdmin) }

// Human tells whether the sender is a person.
func (w Who) Human() bool { return w.Origin != "" }

// User is the sender as one of those who hold roles. A client has no user name.
func (w Who) User() User {
	if w.Human() {
		return User{GUID: w.GUID, Name: w.Name, Origin: w.Origin}
	}
	return User{GUID: w.GUID}
}

// Speaks refuses a token that was not given for reading, or for writing.
func (w Who) Speaks(write bool) error {
	if w.Admin() || write && w.Is(ScopeWrite) || !write && (w.Is(ScopeRead) || w.Is(ScopeAdminReadOnly) || w.Is(ScopeGlobalAuditor)) {
		return nil
	}
	return fault.Forbidden("Your token lacks the necessary scopes to access this resource.").WithCode("CF-InsufficientScope")
}

// Action is what somebody wants to do.
type Action int

// The actions, on an organization, on a space, or on what lives in a space.
const (
	Read        Action = iota // see that it is there, and how it is
	ReadSecrets               // see environment variables
	Audit                     // see what happened to it
	Support                   // start, stop, restart, scale, map routes
	Develop                   // change apps and what belongs to them
	ManageSpace               // change the space, and who is in it
	ManageOrg                 // change the organization, who is in it, and which spaces it has
	Administer                // what only administrators may
)

// Level is where a role is asked about.
type Level int

// The two levels. What lives in a space is on the space's level.
const (
	OnOrg Level = iota
	OnSpace
)

// The table says what each role may do, and nothing else does. A role in an organization reaches into its spaces as far as the
// second column says; a role in a space does not reach out of it, and whoever holds one is in the organization too.
var table = map[RoleType][2][]Action{
	OrgUser:           {OnOrg: {Read}},
	OrgAuditor:        {OnOrg: {Read, Audit}},
	OrgBillingManager: {OnOrg: {Read}},
	OrgManager:        {OnOrg: {Read, ManageOrg}, OnSpace: {Read, ManageSpace, ManageOrg}},
	SpaceAuditor:      {OnSpace: {Read, Audit}},
	SpaceSupporter:    {OnSpace: {Read, Audit, Support}},
	SpaceDeveloper:    {OnSpace: {Read, Audit, Support, Develop, ReadSecrets}},
	SpaceManager:      {OnSpace: {Read, ManageSpace}},
}

// global says what a scope lets its holder do anywhere.
var global = map[string][]Action{
	ScopeAdmin:         {Read, ReadSecrets, Audit, Support, Develop, ManageSpace, ManageOrg, Administer},
	ScopeAdminReadOnly: {Read, ReadSecrets, Audit},
	ScopeGlobalAuditor: {Read, Audit},
}

// Everywhere tells whether the sender may do this anywhere, by scope.
func (w Who) Everywhere(a Action) bool {
	return slices.ContainsFunc(w.Scopes, func(s string) bool { return slices.Contains(global[s], a) })
}

// RolesFor lists the roles that allow an action on a level, for a store that looks for their holders.
func RolesFor(a Action, on Level) []string {
	roles := []string{}
	for _, r := range RoleTypes {
		if slices.Contains(table[r][on], a) {
			roles = append(roles, string(r))
		}
	}
	return roles
}

// Place is where a record lives, as far as it decides who may do what with it.
type Place struct {
	Level     Level
	Held      []string // the sender's roles in the record's space and organization
	Suspended bool     // the organization is: only administrators change anything in it
}

// ErrForbidden is for what the sender may see but not do.
var ErrForbidden = fault.Forbidden("You are not authorized to perform the requested action").WithCode("CF-NotAuthorized")

// NotFound is for a noun that is not there, or that the sender must not learn of. Clients compare its words.
func NotFound(noun string) error { return fault.NotFound("%s not found", noun) }

// May decides. What one may not see is not found, what one may see but not do is forbidden.
func (w Who) May(do Action, noun string, p Place) error {
	can := func(a Action) bool {
		return w.Everywhere(a) || slices.ContainsFunc(p.Held, func(r string) bool { return slices.Contains(table[RoleType(r)][p.Level], a) })
	}
	switch {
	case !can(do) && (do == Read || do == Audit || !can(Read)):
		return NotFound(noun)
	case !can(do):
		return ErrForbidden
	case p.Suspended && !w.Admin() && do != Read && do != ReadSecrets && do != Audit:
		return fault.Forbidden("The organization is suspended").WithCode("CF-OrgSuspended")
	}
	return nil
}

// MayAdminister refuses whoever is not an administrator.
func (w Who) MayAdminister() error {
	if !w.Everywhere(Administer) {
		return ErrForbidden
	}
	return nil
}
