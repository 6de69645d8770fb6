package input

import (
	"net/netip"
	"slices"

	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/cldmnky/oooi/internal/valid"
)

// Guest is what was read in the hosted cluster for *.apps. The guest's administrator controls all of it, so all is checked.
type Guest struct {
	// Problem says why the hosted cluster cannot be read now; the other fields are from the last read.
	Problem *GuestProblem
	// Slowed: it sends more than its share, and is read more slowly.
	Slowed bool
	// Cut: an object there is too large, so only its name was read.
	Cut bool
	// Service is ours: its labels name our Infra. Nil if there is none.
	Service *corev1.Service
	// Foreign: a Service of that name exists and is not ours.
	Foreign bool
	// Refused is why the hosted cluster refuses our Service.
	Refused string
	// Router is openshift-ingress/router-nodeport-default; nil when there is none.
	Router *corev1.Service
	// Ingress is how IngressController openshift-ingress-operator/default publishes its routers; nil when it does not say.
	Ingress *operatorv1.EndpointPublishingStrategy
	// Routers are that IngressController's pods, sorted by name; in mode HostNetwork only.
	Routers []GuestRouter
	// Nodes, sorted by name.
	Nodes []GuestNode
	// MetalLB of the hosted cluster.
	MetalLB GuestMetalLB
}

// GuestProblem has a stable reason and message, without any secret.
type GuestProblem struct {
	Reason, Message string
}

// Reasons of a GuestProblem.
const (
	// GuestWaiting: the HostedCluster names no kubeconfig yet, or its Secret is not there.
	GuestWaiting = "WaitingForKubeconfig"
	// GuestKubeconfig: the kubeconfig in the Secret must not be used.
	GuestKubeconfig = "KubeconfigRefused"
	// GuestNotGranted: we may not read Secrets in the HostedCluster's namespace.
	GuestNotGranted = "NamespaceNotGranted"
	// GuestUnreachable: its API does not answer, or refuses us.
	GuestUnreachable = "HostedClusterUnreachable"
)

// GuestNode is what the Node of a worker says.
type GuestNode struct {
	Name      string
	Addresses []netip.Addr // those of type InternalIP
	Ready     bool
	Deleting  bool
}

// GuestRouter is what the pod of a router says.
type GuestRouter struct {
	Node        string // empty while not scheduled
	HostNetwork bool
	HTTP, HTTPS int32 // the ports with these names
	Ready       bool
	Ending      bool // it is being deleted, or has ended
}

// OnWorker says whether a router takes *.apps at its worker's addresses.
func (r GuestRouter) OnWorker() bool {
	return r.HostNetwork && !r.Ending && valid.Port(r.HTTPS) && valid.Port(r.HTTP)
}

// NodePortOf is the node port of a Service's port; 0 if it has none.
func NodePortOf(s *corev1.Service, port int32) int32 {
	if s == nil {
		return 0
	}
	for _, p := range s.Spec.Ports {
		if p.Port == port && valid.Port(p.NodePort) {
			return p.NodePort
		}
	}
	return 0
}

// mostExternalIPs is how many addresses are read from a Service; MetalLB assigns one of each family.
const mostExternalIPs = 8

// ExternalIPs are the addresses in a Service's load-balancer status; hostnames are never resolved.
func ExternalIPs(s *corev1.Service) []netip.Addr {
	if s == nil {
		return nil
	}
	var all []netip.Addr
	for _, i := range s.Status.LoadBalancer.Ingress {
		if a, ok := valid.Address(i.IP); ok && !slices.Contains(all, a) && len(all) < mostExternalIPs {
			all = append(all, a)
		}
	}
	return all
}
