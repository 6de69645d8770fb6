package bridge

import (
	"cmp"
	"net/netip"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/metallb"
	"github.com/cldmnky/oooi/internal/names"
)

// Settings are the operator's flags that planning a bridge depends on.
type Settings struct {
	// MetalLBNamespace is where MetalLB looks for its pools.
	MetalLBNamespace string
	// VirtualIPs are the networks whose addresses bridges may have MetalLB announce, and no others.
	VirtualIPs []netip.Prefix
	// Images is the ConfigMap that maps OpenShift's releases to BlueField container images.
	Images types.NamespacedName
}

// Announces says whether bridges may have MetalLB announce an address.
func (s Settings) Announces(vip netip.Addr) bool {
	return slices.ContainsFunc(s.VirtualIPs, func(n netip.Prefix) bool { return n.Contains(vip) })
}

// Input is everything from which one bridge is planned. Nil: it does not exist.
type Input struct {
	Settings Settings
	Bridge   *dpuv1.DPUHCPBridge
	// Served are the others' APIs that the cluster serves.
	Served Served
	// Exists says whether a UID is that of a bridge.
	Exists func(types.UID) bool

	DPUCluster *dpf.DPUCluster
	Rivals     []Rival
	// HostedCluster and NodePool with the bridge's namespace and name, whoever created them.
	HostedCluster *hyperv1.HostedCluster
	NodePool      *hyperv1.NodePool

	// Namespace is the control-plane namespace. Neighbours are other HostedClusters whose control planes HyperShift puts there.
	Namespace  *corev1.Namespace
	Neighbours []*hyperv1.HostedCluster
	// Pool is the bridge's in MetalLB; its name is unique to the bridge.
	Pool *metallb.IPAddressPool

	Nodes []corev1.Node
	// Networks are the pod and service networks of the management cluster, as far as they are known.
	Networks       []netip.Prefix
	StorageClasses []storagev1.StorageClass
	// Mapping is the ConfigMap of Settings.Images.
	Mapping *corev1.ConfigMap
	// DigestMirrors and TagMirrors are the cluster's, by name.
	DigestMirrors []configv1.ImageDigestMirrorSet
	TagMirrors    []configv1.ImageTagMirrorSet
	// ImageConfig and Proxy are OpenShift's configuration; RegistryCAs and TrustedCA are the ConfigMaps of CAKeys.
	ImageConfig            *configv1.Image
	Proxy                  *configv1.Proxy
	RegistryCAs, TrustedCA *corev1.ConfigMap
	// ServiceCA and IngressCA are the ConfigMaps of CacheCAKeys.
	ServiceCA, IngressCA *corev1.ConfigMap
	Copies               Copies
	// Answer is what registries have said to Lookup.
	Answer Answer

	// PullSecret and SSHKey are the user's; Key has the encryption key of etcd.
	PullSecret, SSHKey, Key Secret
	// Polled: some of the Secrets are read only once a minute, because there are too many to watch.
	Polled bool
	// Injected is the Secret in the DPUCluster's namespace. It is read only if the bridge has a reference grant, or says that it had one.
	Injected Secret
	// Kubeconfig is the hosted cluster's.
	Kubeconfig Kubeconfig
	// Services are what the services of the DPUDeployment are made from.
	Services Services
	// Templates are those from which DPF installs DPUs.
	Templates Templates
}

// Rival is another bridge that wants the same as ours, with the HostedCluster of its name, whoever created it, and its pool.
type Rival struct {
	*dpuv1.DPUHCPBridge
	HostedCluster *hyperv1.HostedCluster
	Pool          *metallb.IPAddressPool
}

// Served says which APIs the cluster serves.
type Served struct{ DPF, HyperShift, MetalLB bool }

// Copies are what says which images of former releases are still in OpenShift's registry, and whether somebody may need them.
type Copies struct {
	// Streams are the ImageStreams of the cache's namespace, read only if FormerCopies names some.
	Streams []metav1.PartialObjectMetadata
	// Bridges and DPUs are all that there are.
	Bridges []dpuv1.DPUHCPBridge
	DPUs    []dpf.DPU
}

// Secret is a Secret as it was read.
type Secret struct {
	*corev1.Secret
	// Denied: the operator may not read Secrets there.
	Denied bool
}

// Kubeconfig is the part of the hosted cluster's kubeconfig that DPF may get.
type Kubeconfig struct {
	// Secret is the one that has it.
	Secret Secret
	// Content is made of its harmless parts.
	Content []byte
	// Refused and Because say why there is no content, in our own words: a rule, and a sentence.
	Refused, Because string
}

