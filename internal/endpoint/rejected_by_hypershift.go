package endpoint

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
)

// publishes are the strategies by which HyperShift publishes the services of on-premises machines. Its API accepts others, which its
// controllers refuse (hypershift: hostedcluster_controller.go, kas/service.go, oauth/service.go).
var publishes = map[hyperv1.ServiceType][]hyperv1.PublishingStrategyType{
	hyperv1.APIServer:    {hyperv1.LoadBalancer, hyperv1.NodePort, hyperv1.Route},
	hyperv1.OAuthServer:  {hyperv1.Route, hyperv1.NodePort},
	hyperv1.Konnectivity: {hyperv1.Route, hyperv1.LoadBalancer, hyperv1.NodePort},
	hyperv1.Ignition:     {hyperv1.Route, hyperv1.NodePort},
}

// refused says why HyperShift cannot make a control plane from what was written, while there is none: no API server says so.
func (r *reader) refused() {
	if r.HostedCluster.Status.ControlPlaneEndpoint.Host != "" {
		return
	}
	refuse := func(field, why string) {
		r.table.find(finding.Fail(v1alpha1.ConditionEndpointsResolved, "RejectedByHyperShift").In(Object(r.HostedCluster)).At(field).
			Say("HyperShift rejects HostedCluster %s/%s: %s", r.HostedCluster.Namespace, r.HostedCluster.Name, why))
	}
	for _, why := range r.unpublished() {
		refuse("spec.services", why)
	}
	networks, advertised := NetworksOf(r.HostedCluster), Advertised(r.HostedCluster)
	if !advertised.IsValid() {
		refuse("spec.networking.apiServer.advertiseAddress", fmt.Sprintf("%q is no address", *r.HostedCluster.Spec.Networking.APIServer.AdvertiseAddress))
	}
	if why := mixed(networks, advertised); why != "" {
		refuse("spec.networking", why)
	}
	if why := overlapping(append(networks, internalOf(r.HostedCluster)...)); why != "" {
		refuse("spec.networking", why)
	}
	if field, why := containing(networks, advertised); why != "" {
		refuse(field, why)
	}
}

func (r *reader) unpublished() (all []string) {
	under := map[string]hyperv1.ServiceType{}
	for _, s := range r.services() {
		by, known := publishes[s.Service]
		if s.Service == hyperv1.OAuthServer && (s.Type == hyperv1.None || usesOIDC(r.HostedCluster)) {
			continue
		}
		host := hostnameOf(s.ServicePublishingStrategy)
		switch before, twice := under[host]; {
		case known && !slices.Contains(by, s.Type):
			all = append(all, fmt.Sprintf("it cannot publish %s through %s; use %s", s.Service, s.Type, oneOf(by)))
		case s.Service == hyperv1.APIServer && s.Type == hyperv1.Route && host == "":
			all = append(all, fmt.Sprintf("%s is published by a Route without a name; write route.hostname", s.Service))
		case host != "" && twice:
			all = append(all, fmt.Sprintf("%s and %s are published under one name, %s; give each its own", before, s.Service, host))
		}
		under[host] = s.Service
	}
	return all
}

func hostnameOf(s hyperv1.ServicePublishingStrategy) string {
	switch {
	case s.Type == hyperv1.LoadBalancer && s.LoadBalancer != nil:
		return s.LoadBalancer.Hostname
	case s.Type == hyperv1.Route && s.Route != nil:
		return s.Route.Hostname
	}
	return ""
}

