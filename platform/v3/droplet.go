package v3

// Droplet is what staging made.
type Droplet struct {
	Resource
	State             string             `json:"state"`
	Error             *string            `json:"error"`
	Lifecycle         Lifecycle          `json:"lifecycle"`
	ExecutionMetadata string             `json:"execution_metadata"`
	ProcessTypes      map[string]string  `json:"process_types"`
	Checksum          *Checksum          `json:"checksum"`
	Buildpacks        []DropletBuildpack `json:"buildpacks"`
	Stack             *string            `json:"stack"`
	Image             *string            `json:"image"`
	Relationships     map[string]ToOne   `json:"relationships"`
	Metadata          Metadata           `json:"metadata"`
	Links             Links              `json:"links"`
}

// DropletBuildpack is a buildpack that took part.
type DropletBuildpack struct {
	Name          string `json:"name"`
	DetectOutput  string `json:"detect_output"`
	BuildpackName string `json:"buildpack_name"`
	Version       string `json:"version"`
}
