package stranger

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// DHCPAt is a DHCPServer that somebody writes by hand.
func DHCPAt(at, first, last string, unknown v1alpha1.UnknownClients) *v1alpha1.DHCPServer {
	s := &v1alpha1.DHCPServer{}
	s.Spec.NetworkConfig.ServerIP, s.Spec.UnknownClients = v1alpha1.IPv4Address(at), unknown
	s.Spec.LeaseConfig = v1alpha1.DHCPLeaseConfig{RangeStart: v1alpha1.IPv4Address(first), RangeEnd: v1alpha1.IPv4Address(last)}
	return s
}

// DNSAt is a DNSServer that somebody writes by hand.
func DNSAt(at string, entries ...v1alpha1.DNSEntry) *v1alpha1.DNSServer {
	s := &v1alpha1.DNSServer{}
	s.Spec.NetworkConfig.ServerIP, s.Spec.StaticEntries = v1alpha1.IPAddress(at), entries
	return s
}

// ProxyAt is a ProxyServer with captured addresses that somebody writes by hand.
func ProxyAt(at string, published ...string) *v1alpha1.ProxyServer {
	p := &v1alpha1.ProxyServer{}
	p.Spec.NetworkConfig.ServerIP = v1alpha1.IPAddress(at)
	for _, l := range published {
		p.Spec.NetworkConfig.CapturedAddresses = append(p.Spec.NetworkConfig.CapturedAddresses, v1alpha1.CapturedAddress{IP: v1alpha1.IPAddress(l), Ports: []v1alpha1.Port{6443}})
	}
	return p
}

// Remembers writes the annotation by which a restore assigns addresses.
func Remembers(t testing.TB, n *input.Neighbour, addresses map[string]string, pool ...string) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"of": n.Infra.Namespace + "/" + n.Infra.Name, "addresses": addresses, "pool": pool})
	if err != nil {
		t.Fatal(err)
	}
	n.Infra.Annotations = map[string]string{names.AnnotationGiven: string(text)}
}

// Claims writes addresses into the status of a stranger's Infra.
func Claims(n *input.Neighbour, dhcp, dns, proxy string) {
	for component, at := range map[string]string{"dhcp": dhcp, "dns": dns, "proxy": proxy} {
		n.Infra.Status.Addresses = append(n.Infra.Status.Addresses, v1alpha1.AssignedAddress{Component: component, IP: v1alpha1.IPAddress(at)})
	}
}

// ServerIPs requests addresses in the spec of a stranger's Infra.
func ServerIPs(n *input.Neighbour, dhcp, dns, proxy string) {
	c := &n.Infra.Spec.InfraComponents
	c.DHCP.ServerIP, c.DNS.ServerIP, c.Proxy.ServerIP = v1alpha1.IPv4Address(dhcp), v1alpha1.IPAddress(dns), v1alpha1.IPAddress(proxy)
}

// PoolOf is an AppsIngress with a range of MetalLB's.
func PoolOf(text v1alpha1.AddressOrRange) *v1alpha1.AppsIngress {
	return &v1alpha1.AppsIngress{Enabled: true, MetalLB: &v1alpha1.AppsMetalLB{IPAddressPoolRange: []v1alpha1.AddressOrRange{text}}}
}

// With is a copy of children with one replaced or added.
func With(children input.Children, name component.Name, server component.Server) input.Children {
	all := maps.Clone(children)
	if all == nil {
		all = input.Children{}
	}
	all[name] = server
	return all
}

func scattered() *v1alpha1.DHCPServer {
	s := DHCPAt("192.168.100.200", "192.168.100.1", "192.168.100.254", "")
	for i := range 120 {
		a := v1alpha1.IPv4Address(fmt.Sprintf("192.168.100.%d", 1+2*i))
		s.Spec.ExcludeRanges = append(s.Spec.ExcludeRanges, v1alpha1.AddressRange{Start: a, End: a})
	}
	return s
}

func owned(n *input.Neighbour) {
	ref := []metav1.OwnerReference{*metav1.NewControllerRef(n.Infra, v1alpha1.GroupVersion.WithKind("Infra"))}
	for _, child := range n.Children {
		child.SetOwnerReferences(ref)
	}
}

func accepted(n *input.Neighbour) {
	n.Infra.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue}, {Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
}
