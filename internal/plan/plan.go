// Package plan says what should be, and what is wrong with what the user wrote. It is pure: it reads no clock, no
// environment and no cluster, and does not change its input.
package plan

import (
	"net/netip"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cldmnky/oooi/internal/finding"
)

// Settings are the operator's flags that planning depends on.
type Settings struct {
	// Image of the operator and its daemons.
	Image string
	// EnvoyImage is the image of Envoy.
	EnvoyImage string
	// ImagePullSecrets are named by the daemons' pods; whoever has them makes them in each namespace of those.
	ImagePullSecrets []string
	// AllowImageOverride lets `image` fields through.
	AllowImageOverride bool
	// NADSourceNamespaces are lent to every namespace by Multus.
	NADSourceNamespaces []string
	// IsolatesNetworks: Multus keeps pods from the networks of other namespaces, whatever tells whether this is OpenShift.
	IsolatesNetworks bool
	// ExtraEndpointCIDRs admit extra endpoints by address.
	ExtraEndpointCIDRs []netip.Prefix
	// ClusterDomain is the management cluster's own domain, e.g. cluster.local.
	ClusterDomain string
	// PodCIDRs and ServiceCIDRs are the management cluster's networks.
	PodCIDRs, ServiceCIDRs []netip.Prefix
	// MetricsNamespaces may scrape the daemons.
	MetricsNamespaces []string
}

// Plan is what one object becomes.
type Plan struct {
	// Objects are desired, as apply configurations, in the order in which they are applied.
	Objects []runtime.ApplyConfiguration
	// Findings are what status says.
	Findings []finding.Finding
}

// Refused says whether a finding on one of the gating conditions holds everything back: nothing is created for what may
// not be, and what already runs is left as it is.
func (p Plan) Refused(conditions ...string) bool {
	for _, c := range conditions {
		if finding.Worst(p.Findings, c).Holds() {
			return true
		}
	}
	return false
}

// Want adds desired objects.
func (p *Plan) Want(objects ...runtime.ApplyConfiguration) { p.Objects = append(p.Objects, objects...) }

// Find adds findings.
func (p *Plan) Find(findings ...finding.Finding) { p.Findings = append(p.Findings, findings...) }
