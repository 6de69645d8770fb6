package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HostedClusterReference names a HostedCluster.
type HostedClusterReference struct {
	// Name of the HostedCluster.
	Name ObjectName `json:"name"`
	// Namespace of the HostedCluster. Default: the Infra's namespace. A HostedCluster in another namespace needs the annotation
	// hostedcluster.densityops.com/allowed-namespaces, which must list the Infra's namespace; without it the Infra is not Accepted
	// (RefNotPermitted).
	// +optional
	Namespace ObjectName `json:"namespace,omitempty"`
}

// NetworkConfig describes the VLAN.
// +kubebuilder:validation:XValidation:rule="!has(self.gateway) || !isCIDR(self.cidr) || !isIP(self.gateway) || cidr(self.cidr).containsIP(self.gateway)",message="gateway must lie inside cidr; leave it out on an isolated VLAN, or set e.g. 192.168.100.1 in 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!has(self.routes) || !isCIDR(self.cidr) || self.routes.all(r, !isIP(r.gateway) || cidr(self.cidr).containsIP(r.gateway))",message="the gateway of every route must lie inside cidr, e.g. 192.168.100.1 in 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!isCIDR(self.cidr) || !isCIDR(oldSelf.cidr) || cidr(self.cidr).containsCIDR(oldSelf.cidr)",message="cidr may only widen: it must contain the network that it was, e.g. 192.168.100.0/23 after 192.168.100.0/24"
type NetworkConfig struct {
	// Subnet of the VLAN, /8 or longer, e.g. 192.168.100.0/24. It can only be widened later. It must not overlap the pod or service
	// networks of the management cluster or of the hosted cluster. An IPv6 subnet needs infraComponents.dhcp.enabled: false,
	// because there is no DHCPv6 yet.
	// +kubebuilder:validation:XValidation:rule="!isCIDR(self) || !cidr('127.0.0.0/8').containsIP(cidr(self).ip())",message="the loopback network is no VLAN's; take the VLAN's own, e.g. 192.168.100.0/24"
	CIDR Subnet `json:"cidr"`
	// Address of the VLAN's router; must lie inside cidr. DHCP sends it as the default router (option 3). Default: none, for an
	// isolated VLAN.
	// +optional
	Gateway IPAddress `json:"gateway,omitempty"`
	// NetworkAttachmentDefinition of the VLAN, the one that the NodePools use. It must not assign addresses: no ipam, or ipam: {}.
	NetworkAttachmentDefinition ObjectName `json:"networkAttachmentDefinition"`
	// Namespace of the NetworkAttachmentDefinition. Default: the Infra's namespace.
	// +optional
	NetworkAttachmentNamespace ObjectName `json:"networkAttachmentNamespace,omitempty"`
	// Upstream resolvers: our DNS server forwards all names outside the hosted cluster to them. With infraComponents.dns.enabled:
	// false, DHCP sends them to workers instead, so they must resolve the hosted cluster's names to the proxy's address. Default:
	// the resolvers of the node.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:XValidation:rule="!isIP(self) || ip(self).isGlobalUnicast() || ip(self).isLinkLocalUnicast()",message="must be the address of a server: not 0.0.0.0, loopback or multicast, e.g. 10.0.0.53"
	DNSServers []IPAddress `json:"dnsServers,omitempty"`
	// NTP servers that DHCP sends (option 42); workers must reach them from the VLAN. Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:XValidation:rule="!isIP(self) || ip(self).isGlobalUnicast() || ip(self).isLinkLocalUnicast()",message="must be the address of a server: not 0.0.0.0, loopback or multicast, e.g. 10.0.0.53"
	NTPServers []IPv4Address `json:"ntpServers,omitempty"`
	// MTU of the VLAN in bytes, which DHCP sends (option 26). Default: the MTU of the NetworkAttachmentDefinition; if it has none,
	// option 26 is not sent.
	// +optional
	// +kubebuilder:validation:Minimum=576
	// +kubebuilder:validation:Maximum=65535
	MTU int32 `json:"mtu,omitempty"`
	// DNS search domains that DHCP sends (option 119). Default: the hosted cluster's domain.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	SearchDomains []DNSName `json:"searchDomains,omitempty"`
	// Static routes that DHCP sends (option 121), in addition to those that the operator adds. Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(r, self.exists_one(o, o.destination == r.destination))",message="routes has one destination twice; keep one of them, e.g. one entry for 10.20.0.0/16"
	Routes []Route `json:"routes,omitempty"`
	// Networks behind the VLAN's router whose clients DNS and the proxy answer too. Replies go through gateway, which is then
	// required. They must not overlap the management cluster's pod or service networks. Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	ClientCIDRs []CIDR `json:"clientCIDRs,omitempty"`
}

