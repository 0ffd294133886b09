package platform

import (
	"time"

	"github.com/proa-dev/proa/kit/fault"
)

// User is a person or client that the platform has heard of. The authorization server knows them; we remember their names.
type User struct {
	GUID      string
	Name      string // empty for a client
	Origin    string
	CreatedAt time.Time
	UpdatedAt time.Time
}

// PresentationName is what to call them.
func (u *User) PresentationName() string {
	if u.Name != "" {
		return u.Name
	}
	return u.GUID
}

// ErrUserInvalid is for a user in a request that is not known, or not to the sender.
var ErrUserInvalid = fault.Unprocessable("Invalid user. Ensure that the user exists and you have access to it.")

// ErrUserExists is for a user that is here already. Clients compare its words.
func ErrUserExists(guid string) error {
	return fault.Unprocessable("User with guid '%s' already exists.", guid)
}

// ErrNoUser is for a name that the authorization server does not know.
func ErrNoUser(name, origin string) error {
	if origin == "" {
		return fault.Unprocessable("No user exists with the username '%s'.", name)
	}
	return fault.Unprocessable("No user exists with the username '%s' and origin '%s'.", name, origin)
}
