package workload

import (
	"net/netip"
	"slices"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

// vlanOf is the network of a proxy's Infra. The author of the Infra may write any network, so it must contain the pod's own address on the
// VLAN, and not overlap those of pods and Services.
func vlanOf(in Child[*v1alpha1.ProxyServer]) (netip.Prefix, bool) {
	if in.Infra == nil {
		return netip.Prefix{}, false
	}
	cidr, err := netip.ParsePrefix(string(in.Infra.Spec.NetworkConfig.CIDR))
	at, _ := netip.ParseAddr(string(in.Server.Spec.NetworkConfig.ServerIP))
	return cidr, err == nil && cidr.Contains(at) && !slices.ContainsFunc(in.Settings.ClusterNetworks(), cidr.Overlaps)
}
