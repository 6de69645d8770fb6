// Package sysdump collects in one archive what somebody who helps from afar asks for: objects, events and logs, without secrets.
package sysdump

import (
	configv1 "github.com/openshift/api/config/v1"
	routev1 "github.com/openshift/api/route/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/metallb"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
)

// kind is one kind of object to collect. Secrets are none of them, nor are ConfigMaps, of which some hold ignition.
type kind struct {
	schema.GroupVersionKind
	// ours: only objects that the operator made.
	ours bool
	// cluster: it has no namespace.
	cluster bool
}

func of(version schema.GroupVersion, names ...string) (all []kind) {
	for _, name := range names {
		all = append(all, kind{GroupVersionKind: version.WithKind(name)})
	}
	return all
}

func ours(all []kind) []kind {
	for i := range all {
		all[i].ours = true
	}
	return all
}

func cluster(all []kind) []kind {
	for i := range all {
		all[i].cluster = true
	}
	return all
}

// kinds are those of the APIs that the operator reads or writes (internal/controller.Scheme), and what shows where its pods run.
var kinds = concat(
	of(v1alpha1.GroupVersion, append(servers(), "Infra", "DHCPLease")...),
	of(dpuv1.GroupVersion, "DPUHCPBridge"),
	of(hyperv1.GroupVersion, "HostedCluster", "NodePool"),
	of(nad.GroupVersion, "NetworkAttachmentDefinition"),
	of(schema.GroupVersion{Group: "kubevirt.io", Version: "v1"}, "VirtualMachine", "VirtualMachineInstance"),
	of(dpf.GroupVersion, "DPUCluster", "DPU", "DPUFlavor", "BFB"),
	of(dpf.ServiceGroupVersion, "DPUDeployment", "DPUServiceTemplate"),
	of(dpf.OperatorGroupVersion, "DPFOperatorConfig"),
	of(metallb.GroupVersion, "IPAddressPool", "L2Advertisement"),
	of(routev1.GroupVersion, "Route"),
	ours(of(corev1.SchemeGroupVersion, "Pod", "Service")),
	ours(of(appsv1.SchemeGroupVersion, "Deployment", "StatefulSet")),
	ours(of(networkingv1.SchemeGroupVersion, "NetworkPolicy")),
	ours(of(policyv1.SchemeGroupVersion, "PodDisruptionBudget")),
	cluster(of(corev1.SchemeGroupVersion, "Node")),
	cluster(of(apiextensionsv1.SchemeGroupVersion, "CustomResourceDefinition")),
	cluster(of(configv1.GroupVersion, "ClusterVersion", "Network", "Proxy")),
)

func servers() (all []string) {
	for _, c := range component.All {
		all = append(all, c.Kind)
	}
	return all
}

func concat(lists ...[]kind) (all []kind) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// selections are the label selectors of a kind's lists; an empty one selects all.
func (k kind) selections() []client.MatchingLabels {
	if !k.ours {
		return []client.MatchingLabels{{}}
	}
	return []client.MatchingLabels{{names.LabelManagedBy: names.ManagedBy}, {"app.kubernetes.io/name": "oooi"}}
}
