package plan

import (
	"fmt"
	"net/netip"

	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
)

// Guest is what is seen in the hosted cluster for *.apps. All of it is the word of the guest's administrator: nothing of it
// is believed unchecked.
type Guest struct {
	// Problem says why the hosted cluster is not, or no longer, seen; what else stands here is from before.
	Problem *GuestProblem
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
	// GuestUnreachable: its API does not answer, or not to us.
	GuestUnreachable = "HostedClusterUnreachable"
)

// Granting says how whoever installed us lets us work in a namespace: by a component, or by the chart's value that it is.
func Granting(namespace, component, value string) string {
	return fmt.Sprintf("kubectl apply -n %s -k config/components/%s, or, where Helm installed it, add %s to the chart's %s", namespace, component, namespace, value)
}

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

// GuestMetalLB is the hosted cluster's MetalLB, in the order of names.
type GuestMetalLB struct {
	// Objects are those of its operator (metallb.io/v1beta1 MetalLB).
	Objects []GuestMetalLBObject
	// Workloads are its controllers (Deployments) and speakers (DaemonSets).
	Workloads []GuestWorkload
	// Advertisements are its L2Advertisements.
	Advertisements []string
}

// GuestMetalLBObject is an object of kind MetalLB: spec.loadBalancerClass is what its workloads will serve.
type GuestMetalLBObject struct {
	Namespace, Name, Class string
}

// GuestWorkload is one that runs MetalLB, with the arguments of the container that does.
type GuestWorkload struct {
	Kind, Namespace, Name string
	Container             string
	Args                  []string
}
