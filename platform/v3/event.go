package v3

// Event is one line of the audit trail.
type Event struct {
	Resource
	Type         string         `json:"type"`
	Actor        Actor          `json:"actor"`
	Target       Actor          `json:"target"`
	Data         map[string]any `json:"data"`
	Space        *Ref           `json:"space"`
	Organization *Ref           `json:"organization"`
	Links        Links          `json:"links"`
}

// Actor is one side of an event, by the name it had then.
type Actor struct {
	GUID string `json:"guid"`
	Type string `json:"type"`
	Name string `json:"name"`
}
