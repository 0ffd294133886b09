package v3

// ManifestDiff is what applying a manifest would change.
type ManifestDiff struct {
	Diff []Difference `json:"diff"`
}

// Difference is one change, as in a JSON patch.
type Difference struct {
	Op    string        `json:"op"` // add, replace or remove
	Path  string        `json:"path"`
	Was   Optional[any] `json:"was,omitzero"`
	Value Optional[any] `json:"value,omitzero"`
}
