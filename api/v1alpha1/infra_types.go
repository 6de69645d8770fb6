package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HostedClusterReference names the HostedCluster to bridge to.
type HostedClusterReference struct {
	// Name of the HostedCluster.
	Name ObjectName `json:"name"`
	// Namespace of the HostedCluster. Default: the Infra's. Another one must carry the annotation
	// hostedcluster.densityops.com/allowed-namespaces with the Infra's namespace in it (on the HostedCluster).
	// +optional
	Namespace ObjectName `json:"namespace,omitempty"`
}

// NetworkConfig is the VLAN.
// +kubebuilder:validation:XValidation:rule="!has(self.gateway) || !isCIDR(self.cidr) || !isIP(self.gateway) || cidr(self.cidr).containsIP(self.gateway)",message="gateway must lie inside cidr; leave it out on an isolated VLAN, or set e.g. 192.168.100.1 in 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!has(self.routes) || !isCIDR(self.cidr) || self.routes.all(r, !isIP(r.gateway) || cidr(self.cidr).containsIP(r.gateway))",message="the gateway of every route must lie inside cidr, e.g. 192.168.100.1 in 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!isCIDR(self.cidr) || !isCIDR(oldSelf.cidr) || cidr(self.cidr).containsCIDR(oldSelf.cidr)",message="cidr may only widen: it must contain the network that it was, e.g. 192.168.100.0/23 after 192.168.100.0/24"
type NetworkConfig struct {
	// The VLAN's subnet, any prefix length, e.g. 192.168.100.0/24. May only widen. IPv6 needs dhcp.enabled: false (there is no DHCPv6 yet).
	// +kubebuilder:validation:XValidation:rule="!isCIDR(self) || !cidr('127.0.0.0/8').containsIP(cidr(self).ip())",message="the loopback network is no VLAN's; take the VLAN's own, e.g. 192.168.100.0/24"
	CIDR Subnet `json:"cidr"`
	// The VLAN's router. Default: none; an isolated VLAN has no router and DHCP sends none.
	// +optional
	Gateway IPAddress `json:"gateway,omitempty"`
	// NetworkAttachmentDefinition of the workers' network card. It must assign no address (no ipam, or ipam: {}).
	NetworkAttachmentDefinition ObjectName `json:"networkAttachmentDefinition"`
	// Namespace of the NetworkAttachmentDefinition. Default: the Infra's.
	// +optional
	NetworkAttachmentNamespace ObjectName `json:"networkAttachmentNamespace,omitempty"`
	// Resolvers for all names that are not the hosted cluster's. Default: those of the node.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:XValidation:rule="!isIP(self) || ip(self).isGlobalUnicast() || ip(self).isLinkLocalUnicast()",message="must be the address of a server: not 0.0.0.0, loopback or multicast, e.g. 10.0.0.53"
	DNSServers []IPAddress `json:"dnsServers,omitempty"`
	// Time servers that DHCP hands out (option 42). Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:XValidation:rule="!isIP(self) || ip(self).isGlobalUnicast() || ip(self).isLinkLocalUnicast()",message="must be the address of a server: not 0.0.0.0, loopback or multicast, e.g. 10.0.0.53"
	NTPServers []IPv4Address `json:"ntpServers,omitempty"`
	// MTU of the VLAN in bytes (option 26). Default: that of the NetworkAttachmentDefinition, else not sent.
	// +optional
	// +kubebuilder:validation:Minimum=576
	// +kubebuilder:validation:Maximum=65535
	MTU int32 `json:"mtu,omitempty"`
	// Search domains (option 119). Default: the hosted cluster's domain.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	SearchDomains []DNSName `json:"searchDomains,omitempty"`
	// Further routes (option 121).
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(r, self.exists_one(o, o.destination == r.destination))",message="routes has one destination twice; keep one of them, e.g. one entry for 10.20.0.0/16"
	Routes []Route `json:"routes,omitempty"`
	// Networks of clients behind the VLAN's router; answers to them go through gateway, which is then required.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	ClientCIDRs []CIDR `json:"clientCIDRs,omitempty"`
}

