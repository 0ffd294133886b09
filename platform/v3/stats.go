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
}

// Port is where an instance listens.
type Port struct {
	External int `json:"external"`
	Internal int `json:"internal"`
}

// AppUsage is what an instance uses.
type AppUsage struct {
	Time           *Time    `json:"time,omitempty"`
	CPU            *float64 `json:"cpu"`
	CPUEntitlement *float64 `json:"cpu_entitlement"`
	Memory         *int64   `json:"mem"`
	Disk           *int64   `json:"disk"`
	LogRate        *int64   `json:"log_rate"`
}
