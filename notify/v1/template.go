package v1

import (
	"encoding/json"
	"net/url"
)

// Template dresses a message.
type Template struct {
	Name     string          `json:"name"`
	Subject  string          `json:"subject"`
	Text     string          `json:"text"`
	HTML     string          `json:"html"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// Created is the reply to a new template.
type Created struct {
	ID string `json:"template-id"`
}

// Named is what a list says of a template.
type Named struct {
	Name string `json:"name"`
}

// Content is what a preview is filled with, and what it shows. What is left out is made up.
type Content struct {
	Subject string `json:"subject"`
	Text    string `json:"text"`
	HTML    string `json:"html"`
}

// Assignment gives a template to a kind, or to all kinds of a client.
type Assignment struct {
	Template string `json:"template"`
}

// Templates is where templates are made and listed by their ids.
const Templates = "/templates"

// TemplatePath is where one is read, changed and deleted.
func TemplatePath(id string) string { return Templates + "/" + url.PathEscape(id) }

// PreviewPath is where it is tried.
func PreviewPath(id string) string { return TemplatePath(id) + "/preview" }

// AssignPath is where a kind is given its template, or all kinds of a client that have none when no kind is named.
func AssignPath(client, kind string) string {
	if kind == "" {
		return "/clients/" + url.PathEscape(client) + "/template"
	}
	return KindPath(client, kind) + "/template"
}