// DHCPConfig is the DHCP component.
// +kubebuilder:validation:XValidation:rule="has(self.rangeStart) == has(self.rangeEnd)",message="set both rangeStart and rangeEnd, or neither, e.g. 192.168.100.10 and 192.168.100.200"
// +kubebuilder:validation:XValidation:rule="!has(self.rangeStart) || !has(self.rangeEnd) || ![self.rangeStart, self.rangeEnd].all(a, isIP(a) && ip(a).family() == 4) || (int(self.rangeStart.split('.')[0])*16777216 + int(self.rangeStart.split('.')[1])*65536 + int(self.rangeStart.split('.')[2])*256 + int(self.rangeStart.split('.')[3])) <= (int(self.rangeEnd.split('.')[0])*16777216 + int(self.rangeEnd.split('.')[1])*65536 + int(self.rangeEnd.split('.')[2])*256 + int(self.rangeEnd.split('.')[3]))",message="rangeEnd lies before rangeStart; swap them, e.g. rangeStart: 192.168.100.10, rangeEnd: 192.168.100.200"
type DHCPConfig struct {
	// False removes the DHCP server; leases are kept. Default true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// Address of the server. Default: allocated from the CIDR and kept.
	// +optional
	ServerIP IPv4Address `json:"serverIP,omitempty"`
	// First address of the pool. Default: the first after the infrastructure's.
	// +optional
	RangeStart IPv4Address `json:"rangeStart,omitempty"`
	// Last address of the pool. Default: the last usable of the CIDR.
	// +optional
	RangeEnd IPv4Address `json:"rangeEnd,omitempty"`
	// Lease time, 2m to 8760h. Default 24h: an outage of an hour must not cost workers their address.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,8}([.][0-9]{1,9})?(h|m|s))+$') && duration(self) >= duration('2m') && duration(self) <= duration('8760h')",message="leaseTime must be between 2m and 8760h, in hours (h), minutes (m) and seconds (s), e.g. 24h"
	LeaseTime *metav1.Duration `json:"leaseTime,omitempty"`
	// Addresses that are never leased, e.g. of machines with static addresses.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ExcludeRanges []AddressRange `json:"excludeRanges,omitempty"`
	// Addresses tied to clients.
	// +optional
	// +listType=map
	// +listMapKey=ip
	// +kubebuilder:validation:MaxItems=512
	Reservations []Reservation `json:"reservations,omitempty"`
	// Pool (default): every client is served. Ignore: only reservations and the hosted cluster's VMs.
	// +optional
	UnknownClients UnknownClients `json:"unknownClients,omitempty"`
	// Relays whose giaddr is served, as addresses or networks, e.g. 192.168.100.1. Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Relays []IPv4AddressOrCIDR `json:"relays,omitempty"`
	// Further options to hand out.
	// +optional
	// +listType=map
	// +listMapKey=code
	// +kubebuilder:validation:MaxItems=64
	Options []DHCPOption `json:"options,omitempty"`
	// Image of the daemon, of the operator's release or a newer one; refused unless the operator runs with --allow-image-override.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`
	// +optional
	Placement `json:",inline"`
}

// DNSConfig is the DNS component.
type DNSConfig struct {
	// False removes the DNS server. Default true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// Address of the server. Default: allocated from the CIDR and kept.
	// +optional
	ServerIP IPAddress `json:"serverIP,omitempty"`
	// Base domain of the hosted cluster, e.g. example.com. Default: read from the HostedCluster.
	// +optional
	BaseDomain DNSName `json:"baseDomain,omitempty"`
	// Name of the hosted cluster. Default: read from the HostedCluster.
	// +optional
	ClusterName DNSName `json:"clusterName,omitempty"`
	// Image of the daemon, of the operator's release or a newer one; refused unless the operator runs with --allow-image-override.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`
	// +optional
	Placement `json:",inline"`
}

// ProxyConfig is the proxy component.
type ProxyConfig struct {
	// False removes the proxy. Default true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// Address of the proxy. Default: allocated from the CIDR and kept.
	// +optional
	ServerIP IPAddress `json:"serverIP,omitempty"`
	// Namespace of the hosted control plane. Default: that of the HostedCluster.
	// +optional
	ControlPlaneNamespace ObjectName `json:"controlPlaneNamespace,omitempty"`
	// Image of Envoy; refused unless the operator runs with --allow-image-override.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ProxyImage string `json:"proxyImage,omitempty"`
	// Image of the xDS sidecar; refused unless the operator runs with --allow-image-override.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ManagerImage string `json:"managerImage,omitempty"`
	// +optional
	Placement `json:",inline"`
}

// InfraComponents are the three services on the VLAN. One that is absent is enabled.
type InfraComponents struct {
	// DHCP.
	// +optional
	DHCP DHCPConfig `json:"dhcp,omitempty"`
	// DNS.
	// +optional
	DNS DNSConfig `json:"dns,omitempty"`
	// Proxy.
	// +optional
	Proxy ProxyConfig `json:"proxy,omitempty"`
}