// ClusterKey names the DPUCluster of a bridge.
func ClusterKey(b *dpuv1.DPUHCPBridge) types.NamespacedName {
	ref := b.Spec.DPUClusterRef
	return types.NamespacedName{Namespace: cmp.Or(string(ref.Namespace), b.Namespace), Name: string(ref.Name)}
}

// ControlPlane is the namespace in which HyperShift runs a bridge's control plane.
func ControlPlane(b *dpuv1.DPUHCPBridge) string {
	return endpoint.ControlPlaneNamespaceOf(types.NamespacedName{Namespace: b.Namespace, Name: b.Name})
}

// VirtualIP is the address that a bridge has MetalLB announce; invalid if it sets none.
func VirtualIP(b *dpuv1.DPUHCPBridge) netip.Addr {
	_, text := virtualIP(b)
	vip, err := netip.ParseAddr(text)
	if err != nil || !Exposed(b) {
		return netip.Addr{}
	}
	return vip.Unmap()
}

// virtualIP is the address that a bridge sets for its API, under one of two names (docs/adr/0018-two-names-of-one-field.md).
func virtualIP(b *dpuv1.DPUHCPBridge) (field, text string) {
	if b.Spec.VirtualIP != "" {
		return "virtualIP", string(b.Spec.VirtualIP)
	}
	return "metalLBVirtualIP", string(b.Spec.MetalLBVirtualIP)
}

// Exposed says whether a bridge publishes its API through a load balancer.
func Exposed(b *dpuv1.DPUHCPBridge) bool {
	return b.Spec.ExposeThroughLoadBalancer || b.Spec.VirtualIP != ""
}

// Rivals says whether two bridges want the same DPUCluster or virtual IP.
func Rivals(a, b *dpuv1.DPUHCPBridge) bool {
	return ClusterKey(a) == ClusterKey(b) || announceOne(a, b)
}

func announceOne(a, b *dpuv1.DPUHCPBridge) bool {
	return VirtualIP(a).IsValid() && VirtualIP(a) == VirtualIP(b)
}

// KubeconfigKey names the Secret with the hosted cluster's kubeconfig; empty while HyperShift names none, and for a HostedCluster that is
// not ours.
func (in Input) KubeconfigKey() types.NamespacedName {
	if hc := in.cluster(); hc != nil && hc.Status.KubeConfig != nil {
		return types.NamespacedName{Namespace: hc.Namespace, Name: hc.Status.KubeConfig.Name}
	}
	return types.NamespacedName{}
}

// PoolKey names a bridge's objects of MetalLB.
func PoolKey(s Settings, b *dpuv1.DPUHCPBridge) types.NamespacedName {
	return types.NamespacedName{Namespace: s.MetalLBNamespace, Name: names.Qualified(b.Namespace, b.Name)}
}

// InjectedKey names the Secret that the DPUCluster refers to.
func InjectedKey(b *dpuv1.DPUHCPBridge) types.NamespacedName {
	return types.NamespacedName{Namespace: ClusterKey(b).Namespace, Name: names.BridgeKubeconfig(b.Namespace, b.Name)}
}

// cluster is the HostedCluster if it is ours.
func (in Input) cluster() *hyperv1.HostedCluster {
	if in.HostedCluster == nil || !in.Owns(in.HostedCluster) {
		return nil
	}
	return in.HostedCluster
}

// pool is the NodePool if it is ours.
func (in Input) pool() *hyperv1.NodePool {
	if in.NodePool == nil || !in.Owns(in.NodePool) {
		return nil
	}
	return in.NodePool
}

// Owns says whether an object is the bridge's. After a restore every UID is new, so an object that names the bridge and whose owner no
// longer exists is the bridge's too.
func (in Input) Owns(o metav1.Object) bool {
	l, b := o.GetLabels(), in.Bridge
	uid := types.UID(l[names.LabelOwnerUID])
	named := l[names.LabelManagedBy] == names.ManagedBy && l[names.LabelBridge] == b.Name && l[names.LabelBridgeNamespace] == b.Namespace
	return named && uid != "" && (uid == b.UID || !in.Exists(uid))
}

// labels are those of everything that a bridge creates.
func labels(b *dpuv1.DPUHCPBridge) map[string]string {
	return map[string]string{
		names.LabelManagedBy: names.ManagedBy, names.LabelOwnerUID: string(b.UID),
		names.LabelBridge: b.Name, names.LabelBridgeNamespace: b.Namespace,
	}
}

// secretLabels are those of the Secrets that a bridge creates.
func secretLabels(b *dpuv1.DPUHCPBridge) map[string]string {
	all := labels(b)
	all[names.LabelBridgeSecret] = "true"
	return all
}

// sorted is nodes by name, so that a choice among them is the same every time.
func sorted(nodes []corev1.Node) []corev1.Node {
	all := slices.Clone(nodes)
	slices.SortFunc(all, func(a, b corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
