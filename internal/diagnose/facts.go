package diagnose

import (
	"time"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	certv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/csr"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/step"
)

// Facts are what was read of an Infra and its workers.
type Facts struct {
	// Now is the API server's time: the caller's clock may be wrong.
	Now time.Time
	// Infra is the only thing that has to be readable.
	Infra *v1alpha1.Infra
	// Others are the other Infras of its namespace, some of which may serve other workers of the same HostedCluster.
	Others []v1alpha1.Infra

	HostedCluster step.Read[*hyperv1.HostedCluster]
	NodePools     step.Read[[]hyperv1.NodePool]
	// DHCP, DNS and Proxy are the Infra's children; nil if there is none.
	DHCP  step.Read[*v1alpha1.DHCPServer]
	DNS   step.Read[*v1alpha1.DNSServer]
	Proxy step.Read[*v1alpha1.ProxyServer]
	// Leases of the Infra, in any state.
	Leases step.Read[[]v1alpha1.DHCPLease]
	// Warnings are Warning events on the DHCPServer.
	Warnings step.Read[[]corev1.Event]
	Networks step.Read[[]nad.NetworkAttachmentDefinition]
	// Machines of the control-plane namespace.
	Machines step.Read[[]Machine]
	// Tokens is the metadata of the Secrets with Ignition's tokens; their content is never read.
	Tokens step.Read[[]metav1.ObjectMeta]
	// Refusals are the Warning events of the ignition server.
	Refusals step.Read[[]corev1.Event]
	// Ignition says for each pod behind Service ignition-server whether it is ready; none if there is no such Service.
	Ignition step.Read[[]bool]
	// Policies are the names of the NetworkPolicies of the control-plane namespace.
	Policies step.Read[[]string]
	// Hosted is what was read in the hosted cluster.
	Hosted step.Read[Hosted]
}

// Machine is a virtual machine of KubeVirt.
type Machine struct {
	Name, Pool string
	// Created is the VirtualMachine's; its user data, and the token in that, are as old.
	Created time.Time
	// Started is when its instance began to run; zero if there is none.
	Started time.Time
	// Status is the VirtualMachine's printable status, or else its instance's phase.
	Status string
	// Runs says whether there is an instance that runs; Changes, whether KubeVirt is about to start, to stop or to delete it.
	Runs, Changes bool
	Cards         []Card
}

// Card is a network card of a machine. Network is its NetworkAttachmentDefinition as namespace/name; empty on the pod network.
type Card struct{ MAC, Network string }

// Hosted is what was read in the hosted cluster.
type Hosted struct {
	Nodes map[string]Node
	// Requests are the CSRs of kubelets.
	Requests []Request
	// Tunnels has, for each Node that was asked through konnectivity, why it did not answer; empty if it did.
	Tunnels map[string]string
}

// Node of the hosted cluster.
type Node struct {
	Created time.Time
	// Ready is its condition, and Heartbeat when its kubelet last reported, or renewed its Lease.
	Ready     corev1.NodeCondition
	Heartbeat time.Time
	// Agent is konnectivity's pod on it: when it was created, zero if there is none; and whether it is Ready, which it is once it has its server.
	Agent struct {
		Created time.Time
		Ready   bool
	}
}

// Request is a CSR of a kubelet.
type Request struct {
	csr.Asked
	// Decided is its condition Approved or Denied; empty while it is pending.
	Decided certv1.RequestConditionType
	// At is when that was.
	At      time.Time
	Because string
}
