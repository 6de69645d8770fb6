package plan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	acnetworking "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/plan/workload"
)

// waysOut are the egress rules of a plan's NetworkPolicy, one string each.
func waysOut(t *testing.T, p workload.ChildPlan) (all []string) {
	t.Helper()
	policy := networkingv1.NetworkPolicy{}
	for _, o := range p.Objects {
		if applied, is := o.(*acnetworking.NetworkPolicyApplyConfiguration); is {
			if err := json.Unmarshal([]byte(encoded(t, applied)), &policy); err != nil {
				t.Fatal(err)
			}
		}
	}
	NewWithT(t).Expect(policy.Spec.PolicyTypes).To(ConsistOf(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress))
	for _, rule := range policy.Spec.Egress {
		var words []string
		for _, peer := range rule.To {
			if peer.IPBlock != nil {
				words = append(words, peer.IPBlock.CIDR)
			} else {
				words = append(words, "pods of "+strings.Join(peer.NamespaceSelector.MatchExpressions[0].Values, ", "))
			}
		}
		if len(rule.To) == 0 {
			words = append(words, "anywhere")
		}
		for _, port := range rule.Ports {
			words = append(words, fmt.Sprintf("%s/%s", *port.Protocol, port.Port))
		}
		all = append(all, strings.Join(words, " "))
	}
	return all
}

// aService is a Service with one port, whose targetPort is a name.
func aService(namespace, name string, port int32, change func(*corev1.Service)) corev1.Service {
	s := corev1.Service{}
	s.Namespace, s.Name = namespace, name
	s.Spec.Ports = []corev1.ServicePort{{Name: "it", Port: port, TargetPort: intstr.FromString("it")}}
	if change != nil {
		change(&s)
	}
	return s
}

func listensAt(s corev1.Service, number int32) discoveryv1.EndpointSlice {
	slice := discoveryv1.EndpointSlice{}
	slice.Namespace, slice.Labels = s.Namespace, map[string]string{discoveryv1.LabelServiceName: s.Name}
	slice.Ports = []discoveryv1.EndpointPort{{Name: &s.Spec.Ports[0].Name, Port: &number}}
	return slice
}

const toTheAPI, toItsService = "anywhere TCP/6443", "172.30.0.1/32 TCP/443"

