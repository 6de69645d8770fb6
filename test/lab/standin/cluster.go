package standin

import (
	"fmt"
	"net/netip"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// HostedClusterNamespace has the HostedClusters and NodePools: the HyperShift CLI's default.
const HostedClusterNamespace = "clusters"

// workerAPIAddress is where a worker's pods reach their API server: a proxy on each worker listens there and connects to the API's
// published address (HyperShift, support/config/constants.go).
const workerAPIAddress = "172.20.0.1"

// Cluster is what a person chooses about a hosted cluster. Everything else follows from it.
type Cluster struct {
	Name          string
	Strategy      Strategy
	BaseDomain    string // of the hosted cluster: api.<name>.<base domain>
	IngressDomain string // of the management cluster: Routes get hosts under it
	LBAddress     string // that the load balancer assigns to kube-apiserver
	NodeAddress   string // nodePort.address: a name or an IP
	IgnitionHost  string // replaces the host that the ingress assigns to the ignition Route
	AttachedTo    string // the workers' network attachment definition, namespace/name

	adopted *hyperv1.HostedCluster // made by somebody else
}

// Strategy is how the four services of a hosted cluster are published.
type Strategy string

const (
	// LoadBalancer is the KubeVirt CLI's default: the API behind a load balancer without a host name, the rest by Route.
	LoadBalancer Strategy = "loadbalancer"
	// LoadBalancerHostname is the same with a host name for the API.
	LoadBalancerHostname Strategy = "loadbalancer-hostname"
	// NodePort publishes all four on ports of the management cluster's nodes.
	NodePort Strategy = "nodeport"
	// Route publishes all four by Route, the API included: HyperShift then runs a router of its own, and the API is on 443.
	Route Strategy = "route"
)

// Strategies lists them all, the default first.
func Strategies() []Strategy { return []Strategy{LoadBalancer, LoadBalancerHostname, NodePort, Route} }

// Validate says which choices are impossible.
func (c Cluster) Validate() error {
	for _, s := range Strategies() {
		if c.Strategy != s {
			continue
		}
		if _, err := netip.ParseAddr(c.LBAddress); err != nil {
			return fmt.Errorf("--lb-address %q is not an IP address; give one that nothing else answers for, such as 203.0.113.10", c.LBAddress)
		}
		return nil
	}
	return fmt.Errorf("--strategy %q is none of %v", c.Strategy, Strategies())
}

// Namespace of the hosted control plane.
func (c Cluster) Namespace() string { return HostedClusterNamespace + "-" + c.Name }

func (c Cluster) infraID() string                   { return c.Name + "-lab" }
func (c Cluster) apiHost() string                   { return "api." + c.Name + "." + c.BaseDomain }
func (c Cluster) nodePool() string                  { return c.Name }
func (c Cluster) adminKubeconfig() string           { return c.Name + "-admin-kubeconfig" }
func (c Cluster) pullSecret() string                { return c.Name + "-pull-secret" }
func (c Cluster) serviceHost(service string) string { return service + "." + c.Namespace() + ".svc" }

// routeHost is the host that the management cluster's ingress assigns to a Route without one or, where everything is published by Route,
// the one that a user of external DNS writes.
func (c Cluster) routeHost(route string) string {
	if route == "ignition-server" && c.IgnitionHost != "" {
		return c.IgnitionHost
	}
	if c.Strategy == Route {
		return route + "-" + c.Name + "." + c.BaseDomain
	}
	return route + "-" + c.Namespace() + "." + c.IngressDomain
}

// services is the HostedCluster's spec.services.
func (c Cluster) services() []hyperv1.ServicePublishingStrategyMapping {
	byRoute := func(route string) hyperv1.ServicePublishingStrategy {
		s := hyperv1.ServicePublishingStrategy{Type: hyperv1.Route}
		if c.Strategy == Route {
			s.Route = &hyperv1.RoutePublishingStrategy{Hostname: c.routeHost(route)}
		}
		return s
	}
	api, ignition, konnectivity, oauth := hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer},
		byRoute("ignition-server"), byRoute("konnectivity-server"), byRoute("oauth")
	switch c.Strategy {
	case LoadBalancerHostname:
		api.LoadBalancer = &hyperv1.LoadBalancerPublishingStrategy{Hostname: c.apiHost()}
	case NodePort:
		all := hyperv1.ServicePublishingStrategy{Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: c.NodeAddress}}
		api, ignition, konnectivity, oauth = all, all, all, all
	case Route:
		api = hyperv1.ServicePublishingStrategy{Type: hyperv1.Route, Route: &hyperv1.RoutePublishingStrategy{Hostname: c.apiHost()}}
	}
	return []hyperv1.ServicePublishingStrategyMapping{
		{Service: hyperv1.APIServer, ServicePublishingStrategy: api},
		{Service: hyperv1.Ignition, ServicePublishingStrategy: ignition},
		{Service: hyperv1.Konnectivity, ServicePublishingStrategy: konnectivity},
		{Service: hyperv1.OAuthServer, ServicePublishingStrategy: oauth},
	}
}

// host is the name or address at which a worker reaches what is published by a Service.
func (c Cluster) host(service string) string {
	switch {
	case c.Strategy == NodePort:
		return c.NodeAddress
	case service == kubeAPIServer && c.Strategy == LoadBalancer:
		return c.LBAddress
	case service == kubeAPIServer:
		return c.apiHost()
	}
	return c.routeHost(routeOf[service])
}

// port goes with host. Node ports are assigned by the API server, so they are passed in.
func (c Cluster) port(service string, nodePorts map[string]int32) int32 {
	switch {
	case c.Strategy == NodePort:
		return nodePorts[service]
	case service == kubeAPIServer && c.Strategy != Route:
		return 6443
	}
	return 443
}

// publishing is one entry of spec.services.
func (c Cluster) publishing(service hyperv1.ServiceType) hyperv1.ServicePublishingStrategy {
	for _, s := range c.services() {
		if s.Service == service {
			return s.ServicePublishingStrategy
		}
	}
	return hyperv1.ServicePublishingStrategy{}
}
