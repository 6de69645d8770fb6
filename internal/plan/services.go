package plan

import (
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
)

// services judges what workers miss of what is switched off. DHCP off is no mistake: workers may have addresses, and resolvers with them, from
// elsewhere.
func (v *view) services() []finding.Finding {
	on := switchedOn(v.Infra.Spec.InfraComponents)
	n := v.Infra.Spec.NetworkConfig
	ways, resolvers := v.gateway.IsValid() || len(n.Routes) > 0, len(n.DNSServers) > 0
	var all []finding.Finding
	off := func(field string, b finding.Builder, sentence string) {
		all = append(all, b.At(field).Set(finding.Values{field: true}).Say("%s", sentence))
	}
	const kind = v1alpha1.ConditionEndpointsResolved
	switch {
	case !on["dhcp"] && !on["dns"] && !on["proxy"]:
		off(fieldProxy, finding.Fails(kind, "ServicesAreOff"), "DHCP, DNS and proxy are all switched off: this Infra does nothing for workers; leave infraComponents out to switch all three on, or delete the Infra")
		all[0].Changes = []finding.Change{{Values: v.allOn()}}
		return all
	case !on["proxy"] && !on["dns"] && ways && resolvers:
		off(fieldProxy, finding.Note(kind, "ProxyIsOff"),
			"the proxy is switched off: workers reach the control plane only by networkConfig.gateway or routes, under the addresses that networkConfig.dnsServers give")
	case !on["proxy"]:
		off(fieldProxy, finding.Fails(kind, "ProxyIsOff"),
			"the proxy is switched off, and nothing else leads from the VLAN to the control plane: no worker can join; set infraComponents.proxy.enabled: true")
	}
	switch {
	case on["dns"] || resolvers || v.allLiteral():
	case !on["dhcp"]:
		off(fieldDNS, finding.Note(kind, "DNSIsOff"),
			"DHCP and DNS are switched off: workers need resolvers from elsewhere that answer the control plane's names with the proxy's address; name them in networkConfig.dnsServers")
	default:
		off(fieldDNS, finding.Fails(kind, "DNSIsOff"),
			"DNS is switched off and networkConfig.dnsServers is empty: workers cannot resolve the control plane's names; set infraComponents.dns.enabled: true, or networkConfig.dnsServers to resolvers that answer them with the proxy's address")
	}
	return all
}

// allLiteral: workers need no resolver for the control plane. One for their registry is not ours to judge.
func (v *view) allLiteral() bool {
	return len(v.table.Endpoints) > 0 && len(v.table.Findings()) == 0 && len(v.table.Names()) == 0
}

// allOn switches on what the VLAN's family of addresses can have.
func (v *view) allOn() finding.Values {
	values := finding.Values{fieldDNS: true, fieldProxy: true}
	if v.cidr.Addr().Is4() {
		values[fieldDHCP] = true
	}
	return values
}
