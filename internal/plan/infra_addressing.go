package plan

import (
	"fmt"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/names"
)

// network judges networkConfig.cidr, without which nothing can be planned. The API server has checked it; a file that is
// rendered was checked by nobody.
func (in Input) network() []finding.Finding {
	const example = "write the VLAN's network, e.g. 192.168.100.0/24"
	wrong := finding.Wrong(v1alpha1.ConditionAccepted, "InvalidCIDR").At(fieldCIDR)
	text := in.Infra.Spec.NetworkConfig.CIDR
	cidr, err := netip.ParsePrefix(string(text))
	switch {
	case text == "":
		return []finding.Finding{wrong.Say("networkConfig.cidr is not set; %s", example)}
	case err != nil:
		return []finding.Finding{wrong.Say("networkConfig.cidr %q is no network; %s", text, example)}
	case cidr != cidr.Masked():
		return []finding.Finding{wrong.Set(finding.Values{fieldCIDR: cidr.Masked().String()}).Say("networkConfig.cidr %s has host bits; its network is %s", cidr, cidr.Masked())}
	case !possible(cidr):
		return []finding.Finding{wrong.Say("networkConfig.cidr %s is no network that a VLAN can have; %s", cidr, example)}
	case cidr.Addr().Is6() && enabled(in.Infra.Spec.InfraComponents.DHCP.Enabled):
		return []finding.Finding{wrong.Set(finding.Values{fieldDHCP: false}).Say("networkConfig.cidr %s is IPv6, for which there is no DHCP; set infraComponents.dhcp.enabled: false", cidr)}
	}
	return nil
}

// possible says whether a VLAN can have a network, as the schema of v1alpha1.Subnet does.
func possible(cidr netip.Prefix) bool {
	at := cidr.Addr()
	return cidr.Bits() >= 8 && at.IsGlobalUnicast() && !at.Is4In6() && (at.Is6() || at.As4()[0] < 240)
}

// addressing judges addresses of the Infra against each other and against what was derived.
func (v *view) addressing() []finding.Finding {
	return slices.Concat(v.router(), v.itself(), v.overCaptured(), v.reservations())
}

func wrongAt(reason, field string) finding.Builder {
	return finding.Wrong(v1alpha1.ConditionAccepted, reason).At(field)
}

// router is networkConfig.gateway, which must be a host of the VLAN.
func (v *view) router() []finding.Finding {
	usable, written := ipam.Usable(v.cidr), v.Infra.Spec.NetworkConfig.Gateway
	if written == "" || usable.Contains(v.gateway) {
		return nil
	}
	return []finding.Finding{wrongAt("InvalidGateway", fieldGateway).
		Say("networkConfig.gateway %s is no host's address in %s; set one of %s, or leave it out on an isolated VLAN", written, v.cidr, usable)}
}

// itself among the resolvers: our DNS would ask itself, and our other services answer no name.
func (v *view) itself() (all []finding.Finding) {
	resolvers := v.Infra.Spec.NetworkConfig.DNSServers
	for _, server := range resolvers {
		a, err := netip.ParseAddr(string(server))
		for component, on := range switchedOn(v.Infra.Spec.InfraComponents) {
			if err != nil || !on || a != v.address(component) {
				continue
			}
			what := map[ipam.Component]string{ipam.DHCP: "DHCP server, which answers no names", ipam.DNS: "DNS server: it would ask itself", ipam.Proxy: "proxy, which answers no names"}[component]
			all = append(all, wrongAt("InvalidDNSServer", fieldResolvers).Set(finding.Values{fieldResolvers: but(resolvers, server)}).
				Say("networkConfig.dnsServers has %s, which is this Infra's own %s; name the resolvers of all other names, e.g. 10.0.0.53, or leave it out for the node's", a, what))
		}
	}
	return all
}

