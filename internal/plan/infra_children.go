package plan

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"time"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	acmeta "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	ac "github.com/cldmnky/oooi/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
)

// Defaults that the children's schemas have too; said here because a duration cannot be left out.
const (
	leaseTime = 24 * time.Hour // an outage of an hour must not cost workers their address
	cacheTTL  = time.Hour
)

// componentPlan is one component: its child, and what the child needs beside its own namespace's.
type componentPlan struct {
	name    string
	enabled bool
	objects []runtime.ApplyConfiguration
}

func (v *view) dhcp() componentPlan {
	c, child := v.Infra.Spec.InfraComponents.DHCP, names.DHCPServer(v.Infra.Name)
	p := componentPlan{name: string(ipam.DHCP), enabled: enabled(c.Enabled)}
	if !p.enabled {
		return p
	}
	attachment, derived := v.attachment(child, v.address(ipam.DHCP))
	p.want(derived)
	p.objects = append(p.objects, ac.DHCPServer(child, v.Infra.Namespace).WithLabels(v.labels()).WithAnnotations(v.withNodes(c.Placement)).WithOwnerReferences(v.owner()).
		WithSpec(applied[ac.DHCPServerSpecApplyConfiguration](v.dhcpSpec(attachment))))
	p.objects = append(p.objects, v.dhcpAccess(child)...)
	return p
}

func (v *view) dhcpSpec(attachment v1alpha1.Attachment) v1alpha1.DHCPServerSpec {
	n, c := v.Infra.Spec.NetworkConfig, v.Infra.Spec.InfraComponents.DHCP
	return v1alpha1.DHCPServerSpec{
		NetworkConfig: v1alpha1.DHCPNetworkConfig{
			Attachment: attachment, CIDR: n.CIDR, ServerIP: ipv4(v.address(ipam.DHCP)), Gateway: v1alpha1.IPv4Address(n.Gateway),
			DNSServers: v.resolvers(), NTPServers: n.NTPServers, MTU: v.mtu(), Domain: v1alpha1.DNSName(v.domain), SearchDomains: v.searchDomains(), Routes: v.routes(),
		},
		LeaseConfig: v1alpha1.DHCPLeaseConfig{
			RangeStart: ipv4(v.assigned.Pool.First), RangeEnd: ipv4(v.assigned.Pool.Last), LeaseTime: *orDefault(c.LeaseTime, metav1.Duration{Duration: leaseTime}),
		},
		ExcludeRanges: v.excludeRanges(), Reservations: c.Reservations, UnknownClients: orElse(c.UnknownClients, v1alpha1.UnknownClientsPool),
		Options: c.Options, Relays: c.Relays, VMNamespace: v1alpha1.ObjectName(v.vmNamespace()), Image: c.Image, Placement: c.Placement,
	}
}

// resolvers are our DNS; without it, those that the user gave.
func (v *view) resolvers() []v1alpha1.IPv4Address {
	if enabled(v.Infra.Spec.InfraComponents.DNS.Enabled) {
		return []v1alpha1.IPv4Address{ipv4(v.address(ipam.DNS))}
	}
	var all []v1alpha1.IPv4Address
	for _, text := range v.Infra.Spec.NetworkConfig.DNSServers {
		if a, err := netip.ParseAddr(string(text)); err == nil && a.Is4() {
			all = append(all, ipv4(a))
		}
	}
	return all
}

func (v *view) mtu() int32 {
	if written := v.Infra.Spec.NetworkConfig.MTU; written != 0 {
		return written
	}
	return v.vlan.config.MTU()
}

func (v *view) searchDomains() []v1alpha1.DNSName {
	if written := v.Infra.Spec.NetworkConfig.SearchDomains; len(written) > 0 {
		return written
	}
	return []v1alpha1.DNSName{v1alpha1.DNSName(v.domain)}
}

// routes are the user's, and one to the proxy for each literal that it carries.
func (v *view) routes() []v1alpha1.Route {
	all := slices.Clone(v.Infra.Spec.NetworkConfig.Routes)
	for _, c := range v.captured {
		all = append(all, v1alpha1.Route{Destination: v1alpha1.CIDR(host(c.IP)), Gateway: ipv4(v.address(ipam.Proxy))})
	}
	return all
}

