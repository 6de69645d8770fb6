package plan_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// victims are Infras that a stranger may want to disturb, before anything of theirs is there and while they serve.
func victims(t *testing.T) map[string]input.Input {
	t.Helper()
	all := map[string]input.Input{
		"with an IP endpoint": load(t, "testdata/nodeport-with-ip/in.yaml").Inputs(settings())[0],
		"with *.apps":         publishing(t),
	}
	for name, in := range maps.Clone(all) {
		in.Infra.CreationTimestamp = metav1.Unix(10, 0)
		in.Children = input.Children{}
		in.Neighbours = nil
		all[name] = in
		in.Children = children(t, plan.Infra(in))
		in.Infra = in.Infra.DeepCopy()
		in.Infra.Status.Addresses = plan.Infra(in).Addresses
		all[name+", serving"] = in
	}
	return all
}

// publishing is an Infra whose hosted cluster has an external IP.
func publishing(t *testing.T) input.Input {
	t.Helper()
	text, err := os.ReadFile("testdata/apps/external-ip-changes/case.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c appsCase
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		t.Fatal(err)
	}
	return c.input(t)
}

// stranger names the network of another namespace, which does not grant him.
func stranger(of input.Input) input.Neighbour {
	infra := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "x", UID: "stranger", CreationTimestamp: metav1.Unix(5, 0)}}
	infra.Spec.HostedClusterRef = &v1alpha1.HostedClusterReference{Name: "c9"}
	infra.Spec.NetworkConfig = v1alpha1.NetworkConfig{CIDR: of.Infra.Spec.NetworkConfig.CIDR, NetworkAttachmentDefinition: "vlan100", NetworkAttachmentNamespace: "clusters"}
	return input.Neighbour{Infra: infra, NAD: of.NAD}
}

// dhcpAt, dnsAt and proxyAt are children that somebody writes by hand.
func dhcpAt(at, first, last string, unknown v1alpha1.UnknownClients) *v1alpha1.DHCPServer {
	s := &v1alpha1.DHCPServer{}
	s.Spec.NetworkConfig.ServerIP, s.Spec.UnknownClients = v1alpha1.IPv4Address(at), unknown
	s.Spec.LeaseConfig = v1alpha1.DHCPLeaseConfig{RangeStart: v1alpha1.IPv4Address(first), RangeEnd: v1alpha1.IPv4Address(last)}
	return s
}

func dnsAt(at string, entries ...v1alpha1.DNSEntry) *v1alpha1.DNSServer {
	s := &v1alpha1.DNSServer{}
	s.Spec.NetworkConfig.ServerIP, s.Spec.StaticEntries = v1alpha1.IPAddress(at), entries
	return s
}

func proxyAt(at string, published ...string) *v1alpha1.ProxyServer {
	p := &v1alpha1.ProxyServer{}
	p.Spec.NetworkConfig.ServerIP = v1alpha1.IPAddress(at)
	for _, l := range published {
		p.Spec.NetworkConfig.CapturedAddresses = append(p.Spec.NetworkConfig.CapturedAddresses, v1alpha1.CapturedAddress{IP: v1alpha1.IPAddress(l), Ports: []v1alpha1.Port{6443}})
	}
	return p
}

// remembers writes the annotation that a restore goes by.
func remembers(t *testing.T, n *input.Neighbour, addresses map[string]string, pool ...string) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"of": n.Infra.Namespace + "/" + n.Infra.Name, "addresses": addresses, "pool": pool})
	if err != nil {
		t.Fatal(err)
	}
	n.Infra.Annotations = map[string]string{names.AnnotationGiven: string(text)}
}

// claims writes all that says that addresses are a stranger's.
func claims(n *input.Neighbour, dhcp, dns, proxy string) {
	for component, at := range map[string]string{"dhcp": dhcp, "dns": dns, "proxy": proxy} {
		n.Infra.Status.Addresses = append(n.Infra.Status.Addresses, v1alpha1.AssignedAddress{Component: component, IP: v1alpha1.IPAddress(at)})
	}
}

