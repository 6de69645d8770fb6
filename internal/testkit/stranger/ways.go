// Package stranger has the ways in which somebody without a grant to a network may write Infras and children, for tests that plan them and
// tests that send them to an API server.
package stranger

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// Ground names what the victim and the stranger have.
type Ground struct {
	// Namespace, HostedCluster, control-plane namespace and network of the victim.
	Namespace, Cluster, ControlPlane, Network string
	// Own is the stranger's namespace; Alike, used once, has a name like the victim's.
	Own, Alike string
}

// These are addresses of the victim's network: first and last, a captured one, and the one at which its hosted cluster publishes *.apps.
const first, last, published, external = "192.168.100.1", "192.168.100.254", "203.0.113.10", "192.168.100.201"

// Way changes what the stranger has.
type Way func(n *input.Neighbour)

// A stranger's Infra was created before the victim's, first of all, or after it.
var (
	Before = metav1.Unix(5, 0)
	First  = metav1.Unix(0, 0)
	After  = metav1.Unix(20, 0)
)

// Neighbour is the stranger, whose Infra names a network of another namespace, without a reference grant.
func (g Ground) Neighbour(network *nad.NetworkAttachmentDefinition) input.Neighbour {
	infra := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: g.Own, Name: "x", UID: "stranger", CreationTimestamp: Before}}
	infra.Spec.HostedClusterRef = &v1alpha1.HostedClusterReference{Name: "c9"}
	infra.Spec.NetworkConfig = v1alpha1.NetworkConfig{
		CIDR: "192.168.100.0/24", NetworkAttachmentDefinition: v1alpha1.ObjectName(g.Network), NetworkAttachmentNamespace: v1alpha1.ObjectName(g.Namespace),
	}
	return input.Neighbour{Infra: infra, NAD: network}
}

// Ways are all ways by name.
func (g Ground) Ways(t testing.TB) map[string]Way {
	all := map[string]Way{}
	for _, some := range []map[string]Way{byOneChild(), byAllChildren(), bySpec(), bySecondInstance(t), g.byWhatItRemembers(t), g.byNames()} {
		maps.Copy(all, some)
	}
	return all
}

func every(n *input.Neighbour) {
	n.Children = input.Children{component.DHCP: DHCPAt(first, first, last, ""), component.DNS: DNSAt("192.168.100.2"), component.Proxy: ProxyAt("192.168.100.3", published)}
}

func byOneChild() map[string]Way {
	one := func(name component.Name, server component.Server) Way {
		return func(n *input.Neighbour) { n.Children = With(n.Children, name, server) }
	}
	return map[string]Way{
		"a DHCPServer by hand":                  one(component.DHCP, DHCPAt("192.168.100.200", "192.168.100.201", "192.168.100.202", "")),
		"one that leases all":                   one(component.DHCP, DHCPAt("192.168.100.200", first, last, "")),
		"one that serves its own only":          one(component.DHCP, DHCPAt("192.168.100.200", first, last, v1alpha1.UnknownClientsIgnore)),
		"one at each address":                   one(component.DHCP, DHCPAt(first, last, last, "")),
		"one with many exclusions":              one(component.DHCP, scattered()),
		"a DNSServer by hand":                   one(component.DNS, DNSAt("192.168.100.2")),
		"one that answers *.apps":               one(component.DNS, DNSAt(external)),
		"one with names at the external IP":     one(component.DNS, DNSAt("192.168.100.9", v1alpha1.DNSEntry{Hostname: "*.apps.x.example.com", IP: external})),
		"a ProxyServer by hand":                 one(component.Proxy, ProxyAt("192.168.100.3")),
		"one at the external IP":                one(component.Proxy, ProxyAt(external)),
		"one that carries the captured address": one(component.Proxy, ProxyAt("192.168.100.9", published)),
		"one that carries it, and is newer": func(n *input.Neighbour) {
			one(component.Proxy, ProxyAt("192.168.100.9", published))(n)
			n.Infra.CreationTimestamp = After
		},
	}
}