func (v *view) excludeRanges() []v1alpha1.AddressRange {
	var all []v1alpha1.AddressRange
	for _, r := range v.assigned.Excluded {
		all = append(all, v1alpha1.AddressRange{Start: ipv4(r.First), End: ipv4(r.Last)})
	}
	return all
}

// vmNamespace is where HyperShift keeps the workers' VirtualMachines: beside their control plane.
func (v *view) vmNamespace() string {
	if v.platform() == nil {
		return ""
	}
	return v.ControlPlaneNamespace()
}

// leasesByReservation says whether the VLAN's workers are none of KubeVirt's, whose MACs are known: each needs a reservation.
func (v *view) leasesByReservation() bool { return v.HostedCluster != nil && v.vmNamespace() == "" }

func (v *view) platform() *hyperv1.KubevirtPlatformSpec {
	if v.HostedCluster == nil || v.HostedCluster.Spec.Platform.Type != hyperv1.KubevirtPlatform {
		return nil
	}
	if v.HostedCluster.Spec.Platform.Kubevirt == nil {
		return &hyperv1.KubevirtPlatformSpec{}
	}
	return v.HostedCluster.Spec.Platform.Kubevirt
}

func (v *view) dns() componentPlan {
	c, child := v.Infra.Spec.InfraComponents.DNS, names.DNSServer(v.Infra.Name)
	p := componentPlan{name: string(ipam.DNS), enabled: enabled(c.Enabled)}
	if !p.enabled {
		return p
	}
	attachment, derived := v.attachment(child, v.address(ipam.DNS))
	p.want(derived)
	p.objects = append(p.objects, ac.DNSServer(child, v.Infra.Namespace).WithLabels(v.labels()).WithAnnotations(v.withNodes(c.Placement)).WithOwnerReferences(v.owner()).
		WithSpec(applied[ac.DNSServerSpecApplyConfiguration](v.dnsSpec(attachment))))
	return p
}

func (v *view) dnsSpec(attachment v1alpha1.Attachment) v1alpha1.DNSServerSpec {
	n, c := v.Infra.Spec.NetworkConfig, v.Infra.Spec.InfraComponents.DNS
	spec := v1alpha1.DNSServerSpec{
		NetworkConfig:       v1alpha1.DNSNetworkConfig{Attachment: attachment, ServerIP: ip(v.address(ipam.DNS)), SecondaryNetworkCIDR: n.CIDR, ClientCIDRs: n.ClientCIDRs},
		HostedClusterDomain: v1alpha1.DNSName(v.domain), DeniedZones: v.Settings.deniedZones(), UpstreamDNS: n.DNSServers,
		CacheTTL: metav1.Duration{Duration: cacheTTL}, Image: c.Image, Placement: c.Placement,
	}
	if !enabled(v.Infra.Spec.InfraComponents.Proxy.Enabled) {
		spec.StaticEntries = entries(v.table.Records(netip.Addr{}))
		return spec
	}
	spec.StaticEntries = entries(v.table.Records(v.address(ipam.Proxy)))
	if proxy := v.Children.Proxy; proxy != nil {
		onPods, _ := netip.ParseAddr(proxy.Status.ServiceIP)
		spec.InternalEntries = entries(v.onPods().Records(onPods))
	}
	return spec
}

// onPods are the endpoints that the pod network may ask for; all of them are reached through the proxy there.
func (v *view) onPods() endpoint.Table {
	onPods := endpoint.Table{}
	for _, e := range v.table.Endpoints {
		if e.Views == v1alpha1.ViewVLANAndPods {
			e.Answers = nil
			onPods.Endpoints = append(onPods.Endpoints, e)
		}
	}
	return onPods
}

func entries(records []endpoint.Record) []v1alpha1.DNSEntry {
	var all []v1alpha1.DNSEntry
	for _, r := range records {
		all = append(all, v1alpha1.DNSEntry{Hostname: v1alpha1.DNSNameOrWildcard(r.Hostname), IP: ip(r.IP)})
	}
	return all
}

