package workload

import (
	"net/netip"
	"slices"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

// vlanOf a proxy is the network of its Infra, which whoever writes the Infra chooses: only where the pod's own interface is in it do its
// addresses lead there, and not where they do to pods and Services.
func vlanOf(in Child[*v1alpha1.ProxyServer]) (netip.Prefix, bool) {
	if in.Infra == nil {
		return netip.Prefix{}, false
	}
	cidr, err := netip.ParsePrefix(string(in.Infra.Spec.NetworkConfig.CIDR))
	at, _ := netip.ParseAddr(string(in.Server.Spec.NetworkConfig.ServerIP))
	return cidr, err == nil && cidr.Contains(at) && !slices.ContainsFunc(in.Settings.ClusterNetworks(), cidr.Overlaps)
}
