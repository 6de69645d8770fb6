package dns

import (
	"net/netip"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/cldmnky/oooi/internal/daemon"
)

var (
	probed          = daemon.NewProbeMetrics("oooi_dns_probe_success", "oooi_dns_probe_duration_seconds", "instance on the VLAN")
	resolversProbed = daemon.NewProbeMetrics("oooi_dns_resolver_success", "oooi_dns_resolver_duration_seconds", "upstream resolver")
)

func init() { prometheus.MustRegister(probed, resolversProbed) }

var healthyAddresses = promauto.NewGaugeVec(prometheus.GaugeOpts{
	Name: "oooi_dns_address_healthy",
	Help: "1 if an address that is checked accepts connections, 0 if names that have another one leave it out.",
}, []string{"address"})

func tellHealth(at netip.Addr, s sight) {
	healthy := 1.0
	if s.down {
		healthy = 0
	}
	healthyAddresses.WithLabelValues(at.String()).Set(healthy)
}