func (v *view) proxy() componentPlan {
	c, child := v.Infra.Spec.InfraComponents.Proxy, names.ProxyServer(v.Infra.Name)
	p := componentPlan{name: string(ipam.Proxy), enabled: enabled(c.Enabled)}
	if !p.enabled {
		return p
	}
	carried := []netip.Addr{v.address(ipam.Proxy)}
	for _, captured := range v.captured {
		carried = append(carried, captured.IP)
	}
	attachment, derived := v.attachment(child, carried...)
	p.want(derived)
	p.objects = append(p.objects, ac.ProxyServer(child, v.Infra.Namespace).WithLabels(v.labels()).WithAnnotations(v.withNodes(c.Placement)).WithOwnerReferences(v.owner()).
		WithSpec(applied[ac.ProxyServerSpecApplyConfiguration](v.proxySpec(attachment))))
	p.objects = append(p.objects, v.proxyAccess(child)...)
	p.objects = append(p.objects, v.policies(child)...)
	return p
}

func (v *view) proxySpec(attachment v1alpha1.Attachment) v1alpha1.ProxyServerSpec {
	c := v.Infra.Spec.InfraComponents.Proxy
	spec := v1alpha1.ProxyServerSpec{
		NetworkConfig: v1alpha1.ProxyNetworkConfig{Attachment: attachment, ServerIP: ip(v.address(ipam.Proxy)), CapturedAddresses: v.carried()},
		ProxyImage:    c.ProxyImage, ManagerImage: c.ManagerImage, Placement: c.Placement,
	}
	for _, e := range v.table.Endpoints {
		spec.Backends = append(spec.Backends, backend(e))
	}
	return spec
}

// carried are the literals that the proxy has beside its own address.
func (v *view) carried() []v1alpha1.CapturedAddress {
	var all []v1alpha1.CapturedAddress
	for _, captured := range v.captured {
		address := v1alpha1.CapturedAddress{IP: ip(captured.IP)}
		for _, port := range captured.Ports {
			address.Ports = append(address.Ports, v1alpha1.Port(port))
		}
		all = append(all, address)
	}
	return all
}

func backend(e endpoint.Endpoint) v1alpha1.ProxyBackend {
	b := v1alpha1.ProxyBackend{Name: e.Name, CatchAll: e.CatchAll, Port: v1alpha1.Port(e.Port), Protocol: e.Protocol, Views: e.Views}
	for i, h := range e.Hostnames {
		switch {
		case e.Protocol == v1alpha1.ProtocolTCP: // plain TCP carries no name
		case i == 0:
			b.Hostname = v1alpha1.DNSNameOrWildcard(h)
		default:
			b.AlternateHostnames = append(b.AlternateHostnames, v1alpha1.DNSNameOrWildcard(h))
		}
	}
	if e.Backend.Service != "" {
		b.TargetService, b.TargetNamespace, b.TargetPort = v1alpha1.ObjectName(e.Backend.Service), v1alpha1.ObjectName(e.Backend.Namespace), v1alpha1.Port(e.Backend.Port)
	}
	for _, a := range e.Backend.Addresses {
		b.TargetAddresses = append(b.TargetAddresses, a.String())
	}
	return b
}

// labels of everything that belongs to the Infra; they find what no ownerReference can hold, and tell the DHCP daemon
// whose leases it writes.
func (v *view) labels() map[string]string {
	return map[string]string{
		names.LabelInfra: v.Infra.Name, names.LabelInfraNamespace: v.Infra.Namespace, names.LabelOwnerUID: string(v.Infra.UID), names.LabelManagedBy: names.ManagedBy,
	}
}

func (v *view) owner() *acmeta.OwnerReferenceApplyConfiguration {
	return acmeta.OwnerReference().WithAPIVersion(v1alpha1.GroupVersion.String()).WithKind("Infra").WithName(v.Infra.Name).WithUID(v.Infra.UID).
		WithController(true).WithBlockOwnerDeletion(true)
}

func (p *componentPlan) want(derived *nad.ApplyConfiguration) {
	if derived != nil {
		p.objects = append(p.objects, derived)
	}
}

// applied turns a typed spec into an apply configuration. Every optional field of ours has omitempty, so what is not
// set is not claimed.
func applied[T any](spec any) *T {
	text, err := json.Marshal(spec)
	out := new(T)
	if err == nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		panic(fmt.Sprintf("%T does not become %T: %v", spec, out, err)) // both are generated from one type
	}
	return out
}

func orDefault[T any](value *T, otherwise T) *T {
	if value == nil {
		return &otherwise
	}
	return value
}

func ip(a netip.Addr) v1alpha1.IPAddress { return v1alpha1.IPAddress(text(a)) }

func ipv4(a netip.Addr) v1alpha1.IPv4Address { return v1alpha1.IPv4Address(text(a)) }

func text(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
