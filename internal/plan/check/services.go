package check

import (
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/subject"
)

// services checks what workers lack because of disabled components. To disable DHCP is no mistake, because workers may get addresses, and
// resolvers with them, from elsewhere.
func services(in apps.Published) []finding.Finding {
	on := input.SwitchedOn(in.Infra.Spec.InfraComponents)
	n := in.Infra.Spec.NetworkConfig
	ways, resolvers := in.Gateway.IsValid() || len(n.Routes) > 0, len(n.DNSServers) > 0
	var all []finding.Finding
	off := func(field string, b finding.Builder, sentence string) {
		all = append(all, b.At(field).Set(finding.Values{field: true}).Say("%s", sentence))
	}
	const kind = v1alpha1.ConditionEndpointsResolved
	switch {
	case len(input.SwitchedOff(in.Infra.Spec.InfraComponents)) == len(on):
		off(subject.FieldProxy, finding.Fail(kind, "ComponentsDisabled"), "DHCP, DNS and proxy are all disabled: this Infra does nothing for workers; omit infraComponents to enable all three, or delete the Infra")
		all[0].Changes = []finding.Change{{Values: allOn(in)}}
		return all
	case !on[component.Proxy] && !on[component.DNS] && ways && resolvers:
		off(subject.FieldProxy, finding.Warn(kind, "ProxyDisabled"),
			"the proxy is disabled: workers reach the control plane only through networkConfig.gateway or routes, at the addresses that networkConfig.dnsServers return")
	case !on[component.Proxy]:
		off(subject.FieldProxy, finding.Fail(kind, "ProxyDisabled"),
			"the proxy is disabled, and there is no other way from the VLAN to the control plane: no worker can join; set infraComponents.proxy.enabled: true")
	}
	switch {
	case on[component.DNS] || resolvers || allByIP(in):
	case !on[component.DHCP]:
		off(subject.FieldDNS, finding.Warn(kind, "DNSDisabled"),
			"DHCP and DNS are disabled: workers need other resolvers, which must answer the control plane's names with the proxy's address; list them in networkConfig.dnsServers")
	default:
		off(subject.FieldDNS, finding.Fail(kind, "DNSDisabled"),
			"DNS is disabled and networkConfig.dnsServers is empty: workers cannot resolve the control plane's names; set infraComponents.dns.enabled: true, or set networkConfig.dnsServers to resolvers that answer these names with the proxy's address")
	}
	return all
}

// allByIP says whether workers need no resolver for the control plane; whether they need one for a registry is not known.
func allByIP(in apps.Published) bool {
	return len(in.Table.Endpoints) > 0 && len(in.Table.Findings()) == 0 && len(in.Table.Names()) == 0
}

// allOn enables all components that serve the VLAN's address family.
func allOn(in apps.Published) finding.Values {
	values := finding.Values{}
	for _, c := range component.All {
		if !c.IPv4Only || in.CIDR.Addr().Is4() {
			values[c.Field("enabled")] = true
		}
	}
	return values
}
