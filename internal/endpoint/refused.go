package endpoint

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
)

// publishes are the strategies by which HyperShift publishes a service of machines on premises. Its API admits others, which its
// controllers refuse (hypershift: hostedcluster_controller.go, kas/service.go, oauth/service.go).
var publishes = map[hyperv1.ServiceType][]hyperv1.PublishingStrategyType{
	hyperv1.APIServer:    {hyperv1.LoadBalancer, hyperv1.NodePort, hyperv1.Route},
	hyperv1.OAuthServer:  {hyperv1.Route, hyperv1.NodePort},
	hyperv1.Konnectivity: {hyperv1.Route, hyperv1.LoadBalancer, hyperv1.NodePort},
	hyperv1.Ignition:     {hyperv1.Route, hyperv1.NodePort},
}

// refused says why HyperShift makes no control plane of what was written, while it has made none: no API server tells it.
func (r *reader) refused() {
	if r.HostedCluster.Status.ControlPlaneEndpoint.Host != "" {
		return
	}
	refuse := func(field, why string) {
		r.table.find(finding.Fails(v1alpha1.ConditionEndpointsResolved, "HyperShiftRefuses").In(Object(r.HostedCluster)).At(field).
			Say("HyperShift makes no control plane of HostedCluster %s/%s: %s", r.HostedCluster.Namespace, r.HostedCluster.Name, why))
	}
	for _, why := range r.unpublished() {
		refuse("spec.services", why)
	}
	networks := networksOf(r.HostedCluster.Spec.Networking)
	if why := mixed(networks); why != "" {
		refuse("spec.networking", why)
	}
	if field, why := holding(networks, Advertised(r.HostedCluster)); why != "" {
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
			all = append(all, fmt.Sprintf("it does not publish %s by %s; publish it by %s", s.Service, s.Type, oneOf(by)))
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

// mixed says which of the first networks are of two families (hypershift: validateNetworkStackAddresses).
func mixed(networks []network) string {
	first := map[bool]string{} // by whether it is IPv4
	for _, n := range networks {
		if len(n.cidrs) == 0 {
			continue
		}
		if p, err := netip.ParsePrefix(n.cidrs[0]); err == nil && first[p.Addr().Is4()] == "" {
			first[p.Addr().Is4()] = n.name + " " + n.cidrs[0]
		}
	}
	if len(first) < 2 {
		return ""
	}
	return fmt.Sprintf("its first networks are of two families: %s and %s; put those of one family first", first[true], first[false])
}

// network is one field of a HostedCluster's spec.networking.
type network struct {
	name  string
	cidrs []string
}

func networksOf(n hyperv1.ClusterNetworking) []network {
	clusters, machines, services := network{name: "clusterNetwork"}, network{name: "machineNetwork"}, network{name: "serviceNetwork"}
	for _, e := range n.ClusterNetwork {
		clusters.cidrs = append(clusters.cidrs, e.CIDR.String())
	}
	for _, e := range n.MachineNetwork {
		machines.cidrs = append(machines.cidrs, e.CIDR.String())
	}
	for _, e := range n.ServiceNetwork {
		services.cidrs = append(services.cidrs, e.CIDR.String())
	}
	return []network{clusters, machines, services}
}

// defaultAdvertised is the address at which each worker has the API itself, where none is written (hypershift: support/config,
// DefaultAdvertiseIPv4Address).
const defaultAdvertised = "172.20.0.1"

// Advertised is the address at which each worker of a HostedCluster has the API itself: no machine can have it.
func Advertised(hc *hyperv1.HostedCluster) netip.Addr {
	if hc == nil {
		return netip.Addr{}
	}
	text := defaultAdvertised
	if api := hc.Spec.Networking.APIServer; api != nil && api.AdvertiseAddress != nil {
		text = *api.AdvertiseAddress
	}
	a, _ := netip.ParseAddr(text) // not valid where it cannot be read
	return a
}

// holding says which of a cluster's networks holds the address that is advertised: none may (hypershift: checkAdvertiseAddressOverlapping).
func holding(networks []network, advertised netip.Addr) (field, why string) {
	for _, n := range networks {
		for _, cidr := range n.cidrs {
			if p, err := netip.ParsePrefix(cidr); err == nil && p.Contains(advertised) {
				return "spec.networking." + n.name, fmt.Sprintf("%s %s holds %s, at which each worker has the API itself; write another network, or another spec.networking.apiServer.advertiseAddress", n.name, cidr, advertised)
			}
		}
	}
	return "", ""
}