// EndpointTarget is where an extra endpoint leads.
// +kubebuilder:validation:XValidation:rule="has(self.service) != has(self.addresses)",message="set exactly one of service (with port) and addresses, e.g. addresses: [10.20.0.5:443]"
// +kubebuilder:validation:XValidation:rule="!has(self.service) || has(self.port)",message="service needs port, e.g. port: 443"
// +kubebuilder:validation:XValidation:rule="!has(self.addresses) || (!has(self.namespace) && !has(self.port))",message="addresses carry their own port and have no namespace: remove namespace and port, e.g. addresses: [10.20.0.5:443]"
type EndpointTarget struct {
	// Service of the Infra's namespace, or of the hosted control plane's.
	// +optional
	Service ObjectName `json:"service,omitempty"`
	// Namespace of the Service: the Infra's (default) or the hosted control plane's.
	// +optional
	Namespace ObjectName `json:"namespace,omitempty"`
	// Port of the Service.
	// +optional
	Port Port `json:"port,omitempty"`
	// Addresses as ip:port; each must lie inside the operator's --extra-endpoint-cidrs.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=53
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^(\\\\[[0-9a-f:.]+\\\\]|[0-9.]+):[0-9]{1,5}$')",message="must be address:port, e.g. 10.20.0.5:443 or [fd00::5]:443"
	Addresses []string `json:"addresses,omitempty"`
}

// ExtraEndpoint is a further thing that workers need through the bridge, e.g. a mirror registry.
// +kubebuilder:validation:XValidation:rule="self.protocol != 'TLS' || has(self.hostnames)",message="protocol TLS routes by name: set hostnames, e.g. [registry.example.com]"
type ExtraEndpoint struct {
	// Name, unique in the list; must not be one of the control plane's own endpoints.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower case letters, digits and -, e.g. registry"
	Name string `json:"name"`
	// Names that lead here; DNS answers them with the proxy's address.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Hostnames []DNSNameOrWildcard `json:"hostnames,omitempty"`
	// Port on the proxy's address.
	Port Port `json:"port"`
	// TLS (routed by name) or TCP (the port for itself).
	Protocol Protocol `json:"protocol"`
	// Where it leads.
	Target EndpointTarget `json:"target"`
}

