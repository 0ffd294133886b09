package work

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/proa-dev/proa/platform"
)

// Metrics counts what brokers were asked, and what they still owe.
type Metrics struct {
	operations *prometheus.CounterVec
	orphans    *prometheus.GaugeVec
	notices    *prometheus.CounterVec
}

// NewMetrics registers them.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		operations: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "proa_service_operations_total", Help: "Operations on services that ended, by kind and how: done, failed, gone."}, []string{"kind", "result"}),
		orphans:    prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "proa_service_orphans", Help: "What brokers may have and are to delete: waiting, or abandoned after a week."}, []string{"state"}),
		notices:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "proa_notices_total", Help: "Notices to developers, by kind and what became of them: sent, refused, dropped."}, []string{"kind", "result"}),
	}
	r.MustRegister(m.operations, m.orphans, m.notices)
	return m
}

func (m *Metrics) ended(kind platform.OperationKind, result string) {
	m.operations.WithLabelValues(string(kind), result).Inc()
}

func (m *Metrics) orphaned(waiting, abandoned int) {
	m.orphans.WithLabelValues("waiting").Set(float64(waiting))
	m.orphans.WithLabelValues("abandoned").Set(float64(abandoned))
}

func (m *Metrics) told(kind platform.NoticeKind, result string) {
	m.notices.WithLabelValues(string(kind), result).Inc()
}
