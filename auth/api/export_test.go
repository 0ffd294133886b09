package api

// Route is a line of the table, for the tests that walk it.
type Route struct {
	Pattern string
	Open    bool
}

// Routes is the table.
func Routes() []Route {
	var list []Route
	for _, r := range (&Server{}).routes() {
		list = append(list, Route{r.pattern, r.open != ""})
	}
	return list
}
