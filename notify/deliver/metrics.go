package deliver

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/proa-dev/proa/notify"
)

// Metrics counts what happens behind the door, stage by stage.
type Metrics struct {
	people  *prometheus.CounterVec
	results *prometheus.CounterVec
	sends   *prometheus.HistogramVec
	bounces *prometheus.CounterVec
}

// NewMetrics registers them.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		people:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "proa_notify_people_total", Help: "People found in audiences, by lane."}, []string{"class"}),
		results: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "proa_notify_deliveries_total", Help: "Tries to deliver, by lane and how they ended; queued is to be tried again."}, []string{"class", "state"}),
		sends: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "proa_notify_smtp_seconds", Help: "Time until a relay answered for a mail, by lane and outcome.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}}, []string{"class", "outcome"}),
		bounces: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "proa_notify_bounces_total", Help: "Mails that came back, for good (hard) or not."}, []string{"hard"}),
	}
	r.MustRegister(m.people, m.results, m.sends, m.bounces)
	return m
}

func (m *Metrics) expanded(c notify.Class, n int) {
	m.people.WithLabelValues(string(c)).Add(float64(n))
}

func (m *Metrics) delivered(c notify.Class, s notify.State) {
	m.results.WithLabelValues(string(c), string(s)).Inc()
}

func (m *Metrics) sent(c notify.Class, took time.Duration, err error) {
	outcome := "accepted"
	switch {
	case err != nil && Permanent(err):
		outcome = "refused"
	case err != nil:
		outcome = "fault"
	}
	m.sends.WithLabelValues(string(c), outcome).Observe(took.Seconds())
}

// Bounced counts a mail that came back.
func (m *Metrics) Bounced(hard bool) {
	label := "false"
	if hard {
		label = "true"
	}
	m.bounces.WithLabelValues(label).Inc()
}
