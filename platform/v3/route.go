package v3

// Route is an address that requests come to.
type Route struct {
	Resource
	Protocol      string             `json:"protocol"`
	Host          string             `json:"host"`
	Path          string             `json:"path"`
	Port          *int               `json:"port"`
	URL           string             `json:"url"`
	Destinations  []Destination      `json:"destinations"`
	Options       map[string]string  `json:"options"`
	Metadata      Metadata           `json:"metadata"`
	Relationships RouteRelationships `json:"relationships"`
	Links         Links              `json:"links"`
}

// RouteRelationships say where a route lives and under which domain it stands.
type RouteRelationships struct {
	Space  ToOne `json:"space"`
	Domain ToOne `json:"domain"`
}

// RouteCreate is a request for a new route.
type RouteCreate struct {
	Host          *string            `json:"host,omitempty"`
	Path          *string            `json:"path,omitempty"`
	Port          *int               `json:"port,omitempty"`
	Options       map[string]any     `json:"options,omitempty"`
	Metadata      MetadataChange     `json:"metadata,omitzero"`
	Relationships RouteRelationships `json:"relationships"`
}

// RouteChange is a request to change one. Its address stays: another address is another route.
type RouteChange struct {
	Options  map[string]any `json:"options,omitempty"`
	Metadata MetadataChange `json:"metadata,omitzero"`
}

// Destinations is where the requests of a route go.
type Destinations struct {
	Destinations []Destination `json:"destinations"`
	Links        Links         `json:"links"`
}

// Destination is a process that gets requests. It is pending until the app is restarted when what runs does not have the port.
type Destination struct {
	Resource
	App      DestinationApp `json:"app"`
	Weight   *int           `json:"weight"`
	Port     int            `json:"port"`
	Protocol string         `json:"protocol"`
	State    string         `json:"state"`
}

// The states of a destination.
const (
	DestinationMapped  = "mapped"
	DestinationPending = "pending"
)

// DestinationApp names a process by its app and its type; web when none is named.
type DestinationApp struct {
	GUID    string              `json:"guid"`
	Process *DestinationProcess `json:"process,omitempty"`
}

// DestinationProcess is a process by its type.
type DestinationProcess struct {
	Type string `json:"type"`
}

// DestinationsChange is a request for destinations: to add to those there are (POST), or instead of them (PATCH).
type DestinationsChange struct {
	Destinations []DestinationWanted `json:"destinations"`
}

// DestinationWanted is one of them. What is left out is the default: port 8080, no weight, http1.
type DestinationWanted struct {
	App      DestinationApp `json:"app"`
	Weight   *int           `json:"weight,omitempty"`
	Port     *int           `json:"port,omitempty"`
	Protocol *string        `json:"protocol,omitempty"`
}

// DestinationChange is a request to speak another protocol to a destination; null is the default.
type DestinationChange struct {
	Protocol *string `json:"protocol"`
}

// RouteReservation tells whether an address is taken.
type RouteReservation struct {
	MatchingRoute bool `json:"matching_route"`
}
