// Package v1 is the protocol that the notification service speaks: the JSON shapes of the CF notifications v1 interface, and a small
// Go client for them. It is the only part of the notification service that other products may import. The contract itself, with all
// its rules and limits, is notify/api/openapi.yaml.
package v1

// Errors is the body of every refusal: one sentence for each mistake.
type Errors struct {
	Errors []string `json:"errors"`
}

// DefaultTemplate names the template of every kind that has none of its own.
const DefaultTemplate = "default"
