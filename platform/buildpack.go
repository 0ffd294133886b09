package platform

// Buildpack is one that the builder brings. Buildpacks are given when a process starts; their order is the order of detection.
type Buildpack struct {
	Name    string // its id, such as proa/java
	Version string
	Stack   string
}

// GUID names the buildpack, the same way in every process.
func (b Buildpack) GUID() string { return GUIDOf("buildpack", b.Name, b.Stack) }
