package v3

// Deployment puts new instances of an app in the place of those that run, while they run.
type Deployment struct {
	Resource
	Status        DeploymentStatus    `json:"status"`
	Strategy      string              `json:"strategy"`
	Options       DeploymentOptions   `json:"options"`
	Droplet       *Ref                `json:"droplet"`
	Previous      *Ref                `json:"previous_droplet"`
	NewProcesses  []DeploymentProcess `json:"new_processes"`
	Revision      *DeploymentRevision `json:"revision,omitempty"`
	Relationships map[string]ToOne    `json:"relationships"`
	Metadata      Metadata            `json:"metadata"`
	Links         Links               `json:"links"`
}

// DeploymentStatus is how far it came: ACTIVE (DEPLOYING, PAUSED, CANCELING) or FINALIZED (DEPLOYED, CANCELED, SUPERSEDED).
type DeploymentStatus struct {
	Value   string            `json:"value"`
	Reason  string            `json:"reason"`
	Details DeploymentDetails `json:"details"`
	Canary  *CanaryStatus     `json:"canary,omitempty"`
}

// DeploymentDetails say since when, and why it does not get on.
type DeploymentDetails struct {
	LastStatusChange Time   `json:"last_status_change"`
	LastHealthy      Time   `json:"last_successful_healthcheck"`
	Error            string `json:"error,omitempty"`
}

// CanaryStatus is at which step a canary deployment is.
type CanaryStatus struct {
	Steps struct {
		Current int `json:"current"`
		Total   int `json:"total"`
	} `json:"steps"`
}

// DeploymentOptions say how. Clients send null for what they do not set.
type DeploymentOptions struct {
	MaxInFlight  int            `json:"max_in_flight,omitempty"`
	Canary       *CanaryOptions `json:"canary,omitempty"`
	WebInstances *int           `json:"web_instances"`
	MemoryMB     *int           `json:"memory_in_mb"`
	DiskMB       *int           `json:"disk_in_mb"`
	LogRate      *int64         `json:"log_rate_limit_in_bytes_per_second"`
}

// CanaryOptions are the steps of a canary deployment.
type CanaryOptions struct {
	Steps []CanaryStep `json:"steps"`
}

// CanaryStep is the percentage of instances that are new before it pauses.
type CanaryStep struct {
	Weight int `json:"instance_weight"`
}

// DeploymentProcess is a process that a deployment makes.
type DeploymentProcess struct {
	GUID string `json:"guid"`
	Type string `json:"type"`
}

// DeploymentRevision is the revision that it deploys.
type DeploymentRevision struct {
	GUID    string `json:"guid"`
	Version int    `json:"version"`
}

// DeploymentCreate is a request for a deployment: of a droplet, of a revision, or of the app as it is when neither is named.
type DeploymentCreate struct {
	Strategy      string             `json:"strategy,omitempty"`
	Droplet       *Ref               `json:"droplet,omitempty"`
	Revision      *Ref               `json:"revision,omitempty"`
	Options       *DeploymentOptions `json:"options,omitempty"`
	Metadata      MetadataChange     `json:"metadata,omitzero"`
	Relationships struct {
		App ToOne `json:"app"`
	} `json:"relationships"`
}

// DeploymentChange changes what is noted on a deployment.
type DeploymentChange struct {
	Metadata MetadataChange `json:"metadata,omitzero"`
}
