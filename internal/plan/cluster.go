package plan

import (
	"net/netip"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
)

// NetworksOf OpenShift's one Network are the management cluster's, as it has them now.
func NetworksOf(network *configv1.Network) (pods, services []netip.Prefix) {
	var blocks []string
	for _, b := range network.Status.ClusterNetwork {
		blocks = append(blocks, b.CIDR)
	}
	return Prefixes(blocks...), Prefixes(network.Status.ServiceNetwork...)
}

// Prefixes are those texts that are networks, in an order of their own: a cache lists objects in any.
func Prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		if p, err := netip.ParsePrefix(text); err == nil {
			all = append(all, p.Masked())
		}
	}
	slices.SortFunc(all, netip.Prefix.Compare)
	return slices.Compact(all)
}
