package input

import (
	"net/netip"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
)

// Settings are the operator's flags that planning depends on.
type Settings struct {
	// Image of the operator and its daemons.
	Image string
	// EnvoyImage is the image of Envoy.
	EnvoyImage string
	// ImagePullSecrets are the names that the daemons' pods refer to; users create these Secrets in each namespace with such pods.
	ImagePullSecrets []string
	// AllowImageOverride allows `image` fields.
	AllowImageOverride bool
	// NADSourceNamespaces have the networks that Multus allows to pods of every namespace.
	NADSourceNamespaces []string
	// IsolatesNetworks: assume that Multus denies pods the networks of other namespaces, even if nothing says that this is OpenShift.
	IsolatesNetworks bool
	// ExtraEndpointCIDRs are where extra endpoints may have addresses.
	ExtraEndpointCIDRs []netip.Prefix
	// ClusterDomain is the management cluster's own domain, e.g. cluster.local.
	ClusterDomain string
	// PodCIDRs and ServiceCIDRs are the management cluster's networks.
	PodCIDRs, ServiceCIDRs []netip.Prefix
	// MetricsNamespaces may scrape the daemons.
	MetricsNamespaces []string
}

// ClusterNetworks are the management cluster's pod and service networks.
func (s Settings) ClusterNetworks() []netip.Prefix {
	return append(append([]netip.Prefix(nil), s.PodCIDRs...), s.ServiceCIDRs...)
}

// In adds the current pod and service networks of OpenShift's Network object, unless flags set them.
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

// Prefixes are the texts that are networks, sorted, because a cache lists objects in any order.
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
