package render

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

// Kinds that planning reads, each in the one version that it knows.
var (
	// unmistakable kinds are these and no others, whatever apiVersion is written.
	unmistakable = []schema.GroupVersionKind{
		v1alpha1.GroupVersion.WithKind("Infra"),
		v1alpha1.GroupVersion.WithKind("DHCPServer"),
		v1alpha1.GroupVersion.WithKind("DHCPLease"),
		v1alpha1.GroupVersion.WithKind("DNSServer"),
		v1alpha1.GroupVersion.WithKind("ProxyServer"),
		{Group: "hypershift.openshift.io", Version: "v1beta1", Kind: "HostedCluster"},
		{Group: "hypershift.openshift.io", Version: "v1beta1", Kind: "HostedControlPlane"},
		{Group: "k8s.cni.cncf.io", Version: "v1", Kind: "NetworkAttachmentDefinition"},
	}
	// common names are those of other groups' kinds too: Knative has a Service, Calico a NetworkPolicy.
	common = []schema.GroupVersionKind{
		{Version: "v1", Kind: "Namespace"},
		{Version: "v1", Kind: "ConfigMap"},
		{Version: "v1", Kind: "Service"},
		{Version: "v1", Kind: "List"},
		{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"},
		{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
		{Group: "route.openshift.io", Version: "v1", Kind: "Route"},
	}
)

// reads says whether planning reads a kind, and refuses one that was meant to be read but would be passed over.
func reads(kind schema.GroupVersionKind) (bool, error) {
	if slices.Contains(unmistakable, kind) || slices.Contains(common, kind) {
		return true, nil
	}
	for _, known := range slices.Concat(unmistakable, common) {
		if known.Kind == kind.Kind && (known.Group == kind.Group || slices.Contains(unmistakable, known)) {
			return false, fmt.Errorf("%s of apiVersion %q is not read; write apiVersion: %s", kind.Kind, kind.GroupVersion(), known.GroupVersion())
		}
	}
	if kind.Group == v1alpha1.GroupVersion.Group {
		return false, fmt.Errorf("%s has no kind %q; write Infra, DHCPServer, DHCPLease, DNSServer or ProxyServer", kind.Group, kind.Kind)
	}
	return false, nil
}
