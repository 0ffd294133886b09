package v3

import "encoding/json"

// Process is one kind of work that an app does.
type Process struct {
	Resource
	Type          string            `json:"type"`
	Command       *string           `json:"command"`
	Instances     int               `json:"instances"`
	MemoryMB      int               `json:"memory_in_mb"`
	DiskMB        int               `json:"disk_in_mb"`
	LogRate       int64             `json:"log_rate_limit_in_bytes_per_second"`
	HealthCheck   HealthCheck       `json:"health_check"`
	Readiness     HealthCheck       `json:"readiness_health_check"`
	Version       string            `json:"version"`
	Seen          []ProcessInstance `json:"process_instances,omitzero"` // if asked for
	Relationships map[string]ToOne  `json:"relationships"`
	Metadata      Metadata          `json:"metadata"`
	Links         Links             `json:"links"`
}

// Hidden stands where the sender may not look.
const Hidden = "[PRIVATE DATA HIDDEN]"

// HealthCheck is how instances are watched. Null is the platform's own.
type HealthCheck struct {
	Type string          `json:"type"`
	Data HealthCheckData `json:"data"`
}

// HealthCheckData is how exactly.
type HealthCheckData struct {
	Endpoint          string `json:"endpoint,omitempty"`
	Timeout           *int   `json:"timeout,omitempty"`
	InvocationTimeout *int   `json:"invocation_timeout"`
	Interval          *int   `json:"interval,omitempty"`
}

// ProcessInstance is an instance in short.
type ProcessInstance struct {
	Index int    `json:"index"`
	State string `json:"state"`
	Since int64  `json:"since"` // seconds since 1970
}

// ProcessChange is a request to change how a process is started and watched. What is left out stays as it is.
type ProcessChange struct {
	Command     Optional[string]   `json:"command,omitzero"` // null: what the droplet says
	HealthCheck *HealthCheckChange `json:"health_check,omitempty"`
	Readiness   *HealthCheckChange `json:"readiness_health_check,omitempty"`
	Metadata    MetadataChange     `json:"metadata,omitzero"`
}

// HealthCheckChange is what to change about a check; null gives a value back to the platform.
type HealthCheckChange struct {
	Type *string `json:"type,omitempty"`
	Data struct {
		Endpoint          Optional[string] `json:"endpoint,omitzero"`
		Timeout           Optional[int]    `json:"timeout,omitzero"`
		InvocationTimeout Optional[int]    `json:"invocation_timeout,omitzero"`
		Interval          Optional[int]    `json:"interval,omitzero"`
	} `json:"data"`
}

// ProcessScale is a request for more or fewer instances, or larger ones.
type ProcessScale struct {
	Instances *int   `json:"instances,omitempty"`
	MemoryMB  *int   `json:"memory_in_mb,omitempty"`
	DiskMB    *int   `json:"disk_in_mb,omitempty"`
	LogRate   *int64 `json:"log_rate_limit_in_bytes_per_second,omitempty"`
}

// Optional is a field in which null means something else than nothing.
type Optional[T any] struct {
	Set   bool
	Value *T // nil: null
}

// UnmarshalJSON is called for null too.
func (o *Optional[T]) UnmarshalJSON(b []byte) error {
	o.Set = true
	return json.Unmarshal(b, &o.Value)
}

// MarshalJSON writes the value, or null.
func (o Optional[T]) MarshalJSON() ([]byte, error) { return json.Marshal(o.Value) }

// IsZero tells whether to leave the field out.
func (o Optional[T]) IsZero() bool { return !o.Set }

// Or is the value, or what null stands for; nil when the field was left out.
func (o Optional[T]) Or(null T) *T {
	switch {
	case !o.Set:
		return nil
	case o.Value == nil:
		return &null
	}
	return o.Value
}
