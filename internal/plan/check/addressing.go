package check

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/subject"
)

// addressing checks addresses of the Infra against each other and against derived ones.
func addressing(in apps.Published) []finding.Finding {
	return slices.Concat(router(in), ownResolvers(in), overCaptured(in), reservations(in), instances(in))
}

// instances are warned of where a second one is wanted and has no address, unless something worse is to be said of the addresses.
func instances(in apps.Published) (all []finding.Finding) {
	if len(in.Assigned.Findings) > 0 {
		return nil
	}
	for _, c := range component.All {
		if input.Instances(in.Infra.Spec.InfraComponents)[c.Name.Second()] && !in.Address(c.Name.Second()).IsValid() {
			all = append(all, finding.Warn(c.Ready, "OneInstanceServes").At(c.Name.Field("replicas")).Set(finding.Values{c.Name.Field("replicas"): 1}).
				Say("one %s instance: a node's failure stops %s; free one address of networkConfig.cidr %s that nothing leases or reserves, or set %s.replicas: 1", strings.TrimSuffix(c.Kind, "Server"), c.Stops, in.CIDR, c.Name))
		}
	}
	return all
}

// router checks networkConfig.gateway, which must be a host of the VLAN.
func router(in apps.Published) []finding.Finding {
	usable, written := ipam.Usable(in.CIDR), in.Infra.Spec.NetworkConfig.Gateway
	if written == "" || usable.Contains(in.Gateway) {
		return nil
	}
	return []finding.Finding{wrongAt("InvalidGateway", subject.FieldGateway).
		Say("networkConfig.gateway %s is not a host address in %s; set one of %s, or omit the gateway on an isolated VLAN", written, in.CIDR, usable)}
}

// ownResolvers finds our own addresses in dnsServers: our DNS would query itself, and our other services resolve no names.
func ownResolvers(in apps.Published) (all []finding.Finding) {
	resolvers := in.Infra.Spec.NetworkConfig.DNSServers
	for _, server := range resolvers {
		a, err := netip.ParseAddr(string(server))
		for _, c := range component.All {
			if err != nil || !c.Wanted(in.Infra.Spec.InfraComponents).Enabled || !slices.Contains(in.Addresses(c.Name), a) {
				continue
			}
			all = append(all, wrongAt("InvalidDNSServer", subject.FieldResolvers).Set(finding.Values{subject.FieldResolvers: but(resolvers, server)}).
				Say("networkConfig.dnsServers has %s, which is this Infra's own %s; list the resolvers for all other names, e.g. 10.0.0.53, or omit dnsServers to use the node's", a, c.NoResolver))
		}
	}
	return all
}

// overCaptured finds routes that would bypass the proxy.
func overCaptured(in apps.Published) (all []finding.Finding) {
	routes := in.Infra.Spec.NetworkConfig.Routes
	for _, r := range routes {
		for _, c := range in.CapturedAddresses {
			if string(r.Destination) == desired.HostRoute(c.IP) {
				all = append(all, wrongAt("InvalidRoute", subject.FieldRoutes).Set(finding.Values{subject.FieldRoutes: but(routes, r)}).
					Say("networkConfig.routes has %s, which leads to the proxy at %s; remove it", r.Destination, in.Address(component.Proxy)))
			}
		}
	}
	return all
}
