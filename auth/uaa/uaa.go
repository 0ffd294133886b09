// Package uaa is the protocol that the authorization server speaks: the JSON shapes, paths and error codes of UAA, and a Go
// client for them. It is the only part of the authorization server that other products may import.
package uaa

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/proa-dev/proa/kit/fault"
)

// Version is the release of UAA whose interface this server follows. Clients read it to learn what they may ask.
const Version = "77.20.0"

// Schemas is what SCIM 1 replies carry.
var Schemas = []string{"urn:scim:schemas:core:1.0"}

// Error is the body of a refusal.
type Error struct {
	Code        string `json:"error"`
	Description string `json:"error_description"`
}

// Page is a list, or a part of one. On a walk by `filter=id gt "…"` sorted by id, TotalResults counts this page and one more if
// there is more: the walk ends with the page whose ItemsPerPage equals it.
type Page[T any] struct {
	Resources    []T      `json:"resources"`
	StartIndex   int      `json:"startIndex"`
	ItemsPerPage int      `json:"itemsPerPage"`
	TotalResults int      `json:"totalResults"`
	Schemas      []string `json:"schemas"`
}

// Meta tells the age of a record.
type Meta struct {
	Version      int       `json:"version"`
	Created      time.Time `json:"created"`
	LastModified time.Time `json:"lastModified"`
}

// List is a list that may also be written as one string, with commas or spaces.
type List []string

// UnmarshalJSON takes both forms.
func (l *List) UnmarshalJSON(b []byte) error {
	var list []string
	if err := json.Unmarshal(b, &list); err == nil {
		*l = list
		return nil
	}
	var one string
	if err := json.Unmarshal(b, &one); err != nil {
		return fault.Invalid("A list of names was expected, as a JSON list or as one string with commas.")
	}
	*l = strings.FieldsFunc(one, func(r rune) bool { return r == ',' || r == ' ' })
	return nil
}

// Approval is a list of scopes that need no consent, or true for all of them.
type Approval []string

// UnmarshalJSON takes true, false, a list or one string.
func (a *Approval) UnmarshalJSON(b []byte) error {
	var all bool
	if err := json.Unmarshal(b, &all); err == nil {
		*a = nil
		if all {
			*a = Approval{"true"}
		}
		return nil
	}
	return (*List)(a).UnmarshalJSON(b)
}

// MarshalJSON writes true for all.
func (a Approval) MarshalJSON() ([]byte, error) {
	if len(a) == 1 && a[0] == "true" {
		return []byte("true"), nil
	}
	return json.Marshal([]string(a))
}

// Client is a client. The secret is taken and never given.
type Client struct {
	ID           string   `json:"client_id"`
	Secret       string   `json:"client_secret,omitempty"`
	Name         string   `json:"name,omitempty"`
	Scope        List     `json:"scope"`
	Authorities  List     `json:"authorities"`
	Grants       List     `json:"authorized_grant_types"`
	RedirectURI  List     `json:"redirect_uri,omitempty"`
	AutoApprove  Approval `json:"autoapprove,omitempty"`
	AccessFor    int      `json:"access_token_validity,omitempty"`
	RefreshFor   int      `json:"refresh_token_validity,omitempty"`
	LastModified int64    `json:"lastModified,omitempty"`
}

// SecretChange asks for another client secret. Mode is UPDATE (the default: replace), ADD (a second one) or DELETE (the older one).
type SecretChange struct {
	Old  string `json:"oldSecret,omitempty"`
	New  string `json:"secret,omitempty"`
	Mode string `json:"changeMode,omitempty"`
}

// User is a person. The password is taken and never given.
type User struct {
	ID          string    `json:"id,omitempty"`
	ExternalID  string    `json:"externalId,omitempty"`
	UserName    string    `json:"userName,omitempty"`
	Password    string    `json:"password,omitempty"`
	Name        Name      `json:"name,omitzero"`
	Emails      []Email   `json:"emails,omitempty"`
	Groups      []InGroup `json:"groups,omitempty"`
	Active      *bool     `json:"active,omitempty"`
	Verified    *bool     `json:"verified,omitempty"`
	Origin      string    `json:"origin,omitempty"`
	ZoneID      string    `json:"zoneId,omitempty"`
	PasswordSet time.Time `json:"passwordLastModified,omitzero"`
	LastLogin   int64     `json:"lastLogonTime,omitempty"`
	Meta        *Meta     `json:"meta,omitempty"`
	Schemas     []string  `json:"schemas,omitempty"`
}

// Name is a person's name.
type Name struct {
	Given  string `json:"givenName,omitempty"`
	Family string `json:"familyName,omitempty"`
}

// Email is an address.
type Email struct {
	Value   string `json:"value"`
	Primary bool   `json:"primary"`
}

// InGroup is a group that a person is in.
type InGroup struct {
	ID   string `json:"value"`
	Name string `json:"display"`
	Type string `json:"type"`
}

// PasswordChange asks for another password.
type PasswordChange struct {
	Old string `json:"oldPassword,omitempty"`
	New string `json:"password"`
}

// Group is a scope that people hold.
type Group struct {
	ID          string    `json:"id,omitempty"`
	Name        string    `json:"displayName"`
	Description string    `json:"description,omitempty"`
	Everyone    *bool     `json:"everyone,omitempty"`
	Members     *[]Member `json:"members,omitempty"`
	MoreMembers string    `json:"moreMembers,omitempty"` // where the list goes on, when it is too long for one reply
	ZoneID      string    `json:"zoneId,omitempty"`
	Meta        *Meta     `json:"meta,omitempty"`
	Schemas     []string  `json:"schemas,omitempty"`
}

// Member is a person in a group.
type Member struct {
	Value  string `json:"value"`
	Type   string `json:"type,omitempty"`
	Origin string `json:"origin,omitempty"`
}

// Token is the reply of the token endpoint.
type Token struct {
	Access    string `json:"access_token"`
	Refresh   string `json:"refresh_token,omitempty"`
	ID        string `json:"id_token,omitempty"`
	Type      string `json:"token_type"`
	ExpiresIn int    `json:"expires_in"`
	Scope     string `json:"scope"`
	JTI       string `json:"jti"`
}
