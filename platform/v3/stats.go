package v3

// Stats are how the instances of a process are.
type Stats struct {
	Resources []InstanceStats `json:"resources"`
}

// InstanceStats are how one instance is. Bytes and seconds; what nobody has measured is null.
type InstanceStats struct {
	Type             string   `json:"type"`
	Index            int      `json:"index"`
	State            string   `json:"state"`
	Routable         *bool    `json:"routable,omitempty"`
	Host             *string  `json:"host"`
	InternalIP       *string  `json:"instance_internal_ip"`
	Ports            []Port   `json:"instance_ports"`
	Uptime           int64    `json:"uptime"`
	MemoryQuota      int64    `json:"mem_quota"`
	DiskQuota        int64    `json:"disk_quota"`
	LogRate          int64    `json:"log_rate_limit"`
	FDsQuota         int64    `json:"fds_quota"`
	IsolationSegment *string  `json:"isolation_segment"`
	Details          *string  `json:"details"`
	Usage            AppUsage `json:"usage"`

	// What only this platform says; other clients pass it over.
	Processes []ProcessStats `json:"processes,omitempty"`   // in the instance, as far as they are known
	Crashes   *int           `json:"crash_count,omitempty"` // since it was last well for long enough; a Cloud Foundry does not say
	LastExit  *LastExit      `json:"last_exit,omitempty"`
	NextTry   *Time          `json:"next_try,omitempty"` // when it is started again, if it waits for that
}

// ProcessStats are how one process of an instance is, with what it has started.
type ProcessStats struct {
	Type     string   `json:"type"` // main or sidecar
	Name     string   `json:"name"`
	PID      int      `json:"pid"`
	State    string   `json:"state"` // pending, running, stopping or exited
	Since    *Time    `json:"since"`
	CPU      *float64 `json:"cpu"` // share of a processor
	Memory   int64    `json:"mem"`
	Reserved int64    `json:"mem_reserved"` // set aside for it; 0: it shares with others
}

// LastExit is how the last run of an instance ended.
type LastExit struct {
	Description string `json:"description"`
	At          Time   `json:"at"`
}

// Port is where an instance listens.
type Port struct {
	External int `json:"external"`
	Internal int `json:"internal"`
}

// AppUsage is what an instance uses.
type AppUsage struct {
	Time           *Time    `json:"time,omitempty"`
	CPU            *float64 `json:"cpu"`             // share of a processor
	CPUEntitlement *float64 `json:"cpu_entitlement"` // share of what it is entitled to
	Memory         *int64   `json:"mem"`
	Disk           *int64   `json:"disk"`
	LogRate        *int64   `json:"log_rate"`
}
