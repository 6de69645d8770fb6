package endpoint

import (
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	routev1 "github.com/openshift/api/route/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
)

// Names that HyperShift uses (hypershift: control-plane-operator/controllers/hostedcontrolplane/{manifests,v2/assets}).
const (
	apiService          = "kube-apiserver"
	ignitionProxy       = "ignition-server-proxy"
	ignitionCA          = ignitionServer + "-ca-cert"
	ignitionServer      = "ignition-server" // also the Route; the Service behind it where there is no proxy (old control planes)
	oauthService        = "oauth-openshift"
	oauthRoute          = "oauth"
	konnectivity        = "konnectivity-server" // Service and Route
	metricsProxy        = "metrics-proxy"
	sharedIngressPolicy = "sharedingress"
	router              = "router" // serves the Routes that have ControlPlaneLabel
	// apiTransition has the API's previous address while workers that dial it are being replaced (openshift/enhancements: hypershift,
	// deterministic load balancer IP).
	apiTransition = "kube-apiserver-transition"
)

// ControlPlaneLabel is on the namespaces that HyperShift makes (hypershift: hostedcluster_controller.go, ControlPlaneNamespaceLabelKey), and on
// what is there.
const ControlPlaneLabel = "hypershift.openshift.io/hosted-control-plane"

const (
	httpsPort        = 443  // where a Route's router serves TLS
	konnectivityPort = 8091 // what agents dial if the Service has a load balancer of its own
)

// ControlPlane is what can be read of a hosted control plane.
type ControlPlane struct {
	// Namespace of its Services and Routes.
	Namespace string
	// HostedCluster; nil in the seeds' form, without HyperShift.
	HostedCluster *hyperv1.HostedCluster
	// HostedControlPlane; nil where there is none, or none yet.
	HostedControlPlane *hyperv1.HostedControlPlane
	// ClusterName and BaseDomain as the user wrote them; empty where the HostedCluster has them.
	ClusterName, BaseDomain string

	Services []corev1.Service
	Routes   []routev1.Route
	Policies []networkingv1.NetworkPolicy
}

// ControlPlaneNamespace is where HyperShift runs a HostedCluster's control plane (hypershift: hypershift-operator/controllers/manifests,
// HostedControlPlaneNamespace).
func ControlPlaneNamespace(hc *hyperv1.HostedCluster) string {
	return ControlPlaneNamespaceOf(types.NamespacedName{Namespace: hc.Namespace, Name: hc.Name})
}

// ControlPlaneNamespaceOf a HostedCluster that may not exist yet.
func ControlPlaneNamespaceOf(hc types.NamespacedName) string {
	return hc.Namespace + "-" + strings.ReplaceAll(hc.Name, ".", "-")
}

// Read makes the table. It reads every name where HyperShift publishes it. Only without a HostedCluster does it compose the API's name, and
// takes whatever the namespace has.
func Read(cp ControlPlane) Table {
	r := reader{ControlPlane: cp, table: Table{of: cp}}
	if r.sharesIngress() {
		r.table.find(finding.Refuse(v1alpha1.ConditionEndpointsResolved, "SharedIngressUnsupported").In(Object(cp.HostedCluster)).At("spec.services").
			Say("the control plane in %s is published by HyperShift's shared ingress, whose clients send PROXY v2 before TLS; publish it by LoadBalancer, NodePort or Route", cp.Namespace))
		return r.table
	}
	if cp.HostedCluster == nil {
		r.composed()
		return r.table
	}
	r.refused()
	r.api()
	r.ignition()
	r.oauth()
	r.konnectivity()
	r.route("metrics-proxy", metricsProxy)
	return r.table
}

type reader struct {
	ControlPlane
	table Table
}

// sharesIngress looks for the policy that HyperShift puts beside such a control plane; the HostedCluster does not say it.
func (r *reader) sharesIngress() bool {
	for _, p := range r.Policies {
		if p.Namespace == r.Namespace && p.Name == sharedIngressPolicy {
			return true
		}
	}
	return false
}

func (r *reader) api() {
	hc := r.HostedCluster
	at := hc.Status.ControlPlaneEndpoint
	if at.Host == "" || at.Port == 0 {
		r.table.await("HostedCluster.status.controlPlaneEndpoint")
		return
	}
	hosts := []string{at.Host}
	if hc.Spec.KubeAPIServerDNSName != "" {
		hosts = append(hosts, hc.Spec.KubeAPIServerDNSName)
	}
	if before := r.findService(apiTransition); before != nil {
		hosts = append(hosts, ingressOf(before)...)
	}
	r.addAPI(at.Port, r.published(hyperv1.APIServer).Type, "HostedCluster.status.controlPlaneEndpoint", hosts...)
}

// addAPI adds the API. A connection to its port without another endpoint's server name is meant for it, because the workers' own HAProxy
// passes on what clients inside the guest send.
func (r *reader) addAPI(port int32, published hyperv1.PublishingStrategyType, source string, hosts ...string) {
	e := Endpoint{Name: "api", Port: port, Protocol: v1alpha1.ProtocolTLS, CatchAll: true, Views: v1alpha1.ViewVLANAndPods, Source: source}
	if published == hyperv1.NodePort {
		e.Protocol, e.CatchAll = v1alpha1.ProtocolTCP, false
	}
	r.lead(e, r.service(apiService), hosts...)
}

// IgnitionHost is where machines fetch their configuration, as published or as written; empty while it is neither.
func (cp ControlPlane) IgnitionHost() string {
	if host, _ := splitHostPort(cp.HostedCluster.Status.IgnitionEndpoint, 0); host != "" {
		return host
	}
	return hostnameOf(cp.published(hyperv1.Ignition))
}