func byAllChildren() map[string]Way {
	return map[string]Way{
		"names it":                          func(*input.Neighbour) {},
		"names it, and is the first of all": func(n *input.Neighbour) { n.Infra.CreationTimestamp = First },
		"names it, and is newer":            func(n *input.Neighbour) { n.Infra.CreationTimestamp = After },
		"all three":                         every,
		"all three, and is newer":           func(n *input.Neighbour) { every(n); n.Infra.CreationTimestamp = After },
		"all three, owned by its Infra":     func(n *input.Neighbour) { every(n); owned(n) },
		"all three, and DHCP is off":        func(n *input.Neighbour) { every(n); n.Infra.Spec.InfraComponents.DHCP.Enabled = new(bool) },
		"serverIPs":                         func(n *input.Neighbour) { ServerIPs(n, first, "192.168.100.2", "192.168.100.3") },
		"serverIPs and all three":           func(n *input.Neighbour) { every(n); ServerIPs(n, first, "192.168.100.2", "192.168.100.3") },
		"clients everywhere": func(n *input.Neighbour) {
			every(n)
			n.Infra.Spec.NetworkConfig.ClientCIDRs = []v1alpha1.CIDR{"0.0.0.0/0"}
		},
		"another subnet": func(n *input.Neighbour) { every(n); n.Infra.Spec.NetworkConfig.CIDR = "192.168.100.0/25" },
	}
}

func bySpec() map[string]Way {
	return map[string]Way{
		"a range of all": func(n *input.Neighbour) {
			n.Infra.Spec.InfraComponents.DHCP.RangeStart, n.Infra.Spec.InfraComponents.DHCP.RangeEnd = first, last
		},
		"reservations": func(n *input.Neighbour) {
			n.Infra.Spec.InfraComponents.DHCP.Reservations = []v1alpha1.Reservation{{IP: first, MAC: "52:54:00:00:00:01"}}
		},
		"exclusions": func(n *input.Neighbour) {
			n.Infra.Spec.InfraComponents.DHCP.ExcludeRanges = []v1alpha1.AddressRange{{Start: first, End: last}}
		},
		"the external IP in a pool for *.apps": func(n *input.Neighbour) { n.Infra.Spec.AppsIngress = PoolOf("192.168.100.128/25") },
		"that pool, with a DNSServer": func(n *input.Neighbour) {
			n.Infra.Spec.AppsIngress = PoolOf("192.168.100.128/25")
			n.Children = With(n.Children, component.DNS, DNSAt("192.168.100.9"))
		},
	}
}

// bySecondInstance asks for, has, or remembers a second instance at an address of the victim's.
func bySecondInstance(t testing.TB) map[string]Way {
	two := func(n *input.Neighbour, at ...v1alpha1.IPAddress) {
		n.Infra.Spec.InfraComponents.DNS.Replicas, n.Infra.Spec.InfraComponents.DNS.AdditionalServerIPs = 2, at
	}
	has := func(n *input.Neighbour, at, second string) {
		dns := DNSAt(at)
		dns.Spec.NetworkConfig.AdditionalServerIPs = []v1alpha1.IPAddress{v1alpha1.IPAddress(second)}
		n.Children = With(n.Children, component.DNS, dns)
	}
	proxy := func(at, second string, published ...string) Way {
		p := ProxyAt(at, published...)
		p.Spec.NetworkConfig.AdditionalServerIPs = []v1alpha1.IPAddress{v1alpha1.IPAddress(second)}
		return func(n *input.Neighbour) { n.Children = With(n.Children, component.Proxy, p) }
	}
	return map[string]Way{
		"a second DHCP server at ours": func(n *input.Neighbour) {
			n.Infra.Spec.InfraComponents.DHCP.AdditionalServerIPs = []v1alpha1.IPv4Address{"192.168.100.2"}
		},
		"a DHCPServer with a second at ours": func(n *input.Neighbour) {
			dhcp := DHCPAt("192.168.100.9", "192.168.100.10", "192.168.100.20", "")
			dhcp.Spec.NetworkConfig.AdditionalServerIPs = []v1alpha1.IPv4Address{"192.168.100.2"}
			n.Children = With(n.Children, component.DHCP, dhcp)
		},
		"a second proxy at ours": func(n *input.Neighbour) {
			n.Infra.Spec.InfraComponents.Proxy.AdditionalServerIPs = []v1alpha1.IPAddress{"192.168.100.3"}
		},
		"a ProxyServer with a second at ours":         proxy("192.168.100.9", "192.168.100.3"),
		"a ProxyServer with a second at the external": proxy("192.168.100.9", external, published),
		"two name servers":                            func(n *input.Neighbour) { two(n) },
		"two name servers, and all three":             func(n *input.Neighbour) { every(n); two(n) },
		"a second name server at ours":                func(n *input.Neighbour) { two(n, "192.168.100.2") },
		"a DNSServer with a second at ours":           func(n *input.Neighbour) { has(n, "192.168.100.9", first) },
		"a DNSServer with a second at the external":   func(n *input.Neighbour) { every(n); has(n, "192.168.100.9", external) },
		"a second that it was given": func(n *input.Neighbour) {
			two(n)
			Remembers(t, n, map[string]string{string(component.DNS.Second()): first})
		},
		"a second that it has by status": func(n *input.Neighbour) {
			two(n)
			n.Infra.Status.Addresses = []v1alpha1.AssignedAddress{{Component: string(component.DNS), Instance: 1, IP: first}}
		},
	}
}

