package v1

import "net/url"

// Registration is what a client says of itself: who it is, and the kinds it sends, by their ids.
type Registration struct {
	SourceName    string          `json:"source_name"`
	Notifications map[string]Kind `json:"notifications,omitempty"`
}

// Kind is a sort of notification. Nobody can unsubscribe from a critical one. Its template is told and never taken.
type Kind struct {
	Description string `json:"description"`
	Critical    bool   `json:"critical"`
	Template    string `json:"template,omitempty"`
}

// Source is a client that has registered, and its kinds by their ids.
type Source struct {
	Name          string          `json:"name"`
	Template      string          `json:"template"`
	Notifications map[string]Kind `json:"notifications"`
}

// Kinds is where a client registers, and where all that have done so are listed by their ids.
const Kinds = "/notifications"

// KindPath is where a kind is changed and removed.
func KindPath(client, kind string) string {
	return "/clients/" + url.PathEscape(client) + "/notifications/" + url.PathEscape(kind)
}