// Egress allows what a daemon needs; if its destination is unknown, egress is not restricted.
func TestAPodMayGoWhereItsDaemonHasTo(t *testing.T) {
	balancer := func(s *corev1.Service) {
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.20.0.53"}}
	}
	const dns = "anywhere TCP/53 TCP/5353 TCP/6443 UDP/53 UDP/5353"
	for name, c := range map[string]struct {
		child    string
		services []corev1.Service // instead of the API's
		listen   int32            // target port of services[0]
		change   func(*aChild)
		want     []string
	}{
		"DHCP to the API":                       {child: "dhcp", want: []string{toTheAPI, toItsService}},
		"an API that nobody sees":               {child: "dns", services: []corev1.Service{}, want: []string{"anywhere"}},
		"an API that listens who knows where":   {child: "dns", services: []corev1.Service{aService("default", "kubernetes", 443, nil)}, want: []string{"anywhere"}},
		"an API that listens elsewhere":         {child: "dhcp", services: []corev1.Service{aService("default", "kubernetes", 443, nil)}, listen: 8443, want: []string{"anywhere TCP/8443"}},
		"DNS to the nodes' resolvers":           {child: "dns", want: []string{dns, toItsService}},
		"DNS to a resolver":                     {child: "dns", change: asks("10.20.0.53"), want: []string{dns, toItsService}},
		"DNS to a resolver that is a Service's": {child: "dns", change: also(asks("10.20.0.53"), aService("pihole", "dns", 53, balancer), 5300), want: []string{"anywhere TCP/53 TCP/5300 TCP/5353 TCP/6443 UDP/53 UDP/5353", toItsService}},
		"DNS to no other Service":               {child: "dns", change: also(asks("10.20.0.54"), aService("pihole", "dns", 53, balancer), 5300), want: []string{dns, toItsService}},
		"a control plane's pods":                {child: "proxy", change: also(nil, aService("clusters-c1", "kube-apiserver", 6443, nil), 7443), want: []string{toTheAPI, "pods of clusters-c1", toItsService}},
		"a user's pods, on the host's network too": {child: "proxy", change: also(leads(v1alpha1.ProxyBackend{TargetService: "registry", TargetPort: 443, TargetNamespace: "clusters"}), aService("clusters", "registry", 443, nil), 5000),
			want: []string{"anywhere TCP/5000 TCP/6443", "pods of clusters", toItsService}},
		"another port of theirs": {child: "proxy", change: also(leads(v1alpha1.ProxyBackend{TargetService: "registry", TargetPort: 444, TargetNamespace: "clusters"}), aService("clusters", "registry", 443, nil), 5000),
			want: []string{toTheAPI, "pods of clusters", toItsService}},
		"addresses": {child: "proxy", change: leads(v1alpha1.ProxyBackend{TargetAddresses: []string{"10.20.0.8:443", "10.20.0.7:443", "[::ffff:10.20.0.7]:443", "10.20.0.7:80"}}),
			want: []string{toTheAPI, "10.20.0.7/32 TCP/80", "10.20.0.7/32 10.20.0.8/32 172.30.0.1/32 TCP/443"}},
		"addresses of the VLAN, which is not the pod network": {child: "proxy", change: leads(v1alpha1.ProxyBackend{TargetAddresses: []string{"192.168.100.200:443"}}),
			want: []string{toTheAPI, toItsService}},
		"an address that a load balancer has": {child: "proxy", change: also(leads(v1alpha1.ProxyBackend{TargetAddresses: []string{"10.20.0.53:443"}}), aService("shop", "web", 443, balancer), 8443),
			want: []string{"anywhere TCP/6443 TCP/8443", "10.20.0.53/32 172.30.0.1/32 TCP/443"}},
		"a stranger's node port": {child: "proxy", change: also(leads(v1alpha1.ProxyBackend{TargetAddresses: []string{"10.20.0.9:30443"}}),
			aService("shop", "web", 443, func(s *corev1.Service) { s.Spec.Ports[0].NodePort = 30443 }), 22),
			want: []string{toTheAPI, toItsService, "10.20.0.9/32 TCP/30443"}},
		"a stranger's external IP": {child: "dns", change: also(asks("10.20.0.53"), aService("shop", "web", 53, func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"10.20.0.53"} }), 22),
			want: []string{dns, toItsService}},
		"one's own external IP": {child: "dns", change: also(asks("10.20.0.53"), aService("site", "web", 53, func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"10.20.0.53"} }), 5300),
			want: []string{"anywhere TCP/53 TCP/5300 TCP/5353 TCP/6443 UDP/53 UDP/5353", toItsService}},
		"a node's port": {child: "proxy", change: also(leads(v1alpha1.ProxyBackend{TargetAddresses: []string{"10.20.0.9:30443"}}),
			aService("clusters", "web", 443, func(s *corev1.Service) { s.Spec.Ports[0].NodePort = 30443 }), 8443),
			want: []string{"anywhere TCP/6443 TCP/8443", toItsService, "10.20.0.9/32 TCP/30443"}},
	} {
		t.Run(name, func(t *testing.T) {
			child := childOf(t, c.child)
			if c.services != nil {
				child.dhcp.Services, child.dns.Services = c.services, c.services
			}
			if c.listen != 0 {
				child.dhcp.EndpointSlices = []discoveryv1.EndpointSlice{listensAt(c.services[0], c.listen)}
			}
			if c.change != nil {
				c.change(&child)
			}
			NewWithT(t).Expect(waysOut(t, child.plan())).To(Equal(c.want))
		})
	}
}

func asks(resolver v1alpha1.IPAddress) func(*aChild) {
	return func(c *aChild) { c.dns.Server.Spec.UpstreamDNS = []v1alpha1.IPAddress{resolver} }
}

func leads(b v1alpha1.ProxyBackend) func(*aChild) {
	return func(c *aChild) { b.Name, c.proxy.Server.Spec.Backends = "it", []v1alpha1.ProxyBackend{b} }
}

// also adds a Service and its EndpointSlice.
func also(change func(*aChild), s corev1.Service, number int32) func(*aChild) {
	return func(c *aChild) {
		if change != nil {
			change(c)
		}
		c.dns.Services, c.proxy.Services = append(c.dns.Services, s), append(c.proxy.Services, s)
		c.dns.EndpointSlices, c.proxy.EndpointSlices = []discoveryv1.EndpointSlice{listensAt(s, number)}, []discoveryv1.EndpointSlice{listensAt(s, number)}
	}
}
