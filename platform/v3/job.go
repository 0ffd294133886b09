package v3

// Job is what a client follows to learn how a long change ends.
type Job struct {
	Resource
	Operation string    `json:"operation"`
	State     string    `json:"state"`
	Errors    []Error   `json:"errors"`
	Warnings  []Warning `json:"warnings"`
	Links     Links     `json:"links"`
}

// Warning is something that the person should know.
type Warning struct {
	Detail string `json:"detail"`
}
