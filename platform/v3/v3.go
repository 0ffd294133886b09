// Package v3 is the protocol that the platform speaks: the JSON shapes and error codes of version 3 of the Cloud Foundry API. It is
// the only part of the platform that other products and the command line may import.
package v3

import (
	"encoding/json"
	"time"
)

// Version is the release of the interface that this server follows. Clients read it to learn what they may ask.
const Version = "3.211.0"

// Resource is what every record begins with.
type Resource struct {
	GUID      string `json:"guid"`
	CreatedAt Time   `json:"created_at"`
	UpdatedAt Time   `json:"updated_at"`
}

// Time is a time in whole seconds, in UTC.
type Time time.Time

// MarshalJSON writes it as 2006-01-02T15:04:05Z, and a time that never was as null.
func (t Time) MarshalJSON() ([]byte, error) {
	if time.Time(t).IsZero() {
		return []byte("null"), nil
	}
	return []byte(time.Time(t).UTC().Format(`"2006-01-02T15:04:05Z"`)), nil
}

// UnmarshalJSON reads RFC 3339, or null.
func (t *Time) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, (*time.Time)(t))
}

// Link is where something is.
type Link struct {
	Href   string         `json:"href"`
	Method string         `json:"method,omitempty"`
	Meta   map[string]any `json:"meta,omitempty"`
}

// Links are links by what they lead to. One that is nil is written as null.
type Links map[string]*Link

// Ref names a record.
type Ref struct {
	GUID string `json:"guid"`
}

// ToOne is a relationship to one record, or to none.
type ToOne struct {
	Data *Ref `json:"data"`
}

// One is a relationship to a record; to none if the guid is empty.
func One(guid string) ToOne {
	if guid == "" {
		return ToOne{}
	}
	return ToOne{&Ref{guid}}
}

// GUID is what the relationship leads to, or empty.
func (r ToOne) GUID() string {
	if r.Data == nil {
		return ""
	}
	return r.Data.GUID
}

// ToMany is a relationship to several records.
type ToMany struct {
	Data []Ref `json:"data"`
}

// Metadata is what people noted on a record.
type Metadata struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// MetadataChange is what to note; null takes a note away.
type MetadataChange struct {
	Labels      map[string]*string `json:"labels"`
	Annotations map[string]*string `json:"annotations"`
}

// List is a page of a list.
type List[T any] struct {
	Pagination Pagination `json:"pagination"`
	Resources  []T        `json:"resources"`
	Included   *Included  `json:"included,omitempty"`
}

// Pagination says how long the whole list is, and where its other pages are.
type Pagination struct {
	TotalResults int   `json:"total_results"`
	TotalPages   int   `json:"total_pages"`
	First        *Link `json:"first"`
	Last         *Link `json:"last"`
	Next         *Link `json:"next"`
	Previous     *Link `json:"previous"`
}

// Included are the records that those of a list refer to, if they were asked for.
type Included struct {
	Users         []User         `json:"users,omitempty"`
	Organizations []Organization `json:"organizations,omitempty"`
	Spaces        []Space        `json:"spaces,omitempty"`
	Domains       []Domain       `json:"domains,omitempty"`

	Apps             []App             `json:"apps,omitempty"`
	ServiceBrokers   []ServiceBroker   `json:"service_brokers,omitempty"`
	ServiceOfferings []ServiceOffering `json:"service_offerings,omitempty"`
	ServicePlans     []ServicePlan     `json:"service_plans,omitempty"`
	ServiceInstances []ServiceInstance `json:"service_instances,omitempty"`
}

// Root is what stands at the root of the API.
type Root struct {
	Links Links `json:"links"`
}

// Info says which installation this is.
type Info struct {
	Build       string         `json:"build"`
	CLIVersion  map[string]any `json:"cli_version"`
	Custom      map[string]any `json:"custom"`
	Description string         `json:"description"`
	Name        string         `json:"name"`
	Version     int            `json:"version"`
	OSBAPI      string         `json:"osbapi_version"`
	Links       Links          `json:"links"`
}
