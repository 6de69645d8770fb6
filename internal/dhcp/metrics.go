package dhcp

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/wire"
)

// metrics of the daemon. Labels have few values: never an address, never a client.
type metrics struct {
	registry *prometheus.Registry
	heard    *prometheus.CounterVec
	happened *prometheus.CounterVec
	store    *prometheus.HistogramVec
}

func newMetrics(s *Server) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		heard:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "oooi_dhcp_messages_total", Help: "Messages received, by kind and outcome."}, []string{"kind", "outcome"}),
		happened: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "oooi_dhcp_events_total", Help: "What people were told of, by reason."}, []string{"reason"}),
		store: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "oooi_dhcp_store_seconds", Help: "Time that the lease store took, by operation and result.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 13),
		}, []string{"operation", "result"}),
	}
	gauge := func(name, help string, value func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.heard, m.happened, m.store,
		gauge("oooi_dhcp_leases_active", "Leases whose promise stands.", func() int { return s.counts().active }),
		gauge("oooi_dhcp_leases", "All lease records.", func() int { return s.counts().total }),
		gauge("oooi_dhcp_pool_size", "Addresses that the pool can lease.", func() int { return s.counts().size }))
	s.Heard = func(k wire.Kind, outcome string) { m.heard.WithLabelValues(string(k), outcome).Inc() }
	s.Store = timedStore{s.Store, m.store}
	return m
}

func (s *Server) counts() (c counts) {
	now, _ := s.Clock.Now()
	c.active, c.total, c.size = s.Table.Counts(now)
	return c
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// timedStore measures how long writes take, and so how long a client waits for durability.
type timedStore struct {
	lease.Store
	took *prometheus.HistogramVec
}

// Create implements lease.Store.
func (t timedStore) Create(ctx context.Context, r lease.Record) (lease.Record, error) {
	return t.time("create", func() (lease.Record, error) { return t.Store.Create(ctx, r) })
}

// Update implements lease.Store.
func (t timedStore) Update(ctx context.Context, r lease.Record) (lease.Record, error) {
	return t.time("update", func() (lease.Record, error) { return t.Store.Update(ctx, r) })
}

func (t timedStore) time(operation string, do func() (lease.Record, error)) (lease.Record, error) {
	start, result := time.Now(), "ok"
	r, err := do()
	switch {
	case errors.Is(err, lease.ErrExists) || errors.Is(err, lease.ErrConflict):
		result = "conflict" // the other instance was first
	case err != nil:
		result = "error"
	}
	t.took.WithLabelValues(operation, result).Observe(time.Since(start).Seconds())
	return r, err
}