func (g Ground) byWhatItRemembers(t testing.TB) map[string]Way {
	given := map[string]string{"dhcp": first, "proxy": external}
	leads := func(n *input.Neighbour, hosts ...string) {
		n.Infra.Status.Endpoints = []v1alpha1.EndpointStatus{{Name: "api", Hostnames: hosts}}
	}
	return map[string]Way{
		"what it was given, by annotation":            func(n *input.Neighbour) { Remembers(t, n, given, first, last) },
		"that, and all three":                         func(n *input.Neighbour) { every(n); Remembers(t, n, given, first, last) },
		"a status with addresses":                     func(n *input.Neighbour) { Claims(n, first, "192.168.100.2", external) },
		"a status and all three":                      func(n *input.Neighbour) { every(n); Claims(n, first, "192.168.100.2", external) },
		"a status that leads to the captured address": func(n *input.Neighbour) { leads(n, published, external) },
		"that status, and all three":                  func(n *input.Neighbour) { every(n); leads(n, published) },
		"a status that says Accepted":                 func(n *input.Neighbour) { every(n); accepted(n) },
	}
}

func (g Ground) byNames() map[string]Way {
	victims := &v1alpha1.HostedClusterReference{Namespace: v1alpha1.ObjectName(g.Namespace), Name: v1alpha1.ObjectName(g.Cluster)}
	return map[string]Way{
		"an extra endpoint at an address of ours": func(n *input.Neighbour) {
			every(n)
			n.Infra.Spec.ExtraEndpoints = []v1alpha1.ExtraEndpoint{{Name: "e", Hostnames: []v1alpha1.DNSNameOrWildcard{"api.c1.example.com"}, Port: 6443}}
		},
		"our cluster's names": func(n *input.Neighbour) {
			every(n)
			n.Infra.Spec.InfraComponents.DNS.ClusterName, n.Infra.Spec.InfraComponents.DNS.BaseDomain = "c1", "example.com"
		},
		"our HostedCluster": func(n *input.Neighbour) { every(n); n.Infra.Spec.HostedClusterRef = victims },
		"our HostedCluster, as files have it": func(n *input.Neighbour) {
			n.Infra.Spec.HostedClusterRef, n.HostedCluster = victims, nil
		},
		"our control plane's namespace": func(n *input.Neighbour) {
			every(n)
			n.Infra.Spec.HostedClusterRef, n.Infra.Spec.InfraComponents.Proxy.ControlPlaneNamespace = nil, v1alpha1.ObjectName(g.ControlPlane)
		},
		"a namespace like ours": func(n *input.Neighbour) { every(n); n.Infra.Namespace = g.Alike },
		"a name like ours":      func(n *input.Neighbour) { every(n); n.Infra.Name = "c1" },
		"a copied network": func(n *input.Neighbour) {
			every(n)
			n.NAD = n.NAD.DeepCopy()
			n.NAD.Annotations = map[string]string{names.AnnotationAllowedNamespaces: g.Own + "s,another"}
		},
	}
}
