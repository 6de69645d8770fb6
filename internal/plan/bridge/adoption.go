package bridge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
)

// offered says whether the HostedCluster of the bridge's name is to be taken over: an annotation names the bridge, and nothing owns it any more.
// Whoever owned it would go on writing it, and the garbage collector deletes it with an owner that is gone.
func (in Input) offered() bool {
	hc := in.HostedCluster
	return hc != nil && hc.Annotations[names.AnnotationAdoptBy] == in.name() && hc.Labels[names.LabelManagedBy] != names.ManagedBy &&
		len(hc.OwnerReferences) == 0 && hc.DeletionTimestamp == nil
}

func (in Input) name() string { return in.Bridge.Namespace + "/" + in.Bridge.Name }

// alike says whether a NodePool can be the bridge's: HyperShift changes neither field (hypershift: nodepool_types.go).
func (in Input) alike(pool *hyperv1.NodePool) bool {
	return len(pool.OwnerReferences) == 0 && pool.DeletionTimestamp == nil && pool.Spec.ClusterName == in.Bridge.Name && pool.Spec.Arch == hyperv1.ArchitectureARM64
}

// labels are those of the bridge's objects; of one that is not stored yet, admission asks.
func (in Input) labels() map[string]string {
	all := secretLabels(in.Bridge)
	all[names.LabelOwnerUID] = cmp.Or(string(in.Bridge.UID), "not-stored")
	return all
}

func labelled[T metav1.Object](o T, labels map[string]string) T {
	all := maps.Clone(o.GetLabels())
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, labels)
	o.SetLabels(all)
	return o
}

// unlike reports what HyperShift never changes and the bridge would have to: with it, nothing is taken over.
func (in Input) unlike() (all []finding.Finding) {
	hc, spec := in.HostedCluster, in.Bridge.Spec
	differs := func(field string, said, is any) {
		if said != is {
			all = append(all, in.differing(finding.Refuse, field, said, is))
		}
	}
	differs("baseDomain", string(spec.BaseDomain), hc.Spec.DNS.BaseDomain)
	differs("controlPlaneAvailabilityPolicy", cmp.Or(string(spec.ControlPlaneAvailabilityPolicy), string(dpuv1.HighlyAvailable)), string(hc.Spec.ControllerAvailabilityPolicy))
	differs("exposeThroughLoadBalancer", Exposed(in.Bridge), slices.ContainsFunc(hc.Spec.Services, balanced))
	if class := string(spec.EtcdStorageClass); class != "" {
		differs("etcdStorageClass", class, storageClass(hc))
	}
	if hc.Spec.Platform.Type != hyperv1.NonePlatform || hc.Spec.Networking.NetworkType != hyperv1.Other || hc.Spec.Etcd.ManagementType != hyperv1.Managed || !in.refersToKey() {
		all = append(all, finding.Refuse(dpuv1.ConditionReady, "HostedClusterUnsuitable").At("metadata.name").
			Say("HostedCluster %s is not for DPUs: it needs platform None, network Other, a managed etcd, and the encryption key in Secret %s; give the bridge another name", in.name(), names.BridgeKey(in.Bridge.Name)))
	}
	return all
}

// differing reports a field whose value the hosted cluster cannot get any more.
func (in Input) differing(begin func(condition, reason string) finding.Builder, field string, said, is any) finding.Finding {
	return begin(dpuv1.ConditionReady, "HostedClusterDiffers").At("spec."+field).
		Say("%s is %v, but HostedCluster %s was created with %v, which HyperShift never changes: a bridge of this hosted cluster has %s: %v; for a hosted cluster with %v, delete both and recreate the bridge", field, said, in.name(), is, field, is, said)
}

func balanced(s hyperv1.ServicePublishingStrategyMapping) bool {
	return s.Service == hyperv1.APIServer && s.Type == hyperv1.LoadBalancer
}

func storageClass(hc *hyperv1.HostedCluster) string {
	m := hc.Spec.Etcd.Managed
	if m == nil || m.Storage.PersistentVolume == nil || m.Storage.PersistentVolume.StorageClassName == nil {
		return "none"
	}
	return *m.Storage.PersistentVolume.StorageClassName
}

// handingOver says how a HostedCluster that is no bridge's becomes this one's.
func (in Input) handingOver() string {
	hc := in.HostedCluster
	switch {
	case hc.Labels[names.LabelManagedBy] == names.ManagedBy:
		return ""
	case len(hc.OwnerReferences) > 0:
		return fmt.Sprintf("; or, to have the bridge take it over, delete %s %s with --cascade=orphan while its operator is stopped (docs/DPU_BRIDGE.md)", hc.OwnerReferences[0].Kind, hc.OwnerReferences[0].Name)
	}
	return fmt.Sprintf("; or, to have the bridge take it over: kubectl -n %s annotate --overwrite hostedcluster %s %s=%s", in.Bridge.Namespace, in.Bridge.Name, names.AnnotationAdoptBy, in.name())
}
