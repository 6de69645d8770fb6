package plan

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/openshift/hypershift/api/hypershift/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/nad"
)

// Fields that findings are about.
const (
	fieldCIDR           = ipam.FieldCIDR
	fieldGateway        = "spec.networkConfig.gateway"
	fieldRoutes         = "spec.networkConfig.routes"
	fieldNAD            = "spec.networkConfig.networkAttachmentDefinition"
	fieldMTU            = "spec.networkConfig.mtu"
	fieldNTP            = "spec.networkConfig.ntpServers"
	fieldResolvers      = "spec.networkConfig.dnsServers"
	fieldUnknownClients = "spec.infraComponents.dhcp.unknownClients"
	fieldDHCP           = "spec.infraComponents.dhcp.enabled"
	fieldDNS            = "spec.infraComponents.dns.enabled"
	fieldProxy          = "spec.infraComponents.proxy.enabled"
	fieldControlPlane   = "spec.infraComponents.proxy.controlPlaneNamespace"
)

func infraObject(infra *v1alpha1.Infra) finding.Object {
	return finding.Object{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Infra", Namespace: infra.Namespace, Name: infra.Name}
}

func nadObject(n *nad.NetworkAttachmentDefinition) finding.Object {
	return finding.Object{APIVersion: nad.GroupVersion.String(), Kind: "NetworkAttachmentDefinition", Namespace: n.Namespace, Name: n.Name}
}

// Elsewhere says whether a platform's machines are on no VLAN of the management cluster, but in a cloud.
func Elsewhere(platform v1beta1.PlatformType) bool {
	return slices.Contains([]v1beta1.PlatformType{v1beta1.AWSPlatform, v1beta1.AzurePlatform, v1beta1.IBMCloudPlatform, v1beta1.PowerVSPlatform, v1beta1.OpenStackPlatform}, platform)
}

// external says whether the workers' VirtualMachines run on another cluster, whose VLAN is not ours.
func (v *view) external() bool {
	if p := v.platform(); p != nil && p.Credentials != nil {
		return true
	}
	return slices.ContainsFunc(v.pools(), func(p *v1beta1.NodePool) bool {
		s := p.Status.Platform
		return s != nil && s.KubeVirt != nil && s.KubeVirt.Credentials != nil
	})
}

// overlaps: a VLAN that shares addresses with a network of the management cluster cannot be told from it by our pods, and
// one that shares them with the hosted cluster's cannot be by its workers.
func (v *view) overlaps() []finding.Finding {
	wrong := func() finding.Builder { return finding.Wrong(v1alpha1.ConditionAccepted, "CIDROverlapsNetwork") }
	for _, network := range v.Settings.clusterNetworks() {
		if v.cidr.Overlaps(network) {
			return []finding.Finding{wrong().At(fieldCIDR).Set(v.elsewhere()).
				Say("networkConfig.cidr %s overlaps the management cluster's pod or service network %s: our pods could not tell them apart; give the VLAN another network (an Infra that exists has to be made anew)", v.cidr, network)}
		}
	}
	var all []finding.Finding
	for _, n := range v.hostedNetworks() {
		if v.cidr.Overlaps(n.prefix) {
			all = append(all, wrong().In(endpoint.Object(v.HostedCluster)).At(n.field).Set(v.hostedElsewhere(n.field)).
				Say("networkConfig.cidr %s overlaps the hosted cluster's %s %s: workers could not tell them apart; make the HostedCluster anew with another network, or give the VLAN one", v.cidr, n.field, n.prefix))
		}
	}
	return all
}

// elsewhere is another network for the VLAN.
func (v *view) elsewhere() finding.Values {
	free, ok := ipam.FreeNetwork(v.cidr.Bits(), v.known()...)
	if !ok {
		return finding.Values{}
	}
	values := finding.Values{fieldCIDR: free.String()}
	if v.gateway.IsValid() {
		values[fieldGateway] = ipam.Rebase(v.gateway, free).String()
	}
	return values
}

// hostedElsewhere is a field of the HostedCluster with other networks for those that the VLAN lies in. They are the same
// whichever field is asked for, so that no two of them meet.
func (v *view) hostedElsewhere(field string) finding.Values {
	known := v.known()
	var entries []any
	for _, n := range v.hostedNetworks() {
		if v.cidr.Overlaps(n.prefix) {
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

// known are all networks that we know of; the VLAN's is the first.
func (v *view) known() []netip.Prefix {
	all := append([]netip.Prefix{v.cidr}, v.Settings.clusterNetworks()...)
	if v.HostedCluster != nil {
		for _, n := range endpoint.NetworksOf(v.HostedCluster) {
			all = append(all, Prefixes(n.CIDRs...)...)
		}
	}
	if at := endpoint.Advertised(v.HostedCluster); at.IsValid() {
		all = append(all, netip.PrefixFrom(at, at.BitLen()))
	}
	return append(all, clientNetworks(v.Infra)...)
}

type hostedNetwork struct {
	field      string
	prefix     netip.Prefix
	hostPrefix int32 // of clusterNetwork, where it is written
}

func (n hostedNetwork) entry() map[string]any {
	entry := map[string]any{"cidr": n.prefix.String()}
	if n.hostPrefix != 0 {
		entry["hostPrefix"] = n.hostPrefix
	}
	return entry
}

// hostedNetworks are the hosted cluster's own, as its specification has them or, before it is created, will.
func (v *view) hostedNetworks() (all []hostedNetwork) {
	if v.HostedCluster == nil {
		return nil
	}
	add := func(field, text string, hostPrefix int32) {
		if p, err := netip.ParsePrefix(text); err == nil {
			all = append(all, hostedNetwork{field, p.Masked(), hostPrefix})
		}
	}
	const pods, services = "spec.networking.clusterNetwork", "spec.networking.serviceNetwork"
	n := v.HostedCluster.Spec.Networking
	for _, e := range n.ClusterNetwork {
		add(pods, e.CIDR.String(), e.HostPrefix)
	}
	if len(n.ClusterNetwork) == 0 {
		add(pods, endpoint.DefaultClusterNetwork, 0)
	}
	for _, e := range n.ServiceNetwork {
		add(services, e.CIDR.String(), 0)
	}
	if len(n.ServiceNetwork) == 0 {
		add(services, endpoint.DefaultServiceNetwork, 0)
	}
	return all
}

// passthrough: applications under the management cluster's own *.apps are served by its router, which would have to reach
// the workers. HyperShift turns it on for each HostedCluster without a base domain, whatever was written, and means nothing to one
// whose applications have a domain of their own.
func (v *view) passthrough() []finding.Finding {
	const field = "spec.platform.kubevirt.baseDomainPassthrough"
	p, cp := v.platform(), v.controlPlane()
	if p == nil || cp.OwnApps() {
		return nil
	}
	says := "has"
	begin, based := finding.Fails, v.HostedCluster.Spec.DNS.BaseDomain != ""
	if !ptr.Deref(p.BaseDomainPassthrough, false) {
		if based || cp.Base() == "" { // no domain at all is another matter
			return nil
		}
		begin, says = finding.Note, "has no dns.baseDomain, and so HyperShift gives it"
	}
	found := begin(v1alpha1.ConditionEndpointsResolved, "BaseDomainPassthrough").In(endpoint.Object(v.HostedCluster)).At(field)
	if based {
		found = found.Set(finding.Values{field: false})
	}
	return []finding.Finding{found.
		Say("HostedCluster %s/%s %s baseDomainPassthrough: the management cluster's router would have to reach its workers, which the VLAN isolates, so *.apps stays dead; make it anew with a base domain of its own", v.HostedCluster.Namespace, v.HostedCluster.Name, says)}
}

// withDHCP turns our DHCP on, where the VLAN's addresses are of the family that it serves.
func (v *view) withDHCP() []finding.Change {
	if !v.cidr.Addr().Is4() {
		return nil
	}
	return []finding.Change{{Values: finding.Values{fieldDHCP: true}}}
}

// reachable says whether workers on the VLAN have a way to an address.
func (v *view) reachable(a netip.Addr) bool {
	return v.cidr.Contains(a) || v.gateway.IsValid() || slices.ContainsFunc(v.Infra.Spec.NetworkConfig.Routes, func(r v1alpha1.Route) bool {
		to, err := netip.ParsePrefix(string(r.Destination))
		return err == nil && to.Contains(a)
	})
}

// beyond are those of a list of addresses that workers have no way to.
func beyond[T ~string](v *view, addresses []T) []string {
	var all []string
	for _, text := range addresses {
		if a, err := netip.ParseAddr(string(text)); err == nil && !v.reachable(a) {
			all = append(all, string(text))
		}
	}
	return all
}

// handedOut judges what DHCP tells workers.
func (v *view) handedOut() []finding.Finding {
	if !enabled(v.Infra.Spec.InfraComponents.DHCP.Enabled) {
		return nil
	}
	return slices.Concat(v.clock(), v.upstreams())
}

// clock: Ignition's certificates and CSRs do not stand a clock that is minutes off.
func (v *view) clock() []finding.Finding {
	servers := v.Infra.Spec.NetworkConfig.NTPServers
	if v.gateway.IsValid() || len(beyond(v, servers)) < len(servers) {
		return nil
	}
	why := "no time server is handed out"
	if len(servers) > 0 {
		why = fmt.Sprintf("networkConfig.ntpServers %v lie outside %s", servers, v.cidr)
	}
	suggested := ipam.Usable(v.cidr).Last.String()
	return []finding.Finding{finding.Note(v1alpha1.ConditionNetworkReady, "NoTimeSource").
		At(fieldNTP). // whose address nobody here knows
		Say("%s and the VLAN has no gateway: workers keep the time of their host's clock, and certificates fail once it is minutes off; set networkConfig.ntpServers to a time server on the VLAN, e.g. at %s", why, suggested)}
}

// upstreams: without our DNS workers ask dnsServers themselves; with it our pods do, over the nodes' network.
func (v *view) upstreams() []finding.Finding {
	outside := beyond(v, v.Infra.Spec.NetworkConfig.DNSServers)
	switch {
	case len(outside) == 0:
		return nil
	case !enabled(v.Infra.Spec.InfraComponents.DNS.Enabled):
		return []finding.Finding{finding.Fails(v1alpha1.ConditionNetworkReady, "DNSServersUnreachable").
			At(fieldResolvers).Set(finding.Values{fieldDNS: true}).
			Say("networkConfig.dnsServers %v lie outside %s, which has no gateway, and DNS is off: workers cannot ask them; switch infraComponents.dns on, or set networkConfig.gateway", outside, v.cidr)}
	}
	return []finding.Finding{finding.Note(v1alpha1.ConditionNetworkReady, "DNSServersOutsideVLAN").
		At(fieldResolvers).
		Say("networkConfig.dnsServers %v lie outside %s, which has no gateway: our DNS asks them over the nodes' network; where nodes do not reach them, leave them out and the nodes' own resolvers are asked", outside, v.cidr)}
}
