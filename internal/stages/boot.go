package stages

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

// Stages of a boot whose times are exported. Each of them is counted by the process whose write made it durable, so once, whichever instance
// saw it; an answer of the API server that is lost, or a daemon that ends just then, costs that count.
const (
	// PowerOnToLease is from the start of the virtual machine, DiscoverToLease from the first DISCOVER of any other machine.
	PowerOnToLease  = "power-on-to-lease"
	DiscoverToLease = "discover-to-lease"
	// LeaseToIgnition ends with the connection in which Ignition's config was received.
	LeaseToIgnition = "lease-to-ignition"
	// LeaseToKonnectivity ends when konnectivity's server accepted the agent of the new Node.
	LeaseToKonnectivity = "lease-to-konnectivity"
)

// LongestBoot is after what time no boot is counted: an older lease, or an older virtual machine, is of a worker that begins anew.
const LongestBoot = 3 * time.Hour

var took = prometheus.NewHistogramVec(prometheus.HistogramOpts{
	Name: "oooi_boot_seconds", Help: "Time that workers took for a stage of their first boot with a lease, up to three hours; infra is namespace/name.",
	Buckets: prometheus.ExponentialBucketsRange(1, LongestBoot.Seconds(), 28),
}, []string{"infra", "stage"})

// Boots has the times of boots, for the registry of a daemon that counts them.
func Boots() prometheus.Collector { return took }

// WillCount has an Infra's series begin at 0: Prometheus sees no increase in one that begins at 1.
func WillCount(infra string, stages ...string) {
	for _, s := range stages {
		took.WithLabelValues(infra, s)
	}
}

// Count counts a boot that came through a stage.
func Count(infra, stage string, after time.Duration) {
	if after <= LongestBoot {
		took.WithLabelValues(infra, stage).Observe(max(0, after).Seconds()) // two nodes' clocks may differ
	}
}

// counted are the times that a worker took since its lease, for what was seen of it that its lease does not say yet. A worker that joined before
// stages were written connects to konnectivity, too: it counts only after Ignition.
func counted(l *v1alpha1.DHCPLease, saw []v1alpha1.Stage) map[string]time.Duration {
	times := map[string]time.Duration{}
	if l.Spec.LastTransitionTime == nil {
		return times
	}
	was := told(l)
	came := func(name v1alpha1.StageName, far uint8) (v1alpha1.Stage, bool) {
		i := slices.IndexFunc(saw, func(s v1alpha1.Stage) bool { return s.Name == name && rank(s) >= far })
		if i < 0 || was[nth(name)] >= far {
			return v1alpha1.Stage{}, false
		}
		return saw[i], true
	}
	ignition, fetched := came(v1alpha1.StageIgnitionHello, receivedMuch)
	if fetched {
		times[LeaseToIgnition] = ignition.FirstTime.Sub(l.Spec.LastTransitionTime.Time)
	}
	if s, joined := came(v1alpha1.StageKonnectivityHello, forwarded); joined && (fetched || was[nth(v1alpha1.StageIgnitionHello)] == receivedMuch) {
		times[LeaseToKonnectivity] = s.FirstTime.Sub(l.Spec.LastTransitionTime.Time)
	}
	return times
}
