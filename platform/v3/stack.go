package v3

// Stack is a root filesystem that apps run on.
type Stack struct {
	Resource
	Name        string   `json:"name"`
	Description string   `json:"description"`
	State       string   `json:"state"`
	BuildImage  string   `json:"build_rootfs_image"`
	RunImage    string   `json:"run_rootfs_image"`
	Default     bool     `json:"default"`
	Metadata    Metadata `json:"metadata"`
	Links       Links    `json:"links"`
}

// Buildpack is one that the builder brings.
type Buildpack struct {
	Resource
	Name      string   `json:"name"`
	Stack     string   `json:"stack"`
	State     string   `json:"state"`
	Filename  string   `json:"filename"`
	Lifecycle string   `json:"lifecycle"`
	Position  int      `json:"position"`
	Enabled   bool     `json:"enabled"`
	Locked    bool     `json:"locked"`
	Metadata  Metadata `json:"metadata"`
	Links     Links    `json:"links"`
}
