package render

import (
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	routev1 "github.com/openshift/api/route/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/moving"
	"github.com/cldmnky/oooi/internal/nad"
)

// The kinds that planning reads, each in the one version that it knows.
var (
	// unmistakable kinds have no namesake, whatever apiVersion is written.
	unmistakable = append(append(ours(), moving.Kinds...),
		dpuv1.GroupVersion.WithKind("DPUHCPBridge"),
		hyperv1.GroupVersion.WithKind("HostedCluster"),
		hyperv1.GroupVersion.WithKind("HostedControlPlane"),
		nad.GroupVersion.WithKind("NetworkAttachmentDefinition"),
	)
	// common kinds share their names with other groups' kinds: Knative has a Service, Calico a NetworkPolicy, Karpenter a NodePool.
	common = kinds{
		dpf.GroupVersion.WithKind("DPUCluster"),
		dpf.GroupVersion.WithKind("DPU"),
		dpf.GroupVersion.WithKind("DPUFlavor"),
		dpf.GroupVersion.WithKind("DPUNode"),
		dpf.OperatorGroupVersion.WithKind("DPFOperatorConfig"),
		dpf.ServiceGroupVersion.WithKind("DPUDeployment"),
		hyperv1.GroupVersion.WithKind("NodePool"),
		corev1.SchemeGroupVersion.WithKind("Namespace"),
		corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		corev1.SchemeGroupVersion.WithKind("Service"),
		discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"),
		networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
		routev1.GroupVersion.WithKind("Route"),
		clusterNetworkKind, userNetworkKind, operatorNetworkKind,
		configv1.GroupVersion.WithKind("Network"),
		openShiftDNS, // config.openshift.io has a DNS too
	}
	known = slices.Concat(unmistakable, common)
	// passedOn are kinds of which every field is kept, also those that we do not know.
	passedOn = append(kinds{openShiftDNS}, moving.Kinds...)
	// decisive kinds are those without which a plan may be wrong; one without a name is an error.
	decisive = append(kinds{hyperv1.GroupVersion.WithKind("NodePool")}, unmistakable...)
)

type kinds []schema.GroupVersionKind

// ours are the kinds of our API that planning reads.
func ours() kinds {
	all := kinds{v1alpha1.GroupVersion.WithKind("Infra"), v1alpha1.GroupVersion.WithKind("DHCPLease")}
	for _, c := range component.All {
		all = append(all, c.GVK())
	}
	return all
}

func (k kinds) named(name string) bool {
	return slices.ContainsFunc(k, func(kind schema.GroupVersionKind) bool { return strings.EqualFold(kind.Kind, name) })
}

// reads says whether planning reads a kind. It refuses a kind that was meant for planning but would be skipped.
func reads(kind schema.GroupVersionKind) (bool, error) {
	if slices.Contains(known, kind) {
		return true, nil
	}
	for _, k := range known {
		ours := k.Group == kind.Group || slices.Contains(unmistakable, k)
		switch {
		case k.Kind == kind.Kind && ours:
			return false, fmt.Errorf("%s of apiVersion %q is not read; write apiVersion: %s", kind.Kind, kind.GroupVersion(), k.GroupVersion())
		case strings.EqualFold(k.Kind, kind.Kind) && ours:
			return false, fmt.Errorf("%s has no kind %s; write kind: %s", k.Group, kind.Kind, k.Kind)
		}
	}
	if kind.Group == v1alpha1.GroupVersion.Group {
		var known []string
		for _, k := range ours() {
			known = append(known, k.Kind)
		}
		last := len(known) - 1
		return false, fmt.Errorf("%s has no kind %q; write %s or %s", kind.Group, kind.Kind, strings.Join(known[:last], ", "), known[last])
	}
	return false, nil
}
