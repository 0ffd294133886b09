package controller

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts what the controller does.
type Metrics struct {
	leader   prometheus.Gauge
	passes   prometheus.Histogram
	steps    *prometheus.CounterVec
	errors   *prometheus.CounterVec
	stagings *prometheus.HistogramVec
}

// NewMetrics registers them.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		leader: prometheus.NewGauge(prometheus.GaugeOpts{Name: "proa_controller_leader", Help: "1 while this process acts for its cluster."}),
		passes: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "proa_controller_pass_seconds", Help: "Time of a pass.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}}),
		steps:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "proa_controller_steps_total", Help: "Steps taken, by kind."}, []string{"kind"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "proa_controller_errors_total", Help: "Steps that failed, by kind."}, []string{"kind"}),
		stagings: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "proa_controller_staging_seconds", Help: "Time from asking for a build to its end, by outcome.",
			Buckets: []float64{1, 2, 5, 10, 20, 40, 60, 120, 300, 600, 1200}}, []string{"outcome"}),
	}
	r.MustRegister(m.leader, m.passes, m.steps, m.errors, m.stagings)
	return m
}

func (m *Metrics) leading(yes bool) {
	m.leader.Set(0)
	if yes {
		m.leader.Set(1)
	}
}

func (m *Metrics) passed(took time.Duration) { m.passes.Observe(took.Seconds()) }

func (m *Metrics) failed(kind string) { m.errors.WithLabelValues(kind).Inc() }

func (m *Metrics) step(kind string, err error) {
	m.steps.WithLabelValues(kind).Inc()
	if err != nil {
		m.failed(kind)
	}
}

func (m *Metrics) staged(outcome string, took time.Duration) {
	m.stagings.WithLabelValues(outcome).Observe(took.Seconds())
}
