package platform

import (
	"strings"
	"time"

	"github.com/proa-dev/proa/kit/fault"
)

// Space is where apps live, in an organization and on one cluster.
type Space struct {
	GUID      string
	OrgGUID   string
	Name      string
	Cluster   string // a space never moves: its apps run there
	AllowSSH  bool
	Metadata  Metadata
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Check says what is wrong with the record.
func (s *Space) Check() error {
	if err := checkName(s.Name); err != nil {
		return err
	}
	return s.Metadata.Check()
}

// Namespace is what the space is called on its cluster.
func (s *Space) Namespace() string { return "space-" + strings.ToLower(s.GUID) }

// ErrSpaceExists is for a second space of the same name in an organization. Clients compare its words.
var ErrSpaceExists = fault.Unprocessable("Name must be unique per organization")