// Whoever has no right to a network, and writes Infras and children, changes nothing of what those serve who have it.
func TestAStrangerToANetworkChangesNothing(t *testing.T) {
	const first, last, published, external = "192.168.100.1", "192.168.100.254", "203.0.113.10", "192.168.100.201"
	every := func(n *input.Neighbour) {
		n.Children = input.Children{component.DHCP: dhcpAt(first, first, last, ""), component.DNS: dnsAt("192.168.100.2"), component.Proxy: proxyAt("192.168.100.3", published)}
	}
	ways := map[string]func(n *input.Neighbour){
		"names it":                          func(*input.Neighbour) {},
		"names it, and is the first of all": func(n *input.Neighbour) { n.Infra.CreationTimestamp = metav1.Unix(0, 0) },
		"names it, and is newer":            func(n *input.Neighbour) { n.Infra.CreationTimestamp = metav1.Unix(20, 0) },
		"a DHCPServer by hand": func(n *input.Neighbour) {
			n.Children = with(n.Children, component.DHCP, dhcpAt("192.168.100.200", "192.168.100.201", "192.168.100.202", ""))
		},
		"one that leases all": func(n *input.Neighbour) {
			n.Children = with(n.Children, component.DHCP, dhcpAt("192.168.100.200", first, last, ""))
		},
		"one that serves its own only": func(n *input.Neighbour) {
			n.Children = with(n.Children, component.DHCP, dhcpAt("192.168.100.200", first, last, v1alpha1.UnknownClientsIgnore))
		},
		"one at each address":      func(n *input.Neighbour) { n.Children = with(n.Children, component.DHCP, dhcpAt(first, last, last, "")) },
		"one with many exclusions": func(n *input.Neighbour) { n.Children = with(n.Children, component.DHCP, scattered()) },
		"a DNSServer by hand":      func(n *input.Neighbour) { n.Children = with(n.Children, component.DNS, dnsAt("192.168.100.2")) },
		"one that answers *.apps":  func(n *input.Neighbour) { n.Children = with(n.Children, component.DNS, dnsAt(external)) },
		"one with names at the external IP": func(n *input.Neighbour) {
			n.Children = with(n.Children, component.DNS, dnsAt("192.168.100.9", v1alpha1.DNSEntry{Hostname: "*.apps.x.example.com", IP: external}))
		},
		"a ProxyServer by hand":  func(n *input.Neighbour) { n.Children = with(n.Children, component.Proxy, proxyAt("192.168.100.3")) },
		"one at the external IP": func(n *input.Neighbour) { n.Children = with(n.Children, component.Proxy, proxyAt(external)) },
		"one that carries the captured address": func(n *input.Neighbour) {
			n.Children = with(n.Children, component.Proxy, proxyAt("192.168.100.9", published))
		},
		"one that carries it, and is newer": func(n *input.Neighbour) {
			n.Children, n.Infra.CreationTimestamp = with(n.Children, component.Proxy, proxyAt("192.168.100.9", published)), metav1.Unix(20, 0)
		},
		"all three":                     every,
		"all three, and is newer":       func(n *input.Neighbour) { every(n); n.Infra.CreationTimestamp = metav1.Unix(20, 0) },
		"all three, owned by its Infra": func(n *input.Neighbour) { every(n); owned(n) },
		"all three, and DHCP is off":    func(n *input.Neighbour) { every(n); n.Infra.Spec.InfraComponents.DHCP.Enabled = new(bool) },
		"serverIPs":                     func(n *input.Neighbour) { serverIPs(n, first, "192.168.100.2", "192.168.100.3") },
		"serverIPs and all three":       func(n *input.Neighbour) { every(n); serverIPs(n, first, "192.168.100.2", "192.168.100.3") },
		"a range of all": func(n *input.Neighbour) {
			n.Infra.Spec.InfraComponents.DHCP.RangeStart, n.Infra.Spec.InfraComponents.DHCP.RangeEnd = first, last
		},
		"reservations": func(n *input.Neighbour) {
			n.Infra.Spec.InfraComponents.DHCP.Reservations = []v1alpha1.Reservation{{IP: first, MAC: "52:54:00:00:00:01"}}
		},
		"exclusions": func(n *input.Neighbour) {
			n.Infra.Spec.InfraComponents.DHCP.ExcludeRanges = []v1alpha1.AddressRange{{Start: first, End: last}}
		},
		"the external IP in a pool for *.apps": func(n *input.Neighbour) { n.Infra.Spec.AppsIngress = poolOf("192.168.100.128/25") },
		"that pool, with a DNSServer": func(n *input.Neighbour) {
			n.Infra.Spec.AppsIngress = poolOf("192.168.100.128/25")
			n.Children = with(n.Children, component.DNS, dnsAt("192.168.100.9"))
		},
		"what it was given, by annotation": func(n *input.Neighbour) {
			remembers(t, n, map[string]string{"dhcp": first, "proxy": external}, first, last)
		},
		"that, and all three": func(n *input.Neighbour) {
			every(n)
			remembers(t, n, map[string]string{"dhcp": first, "proxy": external}, first, last)
		},
		"a status with addresses": func(n *input.Neighbour) { claims(n, first, "192.168.100.2", external) },
		"a status and all three":  func(n *input.Neighbour) { every(n); claims(n, first, "192.168.100.2", external) },
		"a status that leads to the captured address": func(n *input.Neighbour) {
			n.Infra.Status.Endpoints = []v1alpha1.EndpointStatus{{Name: "api", Hostnames: []string{published, external}}}
		},
		"that status, and all three": func(n *input.Neighbour) {
			every(n)
			n.Infra.Status.Endpoints = []v1alpha1.EndpointStatus{{Name: "api", Hostnames: []string{published}}}
		},
		"a status that says Accepted": func(n *input.Neighbour) { every(n); accepted(n) },
		"an extra endpoint at an address of ours": func(n *input.Neighbour) {
			every(n)
			n.Infra.Spec.ExtraEndpoints = []v1alpha1.ExtraEndpoint{{Name: "e", Hostnames: []v1alpha1.DNSNameOrWildcard{"api.c1.example.com"}, Port: 6443}}
		},
		"our cluster's names": func(n *input.Neighbour) {
			every(n)
			n.Infra.Spec.InfraComponents.DNS.ClusterName, n.Infra.Spec.InfraComponents.DNS.BaseDomain = "c1", "example.com"
		},
		"our HostedCluster": func(n *input.Neighbour) {
			every(n)
			n.Infra.Spec.HostedClusterRef = &v1alpha1.HostedClusterReference{Namespace: "clusters", Name: "c1"}
		},
		"our HostedCluster, as files have it": func(n *input.Neighbour) {
			n.Infra.Spec.HostedClusterRef, n.HostedCluster = &v1alpha1.HostedClusterReference{Namespace: "clusters", Name: "c1"}, nil
		},
		"our control plane's namespace": func(n *input.Neighbour) {
			every(n)
			n.Infra.Spec.HostedClusterRef, n.Infra.Spec.InfraComponents.Proxy.ControlPlaneNamespace = nil, "clusters-c1"
		},
		"a namespace like ours": func(n *input.Neighbour) { every(n); n.Infra.Namespace = "cluster" },
		"a name like ours":      func(n *input.Neighbour) { every(n); n.Infra.Name = "c1" },
		"clients everywhere": func(n *input.Neighbour) {
			every(n)
			n.Infra.Spec.NetworkConfig.ClientCIDRs = []v1alpha1.CIDR{"0.0.0.0/0"}
		},
		"another subnet": func(n *input.Neighbour) { every(n); n.Infra.Spec.NetworkConfig.CIDR = "192.168.100.0/25" },
		"a copied network": func(n *input.Neighbour) {
			every(n)
			n.NAD = n.NAD.DeepCopy()
			n.NAD.Annotations = map[string]string{names.AnnotationAllowedNamespaces: "tenants,another"}
		},
	}
	for name, victim := range victims(t) {
		alone := said(t, victim)
		gomega.NewWithT(t).Expect(alone).NotTo(gomega.ContainSubstring("held: true"), name)
		for way, attack := range ways {
			t.Run(name+"/"+way, func(t *testing.T) {
				n := stranger(victim)
				attack(&n)
				attacked := victim
				attacked.Neighbours = []input.Neighbour{n}
				gomega.NewWithT(t).Expect(said(t, attacked)).To(gomega.Equal(alone))

				theirs := input.Input{Settings: victim.Settings, Infra: n.Infra, NAD: n.NAD, Children: n.Children}
				unaware := said(t, theirs)
				theirs.Neighbours = []input.Neighbour{{Infra: victim.Infra, NAD: victim.NAD, HostedCluster: victim.HostedCluster, Children: victim.Children}}
				gomega.NewWithT(t).Expect(said(t, theirs)).To(gomega.Equal(unaware), "the stranger hears nothing of it")
			})
		}
	}
	gomega.NewWithT(t).Expect(ways).To(gomega.HaveLen(43))
}

