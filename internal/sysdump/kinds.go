// Package sysdump collects in one archive what somebody who helps from afar asks for: objects, events and logs, without secrets.
package sysdump

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/component"
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

func of(group, version string, names ...string) (all []kind) {
	for _, name := range names {
		all = append(all, kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: name}})
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
	of("hostedcluster.densityops.com", "v1alpha1", append(servers(), "Infra", "DHCPLease")...),
	of("provisioning.dpu.hcp.io", "v1alpha1", "DPUHCPBridge"),
	of("hypershift.openshift.io", "v1beta1", "HostedCluster", "NodePool"),
	of("k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition"),
	of("kubevirt.io", "v1", "VirtualMachine", "VirtualMachineInstance"),
	of("provisioning.dpu.nvidia.com", "v1alpha1", "DPUCluster", "DPU", "DPUFlavor", "BFB"),
	of("svc.dpu.nvidia.com", "v1alpha1", "DPUDeployment", "DPUServiceTemplate"),
	of("operator.dpu.nvidia.com", "v1alpha1", "DPFOperatorConfig"),
	of("metallb.io", "v1beta1", "IPAddressPool", "L2Advertisement"),
	of("route.openshift.io", "v1", "Route"),
	ours(of("", "v1", "Pod", "Service")),
	ours(of("apps", "v1", "Deployment", "StatefulSet")),
	ours(of("networking.k8s.io", "v1", "NetworkPolicy")),
	ours(of("policy", "v1", "PodDisruptionBudget")),
	cluster(of("", "v1", "Node")),
	cluster(of("apiextensions.k8s.io", "v1", "CustomResourceDefinition")),
	cluster(of("config.openshift.io", "v1", "ClusterVersion", "Network", "Proxy")),
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