func oneOf(types []hyperv1.PublishingStrategyType) string {
	var all []string
	for _, t := range types {
		all = append(all, string(t))
	}
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

// mixed says which of the first CIDRs and the API's address are of different families (hypershift: validateNetworkStackAddresses).
func mixed(networks []Network, advertised netip.Addr) string {
	first := map[bool]string{} // by whether it is IPv4
	for _, n := range networks {
		if len(n.CIDRs) == 0 {
			continue
		}
		if p, err := netip.ParsePrefix(n.CIDRs[0]); err == nil && first[p.Addr().Is4()] == "" {
			first[p.Addr().Is4()] = n.Name + " " + n.CIDRs[0]
		}
	}
	if advertised.IsValid() && first[advertised.Is4()] == "" {
		first[advertised.Is4()] = fmt.Sprintf("apiServer.advertiseAddress %s", advertised)
	}
	if len(first) < 2 {
		return ""
	}
	return fmt.Sprintf("its first networks have different address families: %s and %s; list networks of the same family first", first[true], first[false])
}

// Network is one field of a HostedCluster's spec.networking.
type Network struct {
	Name  string
	CIDRs []string
}

// The names of a HostedCluster's networks.
const (
	ClusterNetwork = "clusterNetwork"
	MachineNetwork = "machineNetwork"
	ServiceNetwork = "serviceNetwork"
)

// The networks of a HostedCluster that writes none (hypershift: api/hypershift/v1beta1, ClusterNetworking).
const (
	DefaultClusterNetwork = "10.132.0.0/14"
	DefaultServiceNetwork = "172.31.0.0/16"
)

// NetworksOf a HostedCluster, including the defaults of its API.
func NetworksOf(hc *hyperv1.HostedCluster) []Network {
	n := hc.Spec.Networking
	clusters, machines, services := Network{Name: ClusterNetwork}, Network{Name: MachineNetwork}, Network{Name: ServiceNetwork}
	for _, e := range n.ClusterNetwork {
		clusters.CIDRs = append(clusters.CIDRs, e.CIDR.String())
	}
	for _, e := range n.MachineNetwork {
		machines.CIDRs = append(machines.CIDRs, e.CIDR.String())
	}
	for _, e := range n.ServiceNetwork {
		services.CIDRs = append(services.CIDRs, e.CIDR.String())
	}
	if len(clusters.CIDRs) == 0 {
		clusters.CIDRs = []string{DefaultClusterNetwork}
	}
	if len(services.CIDRs) == 0 {
		services.CIDRs = []string{DefaultServiceNetwork}
	}
	return []Network{clusters, machines, services}
}

// internalOf are the networks that OVN-Kubernetes uses internally in a hosted cluster. On KubeVirt, HyperShift gives it join subnets that
// differ from the management cluster's (hypershift: api/hypershift/v1beta1/operator.go).
func internalOf(hc *hyperv1.HostedCluster) []Network {
	if t := hc.Spec.Networking.NetworkType; t != "" && t != hyperv1.OVNKubernetes {
		return nil
	}
	join, transit := Network{Name: "operatorConfiguration.clusterNetworkOperator.ovnKubernetesConfig.ipv4.internalJoinSubnet"}, Network{Name: "operatorConfiguration.clusterNetworkOperator.ovnKubernetesConfig.ipv4.internalTransitSwitchSubnet"}
	written := &hyperv1.OVNIPv4Config{} // the HyperShift API that we build with has no such type for IPv6
	if o := hc.Spec.OperatorConfiguration; o != nil && o.ClusterNetworkOperator != nil && o.ClusterNetworkOperator.OVNKubernetesConfig != nil {
		written = cmp.Or(o.ClusterNetworkOperator.OVNKubernetesConfig.IPv4, written)
	}
	if hc.Spec.Platform.Type == hyperv1.KubevirtPlatform {
		join.CIDRs = []string{cmp.Or(written.InternalJoinSubnet, "100.66.0.0/16"), "fd99::/64"}
	} else if written.InternalJoinSubnet != "" {
		join.CIDRs = []string{written.InternalJoinSubnet}
	}
	if written.InternalTransitSwitchSubnet != "" {
		transit.CIDRs = []string{written.InternalTransitSwitchSubnet}
	}
	return []Network{join, transit}
}

// overlapping says which two networks overlap (hypershift: validateSliceNetworkCIDRs).
func overlapping(networks []Network) string {
	type block struct {
		of string
		netip.Prefix
	}
	var before []block
	for _, n := range networks {
		for _, cidr := range n.CIDRs {
			p, err := netip.ParsePrefix(cidr)
			if err != nil {
				continue
			}
			for _, other := range before {
				if p.Overlaps(other.Prefix) {
					return fmt.Sprintf("%s %s and %s %s overlap (omitted fields have HyperShift's defaults); choose others", other.of, other.Prefix, n.Name, cidr)
				}
			}
			before = append(before, block{n.Name, p})
		}
	}
	return ""
}

// The default address at which each worker reaches the API on itself (hypershift: support/config, DefaultAdvertiseIPv4Address).
const (
	advertisedIPv4 = "172.20.0.1"
	advertisedIPv6 = "fd00::1"
)

// Advertised is the address at which each worker of a HostedCluster reaches the API on itself: no machine can have it.
func Advertised(hc *hyperv1.HostedCluster) netip.Addr {
	if hc == nil {
		return netip.Addr{}
	}
	text := advertisedIPv4
	if strings.Contains(NetworksOf(hc)[0].CIDRs[0], ":") {
		text = advertisedIPv6
	}
	if api := hc.Spec.Networking.APIServer; api != nil && api.AdvertiseAddress != nil {
		text = *api.AdvertiseAddress
	}
	a, _ := netip.ParseAddr(text) // not valid if it cannot be parsed
	return a
}

// containing says which of a cluster's networks contains the advertised address: none may (hypershift: checkAdvertiseAddressOverlapping).
func containing(networks []Network, advertised netip.Addr) (field, why string) {
	for _, n := range networks {
		for _, cidr := range n.CIDRs {
			if p, err := netip.ParsePrefix(cidr); err == nil && p.Contains(advertised) {
				return "spec.networking." + n.Name, fmt.Sprintf("%s %s holds %s, where each worker reaches the API; choose another network, or another spec.networking.apiServer.advertiseAddress", n.Name, cidr, advertised)
			}
		}
	}
	return "", ""
}
