package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/proa-dev/proa/kit/run"
)

// Listen binds an address now, so that a taken port is an error before anything else starts.
func Listen(ctx context.Context, name, addr string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for %s on %s: %w (is another copy running? choose another address)", name, addr, err)
	}
	return l, nil
}

// Part serves h on a listener until its context ends, then lets requests under way finish.
func Part(name string, l net.Listener, h http.Handler, log *slog.Logger) run.Part {
	return run.Part{Name: name, Grace: 20 * time.Second, Run: func(ctx context.Context) error {
		server := &http.Server{
			Handler:           h,
			ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout:       60 * time.Second,
			WriteTimeout:      90 * time.Second,
			IdleTimeout:       2 * time.Minute,
			MaxHeaderBytes:    32 << 10,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug), // a client's broken handshake is not our error
		}
		log.Info("listening", "part", name, "address", l.Addr().String())
		failed := make(chan error, 1)
		go func() { failed <- server.Serve(l) }()
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
		}
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
		defer cancel()
		if err := server.Shutdown(stop); err != nil && !errors.Is(err, http.ErrServerClosed) {
			_ = server.Close()
			return fmt.Errorf("requests were still under way after 15 s: %w", err)
		}
		return nil
	}}
}

// Metrics counts and times requests. One registry belongs to one process.
type Metrics struct {
	Registry *prometheus.Registry
	requests *prometheus.HistogramVec
}

// NewMetrics makes a registry with the process's own figures and the request times.
func NewMetrics() *Metrics {
	m := &Metrics{
		Registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "proa_http_request_seconds", Help: "Time to answer a request, by route and status.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route", "status"}),
	}
	m.Registry.MustRegister(m.requests, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler serves GET /metrics and nothing else: it stands on an address of its own, away from users.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.Registry, promhttp.HandlerOpts{}))
	return mux
}

func (m *Metrics) observe(r *http.Request, status int, took time.Duration) {
	if m == nil {
		return
	}
	route := r.Pattern
	if route == "" {
		route = "none" // one series for whatever strangers try
	}
	m.requests.WithLabelValues(route, fmt.Sprintf("%dxx", status/100)).Observe(took.Seconds())
}