// EndpointTarget is what an extra endpoint forwards to: a Service, or addresses.
// +kubebuilder:validation:XValidation:rule="has(self.service) != has(self.addresses)",message="set exactly one of service (with port) and addresses, e.g. addresses: [10.20.0.5:443]"
// +kubebuilder:validation:XValidation:rule="!has(self.service) || has(self.port)",message="service needs port, e.g. port: 443"
// +kubebuilder:validation:XValidation:rule="!has(self.addresses) || (!has(self.namespace) && !has(self.port))",message="addresses carry their own port and have no namespace: remove namespace and port, e.g. addresses: [10.20.0.5:443]"
type EndpointTarget struct {
	// Name of a Service. Set either service with port, or addresses.
	// +optional
	Service ObjectName `json:"service,omitempty"`
	// Namespace of the Service: the Infra's (default), or the hosted control plane's.
	// +optional
	Namespace ObjectName `json:"namespace,omitempty"`
	// Port of the Service; required with service.
	// +optional
	Port Port `json:"port,omitempty"`
	// Addresses as ip:port, [ip]:port for IPv6. Each must lie inside the operator's --extra-endpoint-cidrs, else the Infra is not
	// Accepted (AddressNotAllowed).
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=53
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^(\\\\[[0-9a-f:.]+\\\\]|[0-9.]+):[0-9]{1,5}$')",message="must be address:port, e.g. 10.20.0.5:443 or [fd00::5]:443"
	Addresses []string `json:"addresses,omitempty"`
}

// ExtraEndpoint is a further service that workers reach through the proxy, e.g. a mirror registry.
// +kubebuilder:validation:XValidation:rule="self.protocol != 'TLS' || has(self.hostnames)",message="protocol TLS routes by name: set hostnames, e.g. [registry.example.com]"
type ExtraEndpoint struct {
	// Name, unique in the list. Names of the control plane's own endpoints, e.g. api or ignition, are refused
	// (ExtraEndpointConflict).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower case letters, digits and -, e.g. registry"
	Name string `json:"name"`
	// Host names of this endpoint. DNS answers them with the proxy's address. Required with protocol TLS.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Hostnames []DNSNameOrWildcard `json:"hostnames,omitempty"`
	// Port that the proxy listens on.
	Port Port `json:"port"`
	// TLS: the proxy routes by server name (SNI), so endpoints can share a port. TCP: the endpoint needs a port of its own.
	Protocol Protocol `json:"protocol"`
	// What the proxy forwards to.
	Target EndpointTarget `json:"target"`
}

