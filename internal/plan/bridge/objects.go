package bridge

import (
	"encoding/json"
	"fmt"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	accore "k8s.io/client-go/applyconfigurations/core/v1"
	acmeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/metallb"
	"github.com/cldmnky/oooi/internal/names"
)

const etcdVolume = "8Gi"

// object is an apply configuration of a kind that has none generated.
type object[Spec any] struct {
	acmeta.TypeMetaApplyConfiguration    `json:",inline"`
	*acmeta.ObjectMetaApplyConfiguration `json:"metadata,omitempty"`

	Spec Spec `json:"spec"`
}

// IsApplyConfiguration marks the type.
func (o *object[Spec]) IsApplyConfiguration() {}

func of[Spec any](b *dpuv1.DPUHCPBridge, gv schema.GroupVersion, kind, namespace, name string, spec Spec) *object[Spec] {
	o := &object[Spec]{ObjectMetaApplyConfiguration: acmeta.ObjectMeta().WithNamespace(namespace).WithName(name).WithLabels(labels(b)), Spec: spec}
	o.WithAPIVersion(gv.String()).WithKind(kind)
	return o
}

func (in Input) hostedCluster(services []hyperv1.ServicePublishingStrategyMapping) runtime.ApplyConfiguration {
	b := in.Bridge
	volume := &hyperv1.PersistentVolumeEtcdStorageSpec{Size: ptr.To(resource.MustParse(etcdVolume))}
	if class := string(b.Spec.EtcdStorageClass); class != "" {
		volume.StorageClassName = &class
	}
	hc := of(b, hyperv1.GroupVersion, "HostedCluster", b.Namespace, b.Name, &hyperv1.HostedClusterSpec{
		Release:    hyperv1.Release{Image: string(b.Spec.OCPReleaseImage)},
		Platform:   hyperv1.PlatformSpec{Type: hyperv1.NonePlatform},
		DNS:        hyperv1.DNSSpec{BaseDomain: string(b.Spec.BaseDomain)},
		PullSecret: corev1.LocalObjectReference{Name: in.pullSecretCopy()},
		SSHKey:     corev1.LocalObjectReference{Name: in.sshKeyCopy()},
		Services:   services,
		Etcd: hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{
			Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage, PersistentVolume: volume},
		}},
		SecretEncryption: &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{
			ActiveKey: corev1.LocalObjectReference{Name: names.BridgeKey(b.Name)},
		}},
		Networking:                       in.networking(),
		Capabilities:                     in.capabilities(),
		NodeSelector:                     in.nodeSelector(),
		AdditionalTrustBundle:            in.trusted(),
		ControllerAvailabilityPolicy:     hyperv1.AvailabilityPolicy(b.Spec.ControlPlaneAvailabilityPolicy),
		InfrastructureAvailabilityPolicy: hyperv1.AvailabilityPolicy(b.Spec.InfrastructureAvailabilityPolicy),
	})
	hc.WithAnnotations(map[string]string{names.AnnotationClusterType: in.DPUCluster.Spec.Type})
	return hc
}

// nodePool has no machines, because DPF provisions DPUs. It exists for their Ignition.
func (in Input) nodePool() runtime.ApplyConfiguration {
	b := in.Bridge
	return of(b, hyperv1.GroupVersion, "NodePool", b.Namespace, b.Name, &hyperv1.NodePoolSpec{
		ClusterName: b.Name,
		Release:     hyperv1.Release{Image: string(b.Spec.OCPReleaseImage)},
		Platform:    hyperv1.NodePoolPlatform{Type: hyperv1.NonePlatform},
		Replicas:    ptr.To[int32](0),
		Arch:        hyperv1.ArchitectureARM64, // a BlueField is aarch64; the default is amd64, and cannot be changed later
		Management:  hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeReplace},
		Config:      []corev1.LocalObjectReference{{Name: names.BridgeIgnition(b.Name)}},
	})
}

// ignition has the MachineConfig that pins the operating system, as HyperShift reads it (NodePool.spec.config).
func (in Input) ignition(image string) runtime.ApplyConfiguration {
	b := in.Bridge
	return accore.ConfigMap(names.BridgeIgnition(b.Name), b.Namespace).WithLabels(labels(b)).
		WithData(map[string]string{"config": machineConfig(image)})
}

func machineConfig(image string) string {
	text, err := json.Marshal(map[string]any{
		"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
		"metadata": map[string]any{"name": "99-bluefield-os", "labels": map[string]any{"machineconfiguration.openshift.io/role": "worker"}},
		"spec":     map[string]any{"osImageURL": image},
	})
	if err != nil {
		panic(fmt.Sprintf("a MachineConfig of plain strings is no JSON: %v", err))
	}
	return string(text)
}

// pools give the hosted API its address: one pool of one address for the control-plane namespace, and its announcement. If something is
// wrong with the address, it stays announced if MetalLB has it, and is not announced otherwise. That does not depend on the HostedCluster,
// which the bridge's author could have created.
func (in Input) pools() []runtime.ApplyConfiguration {
	vip := VirtualIP(in.Bridge)
	if !vip.IsValid() || len(in.virtualIP()) > 0 && !in.announced() {
		return nil
	}
	b, key := in.Bridge, PoolKey(in.Settings, in.Bridge)
	namespace, name := key.Namespace, key.Name
	return []runtime.ApplyConfiguration{
		of(b, metallb.GroupVersion, "IPAddressPool", namespace, name, metallb.PoolSpec{
			Addresses: []string{pooled(vip)}, AutoAssign: true,
			AllocateTo: &metallb.Allocation{Namespaces: []string{ControlPlane(b)}},
		}),
		of(b, metallb.GroupVersion, "L2Advertisement", namespace, name, metallb.AdvertisementSpec{IPAddressPools: []string{name}}),
	}
}
