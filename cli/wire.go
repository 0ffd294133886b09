package cli

import v3 "github.com/proa-dev/proa/platform/v3"

// route is what the command line reads of a route.
type route struct {
	GUID         string `json:"guid"`
	URL          string `json:"url"`
	Destinations []struct {
		App v3.Ref `json:"app"`
	} `json:"destinations"`
}

// as is what a pointer leads to, or nothing.
func as[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}
