package bridge

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/kept"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// Plan is the plan of one bridge.
type Plan struct {
	// Plan has the objects of the hosted cluster, in the order in which they are applied; none while Frozen.
	desired.Plan
	// Frozen means that nothing of the hosted cluster may change. Injection and approval have reasons of their own.
	Frozen bool
	// Adopts is what becomes the bridge's; nothing else is written then.
	Adopts []Adoption
	// Key is the Secret to create for the encryption key of etcd; nil if it exists. It is created once.
	Key *corev1.Secret
	// Copies are the names of the copies of the user's Secrets; other copies of the bridge are no longer needed.
	Copies []string
	// Recreates says that the hosted cluster existed and somebody deleted it.
	Recreates bool
	// Image is that of the DPUs' operating system; empty while it is not known.
	Image string
	// Former are ImageStreams of former releases that nothing uses any more.
	Former []Object
	// Inject is how to inject the kubeconfig; nil while there is none, or nowhere to write it.
	Inject *Injection
	// Approve says how to approve certificates of the DPUCluster's DPUs; nil stops that.
	Approve *Approval
	// Templates are those from which DPF installs DPUs; they change while Frozen, too.
	Templates Templating
	// Services are those that the DPUDeployment has DPUs run.
	Services Servicing
	// End: the DPUCluster is gone, and the user wants the bridge and all its objects to be deleted with it.
	End bool
}

// freezing are the conditions that prevent all changes of the hosted cluster. Injection and approval do not depend on them.
var freezing = []string{
	dpuv1.ConditionDPUClusterBound, dpuv1.ConditionReady, dpuv1.ConditionSecretsValid,
	dpuv1.ConditionBlueFieldContainerImageAvailable, dpuv1.ConditionMetalLBConfigured,
}

// frozen: one finding that something is missing or wrong prevents all changes of the hosted cluster, because half of one is of no use.
func (p *Plan) frozen() bool { return p.Blocked(freezing...) }

// Freezes says whether a finding is one for which a plan is Frozen.
func Freezes(f finding.Finding) bool {
	return f.Severity.Blocks() && slices.Contains(freezing, f.Condition)
}

// SaysItIsFrozen says whether a bridge's status names what prevents all changes of the hosted cluster. Ready tells of what comes later, too.
func SaysItIsFrozen(b *dpuv1.DPUHCPBridge) bool {
	return slices.ContainsFunc(freezing, func(kind string) bool {
		return kind != dpuv1.ConditionReady && !meta.IsStatusConditionTrue(b.Status.Conditions, kind)
	})
}

// Reported says whether a bridge's status has anything of a HostedCluster.
func Reported(b *dpuv1.DPUHCPBridge) bool {
	return meta.FindStatusCondition(b.Status.Conditions, dpuv1.ConditionHostedClusterAvailable) != nil
}

// Denied says that the operator may not read Secrets in a namespace, and how to grant it.
func Denied(condition, namespace string) finding.Finding {
	return finding.Wait(condition, input.GuestNotGranted).
		Say("the operator may not read Secrets in namespace %s: %s", namespace, finding.Granting(namespace, "dpu-bridge", "bridge.namespaces"))
}

// Approval says whose certificates may be approved, and how to connect to the hosted cluster.
type Approval struct {
	// Secret is the one with the hosted cluster's kubeconfig: HostedCluster.status.kubeconfig. Its name is empty if there is none yet.
	Secret types.NamespacedName
	// Server is what to connect to, https://HOST:PORT: the hosted API's own Service, whatever the kubeconfig says.
	Server string
	// Cluster is the DPUCluster of the DPUs.
	Cluster types.NamespacedName
	// API are the addresses of the hosted API, ServiceNetworks the networks of the hosted Services: no kubelet may claim them.
	API             []netip.Addr
	ServiceNetworks []netip.Prefix
	// Privileged is the binding to keep in the hosted cluster; nil keeps none.
	Privileged *rbacv1.ClusterRoleBinding
	// NoRebootstrap: a DPU whose Node exists gets no bootstrap certificate.
	NoRebootstrap bool
}

// Injection gives the hosted cluster's kubeconfig to DPF.
type Injection struct {
	// Secret in the DPUCluster's namespace.
	Secret runtime.ApplyConfiguration
	// Refer: the DPUCluster does not refer to the Secret yet, and must be changed.
	Refer bool
	// Created: the DPUCluster lacks the condition of that name, which we have to set.
	Created bool
}

// Object is an object of any kind.
type Object interface {
	metav1.Object
	runtime.Object
}

// Adoption is what becomes a bridge's when it takes over a hosted cluster: each object with the labels that it gets, the HostedCluster last, so
// that one that was interrupted is repeated.
type Adoption struct {
	Object kept.Object
	Labels map[string]string
}
