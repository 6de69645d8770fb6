package workload

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	acmeta "k8s.io/client-go/applyconfigurations/meta/v1"
	acnetworking "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/plan/desired"
)

// APIService is the Service through which pods dial the management cluster's API.
var APIService = types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}

// openShiftDNS is the port on which OpenShift's DNS pods listen (cluster-dns-operator, assets/dns/daemonset.yaml).
const openShiftDNS = 5353

const dnsPort = 53

type transport struct {
	protocol corev1.Protocol
	port     int32
}

func tcp(port int32) transport { return transport{corev1.ProtocolTCP, port} }

func (t transport) compare(other transport) int {
	return cmp.Or(cmp.Compare(t.protocol, other.protocol), cmp.Compare(t.port, other.port))
}

func (t transport) policyPort() *acnetworking.NetworkPolicyPortApplyConfiguration {
	return policyPort(t.protocol, t.port)
}

// reach is what a pod may connect to on the pod network (docs/adr/0009-ways-out.md). Most network plugins judge a packet after a Service's
// address has been translated to a pod's or node's, some before: it has both. Whatever is not known makes it wider.
type reach struct {
	unknown    bool                       // the API's port is not known: everything is allowed
	anywhere   map[transport]bool         // at any address: selectors match no pod on the host's network, and addresses change
	namespaces map[string]bool            // all of their pods, at any port
	at         map[transport][]netip.Addr // one port of some addresses
}

// reaching allows the API, which every daemon watches.
func reaching(services []corev1.Service, endpoints []discoveryv1.EndpointSlice) reach {
	r := reach{anywhere: map[transport]bool{}, namespaces: map[string]bool{}, at: map[transport][]netip.Addr{}}
	api := serviceNamed(services, APIService)
	if api == nil {
		r.unknown = true
		return r
	}
	for _, p := range api.Spec.Ports {
		r.behind(api, p, endpoints)
		for _, a := range AddressesOf(api) {
			r.address(tcp(p.Port), a)
		}
	}
	r.unknown = len(r.anywhere) == 0
	return r
}

// behind allows, at any address, what the pods of a Service listen on for one of its ports.
func (r reach) behind(s *corev1.Service, port corev1.ServicePort, endpoints []discoveryv1.EndpointSlice) {
	for _, number := range desired.Listening(s, port, endpoints) {
		r.anywhere[transport{cmp.Or(port.Protocol, corev1.ProtocolTCP), number}] = true
	}
}

// dialled allows an address as it is dialled and, if it leads to a Service, what its pods listen on.
func dialled[T component.Server](r reach, t transport, a netip.Addr, in Child[T]) {
	r.address(t, a)
	for i := range in.Services {
		s := in.Services[i]
		if !in.Granted(s.Namespace) {
			s = unchosen(s)
		}
		for _, p := range ledTo(&s, netip.AddrPortFrom(a, uint16(t.port))) {
			r.behind(&s, p, in.EndpointSlices)
		}
	}
}

// unchosen is a Service, from a namespace without a grant, without what its author may choose: any external IP, any free node port.
func unchosen(s corev1.Service) corev1.Service {
	s.Spec.ExternalIPs, s.Spec.Ports = nil, slices.Clone(s.Spec.Ports)
	for i := range s.Spec.Ports {
		s.Spec.Ports[i].NodePort = 0
	}
	return s
}

func (r reach) address(t transport, a netip.Addr) { r.at[t] = append(r.at[t], a.Unmap()) }

// ledTo are the ports of a Service that an address and a port lead to: by one of the Service's addresses, or by its node port.
func ledTo(s *corev1.Service, a netip.AddrPort) []corev1.ServicePort {
	var all []corev1.ServicePort
	for _, p := range s.Spec.Ports {
		onNodes := p.NodePort != 0 && p.NodePort == int32(a.Port())
		if onNodes || p.Port == int32(a.Port()) && slices.Contains(AddressesOf(s), a.Addr().Unmap()) {
			all = append(all, p)
		}
	}
	return all
}

// Reaches says whether a server may dial a Service.
func (r References) Reaches(s *corev1.Service) bool {
	key := types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
	return key == APIService || slices.Contains(r.Services, key) ||
		slices.ContainsFunc(r.Addresses, func(a netip.AddrPort) bool { return len(ledTo(s, a)) > 0 })
}

// AddressesOf are the addresses that lead to a Service.
func AddressesOf(s *corev1.Service) []netip.Addr {
	texts := append(slices.Clone(s.Spec.ClusterIPs), s.Spec.ExternalIPs...)
	for _, i := range s.Status.LoadBalancer.Ingress {
		texts = append(texts, i.IP)
	}
	var all []netip.Addr
	for _, text := range texts {
		if a, err := netip.ParseAddr(text); err == nil {
			all = append(all, a.Unmap())
		}
	}
	return all
}

