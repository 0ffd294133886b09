package platform

import (
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/proa-dev/proa/kit/fault"
)

// Org is an organization: who works together, and the spaces they work in.
type Org struct {
	GUID      string
	Name      string
	Suspended bool
	Metadata  Metadata
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Check says what is wrong with the record.
func (o *Org) Check() error {
	if err := checkName(o.Name); err != nil {
		return err
	}
	return o.Metadata.Check()
}

// ErrOrgExists is for a second organization of the same name. Clients compare its words.
func ErrOrgExists(name string) error {
	return fault.Unprocessable("Organization '%s' already exists.", name)
}

// DefaultQuota is the one quota there is: it limits nothing.
var DefaultQuota = struct{ GUID, Name string }{GUIDOf("organization quota", "default"), "default"}

const maxName = 255

// checkName holds for all that people name.
func checkName(name string) error {
	switch n := utf8.RuneCountInString(name); {
	case n == 0:
		return fault.Unprocessable("Name can't be blank")
	case n > maxName:
		return fault.Unprocessable("Name is too long (maximum is %d characters)", maxName)
	}
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return fault.Unprocessable("Name must contain printable characters only")
		}
	}
	return nil
}

// OrgUsage is how much an organization uses.
type OrgUsage struct{ Instances, MemoryMB, Routes, Domains, ServiceInstances, ServiceKeys int }
