package standin

import (
	routev1 "github.com/openshift/api/route/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// published is what workers connect to, and what keeps others out: Services, Routes, NetworkPolicies.
func (c Cluster) published() []client.Object {
	var all []client.Object
	for _, s := range c.serviceObjects() {
		all = append(all, s)
	}
	for _, r := range c.routes() {
		all = append(all, r)
	}
	for _, p := range c.networkPolicies() {
		all = append(all, p)
	}
	return all
}

func (c Cluster) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: c.Namespace()}
}

// component are the labels by which HyperShift's Services select pods of the newer components.
func component(name string) map[string]string {
	return map[string]string{"app": name, componentLabel: name}
}

func (c Cluster) service(name string, selector map[string]string, kind hyperv1.PublishingStrategyType, ports ...corev1.ServicePort) *corev1.Service {
	s := &corev1.Service{ObjectMeta: c.meta(name), Spec: corev1.ServiceSpec{Selector: selector, Ports: ports, Type: corev1.ServiceTypeClusterIP}}
	switch kind {
	case hyperv1.LoadBalancer:
		s.Spec.Type = corev1.ServiceTypeLoadBalancer
	case hyperv1.NodePort:
		s.Spec.Type = corev1.ServiceTypeNodePort
	}
	return s
}

func port(name string, number int32, target intstr.IntOrString) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: number, TargetPort: target, Protocol: corev1.ProtocolTCP}
}

func (c Cluster) serviceObjects() []*corev1.Service {
	number, name := intstr.FromInt32, intstr.FromString
	api := c.publishing(hyperv1.APIServer)
	kas := c.service(kubeAPIServer, component(kubeAPIServer), api.Type, port("", apiPort, name("client")))
	kas.Labels = component(kubeAPIServer)
	if api.LoadBalancer != nil {
		kas.Annotations = map[string]string{hyperv1.ExternalDNSHostnameAnnotation: api.LoadBalancer.Hostname}
	}
	discovery := c.service(etcdDiscovery, map[string]string{"app": "etcd"}, "", port("peer", 2380, name("peer")), port("etcd-client", 2379, name("client")))
	discovery.Spec.ClusterIP, discovery.Spec.PublishNotReadyAddresses = corev1.ClusterIPNone, true
	etcd := c.service(etcdClient, map[string]string{"app": "etcd"}, "", port("etcd-client", 2379, name("client")), port("metrics", 2381, name("metrics")))
	etcd.Spec.ClusterIP = corev1.ClusterIPNone
	etcd.Labels = map[string]string{"app": "etcd"}

	all := []*corev1.Service{
		kas, etcd, discovery,
		c.service(konnectivityServer, component(kubeAPIServer), c.publishing(hyperv1.Konnectivity).Type, port("", konnectivityPort, number(konnectivityPort))),
		c.service(konnectivityLocal, map[string]string{"app": kubeAPIServer}, "", port("", konnectivityLocalPort, number(konnectivityLocalPort))),
		c.service(ignitionServer, map[string]string{"app": ignitionServer}, "", port("https", 443, number(ignitionPort))),
		c.service(ignitionServerProxy, map[string]string{"app": ignitionServerProxy}, c.publishing(hyperv1.Ignition).Type, port("https", 443, name("https"))),
		c.service(oauthServer, component(oauthServer), c.publishing(hyperv1.OAuthServer).Type, port("", oauthPort, number(oauthPort))),
	}
	if c.Strategy == Route {
		all = append(all, c.service(router, map[string]string{"app": "private-router"}, hyperv1.LoadBalancer, port("https", 443, name("https"))))
	}
	return all
}

// balanced names the Services that get an address from the management cluster's load balancer.
func (c Cluster) balanced() []string {
	switch c.Strategy {
	case LoadBalancer, LoadBalancerHostname:
		return []string{kubeAPIServer}
	case Route:
		return []string{router}
	}
	return nil
}