// overCaptured are routes that would lead workers past the proxy.
func (v *view) overCaptured() (all []finding.Finding) {
	routes := v.Infra.Spec.NetworkConfig.Routes
	for _, r := range routes {
		for _, c := range v.captured {
			if string(r.Destination) == host(c.IP) {
				all = append(all, wrongAt("InvalidRoute", fieldRoutes).Set(finding.Values{fieldRoutes: but(routes, r)}).
					Say("networkConfig.routes has %s, which leads to the proxy at %s; remove it", r.Destination, v.address(ipam.Proxy)))
			}
		}
	}
	return all
}

// reservations that would never be served, or not to whom they are meant for.
func (v *view) reservations() []finding.Finding {
	var all []finding.Finding
	usable, holds := ipam.Usable(v.cidr), map[v1alpha1.MACAddress]v1alpha1.IPv4Address{}
	wrong := func(format string, args ...any) {
		all = append(all, wrongAt("InvalidReservation", "spec.infraComponents.dhcp.reservations").Say(format, args...))
	}
	dhcp := v.Infra.Spec.InfraComponents.DHCP
	if v.leasesByReservation() && enabled(dhcp.Enabled) && dhcp.UnknownClients == v1alpha1.UnknownClientsIgnore && len(dhcp.Reservations) == 0 {
		all = append(all, wrongAt("NobodyServed", fieldUnknownClients).Set(finding.Values{fieldUnknownClients: string(v1alpha1.UnknownClientsPool)}).
			Say("dhcp.unknownClients: Ignore serves reservations and KubeVirt's machines, and there are neither: the platform of HostedCluster %s is %s; reserve an address for each worker, or leave unknownClients out", v.HostedCluster.Name, v.HostedCluster.Spec.Platform.Type))
	}
	for _, r := range dhcp.Reservations {
		at, _ := netip.ParseAddr(string(r.IP))
		if first := holds[r.MAC]; first != "" {
			wrong("dhcp.reservations has %s twice, for %s and %s; a client has one address, remove one", r.MAC, first, r.IP)
		}
		if r.MAC != "" {
			holds[r.MAC] = r.IP
		}
		switch {
		case at.IsValid() && at == v.gateway:
			wrong("dhcp.reservations has %s, which is networkConfig.gateway; reserve another address", at)
		case !usable.Contains(at):
			wrong("dhcp.reservations has %s, which is no host's address in %s; reserve one of %s", r.IP, v.cidr, usable)
		}
	}
	return all
}

// misnamed is a domain that no name can have: the children, and every record, carry it.
func (v *view) misnamed() []finding.Finding {
	wrong := finding.Wrong(v1alpha1.ConditionEndpointsResolved, "InvalidDomain")
	cp := v.controlPlane()
	if cp.HostedCluster != nil && cp.Base() == "" {
		return []finding.Finding{wrong.In(endpoint.Object(cp.HostedCluster)).At("spec.dns.baseDomain").
			Say("the base domain of HostedCluster %s/%s is not known; tried, in this order: %s; say it with: %s", cp.HostedCluster.Namespace, cp.HostedCluster.Name, endpoint.BaseSources, v.sayBase())}
	}
	if validation.IsDNS1123Subdomain(v.domain) != nil {
		return []finding.Finding{wrong.At("spec.infraComponents.dns").Say("the hosted cluster's domain is %q, which is no DNS name in lower case; set infraComponents.dns.clusterName and dns.baseDomain, e.g. c1 and example.com", v.domain)}
	}
	return nil
}

// sayBase is the command that says the base domain, where the Infra's own field comes from.
func (v *view) sayBase() string {
	const example = "example.com"
	if metav1.IsControlledBy(v.Infra, v.HostedCluster) {
		return Annotate(v.HostedCluster.Namespace, v.HostedCluster.Name, names.AnnotationBaseDomain, example)
	}
	return fmt.Sprintf(`kubectl -n %s patch infra %s --type merge -p '{"spec":{"infraComponents":{"dns":{"baseDomain":%q}}}}'`, v.Infra.Namespace, v.Infra.Name, example)
}
