package approve

import (
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
		Help: "Bootstrap CSRs behind which somebody else with the token in a worker's Ignition may be: reason (NodeRebootstrapped, RebootstrapRefused, KeysDiffer).",
	}, []string{"reason"})
	approvalTook = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "oooi_csr_approval_seconds", Help: "Time from a CSR being seen to its approval, what it waited for included.",
		Buckets: prometheus.ExponentialBuckets(0.005, 2.5, 14),
	}, []string{"kind"})
)

func init() {
	metrics.Registry.MustRegister(decisions, warnings, approvalTook)
	for _, reason := range []string{NodeRebootstrapped, RebootstrapRefused, KeysDiffer} {
		warnings.WithLabelValues(reason) // start at 0, so that the first warning is an increase
	}
}

func countApproval(kind csr.Kind, took time.Duration) {
	decisions.WithLabelValues(string(kind), "approved", "").Inc()
	approvalTook.WithLabelValues(string(kind)).Observe(took.Seconds())
}

func countDecision(kind csr.Kind, broken string) {
	decisions.WithLabelValues(string(kind), "waiting", broken).Inc()
}