func said(t *testing.T, in input.Input) string {
	t.Helper()
	return strings.Join(documents(t, in.Infra, plan.Infra(in)), "---\n")
}

func scattered() *v1alpha1.DHCPServer {
	s := dhcpAt("192.168.100.200", "192.168.100.1", "192.168.100.254", "")
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

func serverIPs(n *input.Neighbour, dhcp, dns, proxy string) {
	c := &n.Infra.Spec.InfraComponents
	c.DHCP.ServerIP, c.DNS.ServerIP, c.Proxy.ServerIP = v1alpha1.IPv4Address(dhcp), v1alpha1.IPAddress(dns), v1alpha1.IPAddress(proxy)
}

func poolOf(text v1alpha1.AddressOrRange) *v1alpha1.AppsIngress {
	return &v1alpha1.AppsIngress{Enabled: true, MetalLB: &v1alpha1.AppsMetalLB{IPAddressPoolRange: []v1alpha1.AddressOrRange{text}}}
}

func accepted(n *input.Neighbour) {
	n.Infra.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue}, {Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
}

// with are children of which one is another.
func with(children input.Children, name component.Name, server component.Server) input.Children {
	all := maps.Clone(children)
	if all == nil {
		all = input.Children{}
	}
	all[name] = server
	return all
}
