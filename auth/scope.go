package auth

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/proa-dev/proa/kit/fault"
)

// Admin is the scope that may do everything here.
const Admin = "uaa.admin"

// Group is a scope that people hold: its members, or everyone.
type Group struct {
	ID          string
	Name        string
	Description string
	Everyone    bool // every person is a member, also those of tomorrow
	Version     int
	Created     time.Time
	Modified    time.Time
}

// Check says what is wrong with a group's record.
func (g *Group) Check() error {
	if err := CheckScope(g.Name); err != nil {
		return badUser("displayName: %v", err)
	}
	return plain("description", g.Description)
}

// CheckScope says what is wrong with a scope's name. RFC 6749 allows printable ASCII without space, quote and backslash.
func CheckScope(name string) error {
	if name == "" || len(name) > maxName || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' || r == ',' }) {
		return errors.New("a scope is 1 to 255 printable ASCII characters without space, comma, quote or backslash, for example notifications.write")
	}
	return nil
}

// Both keeps the scopes of want that are also in have, in want's order, each once.
func Both(want, have []string) []string {
	kept := []string{}
	for _, s := range want {
		if slices.Contains(have, s) && !slices.Contains(kept, s) {
			kept = append(kept, s)
		}
	}
	return kept
}

// Audience names the services that a token is for: the client, and for each scope what stands before its last dot.
func Audience(clientID string, scopes []string) []string {
	aud := []string{clientID}
	for _, s := range scopes {
		service := s
		if dot := strings.LastIndexByte(s, '.'); dot > 0 {
			service = s[:dot]
		}
		if !slices.Contains(aud, service) {
			aud = append(aud, service)
		}
	}
	return aud
}

// powers are the scopes that let their holder take over others. Nobody hands one out without holding it.
var powers = []string{
	Admin, "clients.admin", "clients.write", "clients.secret", "scim.write", "scim.create", "tokens.revoke", "uaa.resource",
	"cloud_controller.admin", "cloud_controller.global_auditor", "cloud_controller.admin_read_only",
}

// Who is the sender of a request, as the audit trail and the rules know it.
type Who struct {
	ClientID  string
	UserID    string
	Name      string
	Scopes    []string
	Address   string
	RequestID string
}

// Is tells whether the sender holds the scope, or the one that stands for all.
func (w Who) Is(scope string) bool {
	return slices.Contains(w.Scopes, Admin) || slices.Contains(w.Scopes, scope)
}

// MayGrant refuses to hand out a power that the sender does not hold.
func (w Who) MayGrant(scopes ...string) error {
	for _, s := range scopes {
		if slices.Contains(powers, s) && !w.Is(s) {
			return fault.Forbidden("You may not grant %s, because you do not hold it. Ask an administrator who does.", s).WithCode("insufficient_scope")
		}
	}
	return nil
}

// MayManage refuses to change a person who holds a power that the sender does not: whoever sets a password becomes that person.
func (w Who) MayManage(u User) error {
	if u.ID != "" && u.ID == w.UserID {
		return nil
	}
	for _, g := range u.Groups {
		if slices.Contains(powers, g.Name) && !w.Is(g.Name) {
			return fault.Forbidden("You may not change this person, who holds %s and you do not. Ask an administrator who does.", g.Name).WithCode("insufficient_scope")
		}
	}
	return nil
}

// Added lists what after has and before had not.
func Added(before, after []string) []string {
	var added []string
	for _, s := range after {
		if !slices.Contains(before, s) {
			added = append(added, s)
		}
	}
	return added
}
