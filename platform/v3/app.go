package v3

// App is an app.
type App struct {
	Resource
	Name          string           `json:"name"`
	State         string           `json:"state"`
	Lifecycle     Lifecycle        `json:"lifecycle"`
	Relationships map[string]ToOne `json:"relationships"`
	Metadata      Metadata         `json:"metadata"`
	Links         Links            `json:"links"`
}

// Lifecycle says how a package becomes a droplet.
type Lifecycle struct {
	Type string         `json:"type"`
	Data *LifecycleData `json:"data"`
}

// LifecycleData is empty for docker.
type LifecycleData struct {
	Buildpacks []string `json:"buildpacks,omitzero"`
	Stack      string   `json:"stack,omitempty"`
}

// LifecycleChange is a request for another lifecycle. What is left out stays as it is.
type LifecycleChange struct {
	Type *string `json:"type,omitempty"`
	Data struct {
		Buildpacks  Optional[[]string] `json:"buildpacks,omitzero"` // null: whichever fits
		Stack       *string            `json:"stack,omitempty"`
		Credentials map[string]any     `json:"credentials,omitempty"`
	} `json:"data"`
}

// AppCreate is a request for a new app.
type AppCreate struct {
	Name          string             `json:"name"`
	Env           map[string]*string `json:"environment_variables,omitempty"`
	Lifecycle     *LifecycleChange   `json:"lifecycle,omitempty"`
	Metadata      MetadataChange     `json:"metadata,omitzero"`
	Relationships struct {
		Space ToOne `json:"space"`
	} `json:"relationships"`
}

// AppChange is a request to change one. What is left out stays as it is.
type AppChange struct {
	Name      *string          `json:"name,omitempty"`
	Lifecycle *LifecycleChange `json:"lifecycle,omitempty"`
	Metadata  MetadataChange   `json:"metadata,omitzero"`
}

// CurrentDroplet is the droplet that an app starts with.
type CurrentDroplet struct {
	Data  *Ref  `json:"data"`
	Links Links `json:"links,omitempty"`
}

// AppEnv is everything that an app finds in its environment, by who put it there.
type AppEnv struct {
	Staging     map[string]string `json:"staging_env_json"`
	Running     map[string]string `json:"running_env_json"`
	Variables   map[string]string `json:"environment_variables"`
	System      map[string]any    `json:"system_env_json"`
	Application map[string]any    `json:"application_env_json"`
}

// Variables are environment variables. In a request, null takes one away.
type Variables struct {
	Var   map[string]*string `json:"var"`
	Links Links              `json:"links,omitempty"`
}

// AppPermissions are what the sender may see of an app.
type AppPermissions struct {
	Basic     bool `json:"read_basic_data"`
	Sensitive bool `json:"read_sensitive_data"`
}

// SSHEnabled tells whether one can log in to an app, and why not.
type SSHEnabled struct {
	Enabled bool   `json:"enabled"`
	Reason  string `json:"reason"`
}
