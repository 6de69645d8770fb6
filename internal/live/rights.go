package live

import (
	"slices"
	"strings"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/input"
)

const (
	oooi, hypershift, kubevirt = names.Group, "hypershift.openshift.io", "kubevirt.io"
	dpf, dpfOperator           = "provisioning.dpu.nvidia.com", "operator.dpu.nvidia.com"
)

// ofInfra are the rights by which an Infra's page is read (package diagnosecli), in an order that does not change.
func ofInfra(infra *v1alpha1.Infra) []right {
	all := []right{
		{"get", oooi, "infras", infra.Namespace}, {"list", oooi, "dhcpleases", infra.Namespace},
		{"list", "", "events", infra.Namespace}, {"list", "k8s.cni.cncf.io", "network-attachment-definitions", ""},
	}
	for _, c := range component.All {
		all = append(all, right{"get", oooi, c.Resource, infra.Namespace})
	}
	if cluster := input.Refs(infra).HostedCluster; cluster.Name != "" {
		controlPlane := endpoint.ControlPlaneNamespaceOf(cluster)
		all = append(all, right{"get", hypershift, "hostedclusters", cluster.Namespace}, right{"list", hypershift, "nodepools", cluster.Namespace},
			right{"list", "discovery.k8s.io", "endpointslices", controlPlane}, right{"list", "networking.k8s.io", "networkpolicies", controlPlane},
			right{"list", "", "events", controlPlane}, right{"list", kubevirt, "virtualmachines", controlPlane}, right{"list", kubevirt, "virtualmachineinstances", controlPlane})
	}
	return all
}

// ofOverview are those by which the overview is read, beside the Infras and bridges of these namespaces (package bridgecli). DPF's namespace has the
// templates; empty if there is none.
func ofOverview(bridges []string, dpfNamespace string) []right {
	all := []right{{"list", dpf, "dpus", ""}, {"list", dpf, "dpuflavors", ""}, {"list", dpfOperator, "dpfoperatorconfigs", ""}}
	if dpfNamespace != "" {
		all = append(all, right{"list", "", "configmaps", dpfNamespace}, right{"get", "", "configmaps", dpfNamespace})
	}
	for _, namespace := range bridges {
		all = append(all, right{"list", "events.k8s.io", "events", namespace})
	}
	return all
}

// lists are the rights to list Infras and bridges.
func infrasIn(namespace string) right { return right{"list", oooi, "infras", namespace} }

func bridgesOf(namespace string) right {
	return right{"list", dpuv1.GroupVersion.Group, "dpuhcpbridges", namespace}
}

// keyOf is the same for the same rights.
func keyOf(granted map[right]bool) string {
	var all []string
	for r, is := range granted {
		if is {
			all = append(all, strings.Join([]string{r.verb, r.group, r.resource, r.namespace}, " "))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}
