package dhcp

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/cldmnky/oooi/internal/boot"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/wire"
)

// metrics of the daemon, named after Kea's statistics (docs/STATIC_IPAM.md#metrics). Labels have few values: never an address, never a client.
type metrics struct {
	registry *prometheus.Registry
	received *prometheus.CounterVec
	sent     *prometheus.CounterVec
	happened *prometheus.CounterVec
	store    *prometheus.HistogramVec
	probed   *daemon.ProbeMetrics
}

func newMetrics(s *Server) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		probed:   daemon.NewProbeMetrics("oooi_dhcp_probe_success", "oooi_dhcp_probe_duration_seconds", "instance on the VLAN"),
		received: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "oooi_dhcp_packets_received_total", Help: "Packets received, by kind and outcome."}, []string{"kind", "outcome"}),
		sent:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "oooi_dhcp_packets_sent_total", Help: "Replies sent, by kind: offer, ack and nak."}, []string{"kind"}),
		happened: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "oooi_dhcp_events_total", Help: "What people were told of, by reason."}, []string{"reason"}),
		store: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "oooi_dhcp_store_seconds", Help: "Time that the lease store took, by operation and result.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 13),
		}, []string{"operation", "result"}),
	}
	gauge := func(name, help string, value func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	reclaimed := prometheus.NewCounter(prometheus.CounterOpts{Name: "oooi_dhcp_leases_reclaimed_total", Help: "Leases whose time was over and whose address another client got."})
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.received, m.sent, reclaimed, m.happened, m.store, m.probed, boot.Times(),
		gauge("oooi_dhcp_addresses", "Addresses that the pool can lease.", func() int { return s.counts().size }),
		gauge("oooi_dhcp_addresses_assigned", "Addresses that are promised to a client.", func() int { return s.counts().active }),
		gauge("oooi_dhcp_addresses_declined", "Addresses that rest, because a client found them in use.", func() int { now, _ := s.Clock.Now(); return s.Table.Declined(now) }),
		gauge("oooi_dhcp_leases", "All lease records.", func() int { return s.counts().total }))
	s.Heard = func(k wire.Kind, outcome string) { m.received.WithLabelValues(string(k), outcome).Inc() }
	s.Sent = func(k dhcpv4.MessageType) { m.sent.WithLabelValues(strings.ToLower(k.String())).Inc() }
	s.Reclaimed = reclaimed.Inc
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
