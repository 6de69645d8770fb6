// Package boot exports how long workers take for the stages of a boot. Daemons count what they see of it, and the manager what only a hosted
// cluster tells.
package boot

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Stages of a boot whose times are exported. Each of them is counted by the process whose write made it durable, so once, whichever instance
// saw it; an answer of the API server that is lost, or a process that ends just then, costs that count.
const (
	// PowerOnToLease is from the start of the virtual machine, DiscoverToLease from the first DISCOVER of any other machine.
	PowerOnToLease  = "power-on-to-lease"
	DiscoverToLease = "discover-to-lease"
	// LeaseToIgnition ends with the connection in which Ignition's config was received.
	LeaseToIgnition = "lease-to-ignition"
	// LeaseToKonnectivity ends when konnectivity's server accepted the agent of the new Node.
	LeaseToKonnectivity = "lease-to-konnectivity"
	// LeaseToReady ends when the new Node became Ready.
	LeaseToReady = "lease-to-ready"
)

// Longest is after what time no boot is counted: an older lease, or an older virtual machine, is of a worker that begins anew.
const Longest = 3 * time.Hour

var took = prometheus.NewHistogramVec(prometheus.HistogramOpts{
	Name: "oooi_boot_seconds", Help: "Time that workers took for a stage of their first boot with a lease, up to three hours; infra is namespace/name.",
	Buckets: prometheus.ExponentialBucketsRange(1, Longest.Seconds(), 28),
}, []string{"infra", "stage"})

// Times are for the registry of a process that counts them.
func Times() *prometheus.HistogramVec { return took }

// WillCount has an Infra's series begin at 0: Prometheus sees no increase in one that begins at 1.
func WillCount(infra string, stages ...string) {
	for _, s := range stages {
		took.WithLabelValues(infra, s)
	}
}

// Count counts a boot that came through a stage.
func Count(infra, stage string, after time.Duration) {
	if after <= Longest {
		took.WithLabelValues(infra, stage).Observe(max(0, after).Seconds()) // two nodes' clocks may differ
	}
}

// Forget ends the series of an Infra that is not watched any more.
func Forget(infra, stage string) { took.DeleteLabelValues(infra, stage) }