func (c Cluster) routes() []*routev1.Route {
	if c.Strategy == NodePort {
		return nil
	}
	services := []string{oauthServer, ignitionServerProxy, konnectivityServer}
	if c.Strategy == Route {
		services = append(services, kubeAPIServer)
	}
	var all []*routev1.Route
	for _, service := range services {
		r := &routev1.Route{ObjectMeta: c.meta(routeOf[service]), Spec: routev1.RouteSpec{
			Host: c.host(service), WildcardPolicy: routev1.WildcardPolicyNone,
			To:  routev1.RouteTargetReference{Kind: "Service", Name: service},
			TLS: &routev1.TLSConfig{Termination: routev1.TLSTerminationPassthrough, InsecureEdgeTerminationPolicy: routev1.InsecureEdgeTerminationPolicyNone},
		}}
		if c.Strategy == Route { // HyperShift's own router serves Routes with this label
			r.Labels = map[string]string{controlPlaneLabel: c.Namespace()}
		}
		if service == konnectivityServer { // agents keep dialling until they have met every server
			r.Annotations = map[string]string{"haproxy.router.openshift.io/balance": "roundrobin"}
		}
		all = append(all, r)
	}
	return all
}

// admitted is the status that a Route gets from its router.
func admitted(r *routev1.Route) []routev1.RouteIngress {
	return []routev1.RouteIngress{{
		Host: r.Spec.Host, RouterName: "default", WildcardPolicy: routev1.WildcardPolicyNone,
		Conditions: []routev1.RouteIngressCondition{{Type: routev1.RouteAdmitted, Status: corev1.ConditionTrue}},
	}}
}

// networkPolicies are HyperShift's (hypershift-operator/…/hostedcluster/network_policies.go), except those for egress and for launcher
// pods, which the lab does not run.
func (c Cluster) networkPolicies() []*networkingv1.NetworkPolicy {
	group := func(name string) networkingv1.NetworkPolicyPeer {
		return networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"network.openshift.io/policy-group": name}}}
	}
	sameNamespace := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{}}
	all := []*networkingv1.NetworkPolicy{
		c.admit("openshift-ingress", "", networkingv1.NetworkPolicyIngressRule{From: []networkingv1.NetworkPolicyPeer{group("ingress")}}),
		c.admit("same-namespace", "", networkingv1.NetworkPolicyIngressRule{From: []networkingv1.NetworkPolicyPeer{sameNamespace}}),
		c.admit("kas", kubeAPIServer, anyoneTo(apiPort)),
		c.admit("openshift-monitoring", "", networkingv1.NetworkPolicyIngressRule{From: []networkingv1.NetworkPolicyPeer{group("monitoring")}}),
	}
	if c.Strategy == NodePort {
		all = append(all,
			c.admit("nodeport-oauth", oauthServer, anyoneTo(oauthPort)),
			c.admit("nodeport-ignition", ignitionServer, anyoneTo(ignitionPort)),
			c.admit("nodeport-ignition-proxy", ignitionServerProxy, anyoneTo(ignitionProxyPort)),
			c.admit("nodeport-konnectivity", konnectivityServer, anyoneTo(konnectivityPort)),
			c.admit("nodeport-konnectivity-kas", kubeAPIServer, anyoneTo(konnectivityPort)))
	}
	return all
}

func (c Cluster) admit(name, app string, rule networkingv1.NetworkPolicyIngressRule) *networkingv1.NetworkPolicy {
	p := &networkingv1.NetworkPolicy{ObjectMeta: c.meta(name), Spec: networkingv1.NetworkPolicySpec{
		Ingress: []networkingv1.NetworkPolicyIngressRule{rule}, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
	}}
	if app != "" {
		p.Spec.PodSelector.MatchLabels = map[string]string{"app": app}
	}
	return p
}

func anyoneTo(number int32) networkingv1.NetworkPolicyIngressRule {
	tcp, to := corev1.ProtocolTCP, intstr.FromInt32(number)
	return networkingv1.NetworkPolicyIngressRule{Ports: []networkingv1.NetworkPolicyPort{{Port: &to, Protocol: &tcp}}}
}
