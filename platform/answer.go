package platform

import (
	"encoding/json"
	"time"
)

// Answer is what became of one request to a broker: what it said, or that it said nothing. What it means is for Judge to say.
type Answer struct {
	Status    int    // 0: none came
	Unsent    bool   // no request left us: the broker cannot know of it
	Malformed bool   // the status came, but a body that says nothing we understand
	Cause     string // for our log: why none came, or what is wrong with it; never a secret

	Code        string        // such as ConcurrencyError
	Description string        // in the broker's words, as they came: hostile
	RetryAfter  time.Duration // 0: it did not say

	Token        string // what it calls the operation that it has begun
	DashboardURL string
	Details      BindingDetails
	Parameters   json.RawMessage // an object; what it says an instance or a binding has
	State        OperationState  // of an operation
}