// InfraSpec joins one VLAN to one hosted control plane.
// +kubebuilder:validation:XValidation:rule="has(self.hostedClusterRef) || (has(self.infraComponents) && has(self.infraComponents.dns) && has(self.infraComponents.dns.baseDomain) && has(self.infraComponents.dns.clusterName) && has(self.infraComponents.proxy) && has(self.infraComponents.proxy.controlPlaneNamespace))",message="set hostedClusterRef, or all of infraComponents.dns.baseDomain, dns.clusterName and proxy.controlPlaneNamespace, e.g. hostedClusterRef: {name: c1}"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.hostedClusterRef) || (has(self.hostedClusterRef) && self.hostedClusterRef == oldSelf.hostedClusterRef)",message="hostedClusterRef is set once; make another Infra for another HostedCluster, e.g. metadata.name: c2"
// +kubebuilder:validation:XValidation:rule="!isCIDR(self.networkConfig.cidr) || cidr(self.networkConfig.cidr).ip().family() == 4 || (has(self.infraComponents) && has(self.infraComponents.dhcp) && has(self.infraComponents.dhcp.enabled) && !self.infraComponents.dhcp.enabled)",message="an IPv6 cidr needs infraComponents.dhcp.enabled: false; there is no DHCPv6 yet; set that, or an IPv4 cidr, e.g. 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!has(self.networkConfig.clientCIDRs) || has(self.networkConfig.gateway)",message="clientCIDRs need networkConfig.gateway: answers to them go through it, e.g. gateway: 192.168.100.1"
// +kubebuilder:validation:XValidation:rule="!has(self.infraComponents) || !has(self.infraComponents.dhcp) || !has(self.infraComponents.dhcp.serverIP) || !isCIDR(self.networkConfig.cidr) || !isIP(self.infraComponents.dhcp.serverIP) || cidr(self.networkConfig.cidr).containsIP(self.infraComponents.dhcp.serverIP)",message="infraComponents.dhcp.serverIP must lie inside networkConfig.cidr, e.g. 192.168.100.5 in 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!has(self.infraComponents) || !has(self.infraComponents.dns) || !has(self.infraComponents.dns.serverIP) || !isCIDR(self.networkConfig.cidr) || !isIP(self.infraComponents.dns.serverIP) || cidr(self.networkConfig.cidr).containsIP(self.infraComponents.dns.serverIP)",message="infraComponents.dns.serverIP must lie inside networkConfig.cidr, e.g. 192.168.100.5 in 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!has(self.infraComponents) || !has(self.infraComponents.proxy) || !has(self.infraComponents.proxy.serverIP) || !isCIDR(self.networkConfig.cidr) || !isIP(self.infraComponents.proxy.serverIP) || cidr(self.networkConfig.cidr).containsIP(self.infraComponents.proxy.serverIP)",message="infraComponents.proxy.serverIP must lie inside networkConfig.cidr, e.g. 192.168.100.5 in 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!has(self.infraComponents) || !has(self.infraComponents.dhcp) || !has(self.infraComponents.dhcp.rangeStart) || !has(self.infraComponents.dhcp.rangeEnd) || !isCIDR(self.networkConfig.cidr) || [self.infraComponents.dhcp.rangeStart, self.infraComponents.dhcp.rangeEnd].all(a, !isIP(a) || cidr(self.networkConfig.cidr).containsIP(a))",message="infraComponents.dhcp.rangeStart and rangeEnd must lie inside networkConfig.cidr, e.g. 192.168.100.10 and 192.168.100.200 in 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!has(self.infraComponents) || !has(self.infraComponents.dhcp) || !has(self.infraComponents.dhcp.excludeRanges) || !isCIDR(self.networkConfig.cidr) || self.infraComponents.dhcp.excludeRanges.all(r, [r.start, r.end].all(a, !isIP(a) || cidr(self.networkConfig.cidr).containsIP(a)))",message="every range of infraComponents.dhcp.excludeRanges must lie inside networkConfig.cidr, e.g. 192.168.100.90 to 192.168.100.99 in 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!has(self.infraComponents) || !has(self.infraComponents.dhcp) || !has(self.infraComponents.dhcp.reservations) || !isCIDR(self.networkConfig.cidr) || self.infraComponents.dhcp.reservations.all(r, !isIP(r.ip) || cidr(self.networkConfig.cidr).containsIP(r.ip))",message="every ip of infraComponents.dhcp.reservations must lie inside networkConfig.cidr, e.g. 192.168.100.50 in 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!has(self.appsIngress) || !has(self.appsIngress.hostedClusterRef) || (has(self.hostedClusterRef) && self.appsIngress.hostedClusterRef.name == self.hostedClusterRef.name && has(self.appsIngress.hostedClusterRef.__namespace__) == has(self.hostedClusterRef.__namespace__) && (!has(self.hostedClusterRef.__namespace__) || self.appsIngress.hostedClusterRef.__namespace__ == self.hostedClusterRef.__namespace__))",message="appsIngress.hostedClusterRef must equal hostedClusterRef; leave it out, or write e.g. hostedClusterRef: {name: c1} in both"
type InfraSpec struct {
	// The HostedCluster to bridge to: names, ports, backends, namespace and domains come from it. Set once.
	// +optional
	HostedClusterRef *HostedClusterReference `json:"hostedClusterRef,omitempty"`
	// The VLAN.
	NetworkConfig NetworkConfig `json:"networkConfig"`
	// DHCP, DNS and proxy. Default: all three, everything derived.
	// +optional
	InfraComponents InfraComponents `json:"infraComponents,omitempty"`
	// Further things that workers need through the bridge.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	ExtraEndpoints []ExtraEndpoint `json:"extraEndpoints,omitempty"`
	// *.apps of the hosted cluster, on the VLAN and in the management cluster. Default: not published.
	// +optional
	AppsIngress *AppsIngress `json:"appsIngress,omitempty"`
}

// kubectl get oooi shows the kinds by their plural names, and no marker changes that (upstream.md#order-of-tables). With the Infra first:
// kubectl get infra,dhcpserver,dnsserver,proxyserver,dhcplease.

// A printer column has one path and shows its first result: Cluster is the name in hostedClusterRef, else the one that the
// seeds' form writes.

// Infra joins workers on one isolated VLAN to one hosted control plane: DHCP, split-horizon DNS and an L4 proxy.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=infra,categories=oooi
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 40 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="the name may have at most 40 characters a-z, 0-9 and -, a letter first: names of pods and Services are made from it; choose another, e.g. c1"
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec['hostedClusterRef','infraComponents']..['name','clusterName']`
// +kubebuilder:printcolumn:name="API",type=string,JSONPath=`.status.endpoints[?(@.name=="api")].hostnames[0]`
// +kubebuilder:printcolumn:name="Proxy",type=string,JSONPath=`.status.addresses[?(@.component=="proxy")].ip`
// +kubebuilder:printcolumn:name="Leases",type=integer,JSONPath=`.status.leases.active`
// +kubebuilder:printcolumn:name="Healthy",type=string,JSONPath=`.status.healthyBackends`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Infra struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec InfraSpec `json:"spec"`
	// +optional
	Status InfraStatus `json:"status,omitempty"`
}

// InfraList is a list of Infra.
// +kubebuilder:object:root=true
type InfraList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Infra `json:"items"`
}
