package check

import (
	"net/netip"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/subject"
	"github.com/cldmnky/oooi/internal/valid"
)

// Subnet checks networkConfig.cidr, without which nothing can be planned. The API server checks it too, but not in a file for render.
func Subnet(in input.Input) []finding.Finding {
	const example = "write the VLAN's network, e.g. 192.168.100.0/24"
	refuse := finding.Refuse(v1alpha1.ConditionAccepted, "InvalidCIDR").At(subject.FieldCIDR)
	text := in.Infra.Spec.NetworkConfig.CIDR
	cidr, err := netip.ParsePrefix(string(text))
	switch {
	case text == "":
		return []finding.Finding{refuse.Say("networkConfig.cidr is not set; %s", example)}
	case err != nil:
		return []finding.Finding{refuse.Say("networkConfig.cidr %q is not a network; %s", text, example)}
	case cidr != cidr.Masked():
		return []finding.Finding{refuse.Set(finding.Values{subject.FieldCIDR: cidr.Masked().String()}).Say("networkConfig.cidr %s has host bits; its network is %s", cidr, cidr.Masked())}
	case !valid.VLAN(cidr):
		return []finding.Finding{refuse.Say("networkConfig.cidr %s cannot be a VLAN's network; %s", cidr, example)}
	case cidr.Addr().Is6() && input.Enabled(in.Infra.Spec.InfraComponents.DHCP.Enabled):
		return []finding.Finding{refuse.Set(finding.Values{subject.FieldDHCP: false}).Say("networkConfig.cidr %s is IPv6, which our DHCP server does not support; set infraComponents.dhcp.enabled: false", cidr)}
	}
	return nil
}

// overlaps: our pods cannot tell a VLAN from a network of the management cluster with the same addresses, nor can workers tell it from one
// of the hosted cluster.
func overlaps(in apps.Published) []finding.Finding {
	refuse := func() finding.Builder { return finding.Refuse(v1alpha1.ConditionAccepted, "CIDROverlapsNetwork") }
	for _, network := range in.Settings.ClusterNetworks() {
		if in.CIDR.Overlaps(network) {
			return []finding.Finding{refuse().At(subject.FieldCIDR).Set(elsewhere(in)).
				Say("networkConfig.cidr %s overlaps the management cluster's pod or service network %s: our pods could not tell them apart; give the VLAN another network (delete and recreate an existing Infra)", in.CIDR, network)}
		}
	}
	var all []finding.Finding
	for _, n := range hostedNetworks(in) {
		if in.CIDR.Overlaps(n.prefix) {
			all = append(all, refuse().In(endpoint.Object(in.HostedCluster)).At(n.field).Set(hostedElsewhere(in, n.field)).
				Say("networkConfig.cidr %s overlaps the hosted cluster's %s %s: workers could not tell them apart; recreate the HostedCluster with another network, or give the VLAN another network", in.CIDR, n.field, n.prefix))
		}
	}
	return all
}

// elsewhere suggests another network for the VLAN.
func elsewhere(in apps.Published) finding.Values {
	free, ok := ipam.FreeNetwork(in.CIDR.Bits(), known(in)...)
	if !ok {
		return finding.Values{}
	}
	values := finding.Values{subject.FieldCIDR: free.String()}
	if in.Gateway.IsValid() {
		values[subject.FieldGateway] = ipam.Rebase(in.Gateway, free).String()
	}
	return values
}

// hostedElsewhere suggests a field of the HostedCluster with other networks in place of those that overlap the VLAN. They are computed for
// all fields in the same way, so that those of different fields do not overlap.
func hostedElsewhere(in apps.Published, field string) finding.Values {
	known := known(in)
	var entries []any
	for _, n := range hostedNetworks(in) {
		if in.CIDR.Overlaps(n.prefix) {
			free, ok := ipam.FreeNetwork(n.prefix.Bits(), known...)
			if !ok {
				return finding.Values{}
			}
			n.prefix, known = free, append(known, free)
		}
		if n.field == field {
			entries = append(entries, n.entry())
		}
	}
	return finding.Values{field: entries}
}

// known are all networks that we know; the VLAN's is the first.
func known(in apps.Published) []netip.Prefix {
	all := append([]netip.Prefix{in.CIDR}, in.Settings.ClusterNetworks()...)
	if in.HostedCluster != nil {
		for _, n := range endpoint.NetworksOf(in.HostedCluster) {
			all = append(all, input.Prefixes(n.CIDRs...)...)
		}
	}
	if at := endpoint.Advertised(in.HostedCluster); at.IsValid() {
		all = append(all, netip.PrefixFrom(at, at.BitLen()))
	}
	return append(all, input.ClientNetworks(in.Infra)...)
}

type hostedNetwork struct {
	field      string
	prefix     netip.Prefix
	hostPrefix int32 // of clusterNetwork, if set
}

func (n hostedNetwork) entry() map[string]any {
	entry := map[string]any{"cidr": n.prefix.String()}
	if n.hostPrefix != 0 {
		entry["hostPrefix"] = n.hostPrefix
	}
	return entry
}

// hostedNetworks are the hosted cluster's own, without the machines' network.
func hostedNetworks(in apps.Published) (all []hostedNetwork) {
	if in.HostedCluster == nil {
		return nil
	}
	pods := in.HostedCluster.Spec.Networking.ClusterNetwork
	for _, n := range endpoint.NetworksOf(in.HostedCluster) {
		for i, text := range n.CIDRs {
			p, err := netip.ParsePrefix(text)
			if err != nil || n.Name == endpoint.MachineNetwork {
				continue
			}
			hosted := hostedNetwork{field: "spec.networking." + n.Name, prefix: p.Masked()}
			if n.Name == endpoint.ClusterNetwork && i < len(pods) {
				hosted.hostPrefix = pods[i].HostPrefix
			}
			all = append(all, hosted)
		}
	}
	return all
}

// clients must not be on the management cluster's networks, or answers to its pods would leave through the VLAN. With clients everywhere
// (0.0.0.0/0) there is no conflict, because routing is by source address.
func clients(in apps.Published) []finding.Finding {
	var all []finding.Finding
	for _, text := range in.Infra.Spec.NetworkConfig.ClientCIDRs {
		client, err := netip.ParsePrefix(string(text))
		if err != nil || client.Bits() == 0 {
			continue
		}
		for _, cluster := range in.Settings.ClusterNetworks() {
			if client.Overlaps(cluster) {
				all = append(all, finding.Refuse(v1alpha1.ConditionAccepted, "ClientCIDROverlapsCluster").
					At("spec.networkConfig.clientCIDRs").Set(finding.Values{"spec.networkConfig.clientCIDRs": but(in.Infra.Spec.NetworkConfig.ClientCIDRs, text)}).
					Say("networkConfig.clientCIDRs has %s, which overlaps the management cluster's network %s; list the clients' own networks", client, cluster))
			}
		}
	}
	return all
}
