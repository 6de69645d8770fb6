package plan

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"

	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/names"
)

// InfraPlan is what one Infra becomes, and what its status says of what was derived.
type InfraPlan struct {
	Plan
	// Held means that nothing may change: nothing is applied and nothing pruned but what is Off; all else stays as it is.
	// The findings say why.
	Held bool
	// Off are the components that are switched off. To be rid of one, nothing of the rest needs to be right.
	Off []string
	// Addresses and Endpoints for status. Nil while Held: status keeps what it says.
	Addresses []v1alpha1.AssignedAddress
	Endpoints []v1alpha1.EndpointStatus
	// Given is to be remembered on the Infra before anything is made (AnnotationGiven). Empty while Held.
	Given string
	// Apps is what *.apps becomes; nil while it is off (which needs nothing of the rest to be right either), and while Held.
	Apps *Apps
}

// Infra says what one Infra becomes.
func Infra(in Input) InfraPlan {
	p := InfraPlan{Off: switchedOff(in.Infra.Spec.InfraComponents)}
	p.Find(finding.About(infraObject(in.Infra), slices.Concat(Permitted(in), in.network()))...)
	if p.Held = p.Refused(v1alpha1.ConditionAccepted); p.Held {
		return p
	}
	v := viewOf(in)
	p.Find(finding.About(infraObject(in.Infra), slices.Concat(v.acceptance(), v.vlan.findings(v), v.workers(), v.placement(), v.handedOut(), v.services(), v.resolution(), v.apps.found()))...)
	if p.Held = p.Refused(v1alpha1.ConditionAccepted, v1alpha1.ConditionNetworkReady, v1alpha1.ConditionEndpointsResolved); p.Held {
		return p
	}
	if v.apps != nil {
		p.Apps = &v.apps.plan
	}
	if copied := v.shared(); copied != nil {
		p.Want(copied)
	}
	for _, component := range []componentPlan{v.dhcp(), v.dns(), v.proxy()} {
		if component.enabled {
			p.Want(component.objects...)
			p.Addresses = append(p.Addresses, v1alpha1.AssignedAddress{Component: component.name, IP: v1alpha1.IPAddress(v.address(ipam.Component(component.name)).String())})
		}
	}
	p.Endpoints, p.Given = v.endpointStatus(), v.memorable(p.Addresses)
	return p
}

// view is an Infra with everything that follows from its input, derived once.
type view struct {
	Input
	cidr     netip.Prefix
	gateway  netip.Addr
	table    endpoint.Table
	domain   string
	vlan     vlan
	near     []near
	assigned ipam.Assignment
	captured []endpoint.Captured
	refused  []finding.Finding // literals that cannot be captured
	apps     *appsView         // nil while off
}

func viewOf(in Input) *view {
	v := &view{Input: in, vlan: vlanOf(in)}
	v.readNetwork()
	cp := in.controlPlane()
	v.domain = cp.Domain()
	v.table = endpoint.Read(cp).With(in.Infra.Spec.ExtraEndpoints, in.Infra.Namespace, in.Settings.ExtraEndpointCIDRs)
	v.near = in.onSameLayer2(v.vlan.config)
	v.assigned = ipam.Assign(v.request())
	if enabled(in.Infra.Spec.InfraComponents.Proxy.Enabled) {
		v.captured, v.refused = v.table.Captured(endpoint.VLAN{CIDR: v.cidr, VIP: v.address(ipam.Proxy), Cluster: in.Settings.clusterNetworks()})
	}
	v.apps = v.publish()
	return v
}

func (v *view) readNetwork() {
	v.cidr, _ = netip.ParsePrefix(string(v.Infra.Spec.NetworkConfig.CIDR))
	v.gateway, _ = netip.ParseAddr(string(v.Infra.Spec.NetworkConfig.Gateway))
}

func (in Input) controlPlane() endpoint.ControlPlane {
	dns := in.Infra.Spec.InfraComponents.DNS
	return endpoint.ControlPlane{
		Namespace: in.ControlPlaneNamespace(), HostedCluster: in.HostedCluster, HostedControlPlane: in.HostedControlPlane, ClusterName: string(dns.ClusterName), BaseDomain: string(dns.BaseDomain),
		Services: in.Services, Routes: in.Routes, Policies: in.NetworkPolicies,
	}
}

func (s Settings) clusterNetworks() []netip.Prefix {
	return append(append([]netip.Prefix(nil), s.PodCIDRs...), s.ServiceCIDRs...)
}

func (v *view) address(c ipam.Component) netip.Addr { return v.assigned.Addresses[c] }

