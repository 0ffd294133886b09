package ssh

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts who comes and who is here.
type Metrics struct {
	connections prometheus.Gauge
	sessions    prometheus.Gauge
	logins      *prometheus.CounterVec
}

// NewMetrics registers them.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		connections: prometheus.NewGauge(prometheus.GaugeOpts{Name: "proa_ssh_connections", Help: "Connections of people who have logged in."}),
		sessions:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "proa_ssh_sessions", Help: "Shells and commands that are open."}),
		logins:      prometheus.NewCounterVec(prometheus.CounterOpts{Name: "proa_ssh_logins_total", Help: "Logins by outcome: good, refused, full (no room for the connection)."}, []string{"outcome"}),
	}
	r.MustRegister(m.connections, m.sessions, m.logins)
	return m
}
