package guest

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cldmnky/oooi/internal/csr"
)

var (
	decisions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "oooi_csr_decisions_total",
		Help: "Decisions about CSRs of hosted clusters' kubelets: kind (bootstrap, serving), decision (approved, waiting), and for what waits the first rule that it breaks.",
	}, []string{"kind", "decision", "rule"})
	warnings = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "oooi_csr_warnings_total",
		Help: "Bootstrap CSRs behind which somebody else with the token in a worker's Ignition may be: reason (NodeBootstrapsAgain, RebootstrapRefused, KeysDiffer).",
	}, []string{"reason"})
	readBytes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "oooi_hosted_cluster_read_bytes_total",
		Help: "Bytes that were read from a hosted API server: server (host:port of the control plane's Service). Of all together 16 MiB a second are read, of one 8.",
	}, []string{"server"})
	approvalTook = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "oooi_csr_approval_seconds", Help: "Time from a CSR being seen to its approval, what it waited for included.",
		Buckets: prometheus.ExponentialBuckets(0.005, 2.5, 14),
	}, []string{"kind"})
)

func init() {
	metrics.Registry.MustRegister(decisions, warnings, readBytes, approvalTook)
	for _, reason := range []string{NodeBootstrapsAgain, RebootstrapRefused, KeysDiffer} {
		warnings.WithLabelValues(reason) // so that the first is an increase
	}
}

// readOf counts by server; a count goes with the last who reads there, for anybody may make hosted clusters of ever new names.
var readOf = &servers{readers: map[string]int{}}

type servers struct {
	mu      sync.Mutex
	readers map[string]int
}

func (s *servers) begin(server string) prometheus.Counter {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readers[server]++
	return readBytes.WithLabelValues(server)
}

func (s *servers) end(server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readers[server]--; s.readers[server] == 0 {
		delete(s.readers, server)
		readBytes.DeleteLabelValues(server)
	}
}

func countApproval(kind csr.Kind, took time.Duration) {
	decisions.WithLabelValues(string(kind), "approved", "").Inc()
	approvalTook.WithLabelValues(string(kind)).Observe(took.Seconds())
}

func countDecision(kind csr.Kind, broken string) {
	decisions.WithLabelValues(string(kind), "waiting", broken).Inc()
}

// isRefusedBy counts a rule once, however often it refuses.
func (w *waiting) isRefusedBy(broken string) {
	if w.broken != broken {
		w.broken = broken
		countDecision(w.asked.Kind, broken)
	}
}
