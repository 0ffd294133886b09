package v3

// Sidecar is a process beside the main one of an app.
type Sidecar struct {
	Resource
	Name          string           `json:"name"`
	Command       string           `json:"command"`
	ProcessTypes  []string         `json:"process_types"`
	MemoryMB      *int             `json:"memory_in_mb"`
	Origin        string           `json:"origin"`
	Relationships map[string]ToOne `json:"relationships"`
}

// SidecarChange is a request to create or change one. What is left out stays as it is.
type SidecarChange struct {
	Name         *string       `json:"name,omitempty"`
	Command      *string       `json:"command,omitempty"`
	ProcessTypes []string      `json:"process_types,omitempty"`
	MemoryMB     Optional[int] `json:"memory_in_mb,omitzero"` // null: it shares what the main process has
}
