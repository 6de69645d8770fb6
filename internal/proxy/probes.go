package proxy

import (
	"context"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/proxy/intent"
	"github.com/cldmnky/oooi/internal/proxy/probe"
	"github.com/cldmnky/oooi/internal/valid"
)

// faultsPerPause is how often a target that has a fault is probed in the pause of the others: what was mended, or passed by itself, is not told for long.
const faultsPerPause = 6

// probes are the results of the last round, by target.
type probes struct {
	pause time.Duration
	round time.Time // the last of all targets
	took  *prometheus.HistogramVec

	mu    sync.Mutex
	found map[probe.Target]probe.Result
}

func newProbes() *probes {
	return &probes{
		pause: daemon.ProbePause,
		found: map[probe.Target]probe.Result{},
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "oooi_proxy_probe_duration_seconds", Help: "Time from the connection to the end of the TLS handshake, through Envoy to the backend.", Buckets: prometheus.ExponentialBuckets(0.002, 2, 12),
		}, []string{"backend"}),
	}
}

// probe connects to each endpoint as a worker would, again and again. Nothing waits for it.
func (p *Proxy) probe(ctx context.Context) error {
	p.probes.round = time.Now()
	daemon.Every(ctx, p.probes.pause/faultsPerPause, func() {
		targets := p.targetsToProbe()
		p.probes.keepOnly(targets)
		for _, t := range p.probes.due(targets, time.Now()) {
			result := p.probes.ask(ctx, t)
			if ctx.Err() != nil {
				return
			}
			if p.probes.note(t, result) {
				p.Log.Info("a probe's result changed", "backend", t.Backend, "at", t.At, "host", t.Host, "fault", result.Fault)
			}
		}
	})
	return nil
}

// due are all targets, or between two rounds those with a fault.
func (s *probes) due(targets []probe.Target, now time.Time) []probe.Target {
	s.mu.Lock()
	defer s.mu.Unlock()
	if tick := s.pause / faultsPerPause; now.Sub(s.round) > s.pause-tick/2 { // a tick may come a little early
		s.round = now
		return targets
	}
	return slices.DeleteFunc(targets, func(t probe.Target) bool { return s.found[t].Fault == nil })
}

// ask probes a target, and at our own addresses, whose faults are told, a fifteenth of the pause (2 s) later once more if it finds a fault that it did
// not find the last time: a pod that is being replaced closes connections which its successor serves.
func (s *probes) ask(ctx context.Context, t probe.Target) probe.Result {
	result := probe.Of(ctx, t)
	s.mu.Lock()
	known := result.Fault == nil || t.From != t.At.Addr() || reflect.DeepEqual(result.Fault, s.found[t].Fault)
	s.mu.Unlock()
	if known {
		return result
	}
	select {
	case <-ctx.Done():
		return result
	case <-time.After(s.pause / 15):
		return probe.Of(ctx, t)
	}
}

// targetsToProbe are each TLS backend under the name that workers connect to, at our own address and at the other instance's; and each
// captured address. Our own are probed from themselves, so that an address that this pod lacks is not looked for elsewhere.
func (p *Proxy) targetsToProbe() (all []probe.Target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server == nil || p.Instance >= len(p.server.Spec.NetworkConfig.ServerIPs()) {
		return nil
	}
	network := p.server.Spec.NetworkConfig
	own := network.ServerIPs()[p.Instance]
	for _, b := range p.server.Spec.Backends {
		if b.Protocol != v1alpha1.ProtocolTLS || strings.HasPrefix(string(b.Hostname), "*.") {
			continue
		}
		for _, ip := range network.ServerIPs() {
			all = append(all, probeOf(b, own, ip, string(b.Hostname)))
		}
		for _, c := range network.CapturedAddresses {
			if p.Instance == 0 && b.CatchAll && slices.Contains(c.Ports, b.Port) {
				all = append(all, probeOf(b, c.IP, c.IP, string(c.IP)))
			}
		}
	}
	return all
}

func probeOf(b v1alpha1.ProxyBackend, from, to v1alpha1.IPAddress, host string) probe.Target {
	source, _ := valid.Address(string(from)) // understood before
	at, _ := valid.Address(string(to))
	return probe.Target{Backend: b.Name, At: netip.AddrPortFrom(at, uint16(b.Port)), From: source, Host: host, Ignition: b.Name == intent.Ignition}
}

func (s *probes) keepOnly(targets []probe.Target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	probed := map[string]bool{}
	for _, t := range targets {
		probed[t.Backend] = true
	}
	for t := range s.found {
		if !slices.Contains(targets, t) {
			delete(s.found, t)
		}
		if !probed[t.Backend] {
			s.took.DeleteLabelValues(t.Backend)
		}
	}
}

// note keeps a result, and says whether it is another than the last.
func (s *probes) note(t probe.Target, r probe.Result) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.found[t]
	s.found[t] = r
	if r.Handshake > 0 {
		s.took.WithLabelValues(t.Backend).Observe(r.Handshake.Seconds())
	}
	return !reflect.DeepEqual(was.Fault, r.Fault)
}

// fault of a backend at our own addresses; false if it was not probed yet.
func (s *probes) fault(backend string) (is *v1alpha1.BackendFault, probed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t, r := range s.found {
		if t.Backend != backend || t.From != t.At.Addr() {
			continue
		}
		probed = true
		if r.Fault != nil && (is == nil || r.Fault.Message < is.Message) { // of several always the same
			is = r.Fault
		}
	}
	return is, probed
}

var (
	successDesc = prometheus.NewDesc("oooi_proxy_probe_success", "1 while a worker that connects to this backend at this address would be served: TLS, a certificate that is valid now and has its name, and of Ignition an HTTP answer below 500.",
		[]string{"backend", "address"}, nil)
	notAfterDesc = prometheus.NewDesc("oooi_proxy_probe_certificate_not_after_timestamp_seconds", "When the certificate ends that this backend serves at this address.",
		[]string{"backend", "address"}, nil)
)

// Describe implements prometheus.Collector.
func (s *probes) Describe(to chan<- *prometheus.Desc) {
	to <- successDesc
	to <- notAfterDesc
	s.took.Describe(to)
}

// Collect implements prometheus.Collector. An address has a backend once, or there would be two series of one name.
func (s *probes) Collect(to chan<- prometheus.Metric) {
	s.took.Collect(to)
	s.mu.Lock()
	defer s.mu.Unlock()
	for t, r := range s.found {
		success := 1.0
		if r.Fault != nil {
			success = 0
		}
		to <- prometheus.MustNewConstMetric(successDesc, prometheus.GaugeValue, success, t.Backend, t.At.Addr().String())
		if !r.NotAfter.IsZero() {
			to <- prometheus.MustNewConstMetric(notAfterDesc, prometheus.GaugeValue, float64(r.NotAfter.Unix()), t.Backend, t.At.Addr().String())
		}
	}
}
