package v3

// Build makes a droplet of a package.
type Build struct {
	Resource
	CreatedBy     Creator          `json:"created_by"`
	State         string           `json:"state"`
	StagingMemory int              `json:"staging_memory_in_mb"`
	StagingDisk   int              `json:"staging_disk_in_mb"`
	StagingLog    int64            `json:"staging_log_rate_limit_bytes_per_second"`
	Error         *string          `json:"error"`
	Lifecycle     Lifecycle        `json:"lifecycle"`
	Package       Ref              `json:"package"`
	Droplet       *Ref             `json:"droplet"`
	Relationships map[string]ToOne `json:"relationships"`
	Metadata      Metadata         `json:"metadata"`
	Links         Links            `json:"links"`
}

// Creator is who asked for it.
type Creator struct {
	GUID  string `json:"guid"`
	Name  string `json:"name"`
	Email string `json:"email"`
}

// BuildCreate is a request for a droplet.
type BuildCreate struct {
	Package       Ref              `json:"package"`
	Lifecycle     *LifecycleChange `json:"lifecycle,omitempty"`
	StagingMemory int              `json:"staging_memory_in_mb,omitempty"`
	StagingDisk   int              `json:"staging_disk_in_mb,omitempty"`
	StagingLog    int64            `json:"staging_log_rate_limit_bytes_per_second,omitempty"`
	Metadata      MetadataChange   `json:"metadata,omitzero"`
}
