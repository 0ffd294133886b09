package platform

import "time"

// Domain is a name under which routes stand. The apps domain is shared by all organizations.
type Domain struct {
	GUID      string
	Name      string
	Internal  bool
	OrgGUID   string // empty: shared
	Metadata  Metadata
	CreatedAt time.Time
	UpdatedAt time.Time
}
