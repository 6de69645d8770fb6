package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// ProbePause is between two rounds of probes. One probe runs at a time, so that what hangs costs one socket.
	ProbePause = 30 * time.Second
	// probePatience is when a DHCP client asks again (RFC 2131 §4.1), and shorter than a resolver's timeout (resolv.conf(5)).
	probePatience = 4 * time.Second
)

// Probe asks one instance at its address on the VLAN, as a client there does. What Ask returns is the same for the same failure, but for the
// errors of package net.
type Probe struct {
	Protocol string
	At       netip.Addr
	Ask      func(context.Context) error
}

// ProbeMetrics are the results of one component's probes.
type ProbeMetrics struct {
	success *prometheus.GaugeVec
	took    *prometheus.HistogramVec
}

// NewProbeMetrics makes them by their names; asked is who answers, for their HELP.
func NewProbeMetrics(success, took, asked string) *ProbeMetrics {
	return &ProbeMetrics{
		success: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: success, Help: "1 while the " + asked + " at this address answers as it should.",
		}, []string{"protocol", "address"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: took, Help: "Time from a probe's question to a good answer.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}, []string{"protocol"}),
	}
}

// Describe implements prometheus.Collector.
func (m *ProbeMetrics) Describe(to chan<- *prometheus.Desc) {
	m.success.Describe(to)
	m.took.Describe(to)
}

// Collect implements prometheus.Collector.
func (m *ProbeMetrics) Collect(to chan<- prometheus.Metric) {
	m.success.Collect(to)
	m.took.Collect(to)
}

// Prober probes again and again. Nothing waits for it.
type Prober struct {
	Metrics *ProbeMetrics
	Pause   time.Duration
	// Probes are those of the next round.
	Probes func() []Probe
	Log    *slog.Logger

	found map[probed]string // why the last probe failed; empty if it did not
}

type probed struct {
	protocol string
	at       netip.Addr
}

// Run probes until the context ends.
func (p *Prober) Run(ctx context.Context) error {
	p.found = map[probed]string{}
	Every(ctx, p.Pause, func() {
		round := p.Probes()
		p.keepOnly(round)
		for _, one := range round {
			began := time.Now()
			err := one.ask(ctx)
			if ctx.Err() != nil {
				return
			}
			p.note(one, err, time.Since(began))
		}
	})
	return nil
}

func (p Probe) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	return p.Ask(ctx)
}

func (p *Prober) keepOnly(round []Probe) {
	current := map[probed]bool{}
	for _, one := range round {
		current[probed{one.Protocol, one.At}] = true
	}
	for was := range p.found {
		if !current[was] {
			delete(p.found, was)
			p.Metrics.success.DeleteLabelValues(was.protocol, was.at.String())
		}
	}
}

func (p *Prober) note(one Probe, err error, took time.Duration) {
	success, fault := 1.0, ""
	if err != nil {
		success, fault = 0, Fault(err)
	} else {
		p.Metrics.took.WithLabelValues(one.Protocol).Observe(took.Seconds())
	}
	p.Metrics.success.WithLabelValues(one.Protocol, one.At.String()).Set(success)
	key := probed{one.Protocol, one.At}
	if p.found[key] != fault {
		p.Log.Info("a probe's result changed", "protocol", one.Protocol, "at", one.At, "fault", fault)
	}
	p.found[key] = fault
}

// Fault is the same for the same failure of a Probe: the errors of package net name the port that we happened to have.
func Fault(err error) string {
	var network *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Sprintf("nothing came within %s", probePatience)
	case errors.As(err, &network):
		return network.Err.Error()
	}
	return err.Error()
}
