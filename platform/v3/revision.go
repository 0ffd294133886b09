package v3

// Revision is an app as it was deployed once: its droplet, its environment and its commands.
type Revision struct {
	Resource
	Version       int                        `json:"version"`
	Description   string                     `json:"description"`
	Deployable    bool                       `json:"deployable"`
	Droplet       Ref                        `json:"droplet"`
	Processes     map[string]RevisionProcess `json:"processes"`
	Sidecars      []RevisionSidecar          `json:"sidecars"`
	Relationships map[string]ToOne           `json:"relationships"`
	Metadata      Metadata                   `json:"metadata"`
	Links         Links                      `json:"links"`
}

// RevisionProcess is how a process was started; null is the droplet's command.
type RevisionProcess struct {
	Command *string `json:"command"`
}

// RevisionSidecar is a sidecar as it was.
type RevisionSidecar struct {
	Name         string   `json:"name"`
	Command      string   `json:"command"`
	ProcessTypes []string `json:"process_types"`
	MemoryMB     *int     `json:"memory_in_mb"`
}

// RevisionChange changes what is noted on a revision.
type RevisionChange struct {
	Metadata MetadataChange `json:"metadata,omitzero"`
}