func (r *reader) ignition() {
	hc, published := r.HostedCluster, r.published(hyperv1.Ignition)
	if published.Type == hyperv1.None {
		return
	}
	if hc.Status.IgnitionEndpoint == "" {
		r.table.await("HostedCluster.status.ignitionEndpoint")
		return
	}
	host, port := splitHostPort(hc.Status.IgnitionEndpoint, r.routePort(ignitionServer))
	e := vlanEndpoint("ignition", port, published.Type, "HostedCluster.status.ignitionEndpoint")
	r.lead(e, r.behind(ignitionServer, ignitionProxy, ignitionServer), host)
}

func (r *reader) oauth() {
	hc, published := r.HostedCluster, r.published(hyperv1.OAuthServer)
	if usesOIDC(hc) || published.Type == hyperv1.None {
		return // there is no OAuth server to wait for
	}
	const source = "HostedCluster.status.oauthCallbackURLTemplate"
	host, port := hostPortOfURL(hc.Status.OAuthCallbackURLTemplate, r.routePort(oauthRoute))
	if host == "" {
		r.table.await("HostedCluster.status.oauthCallbackURLTemplate")
		return
	}
	if route := r.findRoute(oauthRoute); route != nil && published.Type != hyperv1.NodePort && hostOf(route) != host {
		r.table.find(finding.Warn(v1alpha1.ConditionEndpointsResolved, "OAuthHostMismatch").In(Object(hc)).At("status.oauthCallbackURLTemplate").
			Say("%s says %s, but Route %s/%s says %s; the status is used", source, host, r.Namespace, oauthRoute, hostOf(route)))
	}
	r.lead(vlanEndpoint("oauth", port, published.Type, source), r.behind(oauthRoute, oauthService), host)
}

func usesOIDC(hc *hyperv1.HostedCluster) bool {
	c := hc.Spec.Configuration
	return c != nil && c.Authentication != nil && c.Authentication.Type == configv1.AuthenticationTypeOIDC
}

func (r *reader) konnectivity() {
	switch published := r.published(hyperv1.Konnectivity); published.Type {
	case hyperv1.None:
	case hyperv1.NodePort:
		r.konnectivityNodePort(published)
	case hyperv1.LoadBalancer:
		r.konnectivityLoadBalancer(published)
	default:
		if !r.route("konnectivity", konnectivity) {
			r.table.await("Route %s/%s", r.Namespace, konnectivity)
		}
	}
}

func (r *reader) konnectivityNodePort(published hyperv1.ServicePublishingStrategy) {
	s := r.findService(konnectivity)
	if s == nil || published.NodePort == nil || len(s.Spec.Ports) == 0 || s.Spec.Ports[0].NodePort == 0 {
		r.table.await("the nodePort of Service %s/%s", r.Namespace, konnectivity)
		return
	}
	e := vlanEndpoint("konnectivity", s.Spec.Ports[0].NodePort, hyperv1.NodePort, "HostedCluster.spec.services[Konnectivity].nodePort.address")
	r.lead(e, s, published.NodePort.Address)
}

func (r *reader) konnectivityLoadBalancer(published hyperv1.ServicePublishingStrategy) {
	s, source := r.findService(konnectivity), "HostedCluster.spec.services[Konnectivity].loadBalancer.hostname"
	var hosts []string
	if published.LoadBalancer != nil && published.LoadBalancer.Hostname != "" {
		hosts = []string{published.LoadBalancer.Hostname}
	} else if s != nil {
		hosts, source = ingressOf(s), "Service "+konnectivity+".status.loadBalancer"
	}
	if s == nil || len(hosts) == 0 {
		r.table.await("the load balancer of Service %s/%s", r.Namespace, konnectivity)
		return
	}
	r.lead(vlanEndpoint("konnectivity", konnectivityPort, hyperv1.LoadBalancer, source), s, hosts...)
}

// composed reads a control plane without a HostedControlPlane: the API's name is composed from what the user wrote, everything else is what
// Routes and Services say, and only the API is awaited.
func (r *reader) composed() {
	s := r.service(apiService)
	if s == nil || len(s.Spec.Ports) == 0 {
		return
	}
	if route := r.findRoute(apiService); route != nil && hostOf(route) != "" {
		r.addAPI(r.routePort(apiService), hyperv1.Route, "Route "+apiService, hostOf(route))
	} else if port := s.Spec.Ports[0]; s.Spec.Type == corev1.ServiceTypeNodePort {
		r.addAPI(port.NodePort, hyperv1.NodePort, "Composed", "api."+r.Domain())
	} else {
		r.addAPI(port.Port, hyperv1.LoadBalancer, "Composed", "api."+r.Domain())
	}
	r.route("ignition", ignitionServer)
	r.route("oauth", oauthRoute)
	r.route("konnectivity", konnectivity)
	r.route("metrics-proxy", metricsProxy)
}

// vlanEndpoint is an endpoint for workers only. Published by a NodePort or its own load balancer, it has its port to itself: plain TCP. A
// Route shares its port by server name.
func vlanEndpoint(name string, port int32, published hyperv1.PublishingStrategyType, source string) Endpoint {
	e := Endpoint{Name: name, Port: port, Protocol: v1alpha1.ProtocolTLS, Views: v1alpha1.ViewVLAN, Source: source}
	if published == hyperv1.NodePort || published == hyperv1.LoadBalancer {
		e.Protocol = v1alpha1.ProtocolTCP
	}
	return e
}
