package v3

// Package is what was uploaded, or an image.
type Package struct {
	Resource
	Type          string           `json:"type"`
	Data          PackageData      `json:"data"`
	State         string           `json:"state"`
	Relationships map[string]ToOne `json:"relationships"`
	Metadata      Metadata         `json:"metadata"`
	Links         Links            `json:"links"`
}

// PackageData is of one of two kinds: what bits have, or what an image has.
type PackageData struct {
	Error    *string   `json:"error,omitempty"`
	Checksum *Checksum `json:"checksum,omitempty"`
	Image    string    `json:"image,omitempty"`
	Username *string   `json:"username,omitempty"`
	Password *string   `json:"password,omitempty"`
}

// Checksum tells whether two are the same.
type Checksum struct {
	Type  string  `json:"type"`
	Value *string `json:"value"`
}

// PackageCreate is a request for a new package.
type PackageCreate struct {
	Type string `json:"type"`
	Data struct {
		Image    string `json:"image,omitempty"`
		Username string `json:"username,omitempty"`
		Password string `json:"password,omitempty"`
	} `json:"data,omitzero"`
	Metadata      MetadataChange `json:"metadata,omitzero"`
	Relationships struct {
		App ToOne `json:"app"`
	} `json:"relationships"`
}

// Noted is a request to change only what is noted on a record.
type Noted struct {
	Metadata MetadataChange `json:"metadata,omitzero"`
}

// Matches are files of an app that the platform has already.
type Matches struct {
	Resources []Match `json:"resources"`
}

// Match is one of them.
type Match struct {
	Path     string   `json:"path"`
	Mode     string   `json:"mode"` // octal
	Size     int64    `json:"size_in_bytes"`
	Checksum Checksum `json:"checksum"`
}
