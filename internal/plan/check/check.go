// Package check says what is wrong with an Infra, in a file for each subject. It changes no results of other stages.
package check

import (
	"slices"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/permission"
	"github.com/cldmnky/oooi/internal/plan/subject"
)

// All is what is wrong with an Infra, or could be better, in the order in which it is reported.
func All(in apps.Published) []finding.Finding {
	return slices.Concat(acceptance(in), network(in), workers(in), placement(in), handedOut(in), services(in), resolution(in), in.Findings)
}

// acceptance checks what the user wrote.
func acceptance(in apps.Published) []finding.Finding {
	all := append(permission.ImageOverrides(in.Settings, permission.WrittenImages(in.Infra)), sharing(in)...)
	all = append(all, overlaps(in)...)
	all = append(all, clients(in)...)
	all = append(all, limits(in)...)
	all = append(all, addressing(in)...)
	all = append(all, capacity(in)...)
	if hc := in.HostedCluster; hc != nil && input.Elsewhere(hc.Spec.Platform.Type) {
		all = append(all, finding.Refuse(v1alpha1.ConditionAccepted, "ExternalInfra").In(endpoint.Object(hc)).At("spec.platform.type").
			Say("HostedCluster %s/%s runs its machines on platform %s, outside the VLANs of this cluster; an Infra serves VirtualMachines of this cluster (KubeVirt) and machines on its VLANs (Agent, None)", hc.Namespace, hc.Name, hc.Spec.Platform.Type))
	}
	if external(in) {
		const field = "spec.platform.kubevirt.credentials"
		all = append(all, finding.Refuse(v1alpha1.ConditionAccepted, "ExternalInfra").
			In(endpoint.Object(in.HostedCluster)).At(field).Set(finding.Values{field: nil}).
			Say("HostedCluster %s/%s runs its VirtualMachines on another cluster (spec.platform.kubevirt.credentials): create the Infra on that cluster, where their VLAN is", in.HostedCluster.Namespace, in.HostedCluster.Name))
	}
	return all
}

// resolution checks the endpoints.
func resolution(in apps.Published) []finding.Finding {
	if f, missing := missingControlPlane(in); missing {
		return []finding.Finding{f}
	}
	all := append(in.Table.Findings(), unread(in)...)
	all = append(all, in.NotCaptured...)
	all = append(all, Misnamed(in)...)
	all = append(all, capturedByNeighbour(in)...)
	all = append(all, changedProtocols(in)...)
	all = append(all, ignoredEntries(in)...)
	all = append(all, passthrough(in)...)
	all = append(all, throughProxy(in)...)
	if !input.Enabled(in.Infra.Spec.InfraComponents.DHCP.Enabled) {
		for _, c := range in.CapturedAddresses {
			all = append(all, finding.Warn(v1alpha1.ConditionEndpointsResolved, "CapturedAddressNeedsRoute").
				At(subject.FieldDHCP).Change(withDHCP(in)...).
				Say("workers connect to %s, but DHCP is off: add a route on each worker: ip route add %s via %s", c.IP, desired.HostRoute(c.IP), in.Address(component.Proxy)))
		}
	}
	return all
}
