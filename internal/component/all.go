package component

import (
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
)

// The components.
const (
	DHCP  Name = names.DHCP
	DNS   Name = names.DNS
	Proxy Name = names.Proxy
)

// Kinds of workloads. A Deployment's pod is replaced when its node is lost; a StatefulSet's old and new pod never both run.
const (
	StatefulSet = "StatefulSet"
	Deployment  = "Deployment"
)

// All are the components, in the order in which addresses are assigned.
var All = []Component{
	{
		Name: DHCP, Kind: "DHCPServer", Resource: "dhcpservers", Workload: StatefulSet, Stops: "DHCP",
		FieldOwner: names.DHCPFieldOwner, Ready: v1alpha1.ConditionDHCPReady, Needs: []string{v1alpha1.ConditionAddressesLeft, v1alpha1.ConditionClockSteady},
		NoResolver: "DHCP server, which answers no names", IPv4Only: true,
		New: func() Server { return &v1alpha1.DHCPServer{} }, NewList: func() List { return &v1alpha1.DHCPServerList{} },
		Wanted: func(of v1alpha1.InfraComponents) Wanted {
			c := of.DHCP
			return Wanted{on(c.Enabled), string(c.ServerIP), c.Replicas != 1, first(c.AdditionalServerIPs), c.Placement, map[string]string{"image": c.Image}}
		},
		Written: func(server Server) Written {
			s := server.(*v1alpha1.DHCPServer)
			n := s.Spec.NetworkConfig
			return Written{n.Attachment, string(n.ServerIP), addresses(n.AdditionalServerIPs), false, map[string]string{"image": s.Spec.Image}, s.Status.Conditions, s.Status.Instances, s.Status.ObservedGeneration}
		},
		Status: func(server Server, r Report) (has, want any) {
			s := server.(*v1alpha1.DHCPServer)
			return s.Status, v1alpha1.DHCPServerStatus{Conditions: r.Conditions, Instances: r.Instances, ObservedGeneration: s.Generation}
		},
	},
	{
		Name: DNS, Kind: "DNSServer", Resource: "dnsservers", Workload: StatefulSet, Stops: "name resolution",
		FieldOwner: names.DNSFieldOwner, Ready: v1alpha1.ConditionDNSReady, NoResolver: "DNS server: it would ask itself",
		New: func() Server { return &v1alpha1.DNSServer{} }, NewList: func() List { return &v1alpha1.DNSServerList{} },
		Wanted: func(of v1alpha1.InfraComponents) Wanted {
			c := of.DNS
			return Wanted{on(c.Enabled), string(c.ServerIP), c.Replicas != 1, first(c.AdditionalServerIPs), c.Placement, map[string]string{"image": c.Image}}
		},
		Written: func(server Server) Written {
			s := server.(*v1alpha1.DNSServer)
			n := s.Spec.NetworkConfig
			return Written{n.Attachment, string(n.ServerIP), n.AdditionalServerIPs, false, map[string]string{"image": s.Spec.Image}, s.Status.Conditions, s.Status.Instances, s.Status.ObservedGeneration}
		},
		Status: func(server Server, r Report) (has, want any) {
			s := server.(*v1alpha1.DNSServer)
			return s.Status, v1alpha1.DNSServerStatus{
				Conditions: r.Conditions, Instances: r.Instances, ObservedGeneration: s.Generation,
				DeploymentName: r.Workload, ServiceName: r.Service, ServiceClusterIP: r.ServiceIP,
			}
		},
	},
	{
		Name: Proxy, Kind: "ProxyServer", Resource: "proxyservers", Workload: Deployment, Stops: "the proxy",
		FieldOwner: names.ProxyFieldOwner, Ready: v1alpha1.ConditionProxyReady, NoResolver: "proxy, which answers no names",
		New: func() Server { return &v1alpha1.ProxyServer{} }, NewList: func() List { return &v1alpha1.ProxyServerList{} },
		Wanted: func(of v1alpha1.InfraComponents) Wanted {
			c := of.Proxy
			return Wanted{on(c.Enabled), string(c.ServerIP), c.Replicas != 1, first(c.AdditionalServerIPs), c.Placement, map[string]string{"proxyImage": c.ProxyImage, "managerImage": c.ManagerImage}}
		},
		Written: func(server Server) Written {
			s := server.(*v1alpha1.ProxyServer)
			n, images := s.Spec.NetworkConfig, map[string]string{"proxyImage": s.Spec.ProxyImage, "managerImage": s.Spec.ManagerImage}
			return Written{n.Attachment, string(n.ServerIP), n.AdditionalServerIPs, len(n.CapturedAddresses) > 0, images, s.Status.Conditions, s.Status.Instances, s.Status.ObservedGeneration}
		},
		Status: func(server Server, r Report) (has, want any) {
			s := server.(*v1alpha1.ProxyServer)
			return s.Status, v1alpha1.ProxyServerStatus{
				Conditions: r.Conditions, Instances: r.Instances, ObservedGeneration: s.Generation,
				DeploymentName: r.Workload, ConfigMapName: names.EnvoyBootstrap(s.Name, 0), ServiceName: r.Service, ServiceIP: r.ServiceIP,
				BackendCount: int32(len(s.Spec.Backends)), HealthyBackends: r.HealthyBackends,
			}
		},
	},
}

func on(flag *bool) bool { return ptr.Deref(flag, true) }

func addresses(of []v1alpha1.IPv4Address) (all []v1alpha1.IPAddress) {
	for _, a := range of {
		all = append(all, v1alpha1.IPAddress(a))
	}
	return all
}

// first of some addresses, if there is any.
func first[T ~string](of []T) string {
	if len(of) == 0 {
		return ""
	}
	return string(of[0])
}
