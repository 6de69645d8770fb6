package check

import (
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/subject"
)

func missingControlPlane(in apps.Published) (finding.Finding, bool) {
	waiting := finding.Wait(v1alpha1.ConditionEndpointsResolved, "WaitingForControlPlane").At("spec.hostedClusterRef")
	key, known := in.HostedClusterKey()
	switch {
	case known && in.HostedCluster == nil:
		return waiting.Say("waiting for HostedCluster %s", key), true
	case !known && in.HostedControlPlane != nil:
		return waiting.Say("waiting for HostedControlPlane %s/%s to name its HostedCluster in annotation %s", in.HostedControlPlane.Namespace, in.HostedControlPlane.Name, names.AnnotationHostedCluster), true
	}
	return finding.Finding{}, false
}

// changedProtocols: Envoy drains a port whose listener changes its protocol, with every stream on it.
func changedProtocols(in apps.Published) []finding.Finding {
	var all []finding.Finding
	for _, e := range in.Table.Endpoints {
		for _, b := range in.Children.OtherProtocol(e) {
			all = append(all, finding.Refuse(v1alpha1.ConditionEndpointsResolved, "ProtocolChanged").At("spec.extraEndpoints").
				Say("%s needs %s on port %d, but %s already serves %s there: changing it would break open connections; use another port, or remove %s first", e.Name, e.Protocol, e.Port, b.Name, b.Protocol, b.Name))
		}
	}
	return all
}

// ignoredEntries are static entries that DNS does not answer.
func ignoredEntries(in apps.Published) (all []finding.Finding) {
	const field = "spec.infraComponents.dns.staticEntries"
	proxied := input.Enabled(in.Infra.Spec.InfraComponents.Proxy.Enabled)
	var kept any // nil removes the field
	if rest := in.Table.Unnamed(in.Infra.Spec.InfraComponents.DNS.StaticEntries, proxied); len(rest) > 0 {
		kept = rest
	}
	for _, e := range in.Infra.Spec.InfraComponents.DNS.StaticEntries {
		if name := in.Table.Named(string(e.Hostname), proxied); name != "" {
			all = append(all, finding.Warn(v1alpha1.ConditionEndpointsResolved, "StaticEntryIgnored").At(field).Set(finding.Values{field: kept}).
				Say("infraComponents.dns.staticEntries has %s, a name of endpoint %s, which DNS answers with the proxy's address; remove the entry", e.Hostname, name))
		}
	}
	return all
}

// withDHCP enables our DHCP, if the VLAN is IPv4.
func withDHCP(in apps.Published) []finding.Change {
	if !in.CIDR.Addr().Is4() {
		return nil
	}
	return []finding.Change{{Values: finding.Values{subject.FieldDHCP: true}}}
}
