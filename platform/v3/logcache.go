package v3

// LogCacheInfo says which release of the log cache this server follows.
type LogCacheInfo struct {
	Version string `json:"version"`
}

// LogCacheRead is a part of an app's stream. Clients refuse fields they do not know.
type LogCacheRead struct {
	Envelopes LogBatch `json:"envelopes"`
}

// LogBatch is envelopes in the order asked for.
type LogBatch struct {
	Batch []LogEnvelope `json:"batch"`
}

// LogEnvelope is one line.
type LogEnvelope struct {
	Timestamp  int64             `json:"timestamp,string"` // nanoseconds since 1970
	SourceID   string            `json:"source_id"`
	InstanceID string            `json:"instance_id"`
	Tags       map[string]string `json:"tags"`
	Log        Log               `json:"log"`
}

// Log is what the line says, and where it was written to.
type Log struct {
	Payload []byte `json:"payload"`
	Type    string `json:"type"` // OUT or ERR
}