// acceptance judges what the user wrote.
func (v *view) acceptance() []finding.Finding {
	all := append(ImageOverrides(v.Settings, WrittenImages(v.Infra)), v.sharing()...)
	all = append(all, v.overlaps()...)
	all = append(all, v.clientNetworks()...)
	all = append(all, v.limits()...)
	all = append(all, v.addressing()...)
	all = append(all, v.capacity()...)
	if hc := v.HostedCluster; hc != nil && Elsewhere(hc.Spec.Platform.Type) {
		all = append(all, finding.Wrong(v1alpha1.ConditionAccepted, "ExternalInfra").In(endpoint.Object(hc)).At("spec.platform.type").
			Say("the machines of HostedCluster %s/%s are %s's, which are on no VLAN of this cluster; an Infra serves VirtualMachines of this cluster (KubeVirt), and machines that are on its VLANs (Agent, None)", hc.Namespace, hc.Name, hc.Spec.Platform.Type))
	}
	if v.external() {
		const field = "spec.platform.kubevirt.credentials"
		all = append(all, finding.Wrong(v1alpha1.ConditionAccepted, "ExternalInfra").
			In(endpoint.Object(v.HostedCluster)).At(field).Set(finding.Values{field: nil}).
			Say("HostedCluster %s/%s runs its VirtualMachines on another cluster (spec.platform.kubevirt.credentials): their VLAN is there, and so must the Infra be", v.HostedCluster.Namespace, v.HostedCluster.Name))
	}
	return all
}

// clientNetworks must not be the management cluster's: answers to its pods would leave through the VLAN. With clients
// everywhere the source address decides, so that is no conflict.
func (v *view) clientNetworks() []finding.Finding {
	var all []finding.Finding
	for _, text := range v.Infra.Spec.NetworkConfig.ClientCIDRs {
		client, err := netip.ParsePrefix(string(text))
		if err != nil || client.Bits() == 0 {
			continue
		}
		for _, cluster := range v.Settings.clusterNetworks() {
			if client.Overlaps(cluster) {
				all = append(all, finding.Wrong(v1alpha1.ConditionAccepted, "ClientCIDROverlapsCluster").
					At("spec.networkConfig.clientCIDRs").Set(finding.Values{"spec.networkConfig.clientCIDRs": but(v.Infra.Spec.NetworkConfig.ClientCIDRs, text)}).
					Say("networkConfig.clientCIDRs has %s, which overlaps the management cluster's network %s; list the clients' own networks", client, cluster))
			}
		}
	}
	return all
}

// but is a list without one element, for a change; an empty list is no field.
func but[T comparable](list []T, one T) any {
	left := slices.DeleteFunc(slices.Clone(list), func(e T) bool { return e == one })
	if len(left) == 0 {
		return nil
	}
	return left
}

// limits of the children's schemas that an Infra's own do not imply.
func (v *view) limits() []finding.Finding {
	const mostNames = 256
	var all []finding.Finding
	if n := len(v.table.Names()); n > mostNames {
		all = append(all, finding.Wrong(v1alpha1.ConditionAccepted, "TooManyHostnames").At("spec.extraEndpoints").
			Say("extraEndpoints and control plane have %d hostnames together; %d are possible, a wildcard counts once", n, mostNames))
	}
	if n := len(v.assigned.Excluded); n > mostExclusions {
		all = append(all, finding.Wrong(v1alpha1.ConditionAccepted, "TooManyExclusions").At("spec.infraComponents.dhcp.excludeRanges").
			Say("%d separate ranges are kept from DHCP (dhcp.excludeRanges, servers, neighbours); %d are possible, join some", n, mostExclusions))
	}
	return append(all, v.burden()...)
}

// mostExclusions is what a DHCPServer takes: more than a /23 can have.
const mostExclusions = 256

// burden: the addresses of a newcomer are kept from the DHCP of those who were there before. Where one of them cannot take
// more, the newcomer is refused, and nobody's DHCP is stopped by an Infra of somebody else's.
func (v *view) burden() []finding.Finding {
	ours := slices.Concat(slices.Collect(maps.Values(v.assigned.Addresses)), v.assigned.Spare)
	for _, n := range v.near {
		kept := n.Children.exclusions()
		if !n.older || len(kept)+len(ours) <= mostExclusions {
			continue
		}
		for _, a := range ours {
			kept = append(kept, ipam.Single(a).Intersect(n.Children.pool()))
		}
		if all := ipam.Merge(kept); len(all) > mostExclusions && len(all) > len(n.Children.exclusions()) {
			return []finding.Finding{finding.Wrong(v1alpha1.ConditionAccepted, "TooManyExclusions").At("spec.infraComponents").
				Say("another Infra on this VLAN, which leases addresses, would have to keep %d separate ranges from DHCP, and %d are possible; set serverIPs that lie side by side with those of others, or outside its range", len(all), mostExclusions)}
		}
	}
	return nil
}

