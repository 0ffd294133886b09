// Package auth is the domain of the authorization server: people, clients and scopes, and the rules about them. It does no I/O.
package auth

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/proa-dev/proa/kit/fault"
)

// Internal is the origin of people whose passwords are kept here.
const Internal = "uaa"

// User is a person.
type User struct {
	ID          string
	UserName    string
	Origin      string
	Email       string
	GivenName   string
	FamilyName  string
	ExternalID  string
	Password    Hash // empty: this person cannot log in with a password
	Active      bool
	Verified    bool
	Generation  string // changes when every token of this person is revoked
	Version     int
	Created     time.Time
	Modified    time.Time
	PasswordSet time.Time
	LastLogin   *time.Time
	Groups      []Group // filled when the person is read for a reply
}

// The limits of what people may be called. They are documented in docs/auth.md.
const (
	maxName     = 255
	maxPassword = 512 // bytes; hashing time does not depend on it, memory would
)

// Check says what is wrong with a person's record.
func (u *User) Check() error {
	if u.Origin == "" {
		u.Origin = Internal
	}
	u.UserName, u.Email = strings.TrimSpace(u.UserName), strings.TrimSpace(u.Email)
	for _, f := range []struct{ field, value string }{
		{"userName", u.UserName}, {"emails[0].value", u.Email}, {"origin", u.Origin}, {"name.givenName", u.GivenName},
		{"name.familyName", u.FamilyName}, {"externalId", u.ExternalID},
	} {
		if err := plain(f.field, f.value); err != nil {
			return err
		}
	}
	switch {
	case u.UserName == "":
		return badUser("userName is missing. Send the name that this person logs in with.")
	case u.Email == "":
		return badUser("emails is missing. Send one address, as emails: [{\"value\": \"name@example.org\"}].")
	}
	return nil
}

func badUser(format string, args ...any) error {
	return fault.Invalid(format, args...).WithCode("invalid_scim_resource")
}

// plain refuses what must not stand in a name: control characters, broken UTF-8, more than 255 characters.
func plain(field, value string) error {
	switch {
	case !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl):
		return badUser("%s holds a character that cannot be printed. Remove it.", field)
	case utf8.RuneCountInString(value) > maxName:
		return badUser("%s is longer than %d characters. Shorten it.", field, maxName)
	}
	return nil
}

// NewPassword says whether a password may be set for this person; least is the operator's minimum length.
func (u *User) NewPassword(password string, least int) error {
	bad := func(format string, args ...any) error {
		return fault.Unprocessable(format, args...).WithCode("invalid_password")
	}
	switch {
	case u.Origin != Internal:
		return bad("The password of a person from origin %q is not kept here. Change it there.", u.Origin)
	case utf8.RuneCountInString(password) < least:
		return bad("The password must have at least %d characters. Choose a longer one.", least)
	case len(password) > maxPassword:
		return bad("The password is longer than %d bytes. Choose a shorter one.", maxPassword)
	case strings.EqualFold(password, u.UserName):
		return bad("The password must differ from the user name. Choose another one.")
	}
	return nil
}