// InfraSpec connects one VLAN to one hosted control plane.
// +kubebuilder:validation:XValidation:rule="has(self.hostedClusterRef) || (has(self.infraComponents) && has(self.infraComponents.dns) && has(self.infraComponents.dns.baseDomain) && has(self.infraComponents.dns.clusterName) && has(self.infraComponents.proxy) && has(self.infraComponents.proxy.controlPlaneNamespace))",message="set hostedClusterRef, or all of infraComponents.dns.baseDomain, dns.clusterName and proxy.controlPlaneNamespace, e.g. hostedClusterRef: {name: c1}"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.hostedClusterRef) || (has(self.hostedClusterRef) && self.hostedClusterRef == oldSelf.hostedClusterRef)",message="hostedClusterRef is set once; make another Infra for another HostedCluster, e.g. metadata.name: c2"
// +kubebuilder:validation:XValidation:rule="!isCIDR(self.networkConfig.cidr) || cidr(self.networkConfig.cidr).ip().family() == 4 || (has(self.infraComponents) && has(self.infraComponents.dhcp) && has(self.infraComponents.dhcp.enabled) && !self.infraComponents.dhcp.enabled)",message="an IPv6 cidr needs infraComponents.dhcp.enabled: false; there is no DHCPv6 yet; set that, or an IPv4 cidr, e.g. 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!has(self.networkConfig.clientCIDRs) || has(self.networkConfig.gateway)",message="clientCIDRs need networkConfig.gateway: answers to them go through it, e.g. gateway: 192.168.100.1"
// +kubebuilder:validation:XValidation:rule="!has(self.infraComponents) || !has(self.infraComponents.dhcp) || !has(self.infraComponents.dhcp.serverIP) || !isCIDR(self.networkConfig.cidr) || !isIP(self.infraComponents.dhcp.serverIP) || cidr(self.networkConfig.cidr).containsIP(self.infraComponents.dhcp.serverIP)",message="infraComponents.dhcp.serverIP must lie inside networkConfig.cidr, e.g. 192.168.100.5 in 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!has(self.infraComponents) || !has(self.infraComponents.dns) || !has(self.infraComponents.dns.serverIP) || !isCIDR(self.networkConfig.cidr) || !isIP(self.infraComponents.dns.serverIP) || cidr(self.networkConfig.cidr).containsIP(self.infraComponents.dns.serverIP)",message="infraComponents.dns.serverIP must lie inside networkConfig.cidr, e.g. 192.168.100.5 in 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!has(self.infraComponents) || !has(self.infraComponents.dhcp) || !has(self.infraComponents.dhcp.additionalServerIPs) || !isCIDR(self.networkConfig.cidr) || self.infraComponents.dhcp.additionalServerIPs.all(a, !isIP(a) || cidr(self.networkConfig.cidr).containsIP(a))",message="infraComponents.dhcp.additionalServerIPs must lie inside networkConfig.cidr, e.g. 192.168.100.7 in 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!has(self.infraComponents) || !has(self.infraComponents.dns) || !has(self.infraComponents.dns.additionalServerIPs) || !isCIDR(self.networkConfig.cidr) || self.infraComponents.dns.additionalServerIPs.all(a, !isIP(a) || cidr(self.networkConfig.cidr).containsIP(a))",message="infraComponents.dns.additionalServerIPs must lie inside networkConfig.cidr, e.g. 192.168.100.6 in 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!has(self.infraComponents) || !has(self.infraComponents.proxy) || !has(self.infraComponents.proxy.additionalServerIPs) || !isCIDR(self.networkConfig.cidr) || self.infraComponents.proxy.additionalServerIPs.all(a, !isIP(a) || cidr(self.networkConfig.cidr).containsIP(a))",message="infraComponents.proxy.additionalServerIPs must lie inside networkConfig.cidr, e.g. 192.168.100.8 in 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!has(self.infraComponents) || !has(self.infraComponents.proxy) || !has(self.infraComponents.proxy.serverIP) || !isCIDR(self.networkConfig.cidr) || !isIP(self.infraComponents.proxy.serverIP) || cidr(self.networkConfig.cidr).containsIP(self.infraComponents.proxy.serverIP)",message="infraComponents.proxy.serverIP must lie inside networkConfig.cidr, e.g. 192.168.100.5 in 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!has(self.infraComponents) || !has(self.infraComponents.dhcp) || !has(self.infraComponents.dhcp.rangeStart) || !has(self.infraComponents.dhcp.rangeEnd) || !isCIDR(self.networkConfig.cidr) || [self.infraComponents.dhcp.rangeStart, self.infraComponents.dhcp.rangeEnd].all(a, !isIP(a) || cidr(self.networkConfig.cidr).containsIP(a))",message="infraComponents.dhcp.rangeStart and rangeEnd must lie inside networkConfig.cidr, e.g. 192.168.100.10 and 192.168.100.200 in 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!has(self.infraComponents) || !has(self.infraComponents.dhcp) || !has(self.infraComponents.dhcp.excludeRanges) || !isCIDR(self.networkConfig.cidr) || self.infraComponents.dhcp.excludeRanges.all(r, [r.start, r.end].all(a, !isIP(a) || cidr(self.networkConfig.cidr).containsIP(a)))",message="every range of infraComponents.dhcp.excludeRanges must lie inside networkConfig.cidr, e.g. 192.168.100.90 to 192.168.100.99 in 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!has(self.infraComponents) || !has(self.infraComponents.dhcp) || !has(self.infraComponents.dhcp.reservations) || !isCIDR(self.networkConfig.cidr) || self.infraComponents.dhcp.reservations.all(r, !isIP(r.ip) || cidr(self.networkConfig.cidr).containsIP(r.ip))",message="every ip of infraComponents.dhcp.reservations must lie inside networkConfig.cidr, e.g. 192.168.100.50 in 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!has(self.appsIngress) || !has(self.appsIngress.hostedClusterRef) || (has(self.hostedClusterRef) && self.appsIngress.hostedClusterRef.name == self.hostedClusterRef.name && has(self.appsIngress.hostedClusterRef.__namespace__) == has(self.hostedClusterRef.__namespace__) && (!has(self.hostedClusterRef.__namespace__) || self.appsIngress.hostedClusterRef.__namespace__ == self.hostedClusterRef.__namespace__))",message="appsIngress.hostedClusterRef must equal hostedClusterRef; leave it out, or write e.g. hostedClusterRef: {name: c1} in both"
type InfraSpec struct {
	// HostedCluster whose workers are on the VLAN. The operator reads names, ports, backends, namespace and domains from it.
	// Immutable once set.
	// +optional
	HostedClusterRef *HostedClusterReference `json:"hostedClusterRef,omitempty"`
	// The VLAN of the workers.
	NetworkConfig NetworkConfig `json:"networkConfig"`
	// DHCP, DNS and proxy. Default: all three are enabled, and all settings are derived.
	// +optional
	InfraComponents InfraComponents `json:"infraComponents,omitempty"`
	// Further services that workers reach through the proxy, e.g. a mirror registry. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	ExtraEndpoints []ExtraEndpoint `json:"extraEndpoints,omitempty"`
	// Publishes *.apps of the hosted cluster on the VLAN and in the management cluster. Default: not published.
	// +optional
	AppsIngress *AppsIngress `json:"appsIngress,omitempty"`
}

// kubectl get oooi shows the kinds by their plural names, and no marker changes that (upstream.md#order-of-tables). With the Infra first:
// kubectl get infra,dhcpserver,dnsserver,proxyserver,dhcplease.

// A printer column has one path and shows its first result: Cluster is the name in hostedClusterRef, else the one that the
// seeds' form writes.

// Infra connects workers on one isolated VLAN to one hosted control plane, through DHCP, split-horizon DNS and an L4 proxy.
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