// resolution is what is known of the endpoints.
func (v *view) resolution() []finding.Finding {
	if f, missing := v.missingControlPlane(); missing {
		return []finding.Finding{f}
	}
	all := append(v.table.Findings(), v.refused...)
	all = append(all, v.misnamed()...)
	all = append(all, v.capturedByNeighbours()...)
	all = append(all, v.changedProtocols()...)
	all = append(all, v.passthrough()...)
	all = append(all, v.throughProxy()...)
	if !enabled(v.Infra.Spec.InfraComponents.DHCP.Enabled) {
		for _, c := range v.captured {
			all = append(all, finding.Note(v1alpha1.ConditionEndpointsResolved, "CapturedAddressNeedsRoute").
				At(fieldDHCP).Change(v.withDHCP()...).
				Say("workers dial %s, and DHCP is off: give each worker the route: ip route add %s via %s", c.IP, host(c.IP), v.address(ipam.Proxy)))
		}
	}
	return all
}

func (v *view) missingControlPlane() (finding.Finding, bool) {
	waiting := finding.Wait(v1alpha1.ConditionEndpointsResolved, "WaitingForControlPlane").At("spec.hostedClusterRef")
	key, known := v.HostedClusterKey()
	switch {
	case known && v.HostedCluster == nil:
		return waiting.Say("waiting for HostedCluster %s", key), true
	case !known && v.HostedControlPlane != nil:
		return waiting.Say("waiting for HostedControlPlane %s/%s to name its HostedCluster in annotation %s", v.HostedControlPlane.Namespace, v.HostedControlPlane.Name, names.AnnotationHostedCluster), true
	}
	return finding.Finding{}, false
}

// changedProtocols: Envoy drains a port whose listener changes its kind, and every stream on it.
func (v *view) changedProtocols() []finding.Finding {
	var all []finding.Finding
	for _, e := range v.table.Endpoints {
		for _, b := range v.Children.otherwise(e) {
			all = append(all, finding.Wrong(v1alpha1.ConditionEndpointsResolved, "ProtocolChanged").At("spec.extraEndpoints").
				Say("%s wants %s on port %d, where %s has %s: that would break its open connections; use another port, or remove %s first", e.Name, e.Protocol, e.Port, b.Name, b.Protocol, b.Name))
		}
	}
	return all
}

// otherwise are the backends that have an endpoint's port, live, with another protocol.
func (c Children) otherwise(e endpoint.Endpoint) []v1alpha1.ProxyBackend {
	if c.Proxy == nil {
		return nil
	}
	var all []v1alpha1.ProxyBackend
	for _, b := range c.Proxy.Spec.Backends {
		if int32(b.Port) == e.Port && b.Protocol != e.Protocol {
			all = append(all, b)
		}
	}
	return all
}

func (v *view) endpointStatus() []v1alpha1.EndpointStatus {
	var all []v1alpha1.EndpointStatus
	for _, e := range v.table.Endpoints {
		s := v1alpha1.EndpointStatus{Name: e.Name, Port: v1alpha1.Port(e.Port), Hostnames: e.Hostnames, Backend: e.Backend.String(), Source: e.Source}
		for _, literal := range e.Literals {
			s.Hostnames = append(s.Hostnames[:len(s.Hostnames):len(s.Hostnames)], literal.String())
		}
		all = append(all, s)
	}
	return all
}

func switchedOn(c v1alpha1.InfraComponents) map[ipam.Component]bool {
	return map[ipam.Component]bool{ipam.DHCP: enabled(c.DHCP.Enabled), ipam.DNS: enabled(c.DNS.Enabled), ipam.Proxy: enabled(c.Proxy.Enabled)}
}

func switchedOff(c v1alpha1.InfraComponents) []string {
	var off []string
	for component, on := range switchedOn(c) {
		if !on {
			off = append(off, string(component))
		}
	}
	slices.Sort(off)
	return off
}

func enabled(flag *bool) bool { return ptr.Deref(flag, true) }

// host is an address as a network of its own.
func host(a netip.Addr) string { return a.String() + "/" + strconv.Itoa(a.BitLen()) }
