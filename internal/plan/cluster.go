package plan

import (
	"net/netip"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
)

// In has the pod and service networks of OpenShift's one Network, as the cluster has them now, where no flag says them.
func (s Settings) In(network *configv1.Network) Settings {
	var blocks []string
	for _, b := range network.Status.ClusterNetwork {
		blocks = append(blocks, b.CIDR)
	}
	if len(s.PodCIDRs) == 0 {
		s.PodCIDRs = Prefixes(blocks...)
	}
	if len(s.ServiceCIDRs) == 0 {
		s.ServiceCIDRs = Prefixes(network.Status.ServiceNetwork...)
	}
	return s
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
