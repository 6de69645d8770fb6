package input

import (
	"net/netip"
	"slices"

	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/cldmnky/oooi/internal/valid"
)

// Guest is what was read in the hosted cluster for *.apps. The guest's administrator controls all of it: nothing is used unchecked.
type Guest struct {
	// Problem says why the hosted cluster cannot be read now; the other fields are from before.
	Problem *GuestProblem
	// Slowed: it sends more than its share, and is read more slowly.
	Slowed bool
	// Cut: of an object there the name alone is read, because it is too large.
	Cut bool
	// Service is ours: its labels name our Infra. Nil when there is none.
	Service *corev1.Service
	// Foreign: a Service of that name is there that is not ours.
	Foreign bool
	// Refused is why the hosted cluster refuses our Service.
	Refused string
	// Router is openshift-ingress/router-nodeport-default; nil when there is none.
	Router *corev1.Service
	// Ingress is how IngressController openshift-ingress-operator/default publishes its routers; nil when it does not say.
	Ingress *operatorv1.EndpointPublishingStrategy
	// Routers are that IngressController's pods, in the order of their names; in mode HostNetwork only.
	Routers []GuestRouter
	// Nodes in the order of their names.
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
	// GuestKubeconfig: what the Secret holds must not be used.
	GuestKubeconfig = "KubeconfigRefused"
	// GuestNotGranted: we may not read Secrets in the HostedCluster's namespace.
	GuestNotGranted = "NamespaceNotGranted"
	// GuestUnreachable: its API does not answer, or refuses us.
	GuestUnreachable = "HostedClusterUnreachable"
)

// GuestNode is a worker as its Node says.
type GuestNode struct {
	Name      string
	Addresses []netip.Addr // those of type InternalIP
	Ready     bool
	Deleting  bool
}

// GuestRouter is a router as its pod says.
type GuestRouter struct {
	Node        string // empty: it has none yet
	HostNetwork bool
	HTTP, HTTPS int32 // its ports of these names
	Ready       bool
	Ending      bool // it is being deleted, or has ended
}

// OnWorker says whether a router takes *.apps at its worker's addresses.
func (r GuestRouter) OnWorker() bool {
	return r.HostNetwork && !r.Ending && valid.Port(r.HTTPS) && valid.Port(r.HTTP)
}

// NodePortOf a Service's port; 0 where it has none.
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

// mostExternalIPs that a Service is believed to have: MetalLB gives it one of each family.
const mostExternalIPs = 8

// ExternalIPs are those that a Service says it has; names are never followed.
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
