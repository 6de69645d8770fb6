package bridge

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// Plan is what one bridge becomes.
type Plan struct {
	// Objects of the hosted cluster, in the order in which they are applied. They are not, while Frozen.
	desired.Plan
	// Frozen means that nothing of the hosted cluster may change. Injection and approval have reasons of their own.
	Frozen bool
	// Key is the Secret to make, with a key that etcd is encrypted with; nil when it is there. It is made once.
	Key *corev1.Secret
	// Copies of the user's Secrets, by name; others of the bridge's are no longer needed.
	Copies []string
	// Recreates says that the hosted cluster was there and somebody has deleted it.
	Recreates bool
	// Image that the operating system of the DPUs comes from; empty while it is not known.
	Image string
	// Inject the kubeconfig; nil while there is none, or nowhere to.
	Inject *Injection
	// Approve certificates of the DPUCluster's DPUs; nil stops it.
	Approve *Approval
	// End the bridge: its DPUCluster is gone, and the user wants all else to go with it.
	End bool
}

// Reported tells whether a bridge's status has anything of a HostedCluster.
func Reported(b *dpuv1.DPUHCPBridge) bool {
	return meta.FindStatusCondition(b.Status.Conditions, dpuv1.ConditionHostedClusterAvailable) != nil
}

func denied(condition, namespace string) finding.Finding {
	return finding.Wait(condition, input.GuestNotGranted).
		Say("the operator may not read Secrets in namespace %s: %s", namespace, finding.Granting(namespace, "dpu-bridge", "bridge.namespaces"))
}

// Approval is whose certificates may be approved, and how to get there.
type Approval struct {
	// Secret with the hosted cluster's kubeconfig: HostedCluster.status.kubeconfig. Without a name, there is none yet.
	Secret types.NamespacedName
	// Server that is dialled, https://HOST:PORT: the hosted API's own Service, whatever the kubeconfig says.
	Server string
	// Cluster whose DPUs they are.
	Cluster types.NamespacedName
	// API are addresses of the hosted API, and ServiceNetworks are the hosted Services', which no kubelet may claim.
	API             []netip.Addr
	ServiceNetworks []netip.Prefix
	// NoRebootstrap: a DPU whose Node exists gets no bootstrap certificate.
	NoRebootstrap bool
}

// Injection hands the hosted cluster's kubeconfig to DPF.
type Injection struct {
	// Secret in the DPUCluster's namespace.
	Secret runtime.ApplyConfiguration
	// Refer the DPUCluster to it, unless it does so already.
	Refer bool
	// Created: the DPUCluster's condition of that name is ours to set, and is not.
	Created bool
}