// rules of a NetworkPolicy. A rule without a peer allows any address, so there is one only if that is meant.
func (r reach) rules() []*acnetworking.NetworkPolicyEgressRuleApplyConfiguration {
	if r.unknown {
		return []*acnetworking.NetworkPolicyEgressRuleApplyConfiguration{acnetworking.NetworkPolicyEgressRule()}
	}
	open := acnetworking.NetworkPolicyEgressRule()
	for _, t := range slices.SortedFunc(maps.Keys(r.anywhere), transport.compare) {
		open.WithPorts(t.policyPort())
	}
	all := []*acnetworking.NetworkPolicyEgressRuleApplyConfiguration{open}
	if names := slices.Sorted(maps.Keys(r.namespaces)); len(names) > 0 {
		all = append(all, acnetworking.NetworkPolicyEgressRule().WithTo(namespaces(names).WithPodSelector(acmeta.LabelSelector())))
	}
	for _, t := range slices.SortedFunc(maps.Keys(r.at), transport.compare) {
		if r.anywhere[t] {
			continue
		}
		rule := acnetworking.NetworkPolicyEgressRule().WithPorts(t.policyPort())
		addresses := slices.SortedFunc(slices.Values(r.at[t]), netip.Addr.Compare)
		for _, a := range slices.Compact(addresses) {
			rule.WithTo(acnetworking.NetworkPolicyPeer().WithIPBlock(acnetworking.IPBlock().WithCIDR(netip.PrefixFrom(a, a.BitLen()).String())))
		}
		all = append(all, rule)
	}
	return all
}

// resolvers allows DNS at any address, because the nodes' own resolvers are not known.
func (r reach) resolvers(in Child[*v1alpha1.DNSServer]) reach {
	for _, protocol := range []corev1.Protocol{corev1.ProtocolUDP, corev1.ProtocolTCP} {
		r.anywhere[transport{protocol, dnsPort}], r.anywhere[transport{protocol, openShiftDNS}] = true, true
		for _, a := range upstreams(in.Server.Spec) {
			dialled(r, transport{protocol, dnsPort}, a.Addr(), in)
		}
	}
	return r
}

// upstreams are the resolvers that a DNSServer names.
func upstreams(spec v1alpha1.DNSServerSpec) (all []netip.AddrPort) {
	for _, text := range spec.UpstreamDNS {
		if a, err := netip.ParseAddr(string(text)); err == nil {
			all = append(all, netip.AddrPortFrom(a, dnsPort))
		}
	}
	return all
}

// backends allows the pods of the Services' namespaces, because Envoy dials no others (internal/proxy/endpoints), at any port, because the
// ports change with the control plane. HyperShift runs none of its pods on the host's network; in other namespaces, users may.
func (r reach) backends(in Child[*v1alpha1.ProxyServer]) reach {
	services, addresses := targets(in.Server.Spec)
	for key, ports := range services {
		r.namespaces[key.Namespace] = true
		s := serviceNamed(in.Services, key)
		if s == nil || s.Namespace == in.AllowedNamespace {
			continue
		}
		for _, p := range s.Spec.Ports {
			if slices.Contains(ports, p.Port) {
				r.behind(s, p, in.EndpointSlices)
			}
		}
	}
	vlan, _ := vlanOf(in)
	for _, a := range addresses {
		if vlan.Contains(a.Addr().Unmap()) && !endpoint.Allows(in.Settings.ExtraEndpointCIDRs, a.Addr()) {
			continue // it leads nowhere on the pod network
		}
		dialled(r, tcp(int32(a.Port())), a.Addr(), in)
	}
	return r
}

// targets are the Services that a ProxyServer names, with the ports of each, and the addresses.
func targets(spec v1alpha1.ProxyServerSpec) (services map[types.NamespacedName][]int32, addresses []netip.AddrPort) {
	services = map[types.NamespacedName][]int32{}
	for _, b := range spec.Backends {
		if b.TargetService != "" {
			key := types.NamespacedName{Namespace: string(b.TargetNamespace), Name: string(b.TargetService)}
			services[key] = append(services[key], int32(b.TargetPort))
		}
		for _, text := range b.TargetAddresses {
			if a, err := netip.ParseAddrPort(text); err == nil {
				addresses = append(addresses, a)
			}
		}
	}
	return services, addresses
}

func serviceNamed(services []corev1.Service, key types.NamespacedName) *corev1.Service {
	i := slices.IndexFunc(services, func(s corev1.Service) bool { return s.Namespace == key.Namespace && s.Name == key.Name })
	if i < 0 {
		return nil
	}
	return &services[i]
}

func namespaces(all []string) *acnetworking.NetworkPolicyPeerApplyConfiguration {
	if len(all) == 0 {
		return nil
	}
	return acnetworking.NetworkPolicyPeer().WithNamespaceSelector(acmeta.LabelSelector().
		WithMatchExpressions(acmeta.LabelSelectorRequirement().WithKey(corev1.LabelMetadataName).WithOperator("In").WithValues(all...)))
}

func policyPort(protocol corev1.Protocol, number int32) *acnetworking.NetworkPolicyPortApplyConfiguration {
	return acnetworking.NetworkPolicyPort().WithProtocol(protocol).WithPort(intstr.FromInt32(number))
}
