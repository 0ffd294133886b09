package platform

import "time"

// The sizes of a page.
const (
	DefaultPerPage = 50
	MaxPerPage     = 5000
)

// List is one request for a part of a list. Values narrow it: a record is in it when each named column is one of its values.
type List struct {
	Page    int // counted from 1; it tells where to begin when After does not
	PerPage int
	After   *Cursor
	OrderBy string // name, created_at or updated_at; created_at when empty
	Down    bool
	Values  map[string][]string
	Labels  []Requirement
	Times   []TimeBound
}

// Cursor is the last record of the page before, by what the list is ordered by.
type Cursor struct {
	Value string `json:"v"`
	GUID  string `json:"g"`
}

// TimeBound narrows a list by created_at or updated_at.
type TimeBound struct {
	Column string
	Op     string // =, <, >, <=, >=
	Times  []time.Time
}

// Only is a list of the records that have these guids.
func Only(guids []string) List {
	return List{Page: 1, PerPage: max(len(guids), 1), Values: map[string][]string{"guids": guids}}
}

// Page is a part of a list.
type Page[T any] struct {
	Records []T
	Total   int     // in the whole list
	Next    *Cursor // where the next page begins; nil at the end
}
